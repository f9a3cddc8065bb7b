//! The words of `apron manager`.

use super::Command;
use super::authority::{AuthorityArguments, OpenArguments};
use super::cluster::ClusterArguments;
use super::duration;
use crate::command::deploy;
use crate::command::manager::Request;
use api::meta::PackageKind;
use clap::{Args, Subcommand, ValueEnum};
use controller::{Awaits, Movement};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::PathBuf;
use std::time::Duration;

/// How the package manager runs; upstream's flags where they mean the same.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ManagerArguments {
    #[command(subcommand)]
    words: Option<ManagerWords>,
    /// Kubeconfig of the cluster [default: KUBECONFIG, ~/.kube/config, or the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace it runs in: secrets and runtimes of packages are there
    #[arg(
        long,
        short,
        env = "POD_NAMESPACE",
        value_name = "NAME",
        default_value = "crossplane-system"
    )]
    namespace: String,
    /// Service account whose pull secrets are used for every package
    #[arg(long, env = "POD_SERVICE_ACCOUNT", value_name = "NAME", default_value = "crossplane")]
    service_account: String,
    /// What it is called among several managers [default: one of its own]
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Where packages are kept once they were fetched; NAME.xpkg there is for the pull policy Never
    #[arg(
        long,
        short,
        visible_alias = "xpkg-cache-dir",
        env = "XPKG_CACHE_DIR",
        value_name = "DIR",
        default_value = "apron-data/packages"
    )]
    cache_dir: PathBuf,
    /// Registry that is meant when a package names none
    #[arg(
        long,
        short,
        visible_alias = "default-registry",
        env = "REGISTRY",
        value_name = "HOST",
        default_value = oci::reference::DOCKER_HUB
    )]
    registry: String,
    /// Registry whose catalog is asked which package brings a kind that another needs; may be
    /// repeated, and the first that knows one counts
    #[arg(long, value_name = "URL", value_parser = controller::CatalogAddress::parse)]
    catalog: Vec<controller::CatalogAddress>,
    /// Also trust the certificate authorities in this PEM file, for registries
    #[arg(long, env = "CA_BUNDLE_PATH", value_name = "FILE")]
    ca_bundle_path: Option<PathBuf>,
    /// Take packages from Git, from repositories whose address begins so: `https://HOST/TEAM/` (may be
    /// repeated; needs `git`; without it packages come from registries only)
    #[arg(long, value_name = "ADDRESS", value_parser = git::AllowedPlace::parse)]
    allow_git_source: Vec<git::AllowedPlace>,
    /// Who runs packages: Deployment, External, or for each kind as in
    /// Provider=Deployment;Function=External
    #[arg(
        long,
        env = "PACKAGE_RUNTIME",
        value_name = "RUNTIME",
        default_value = "Deployment",
        value_parser = runs
    )]
    package_runtime: Runs,
    #[command(flatten)]
    runtime: RuntimeArguments,
    /// Objects of one kind that are looked at at once
    #[arg(
        long,
        visible_alias = "max-reconcile-rate",
        value_name = "COUNT",
        default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    max_concurrent_reconciles: u16,
    /// How often everything is looked at though nothing happened
    #[arg(long, short, value_name = "TIME", default_value = "1h", value_parser = duration::parse)]
    sync_interval: Duration,
    /// Move packages that others need to higher versions when those need them, also those whose
    /// spec.package another field manager keeps (git, kubectl); if it is not given, only those that
    /// apron itself wrote are moved, and with `false` none is
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    enable_dependency_version_upgrades: Option<bool>,
    /// And to lower versions, too
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, default_missing_value = "true")]
    enable_dependency_version_downgrades: bool,
    #[command(flatten)]
    election: ElectionArguments,
    /// Serve /metrics, /healthz and /readyz on this address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<std::net::SocketAddr>,
    /// Install the definitions of its kinds at the start, or bring them up to date
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    install_crds: bool,
    /// Look after the kinds of the first package system, packages.crossplane.io
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    packages_v1: bool,
    /// Version of Crossplane that packages are told this is
    #[arg(long, value_name = "VERSION", default_value = controller::CROSSPLANE_VERSION)]
    crossplane_version: String,
    /// Hand definitions of providers to Crossplane, which makes them when they are activated
    #[arg(long)]
    enable_custom_to_managed_resource_conversion: bool,
    /// What the API group of packages ends with, after `pkg.`
    #[arg(long, value_name = "SUFFIX", default_value = api::crd::SUFFIX)]
    group_suffix: String,
}

