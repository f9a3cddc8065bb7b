//! Revisions by package, so that news of one can reach the others.

use crate::kind::{Wakes, Watch};
use api::pkg::LABEL_PACKAGE;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The revisions of every package that were ever heard of.
#[derive(Clone, Default)]
pub(crate) struct Families(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl Families {
    fn join(&self, package: &str, revision: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(package.to_owned()).or_default().insert(revision.to_owned());
    }

    /// The revisions of a package.
    pub(crate) fn of(&self, package: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(package).into_iter().flatten().cloned().collect()
    }

    /// News of a revision concerns the other revisions of its package.
    pub(crate) fn watch(&self, api_version: &str, kind: &str) -> Watch {
        let families = self.clone();
        Watch::new(api_version, kind, move |meta| {
            let labels = meta.metadata.labels.as_ref();
            let package = labels.and_then(|labels| labels.get(LABEL_PACKAGE));
            let (Some(package), Some(name)) = (package, meta.metadata.name.as_deref()) else {
                return Wakes::These(Vec::new());
            };
            families.join(package, name);
            Wakes::These(families.of(package).into_iter().filter(|one| one != name).collect())
        })
    }
}
