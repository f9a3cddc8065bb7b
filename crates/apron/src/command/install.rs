//! `install`: a package object in a cluster, which its package manager makes true.

use crate::args::cluster::ClusterArguments;
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::catalog::resolve;
use crate::command::change::{Change, Voice};
use crate::command::install_object::{self, ObjectOptions};
use crate::command::permissions;
use crate::failure::{Failure, Outcome};
use crate::git::{self, GitSettings};
use crate::output;
use crate::place::{self, Opened, Place};
use crate::settings::Settings;
use crate::stacks;
use api::meta::PackageKind;
use api::pkg::PACKAGE_NAME_SIZE_MAX;
use controller::authority;
use inventory::{Inventory, Which, reference};
use inventory::{Resource, lower};
use oci::Reference;
use serde_json::{Value as Json, json};
use stack::VersionTag;
use std::time::Duration;
use store::remote::Client;
use xpkg::open::OpenError;

/// What to install, and how.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) package: String,
    /// The kind to install a package for, instead of one that is named.
    pub(crate) crd: Option<String>,
    /// The registry whose catalog says which package that is.
    pub(crate) catalog: Option<String>,
    /// Found out from the package if it is not said.
    pub(crate) kind: Option<PackageKind>,
    pub(crate) name: Option<String>,
    /// What the object is called if nobody says so.
    pub(crate) naming: Naming,
    pub(crate) options: Options,
    /// What is said of the object if the package is of the first format.
    pub(crate) object: ObjectOptions,
    /// How long to wait until it is healthy; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) voice: Voice,
    pub(crate) cluster: ClusterArguments,
    pub(crate) registry: RegistryArguments,
}

/// What an object is called after a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The whole path of the repository, as dependencies are named.
    Path,
    /// The last part of it, as the guide has it.
    Last,
}

/// What else to say in the object.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) manual_activation: bool,
    pub(crate) revision_history_limit: Option<i64>,
    pub(crate) pull_secrets: Vec<String>,
    pub(crate) pull_policy: Option<String>,
    pub(crate) runtime_config: Option<String>,
    pub(crate) controller_config: Option<String>,
    pub(crate) skip_dependency_resolution: bool,
    pub(crate) ignore_crossplane_constraints: bool,
}

/// Installs it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let Some(crd) = &request.crd else { return install_package(request, settings).await };
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let asked = resolve::KindQuestion {
        kind: crd,
        host: request.catalog.as_deref(),
        registry: &request.registry,
        namespace: &request.cluster.namespace,
    };
    let found = resolve::find_package(&asked, cluster, settings).await?;
    output::say(format_args!("{crd} comes with {}", found.image));
    let request = Request { package: found.image, kind: Some(found.kind), ..request.clone() };
    install_package(&request, settings).await
}

async fn install_package(request: &Request, settings: &Settings) -> Outcome {
    if let Some(kind) = request.object.kind {
        let cluster = Cluster::connect(&request.cluster, settings).await?;
        return install_object::install(request, kind, &cluster).await;
    }
    if let Some(source) = git::parse_source(&request.package)? {
        let (pinned, kind, package) = pin_source(&source, request, settings).await?;
        let request = Request { package: pinned.name(), kind: Some(kind), ..request.clone() };
        return install_reference(&request, &pinned, Some(package), settings).await;
    }
    let place = Place::parse(&request.package, &request.registry)?;
    let Place::Registry(parsed) = &place else { return Err(not_in_a_registry(&request.package)) };
    install_reference(request, parsed, None, settings).await
}

/// Builds what a Git source names now, to see what it is, and names the commit that it was: what is
/// installed does not move with a branch.
async fn pin_source(
    source: &Reference,
    request: &Request,
    settings: &Settings,
) -> Outcome<(Reference, PackageKind, xpkg::open::Opened)> {
    let reaching =
        GitSettings { environment: settings.clone(), ca_file: request.registry.ca_file.clone() };
    let work = tempfile::tempdir_in(&settings.temporary).map_err(|error| Failure::file(&error))?;
    let file = work.path().join("package.xpkg");
    let (reference, to) = (source.clone(), file.clone());
    let built = tokio::task::spawn_blocking(move || git::build_source(&reference, &reaching, to));
    let commit = built.await.map_err(|error| {
        Failure::new("the build ended early", "run the command again").because(&error)
    })??;
    let opened = place::open(&Place::File(file), &request.registry, settings).await?;
    let FoundPackage::Today(kind, package) = read_opened(&opened, settings).await? else {
        let hint = "push what `apron build` makes of it to a registry, and install that";
        return Err(Failure::new(format!("{source} is a package of the first format"), hint));
    };
    let pinned = git::parse_source(&format!("{}@{commit}", source.repository()))?;
    let pinned = pinned.ok_or_else(|| Failure::new("no commit was found", "name a commit"))?;
    if request.kind.is_some_and(|wanted| wanted != kind) {
        let hint = format!("install it as what it is: apron install {}", request.package);
        return Err(Failure::new(format!("{source} is a {}", kind.as_str()), hint));
    }
    output::say(format_args!("{} is commit {commit}", source.identifier()));
    Ok((pinned, kind, *package))
}

