//! The words of commands that ask a registry about its packages.

use super::Command;
use super::registry::RegistryArguments;
use crate::command::catalog::{search, which};
use crate::output::Format;
use clap::Args;

/// What to look for.
#[derive(Args)]
pub(super) struct SearchArguments {
    /// Words to look for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    asked: AskedArguments,
}

/// Which kind is meant.
#[derive(Args)]
pub(super) struct WhichArguments {
    /// The kind
    #[arg(value_name = "KIND|CRD[/VERSION]")]
    kind: String,
    #[command(flatten)]
    asked: AskedArguments,
}

/// Whom to ask, and how to print the answer.
#[derive(Args)]
struct AskedArguments {
    /// The registry to ask [default: that of the `apron up` your kubeconfig is of]
    #[arg(long = "registry", value_name = "HOST")]
    host: Option<String>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl SearchArguments {
    pub(super) fn into_command(self) -> Command {
        let AskedArguments { host, output, registry } = self.asked;
        let words = self.words.join(" ");
        Command::Search(search::Request { words, host, format: output, registry })
    }
}

impl WhichArguments {
    pub(super) fn into_command(self) -> Command {
        let AskedArguments { host, output, registry } = self.asked;
        Command::Which(which::Request { kind: self.kind, host, format: output, registry })
    }
}