/// What else can be done with a package manager.
#[derive(Subcommand)]
enum ManagerWords {
    /// Install the package manager in the cluster of the current kubeconfig
    Install(InstallArguments),
}

/// Applies a namespace, the definitions of packages, a service account, its rights and a
/// Deployment, and can be repeated.
#[derive(Args)]
struct InstallArguments {
    /// Image with apron in it, in a registry that the cluster can reach; `apron image build` makes one
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Secrets with credentials for that image, and for packages and what they run
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    image_pull_secrets: Vec<String>,
    #[command(flatten)]
    open: OpenArguments,
    /// More words for `apron manager`, such as --registry=xpkg.example.org
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Print the objects, and ask no cluster
    #[arg(long)]
    dry_run: bool,
    /// Form of the objects
    #[arg(long, short, value_enum, default_value_t)]
    output: deploy::Format,
    /// Wait until it runs: 5 minutes, or as long as said, such as 30s
    #[arg(long, short, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5m")]
    #[arg(value_parser = duration::parse)]
    wait: Option<Duration>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Which of several managers works.
#[derive(Args)]
struct ElectionArguments {
    /// Work only while this manager holds the lease, so that several can stand by
    #[arg(long, short, env = "LEADER_ELECTION", value_name = "BOOL", default_value_t = false,
          action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    leader_election: bool,
    /// How long the lease is good for: others take it over once it was not renewed for as long
    #[arg(long = "leader-election-lease-duration", visible_alias = "leader-elect-lease-duration", value_name = "TIME",
          default_value = "60s", value_parser = duration::parse)]
    lease_duration: Duration,
    /// How long to try to renew the lease before work stops
    #[arg(long = "leader-election-renew-deadline", visible_alias = "leader-elect-renew-deadline", value_name = "TIME",
          default_value = "50s", value_parser = duration::parse)]
    renew_deadline: Duration,
    /// How often those who stand by look at the lease
    #[arg(long = "leader-election-retry-period", visible_alias = "leader-elect-retry-period", value_name = "TIME",
          default_value = "5s", value_parser = duration::parse)]
    retry_period: Duration,
}

/// How packages are run, and what they may do.
#[derive(Args)]
struct RuntimeArguments {
    #[command(flatten)]
    authority: AuthorityArguments,
    /// File with a `ClusterRole` whose rules packages may ask for, too
    #[arg(long, value_name = "FILE")]
    allowed_permissions: Option<PathBuf>,
    /// What packages wait for before they are installed: that what they need is installed, or that
    /// it runs, too, where this manager runs it
    #[arg(long, value_name = "STATE", value_enum, default_value_t)]
    wait_for_dependencies: Awaited,
    /// Make roles for the kinds of packages; not where Crossplane's RBAC manager does
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    manage_roles: bool,
    /// Secret of the authority that signs the certificates of packages
    #[arg(
        long,
        env = "TLS_CA_SECRET_NAME",
        value_name = "NAME",
        default_value = controller::AUTHORITY
    )]
    tls_ca_secret_name: String,
    /// How long certificates of packages are good for; they are renewed in time
    #[arg(long, value_name = "TIME", default_value = "8760h", value_parser = duration::parse)]
    certificate_lifetime: Duration,
    /// How long the authority that signs them is good for
    #[arg(long, value_name = "TIME", default_value = "87600h", value_parser = duration::parse)]
    authority_lifetime: Duration,
}

/// What packages wait for of those that they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Awaited {
    /// Its objects are there
    Installed,
    /// It runs, too
    #[default]
    Running,
}

/// Kinds of packages that are run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Runs(Vec<PackageKind>);

fn runs(text: &str) -> Result<Runs, String> {
    let mut kinds = vec![PackageKind::Provider, PackageKind::Function];
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let (kind, runtime) = match part.split_once('=') {
            None => (None, part),
            Some(("Provider", runtime)) => (Some(PackageKind::Provider), runtime),
            Some(("Function", runtime)) => (Some(PackageKind::Function), runtime),
            Some(("Configuration", runtime)) => (Some(PackageKind::Configuration), runtime),
            Some((other, _)) => return Err(format!("`{other}` is not a kind of package")),
        };
        match runtime {
            "Deployment" => {}
            "External" => kinds.retain(|one| kind.is_some_and(|kind| kind != *one)),
            other => return Err(format!("`{other}` is neither Deployment nor External")),
        }
    }
    Ok(Runs(kinds))
}

