//! `version`.

use crate::failure::Outcome;
use crate::output::{self, Format};
use serde::Serialize;

/// How to print it.
pub(crate) enum Request {
    Own(Format),
    /// As upstream prints a client's.
    Upstream,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

/// Prints the version.
pub(crate) fn run(request: &Request) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    match request {
        Request::Own(Format::Json) => output::print_json(&Version { version }),
        Request::Upstream => {
            output::print(format_args!("Client Version: v{version}"));
            Ok(())
        }
        Request::Own(Format::Text) => {
            output::print(format_args!("apron {version}"));
            Ok(())
        }
    }
}
