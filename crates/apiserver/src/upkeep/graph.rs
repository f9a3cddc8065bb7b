//! Who owns whom, kept up to date from the events of the log.
//!
//! Only the edges are kept; everything else is read from the log when it is needed, so
//! that decisions are made on what is there and not on what was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Duty;
use super::stored::{FOREGROUND, ORPHAN, Owner, Stored, number};

/// Owners and dependents.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Where an object with this uid is.
    places: BTreeMap<u128, Arc<str>>,
    /// Where those are that refer to this uid as their owner.
    dependents: BTreeMap<u128, BTreeSet<Arc<str>>>,
}

impl Graph {
    /// Where the object with this uid is.
    pub(crate) fn place(&self, uid: &str) -> Option<Arc<str>> {
        self.places.get(&number(uid)?).cloned()
    }

    /// Where the dependents of this uid are.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Arc<str>> {
        number(uid).and_then(|uid| self.dependents.get(&uid)).into_iter().flatten()
    }

    /// Takes in what happened to one object; says what has to be looked at.
    pub(crate) fn notice(
        &mut self,
        key: &Arc<str>,
        before: Option<&Stored>,
        after: Option<&Stored>,
    ) -> Vec<Duty> {
        let mut duties = Vec::new();
        let none = Stored::default();
        let (old, new) = (before.unwrap_or(&none), after.unwrap_or(&none));
        for owner in old.owners.iter().filter(|owner| !new.owners.contains(owner)) {
            self.unlink(owner, key);
            // Perhaps the owner was waiting for this one only.
            duties.extend(self.place(&owner.uid).map(Duty::Collect));
        }
        for owner in &new.owners {
            self.link(owner, key);
        }
        if after.is_none() {
            if let Some(uid) = number(&old.uid) {
                self.places.remove(&uid);
            }
            duties.extend(self.dependents(&old.uid).cloned().map(Duty::Collect));
            return duties;
        }
        if before.is_none()
            && let Some(uid) = number(&new.uid)
        {
            self.places.insert(uid, Arc::clone(key));
        }
        if !new.owners.is_empty() && old.owners != new.owners {
            duties.push(Duty::Collect(Arc::clone(key)));
        }
        if new.leaves_with(ORPHAN) && !old.leaves_with(ORPHAN) {
            duties.push(Duty::Orphan(Arc::clone(key)));
        } else if new.leaves_with(FOREGROUND) && !old.leaves_with(FOREGROUND) {
            duties.extend(self.dependents(&new.uid).cloned().map(Duty::Collect));
            duties.push(Duty::Collect(Arc::clone(key)));
        }
        duties
    }

    fn link(&mut self, owner: &Owner, key: &Arc<str>) {
        if let Some(uid) = number(&owner.uid) {
            self.dependents.entry(uid).or_default().insert(Arc::clone(key));
        }
    }

    fn unlink(&mut self, owner: &Owner, key: &Arc<str>) {
        let Some(uid) = number(&owner.uid) else { return };
        if let Some(keys) = self.dependents.get_mut(&uid) {
            keys.remove(key);
            if keys.is_empty() {
                self.dependents.remove(&uid);
            }
        }
    }
}
