//! The words about packages of the first format.

use super::Command;
use super::registry::RegistryArguments;
use crate::command::install_object::ObjectOptions;
use crate::command::{convert, unpack};
use crate::output::Format;
use clap::Args;
use inventory::install_kind_named;
use oci::Platform;
use std::path::PathBuf;

/// What is said of install objects.
#[derive(Args)]
pub(super) struct ObjectArguments {
    /// Namespace of the install object [default: default]
    #[arg(long, value_name = "NAME")]
    install_namespace: Option<String>,
    /// Registry that the package and its controller's images come from, if they name none; with
    /// clusterpackageinstall or packageinstall as KIND
    #[arg(long, value_name = "REGISTRY")]
    source: Option<String>,
}

impl ObjectArguments {
    /// What is said, with the kind that comes before the reference, if one does.
    pub(super) fn into_options(
        self,
        words: &mut Vec<String>,
    ) -> Result<ObjectOptions, clap::Error> {
        let kind = words.first().filter(|_| words.len() > 1);
        let kind = kind.and_then(|word| install_kind_named(word));
        if kind.is_some() {
            words.remove(0);
        } else if self.source.is_some() {
            let message = "--source is for install objects: give clusterpackageinstall or \
                           packageinstall before the reference\n";
            return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, message));
        }
        Ok(ObjectOptions { kind, namespace: self.install_namespace, source: self.source })
    }
}

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
