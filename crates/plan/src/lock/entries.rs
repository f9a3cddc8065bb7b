//! What stands in the lock.

use super::contents::{self, Contents};
use super::members::{Member, Members};
use super::origins;
use super::question::Question;
use super::{World, target};
use crate::step::{Action, Expect, Need, Target};
use api::pkg::FINALIZER_LOCK;
use api::pkg::lock::{Lock, LockPackage, NAME};
use serde_json::{Map, Value as Json, json};
use solver::Conflict;
use std::collections::BTreeMap;

/// What should stand in the lock.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Entries {
    pub(super) packages: Option<Vec<LockPackage>>,
    crds: BTreeMap<String, String>,
    compositions: BTreeMap<String, String>,
}

/// How the record of owners names a package: there may be one of the name in each kind.
pub fn owner(kind: &str, package: &str) -> String {
    format!("{kind}/{package}")
}

/// What was granted, now or before; who owns something keeps it.
pub(super) fn of(
    world: &World,
    members: &Members<'_>,
    question: &Question<'_>,
    conflicts: &[Conflict],
) -> Entries {
    let mut packages = Vec::new();
    let mut brought: Vec<(String, &Contents)> = Vec::new();
    let mut bringers = Vec::new();
    for member in &members.all {
        let Some((entry, contents)) = granted(member, conflicts) else { continue };
        let package = member.package;
        let (source, digest) = (entry.source.clone(), entry.digest.clone());
        bringers.push(origins::Granted { package, source, digest, contents });
        packages.push(entry);
        brought.push((owner(&package.kind, &package.metadata.name), contents));
    }
    for package in &mut packages {
        origins::record_origins(world, question, &bringers, &mut package.dependencies);
    }
    packages.sort_by(|one, two| (&one.name, &one.kind).cmp(&(&two.name, &two.kind)));
    let lock = world.lock.as_ref();
    let crds = lock.and_then(|lock| lock.custom_resource_definitions.as_ref());
    let compositions = lock.and_then(|lock| lock.compositions.as_ref());
    Entries {
        crds: owners(crds, brought.iter().map(|(name, it)| (&**name, it.crds.iter()))),
        compositions: owners(
            compositions,
            brought.iter().map(|(name, it)| (&**name, it.compositions.iter())),
        ),
        packages: Some(packages),
    }
}

fn granted<'m>(
    member: &'m Member<'_>,
    conflicts: &[Conflict],
) -> Option<(LockPackage, &'m Contents)> {
    let refused = member.is_refused(conflicts) || member.awaits_handover();
    match (&member.active, &member.previous) {
        (Some(active), _) if active.is_admitted || !refused => {
            let contents = active.contents.as_deref()?;
            let version = active.reference.identifier().to_string();
            Some((entry(member, &active.revision.metadata.name, version, contents), contents))
        }
        (_, Some((entry, _, contents))) => Some(((*entry).clone(), contents)),
        _ => None,
    }
}

fn entry(member: &Member<'_>, name: &str, version: String, contents: &Contents) -> LockPackage {
    LockPackage {
        name: name.to_owned(),
        api_version: Some(member.package.api_version.clone()),
        kind: Some(member.package.kind.clone()),
        source: member.name.written.clone(),
        version,
        digest: contents.digest.as_ref().map(ToString::to_string),
        dependencies: contents.dependencies.iter().filter_map(contents::write).collect(),
        ..LockPackage::default()
    }
}

/// Who owns what: whoever did before, if it is still there, else the first by name.
fn owners<'a>(
    before: Option<&BTreeMap<String, String>>,
    brought: impl Iterator<Item = (&'a str, impl Iterator<Item = &'a String>)>,
) -> BTreeMap<String, String> {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (package, things) in brought {
        for thing in things {
            let is_old =
                before.and_then(|before| before.get(thing)).is_some_and(|it| it == package);
            match owners.get_mut(thing) {
                Some(owner) if is_old => package.clone_into(owner),
                Some(_) => {}
                None => drop(owners.insert(thing.clone(), package.to_owned())),
            }
        }
    }
    owners
}

