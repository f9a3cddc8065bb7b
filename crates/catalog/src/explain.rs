//! A kind and its fields in words, as `kubectl explain` tells them once the kind is installed.

use crate::record::{Definition, ServedVersion};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// How deep fields are told.
const DEPTH_MAX: usize = 40;
/// Letters of a line of text.
const LINE_LENGTH: usize = 76;

/// A field, and those below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedField {
    /// Its name; that of the kind at the top.
    pub name: String,
    /// What values it takes: `string`, `[]Object`, `map[string]string`.
    #[serde(rename = "type")]
    pub kind_of_value: String,
    /// Whether it has to be there.
    pub required: bool,
    /// What its author says about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The only values that it takes; any if empty.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Json>,
    /// What it is if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// The fields below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Self>,
}

/// Why it is not known what is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotExplained {
    /// No kind is called so.
    #[error("no package brings {0}")]
    Kind(String),
    /// Several are; these.
    #[error("several kinds are called `{0}`")]
    Ambiguous(String, Vec<String>),
    /// The kind has other versions.
    #[error("{0} has no version {1}")]
    Version(String, String, Vec<String>),
    /// There is no such field; these are there.
    #[error("there is no field `{0}`")]
    Field(String, Vec<String>),
}

/// The one kind that a text begins with, and the fields that follow: `Bucket.spec.forProvider`, or
/// `buckets.s3.example.org.spec`.
pub fn choose_kind(
    text: &str,
    known: Vec<Definition>,
) -> Result<(Definition, Vec<String>), NotExplained> {
    let (name, rest) = text.split_once('.').unwrap_or((text, ""));
    let fields =
        |rest: &str| rest.split('.').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    let mut called: Vec<Definition> = known.into_iter().filter(|it| it.is_called(name)).collect();
    let below = |definition: &Definition| {
        let rest = rest.strip_prefix(definition.group.as_str())?;
        (rest.is_empty() || rest.starts_with('.')).then(|| fields(rest))
    };
    if let Some(at) = called.iter().position(|definition| below(definition).is_some()) {
        let definition = called.swap_remove(at);
        let fields = below(&definition).unwrap_or_default();
        return Ok((definition, fields));
    }
    match called.len() {
        0 => Err(NotExplained::Kind(name.to_owned())),
        1 => Ok((called.swap_remove(0), fields(rest))),
        _ => {
            let names = called.into_iter().map(|it| it.name).collect();
            Err(NotExplained::Ambiguous(name.to_owned(), names))
        }
    }
}

/// The version that is asked for, with its group or without; else the one that objects are stored in.
pub fn choose_version<'kind>(
    definition: &'kind Definition,
    wanted: Option<&str>,
) -> Result<&'kind ServedVersion, NotExplained> {
    let wanted = wanted.map(|text| text.rsplit('/').next().unwrap_or(text));
    let versions = &definition.versions;
    let found = match wanted {
        Some(name) => definition.version(name),
        None => versions.iter().find(|it| it.storage).or(versions.first()),
    };
    found.ok_or_else(|| {
        let names = versions.iter().map(|it| it.name.clone()).collect();
        let wanted = wanted.unwrap_or("at all").to_owned();
        NotExplained::Version(definition.name.clone(), wanted, names)
    })
}

/// What a schema says about a field, and about the fields below it; all the way down if that is wanted.
pub fn explain_field(
    kind: &str,
    schema: &Json,
    path: &[String],
    is_recursive: bool,
) -> Result<ExplainedField, NotExplained> {
    let root = with_common_fields(schema);
    let (mut name, mut place, mut required) = (kind, &root, false);
    for part in path {
        let holder = fields_holder(place);
        let field = holder.get("properties").and_then(|it| it.get(part));
        let Some(field) = field else {
            let known = properties_of(holder).map(|(name, _)| name.clone()).collect();
            return Err(NotExplained::Field(part.clone(), known));
        };
        (required, name, place) = (requires_field(holder, part), part.as_str(), field);
    }
    let depth = if is_recursive { DEPTH_MAX } else { 1 };
    Ok(describe_field(name, place, required, depth))
}

/// A schema with the fields that every object has, where it leaves them out.
fn with_common_fields(schema: &Json) -> Json {
    let mut schema = schema.clone();
    let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) else {
        return schema;
    };
    let text = |about: &str| json!({"type": "string", "description": about});
    for (name, field) in [
        ("apiVersion", text("The group and version that the object is written in.")),
        ("kind", text("What the object is.")),
        (
            "metadata",
            json!({"type": "object", "description": "The name of the object, its labels and annotations."}),
        ),
    ] {
        properties.entry(name).or_insert(field);
    }
    properties.sort_keys();
    schema
}

