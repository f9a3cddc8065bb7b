//! The words of the guide: `kubectl crossplane build|push|install|update …`, when the binary is called
//! `kubectl-crossplane` and kubectl finds it as a plugin.

use super::Command;
use super::cluster::{ClusterArguments, Impersonation};
use super::packages::OptionArguments;
use super::registry::RegistryArguments;
use crate::command::change::Voice;
use crate::command::install_object::ObjectOptions;
use crate::command::{build, install, push, update, version};
use crate::directory::Selecting;
use crate::output::Format;
use api::meta::PackageKind;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Work with Crossplane packages from kubectl.
#[derive(Parser)]
#[command(name = "kubectl crossplane", arg_required_else_help = true, disable_version_flag = true)]
pub(super) struct Arguments {
    /// Print the version
    #[arg(long, short)]
    version: bool,
    #[command(subcommand)]
    command: Option<Words>,
}

#[derive(Subcommand)]
enum Words {
    /// Build a package from the files in a directory
    Build {
        /// The type of package
        #[arg(value_enum)]
        kind: Kind,
        /// Directory that holds crossplane.yaml
        #[arg(long, short = 'f', default_value = ".", value_name = "DIR")]
        package_root: PathBuf,
        /// Name of the file, without .xpkg [default: the package's name and digest]
        #[arg(long)]
        name: Option<String>,
        /// Leave out files that match these patterns
        #[arg(long, value_name = "GLOB", value_delimiter = ',')]
        ignore: Vec<String>,
    },
    /// Push a package to a registry; Docker Hub if none is named
    Push {
        /// The type of package
        #[arg(value_enum)]
        kind: Kind,
        /// Where to push: [REGISTRY/]REPOSITORY:TAG
        tag: String,
        /// Package file [default: the only *.xpkg file here]
        #[arg(long, short = 'f', value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Install a package in a cluster
    Install {
        /// The type of package
        #[arg(value_enum)]
        kind: Kind,
        /// The package: [REGISTRY/]REPOSITORY:TAG; Docker Hub if no registry is named
        package: String,
        /// Name of the object [default: the last part of the repository]
        name: Option<String>,
        #[command(flatten)]
        options: OptionArguments,
        /// How to run a provider: the name of a `ControllerConfig`
        #[arg(long, value_name = "NAME")]
        config: Option<String>,
    },
    /// Change the version of an installed package
    Update {
        /// The type of package
        #[arg(value_enum)]
        kind: Kind,
        /// Name of the package
        name: String,
        /// The new tag, or a digest (sha256:…)
        tag: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Kind {
    Provider,
    Configuration,
    Function,
}

impl From<Kind> for PackageKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Provider => Self::Provider,
            Kind::Configuration => Self::Configuration,
            Kind::Function => Self::Function,
        }
    }
}

impl Arguments {
    /// What was asked for.
    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        Ok(match self.command {
            Some(Words::Build { kind, package_root, name, ignore }) => {
                Command::Build(build::Request {
                    root: package_root,
                    examples: build::Examples::None,
                    selecting: Selecting { ignore, ..Selecting::default() },
                    file: name.map_or(build::File::Derived, build::File::Named),
                    runtime: None,
                    layers: Vec::new(),
                    kind: Some(kind.into()),
                    strict: false,
                    report: build::Report::Tell(Format::Text),
                    ca_file: None,
                })
            }
            Some(Words::Push { kind, tag, file }) => Command::Push(push::Request {
                reference: tag,
                strict_reference: false,
                files: file.into_iter().collect(),
                annotations: Vec::new(),
                extensions: None,
                kind: Some(kind.into()),
                format: Some(Format::Text),
                registry: RegistryArguments::upstream(false),
            }),
            Some(Words::Install { kind, package, name, options, config }) => {
                if config.is_some() && !matches!(kind, Kind::Provider) {
                    let message = "--config is for providers only\n";
                    let kind = clap::error::ErrorKind::ArgumentConflict;
                    return Err(clap::Error::raw(kind, message));
                }
                let (mut options, wait) = options.into_options();
                options.controller_config = config;
                Command::Install(Box::new(install::Request {
                    crd: None,
                    catalog: None,
                    package,
                    kind: Some(kind.into()),
                    name,
                    naming: install::Naming::Last,
                    options,
                    object: ObjectOptions::default(),
                    wait,
                    voice: Voice::Kubectl,
                    cluster: ClusterArguments::upstream(Impersonation::default()),
                    registry: RegistryArguments::upstream(false),
                }))
            }
            Some(Words::Update { kind, name, tag }) => Command::Update(update::Request {
                kind: Some(kind.into()),
                name: Some(name),
                to: tag,
                wait: None,
                voice: Voice::Kubectl,
                cluster: ClusterArguments::upstream(Impersonation::default()),
                registry: None,
            }),
            None if self.version => Command::Version(version::Request::Own(Format::Text)),
            None => {
                let message = "a command is missing: build, push, install or update\n";
                return Err(clap::Error::raw(clap::error::ErrorKind::MissingSubcommand, message));
            }
        })
    }
}
