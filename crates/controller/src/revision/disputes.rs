//! Who waits for what others have.
//!
//! An object that belongs to somebody else tells only its owners when it goes. Revisions that want
//! it are remembered here, so that they hear of it, too, instead of asking from time to time. So are
//! definitions of composite resources, whose kinds may be others'.

use crate::kind::{Meta, Wakes, Watch};
use plan::step::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects by kind and name, and the revisions that want them from others.
#[derive(Clone, Default)]
pub(crate) struct Disputes(Arc<Mutex<Wanted>>);

type Wanted = BTreeMap<(String, String), BTreeSet<String>>;

impl Disputes {
    fn all(&self) -> MutexGuard<'_, Wanted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A revision is about to look at these objects; news of them concerns it from here on.
    pub(crate) fn begin<'t>(&self, revision: &str, objects: impl Iterator<Item = &'t Target>) {
        let mut all = self.all();
        for Target { kind, name, .. } in objects {
            let key = (kind.clone(), name.clone());
            all.entry(key).or_default().insert(revision.to_owned());
        }
    }

    /// A revision has looked, and only these are others'.
    pub(crate) fn settle(&self, revision: &str, is_theirs: impl Fn(&str, &str) -> bool) {
        self.all().retain(|(kind, name), waiting| {
            if !is_theirs(kind, name) {
                waiting.remove(revision);
            }
            !waiting.is_empty()
        });
    }

    /// Everyone who waits for something.
    fn everyone(&self) -> Vec<String> {
        let all: BTreeSet<String> = self.all().values().flatten().cloned().collect();
        all.into_iter().collect()
    }

    fn of(&self, kind: &str, name: &str) -> Vec<String> {
        let all = self.all();
        all.get(&(kind.to_owned(), name.to_owned())).into_iter().flatten().cloned().collect()
    }

    /// News of an object concerns the revisions that own it, and those that would like to.
    pub(crate) fn watch(&self, api_version: &str, kind: &str, owner: &str) -> Watch {
        let (disputes, of, owner) = (self.clone(), kind.to_owned(), owner.to_owned());
        let watch = Watch::new(api_version, kind, move |meta| {
            let owners = meta.metadata.owner_references.iter().flatten();
            let owners = owners.filter(|one| one.kind == owner).map(|one| one.name.clone());
            let name = meta.metadata.name.as_deref().unwrap_or_default();
            Wakes::These(owners.chain(disputes.of(&of, name)).collect())
        });
        watch.for_content()
    }

    /// The lock says who may have what.
    pub(crate) fn record(&self, api_version: &str) -> Watch {
        let disputes = self.clone();
        let watch =
            Watch::new(api_version, "Lock", move |_: &Meta| Wakes::These(disputes.everyone()));
        watch.for_content()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    #[test]
    fn who_wants_what_is_others_hears_of_it_until_that_is_settled() {
        let (disputes, kind) = (Disputes::default(), "CustomResourceDefinition");
        let objects = [target("ours.org"), target("theirs.org")];
        disputes.begin("a", objects.iter());
        disputes.begin("b", objects[1..].iter());
        assert_eq!(disputes.of(kind, "ours.org"), ["a"], "before anybody has looked");
        disputes.settle("a", |_, name| name == "theirs.org");
        assert_eq!(disputes.of(kind, "ours.org"), Vec::<String>::new());
        assert_eq!(disputes.of(kind, "theirs.org"), ["a", "b"]);
        assert_eq!(disputes.everyone(), ["a", "b"]);
        disputes.settle("a", |_, _| false);
        disputes.settle("b", |_, _| false);
        assert!(disputes.all().is_empty());
    }
}
