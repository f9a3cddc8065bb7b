//! `uninstall`: a package and everything it brought.

use crate::args::cluster::ClusterArguments;
use crate::cluster::inventory::{Installed, Inventory, Which};
use crate::cluster::wait::{self, Goal};
use crate::cluster::{Cluster, lower};
use crate::command::change::{Change, tell_all};
use crate::failure::{Failure, Outcome};
use crate::output::{self, ObjectFormat};
use crate::settings::Settings;
use api::meta::PackageKind;
use std::time::Duration;

/// What to remove.
pub(crate) struct Request {
    pub(crate) which: Vec<Which>,
    /// Although other packages need it.
    pub(crate) force: bool,
    /// Only say what would go.
    pub(crate) dry_run: bool,
    /// How long to wait until it is gone; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) format: ObjectFormat,
    pub(crate) cluster: ClusterArguments,
}

/// Removes packages.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let found: Outcome<Vec<&Installed>> =
        request.which.iter().map(|which| inventory.find(which)).collect();
    let found = found?;
    for one in &found {
        refuse_needed(request, &inventory, one, &found)?;
    }
    let (mut gone, mut failed) = (Vec::new(), None);
    for one in &found {
        warn_of_kinds(one);
        if !request.dry_run
            && let Err(failure) = cluster.delete(&cluster.packages(one.kind), one.name()).await
        {
            failed = Some(failure);
            break;
        }
        gone.push(change(request, one));
    }
    tell_all(&gone, request.format, &cluster)?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    if let (Some(time), false) = (request.wait, request.dry_run) {
        let which: Vec<Which> = found.iter().map(|one| one.which()).collect();
        wait::until(&cluster, &which, Goal::Deleted, time).await?;
    }
    Ok(())
}

fn change(request: &Request, one: &Installed) -> Change {
    let (kind, name) = (one.kind, one.name().to_owned());
    let said = if request.dry_run { "would uninstall" } else { "uninstalled" };
    let detail = format!("{} {}", lower(kind), output::bold(&name));
    Change { word: "deleted", said, kind, name, detail, object: one.json.clone() }
}

/// What others need stays, unless they go, too.
fn refuse_needed(
    request: &Request,
    inventory: &Inventory,
    one: &Installed,
    going: &[&Installed],
) -> Outcome {
    let stays = |other: &&Installed| !going.iter().any(|it| it.id() == other.id());
    let users: Vec<String> =
        inventory.needed_by(one).into_iter().filter(stays).map(Installed::id).collect();
    if users.is_empty() || request.force {
        return Ok(());
    }
    let verb = if users.len() == 1 { "needs" } else { "need" };
    Err(Failure::new(
        format!("{} {verb} {}", users.join(" and "), one.id()),
        "uninstall them together, or this one alone with --force; the package manager may bring \
         it back",
    ))
}

/// Objects of a kind go with their definition, which nobody expects.
fn warn_of_kinds(one: &Installed) {
    let objects = one.active().and_then(|it| it.status.as_ref()?.object_refs.as_ref());
    let is_kind =
        |kind: &str| matches!(kind, "CustomResourceDefinition" | "CompositeResourceDefinition");
    let kinds = objects.map_or(0, |all| all.iter().filter(|it| is_kind(&it.kind)).count());
    if kinds > 0 && one.kind != PackageKind::Function {
        let kinds = output::count(kinds, "kind");
        output::warn(format_args!(
            "all objects of the {kinds} that {} brought go with it",
            one.id()
        ));
    }
}
