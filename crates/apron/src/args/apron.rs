//! The words of `apron`.

use super::catalog::{CatalogWords, ExplainArguments, SearchArguments, WhichArguments};
use super::explorer::ExplorerArguments;
use super::image::ImageWords;
use super::own::OwnWords;
use super::packages::PackageWords;
use super::registry::RegistryArguments;
use super::selecting::SelectingArguments;
use super::serving::RegistryWords;
use super::stacks::{ConvertArguments, UnpackArguments};
use super::up::UpArguments;
use super::{Command, result_file};
use crate::command::extra_layer::ExtraLayer;
use crate::command::{
    apiserver, build, copy, diff, extract, init, inspect, lint, login, pull, push,
};
use crate::directory::Selecting;
use crate::output::Format;
use clap::{Args, Parser, Subcommand};
use oci::Platform;
use std::path::PathBuf;

/// The package manager for control planes.
///
/// apron builds, checks, moves and shows Crossplane packages: Configurations, Providers and
/// Functions, packed as OCI images that every registry can hold.
#[derive(Parser)]
#[command(name = "apron", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = FIRST_STEPS, disable_help_subcommand = true)]
pub(super) struct Arguments {
    /// Print nothing but results, warnings and errors
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    #[command(subcommand)]
    command: Words,
}

/// What somebody types who has just installed it.
const FIRST_STEPS: &str = "\
Start with:
  apron up                              a control plane on this machine, without a cluster
  apron init configuration my-platform  a package to begin with
  apron build my-platform               a file that every registry takes
  apron doctor                          what this machine lacks, and for what
`apron COMMAND --help` says more about each, `apron help topics` lists what else is explained.";

