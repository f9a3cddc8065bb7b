//! The words for packages in a cluster.

use super::Command;
use super::authority::AuthorityArguments;
use super::cluster::ClusterArguments;
use super::duration;
use super::logs::LogsArguments;
use super::permissions::PermissionsArguments;
use super::pin::PinArguments;
use super::registry::RegistryArguments;
use super::render::RenderArguments;
use super::stacks::ObjectArguments;
use crate::cluster::wait::Goal;
use crate::command::change::Voice;
use crate::command::list::ListedKind;
use crate::command::{
    activate, adopt, install, list, plan, prune, status, uninstall, update, wait, why,
};
use crate::output::{Format, ObjectFormat};
use api::meta::PackageKind;
use clap::{Args, Subcommand};
use inventory::{Which, install_kind_named, kind_named};
use std::time::Duration;

/// What can be done with packages in a cluster.
#[derive(Subcommand)]
pub(super) enum PackageWords {
    /// Install a package in a cluster
    ///
    /// The package's kind is read from the registry, unless it is said: `apron install provider
    /// REFERENCE` works where the cluster can reach the registry and this machine cannot.
    ///
    /// For a package of the first format (`.registry/`) an install object is made: a
    /// `ClusterPackageInstall` or a `PackageInstall`, as the package says it needs rights. Either can be
    /// said as KIND, too: `apron install clusterpackageinstall REFERENCE`.
    Install(Box<InstallArguments>),
    /// Change the version of an installed package
    ///
    /// Under manual activation the new version waits until somebody activates it, and so does
    /// `--wait`: it ends well only once the new version is the one that is healthy.
    Update(UpdateArguments),
    /// Say what an install or update would change, before anything does
    ///
    /// The package manager is played through with what the cluster and the registries say now, and
    /// nothing is written: packages that come or move and why, what becomes of the definitions they
    /// bring, what their controllers may do, and what runs them.
    Plan(Box<PlanArguments>),
    /// Print what is installed, and all that it needs, as objects for git
    ///
    /// Every package is named, pinned, and no longer automatic; with references, as it would be then.
    Render(Box<RenderArguments>),
    /// Say what packages ask for beyond their own kinds; allow it, or take that back
    ///
    /// Packages get rights on the kinds they bring. Permissions beyond, and webhooks about kinds of
    /// others (the verb `intercept`), they get once an administrator allows them. Without a command,
    /// packages that ask for any are listed.
    Permissions(PermissionsArguments),
    /// Remove a package, with everything it brought
    ///
    /// Its definitions go with it, and with them all objects of its kinds: if there are any, that
    /// takes `--delete-objects`, or a yes to the question at a terminal. What runs the package stays
    /// until those with finalizers are gone.
    Uninstall(UninstallArguments),
    /// List installed packages
    #[command(visible_alias = "ls")]
    List(ListArguments),
    /// Show packages, their revisions and what they need, and what is in the way
    Status(StatusArguments),
    /// Print what the programs of a package write
    ///
    /// These are the logs of the pods of its active revision, wherever they run. With `--follow` they
    /// go on, also when containers are started again and pods take the place of others, until the
    /// package is uninstalled.
    Logs(LogsArguments),
    /// Make a revision the one that counts, where that is not done by itself
    Activate(ActivateArguments),
    /// Go back to the revision that was active before
    Rollback(RollbackArguments),
    /// Give a package what is there already and no package brought
    ///
    /// A package does not take over objects that no package brought, unless somebody who may change
    /// them says so. This shows how each would change, and says so: with the annotation
    /// `pkg.crossplane.io/adopt=provider.pkg.crossplane.io/NAME`, which can be written by hand as
    /// well. They then belong to the package, and go when it is uninstalled. A package with the
    /// annotation `pkg.crossplane.io/adopt-existing=true` may have whatever is there.
    Adopt(Box<AdoptArguments>),
    /// Remove definitions that a package no longer brings, or give them up
    ///
    /// A definition that a newer version of the package dropped stays with the package while there
    /// are objects of its kind. This lists such definitions with their objects, and removes them.
    /// Objects are only deleted with `--delete-objects`. With `--release` definitions and objects
    /// stay, and no longer belong to the package, so that another one may bring them.
    Prune(PruneArguments),
    /// Choose which package brings a kind, where several do
    ///
    /// A package may need a kind instead of a package. If several packages bring it, none is
    /// chosen until an administrator says which: in the `ConfigMap` `package-pins` of the manager's
    /// namespace, where this command writes it. Without a kind, pins are listed.
    Pin(PinArguments),
    /// Wait until packages are healthy
    Wait(WaitArguments),
    /// Say who needs a package, in which versions, and what is in the way
    Why(WhyArguments),
}

