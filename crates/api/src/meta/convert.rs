//! Any dialect to `meta.pkg.crossplane.io/v1`.
//!
//! Among the dialects of today's group only the version's name differs. The first format kept
//! two things elsewhere: `spec.crossplane` was the constraint itself, and `permissionRequests`
//! stood beside `controller` instead of inside. Both move; everything else stays untouched.

use super::Dialect;
use serde_json::{Map, Value as Json, json};

/// The document in `v1`. It has been read as `dialect` before, so known fields have their types.
pub(super) fn to_v1(document: &Json, dialect: Dialect) -> Json {
    let mut converted = document.clone();
    let Some(root) = converted.as_object_mut() else {
        return converted;
    };
    root.insert("apiVersion".to_owned(), json!(Dialect::V1.api_version()));
    if dialect == Dialect::First
        && let Some(spec) = root.get_mut("spec").and_then(Json::as_object_mut)
    {
        nest_crossplane(spec);
        nest_permission_requests(spec);
    }
    converted
}

fn nest_crossplane(spec: &mut Map<String, Json>) {
    if let Some(version) = spec.get_mut("crossplane").filter(|field| field.is_string()) {
        *version = json!({ "version": version.take() });
    }
}

fn nest_permission_requests(spec: &mut Map<String, Json>) {
    if !spec.get("permissionRequests").is_some_and(Json::is_array) {
        return;
    }
    // `shift_remove` keeps the order of the other fields.
    let Some(Json::Array(rules)) = spec.shift_remove("permissionRequests") else {
        return;
    };
    let controller = spec.entry("controller").or_insert(Json::Null);
    if controller.is_null() {
        *controller = json!({});
    }
    if let Some(fields) = controller.as_object_mut() {
        let inside = fields.entry("permissionRequests").or_insert(Json::Null);
        match inside {
            Json::Array(existing) => existing.extend(rules),
            other => *other = Json::Array(rules),
        }
    }
}