/// Makes the lock say this, with our finalizer while it lists something, in one write. There is a
/// lock as soon as there is something to say, if only that somebody is refused.
pub(super) fn write(
    world: &World,
    entries: &Entries,
    has_news: bool,
) -> Result<Option<Action>, Need> {
    let is_needed = entries.packages.as_ref().is_some_and(|packages| !packages.is_empty());
    let packages = serde_json::to_value(&entries.packages).unwrap_or(Json::Null);
    let target = target(world);
    let Some(lock) = &world.lock else {
        let finalizers: Vec<&str> = is_needed.then_some(FINALIZER_LOCK).into_iter().collect();
        let object = json!({
            "apiVersion": target.api_version,
            "kind": target.kind,
            "metadata": {"name": NAME, "finalizers": finalizers},
            "packages": packages,
            "customResourceDefinitions": entries.crds,
            "compositions": entries.compositions,
        });
        let is_wanted = is_needed || has_news;
        return Ok(is_wanted.then_some(Action::Apply { object, expect: Expect::Absent }));
    };
    let finalizers = finalizers(&lock.metadata.finalizers, is_needed);
    if finalizers.is_none() && is_all_that_is_kept(world, lock, entries)? {
        return Ok(None);
    }
    let mut change = Map::new();
    if lock.packages.as_deref().unwrap_or_default()
        != entries.packages.as_deref().unwrap_or_default()
    {
        change.insert("packages".to_owned(), packages);
    }
    for (field, seen, owners) in [
        ("customResourceDefinitions", &lock.custom_resource_definitions, &entries.crds),
        ("compositions", &lock.compositions, &entries.compositions),
    ] {
        // That packages own nothing is known, too, as soon as there is a record.
        let empty = || (is_needed && seen.is_none()).then(|| json!({}));
        let record = difference(seen.as_ref(), owners).or_else(empty);
        change.extend(record.map(|record| (field.to_owned(), record)));
    }
    change.extend(finalizers.map(|all| ("metadata".to_owned(), json!({"finalizers": all}))));
    let expect = Expect::as_seen(&lock.metadata);
    let merge = Action::Merge { target, change: Json::Object(change.clone()), expect };
    Ok((!change.is_empty()).then_some(merge))
}

/// Whether the lock lists what it should, and its definition, which is another manager's, keeps
/// nothing else: digests and owners would be written in vain at every look.
fn is_all_that_is_kept(world: &World, lock: &Lock, entries: &Entries) -> Result<bool, Need> {
    let seen = lock.packages.as_deref().unwrap_or_default();
    let wanted = entries.packages.as_deref().unwrap_or_default();
    let plain = |one: &LockPackage| LockPackage {
        digest: None,
        dependencies: one.dependencies.iter().map(origins::without_origin).collect(),
        ..one.clone()
    };
    let has_record = lock.custom_resource_definitions.is_some()
        || lock.compositions.is_some()
        || seen.iter().any(|one| one.digest.is_some());
    if has_record || seen.is_empty() || !wanted.iter().map(plain).eq(seen.iter().cloned()) {
        return Ok(false);
    }
    let name = format!("locks.{}", world.settings.group);
    let Some(definition) = &world.known.definition else {
        return Err(Need::Object(Target {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name,
        }));
    };
    let versions = definition.iter().filter_map(|it| it["spec"]["versions"].as_array()).flatten();
    let fields = |version: &Json| version["schema"]["openAPIV3Schema"]["properties"].clone();
    Ok(!versions.into_iter().any(|one| !fields(one)["customResourceDefinitions"].is_null()))
}

/// How one record becomes another; nothing if it is that already.
fn difference(
    seen: Option<&BTreeMap<String, String>>,
    wanted: &BTreeMap<String, String>,
) -> Option<Json> {
    let mut change = Map::new();
    for gone in seen.into_iter().flatten().filter(|(key, _)| !wanted.contains_key(*key)) {
        change.insert(gone.0.clone(), Json::Null);
    }
    for (key, owner) in wanted {
        if seen.and_then(|seen| seen.get(key)) != Some(owner) {
            change.insert(key.clone(), json!(owner));
        }
    }
    (!change.is_empty()).then_some(Json::Object(change))
}

/// The finalizers with or without ours; nothing if they are that already.
fn finalizers(seen: &[String], is_wanted: bool) -> Option<Vec<String>> {
    let is_there = seen.iter().any(|one| one == FINALIZER_LOCK);
    let others = seen.iter().filter(|one| *one != FINALIZER_LOCK).cloned();
    let ours = is_wanted.then(|| FINALIZER_LOCK.to_owned());
    (is_there != is_wanted).then(|| others.chain(ours).collect())
}
