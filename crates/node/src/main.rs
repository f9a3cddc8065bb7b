//! The node's processes, for tests.

mod gateway_scenario;

use std::process::ExitCode;

fn main() -> ExitCode {
    node::sandbox::run_hidden_verb(std::env::args_os())
        .or_else(|| gateway_scenario::run_scenario_verb(std::env::args()))
        .unwrap_or(ExitCode::from(2))
}
