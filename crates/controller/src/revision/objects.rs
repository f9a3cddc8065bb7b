//! What the cluster has of a package's objects.

use crate::Hands;
use crate::act::establish::parsed as document;
use crate::cluster::{Error, MANAGER, Which};
use crate::package::typed;
use api::object::{ObjectMeta, OwnerReference};
use futures::{StreamExt as _, TryStreamExt as _};
use plan::adoption;
use plan::control::is_named;
use plan::revision::{Seen, World, desired};
use plan::step::{Packaged, Target, Wanted};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Objects that are compared at once.
const TOGETHER: usize = 8;
/// More objects of one kind than this are listed, not asked for one by one.
const FEW: usize = 8;

/// Looks at objects and puts what is seen into the world.
pub(super) async fn look(
    hands: &Hands,
    world: &mut World,
    wanted: Vec<Wanted>,
) -> Result<(), Error> {
    for ((api_version, kind), wanted) in by_kind(wanted) {
        let mut there = metadata(hands, &api_version, &kind, &wanted).await?;
        let looks: Vec<_> = wanted
            .into_iter()
            .map(|one| {
                let found = there.remove(&one.target.name);
                seen(hands, world, one, found)
            })
            .collect();
        let looks = futures::stream::iter(looks).buffered(TOGETHER);
        let looks: Vec<(Target, Option<Seen>)> = looks.try_collect().await?;
        world.seen.extend(looks);
    }
    Ok(())
}

/// Who owns objects; nobody where there is none.
pub(crate) async fn owners(
    hands: &Hands,
    wanted: Vec<Wanted>,
) -> Result<BTreeMap<Target, Vec<OwnerReference>>, Error> {
    let mut owners = BTreeMap::new();
    for ((api_version, kind), wanted) in by_kind(wanted) {
        let mut there = metadata(hands, &api_version, &kind, &wanted).await?;
        owners.extend(wanted.into_iter().map(|Wanted { target, .. }| {
            let owners = there.remove(&target.name).map(|it| it.metadata.owner_references);
            (target, owners.unwrap_or_default())
        }));
    }
    Ok(owners)
}

fn by_kind(wanted: Vec<Wanted>) -> BTreeMap<(String, String), Vec<Wanted>> {
    let mut kinds: BTreeMap<(String, String), Vec<Wanted>> = BTreeMap::new();
    for one in wanted {
        let kind = (one.target.api_version.clone(), one.target.kind.clone());
        kinds.entry(kind).or_default().push(one);
    }
    kinds
}

/// The metadata of objects of a kind, by name.
async fn metadata(
    hands: &Hands,
    api_version: &str,
    kind: &str,
    wanted: &[Wanted],
) -> Result<HashMap<String, Found>, Error> {
    let mut found = Vec::new();
    if wanted.len() > FEW {
        found = hands.cluster.list_metadata(api_version, kind, Which::default()).await?;
    } else {
        for one in wanted {
            found.extend(hands.cluster.get_metadata(&one.target).await?);
        }
    }
    let each = found.into_iter().map(|object| {
        let is_written = adoption::is_written(&object);
        let metadata = bare(object)?;
        Ok((metadata.name.clone(), Found { metadata, is_written }))
    });
    each.collect()
}

/// What is found of an object without reading all of it.
struct Found {
    metadata: ObjectMeta,
    /// Whether a package manager wrote it.
    is_written: bool,
}

/// The metadata of an object, without who wrote which field.
pub(crate) fn bare(mut object: Json) -> Result<ObjectMeta, Error> {
    let mut metadata = object["metadata"].take();
    if let Json::Object(fields) = &mut metadata {
        fields.remove("managedFields");
    }
    typed(metadata)
}

/// Objects that are others', by kind and name: the revision does not control them, or they are not
/// there and the Lock's record has them for somebody.
pub(super) fn of_others(world: &World) -> BTreeSet<(&str, &str)> {
    let lock = world.lock.as_ref();
    let recorded = |name: &str| {
        let crds = lock.and_then(|lock| lock.custom_resource_definitions.as_ref()?.get(name));
        let compositions = lock.and_then(|lock| lock.compositions.as_ref()?.get(name));
        crds.or(compositions).is_some()
    };
    let theirs = world.seen.iter().filter(|(target, seen)| match seen {
        Some(seen) => !is_controlled(world, &seen.metadata),
        None => recorded(&target.name),
    });
    theirs.map(|(target, _)| (target.kind.as_str(), target.name.as_str())).collect()
}

/// What is there of an object. Whether it says what it should is looked at only where this
/// revision wrote it: what others wrote is replaced whatever it says.
async fn seen(
    hands: &Hands,
    world: &World,
    wanted: Wanted,
    found: Option<Found>,
) -> Result<(Target, Option<Seen>), Error> {
    let Wanted { target, packaged } = wanted;
    let Some(Found { metadata, is_written }) = found else {
        hands.written.forget(&target);
        return Ok((target, None));
    };
    let Some(packaged) = packaged else {
        return Ok((target, Some(Seen { metadata, is_written, ..Seen::default() })));
    };
    if let Some(state) = hands.written.recall(&target, &packaged, &metadata) {
        return Ok((target, Some(Seen { metadata, is_same: true, state, is_written })));
    }
    if !is_controlled(world, &metadata) && target.kind != "ManagedResourceDefinition" {
        return Ok((target, Some(Seen { metadata, is_written, ..Seen::default() })));
    }
    let seen = compare(hands, &target, &packaged).await?;
    Ok((target, seen))
}

fn is_controlled(world: &World, metadata: &ObjectMeta) -> bool {
    let revision = &world.revision;
    let mut owners = metadata.owner_references.iter();
    owners.any(|one| one.controller == Some(true) && is_named(one, revision))
}

/// Holds an object against what its package says.
async fn compare(
    hands: &Hands,
    target: &Target,
    packaged: &Packaged,
) -> Result<Option<Seen>, Error> {
    let Some(live) = hands.cluster.get(target).await? else { return Ok(None) };
    let compared = move |wanted| (desired::is_same(&wanted, &live, MANAGER), live);
    let (is_same, live) = document(hands, packaged, compared).await?;
    let state = live["spec"]["state"].as_str().map(str::to_owned);
    let is_written = adoption::is_written(&live);
    let metadata = bare(live)?;
    if is_same {
        hands.written.note(target, packaged, &metadata, state.clone());
    }
    Ok(Some(Seen { metadata, is_same, state, is_written }))
}