/// A name that no other manager has: processes of two containers can have one number.
fn identity() -> String {
    let chance = std::hash::RandomState::new().build_hasher().finish();
    format!("apron-{}-{chance:016x}", std::process::id())
}

impl InstallArguments {
    fn into_request(self) -> deploy::Request {
        deploy::Request {
            image: self.image,
            pull_secrets: self.image_pull_secrets,
            open: self.open,
            arguments: self.arguments,
            format: self.output,
            dry_run: self.dry_run,
            wait: self.wait,
            cluster: self.cluster,
        }
    }
}

impl ManagerArguments {
    /// What was asked for.
    pub(super) fn into_command(mut self) -> Command {
        match self.words.take() {
            Some(ManagerWords::Install(words)) => Command::Deploy(Box::new(words.into_request())),
            None => Command::Manager(Box::new(self.into_request())),
        }
    }

    fn into_request(self) -> Request {
        let upgrades = self.enable_dependency_version_upgrades;
        let movement = match upgrades {
            _ if self.enable_dependency_version_downgrades => Movement::Any,
            Some(false) => Movement::Held,
            _ => Movement::Upgrades,
        };
        let moves_kept = self.enable_dependency_version_downgrades || upgrades == Some(true);
        Request {
            kubeconfig: self.kubeconfig,
            context: self.context,
            cache_dir: self.cache_dir,
            ca_bundle: self.ca_bundle_path,
            git_sources: self.allow_git_source,
            allowed_permissions: self.runtime.allowed_permissions,
            listen: self.listen,
            settings: self.runtime.authority.applied(controller::Settings {
                identity: self.identity.unwrap_or_else(identity),
                namespace: self.namespace,
                service_account: self.service_account,
                group_suffix: self.group_suffix,
                default_registry: self.registry,
                catalogs: self.catalog,
                movement,
                moves_kept,
                runs: self.package_runtime.0,
                awaits: match self.runtime.wait_for_dependencies {
                    Awaited::Installed => Awaits::Installed,
                    Awaited::Running => Awaits::Running,
                },
                authority: self.runtime.tls_ca_secret_name,
                lifetimes: controller::Lifetimes {
                    authority: self.runtime.authority_lifetime,
                    runtime: self.runtime.certificate_lifetime,
                },
                allowed: Vec::new(),
                allowed_role: None,
                allowed_groups: Vec::new(),
                is_aggregated: true,
                manages_roles: self.runtime.manage_roles,
                concurrency_max: usize::from(self.max_concurrent_reconciles),
                sync_interval: self.sync_interval,
                crossplane_version: self.crossplane_version,
                defers_definitions: self.enable_custom_to_managed_resource_conversion,
                elects_leader: self.election.leader_election,
                lease: controller::lease::Timing {
                    duration: self.election.lease_duration,
                    deadline: self.election.renew_deadline,
                    retry: self.election.retry_period,
                },
                publishes_settings: true,
                installs_definitions: self.install_crds,
                manages_stacks: self.packages_v1,
                adopts_existing: false,
                unsupported: controller::Unsupported::default(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_that_is_told_nothing_is_the_one_that_has_a_cluster_to_itself() {
        let words = ["apron", "manager", "--identity=one", "--leader-election=false"];
        let understood = crate::args::parse(words.map(Into::into).into());
        let command = understood.map(|understood| understood.command);
        let Ok(Command::Manager(request)) = command else { panic!("no manager is asked for") };
        let alone =
            controller::Settings { publishes_settings: true, ..controller::Settings::alone("one") };
        // C1: nothing is allowed but what the role says that gathers it.
        assert!(alone.allowed.is_empty());
        assert_eq!(alone.allowed_role.as_deref(), Some("crossplane:allowed-provider-permissions"));
        assert_eq!(format!("{:#?}", request.settings), format!("{alone:#?}"));
    }

    #[test]
    fn who_runs_packages_is_said_for_all_or_for_each_kind() {
        use PackageKind::{Function, Provider};
        let check = |text: &str, expected: &[PackageKind]| {
            assert_eq!(runs(text), Ok(Runs(expected.to_vec())), "{text}");
        };
        check("Deployment", &[Provider, Function]);
        check("External", &[]);
        check("Provider=External", &[Function]);
        check("Provider=Deployment;Function=External", &[Provider]);
        assert!(runs("Nonsense").is_err());
        assert!(runs("Lock=External").is_err());
    }
}
