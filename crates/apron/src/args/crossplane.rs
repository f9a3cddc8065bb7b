//! The words of upstream's CLI: `crossplane xpkg …`.

use super::Command;
use super::cluster::{ClusterArguments, Impersonation};
use super::kubectl::Kind;
use super::packages::OptionArguments;
use super::registry::RegistryArguments;
use crate::command::change::Voice;
use crate::command::install_object::ObjectOptions;
use crate::command::{build, extract, init, install, push, update, version};
use crate::directory::{Links, Metadata, Selecting};
use crate::output::Format;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// A command line tool for interacting with Crossplane: the package commands, answered by apron.
#[derive(Parser)]
#[command(name = "crossplane", arg_required_else_help = true)]
pub(super) struct Arguments {
    /// Print verbose logging statements
    #[arg(long, global = true)]
    verbose: bool,
    /// Accepted for compatibility; apron has no such file
    #[arg(long, global = true, value_name = "PATH", env = "CROSSPLANE_CONFIG", hide = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Words,
}

#[derive(Subcommand)]
enum Words {
    /// Work with Crossplane packages
    #[command(subcommand)]
    Xpkg(Xpkg),
    /// Print the version
    Version {
        /// Accepted for compatibility: only the client's version is printed
        #[arg(long)]
        client: bool,
        #[command(flatten)]
        impersonation: Impersonation,
    },
}

#[derive(Subcommand)]
enum Xpkg {
    /// Build a new package
    Build(BuildArguments),
    /// Push a package to a registry
    Push(PushArguments),
    /// Extract package contents into a Crossplane cache compatible format
    Extract(ExtractArguments),
    /// Initialize a new package from a template
    Init(InitArguments),
    /// Install a package in a control plane
    Install(InstallArguments),
    /// Update a package in a control plane
    Update(UpdateArguments),
    /// Not had by apron: upstream's CLI downloads the CRDs of dependencies
    GetCrds(OtherArguments),
    /// Not had by apron: upstream's CLI builds families of providers
    Batch(OtherArguments),
}

/// Words of commands that apron does not have.
#[derive(Args)]
#[command(disable_help_flag = true)]
struct OtherArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

#[derive(Args)]
struct BuildArguments {
    /// An OCI image to embed in the package as its runtime
    #[arg(long, value_name = "NAME", conflicts_with = "embed_runtime_image_tarball")]
    embed_runtime_image: Option<String>,
    /// An OCI image tarball to embed in the package as its runtime
    #[arg(long, value_name = "PATH")]
    embed_runtime_image_tarball: Option<PathBuf>,
    /// A directory of example YAML files to include in the package
    #[arg(long, short, default_value = "./examples", value_name = "PATH")]
    examples_root: PathBuf,
    /// File paths, relative to --package-root, to exclude from the package
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    ignore: Vec<String>,
    /// The file to write the package to
    #[arg(long, short = 'o', value_name = "PATH")]
    package_file: Option<PathBuf>,
    /// The directory that contains the package's crossplane.yaml file
    #[arg(long, short = 'f', default_value = ".", value_name = "PATH")]
    package_root: PathBuf,
}

#[derive(Args)]
struct PushArguments {
    /// Where to push the package: registry, repository and tag
    package: String,
    /// An OCI manifest annotation in key=value format
    #[arg(long, short = 'a', value_name = "KEY=VALUE", value_delimiter = ',')]
    oci_annotation: Vec<String>,
    /// Skip verifying TLS certificates
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// A comma-separated list of xpkg files to push
    #[arg(long, short = 'f', value_name = "PATH", value_delimiter = ',')]
    package_files: Vec<PathBuf>,
}

#[derive(Args)]
struct ExtractArguments {
    /// Name of the package to extract; a file with --from-xpkg
    package: Option<String>,
    /// Extract from the image store of the local Docker or Podman
    #[arg(long)]
    from_daemon: bool,
    /// Extract from a package file
    #[arg(long, conflicts_with = "from_daemon")]
    from_xpkg: bool,
    /// Package output file path; the extension must be .gz or will be replaced
    #[arg(long, short, default_value = "out.gz", value_name = "PATH")]
    output: PathBuf,
}

#[derive(Args)]
struct InitArguments {
    /// The name of the new package
    name: String,
    /// A well-known template: configuration-template, provider-template, function-template-go, …
    template: String,
    /// The directory to initialize; must be empty
    #[arg(long, short, default_value = ".", value_name = "PATH")]
    directory: PathBuf,
    /// Accepted for compatibility: apron's templates are embedded and have no script
    #[arg(long, short)]
    run_init_script: bool,
    /// Accepted for compatibility: apron's templates are embedded and have no branches
    #[arg(long, short = 'b', value_name = "NAME")]
    ref_name: Option<String>,
}

#[derive(Args)]
struct InstallArguments {
    /// The kind of package to install
    #[arg(value_enum)]
    kind: Kind,
    /// The package to install: registry, repository and tag or digest
    package: String,
    /// The name of the new package [default: made from the repository]
    name: Option<String>,
    /// Install the package with a runtime configuration
    #[arg(long, value_name = "NAME")]
    runtime_config: Option<String>,
    #[command(flatten)]
    options: OptionArguments,
    #[command(flatten)]
    impersonation: Impersonation,
}

