//! Words that say which files of a directory make up a package.

use crate::directory::{Links, Metadata, Selecting};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct SelectingArguments {
    /// Leave out files that match these patterns, relative to the package's directory
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Follow links to files inside the package's directory, and inside these
    #[arg(long, value_name = "DIR", value_delimiter = ',', num_args = 0.., require_equals = true)]
    follow_links: Option<Vec<PathBuf>>,
    /// File that holds the metadata, relative to the package's directory [default: crossplane.yaml]
    #[arg(long, value_name = "FILE")]
    metadata: Option<String>,
}

impl SelectingArguments {
    pub(super) fn into_selecting(self) -> Selecting {
        Selecting {
            ignore: self.ignore,
            links: self.follow_links.map_or(Links::None, Links::Into),
            metadata: self.metadata.map_or(Metadata::AtRoot, Metadata::In),
            apart: Vec::new(),
            keeps_examples: false,
        }
    }
}
