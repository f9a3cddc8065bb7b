//! The roles and bindings that every cluster has. They are made where they are missing,
//! and what was taken from them is given back at every start, unless an object says
//! that it wants to be left alone. What was added to them stays.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::rule::{Rule, missing};
use crate::Server;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::rest::Own;
use schema::object::{map_at, meta_text, metadata, metadata_mut};

/// Objects as a new cluster has them; the tests hold them against a real one.
const DOCUMENT: &str = include_str!("../../data/rbac.json");
/// `"false"` says: leave me alone.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const MANAGER: &str = "kube-apiserver";

/// Makes or mends all of them.
pub(crate) async fn furnish(server: &Arc<Server>) -> Result<(), Failure> {
    // All at once, so that they share their way to the disk.
    let mut document: Vec<Value> = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document.extend(server.options.usage.as_ref().map(|_| workload::usage::usage_reader_role()));
    let writes = document.iter().map(|wanted| ensure(server, wanted));
    futures::future::try_join_all(writes).await?;
    Ok(())
}

async fn ensure(server: &Arc<Server>, wanted: &Value) -> Result<(), Failure> {
    let plural = format!(
        "{}s",
        wanted.get("kind").and_then(Value::as_str).unwrap_or_default().to_lowercase()
    );
    let Some(kind) = server.kinds.find(super::policy::GROUP, "v1", &plural) else {
        return Ok(());
    };
    let (namespace, name) = (meta_text(wanted, "namespace"), meta_text(wanted, "name"));
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let own = Own::new(&kind, namespace, name).by(MANAGER);
    let Some(found) = own.get(server) else { return own.found(server, wanted.clone()).await };
    if is_protected(&found) {
        return Ok(());
    }
    if found.get("roleRef") != wanted.get("roleRef") {
        return own.replace(server, wanted.clone()).await;
    }
    if mended(&kind, &found, wanted) == found {
        return Ok(());
    }
    own.mend(server, |found| mended(&kind, found, wanted)).await
}

fn is_protected(object: &Value) -> bool {
    let marks = metadata(object).get("annotations");
    marks.and_then(|marks| marks.get(AUTO_UPDATE)) == Some(&json!("false"))
}

/// What is there, with what is missing.
fn mended(kind: &Kind, found: &Value, wanted: &Value) -> Value {
    let mut object = found.clone();
    for field in ["labels", "annotations"] {
        merge(&mut object, wanted, field);
    }
    if kind.kind.ends_with("Binding") {
        add(&mut object, "subjects", list(wanted, "subjects"));
        return object;
    }
    let lost = missing(&Rule::read_all(found), &Rule::read_all(wanted));
    append(&mut object, "rules", lost.iter().map(Rule::write).collect());
    match wanted.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array) {
        Some(selectors) => {
            let rule = map_at(&mut object, "aggregationRule");
            let mut rule = Value::Object(std::mem::take(rule));
            add(&mut rule, "clusterRoleSelectors", selectors.clone());
            object["aggregationRule"] = rule;
        }
        None => {
            if let Value::Object(map) = &mut object {
                map.shift_remove("aggregationRule");
            }
        }
    }
    object
}

/// Adds what `wanted` has in its metadata and `object` has not.
fn merge(object: &mut Value, wanted: &Value, field: &str) {
    let Some(wanted) = metadata(wanted).get(field).and_then(Value::as_object) else { return };
    let slot = metadata_mut(object).entry(field).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(own) = slot else { return };
    for (key, value) in wanted {
        own.entry(key).or_insert_with(|| value.clone());
    }
}

fn list(object: &Value, field: &str) -> Vec<Value> {
    object.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Adds the items that are not there.
fn add(object: &mut Value, field: &str, items: Vec<Value>) {
    let own = list(object, field);
    append(object, field, items.into_iter().filter(|item| !own.contains(item)).collect());
}

fn append(object: &mut Value, field: &str, items: Vec<Value>) {
    if !items.is_empty() {
        let mut all = list(object, field);
        all.extend(items);
        object[field] = json!(all);
    }
}
