//! `update`: another version of a package that is installed.

use crate::args::cluster::ClusterArguments;
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::command::change::{Change, Voice};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::place::{self, Opened};
use crate::settings::Settings;
use api::meta::PackageKind;
use inventory::{Installed, Inventory, Which, reference, version};
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
    let one = find(request, &inventory)?;
    let package = wanted(&request.to, one)?;
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
    let object = cluster.merge(&cluster.packages(kind), &name, &patch).await?;
    let what = format!("{} {}", inventory::lower(kind), output::bold(&name));
    let detail = format!("{what} {}", describe_move(one, package));
    Change { word: "updated", said, kind, name, detail, object }.tell(voice, cluster)
}

/// From which version to which: what was asked for may never have come.
fn describe_move(one: &Installed, package: &str) -> String {
    let after = version(package);
    let active = one.active().map(|it| it.spec.image.as_str());
    if active == Some(package) {
        return format!("to {after}, which is active");
    }
    let before = active.map_or_else(|| one.asked_version(), version);
    if before == after {
        return format!("from {} to {package}", active.unwrap_or(&one.package.spec.package));
    }
    format!("from {before} to {after}")
}

fn find<'a>(request: &Request, inventory: &'a Inventory) -> Outcome<&'a Installed> {
    if let Some(name) = &request.name {
        let mut which = Which::parse(name);
        which.kind = request.kind.or(which.kind);
        return inventory.find(&which);
    }
    let Some(wanted) = reference(&request.to).filter(|_| request.to.contains('/')) else {
        return Err(Failure::new(
            format!("which package should become {}?", request.to),
            "give its name and a version, or a whole reference: apron update NAME VERSION",
        ));
    };
    let fits = |one: &&'a Installed| request.kind.is_none_or(|kind| kind == one.kind);
    let same: Vec<&Installed> =
        inventory.of_repository(wanted.repository()).into_iter().filter(fits).collect();
    // Where a kind is said, a package that moves to another registry has the name of its path.
    let path = xpkg::label::object_name(&wanted);
    let moved = inventory.packages.iter().filter(fits).find(|one| one.name() == path);
    match same.as_slice() {
        [one] => Ok(one),
        [] => moved.filter(|_| request.kind.is_some()).ok_or_else(|| {
            let hint = format!(
                "install it with `apron install {}`, or name the package to change",
                request.to
            );
            Failure::new(format!("nothing is installed from {}", wanted.repository()), hint)
        }),
        several => {
            let names: Vec<String> = several.iter().map(|one| one.id()).collect();
            let hint = format!("name one: {}", names.join(" or "));
            let message = format!("several packages come from {}", wanted.repository());
            Err(Failure::new(message, hint))
        }
    }
}

/// The image that is meant: a reference as it is, or the old repository with another version.
pub(super) fn wanted(to: &str, one: &Installed) -> Outcome<String> {
    if to.contains('/') {
        return reference(to).map(|_| to.to_owned()).ok_or_else(|| {
            let hint = "a reference looks like registry.example.org/team/package:v1.0.0";
            Failure::new(format!("`{to}` is not a reference to a package"), hint)
        });
    }
    let old = &one.package.spec.package;
    let repository = match reference(old) {
        Some(old) => xpkg::label::source(&old).to_owned(),
        None => old.clone(),
    };
    // A tag stays before a digest in what is written; neither may stay here.
    let last = repository.rfind('/').map_or(0, |slash| slash + 1);
    let bare =
        repository[last..].find(':').map_or(&*repository, |colon| &repository[..last + colon]);
    let digest = to.strip_prefix('@').unwrap_or(to);
    let written = if digest.starts_with("sha256:") {
        format!("{bare}@{digest}")
    } else {
        format!("{bare}:{to}")
    };
    match reference(&written) {
        Some(_) => Ok(written),
        None => Err(Failure::new(
            format!("`{to}` is neither a version nor a reference"),
            "a version is a tag such as v1.2.0, or a digest such as sha256:… with 64 digits",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;

    #[test]
    fn a_version_that_never_came_is_not_what_a_package_is_moved_from() {
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": "example.org/p:v9.9.9"},
        });
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "p-1", "labels": {"pkg.crossplane.io/package": "p"}},
            "spec": {"desiredState": "Active", "image": "example.org/p:v1.0.0", "revision": 1},
        });
        let step = |revisions: Vec<serde_json::Value>, after: &str| {
            let found = vec![(PackageKind::Provider, package.clone(), revisions)];
            describe_move(&Inventory::of(found, json!({})).unwrap().packages[0], after)
        };
        let revision = || vec![revision.clone()];
        assert_eq!(step(revision(), "example.org/p:v1.1.0"), "from v1.0.0 to v1.1.0");
        assert_eq!(step(revision(), "example.org/p:v1.0.0"), "to v1.0.0, which is active");
        assert_eq!(
            step(revision(), "example.com/p:v1.0.0"),
            "from example.org/p:v1.0.0 to example.com/p:v1.0.0"
        );
        assert_eq!(step(Vec::new(), "example.org/p:v1.0.0"), "from v9.9.9 to v1.0.0");
    }

    #[test]
    fn a_package_that_moves_to_another_registry_is_found_by_its_kind_and_path() {
        let name = "crossplane-contrib-provider-nop";
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": name},
            "spec": {"package": "old.example.org/crossplane-contrib/provider-nop:v0.2.0"},
        });
        let inventory =
            Inventory::of(vec![(PackageKind::Provider, package, Vec::new())], json!({})).unwrap();
        let found = |kind: Option<PackageKind>| {
            let to = "new.example.org/crossplane-contrib/provider-nop:v0.4.0";
            let asked = crate::args::parse(["apron", "update", to].map(Into::into).into());
            let asked = asked.map(|understood| understood.command);
            let Ok(Command::Update(request)) = asked else { panic!("no update is asked for") };
            let found = find(&Request { kind, ..request }, &inventory);
            found.ok().map(|one| one.name().to_owned())
        };
        assert_eq!(found(Some(PackageKind::Provider)).as_deref(), Some(name));
        assert_eq!((found(Some(PackageKind::Function)), found(None)), (None, None));
    }
}
