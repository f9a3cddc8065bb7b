//! Documents as they are kept: their schemas, which are most of them, lie elsewhere by digest.

use crate::json::{canonical, compress, decompress};
use crate::record::KindDocument;
use oci::Digest;
use serde_json::{Value as Json, json};
use std::io;

/// The key that stands for a schema.
const REFERENCE: &str = "x-apron-schema";

/// A document whose schemas are named only.
pub(crate) fn pack_document(document: Json) -> Option<KindDocument> {
    let bytes = canonical(document);
    let digest = Digest::of(&bytes).to_string();
    Some(KindDocument { digest, compressed: compress(&bytes).ok()? })
}

/// What stands for a schema.
pub(crate) fn name_schema(digest: &str) -> Json {
    json!({ REFERENCE: digest })
}

/// The digest of the schema that something stands for.
pub(crate) fn named_schema(place: &Json) -> Option<&str> {
    place.get(REFERENCE).and_then(Json::as_str)
}

/// The document as it was, with the schemas that `find` has.
pub(crate) fn unpack_document<E: From<io::Error> + From<serde_json::Error>>(
    compressed: &[u8],
    mut find: impl FnMut(&str) -> Result<Option<Json>, E>,
) -> Result<Json, E> {
    let mut document: Json = serde_json::from_slice(&decompress(compressed)?)?;
    for schema in schemas_of(&mut document) {
        if let Some(digest) = named_schema(schema).map(str::to_owned) {
            *schema = find(&digest)?.unwrap_or_default();
        }
    }
    Ok(document)
}

/// The places of a definition where schemas are.
pub(crate) fn schemas_of(document: &mut Json) -> Vec<&mut Json> {
    let Some(spec) = document.get_mut("spec").and_then(Json::as_object_mut) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    for (key, value) in spec {
        match key.as_str() {
            "validation" => places.extend(value.get_mut("openAPIV3Schema")),
            "versions" => {
                let versions = value.as_array_mut().into_iter().flatten();
                places.extend(versions.filter_map(|it| it.pointer_mut("/schema/openAPIV3Schema")));
            }
            _ => {}
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_document_comes_back_with_its_schemas() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let document = json!({"kind": "X", "spec": {
            "validation": {"openAPIV3Schema": {"type": "object"}},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}, {"name": "v2"}],
        }});
        let (packed, schemas) = crate::read::pack_kind(&mut document.clone()).unwrap();
        let known: BTreeMap<String, Json> =
            schemas.into_iter().map(|it| (it.digest.clone(), it.to_json().unwrap())).collect();
        let find = |digest: &str| Ok::<_, crate::IndexError>(known.get(digest).cloned());
        assert_eq!(unpack_document(&packed.compressed, find).unwrap(), document);
    }
}
