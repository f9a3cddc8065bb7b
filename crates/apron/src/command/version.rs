//! `version`.

use crate::failure::Outcome;
use crate::output::{self, Format};
use serde::Serialize;

/// How to print it.
pub(crate) struct Request {
    pub(crate) format: Format,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// Prints the version.
pub(crate) fn run(request: &Request) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    match request.format {
        Format::Json => output::print_json(&Version { version }),
        Format::Text => {
            output::print(format_args!("apron {version}"));
            Ok(())
        }
    }
}
