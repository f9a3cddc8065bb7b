//! A schema as a tree of fields, of which a page shows as much as fits.
//!
//! ```text
//!   schema (JSON) ─► outline: which fields are unfolded, within a budget of bytes ─► HTML
//! ```
//!
//! Fields are unfolded level by level, so that what is near the top is there; below a field that
//! stays folded a link leads to a page of its own. A filter keeps fields whose path has the text in
//! it, and what leads to them.

mod describe;
mod draw;

pub(crate) use draw::{TreePlace, draw_tree};

use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Bytes that a tree may take of a page, as far as that can be told beforehand.
const TREE_SIZE_MAX: usize = 56_000;
/// Bytes of a row without its texts.
const ROW_SIZE: usize = 190;
/// Characters of a description that are shown.
pub(crate) const TEXT_LENGTH_MAX: usize = 320;
/// Fields that a filter may find.
const FOUND_MAX: usize = 150;
/// Fields that a filter looks at.
const LOOKED_MAX: usize = 200_000;

/// A field of a schema.
#[derive(Clone, Debug)]
pub(crate) struct SchemaField<'schema> {
    /// `spec.forProvider.region`; items of lists are `rules[]`, values of maps `labels.*`.
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) schema: &'schema Json,
    pub(crate) is_required: bool,
}

/// Which fields a page shows.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Fields whose fields are shown; the root is the empty path.
    unfolded: BTreeSet<String>,
    /// Fields that are shown; everything below an unfolded one, if there is no filter.
    kept: Option<BTreeSet<String>>,
    /// Fields that are open from the start.
    open: BTreeSet<String>,
    /// How many fields a filter found, and whether it stopped there.
    pub(crate) found: usize,
    pub(crate) is_cut: bool,
}

impl SchemaField<'_> {
    /// Its fields, or those of its items or values.
    pub(crate) fn list_fields(&self) -> Vec<Self> {
        list_fields(self.schema, &self.path)
    }
}

/// The fields of an object, of the items of a list or of the values of a map.
pub(crate) fn list_fields<'schema>(schema: &'schema Json, path: &str) -> Vec<SchemaField<'schema>> {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let field = |(name, schema): (&'schema String, &'schema Json)| SchemaField {
            path: if path.is_empty() { name.clone() } else { format!("{path}.{name}") },
            name: name.clone(),
            schema,
            is_required: required.iter().any(|it| it.as_str() == Some(name)),
        };
        return properties.iter().map(field).collect();
    }
    if schema["items"].is_object() {
        return list_fields(&schema["items"], &format!("{path}[]"));
    }
    if schema["additionalProperties"].is_object() {
        return list_fields(&schema["additionalProperties"], &format!("{path}.*"));
    }
    Vec::new()
}

/// The fields of a kind that people write and read: what every object has is left out.
pub(crate) fn list_top_fields(schema: &Json) -> Vec<SchemaField<'_>> {
    let mut fields = list_fields(schema, "");
    fields.retain(|field| !matches!(field.path.as_str(), "apiVersion" | "kind" | "metadata"));
    fields
}

/// The field at a path.
pub(crate) fn find_field<'schema>(
    schema: &'schema Json,
    path: &str,
) -> Option<SchemaField<'schema>> {
    let mut fields = list_top_fields(schema);
    loop {
        let leads = |field: &SchemaField<'_>| {
            let rest = path.strip_prefix(&field.path)?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest.len())
        };
        let next = fields.into_iter().filter_map(|field| Some((leads(&field)?, field)));
        let (rest, field) = next.min_by_key(|(rest, _)| *rest)?;
        if rest == 0 {
            return Some(field);
        }
        fields = field.list_fields();
    }
}

/// What a page shows of a tree: as much as fits, and surely what leads to `wanted`.
pub(crate) fn outline_fields(roots: &[SchemaField<'_>], wanted: Option<&str>) -> Outline {
    let mut outline = Outline::default();
    let mut left = TREE_SIZE_MAX;
    let mut level: Vec<SchemaField<'_>> = roots.to_vec();
    let mut depth = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for field in &level {
            let fields = field.list_fields();
            let size: usize = fields.iter().map(row_size).sum();
            let is_wanted = wanted.is_some_and(|path| leads_to(&field.path, path));
            if fields.is_empty() || (size > left && !is_wanted) {
                continue;
            }
            left = left.saturating_sub(size);
            outline.unfolded.insert(field.path.clone());
            if is_wanted || (depth < 2 && !field.path.starts_with("status")) {
                outline.open.insert(field.path.clone());
            }
            next.extend(fields);
        }
        level = next;
        depth += 1;
    }
    outline
}