#[derive(Args)]
pub(super) struct InstallArguments {
    /// The package, a name for it if it should have another, and before them its kind if it
    /// should not be looked up: [KIND] REFERENCE [NAME]
    #[arg(value_name = "REFERENCE", required_unless_present = "crd", num_args = 1..=3)]
    words: Vec<String>,
    /// Install the package that brings this kind, such as buckets.s3.example.org/v1, instead of one
    /// that is named; several that do are listed, and none is installed
    #[arg(long, value_name = "KIND", conflicts_with = "words")]
    crd: Option<String>,
    /// Registry whose catalog is asked for that [default: that of the `apron up` your kubeconfig is of]
    #[arg(long, value_name = "URL", requires = "crd")]
    catalog: Option<String>,
    #[command(flatten)]
    options: OptionArguments,
    /// How to run it: the name of a `DeploymentRuntimeConfig`
    #[arg(long, value_name = "NAME")]
    runtime_config: Option<String>,
    /// How to run it, the older way: the name of a `ControllerConfig`
    #[arg(long, value_name = "NAME")]
    config: Option<String>,
    /// When the cluster asks the registry: `IfNotPresent`, Always or Never
    #[arg(long, value_name = "POLICY", value_parser = ["IfNotPresent", "Always", "Never"])]
    pull_policy: Option<String>,
    /// Install it without what it depends on
    #[arg(long)]
    skip_dependency_resolution: bool,
    /// Install it whatever version of Crossplane it asks for
    #[arg(long)]
    ignore_crossplane_constraints: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten, next_help_heading = "Packages of the first format")]
    object: ObjectArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registry: RegistryArguments,
}

/// The flags that all three names of the binary have for `install`.
#[derive(Args)]
pub(super) struct OptionArguments {
    /// Do not activate new revisions by themselves
    #[arg(long, short)]
    manual_activation: bool,
    /// How many inactive revisions to keep; 0 keeps all
    #[arg(long, short, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(0..))]
    revision_history_limit: Option<i64>,
    /// Secrets with credentials for the registry, in the namespace of the package manager
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    package_pull_secrets: Vec<String>,
    /// Wait until it is healthy: 5 minutes, or as long as said, such as 30s
    #[arg(long, short, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5m")]
    #[arg(value_parser = duration::parse)]
    wait: Option<Duration>,
}

impl OptionArguments {
    /// What to say in the object, and how long to wait.
    pub(super) fn into_options(self) -> (install::Options, Option<Duration>) {
        let options = install::Options {
            manual_activation: self.manual_activation,
            revision_history_limit: self.revision_history_limit,
            pull_secrets: self.package_pull_secrets,
            ..install::Options::default()
        };
        (options, self.wait.filter(|wait| !wait.is_zero()))
    }
}

#[derive(Args)]
pub(super) struct WaitFlag {
    /// Wait until that is so: 5 minutes, or as long as said, such as 30s
    #[arg(long, short, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5m")]
    #[arg(value_parser = duration::parse)]
    wait: Option<Duration>,
}

