//! The end of a namespace: everything in it goes first, then it does.
//!
//! Upstream has a controller for this, which takes seconds; here it is done before the
//! delete is answered, and tried again whenever something that was held back is let go.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Server;
use crate::kind::Kind;
use crate::log::{Expect, Write};
use crate::object::{is_deleting, meta_list};
use crate::rest::{delete_all, open};

/// Empties a namespace that is being deleted, and removes it once nothing is left.
pub async fn settle(server: &Arc<Server>, name: &str) {
    let Some(kind) = server.kinds.find("", "v1", "namespaces") else { return };
    let key = kind.key(None, name);
    let Some(entry) = server.log.get(&key) else { return };
    let Ok(object) = open(&kind, &entry) else { return };
    if !is_deleting(&object) {
        return;
    }
    let kinds = namespaced(server);
    for kind in &kinds {
        delete_all(server, kind, Some(name)).await;
    }
    let empty = |kind: &Arc<Kind>| {
        let listed = server.log.list(&kind.prefix(Some(name)), None);
        listed.is_ok_and(|snapshot| snapshot.entries.is_empty())
    };
    if kinds.iter().all(empty) && meta_list(&object, "finalizers").is_empty() {
        let write = Write { key, expect: Expect::Version(entry.version), value: None };
        // Someone who changed it meanwhile settles it again.
        let _ = server.log.write(write).await;
    }
}

/// Every kind that lives in namespaces, in one of its versions.
fn namespaced(server: &Server) -> Vec<Arc<Kind>> {
    let mut seen = BTreeSet::new();
    let kinds = server.kinds.all().into_iter().filter(|kind| kind.namespaced);
    kinds.filter(|kind| seen.insert(kind.resource())).collect()
}
