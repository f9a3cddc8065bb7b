//! Who may have what: the record that the Lock keeps.
//!
//! Before a package writes anything its name stands beside everything it brings that there can
//! only be one of, in the one Lock. Of two packages that want one definition, only one can be
//! written there first; the other sees it and leaves everything alone. Without it, each could end
//! up with half.
//!
//! The lock's own step keeps the record true; here it is only made sure that nothing is written
//! before it is.

use super::{Halt, World};
use crate::lock::owner;
use crate::step::{Action, Expect, Target, Wanted};
use api::pkg::lock::Lock;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

const DEFINITIONS: &str = "customResourceDefinitions";
const COMPOSITIONS: &str = "compositions";

/// Under which heading an object of a kind is recorded. Composite resources have definitions, too.
fn heading(kind: &str) -> Option<&'static str> {
    match kind {
        "CustomResourceDefinition"
        | "ManagedResourceDefinition"
        | "CompositeResourceDefinition" => Some(DEFINITIONS),
        "Composition" => Some(COMPOSITIONS),
        _ => None,
    }
}

impl World {
    fn record(&self, heading: &str) -> Option<&BTreeMap<String, String>> {
        let lock = self.lock.as_ref()?;
        match heading {
            DEFINITIONS => lock.custom_resource_definitions.as_ref(),
            _ => lock.compositions.as_ref(),
        }
    }
}

fn ours(world: &World) -> String {
    owner(world.kind.as_str(), world.package_name())
}

/// The package that an object is recorded for, if it is another one that is still there.
pub(super) fn holder(world: &World, target: &Target) -> Option<String> {
    let holder = world.record(heading(&target.kind)?)?.get(&target.name)?;
    let is_other = *holder != ours(world) && world.packages.contains(holder);
    is_other.then(|| holder.replacen('/', " ", 1))
}

/// Records these objects as ours, if they are not. There is a Lock as soon as there is a manager.
pub(super) fn claim(world: &World, wanted: &[Wanted]) -> Result<Option<Action>, Halt> {
    let ours = ours(world);
    let mut change: BTreeMap<&str, Map<String, Json>> = BTreeMap::new();
    for Wanted { target, .. } in wanted {
        let Some(heading) = heading(&target.kind) else { continue };
        let holder = world.record(heading).and_then(|record| record.get(&target.name));
        if holder != Some(&ours) {
            change.entry(heading).or_default().insert(target.name.clone(), json!(ours));
        }
    }
    match &world.lock {
        _ if change.is_empty() => Ok(None),
        Some(lock) => Ok(Some(write(lock, json!(change)))),
        None => Err(Halt::waiting("waiting for the Lock, which records whose objects are whose")),
    }
}

/// Takes a revision that goes out of the Lock, if it is in it.
pub(super) fn leave(world: &World) -> Option<Action> {
    let lock = world.lock.as_ref()?;
    let mut packages = lock.packages.clone()?;
    let before = packages.len();
    packages.retain(|one| one.name != world.revision.metadata.name);
    (packages.len() != before).then(|| write(lock, json!({"packages": packages})))
}

fn write(lock: &Lock, change: Json) -> Action {
    let target = Target {
        api_version: lock.api_version.clone(),
        kind: lock.kind.clone(),
        namespace: None,
        name: lock.metadata.name.clone(),
    };
    Action::Merge { target, change, expect: Expect::as_seen(&lock.metadata) }
}
