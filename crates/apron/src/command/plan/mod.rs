//! `plan`: what an install or update would change, before anything does.
//!
//! The manager itself is played through on a cluster that is only imagined
//! (`controller::rehearsal`). Here is what is asked for, and how the answer is told ([`show`]).

mod show;

use crate::args::authority::AuthorityArguments;
use crate::args::cluster::ClusterArguments;
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::command::install::{FoundPackage, not_in_a_registry, read_package, refuse_long};
use crate::command::install_object::ObjectOptions;
use crate::command::manager::{assemble, now};
use crate::command::up::manager::settings;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::place::Place;
use crate::settings::Settings;
use api::meta::PackageKind;
use api::pkg::ANNOTATION_ADOPT_EXISTING;
use api::stacks::STACKS_VERSION;
use controller::cache::Cache;
use controller::cluster::{Error, Mode};
use controller::fetch::Fetcher;
use controller::rehearsal::{
    Checks, Imagined, Preview, Rehearsed, Target, rehearse, standing_conflicts,
};
use controller::{CatalogAddress, Entry, Hands, Movement, published_settings, published_target};
use inventory::{InstallWish, Installed, Inventory, Which, reference};
use serde_json::{Value as Json, json};
use std::process::ExitCode;
use std::sync::Arc;

/// What to plan, and how to tell it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) kind: Option<PackageKind>,
    /// What is said of the object if the package is of the first format.
    pub(crate) object: ObjectOptions,
    /// A reference, or the name of something that is installed.
    pub(crate) first: String,
    /// A name for the reference, or a version for the name.
    pub(crate) second: Option<String>,
    /// Whether the exit code says if something would change.
    pub(crate) is_detailed: bool,
    /// Whether the API server checks every object.
    pub(crate) checks: bool,
    pub(crate) may_downgrade: bool,
    /// Catalogs that the manager asks, besides that of the own registry.
    pub(crate) catalogs: Vec<CatalogAddress>,
    /// What the manager lets packages bring and ask for.
    pub(crate) authority: AuthorityArguments,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
    pub(crate) registry: RegistryArguments,
}

impl Request {
    /// Whether the first word can only be a reference, and so the second a name.
    fn is_of_reference(&self) -> bool {
        self.first.contains([':', '@'])
    }
}

/// With `--detailed-exitcode`: something would change.
const CHANGES: u8 = 2;

/// What somebody would do.
pub(crate) enum Wish {
    Install {
        kind: PackageKind,
        name: String,
        package: String,
    },
    Update {
        kind: PackageKind,
        name: String,
        package: String,
    },
    /// Give a package what is there already.
    Adopt {
        kind: PackageKind,
        name: String,
    },
    /// Make an install object of the first package system.
    InstallObject(InstallWish),
    /// Have an install object ask for another image.
    UpdateObject(InstallWish),
}

impl Wish {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Install { name, .. } | Self::Update { name, .. } | Self::Adopt { name, .. } => {
                name
            }
            Self::InstallObject(object) | Self::UpdateObject(object) => &object.name,
        }
    }

    /// The kind of the package, unless an install object of the first package system is wished for.
    pub(crate) fn kind(&self) -> Option<PackageKind> {
        match self {
            Self::Install { kind, .. } | Self::Update { kind, .. } | Self::Adopt { kind, .. } => {
                Some(*kind)
            }
            Self::InstallObject(_) | Self::UpdateObject(_) => None,
        }
    }

    /// The object that it is about, as the manager calls it.
    fn target(&self, settings: &controller::Settings) -> Target {
        let (group, kind, namespace) = match self {
            Self::Install { kind, .. } | Self::Update { kind, .. } | Self::Adopt { kind, .. } => {
                (format!("{}/v1", settings.group()), kind.as_str(), None)
            }
            Self::InstallObject(object) | Self::UpdateObject(object) => {
                let group = format!("{}/{STACKS_VERSION}", settings.stacks_group());
                (group, object.kind, Some(object.namespace.clone()))
            }
        };
        let (kind, name) = (kind.to_owned(), self.name().to_owned());
        Target { api_version: group, kind, namespace, name }
    }
}

