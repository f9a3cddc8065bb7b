//! The checks, by endpoint.

use crate::check::Entry;

mod auth;
mod base;
mod blobs;
mod catalog;
mod chunks;
mod deletes;
mod kinds;
mod manifests;
mod mounts;
mod multitag;
mod names;
mod paths;
mod ranges;
mod referrers;
mod refusals;
mod tags;
mod uploads;

/// All of them, in the order of the endpoints.
pub(crate) fn all() -> Vec<Entry> {
    [
        base::entries(),
        blobs::entries(),
        ranges::entries(),
        uploads::entries(),
        chunks::entries(),
        mounts::entries(),
        manifests::entries(),
        kinds::entries(),
        multitag::entries(),
        tags::entries(),
        deletes::entries(),
        referrers::entries(),
        refusals::entries(),
        catalog::entries(),
        names::entries(),
        paths::entries(),
        auth::entries(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_are_unique_and_well_formed() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in super::all() {
            let id = entry.check.id;
            assert!(seen.insert(id), "{id} is there twice");
            let allowed =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
            assert!(id.chars().all(allowed), "{id}");
            assert!(entry.check.spec.len() > 20, "{id} says too little about its sentence");
        }
    }
}