#[derive(Args)]
pub(super) struct UpdateArguments {
    /// A reference to the new version of something that is installed; or a name and a reference,
    /// tag or digest, and before them its kind: [KIND] [NAME] VERSION
    #[arg(value_name = "VERSION", required = true, num_args = 1..=3)]
    words: Vec<String>,
    #[command(flatten)]
    wait: WaitFlag,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
pub(super) struct PlanArguments {
    /// A reference, as for `install` and `update`, and a name for it; or the name of something
    /// that is installed, and a version: [KIND] REFERENCE [NAME] or [KIND] NAME VERSION
    #[arg(value_name = "REFERENCE", required = true, num_args = 1..=3)]
    words: Vec<String>,
    /// End with 0 if nothing would change, with 2 if something would, and with 1 if it cannot be
    #[arg(long)]
    detailed_exitcode: bool,
    /// Let the API server check every object in a dry run, too, which needs the right to write them
    #[arg(long)]
    check: bool,
    /// Plan for a manager that may move packages to lower versions
    #[arg(long)]
    enable_dependency_version_downgrades: bool,
    /// Registry whose catalog the manager asks which package brings a kind; may be repeated
    #[arg(long, value_name = "URL", value_parser = controller::CatalogAddress::parse)]
    catalog: Vec<controller::CatalogAddress>,
    #[command(flatten, next_help_heading = "What the manager was told")]
    authority: AuthorityArguments,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten, next_help_heading = "Packages of the first format")]
    object: ObjectArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
