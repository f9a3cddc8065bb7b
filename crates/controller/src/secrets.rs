//! Secrets that somebody asked for: with credentials of registries, with keys of signers.
//!
//! Whoever made, changed or removed one of them is not kept waiting for the next look at
//! everything. Which ones these are is known from having been asked for; the others of a namespace,
//! of which there may be many, wake nobody.

use crate::Hands;
use crate::kind::{Meta, Wakes, Watch};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of Secrets that were asked for, whether they were there or not.
#[derive(Clone, Debug, Default)]
pub struct Sought(Arc<Mutex<BTreeSet<String>>>);

impl Sought {
    /// Remembers that a Secret is asked for. Whoever does so first and reads it then misses
    /// nothing.
    pub(crate) fn note(&self, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
    }

    fn wakes(&self, meta: &Meta, concerned: &Wakes) -> Wakes {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sought = meta.metadata.name.as_ref().is_some_and(|name| names.contains(name));
        if is_sought { concerned.clone() } else { Wakes::These(Vec::new()) }
    }
}

/// Watches the Secrets that were asked for; news of them concerns these.
pub(crate) fn watch(hands: &Hands, concerned: Wakes) -> Watch {
    let sought = hands.sought.clone();
    let wakes = move |meta: &Meta| sought.wakes(meta, &concerned);
    Watch::new("v1", "Secret", wakes).in_namespace(&hands.settings.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::{ObjectMeta, PartialObjectMetaExt as _};

    #[test]
    fn news_of_a_secret_that_was_asked_for_concerns_those_who_asked_and_other_secrets_nobody() {
        let sought = Sought::default();
        sought.note("key");
        let wakes = |name: &str| {
            let meta = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            sought.wakes(&meta.into_response_partial(), &Wakes::Everyone)
        };
        assert_eq!(wakes("key"), Wakes::Everyone);
        assert_eq!(wakes("other"), Wakes::These(Vec::new()));
        sought.note("other");
        assert_eq!(wakes("other"), Wakes::Everyone);
    }
}
