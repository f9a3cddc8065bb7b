//! `version`.

use crate::failure::Outcome;
use crate::output::{self, Format};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

/// How to print it.
pub(crate) enum Request {
    Own(Format),
    /// As upstream prints a client's.
    Upstream,
}

/// The version, and what the build was told of its source: `make build` asks Git, where there is a
/// checkout. The same source gives the same bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionReport {
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_time: Option<String>,
}

impl VersionReport {
    /// A commit, and the seconds since 1970 at which it was made.
    fn of_source(commit: Option<&'static str>, seconds: Option<&str>) -> Self {
        let time = seconds.and_then(|text| Timestamp::from_second(text.parse().ok()?).ok());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: commit.filter(|text| !text.is_empty()),
            source_time: time.map(|time| time.to_string()),
        }
    }
}

/// Prints the version.
pub(crate) fn run(request: &Request) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    match request {
        Request::Own(Format::Json) => output::print_json(&VersionReport::of_source(
            option_env!("APRON_COMMIT"),
            option_env!("APRON_SOURCE_TIME"),
        )),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_build_from_a_checkout_says_which_and_one_from_an_archive_says_nothing() {
        let told =
            |commit, seconds| serde_json::to_value(VersionReport::of_source(commit, seconds));
        let version = env!("CARGO_PKG_VERSION");
        let all =
            json!({"version": version, "commit": "1a2b", "sourceTime": "2027-01-15T08:00:00Z"});
        assert_eq!(told(Some("1a2b"), Some("1800000000")).unwrap(), all);
        let nothing = json!({"version": version});
        for (commit, seconds) in [(None, None), (Some(""), Some("")), (None, Some("today"))] {
            assert_eq!(told(commit, seconds).unwrap(), nothing);
        }
    }
}
