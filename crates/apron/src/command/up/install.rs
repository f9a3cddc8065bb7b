//! Installing what lies in a directory.

use super::packages::{self, Local};
use super::plane::Plane;
use crate::cluster::wait::{self, Goal};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use api::meta::PackageKind;
use inventory::lower;
use inventory::{Installed, Inventory, Which};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The pause between two looks at whether the kinds of packages are there.
const PAUSE: Duration = Duration::from_millis(10);

/// Builds packages, and installs those that no other of them needs; the package manager brings
/// the rest.
pub(super) async fn install(
    directory: &Path,
    plane: &Plane,
    time: Duration,
    settings: &Settings,
) -> Outcome {
    let local = packages::bring(directory, &plane.packages, settings).await?;
    let inventory = kinds_served(plane, time).await?;
    let mut tops = Vec::new();
    for one in &local {
        let there = inventory.of_repository(one.reference.repository());
        match there.first() {
            Some(there) => renew(plane, there, one).await?,
            None if one.is_needed => {}
            None => make(plane, one).await?,
        }
        if !one.is_needed {
            let name = there.first().map_or(&*one.name, |there| there.name()).to_owned();
            tops.push(Which { kind: Some(one.kind), name });
        }
    }
    let inventory = wait::until(&plane.cluster, &tops, Goal::Healthy, time).await?;
    // What they need may have been healthy once and not be any more, as after a restart.
    let found = tops.iter().filter_map(|top| inventory.find(top).ok());
    let all: Vec<&Installed> = found.flat_map(|top| inventory.closure(top)).collect();
    tell_without_effect(&all);
    if all.iter().all(|one| one.state().is_well()) {
        return crate::command::status::draw(&inventory, &tops);
    }
    let all: Vec<Which> = all.into_iter().map(Installed::which).collect();
    let inventory = wait::until(&plane.cluster, &all, Goal::Healthy, time).await?;
    crate::command::status::draw(&inventory, &tops)
}

/// Says what is kept here and acted on nowhere, so that nobody waits for it.
fn tell_without_effect(installed: &[&Installed]) {
    if installed.iter().any(|one| one.kind == PackageKind::Configuration) {
        output::say(
            "nothing composes here: composite resources, usages and operations take effect where \
             Crossplane's core runs",
        );
    }
}

/// Waits until the manager has made the API server know its kinds.
pub(super) async fn kinds_served(plane: &Plane, time: Duration) -> Outcome<Inventory> {
    let end = Instant::now() + time;
    loop {
        match Inventory::gather(&plane.cluster).await {
            Ok(inventory) if inventory.is_complete => return Ok(inventory),
            Err(failure) if Instant::now() > end => return Err(failure),
            // They are served one after the other.
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn make(plane: &Plane, one: &Local) -> Outcome {
    let cluster = &plane.cluster;
    let object = json!({
        "apiVersion": format!("{}/v1", cluster.group),
        "kind": one.kind.as_str(),
        "metadata": {"name": one.name},
        "spec": {"package": one.reference.to_string()},
    });
    if cluster.create(&cluster.packages(one.kind), &one.name, &object).await?.is_some() {
        output::say(format_args!("installed {} {}", lower(one.kind), output::bold(&one.name)));
        return Ok(());
    }
    Err(Failure::new(
        format!("{} {} is installed already, from somewhere else", lower(one.kind), one.name),
        format!(
            "use another --data-dir, or remove it with `apron uninstall {}`, and with it all objects \
             of the kinds it brought",
            one.name
        ),
    ))
}

/// What was changed since the last time gets its new version.
async fn renew(plane: &Plane, there: &Installed, one: &Local) -> Outcome {
    let (wanted, name) = (one.reference.to_string(), there.name());
    if there.package.spec.package == wanted {
        return Ok(());
    }
    let patch = json!({"spec": {"package": wanted}});
    plane.cluster.merge(&plane.cluster.packages(there.kind), name, &patch).await?;
    let (before, after) = (there.asked_version(), inventory::version(&wanted));
    let name = output::bold(name);
    output::say(format_args!("updated {} {name} from {before} to {after}", lower(there.kind)));
    Ok(())
}
