//! What stands in the lock.

use super::contents::{self, Contents};
use super::members::{Member, Members};
use super::{World, finalizer, target};
use crate::step::{Action, Expect};
use api::pkg::lock::{Lock, LockPackage, NAME};
use serde_json::{Value as Json, json};
use solver::Conflict;
use std::collections::BTreeMap;

/// What should stand in the lock.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Entries {
    pub(super) packages: Option<Vec<LockPackage>>,
    crds: BTreeMap<String, String>,
    compositions: BTreeMap<String, String>,
}

/// What was granted, now or before; who owns something keeps it.
pub(super) fn of(world: &World, members: &Members<'_>, conflicts: &[Conflict]) -> Entries {
    let mut packages = Vec::new();
    let mut brought: Vec<(&str, &Contents)> = Vec::new();
    for member in &members.all {
        let Some((entry, contents)) = granted(member, conflicts) else { continue };
        packages.push(entry);
        brought.push((&member.package.metadata.name, contents));
    }
    packages.sort_by(|one, two| (&one.name, &one.kind).cmp(&(&two.name, &two.kind)));
    let lock = world.lock.as_ref();
    let crds = lock.and_then(|lock| lock.custom_resource_definitions.as_ref());
    let compositions = lock.and_then(|lock| lock.compositions.as_ref());
    Entries {
        crds: owners(crds, brought.iter().map(|(name, it)| (*name, it.crds.iter()))),
        compositions: owners(
            compositions,
            brought.iter().map(|(name, it)| (*name, it.compositions.iter())),
        ),
        packages: Some(packages),
    }
}

fn granted<'m>(
    member: &'m Member<'_>,
    conflicts: &[Conflict],
) -> Option<(LockPackage, &'m Contents)> {
    let refused = member.refusal(conflicts).is_some();
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

/// Makes the lock say this, with our finalizer while it lists something. There is one as soon as
/// there is something to say, if only that somebody is refused.
pub(super) fn write(world: &World, entries: &Entries, has_news: bool) -> Vec<Action> {
    let is_needed = entries.packages.as_ref().is_some_and(|packages| !packages.is_empty());
    if world.lock.is_none() && !is_needed && !has_news {
        return Vec::new();
    }
    let seen = world.lock.as_ref();
    let same = seen.is_some_and(|seen| is_same(seen, entries));
    let mut actions = Vec::new();
    if !same {
        let target = target(world);
        let object = json!({
            "apiVersion": target.api_version,
            "kind": target.kind,
            "metadata": {"name": NAME},
            "packages": serde_json::to_value(&entries.packages).unwrap_or(Json::Null),
            "customResourceDefinitions": entries.crds,
            "compositions": entries.compositions,
        });
        let expect = seen.map_or(Expect::Absent, |seen| Expect::as_seen(&seen.metadata));
        actions.push(Action::Apply { object, expect });
    }
    // The finalizer goes last, and comes last, too: an empty lock needs nobody to wait.
    actions.extend(finalizer(world, is_needed));
    actions
}

fn is_same(seen: &Lock, entries: &Entries) -> bool {
    let none = BTreeMap::new();
    let ours = entries.packages.as_deref().unwrap_or_default();
    seen.packages.as_deref().unwrap_or_default() == ours
        && seen.custom_resource_definitions.as_ref().unwrap_or(&none) == &entries.crds
        && seen.compositions.as_ref().unwrap_or(&none) == &entries.compositions
}