pub(super) struct UninstallArguments {
    /// Names of packages: NAME or KIND/NAME
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Although other packages need it
    #[arg(long)]
    force: bool,
    /// Only say what would go, and which objects of its kinds
    #[arg(long)]
    dry_run: bool,
    /// Delete all objects of its kinds, if there are any
    #[arg(long)]
    delete_objects: bool,
    #[command(flatten)]
    wait: WaitFlag,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct ListArguments {
    /// Only this kind: provider, configuration, function, clusterpackageinstall or packageinstall
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: Option<ListedKind>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct StatusArguments {
    /// Names of packages: NAME or KIND/NAME [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct ActivateArguments {
    /// Name of the package: NAME or KIND/NAME
    name: String,
    /// Name, number or version of the revision [default: the newest]
    revision: Option<String>,
    #[command(flatten)]
    wait: WaitFlag,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct RollbackArguments {
    /// Name of the package: NAME or KIND/NAME
    name: String,
    /// Name, number or version of the revision [default: the one before]
    revision: Option<String>,
    /// Where the same tag means something else by now: activate revisions by hand from now on
    #[arg(long, short)]
    manual_activation: bool,
    #[command(flatten)]
    wait: WaitFlag,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: ObjectFormat,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct AdoptArguments {
    /// Name of the package: NAME or KIND/NAME
    name: String,
    /// Only these objects: NAME or KIND/NAME [default: all that are in its way]
    #[arg(value_name = "OBJECT")]
    objects: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only say what would be given to the package
    #[arg(long)]
    dry_run: bool,
    #[command(flatten, next_help_heading = "What the manager was told")]
    authority: AuthorityArguments,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registry: RegistryArguments,
}

#[derive(Args)]
pub(super) struct PruneArguments {
    /// Name of the package: NAME or KIND/NAME
    name: String,
    /// Only these definitions [default: all that it no longer brings]
    #[arg(value_name = "DEFINITION")]
    definitions: Vec<String>,
    /// Only say what there is, and which objects
    #[arg(long)]
    dry_run: bool,
    /// Delete all objects of the definitions with them
    #[arg(long, conflicts_with = "release")]
    delete_objects: bool,
    /// Keep the definitions and their objects, and let another package bring them
    #[arg(long)]
    release: bool,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct WaitArguments {
    /// Names of packages: NAME or KIND/NAME [default: all that are installed]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// What to wait for
    #[arg(long = "for", value_enum, default_value_t)]
    goal: Goal,
    /// How long to wait, such as 30s or 5m
    #[arg(long, short, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Args)]
pub(super) struct WhyArguments {
    /// Name of a package (NAME or KIND/NAME), or of something that packages need
    name: String,
    /// Form of the result
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

fn kind(word: &str) -> Result<ListedKind, String> {
    let install = || install_kind_named(word).map(ListedKind::Install);
    kind_named(word).map(ListedKind::Package).or_else(install).ok_or_else(|| {
        format!(
            "`{word}` is not provider, configuration, function, clusterpackageinstall or \
             packageinstall"
        )
    })
}

/// The kind that comes first, if it does and something follows.
fn take_kind(words: &mut Vec<String>) -> Option<PackageKind> {
    let kind = words.first().filter(|_| words.len() > 1).and_then(|word| kind_named(word))?;
    words.remove(0);
    Some(kind)
}

/// A kind without a reference, or a reference after a word that is no kind: taken as they stand, they
/// would name images in a registry of the world.
fn refuse_misread(package: &str, name: Option<&str>) -> Result<(), clap::Error> {
    let wrong = match name {
        // With a dot it is rather a file than a kind with its group.
        None if !package.contains('.')
            && (kind_named(package).is_some() || install_kind_named(package).is_some()) =>
        {
            format!(
                "`{package}` is a kind, and a reference is missing: give [KIND] REFERENCE [NAME]\n"
            )
        }
        Some(name) if name.contains(['/', ':', '@']) => format!(
            "`{package}` is not a kind of package: give provider, configuration or function before \
             {name}, or nothing\n"
        ),
        _ => return Ok(()),
    };
    Err(clap::Error::raw(clap::error::ErrorKind::ValueValidation, wrong))
}

fn all(names: &[String]) -> Vec<Which> {
    names.iter().map(|name| Which::parse(name)).collect()
}

fn too_many(usage: &str) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::TooManyValues, format!("give {usage}\n"))
}

impl PackageWords {
    /// What was asked for.
    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        Ok(match self {
            Self::Install(words) => Command::Install(Box::new(words.into_request()?)),
            Self::Update(words) => Command::Update(words.into_request()?),
            Self::Permissions(words) => Command::Permissions(words.into_request()),
            Self::Plan(words) => Command::Plan(Box::new(words.into_request()?)),
            Self::Render(words) => Command::Render(Box::new(words.into_request())),
            Self::Uninstall(words) => Command::Uninstall(uninstall::Request {
                which: all(&words.names),
                force: words.force,
                dry_run: words.dry_run,
                deletes_objects: words.delete_objects,
                wait: words.wait.wait,
                format: words.output,
                cluster: words.cluster,
            }),
            Self::List(words) => Command::List(list::Request {
                kind: words.kind,
                format: words.output,
                cluster: words.cluster,
            }),
            Self::Logs(words) => Command::Logs(words.into_request()),
            Self::Status(words) => Command::Status(status::Request {
                which: all(&words.names),
                format: words.output,
                cluster: words.cluster,
            }),
            Self::Activate(words) => Command::Activate(activate::Request {
                which: Which::parse(&words.name),
                revision: words.revision,
                back: None,
                wait: words.wait.wait,
                format: words.output,
                cluster: words.cluster,
            }),
            Self::Rollback(words) => Command::Activate(activate::Request {
                which: Which::parse(&words.name),
                revision: words.revision,
                back: Some(activate::Back { manual: words.manual_activation }),
                wait: words.wait.wait,
                format: words.output,
                cluster: words.cluster,
            }),
            Self::Adopt(words) => Command::Adopt(Box::new(adopt::Request {
                which: Which::parse(&words.name),
                objects: words.objects,
                is_agreed: words.yes,
                dry_run: words.dry_run,
                authority: words.authority,
                format: words.output,
                cluster: words.cluster,
                registry: words.registry,
            })),
            Self::Prune(words) => Command::Prune(words.into_request()),
            Self::Pin(words) => Command::Pin(words.into_request()),
            Self::Why(words) => Command::Why(why::Request {
                name: words.name,
                format: words.output,
                cluster: words.cluster,
            }),
            Self::Wait(words) => Command::Wait(wait::Request {
                which: all(&words.names),
                goal: words.goal,
                timeout: words.timeout,
                cluster: words.cluster,
            }),
        })
    }
}

impl PruneArguments {
    fn into_request(self) -> prune::Request {
        prune::Request {
            which: Which::parse(&self.name),
            names: self.definitions,
            dry_run: self.dry_run,
            deletes_objects: self.delete_objects,
            releases: self.release,
            format: self.output,
            cluster: self.cluster,
        }
    }
}

impl InstallArguments {
    fn into_request(mut self) -> Result<install::Request, clap::Error> {
        let object = self.object.into_options(&mut self.words)?;
        let kind = take_kind(&mut self.words);
        let mut words = self.words.into_iter();
        let (package, name) = (words.next().unwrap_or_default(), words.next());
        if words.next().is_some() {
            return Err(too_many("[KIND] REFERENCE [NAME]"));
        }
        if kind.is_none() && object.kind.is_none() && self.crd.is_none() {
            refuse_misread(&package, name.as_deref())?;
        }
        let (mut options, wait) = self.options.into_options();
        options.pull_policy = self.pull_policy;
        options.runtime_config = self.runtime_config;
        options.controller_config = self.config;
        options.skip_dependency_resolution = self.skip_dependency_resolution;
        options.ignore_crossplane_constraints = self.ignore_crossplane_constraints;
        Ok(install::Request {
            package,
            crd: self.crd,
            catalog: self.catalog,
            kind,
            name,
            naming: install::Naming::Path,
            options,
            object,
            wait,
            voice: Voice::Apron(self.output),
            cluster: self.cluster,
            registry: self.registry,
        })
    }
}

impl PlanArguments {
    fn into_request(mut self) -> Result<plan::Request, clap::Error> {
        let object = self.object.into_options(&mut self.words)?;
        let kind = take_kind(&mut self.words);
        let mut words = self.words.into_iter();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        if words.next().is_some() {
            return Err(too_many("[KIND] REFERENCE [NAME], or [KIND] NAME VERSION"));
        }
        Ok(plan::Request {
            kind,
            object,
            first,
            second,
            is_detailed: self.detailed_exitcode,
            checks: self.check,
            may_downgrade: self.enable_dependency_version_downgrades,
            catalogs: self.catalog,
            authority: self.authority,
            format: self.output,
            cluster: self.cluster,
            registry: self.registry,
        })
    }
}

impl UpdateArguments {
    fn into_request(mut self) -> Result<update::Request, clap::Error> {
        let kind = take_kind(&mut self.words);
        let to = self.words.pop().unwrap_or_default();
        let name = self.words.pop();
        if !self.words.is_empty() {
            return Err(too_many("[KIND] [NAME] VERSION"));
        }
        Ok(update::Request {
            kind,
            name,
            to,
            wait: self.wait.wait,
            voice: Voice::Apron(self.output),
            cluster: self.cluster,
            registry: Some(self.registry),
        })
    }
}

#[cfg(test)]
mod tests {
    /// Words that would name images in a registry of the world.
    #[test]
    fn a_kind_without_a_reference_and_a_word_that_is_no_kind_are_refused() {
        let refused = |words: &[&str]| {
            let words = ["apron", "install"].iter().chain(words).map(Into::into).collect();
            crate::args::parse(words).err().map(|error| error.to_string())
        };
        let missing = refused(&["provider"]).unwrap();
        assert!(missing.contains("`provider` is a kind, and a reference is missing"), "{missing}");
        let bogus = refused(&["bogus", "example.org/p:v1"]).unwrap();
        assert!(bogus.contains("`bogus` is not a kind of package: give provider, "), "{bogus}");
        assert_eq!(refused(&["provider", "example.org/p:v1"]), None);
        assert_eq!(refused(&["example.org/p:v1", "name"]), None);
    }
}