/// How places are written, for commands that take any.
const PLACES: &str = "\
Places:
  FILE.xpkg, FILE.tar     a package file, docker-save or OCI archive (docker-archive:)
  oci-archive:FILE[:TAG]  an OCI archive, and an image in it
  oci:DIR[:TAG]           an OCI layout directory, and an image in it
  [HOST/]REPO[:TAG]       a repository in a registry (docker://)
In place of :TAG there may be @DIGEST.";

#[derive(Subcommand)]
enum Words {
    /// Create a package to start from
    Init(InitArguments),
    /// Build a package file from a directory
    Build(BuildArguments),
    /// Check packages: directories, files or references
    Lint(LintArguments),
    /// Send package files to a registry
    Push(PushArguments),
    /// Fetch a package from a registry into a file or directory
    Pull(PullArguments),
    /// Write a package's contents in the form of the package cache (gzip of package.yaml)
    Extract(ExtractArguments),
    /// Show what is in a package: metadata, objects, dependencies, layers
    #[command(visible_alias = "show")]
    Inspect(InspectArguments),
    /// Say what changed between two packages, breaking changes first
    ///
    /// Definitions are compared version by version and field by field, the metadata by what it needs
    /// and asks for. A change is breaking if objects or clients that work with OLD may not work with
    /// NEW; a warning is to be known before an upgrade; the rest are notes. Descriptions do not count.
    /// The exit code is 2 if there are changes that --fail-on names, 1 if they cannot be compared.
    #[command(after_help = PLACES)]
    Diff(DiffArguments),
    /// Copy a package or image from anywhere to anywhere
    #[command(visible_alias = "cp", after_help = PLACES)]
    Copy(CopyArguments),
    /// Write the objects that a package of the first format (`.registry/`) comes to, as YAML
    ///
    /// Its definitions, carried over to v1 and annotated with titles, icons and ui-schemas, then its
    /// record: a Package, or a `StackDefinition` if it fills in templates.
    #[command(after_help = PLACES)]
    Unpack(UnpackArguments),
    /// Turn a package of the first format (`.registry/`) into a Provider package of today
    ///
    /// Writes a directory to build, with the same definitions and the rights it needs beyond them, and
    /// a runtime configuration beside it. Says what could not be carried over.
    #[command(after_help = PLACES)]
    Convert(ConvertArguments),
    /// Search packages, the kinds they bring and the fields of those
    ///
    /// Asks the catalog of a registry that apron serves, or one in a file, and finds what you may pull:
    /// packages by the parts of their names and by what they say of themselves, kinds by their names
    /// and groups, fields by the end of their path. Words are found by their beginnings, and all of
    /// them have to be there.
    Search(SearchArguments),
    /// Tell which packages bring a kind
    ///
    /// Says in which versions, and what to type to install one. A kind is written as Bucket,
    /// buckets.s3.example.org or buckets.s3.example.org/v1; '*.s3.example.org' is every kind of a
    /// group.
    Which(WhichArguments),
    /// Explain a kind and its fields, without a cluster
    ///
    /// Shows what a package says about a kind, as `kubectl explain` does once it is installed. The kind
    /// is that of the newest package in a catalog, or of any package with --package.
    #[command(after_help = PLACES)]
    Explain(ExplainArguments),
    /// Keep a catalog of packages in a file: of any registry, for a place without a network
    #[command(subcommand)]
    Catalog(CatalogWords),
    /// Store credentials for a registry, after trying them
    Login(LoginArguments),
    /// Forget the credentials for a registry
    Logout(LogoutArguments),
    #[command(flatten)]
    Packages(PackageWords),
    /// Bring up a control plane here: API server, registry and package manager in one process
    ///
    /// Providers and functions run as programs of this machine, in namespaces of their own, where it
    /// allows that (Linux only). Elsewhere, with --runtime simulated, and if a package has no program,
    /// nothing of them runs: their Deployments are called available at once, with a condition `Simulated`,
    /// so that packages, their definitions, rights and dependencies can be tried; `apron status` says so.
    Up(UpArguments),
    /// Show the packages of a cluster in a browser: how they are, and what is in the way
    Explorer(ExplorerArguments),
    /// Keep and serve packages: a registry of your own
    #[command(subcommand)]
    Registry(RegistryWords),
    /// Serve the Kubernetes API from this process, without a cluster
    Apiserver(ApiserverArguments),
    /// Manage the packages of a cluster: fetch, install, upgrade and clean up
    Manager(Box<super::manager::ManagerArguments>),
    /// Make an image of apron, to run it in a cluster
    #[command(subcommand)]
    Image(ImageWords),
    /// Print the CRDs that packages need in a cluster
    Crds(CrdsArguments),
    #[command(flatten)]
    Own(OwnWords),
}

/// The kinds of pkg.crossplane.io, and those of Crossplane's other groups that packages bring, to
/// hold them where its core is not installed. With another suffix only the kinds of that group:
/// they can live beside Crossplane's own.
#[derive(Args)]
struct CrdsArguments {
    /// What the API group ends with, after `pkg.`
    #[arg(long, value_name = "SUFFIX", default_value = api::crd::SUFFIX)]
    group_suffix: String,
    /// With the kinds of the first package system, packages.crossplane.io
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    packages_v1: bool,
    /// Form of the result: text is YAML
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// Everything lives in one directory: objects, the certificate authority, and a kubeconfig
/// that lets kubectl in as the administrator. Everybody else may do what roles and bindings
/// say. One process at a time may use the directory.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
struct ApiserverArguments {
    #[command(subcommand)]
    words: Option<ApiserverWords>,
    /// Where objects and certificates are kept
    #[arg(long, value_name = "DIR", default_value = "apron-data")]
    data_dir: PathBuf,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: std::net::SocketAddr,
    /// Kubeconfig to write [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Keep objects in memory only; they are gone when the server stops
    #[arg(long)]
    in_memory: bool,
    /// More users: a CSV file with a token, a user, a uid and groups ("a,b") in each line
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// How many past events to keep for watches that come back; older ones start over
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    keep_events: usize,
}

/// What can be done with an API server's data.
#[derive(Subcommand)]
enum ApiserverWords {
    /// Write everything as YAML that `kubectl apply` takes, to move to another cluster
    ///
    /// Identities, versions and references to owners are left out, and so is what every cluster
    /// makes for itself. Secrets are not. The server must not be running. With definitions in it,
    /// apply the result twice: kubectl looks kinds up before it makes any.
    Export {
        /// Where objects are kept
        #[arg(long, value_name = "DIR", default_value = "apron-data")]
        data_dir: PathBuf,
        /// File to write, for its owner's eyes only [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Keep what objects say of their state
        #[arg(long)]
        with_status: bool,
    },
}

#[derive(Args)]
struct InitArguments {
    /// What to create
    #[arg(value_enum)]
    kind: init::Template,
    /// The package's name
    name: String,
    /// Where to put it; must be empty or not exist [default: a directory of that name]
    #[arg(long, short, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Args)]
struct BuildArguments {
    /// Directory that holds crossplane.yaml, or one in Git: `git+https://HOST/REPOSITORY//DIR@REF`
    #[arg(value_name = "DIR", default_value = ".", conflicts_with = "package_root")]
    root: PathBuf,
    /// The same as DIR, as upstream's flag
    #[arg(long, short = 'f', value_name = "DIR")]
    package_root: Option<PathBuf>,
    /// Directory of examples to include, if it exists [default: DIR/examples]
    #[arg(long, short, value_name = "DIR")]
    examples_root: Option<PathBuf>,
    #[command(flatten)]
    selecting: SelectingArguments,
    /// File to write [default: NAME-DIGEST.xpkg in DIR]
    #[arg(long, short = 'o', value_name = "FILE", value_parser = result_file)]
    package_file: Option<PathBuf>,
    /// Image to run, from the local Docker or Podman
    #[arg(long, value_name = "IMAGE", conflicts_with = "embed_runtime_image_tarball")]
    embed_runtime_image: Option<String>,
    /// Image to run, as a docker-save or OCI archive, or an OCI layout directory
    #[arg(long, value_name = "PATH")]
    embed_runtime_image_tarball: Option<PathBuf>,
    /// Add a layer of all files in DIR, annotated `io.crossplane.xpkg: VALUE` for other readers
    #[arg(long, value_name = "VALUE=DIR")]
    layer: Vec<ExtraLayer>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Certificate authorities of a Git server that others do not know, as a PEM file
    #[arg(long, value_name = "FILE", env = "APRON_CA_FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Args)]
struct LintArguments {
    /// Package directories, package files or references
    #[arg(value_name = "PACKAGE", default_value = ".")]
    packages: Vec<String>,
    #[command(flatten)]
    selecting: SelectingArguments,
    /// Which image of multi-platform packages
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: lint::Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct PushArguments {
    /// Where to push: [REGISTRY/]REPOSITORY:TAG
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// Package files; several become one package for several platforms [default: the only
    /// *.xpkg file here]
    #[arg(long, short = 'f', value_name = "FILE", value_delimiter = ',')]
    package_files: Vec<PathBuf>,
    /// Annotation of the pushed manifest, KEY=VALUE
    #[arg(long, short = 'a', visible_alias = "oci-annotation", value_name = "KEY=VALUE")]
    annotation: Vec<String>,
    /// Push all files in DIR beside the package, as its xpkg-extensions for other readers
    #[arg(long, value_name = "DIR")]
    extensions: Option<PathBuf>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct PullArguments {
    /// What to fetch: [REGISTRY/]REPOSITORY[:TAG|@DIGEST]
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// File to write, or with a name that ends in `/` an OCI layout directory
    /// [default: REPOSITORY-TAG.xpkg]
    #[arg(long, short = 'o', visible_short_alias = 'f', value_name = "PATH", value_parser = result_file)]
    file: Option<PathBuf>,
    /// Which image of a multi-platform package
    #[arg(long, value_name = "OS/ARCH", conflicts_with = "all_platforms")]
    platform: Option<Platform>,
    /// All images of a multi-platform package, as an OCI archive [default: REPOSITORY-TAG.tar]
    #[arg(long)]
    all_platforms: bool,
    /// Form of the result
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct ExtractArguments {
    /// Package file, layout directory or reference
    package: String,
    /// File to write
    #[arg(long, short, value_name = "FILE", default_value = "out.gz", value_parser = result_file)]
    output: PathBuf,
    /// Which image of a multi-platform package
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct InspectArguments {
    /// Package directory, package file, layout directory or reference
    package: String,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: inspect::Format,
    /// Show all objects, however many
    #[arg(long)]
    all: bool,
    /// Which image of a multi-platform package
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct DiffArguments {
    /// What was: a package directory, package file, layout directory or reference
    old: String,
    /// What is to be
    new: String,
    /// Which changes end the command with 2
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    fail_on: diff::FailOn,
    /// Show all notes and fields, however many
    #[arg(long)]
    all: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    /// Which image of multi-platform packages
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct CopyArguments {
    /// Where from
    source: String,
    /// Where to
    destination: String,
    /// Copy only the image for this platform
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Also copy what refers to the image, such as signatures
    #[arg(long)]
    referrers: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct LoginArguments {
    /// The registry
    #[arg(default_value = "index.docker.io")]
    host: String,
    /// User name
    #[arg(long, short)]
    username: Option<String>,
    /// Password or token (prefer --password-stdin: arguments can be seen by others)
    #[arg(long, short, conflicts_with = "password_stdin")]
    password: Option<String>,
    /// Read the password from standard input
    #[arg(long)]
    password_stdin: bool,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
struct LogoutArguments {
    /// The registry
    #[arg(default_value = "index.docker.io")]
    host: String,
    /// Credentials file, before those of Docker and Podman
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
}

impl CopyArguments {
    fn into_request(self) -> copy::Request {
        copy::Request {
            source: self.source,
            destination: self.destination,
            platform: self.platform,
            referrers: self.referrers,
            format: self.output,
            registry: self.registry,
        }
    }
}

impl DiffArguments {
    fn into_request(self) -> diff::Request {
        diff::Request {
            old: self.old,
            new: self.new,
            fail_on: self.fail_on,
            all: self.all,
            format: self.output,
            platform: self.platform,
            registry: self.registry,
        }
    }
}

impl Arguments {
    /// What was asked for.
    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        Ok(match self.command {
            Words::Init(words) => {
                let directory = words.directory.unwrap_or_else(|| PathBuf::from(&words.name));
                Command::Init(init::Request { template: words.kind, name: words.name, directory })
            }
            Words::Build(words) => Command::Build(words.into_request()),
            Words::Lint(words) => Command::Lint(lint::Request {
                packages: words.packages,
                selecting: words.selecting.into_selecting(),
                platform: words.platform,
                strict: words.strict,
                format: words.output,
                registry: words.registry,
            }),
            Words::Push(words) => Command::Push(push::Request {
                reference: words.reference,
                strict_reference: false,
                files: words.package_files,
                annotations: words.annotation,
                extensions: words.extensions,
                kind: None,
                format: Some(words.output),
                registry: words.registry,
            }),
            Words::Pull(words) => Command::Pull(pull::Request {
                reference: words.reference,
                file: words.file,
                images: match (words.platform, words.all_platforms) {
                    (_, true) => pull::Images::All,
                    (Some(platform), _) => pull::Images::For(platform),
                    (None, _) => pull::Images::Usual,
                },
                format: words.output,
                registry: words.registry,
            }),
            Words::Extract(words) => Command::Extract(extract::Request {
                from: extract::From::Anywhere(words.package),
                output: words.output,
                platform: words.platform,
                registry: words.registry,
                quiet: false,
            }),
            Words::Inspect(words) => Command::Inspect(inspect::Request {
                package: words.package,
                format: words.output,
                all: words.all,
                platform: words.platform,
                registry: words.registry,
            }),
            Words::Diff(words) => Command::Diff(words.into_request()),
            Words::Image(words) => words.into_command(),
            Words::Copy(words) => Command::Copy(words.into_request()),
            Words::Unpack(words) => words.into_command(),
            Words::Convert(words) => words.into_command(),
            Words::Search(words) => words.into_command(),
            Words::Which(words) => words.into_command(),
            Words::Explain(words) => words.into_command(),
            Words::Catalog(words) => words.into_command(),
            Words::Login(words) => Command::Login(login::Login {
                host: words.host,
                username: words.username,
                password: words.password,
                password_stdin: words.password_stdin,
                registry: words.registry,
            }),
            Words::Logout(words) => {
                Command::Logout(login::Logout { host: words.host, auth_file: words.auth_file })
            }
            Words::Up(words) => Command::Up(words.into_request()),
            Words::Explorer(words) => words.into_command(),
            Words::Packages(words) => return words.into_command(),
            Words::Registry(words) => Command::Registry(words.into_request()),
            Words::Apiserver(ApiserverArguments {
                words: Some(ApiserverWords::Export { data_dir, output, with_status: status }),
                ..
            }) => Command::Export(apiserver::export::Request { data_dir, output, status }),
            Words::Apiserver(words) => Command::Apiserver(apiserver::Request {
                data_dir: words.data_dir,
                listen: words.listen,
                kubeconfig: words.kubeconfig,
                in_memory: words.in_memory,
                token_auth_file: words.token_auth_file,
                keep_events: words.keep_events,
            }),
            Words::Manager(words) => words.into_command(),
            Words::Crds(words) => Command::Crds(crate::command::crds::Request {
                group_suffix: words.group_suffix,
                has_stacks: words.packages_v1,
                format: words.output,
            }),
            Words::Own(words) => return words.into_command(),
        })
    }
}

impl BuildArguments {
    fn into_request(self) -> build::Request {
        let runtime = match (self.embed_runtime_image, self.embed_runtime_image_tarball) {
            (Some(image), _) => Some(build::Runtime::Engine(image)),
            (None, Some(path)) => Some(build::Runtime::Archive(path)),
            (None, None) => None,
        };
        build::Request {
            root: self.package_root.unwrap_or(self.root),
            examples: self.examples_root.map_or(build::Examples::Below, build::Examples::At),
            selecting: Selecting {
                apart: self.layer.iter().map(|layer| layer.root.clone()).collect(),
                ..self.selecting.into_selecting()
            },
            file: self.package_file.map_or(build::File::Derived, build::File::At),
            runtime,
            layers: self.layer,
            kind: None,
            strict: self.strict,
            report: build::Report::Tell(self.output),
            ca_file: self.ca_file,
        }
    }
}
