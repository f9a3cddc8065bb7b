//! Definitions of `v1beta1`, which API servers no longer take, carried over to `v1`.
//!
//! The aim is that objects keep their meaning: what the old definition accepted and stored, the new
//! one accepts and stores.
//!
//! * What was said once for all versions is said of each.
//! * `v1beta1` kept fields its schema does not know unless `preserveUnknownFields: false` stood
//!   there. `v1` has no such switch, so the schema says it of every object in it.
//! * A root without `type` is given `type: object`: no object is anything else.
//! * A schema that is still not structural cannot be carried over. Any object is accepted then, and
//!   that the checks are lost is told.

use serde_json::{Map, Value as Json, json};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A definition in `v1`, and what was lost on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct BetaDefinition {
    /// The definition in `v1`.
    pub object: Json,
    /// Versions whose objects are no longer checked, each with the reason.
    pub unchecked: Vec<(String, String)>,
}

/// What a definition says of all its versions.
struct CommonParts<'d> {
    schema: Option<&'d Json>,
    subresources: Option<&'d Json>,
    columns: Option<&'d Json>,
    keeps_unknown: bool,
}

/// Carries a definition of `v1beta1` over to `v1`.
pub fn convert_definition(beta: &Json) -> BetaDefinition {
    let empty = Map::new();
    let spec = beta.get("spec").and_then(Json::as_object).unwrap_or(&empty);
    let find = |key: &str| spec.get(key).filter(|value| !value.is_null());
    let common = CommonParts {
        schema: find("validation"),
        subresources: find("subresources"),
        columns: find("additionalPrinterColumns"),
        keeps_unknown: find("preserveUnknownFields") != Some(&json!(false)),
    };
    let mut unchecked = Vec::new();
    let versions: Vec<Json> = list_versions(spec)
        .iter()
        .map(|version| convert_version(version, &common, &mut unchecked))
        .collect();
    let mut made = Map::new();
    for key in ["group", "names"] {
        made.extend(find(key).map(|value| (key.to_owned(), value.clone())));
    }
    let scope = find("scope").cloned().unwrap_or_else(|| json!("Namespaced"));
    made.insert("scope".to_owned(), scope);
    made.insert("versions".to_owned(), Json::Array(versions));
    if let Some(conversion) = find("conversion") {
        made.insert("conversion".to_owned(), convert_conversion(conversion));
    }
    let metadata = beta.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": made,
    });
    BetaDefinition { object, unchecked }
}

/// The versions: those listed, or the only one.
fn list_versions(spec: &Map<String, Json>) -> Vec<Json> {
    let listed = spec.get("versions").and_then(Json::as_array).filter(|all| !all.is_empty());
    match (listed, spec.get("version").filter(|name| !name.is_null())) {
        (Some(listed), _) => listed.clone(),
        (None, Some(name)) => vec![json!({"name": name, "served": true, "storage": true})],
        (None, None) => Vec::new(),
    }
}

fn convert_version(
    version: &Json,
    common: &CommonParts<'_>,
    unchecked: &mut Vec<(String, String)>,
) -> Json {
    let find = |key: &str| version.get(key).filter(|value| !value.is_null());
    let mut made = Map::new();
    for key in ["name", "served", "storage", "deprecated", "deprecationWarning"] {
        made.extend(find(key).map(|value| (key.to_owned(), value.clone())));
    }
    let (schema, lost) = convert_schema(find("schema").or(common.schema), common.keeps_unknown);
    if let Some(why) = lost {
        let name = find("name").and_then(Json::as_str).unwrap_or_default();
        unchecked.push((name.to_owned(), why));
    }
    made.insert("schema".to_owned(), json!({"openAPIV3Schema": schema}));
    if let Some(subresources) = find("subresources").or(common.subresources) {
        made.insert("subresources".to_owned(), subresources.clone());
    }
    if let Some(columns) = find("additionalPrinterColumns").or(common.columns) {
        made.insert("additionalPrinterColumns".to_owned(), convert_columns(columns));
    }
    Json::Object(made)
}

/// The schema in `v1`, and why the one that was there could not be carried over.
fn convert_schema(validation: Option<&Json>, keeps_unknown: bool) -> (Json, Option<String>) {
    let any = || json!({"type": "object", PRESERVE: true});
    let written = validation.and_then(|validation| validation.get("openAPIV3Schema"));
    let Some(written) = written.filter(|schema| schema.is_object()) else {
        return (any(), Some("it has no schema".to_owned()));
    };
    let mut schema = written.clone();
    if let Json::Object(root) = &mut schema
        && root.get("type").and_then(Json::as_str).unwrap_or_default().is_empty()
    {
        root.insert("type".to_owned(), json!("object"));
    }
    if keeps_unknown {
        keep_unknown(&mut schema, true);
    }
    match schema::Structural::compile(&schema) {
        Ok(_) => (schema, None),
        Err(errors) => {
            let why = errors.first().map(ToString::to_string).unwrap_or_default();
            (any(), Some(format!("its schema is not structural: {why}")))
        }
    }
}

/// Says of every object in a schema that fields it does not know are kept.
fn keep_unknown(node: &mut Json, has_metadata: bool) {
    let Json::Object(keywords) = node else { return };
    let is_object = keywords.get("type") == Some(&json!("object"));
    let takes_all = keywords.get("additionalProperties").is_some_and(|value| !value.is_null());
    if is_object && !takes_all {
        keywords.entry(PRESERVE).or_insert(Json::Bool(true));
    }
    let is_embedded = keywords.get("x-kubernetes-embedded-resource") == Some(&json!(true));
    if let Some(Json::Object(properties)) = keywords.get_mut("properties") {
        for (name, property) in properties {
            // What every Kubernetes object has is not a schema's to say.
            let is_common = ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            if !(is_common && (has_metadata || is_embedded)) {
                keep_unknown(property, false);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = keywords.get_mut(key) {
            keep_unknown(below, false);
        }
    }
}

fn convert_columns(columns: &Json) -> Json {
    let Json::Array(columns) = columns else { return columns.clone() };
    let renamed = columns.iter().map(|column| {
        let Json::Object(column) = column else { return column.clone() };
        let rename = |key: &str| if key == "JSONPath" { "jsonPath" } else { key }.to_owned();
        let column = column.iter().map(|(key, value)| (rename(key), value.clone()));
        Json::Object(column.collect())
    });
    renamed.collect()
}

fn convert_conversion(conversion: &Json) -> Json {
    let find = |key: &str| conversion.get(key).filter(|value| !value.is_null()).cloned();
    let strategy = find("strategy").unwrap_or_else(|| json!("None"));
    if strategy != "Webhook" {
        return json!({"strategy": strategy});
    }
    let reviewed = find("conversionReviewVersions").filter(|all| *all != json!([]));
    let mut webhook = Map::new();
    webhook.extend(find("webhookClientConfig").map(|client| ("clientConfig".to_owned(), client)));
    let versions = reviewed.unwrap_or_else(|| json!(["v1beta1"]));
    webhook.insert("conversionReviewVersions".to_owned(), versions);
    json!({"strategy": strategy, "webhook": webhook})
}