/// Says what would change.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome<ExitCode> {
    let words = ("plan", request.first.as_str());
    let named = request.second.iter().filter(|_| request.is_of_reference());
    named.into_iter().try_for_each(|name| refuse_long(name, words))?;
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let wish = wish(request, &cluster, &inventory, settings).await?;
    refuse_long(wish.name(), words)?;
    let preview = Preview::of(&rehearsed(request, settings, &cluster, &wish).await?);
    match request.format {
        Format::Json => output::print_json(&preview)?,
        Format::Text => show::draw(&preview).into_iter().for_each(output::print),
    }
    if !preview.troubles.is_empty() {
        let hint = "mend what the lines above name, or choose another version; `apron why` says \
                    who needs what";
        let mut failure = Failure::new("this cannot be as it is asked for", hint);
        failure.causes.clone_from(&preview.troubles);
        return Err(failure);
    }
    let is_news = request.is_detailed && !preview.is_empty();
    Ok(if is_news { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

/// What is meant: a reference to something that is installed is an update, to something else an
/// install; a name of something that is installed, with a version, is an update.
pub(crate) async fn wish(
    request: &Request,
    cluster: &Cluster,
    inventory: &Inventory,
    settings: &Settings,
) -> Outcome<Wish> {
    if let Some(to) = request.second.as_ref().filter(|_| !request.is_of_reference()) {
        let mut which = Which::parse(&request.first);
        which.kind = request.kind.or(which.kind);
        match inventory.find(&which) {
            Ok(one) => return update(one, to, inventory),
            Err(missing) if !request.first.contains('/') => return Err(missing),
            Err(_) => {}
        }
    }
    let package = &request.first;
    if let Some(kind) = request.object.kind {
        return wish_object(request, kind, inventory);
    }
    let place = Place::parse(package, &request.registry)?;
    let Place::Registry(parsed) = &place else { return Err(not_in_a_registry(package)) };
    let same = reference(package).map(|it| inventory.of_repository(it.repository()));
    let same = same.unwrap_or_default();
    let is_meant = |one: &&&Installed| {
        request.kind.is_none_or(|kind| kind == one.kind)
            && request.second.as_ref().is_none_or(|name| name == one.name())
    };
    if let Some(one) = same.iter().find(is_meant) {
        return update(one, package, inventory);
    }
    let kind = match request.kind {
        Some(kind) => kind,
        None => match read_package(parsed, cluster, &request.registry, settings).await? {
            FoundPackage::Today(kind, _) => kind,
            FoundPackage::First(kind) => return wish_object(request, kind, inventory),
        },
    };
    request.object.refuse_today()?;
    let name = request.second.clone().unwrap_or_else(|| xpkg::label::object_name(parsed));
    if let Ok(one) = inventory.find(&Which { kind: Some(kind), name: name.clone() }) {
        return update(one, package, inventory);
    }
    Ok(Wish::Install { kind, name, package: package.clone() })
}

fn update(one: &Installed, to: &str, inventory: &Inventory) -> Outcome<Wish> {
    let package = one.other_version(to)?;
    if one.is_for_installs() {
        let install = inventory.only_install_of(one)?;
        return Ok(Wish::UpdateObject(InstallWish { package, ..install.wish() }));
    }
    Ok(Wish::Update { kind: one.kind, name: one.name().to_owned(), package })
}

/// An install object that would be made, or would ask for another image.
fn wish_object(request: &Request, kind: &'static str, inventory: &Inventory) -> Outcome<Wish> {
    let named = (request.first.as_str(), request.second.as_deref());
    let wish = request.object.wish(kind, named, &request.registry.default_registry)?;
    if inventory.installs.iter().any(|one| one.id() == wish.id()) {
        return Ok(Wish::UpdateObject(wish));
    }
    wish.refuse_rival(inventory)?;
    Ok(Wish::InstallObject(wish))
}

/// Plays it through.
pub(crate) async fn rehearsed(
    request: &Request,
    settings: &Settings,
    cluster: &Cluster,
    wish: &Wish,
) -> Outcome<Rehearsed> {
    let PreparedRehearsal { hands, imagined, .. } = &prepare(request, settings, cluster).await?;
    let rehearsed = async {
        let before = standing_conflicts(hands).await?;
        ask(hands, wish).await?;
        let rehearsed = rehearse(hands, imagined).await;
        rehearsed.map(|rehearsed| Rehearsed { before, ..rehearsed })
    };
    rehearsed.await.map_err(|error| failed(&error))
}

/// A cluster that is only imagined, and a manager for it that is set up as the real one.
pub(crate) struct PreparedRehearsal {
    pub(crate) hands: Hands,
    imagined: Imagined,
    /// Where packages are kept meanwhile.
    _packages: tempfile::TempDir,
}

/// Prepares a rehearsal, and says by whose settings it goes.
pub(crate) async fn prepare(
    request: &Request,
    settings: &Settings,
    cluster: &Cluster,
) -> Outcome<PreparedRehearsal> {
    let packages = tempfile::tempdir().map_err(|error| Failure::file(&error))?;
    let cache = Cache::open(packages.path()).map_err(|error| {
        let hint = "make room in the directory of temporary files, or name another with TMPDIR";
        Failure::new("cannot keep packages for a moment", hint).because(&error)
    })?;
    let checks = if request.checks { Checks::Server } else { Checks::Nobody };
    let imagined = Imagined::new(cluster.client(), checks, now());
    let mut hands = hands(request, settings, cluster, &imagined, cache).await?;
    if let Some(told) = published_settings(&hands).await.map_err(|error| failed(&error))? {
        let Target { namespace, name, .. } = published_target(&told);
        let place = format!("{}/{name}", namespace.unwrap_or_default());
        output::say(format_args!("by the manager's settings, from ConfigMap {place}"));
        hands.settings = told_besides(request, told);
    }
    Ok(PreparedRehearsal { hands, imagined, _packages: packages })
}

/// The manager's settings with what was said here: it says how things would be if that were told to
/// the manager.
fn told_besides(request: &Request, told: controller::Settings) -> controller::Settings {
    let mut settings = told;
    if request.authority != AuthorityArguments::default() {
        settings = request.authority.clone().applied(settings);
    }
    if request.may_downgrade {
        settings.movement = Movement::Any;
    }
    settings.catalogs.extend(request.catalogs.iter().cloned());
    settings
}

async fn hands(
    request: &Request,
    environment: &Settings,
    cluster: &Cluster,
    imagined: &Imagined,
    cache: Cache,
) -> Outcome<Hands> {
    let transport = cluster.transport(&request.registry, environment)?;
    let keychain = crate::registry::keychain(&request.registry, environment).await?;
    let settings = request.authority.clone().applied(controller::Settings {
        namespace: request.cluster.namespace.clone(),
        group_suffix: request.cluster.group_suffix.clone(),
        default_registry: request.registry.default_registry.clone(),
        catalogs: catalogs(request, cluster),
        movement: if request.may_downgrade { Movement::Any } else { Movement::Upgrades },
        installs_definitions: false,
        // Nothing runs on a cluster that is only imagined.
        awaits: controller::Awaits::Installed,
        ..settings()
    });
    let silent = Arc::new(|_: &Entry<'_>| {});
    let (way, keys) = (transport.clone(), keychain.clone());
    let mut hands = assemble(imagined.client(), way, keys, cache.clone(), settings, silent);
    let remote = crate::registry::remote(&request.registry);
    hands.fetch = Fetcher::new(transport, remote, keychain, cache);
    Ok(hands)
}

/// The catalogs that the manager would ask: that of the control plane's own registry, and those that
/// are named.
fn catalogs(request: &Request, cluster: &Cluster) -> Vec<CatalogAddress> {
    let own = cluster.own_registry().map(|registry| CatalogAddress { registry, stands_in: true });
    own.into_iter().chain(request.catalogs.iter().cloned()).collect()
}

/// Asks the imagined cluster for what is wished for.
async fn ask(hands: &Hands, wish: &Wish) -> Result<(), Error> {
    let target = wish.target(&hands.settings);
    let _: Json = match wish {
        Wish::Update { package, .. } => {
            hands.cluster.merge(&target, &json!({"spec": {"package": package}})).await?
        }
        Wish::Adopt { .. } => {
            let consent = json!({"annotations": {ANNOTATION_ADOPT_EXISTING: "true"}});
            hands.cluster.merge(&target, &json!({"metadata": consent})).await?
        }
        Wish::UpdateObject(object) => {
            let mut spec = json!({"package": object.package, "crd": null});
            if let Some(source) = &object.source {
                spec["source"] = json!(source);
            }
            hands.cluster.merge(&target, &json!({"spec": spec})).await?
        }
        Wish::InstallObject(object) => {
            let object = object.object(&hands.settings.stacks_group());
            hands.cluster.create(&target, &object, Mode::Real).await?
        }
        Wish::Install { name, package, .. } => {
            let object = json!({
                "apiVersion": target.api_version, "kind": target.kind,
                "metadata": {"name": name}, "spec": {"package": package},
            });
            hands.cluster.create(&target, &object, Mode::Real).await?
        }
    };
    Ok(())
}

pub(crate) fn failed(error: &Error) -> Failure {
    let hint = match error {
        Error::Refused(_) => {
            "a plan reads what the package manager reads: packages, definitions, roles, and secrets \
             of its namespace; ask an administrator for these rights"
        }
        _ => "run the command again; check that the cluster runs and can be reached from here",
    };
    Failure::new("cannot find out what would change", hint).because(error)
}