/// Where the fields of a value are: of a list or map, in what it holds.
fn fields_holder(schema: &Json) -> &Json {
    let mut place = schema;
    for _ in 0..DEPTH_MAX {
        let inner = ["items", "additionalProperties"].into_iter().find_map(|key| place.get(key));
        match inner.filter(|it| it.is_object()) {
            Some(inner) => place = inner,
            None => break,
        }
    }
    place
}

fn properties_of(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

fn requires_field(schema: &Json, name: &str) -> bool {
    let required = schema.get("required").and_then(Json::as_array);
    required.is_some_and(|names| names.iter().any(|it| it == name))
}

fn describe_field(name: &str, schema: &Json, required: bool, depth: usize) -> ExplainedField {
    let holder = fields_holder(schema);
    let below = properties_of(holder).filter(|_| depth > 0);
    let below = below
        .map(|(name, field)| describe_field(name, field, requires_field(holder, name), depth - 1));
    ExplainedField {
        name: name.to_owned(),
        kind_of_value: kind_of_value(schema),
        required,
        description: schema
            .get("description")
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned(),
        values: schema.get("enum").and_then(Json::as_array).cloned().unwrap_or_default(),
        default: schema.get("default").cloned(),
        fields: below.collect(),
    }
}

/// What values a schema takes, as kubectl writes it.
fn kind_of_value(schema: &Json) -> String {
    let (mut place, mut text) = (schema, String::new());
    for _ in 0..DEPTH_MAX {
        if let Some(items) = place.get("items").filter(|it| it.is_object()) {
            text.push_str("[]");
            place = items;
        } else if let Some(values) = place.get("additionalProperties").filter(|it| it.is_object()) {
            text.push_str("map[string]");
            place = values;
        } else {
            break;
        }
    }
    let is_either = place.get("x-kubernetes-int-or-string").is_some_and(|it| it == true);
    match place.get("type").and_then(Json::as_str) {
        _ if is_either => text.push_str("IntOrString"),
        Some("object") | None => text.push_str("Object"),
        Some(other) => text.push_str(other),
    }
    text
}

/// The explanation as `kubectl explain` lays it out.
pub fn draw_explanation(
    definition: &Definition,
    version: &str,
    field: &ExplainedField,
    path: &[String],
    is_recursive: bool,
) -> Vec<String> {
    let mut lines = vec![
        format!("GROUP:      {}", definition.group),
        format!("KIND:       {}", definition.kind),
        format!("VERSION:    {version}"),
        String::new(),
    ];
    if !path.is_empty() {
        let (name, kind) = (&field.name, &field.kind_of_value);
        lines.extend([format!("FIELD: {name} <{kind}>{}", mark_of(field)), String::new()]);
    }
    lines.push("DESCRIPTION:".to_owned());
    draw_text(&field.description, &mut lines);
    draw_values(field, "", &mut lines);
    if !field.fields.is_empty() {
        lines.extend([String::new(), "FIELDS:".to_owned()]);
        draw_fields(&field.fields, 1, is_recursive, &mut lines);
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn draw_fields(
    fields: &[ExplainedField],
    level: usize,
    is_recursive: bool,
    lines: &mut Vec<String>,
) {
    for field in fields {
        let space = "  ".repeat(level);
        let (name, kind) = (&field.name, &field.kind_of_value);
        lines.push(format!("{space}{name}\t<{kind}>{}", mark_of(field)));
        draw_values(field, &space, lines);
        if is_recursive {
            draw_fields(&field.fields, level + 1, is_recursive, lines);
        } else {
            draw_text(&field.description, lines);
            lines.push(String::new());
        }
    }
}

fn mark_of(field: &ExplainedField) -> &'static str {
    if field.required { " -required-" } else { "" }
}

fn draw_values(field: &ExplainedField, space: &str, lines: &mut Vec<String>) {
    if !field.values.is_empty() {
        let values: Vec<String> = field.values.iter().map(plain_value).collect();
        lines.push(format!("{space}enum: {}", values.join(", ")));
    }
    if let Some(default) = &field.default {
        lines.push(format!("{space}default: {}", plain_value(default)));
    }
}

fn plain_value(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text in lines of a length that people read; control characters are no text.
fn draw_text(text: &str, lines: &mut Vec<String>) {
    if text.trim().is_empty() {
        lines.push("    <empty>".to_owned());
        return;
    }
    for paragraph in text.trim().lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let word: String = word.chars().filter(|letter| !letter.is_control()).collect();
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE_LENGTH {
                lines.push(format!("    {}", std::mem::take(&mut line)));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(format!("    {line}").trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Origin;

    fn bucket(group: &str) -> Definition {
        let version = |name: &str, storage| ServedVersion {
            name: name.to_owned(),
            served: true,
            storage,
            deprecated: false,
            schema: None,
        };
        Definition {
            name: format!("buckets.{group}"),
            group: group.to_owned(),
            kind: "Bucket".to_owned(),
            plural: "buckets".to_owned(),
            singular: "bucket".to_owned(),
            short_names: vec!["bk".to_owned()],
            scope: "Cluster".to_owned(),
            origin: Origin::Crd,
            versions: vec![version("v1alpha1", false), version("v1", true)],
        }
    }

    fn schema() -> Json {
        json!({"type": "object", "description": "A place for objects.", "properties": {
            "spec": {"type": "object", "required": ["region"], "properties": {
                "region": {"type": "string", "description": "Where it is.", "enum": ["eu", "us"]},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "rules": {"type": "array", "items": {"type": "object", "properties": {
                    "days": {"x-kubernetes-int-or-string": true, "default": 3}}}},
            }},
        }})
    }

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_kind_is_called_by_any_of_its_names_with_its_group_or_without() {
        let known = || vec![bucket("s3.example.org")];
        for (text, fields) in [
            ("Bucket", vec![]),
            ("bk.spec.tags", vec!["spec", "tags"]),
            ("buckets.s3.example.org", vec![]),
            ("bucket.s3.example.org.spec", vec!["spec"]),
        ] {
            let (definition, found) = choose_kind(text, known()).unwrap();
            assert_eq!(
                (definition.kind.as_str(), found),
                ("Bucket", fields.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
        let two = || vec![bucket("s3.example.org"), bucket("gcs.example.org")];
        assert!(matches!(choose_kind("Bucket.spec", two()), Err(NotExplained::Ambiguous(..))));
        assert!(matches!(choose_kind("Queue", two()), Err(NotExplained::Kind(_))));
        let (chosen, _) = choose_kind("Bucket.gcs.example.org.spec", two()).unwrap();
        assert_eq!(chosen.group, "gcs.example.org");
        assert_eq!(choose_version(&chosen, None).unwrap().name, "v1");
        assert_eq!(choose_version(&chosen, Some("x/v1alpha1")).unwrap().name, "v1alpha1");
        assert!(matches!(choose_version(&chosen, Some("v9")), Err(NotExplained::Version(..))));
    }

    #[test]
    fn fields_are_told_as_kubectl_tells_them() {
        let told = explain_field("Bucket", &schema(), &path("spec"), false).unwrap();
        let lines = draw_explanation(&bucket("s3.example.org"), "v1", &told, &path("spec"), false);
        let expected = "GROUP:      s3.example.org\nKIND:       Bucket\nVERSION:    v1\n\n\
            FIELD: spec <Object>\n\nDESCRIPTION:\n    <empty>\n\nFIELDS:\n  \
            region\t<string> -required-\n  enum: eu, us\n    Where it is.\n\n  \
            tags\t<map[string]string>\n    <empty>\n\n  rules\t<[]Object>\n    <empty>";
        assert_eq!(lines.join("\n"), expected);
        let deep = explain_field("Bucket", &schema(), &path("spec.rules.days"), false).unwrap();
        assert_eq!((deep.kind_of_value.as_str(), deep.default), ("IntOrString", Some(json!(3))));
        let missing = explain_field("Bucket", &schema(), &path("spec.zone"), false).unwrap_err();
        let NotExplained::Field(name, known) = missing else { unreachable!() };
        assert_eq!((name.as_str(), known.join(" ").as_str()), ("zone", "region tags rules"));
    }

    #[test]
    fn all_fields_are_told_down_to_the_last_and_common_ones_are_there() {
        let told = explain_field("Bucket", &schema(), &[], true).unwrap();
        let names: Vec<&str> = told.fields.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["apiVersion", "kind", "metadata", "spec"]);
        let lines = draw_explanation(&bucket("s3.example.org"), "v1", &told, &[], true).join("\n");
        assert!(lines.contains("\n    rules\t<[]Object>\n      days\t<IntOrString>"), "{lines}");
    }
}