/// Installs what a reference names; `read` is what is in it, if that was read already.
async fn install_reference(
    request: &Request,
    parsed: &Reference,
    read: Option<xpkg::open::Opened>,
    settings: &Settings,
) -> Outcome {
    let words = ("install", request.package.as_str());
    // Names that nobody gave are short enough.
    request.name.iter().try_for_each(|name| refuse_long(name, words))?;
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let (kind, read) = if let Some(kind) = request.kind {
        (kind, read)
    } else {
        let read = read_package(parsed, &cluster, &request.registry, settings).await;
        let read = read.map_err(|mut failure| {
            // An image that is not there cannot be installed under another kind, either.
            if place::is_missing(&failure, parsed) {
                return failure;
            }
            let what = "or say what it is, and it will not be read from here";
            let words = format!("apron install provider {}", request.package);
            failure.hint = format!("{}; {what}: {words}", failure.hint);
            failure
        })?;
        match read {
            FoundPackage::Today(kind, package) => (kind, Some(*package)),
            FoundPackage::First(kind) => {
                return install_object::install(request, kind, &cluster).await;
            }
        }
    };
    request.object.refuse_today()?;
    request.options.check(kind)?;
    let name = match (&request.name, request.naming) {
        (Some(name), _) => name.clone(),
        (None, Naming::Path) => xpkg::label::object_name(parsed),
        (None, Naming::Last) => {
            let path = parsed.repository().path();
            xpkg::label::to_dns_label(path.rsplit('/').next().unwrap_or(path))
        }
    };
    let which = Which { kind: Some(kind), name: name.clone() };
    refuse_rival(request, &inventory, &which)?;
    warn_of_secrets(request, &cluster).await?;
    if let Some(package) = &read {
        warn_of_authority(&cluster, &which, kind, package).await;
    }
    if let Some(object) = make(request, &cluster, &which, kind).await? {
        let detail = format!("{} {}", lower(kind), output::bold(&name));
        let kind = lower(kind);
        Change { word: "created", said: "installed", kind, name, detail, object }
            .tell(request.voice, &cluster)?;
    }
    if let Some(time) = request.wait {
        wait::until(&cluster, &[which], Goal::Healthy, time).await?;
    }
    Ok(())
}

pub(super) fn not_in_a_registry(text: &str) -> Failure {
    Failure::new(
        format!("{text} is a file, and clusters fetch packages from registries"),
        "push it first with `apron push`, then install the reference it was pushed to",
    )
}

/// No package manager can do anything with a package whose name does not fit into a label.
pub(super) fn refuse_long(name: &str, (verb, package): (&str, &str)) -> Outcome {
    if name.len() <= PACKAGE_NAME_SIZE_MAX {
        return Ok(());
    }
    Err(Failure::new(
        format!(
            "the name of a package may have at most {PACKAGE_NAME_SIZE_MAX} characters, and {name} \
             has {}",
            name.len()
        ),
        format!("give it another name: apron {verb} {package} NAME"),
    ))
}

/// What an image turned out to be.
pub(super) enum FoundPackage {
    /// A package of today.
    Today(PackageKind, Box<xpkg::open::Opened>),
    /// A package of the first format, by the kind of install object that gives it the rights it needs.
    First(&'static str),
}

/// Reads the package, from where the cluster would, to see what it is and what it asks for.
pub(super) async fn read_package(
    reference: &Reference,
    cluster: &Cluster,
    registry: &RegistryArguments,
    settings: &Settings,
) -> Outcome<FoundPackage> {
    let keychain = crate::registry::keychain(registry, settings).await?;
    let transport = cluster.transport(registry, settings)?;
    let client = Client::new(transport, keychain, crate::registry::remote(registry));
    read_opened(&Opened::of(&client, reference), settings).await
}

async fn read_opened(opened: &Opened, settings: &Settings) -> Outcome<FoundPackage> {
    let located = place::locate(opened, None, settings).await?;
    let limits = xpkg::Limits::default();
    let read = xpkg::open::package_yaml(&located.layers, &limits)
        .and_then(|reader| xpkg::open::read(reader, &limits));
    if matches!(read, Err(OpenError::NotAPackage))
        && let Some(found) =
            stacks::read_image(&opened.name, &located.layers, VersionTag::Untagged)?
    {
        let sound = found.require_sound()?;
        let scope = sound.app.find_text("permissionScope");
        return Ok(FoundPackage::First(api::stacks::install_kind(scope)));
    }
    let package = read.map_err(|error| place::unreadable(&opened.name, &error))?;
    let kind = package.meta().map(api::meta::Meta::kind).ok_or_else(|| {
        Failure::new(
            format!("{} does not say what kind of package it is", opened.name),
            "`apron lint` says what is wrong with it",
        )
    })?;
    Ok(FoundPackage::Today(kind, Box::new(package)))
}

/// Tells what the package manager is going to refuse to a package, unless it was told to go by
/// something else than the role that is meant for that.
async fn warn_of_authority(
    cluster: &Cluster,
    which: &Which,
    kind: PackageKind,
    package: &xpkg::open::Opened,
) {
    // Who may not look at roles cannot be told; the package manager will.
    let Ok(allowed) = permissions::read_allowed(cluster).await else { return };
    let judgement = authority::judge_opened(package, &allowed);
    judgement.forbidden.iter().for_each(output::warn);
    if !judgement.refused.is_empty() {
        output::warn(authority::refusal(&judgement.refused, &allowed, kind, &which.name));
    }
}

impl Options {
    /// Says no to what a kind cannot have.
    fn check(&self, kind: PackageKind) -> Outcome {
        let flag = match kind {
            PackageKind::Configuration if self.runtime_config.is_some() => "--runtime-config",
            PackageKind::Configuration | PackageKind::Function
                if self.controller_config.is_some() =>
            {
                "--config"
            }
            _ => return Ok(()),
        };
        Err(Failure::new(
            format!("{flag} says how to run a package, and a {} has no use for it", lower(kind)),
            format!("leave {flag} out"),
        ))
    }

