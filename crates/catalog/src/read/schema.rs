//! A schema as it is kept, with the names of its fields.

use crate::json::{canonical, compress};
use crate::record::{KindDocument, Schema};
use crate::stored::{name_schema, pack_document, schemas_of};
use oci::Digest;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Names of fields that are kept of one schema.
const FIELDS_MAX: usize = 4000;
/// The longest name that is kept.
const FIELD_SIZE_MAX: usize = 128;

/// A document that defines a kind, and its schemas, each as it is kept. What is left of the document
/// names its schemas by their digests.
pub(crate) fn pack_kind(document: &mut Json) -> Option<(KindDocument, Vec<Schema>)> {
    let mut schemas = Vec::new();
    for place in schemas_of(document) {
        let schema = pack_schema(place.take())?;
        *place = name_schema(&schema.digest);
        schemas.push(schema);
    }
    Some((pack_document(document.clone())?, schemas))
}

/// A schema by the digest of its canonical form.
fn pack_schema(json: Json) -> Option<Schema> {
    let fields = field_names(&json);
    let bytes = canonical(json);
    let digest = Digest::of(&bytes).to_string();
    let compressed = compress(&bytes).ok()?;
    Some(Schema { digest, compressed, fields })
}

/// The names of all fields of a schema, in lower case, each once.
pub(crate) fn field_names(schema: &Json) -> Vec<String> {
    let mut fields = BTreeSet::new();
    collect_fields(schema, &mut fields);
    fields.into_iter().collect()
}

/// Collects names of fields; documents nest no deeper than YAML is read.
fn collect_fields(schema: &Json, fields: &mut BTreeSet<String>) {
    let Json::Object(keywords) = schema else { return };
    let properties = keywords.get("properties").and_then(Json::as_object);
    for (name, field) in properties.into_iter().flatten() {
        if fields.len() < FIELDS_MAX && name.len() <= FIELD_SIZE_MAX {
            fields.insert(name.to_lowercase());
        }
        collect_fields(field, fields);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = keywords.get(keyword) {
            collect_fields(inner, fields);
        }
    }
}
