//! The words of `apron pin`.

use super::cluster::ClusterArguments;
use crate::command::pin::{PinVerb, Request};
use crate::output::Format;
use clap::Args;

/// Which package brings a kind.
#[derive(Args)]
pub(super) struct PinArguments {
    /// The kind, such as buckets.s3.example.org, or *.s3.example.org for all kinds of a group
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    /// Repository of the package to install for it, with its registry and without a tag
    #[arg(value_name = "REPOSITORY", conflicts_with = "remove")]
    repository: Option<String>,
    /// Take the choice back
    #[arg(long, requires = "kind")]
    remove: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

impl PinArguments {
    /// What was asked for.
    pub(super) fn into_request(self) -> Request {
        let verb = match (self.kind, self.repository) {
            (Some(kind), Some(repository)) => PinVerb::Set { kind, repository },
            (Some(kind), None) if self.remove => PinVerb::Remove { kind },
            (kind, _) => PinVerb::List { kind },
        };
        Request { verb, format: self.output, cluster: self.cluster }
    }
}
