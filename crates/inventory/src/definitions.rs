//! Definitions of packages, and the objects that live by them.

use crate::cluster::Cluster;
use crate::installed::Installed;
use api::object::ObjectMeta;
use controller::cluster::{Cluster as Objects, Error};
use controller::rehearsal::Target;
use controller::retention::{self, Collection, Instances, brought};
use ground::failure::{Failure, Outcome};
use ground::words;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// So many objects of each kind are named.
const SHOWN_MAX: u32 = 20;

/// A definition that a package has.
pub struct Definition {
    /// Which object it is.
    pub target: Target,
    /// Its metadata, as it is now.
    pub metadata: ObjectMeta,
    /// How many objects live by it.
    pub instances: Instances,
    first: Vec<(Collection, Vec<Json>)>,
}

/// A definition for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionShown<'a> {
    kind: &'a str,
    name: &'a str,
    /// So many were found.
    objects: u64,
    /// Whether those are all.
    is_counted: bool,
    /// The first few.
    first: Vec<ObjectShown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectShown<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    /// Who must let go of it first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<&'a str>,
}

impl Definition {
    /// What kubectl calls it.
    pub fn id(&self) -> String {
        format!("{} {}", self.target.kind, self.target.name)
    }

    /// The definition for programs.
    pub fn shown(&self) -> DefinitionShown<'_> {
        DefinitionShown {
            kind: &self.target.kind,
            name: &self.target.name,
            objects: self.instances.least,
            is_counted: self.instances.is_exact,
            first: self.first().collect(),
        }
    }

    /// The definition and its first objects, in lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("- {}: {}", self.id(), self.instances)];
        for one in self.first() {
            let place = one.namespace.map(|it| format!("{it}/")).unwrap_or_default();
            let held = match one.finalizers.as_slice() {
                [] => String::new(),
                all => format!(" (goes once {} lets go of it)", all.join(", ")),
            };
            lines.push(format!("    {} {place}{}{held}", one.kind, one.name));
        }
        let shown = self.first().count() as u64;
        if shown > 0 && self.instances.least > shown {
            lines.push(format!("    and {} more", self.instances.least - shown));
        }
        lines
    }

    /// Whether one of its first objects must be let go of before it goes.
    pub fn is_held(&self) -> bool {
        self.first().any(|one| !one.finalizers.is_empty())
    }

    fn first(&self) -> impl Iterator<Item = ObjectShown<'_>> {
        self.first.iter().flat_map(|(collection, objects)| {
            objects.iter().map(|object| {
                let metadata = &object["metadata"];
                let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
                ObjectShown {
                    kind: &collection.kind,
                    namespace: metadata["namespace"].as_str(),
                    name: metadata["name"].as_str().unwrap_or_default(),
                    finalizers: finalizers.filter_map(Json::as_str).collect(),
                }
            })
        })
    }
}

/// The objects of a cluster, as the package manager asks for them.
pub fn objects(cluster: &Cluster) -> Objects {
    Objects::new(cluster.client(), std::sync::Arc::default())
}

/// Definitions that a package no longer brings, and has all the same. What it brings must be known.
pub async fn retained(cluster: &Cluster, one: &Installed) -> Outcome<Vec<Definition>> {
    let active = one.active().filter(|it| it.is_established());
    let Some(active) = active else {
        let message = format!("{} does not have its objects yet", one.id());
        let hint = format!("see why with `apron status {0}`; `apron wait {0}` waits", one.name());
        return Err(Failure::new(message, hint));
    };
    let marked = marked(cluster, one).await?;
    let others = one.revisions.iter().flat_map(brought).chain(marked);
    look(cluster, one, retention::dropped(&brought(active).collect(), others)).await
}

/// All definitions that a package has.
pub async fn owned(cluster: &Cluster, one: &Installed) -> Outcome<Vec<Definition>> {
    let marked = marked(cluster, one).await?;
    let all = one.revisions.iter().flat_map(brought).chain(marked);
    look(cluster, one, all.collect()).await
}

async fn marked(cluster: &Cluster, one: &Installed) -> Outcome<Vec<Target>> {
    let found = retention::retained(&objects(cluster), one.kind, one.name()).await;
    found.map_err(|error| failed(one, &error))
}

/// Those of these that are there and that the package owns, with their objects.
async fn look(
    cluster: &Cluster,
    one: &Installed,
    targets: BTreeSet<Target>,
) -> Outcome<Vec<Definition>> {
    let objects = objects(cluster);
    let found = retention::objects(&objects, targets.into_iter().collect(), SHOWN_MAX).await;
    let mut definitions = Vec::new();
    for (target, found) in found.map_err(|error| failed(one, &error))? {
        let metadata = objects.get_metadata(&target).await.map_err(|error| failed(one, &error))?;
        let Some(metadata) = metadata else { continue };
        let metadata: ObjectMeta =
            serde_json::from_value(metadata["metadata"].clone()).unwrap_or_default();
        if retention::is_owned(&metadata, &one.package, &one.revisions) {
            let retention::Objects { instances, first } = found;
            definitions.push(Definition { target, metadata, instances, first });
        }
    }
    Ok(definitions)
}

/// Why nobody can tell what a package has.
pub fn failed(one: &Installed, error: &Error) -> Failure {
    let hint = match error {
        Error::Stale(_) | Error::Missing(_) => "run the command again: something is not as it was",
        Error::Refused(_) => "ask an administrator of the cluster for the right to do that",
        _ => "check that the cluster can be reached from here, and run the command again",
    };
    Failure::new(format!("cannot look at the definitions of {}", one.id()), hint).because(error)
}

/// How many definitions these are, and how many objects they have.
pub fn total(definitions: &[&Definition]) -> String {
    let objects = definitions.iter().map(|one| one.instances);
    let objects = objects.fold(Instances::exactly(0), Instances::and);
    format!("{} with {objects}", words::count(definitions.len(), "definition"))
}
