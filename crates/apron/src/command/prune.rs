//! `prune`: removes definitions that a package no longer brings, or gives them up.
//!
//! What a package no longer brings stays with it while objects live by it. Only somebody who says so
//! removes it, and with it those objects.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::command::login;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use controller::cluster::Error;
use controller::retention::released;
use inventory::definitions::{self, Definition, total};
use inventory::{Installed, Inventory, Which};
use kube::api::Preconditions;
use serde_json::json;
use std::io::IsTerminal as _;

/// What to remove, and how.
pub(crate) struct Request {
    pub(crate) which: Which,
    /// Only these definitions; all that it no longer brings if none is named.
    pub(crate) names: Vec<String>,
    /// Only say what there is.
    pub(crate) dry_run: bool,
    /// With their objects.
    pub(crate) deletes_objects: bool,
    /// Do not remove them: let other packages bring them.
    pub(crate) releases: bool,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
}

/// Removes definitions.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let one = inventory.find(&request.which)?;
    let found = definitions::retained(&cluster, one).await?;
    let chosen = choose(&request.names, one, &found)?;
    if request.format == Format::Text {
        show(one, &chosen);
    }
    let acts = !request.dry_run && !chosen.is_empty();
    let acts = acts && (request.releases || is_agreed(request, one, &chosen)?);
    if acts {
        for definition in &chosen {
            act(request, &cluster, one, definition).await?;
        }
    }
    tell(request, one, &chosen, acts)
}

/// Those that are named, each of which must be one of them; all if none is.
fn choose<'f>(
    names: &[String],
    one: &Installed,
    found: &'f [Definition],
) -> Outcome<Vec<&'f Definition>> {
    if let Some(name) = names.iter().find(|it| !found.iter().any(|one| one.target.name == **it)) {
        let known: Vec<&str> = found.iter().map(|it| it.target.name.as_str()).collect();
        let hint = match known.as_slice() {
            [] => "it has none that it no longer brings".to_owned(),
            known => format!("it no longer brings {}", known.join(", ")),
        };
        let message = format!("{name} is no definition that {} has and no longer brings", one.id());
        return Err(Failure::new(message, hint));
    }
    let is_meant = |it: &&Definition| names.is_empty() || names.contains(&it.target.name);
    Ok(found.iter().filter(is_meant).collect())
}

fn show(one: &Installed, chosen: &[&Definition]) {
    if chosen.is_empty() {
        output::print(format_args!("{} has no definition that it no longer brings", one.id()));
    }
    chosen.iter().flat_map(|it| it.lines()).for_each(output::print);
}

/// Whether somebody agrees that objects go.
fn is_agreed(request: &Request, one: &Installed, chosen: &[&Definition]) -> Outcome<bool> {
    let lived: Vec<&Definition> =
        chosen.iter().copied().filter(|it| !it.instances.is_none()).collect();
    if lived.is_empty() || request.deletes_objects {
        return Ok(true);
    }
    let total = total(&lived);
    if !std::io::stdin().is_terminal() {
        let message = format!("{} has {total}, and all of them would be deleted", one.id());
        let hint = "with --delete-objects they are; with --release the definitions and their \
                    objects stay, and another package may bring them";
        return Err(Failure::new(message, hint));
    }
    let answer = login::ask(&format!("delete {total}? [y/N]"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes a definition, or gives it up, if it is still what was shown.
async fn act(
    request: &Request,
    cluster: &Cluster,
    one: &Installed,
    definition: &Definition,
) -> Outcome {
    let objects = definitions::objects(cluster);
    let Definition { target, metadata, .. } = definition;
    let done = if request.releases {
        let change = released(metadata, &one.package, &one.revisions);
        objects.merge(target, &change).await.map(|_| ())
    } else {
        let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
        objects.delete(target, Preconditions { resource_version, uid }).await
    };
    done.map_err(|error| {
        let hint = match error {
            Error::Stale(_) | Error::Missing(_) => "run the command again: it is not as it was",
            Error::Refused(_) => "ask an administrator who may change it",
            _ => "run the command again; check that the cluster can be reached from here",
        };
        let what = if request.releases { "give up" } else { "remove" };
        Failure::new(format!("cannot {what} {}", definition.id()), hint).because(&error)
    })
}

fn tell(request: &Request, one: &Installed, chosen: &[&Definition], acts: bool) -> Outcome {
    if request.format == Format::Json {
        let shown: Vec<_> = chosen.iter().map(|it| it.shown()).collect();
        return output::print_json(&json!({
            "kind": one.kind.as_str(), "name": one.name(), "definitions": shown,
            "isRemoved": acts && !request.releases, "isReleased": acts && request.releases,
        }));
    }
    let total = total(chosen);
    if acts && request.releases {
        output::say(format_args!("{total} given up; another package may bring them"));
    } else if acts {
        output::say(format_args!("removed {total}"));
        if chosen.iter().any(|it| it.is_held()) {
            output::warn(
                "objects with finalizers go once whoever set those lets go of them; this version \
                 of the package may not know their kind any more",
            );
        }
    } else if !chosen.is_empty() && !request.dry_run {
        output::say("nothing was changed");
    }
    Ok(())
}