#[derive(Args)]
struct UpdateArguments {
    /// The kind of package to update
    #[arg(value_enum)]
    kind: Kind,
    /// The package to update to: registry, repository and tag or digest
    package: String,
    /// The name of the package to update [default: made from the repository]
    name: Option<String>,
    #[command(flatten)]
    impersonation: Impersonation,
}

/// Says what to use in place of a command that apron does not have.
fn refuse_command(name: &str, instead: &str) -> clap::Error {
    let message = format!("apron has no `crossplane xpkg {name}`\nhint: {instead}\n");
    clap::Error::raw(clap::error::ErrorKind::InvalidSubcommand, message)
}

impl Arguments {
    /// What was asked for.
    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        let verbose = self.verbose;
        Ok(match self.command {
            Words::Xpkg(Xpkg::Build(words)) => Command::Build(words.into_request(verbose)),
            Words::Xpkg(Xpkg::Push(words)) => Command::Push(push::Request {
                reference: words.package,
                strict_reference: true,
                files: words.package_files,
                annotations: words.oci_annotation,
                extensions: None,
                kind: None,
                // Upstream says nothing on success.
                format: verbose.then_some(Format::Text),
                registry: RegistryArguments::upstream(words.insecure_skip_tls_verify),
            }),
            Words::Xpkg(Xpkg::Extract(words)) => Command::Extract(words.into_request(verbose)?),
            Words::Xpkg(Xpkg::Init(words)) => Command::Init(init::Request {
                template: init::Template::named(&words.template).ok_or_else(|| {
                    let message = format!(
                        "template '{}' is not known; use configuration-template, provider-template or function-template-go\n",
                        words.template
                    );
                    clap::Error::raw(clap::error::ErrorKind::InvalidValue, message)
                })?,
                name: words.name,
                directory: words.directory,
            }),
            Words::Xpkg(Xpkg::Install(words)) => {
                let (mut options, wait) = words.options.into_options();
                options.runtime_config = words.runtime_config;
                Command::Install(Box::new(install::Request {
                    object: ObjectOptions::default(),
                    crd: None,
                    catalog: None,
                    package: words.package,
                    kind: Some(words.kind.into()),
                    name: words.name,
                    naming: install::Naming::Path,
                    options,
                    wait,
                    voice: Voice::Crossplane,
                    cluster: ClusterArguments::upstream(words.impersonation),
                    registry: RegistryArguments::upstream(false),
                }))
            }
            Words::Xpkg(Xpkg::Update(words)) => Command::Update(update::Request {
                kind: Some(words.kind.into()),
                name: words.name,
                to: words.package,
                wait: None,
                voice: Voice::Crossplane,
                cluster: ClusterArguments::upstream(words.impersonation),
                registry: None,
            }),
            Words::Xpkg(Xpkg::GetCrds(_)) => {
                let instead = "`apron inspect` shows the CRDs of a package and `apron extract` has \
                               them; for those of all dependencies use upstream's CLI";
                return Err(refuse_command("get-crds", instead));
            }
            Words::Xpkg(Xpkg::Batch(_)) => {
                let instead = "build and push each package of the family with `apron build` and \
                               `apron push`, or use upstream's CLI";
                return Err(refuse_command("batch", instead));
            }
            Words::Version { .. } => Command::Version(version::Request::Upstream),
        })
    }
}

impl BuildArguments {
    fn into_request(self, verbose: bool) -> build::Request {
        let runtime = match (self.embed_runtime_image, self.embed_runtime_image_tarball) {
            (Some(image), _) => Some(build::Runtime::Engine(image)),
            (None, Some(path)) => Some(build::Runtime::Archive(path)),
            (None, None) => None,
        };
        build::Request {
            root: self.package_root,
            examples: build::Examples::At(self.examples_root),
            // Upstream takes metadata wherever it is and links to files, and ignores no examples.
            selecting: Selecting {
                ignore: self.ignore,
                links: Links::Into(Vec::new()),
                metadata: Metadata::Anywhere,
                keeps_examples: true,
                apart: Vec::new(),
            },
            file: self.package_file.map_or(build::File::Derived, build::File::At),
            runtime,
            layers: Vec::new(),
            kind: None,
            strict: false,
            report: if verbose { build::Report::Tell(Format::Text) } else { build::Report::Quiet },
            ca_file: None,
        }
    }
}

impl ExtractArguments {
    fn into_request(self, verbose: bool) -> Result<extract::Request, clap::Error> {
        let missing = || {
            let message = "the package to extract is missing: give a reference\n";
            clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, message)
        };
        let from = match (self.from_xpkg, self.from_daemon) {
            // Upstream takes the only package file of the directory here, too.
            (true, _) => extract::From::File(self.package.map(PathBuf::from)),
            (_, true) => extract::From::Engine(self.package.ok_or_else(missing)?),
            _ => extract::From::Registry(self.package.ok_or_else(missing)?),
        };
        Ok(extract::Request {
            from,
            // The cache knows files by this extension only.
            output: self.output.with_extension("gz"),
            platform: None,
            registry: RegistryArguments::upstream(false),
            quiet: !verbose,
        })
    }
}