/// What a page shows of a tree that is filtered by a text.
pub(crate) fn filter_fields(roots: &[SchemaField<'_>], text: &str) -> Outline {
    let text = text.trim().to_lowercase();
    let mut outline = Outline { kept: Some(BTreeSet::new()), ..Outline::default() };
    let mut looked = 0;
    for root in roots {
        keep_matching(root, &text, &mut outline, &mut looked);
    }
    outline
}

/// Keeps a field if its path has the text in it, or if a field below it does.
fn keep_matching(
    field: &SchemaField<'_>,
    text: &str,
    outline: &mut Outline,
    looked: &mut usize,
) -> bool {
    *looked += 1;
    if outline.found >= FOUND_MAX || *looked > LOOKED_MAX {
        outline.is_cut = true;
        return false;
    }
    // A text with a dot is a path; one without is a part of the field's own name.
    let place = if text.contains('.') { &field.path } else { &field.name };
    let is_found = place.to_lowercase().contains(text);
    outline.found += usize::from(is_found);
    let mut leads_on = false;
    for below in field.list_fields() {
        leads_on |= keep_matching(&below, text, outline, looked);
    }
    if leads_on {
        outline.unfolded.insert(field.path.clone());
        outline.open.insert(field.path.clone());
    }
    if is_found || leads_on {
        let kept = outline.kept.get_or_insert_default();
        kept.insert(field.path.clone());
    }
    is_found || leads_on
}

/// Whether a path is that of a field or of one below it.
fn leads_to(field: &str, path: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn row_size(field: &SchemaField<'_>) -> usize {
    let text = field.schema["description"].as_str().unwrap_or_default();
    ROW_SIZE + 4 * field.path.len() + text.len().min(TEXT_LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bucket() -> Json {
        json!({"properties": {
            "apiVersion": {"type": "string"},
            "spec": {"required": ["forProvider"], "properties": {
                "forProvider": {"properties": {
                    "region": {"type": "string"},
                    "rules": {"type": "array", "items": {"properties": {"region": {}, "name": {}}}},
                    "labels": {"additionalProperties": {"properties": {"value": {}}}},
                }},
                "for": {"properties": {"x": {}}},
            }},
        }})
    }

    #[test]
    fn fields_are_found_by_their_paths() {
        let schema = bucket();
        for path in [
            "spec",
            "spec.for",
            "spec.for.x",
            "spec.forProvider.region",
            "spec.forProvider.rules",
            "spec.forProvider.rules[].region",
            "spec.forProvider.labels.*.value",
        ] {
            assert_eq!(find_field(&schema, path).unwrap().path, path);
        }
        for path in ["", "spe", "spec.forProvider.none", "apiVersion", "spec.", "spec.forP"] {
            assert!(find_field(&schema, path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_filter_keeps_what_has_the_text_and_what_leads_there() {
        let schema = bucket();
        let outline = filter_fields(&list_top_fields(&schema), "Region");
        assert_eq!(outline.found, 2);
        let kept: Vec<String> = outline.kept.unwrap().into_iter().collect();
        let expected = [
            "spec",
            "spec.forProvider",
            "spec.forProvider.region",
            "spec.forProvider.rules",
            "spec.forProvider.rules[].region",
        ];
        assert_eq!(kept, expected);
        assert_eq!(filter_fields(&list_top_fields(&schema), "forProvider.reg").found, 1);
        assert_eq!(filter_fields(&list_top_fields(&schema), "absent").found, 0);
    }

    #[test]
    fn a_tree_that_is_too_large_is_folded_and_leads_to_what_is_wanted() {
        let wide: serde_json::Map<String, Json> = (0..500)
            .map(|number| (format!("field{number:03}"), json!({"description": "x".repeat(200)})))
            .collect();
        let schema = json!({"properties": {
            "spec": {"properties": {"a": {"properties": wide}, "b": {"properties": {"c": {}}}}},
        }});
        let roots = list_top_fields(&schema);
        let outline = outline_fields(&roots, None);
        let shown: Vec<String> = outline.unfolded.into_iter().collect();
        assert_eq!(shown, ["spec", "spec.b"]);
        let outline = outline_fields(&roots, Some("spec.a.field001"));
        assert!(outline.unfolded.contains("spec.a") && outline.open.contains("spec.a"));
    }
}
