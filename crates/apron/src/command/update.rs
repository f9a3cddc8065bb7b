//! `update`: another version of a package that is installed.

use crate::args::cluster::ClusterArguments;
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::change::{Change, Voice};
use crate::failure::Outcome;
use crate::output;
use crate::place::{self, Opened};
use crate::settings::Settings;
use api::meta::PackageKind;
use inventory::{Installed, Inventory, reference};
use oci::Reference;
use serde_json::json;
use std::time::Duration;
use store::remote::Client;

/// What to change, and to what.
pub(crate) struct Request {
    pub(crate) kind: Option<PackageKind>,
    /// Found by its repository if it is not said.
    pub(crate) name: Option<String>,
    /// A reference; with a name, also a tag or digest alone.
    pub(crate) to: String,
    /// How long to wait until it is healthy in the new version, which under manual activation needs
    /// somebody to activate it; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) voice: Voice,
    pub(crate) cluster: ClusterArguments,
    /// How to ask whether the version is there. The older tools do not ask.
    pub(crate) registry: Option<RegistryArguments>,
}

/// Changes it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let one = inventory.find_updated(request.kind, request.name.as_deref(), &request.to)?;
    let package = one.other_version(&request.to)?;
    // With secrets of its own a package comes from where this user may see nothing.
    let has_secrets = one.package.spec.package_pull_secrets.iter().flatten().next().is_some();
    if let Some(registry) = request.registry.as_ref().filter(|_| !has_secrets) {
        check_version(&package, &cluster, registry, settings).await?;
    }
    change(&cluster, one, &package, request.voice, "updated").await?;
    if let Some(time) = request.wait {
        wait::until(&cluster, &[one.which()], Goal::Updated, time).await?;
        let inventory = Inventory::gather(&cluster).await?;
        warn_of_retained(inventory.find(&one.which())?);
    } else {
        warn_of_retained(one);
    }
    Ok(())
}

/// A version that is not there is a failure, with those that are; a registry that is away is not.
async fn check_version(
    package: &str,
    cluster: &Cluster,
    registry: &RegistryArguments,
    settings: &Settings,
) -> Outcome {
    let is_tag = |it: &Reference| {
        it.identifier().as_tag().is_some() && it.repository().git_source().is_none()
    };
    let Some(reference) = reference(package).filter(is_tag) else { return Ok(()) };
    let keychain = crate::registry::keychain(registry, settings).await?;
    let transport = cluster.transport(registry, settings)?;
    let client = Client::new(transport, keychain, crate::registry::remote(registry));
    if !place::check_exists(&Opened::of(&client, &reference)).await? {
        output::warn(format_args!("whether {package} exists could not be found out"));
    }
    Ok(())
}

/// Definitions that stay are told where versions change, because that is how they come to be left.
fn warn_of_retained(one: &Installed) {
    if let Some(retained) = one.retained() {
        output::warn(format_args!("{}: {retained}", one.id()));
    }
}

/// Makes a package ask for another image.
pub(super) async fn change(
    cluster: &Cluster,
    one: &Installed,
    package: &str,
    voice: Voice,
    said: &'static str,
) -> Outcome {
    let (kind, name) = (one.kind, one.name().to_owned());
    if one.package.spec.package == package {
        output::say(format_args!("{} asks for {package} already", one.id()));
        return Ok(());
    }
    let patch = json!({"spec": {"package": package}});
    let (kind, name, object) = if one.is_for_installs() {
        let inventory = Inventory::gather(cluster).await?;
        let install = inventory.only_install_of(one)?;
        let resource = cluster.installs(install.kind, install.namespace());
        // The image takes the place of a definition that was asked for.
        let patch = json!({"spec": {"package": package, "crd": null}});
        let object = cluster.merge(&resource, install.name(), &patch).await?;
        (install.kind.to_lowercase(), install.key(), object)
    } else {
        let object = cluster.merge(&cluster.packages(kind), &name, &patch).await?;
        (inventory::lower(kind), name, object)
    };
    let what = format!("{kind} {}", output::bold(&name));
    let detail = format!("{what} {}", one.describe_move(package));
    Change { word: "updated", said, kind, name, detail, object }.tell(voice, cluster)
}
