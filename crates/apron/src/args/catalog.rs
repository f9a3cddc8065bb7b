//! The words of commands that ask a catalog about packages, and of those that keep one.

use super::Command;
use super::registry::RegistryArguments;
use crate::command::catalog::keep::CatalogDeed;
use crate::command::catalog::{CatalogChoice, explain, keep, search, which};
use crate::output::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

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

/// Which field is meant, and of which package.
#[derive(Args)]
pub(super) struct ExplainArguments {
    /// The kind, and a field of it: Bucket.spec.forProvider, or buckets.s3.example.org.spec
    #[arg(value_name = "KIND[.FIELD…]")]
    kind: String,
    /// The package to explain it by, wherever it is [default: the newest in the catalog]
    #[arg(long, value_name = "PACKAGE", conflicts_with_all = ["host", "file"])]
    package: Option<String>,
    /// The version of the kind [default: the one that objects are stored in]
    #[arg(long, value_name = "VERSION")]
    api_version: Option<String>,
    /// Show the fields below, all the way down
    #[arg(long)]
    recursive: bool,
    #[command(flatten)]
    asked: AskedArguments,
}

/// Whom to ask, and how to print the answer.
#[derive(Args)]
pub(super) struct AskedArguments {
    /// The registry to ask [default: that of the `apron up` your kubeconfig is of]
    #[arg(long = "registry", value_name = "HOST", conflicts_with = "file")]
    host: Option<String>,
    #[command(flatten)]
    kept: KeptArguments,
}

/// A catalog in a file, and how to print what becomes of it.
#[derive(Args)]
pub(super) struct KeptArguments {
    /// A catalog in a file, kept or exported [default: apron/catalog.db where your programs keep data]
    #[arg(long = "catalog", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl KeptArguments {
    fn choose_catalog(self, host: Option<String>) -> (CatalogChoice, Format) {
        let Self { file, output, registry } = self;
        (CatalogChoice { host, file, registry }, output)
    }
}

impl SearchArguments {
    pub(super) fn into_command(self) -> Command {
        let (asked, format) = self.asked.kept.choose_catalog(self.asked.host);
        Command::Search(search::Request { words: self.words.join(" "), asked, format })
    }
}

impl WhichArguments {
    pub(super) fn into_command(self) -> Command {
        let (asked, format) = self.asked.kept.choose_catalog(self.asked.host);
        Command::Which(which::Request { kind: self.kind, asked, format })
    }
}

impl ExplainArguments {
    pub(super) fn into_command(self) -> Command {
        let Self { kind, package, api_version, recursive, asked } = self;
        let (asked, format) = asked.kept.choose_catalog(asked.host);
        Command::Explain(explain::Request { kind, package, api_version, recursive, asked, format })
    }
}

/// What to do with a catalog in a file.
#[derive(Subcommand)]
pub(super) enum CatalogWords {
    /// Read packages of any registry into a catalog
    ///
    /// A repository is read with all of its tags that are versions, a reference with that one. What
    /// was read before is not read again: a command that was interrupted goes on where it was.
    Add {
        /// Repositories and references
        #[arg(value_name = "REFERENCE|REPOSITORY", required_unless_present = "from")]
        sources: Vec<String>,
        /// A file with one of those in each line; # begins a comment
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        #[command(flatten)]
        kept: KeptArguments,
    },
    /// Look again at everything that was added
    Sync(KeptArguments),
    /// Write a catalog into one file, for a place without a network
    Export {
        /// The file to write
        #[arg(value_name = "FILE")]
        to: PathBuf,
        #[command(flatten)]
        asked: AskedArguments,
    },
    /// Read a file that was exported into a catalog
    Import {
        /// The file to read
        #[arg(value_name = "FILE")]
        from: PathBuf,
        #[command(flatten)]
        kept: KeptArguments,
    },
}

impl CatalogWords {
    pub(super) fn into_command(self) -> Command {
        let (deed, kept, host) = match self {
            Self::Add { sources, from, kept } => (CatalogDeed::Add { sources, from }, kept, None),
            Self::Sync(kept) => (CatalogDeed::Sync, kept, None),
            Self::Export { to, asked } => (CatalogDeed::Export(to), asked.kept, asked.host),
            Self::Import { from, kept } => (CatalogDeed::Import(from), kept, None),
        };
        let (asked, format) = kept.choose_catalog(host);
        Command::Catalog(keep::Request { deed, asked, format })
    }
}
