//! The roles and bindings of a new cluster are the real server's own.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::peers::{ControlPlane, TOKEN};

/// Compares `data/rbac.json` with what the real server made; writes it anew when it differs.
pub(crate) async fn check(client: &reqwest::Client, plane: &ControlPlane) {
    let mut lines = Vec::new();
    for plural in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        let url = format!(
            "{}/apis/rbac.authorization.k8s.io/v1/{plural}\
             ?labelSelector=kubernetes.io/bootstrapping=rbac-defaults",
            plane.url
        );
        let answer = client.get(url).bearer_auth(TOKEN).send().await.expect("a list");
        let list: Value =
            serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON");
        let kind = list["kind"].as_str().expect("a kind").trim_end_matches("List").to_owned();
        let items = list["items"].as_array().expect("items");
        lines.extend(items.iter().map(|item| reduced(&kind, item).to_string()));
    }
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/rbac.json");
    if fs_err::read_to_string(&path).unwrap_or_default() != text {
        fs_err::write(&path, text).expect("the file is written");
        panic!("data/rbac.json was out of date and is written anew: look at it and commit it");
    }
}

/// What somebody would write to have this object.
fn reduced(kind: &str, item: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = item["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
    });
    let gathered = item.get("aggregationRule").is_some();
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if let Some(value) = item.get(field).filter(|_| !(gathered && field == "rules")) {
            object[field] = value.clone();
        }
    }
    object
}
