//! `adopt`: gives a package what is there already and no package brought.
//!
//! What is in the way, and how it would be another, is found out by playing the package manager
//! through with a package that may take it. Then each object is told whose it may become, and the
//! package manager goes on by itself.

use crate::args::authority::AuthorityArguments;
use crate::args::cluster::ClusterArguments;
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::command::install_object::ObjectOptions;
use crate::command::login;
use crate::command::plan::{self, Wish};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use api::pkg::ANNOTATION_ADOPT;
use controller::cluster::{Cluster as Objects, Error};
use controller::rehearsal::{Adoption, Target, adoptions, mark, obstacles};
use inventory::{Installed, Inventory, Which};
use serde_json::json;
use std::io::IsTerminal as _;

/// What to give to which package.
pub(crate) struct Request {
    pub(crate) which: Which,
    /// Which objects, as NAME or KIND/NAME; all that are in the way if none is named.
    pub(crate) objects: Vec<String>,
    /// Without asking.
    pub(crate) is_agreed: bool,
    /// Only say what would be given.
    pub(crate) dry_run: bool,
    /// What the manager lets packages bring and ask for.
    pub(crate) authority: AuthorityArguments,
    pub(crate) format: Format,
    pub(crate) cluster: ClusterArguments,
    pub(crate) registry: RegistryArguments,
}

/// Gives objects to a package.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let one = inventory.find(&request.which)?;
    let (found, troubles) = in_the_way(request, settings, &cluster, one).await?;
    let chosen = choose(request, one, &found, &troubles)?;
    if request.format == Format::Text {
        show(one, &chosen);
    }
    let gives = !request.dry_run && !chosen.is_empty() && is_agreed(request, one, chosen.len())?;
    if gives {
        for object in &chosen {
            give(&cluster, one, object).await?;
        }
    }
    tell(request, one, &chosen, gives)
}

/// The objects that are in the way of a package, and whatever else is.
async fn in_the_way(
    request: &Request,
    settings: &Settings,
    cluster: &Cluster,
    one: &Installed,
) -> Outcome<(Vec<Adoption>, Vec<String>)> {
    let (kind, name) = (one.kind, one.name().to_owned());
    let plan = plan::Request {
        object: ObjectOptions::default(),
        catalogs: Vec::new(),
        kind: Some(kind),
        first: name.clone(),
        second: None,
        is_detailed: false,
        checks: false,
        may_downgrade: false,
        authority: request.authority.clone(),
        format: request.format,
        cluster: request.cluster.clone(),
        registry: request.registry.clone(),
    };
    let wish = Wish::Adopt { kind, name };
    let rehearsed = plan::rehearsed(&plan, settings, cluster, &wish).await?;
    Ok((adoptions(&rehearsed, kind, one.name()), obstacles(&rehearsed, kind, one.name())))
}

/// Those that are named, each of which must be in the way; all if none is.
fn choose<'f>(
    request: &Request,
    one: &Installed,
    found: &'f [Adoption],
    troubles: &[String],
) -> Outcome<Vec<&'f Adoption>> {
    if request.objects.is_empty() {
        if troubles.is_empty() || !found.is_empty() {
            return Ok(found.iter().collect());
        }
        let what = format!("cannot find out what is in the way of {}", one.id());
        let mut failure = Failure::new(what, "mend what the lines above name first");
        failure.causes = troubles.to_vec();
        return Err(failure);
    }
    let is_it = |object: &&Adoption, word: &str| match word.split_once('/') {
        Some((kind, name)) => object.kind.eq_ignore_ascii_case(kind) && object.name == name,
        None => object.name == word,
    };
    let mut chosen: Vec<&Adoption> = Vec::new();
    for word in &request.objects {
        let named: Vec<&Adoption> = found.iter().filter(|object| is_it(object, word)).collect();
        if named.is_empty() {
            let known: Vec<String> = found.iter().map(called).collect();
            let hint = match known.as_slice() {
                [] => "nothing is in its way that a package did not bring".to_owned(),
                known => format!("these are: {}", known.join(", ")),
            };
            return Err(Failure::new(format!("{word} is not in the way of {}", one.id()), hint));
        }
        chosen.extend(named);
    }
    // Somebody may name one twice.
    Ok(found.iter().filter(|one| chosen.contains(one)).collect())
}

fn called(object: &Adoption) -> String {
    format!("{}/{}", object.kind, object.name)
}

/// What there is, and how it would be another.
fn show(one: &Installed, chosen: &[&Adoption]) {
    if chosen.is_empty() {
        output::print(format_args!("nothing is in the way of {}", one.id()));
    }
    for object in chosen {
        output::print(format_args!("~ {} {}", object.kind, output::bold(&object.name)));
        if object.details.is_empty() {
            output::print("    says what the package says");
        }
        object.details.iter().for_each(|line| output::print(format_args!("    {line}")));
    }
    if !chosen.is_empty() {
        output::warn(format_args!(
            "{} would belong to {}, and go when it is uninstalled",
            output::count(chosen.len(), "object"),
            one.id()
        ));
    }
}

/// Whether somebody agrees.
fn is_agreed(request: &Request, one: &Installed, count: usize) -> Outcome<bool> {
    if request.is_agreed {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        let what = format!("nobody can be asked whether {} may have them", one.id());
        return Err(Failure::new(what, "look at them with --dry-run, and agree with --yes"));
    }
    let objects = output::count(count, "object");
    let answer = login::ask(&format!("give {objects} to {}? [y/N]", one.id()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Says on an object whose it may become, if it is still what was shown.
async fn give(cluster: &Cluster, one: &Installed, object: &Adoption) -> Outcome {
    let target = Target {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    };
    let to = mark(&format!("{}/v1", cluster.group), one.kind.as_str(), one.name());
    let change = json!({"metadata": {
        "uid": object.uid, "resourceVersion": object.resource_version,
        "annotations": {ANNOTATION_ADOPT: to},
    }});
    let objects = Objects::new(cluster.client(), std::sync::Arc::default());
    let given = objects.merge(&target, &change).await;
    given.map(|_| ()).map_err(|error| {
        let hint = match error {
            Error::Stale(_) | Error::Missing(_) => "run the command again: it is not as it was",
            Error::Refused(_) => "ask an administrator who may change it",
            _ => "run the command again; check that the cluster can be reached from here",
        };
        Failure::new(format!("cannot give {} to {}", called(object), one.id()), hint)
            .because(&error)
    })
}

fn tell(request: &Request, one: &Installed, chosen: &[&Adoption], gives: bool) -> Outcome {
    if request.format == Format::Json {
        return output::print_json(&json!({
            "kind": one.kind.as_str(), "name": one.name(),
            "objects": chosen, "isAdopted": gives,
        }));
    }
    if gives {
        output::say(format_args!(
            "{} given to {}; the package manager goes on by itself",
            output::count(chosen.len(), "object"),
            one.id()
        ));
    } else if !chosen.is_empty() && !request.dry_run {
        output::say("nothing was changed");
    }
    Ok(())
}
