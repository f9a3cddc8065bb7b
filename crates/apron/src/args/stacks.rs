//! The words about packages of the first format.

use super::Command;
use super::registry::RegistryArguments;
use crate::command::{convert, unpack};
use crate::output::Format;
use clap::Args;
use oci::Platform;
use std::path::PathBuf;

/// What to unpack.
#[derive(Args)]
pub(super) struct UnpackArguments {
    /// Directory with `.registry/`, package file, layout directory or reference
    #[arg(value_name = "PACKAGE", default_value = ".")]
    package: String,
    /// Refuse a package that asks for another scope
    #[arg(long, value_name = "SCOPE", value_parser = ["Namespaced", "Cluster"])]
    permission_scope: Option<String>,
    /// The name of the Package or `StackDefinition` [default: none, as the manager gives it one]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    outfile: Option<PathBuf>,
    /// Which image of a multi-platform package
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Form of the result: text is YAML
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// What to convert.
#[derive(Args)]
pub(super) struct ConvertArguments {
    /// Directory with `.registry/`, package file, layout directory or reference
    #[arg(value_name = "PACKAGE", default_value = ".")]
    package: String,
    /// The new package's name [default: made of the title]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where to put it; must be empty or not exist [default: a directory of the package's name]
    #[arg(long, short, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Which image of a multi-platform package
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl UnpackArguments {
    pub(super) fn into_command(self) -> Command {
        Command::Unpack(unpack::Request {
            package: self.package,
            scope: self.permission_scope,
            name: self.name,
            outfile: self.outfile,
            platform: self.platform,
            format: self.output,
            registry: self.registry,
        })
    }
}

impl ConvertArguments {
    pub(super) fn into_command(self) -> Command {
        Command::Convert(convert::Request {
            package: self.package,
            name: self.name,
            directory: self.directory,
            platform: self.platform,
            format: self.output,
            registry: self.registry,
        })
    }
}