    fn spec(&self, package: &str) -> Json {
        let mut spec = json!({"package": package});
        if self.manual_activation {
            spec["revisionActivationPolicy"] = json!("Manual");
        }
        if let Some(limit) = self.revision_history_limit {
            spec["revisionHistoryLimit"] = json!(limit);
        }
        if !self.pull_secrets.is_empty() {
            let secrets: Vec<Json> =
                self.pull_secrets.iter().map(|name| json!({"name": name})).collect();
            spec["packagePullSecrets"] = json!(secrets);
        }
        if let Some(policy) = &self.pull_policy {
            spec["packagePullPolicy"] = json!(policy);
        }
        if let Some(name) = &self.runtime_config {
            spec["runtimeConfigRef"] = json!({"name": name});
        }
        if let Some(name) = &self.controller_config {
            spec["controllerConfigRef"] = json!({"name": name});
        }
        if self.skip_dependency_resolution {
            spec["skipDependencyResolution"] = json!(true);
        }
        if self.ignore_crossplane_constraints {
            spec["ignoreCrossplaneConstraints"] = json!(true);
        }
        spec
    }
}

/// Two objects for one repository fight over the same objects.
fn refuse_rival(request: &Request, inventory: &Inventory, which: &Which) -> Outcome {
    let Some(wanted) = reference(&request.package) else { return Ok(()) };
    let same = inventory.of_repository(wanted.repository());
    let Some(rival) = same.into_iter().find(|one| one.name() != which.name) else { return Ok(()) };
    let message = format!("{} is installed already, as {}", wanted.repository(), rival.id());
    if request.name.is_some() {
        output::warn(format_args!("{message}; only one of both can own the objects they bring"));
        return Ok(());
    }
    let name = rival.name();
    Err(Failure::new(
        message,
        format!("change its version: apron update {name} {}", request.package),
    ))
}

async fn warn_of_secrets(request: &Request, cluster: &Cluster) -> Outcome {
    let namespace = &request.cluster.namespace;
    for name in &request.options.pull_secrets {
        let secrets = Resource::core(namespace, "secrets");
        // Who may not look cannot be told; the package manager will.
        if let Ok(None) = cluster.get::<Json>(&secrets, name).await {
            output::warn(format_args!("there is no secret {name} in the namespace {namespace}"));
        }
    }
    Ok(())
}

/// Makes the object; nothing if it was there already, just so.
async fn make(
    request: &Request,
    cluster: &Cluster,
    which: &Which,
    kind: PackageKind,
) -> Outcome<Option<Json>> {
    let name = &which.name;
    let object = json!({
        "apiVersion": format!("{}/v1", cluster.group),
        "kind": kind.as_str(),
        "metadata": {"name": name},
        "spec": request.options.spec(&request.package),
    });
    if let Some(made) = cluster.create(&cluster.packages(kind), name, &object).await? {
        return Ok(Some(made));
    }
    let now = Inventory::gather(cluster).await?;
    let there = now.find(which)?;
    let (kind, before) = (lower(kind), &there.package.spec.package);
    if there.package.metadata.deletion_timestamp.is_some() {
        return Err(Failure::new(
            format!("{kind} {name} is being uninstalled"),
            format!("install it once it is gone: apron wait {kind}/{name} --for deleted"),
        ));
    }
    if *before != request.package {
        return Err(Failure::new(
            format!("{kind} {name} is installed already, from {before}"),
            format!("change its version: apron update {name} {}", request.package),
        ));
    }
    output::say(format_args!(
        "{kind} {} is installed already; nothing changed",
        output::bold(name)
    ));
    Ok(None)
}
