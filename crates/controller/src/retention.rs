//! Which definitions outlive the version that brought them, and how many objects they have.

use crate::Hands;
use crate::cluster::{Cluster, Error, Which};
use api::meta::PackageKind;
use api::pkg::{LABEL_PACKAGE, LABEL_RETAINED};
use futures::{StreamExt as _, TryStreamExt as _};
use plan::retention::{collections, definitions};
use plan::revision::World;
use plan::step::{Need, Target};
use serde_json::Value as Json;
use std::collections::BTreeMap;

pub use plan::retention::{
    Collection, Instances, brought, dropped, is_definition, is_owned, released, retaining,
};

/// The definitions that API servers serve by themselves.
const CUSTOM: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
/// Definitions that are counted at once.
const TOGETHER: usize = 8;

/// What is known of the objects of a definition.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// How many there are.
    pub instances: Instances,
    /// The first few of each kind, as far as every object says something.
    pub first: Vec<(Collection, Vec<Json>)>,
}

/// How many objects there are of definitions.
pub async fn instances(
    cluster: &Cluster,
    targets: Vec<Target>,
) -> Result<BTreeMap<Target, Instances>, Error> {
    let found = objects(cluster, targets, 1).await?;
    Ok(found.into_iter().map(|(target, objects)| (target, objects.instances)).collect())
}

/// How many objects there are of definitions, and the first few of each. What serves no version, or
/// has gone meanwhile, cannot be asked for them.
pub async fn objects(
    cluster: &Cluster,
    targets: Vec<Target>,
    few: u32,
) -> Result<Vec<(Target, Objects)>, Error> {
    let each = targets.into_iter().map(|target| async move {
        let definition = match cluster.get(&target).await? {
            Some(found) => found,
            // Taken at its first word, a server that denies a definition without objects has it kept for good.
            None => cluster.get(&target).await?.unwrap_or_default(),
        };
        let collections = collections(&definition);
        let instances =
            if collections.is_empty() { Instances::default() } else { Instances::exactly(0) };
        let mut found = Objects { instances, first: Vec::new() };
        for collection in collections {
            let (more, first) = match cluster.peek(&collection, few).await {
                Err(Error::Missing(_)) => {
                    (absent(cluster, &target, &collection).await?, Vec::new())
                }
                peeked => peeked?,
            };
            found.instances = found.instances.and(more);
            found.first.push((collection, first));
        }
        Ok((target, found))
    });
    futures::stream::iter(each).buffered(TOGETHER).try_collect().await
}

/// How many objects a collection has that the server does not serve. That a definition is there and
/// its objects are not served is not believed: a server that is only starting says so, too. What
/// others make definitions from may not have been made one yet.
async fn absent(
    cluster: &Cluster,
    of: &Target,
    collection: &Collection,
) -> Result<Instances, Error> {
    let (api_version, kind) = CUSTOM;
    let (group, _) = collection.api_version.split_once('/').unwrap_or_default();
    let made = Target {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: None,
        name: format!("{}.{group}", collection.plural),
    };
    let is_made = of.kind == kind || cluster.get_metadata(&made).await?.is_some();
    Ok(if is_made { Instances::default() } else { Instances::exactly(0) })
}

/// Finds out what a revision asks about definitions that its package no longer brings.
pub(crate) async fn learn(hands: &Hands, world: &mut World, need: Need) -> Result<(), Error> {
    if let Need::Instances(targets) = need {
        world.instances.extend(instances(&hands.cluster, targets).await?);
    } else {
        let package = world.revision.metadata.labels.get(LABEL_PACKAGE);
        let name = package.map(String::as_str).unwrap_or_default();
        world.retained = Some(retained(&hands.cluster, world.kind, name).await?);
    }
    Ok(())
}

/// The definitions that are marked as kept for a package.
pub async fn retained(
    cluster: &Cluster,
    kind: PackageKind,
    package: &str,
) -> Result<Vec<Target>, Error> {
    let labels = format!("{LABEL_RETAINED}={package}");
    let mut all = Vec::new();
    for (api_version, kind) in definitions(kind) {
        let which = Which { labels: Some(&labels), ..Which::default() };
        let found = cluster.list_metadata(api_version, kind, which).await?;
        all.extend(found.iter().filter_map(|one| one["metadata"]["name"].as_str()).map(|name| {
            let (api_version, kind) = ((*api_version).to_owned(), (*kind).to_owned());
            Target { api_version, kind, namespace: None, name: name.to_owned() }
        }));
    }
    Ok(all)
}
