//! The words for an image of apron itself.

use super::Command;
use super::result_file;
use crate::command::image;
use crate::output::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What can be done with an image of apron.
#[derive(Subcommand)]
pub(super) enum ImageWords {
    /// Write an image of this very program, to run it in a cluster
    ///
    /// The image holds this program, the libraries it uses here and the certificates this machine
    /// trusts, and nothing else; no other image and no network is needed. Send it to a registry that
    /// your cluster can reach, and install the package manager from there:
    ///
    ///   apron image build -o apron.tar
    ///   apron copy apron.tar registry.example.org/platform/apron:v1
    ///   apron manager install --image registry.example.org/platform/apron:v1
    #[command(verbatim_doc_comment)]
    Build(BuildArguments),
}

#[derive(Args)]
pub(super) struct BuildArguments {
    /// File to write: a docker-save archive, as `docker load` and `podman load` take it
    #[arg(long, short = 'o', value_name = "FILE", default_value = "apron.tar", value_parser = result_file)]
    file: PathBuf,
    /// Form of the result
    #[arg(long, value_enum, default_value_t)]
    output: Format,
}

impl ImageWords {
    /// What was asked for.
    pub(super) fn into_command(self) -> Command {
        let Self::Build(words) = self;
        Command::Image(image::Request { file: words.file, format: words.output })
    }
}
