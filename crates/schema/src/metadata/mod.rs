//! Object metadata, at the root and in embedded resources
//!
//! The server reads `metadata` into a typed struct and writes it back, so that unknown fields
//! vanish and empty ones with them, and what does not fit is an error in the words of Go's JSON
//! decoder. What it holds is then validated ([`check`]), the same everywhere.

use serde_json::{Map, Value};

mod check;

pub use check::{NameRule, Scope};
pub(crate) use check::{check_embedded, check_meta, check_meta_update};

use super::clock;
use super::error::{FieldError, Path};
use super::node::{Additional, Flags, Node};
use super::text;
use crate::object::json_type_name;

/// How a field of the struct is read.
enum Type {
    /// A string; Go's name of its type.
    Text(&'static str),
    Int,
    Bool,
    Time,
    Texts,
    TextMap,
    Structs(&'static Struct),
    Raw,
}

/// A struct: its name, its fields, and which of them are written even when empty.
struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Type)],
    always: &'static [&'static str],
}

static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("name", Type::Text("string")),
        ("generateName", Type::Text("string")),
        ("namespace", Type::Text("string")),
        ("selfLink", Type::Text("string")),
        ("uid", Type::Text("types.UID")),
        ("resourceVersion", Type::Text("string")),
        ("generation", Type::Int),
        ("creationTimestamp", Type::Time),
        ("deletionTimestamp", Type::Time),
        ("deletionGracePeriodSeconds", Type::Int),
        ("labels", Type::TextMap),
        ("annotations", Type::TextMap),
        ("ownerReferences", Type::Structs(&OWNER_REFERENCE)),
        ("finalizers", Type::Texts),
        ("managedFields", Type::Structs(&MANAGED_FIELDS)),
    ],
    always: &[],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Type::Text("string")),
        ("kind", Type::Text("string")),
        ("name", Type::Text("string")),
        ("uid", Type::Text("types.UID")),
        ("controller", Type::Bool),
        ("blockOwnerDeletion", Type::Bool),
    ],
    always: &["apiVersion", "kind", "name", "uid"],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("manager", Type::Text("string")),
        ("operation", Type::Text("v1.ManagedFieldsOperationType")),
        ("apiVersion", Type::Text("string")),
        ("time", Type::Time),
        ("fieldsType", Type::Text("string")),
        ("fieldsV1", Type::Raw),
        ("subresource", Type::Text("string")),
    ],
    always: &[],
};

/// What to do with metadata that does not fit the struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Report it.
    Refuse,
    /// Leave it out.
    Drop,
}

/// Reads a struct: what it holds written back, and the paths of unknown fields. The first
/// misfit in order of name is the error.
fn read(
    kind: &'static Struct,
    map: &Map<String, Value>,
    way: &str,
    unknown: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let mut names: Vec<&String> = map.keys().collect();
    names.sort();
    let mut out = Map::new();
    for name in kind.always {
        out.insert((*name).to_owned(), Value::from(""));
    }
    let mut first = Ok(());
    for name in names {
        let way = if way.is_empty() { name.clone() } else { format!("{way}.{name}") };
        let Some((_, field)) = kind.fields.iter().find(|(field, _)| field == name) else {
            unknown.push(way);
            continue;
        };
        match read_field(kind, field, &map[name], &way, unknown) {
            Ok(Some(value)) => _ = out.insert(name.clone(), value),
            Ok(None) => {}
            Err(error) => first = first.and(Err(error)),
        }
    }
    first.map(|()| out)
}

fn read_field(
    kind: &'static Struct,
    field: &Type,
    value: &Value,
    way: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
    let misfit = |value: &Value, wanted: &str| {
        let found = json_type_name(value);
        format!(
            "json: cannot unmarshal {found} into Go struct field {}.{way} of type {wanted}",
            kind.name
        )
    };
    let text_or_misfit = |value: &Value, wanted: &str| match value {
        Value::Null => Ok(Value::from("")),
        Value::String(_) => Ok(value.clone()),
        other => Err(misfit(other, wanted)),
    };
    if value.is_null() {
        return Ok(None);
    }
    match (field, value) {
        (Type::Text(wanted), _) => {
            text_or_misfit(value, wanted).map(|v| Some(v).filter(|v| v != ""))
        }
        (Type::Int, Value::Number(n)) if n.is_i64() => Ok(Some(value.clone()).filter(|v| *v != 0)),
        (Type::Int, Value::Number(n)) => {
            let digits = text::Num::of(n).plain();
            Err(format!(
                "json: cannot unmarshal number {digits} into Go struct field {}.{way} of type int64",
                kind.name
            ))
        }
        (Type::Int, _) => Err(misfit(value, "int64")),
        (Type::Time, Value::String(text)) => match clock::parse(text) {
            Some(seconds) => Ok(Some(Value::from(clock::format(seconds)))),
            None => Err(unparsable_time(text)),
        },
        (Type::Time, _) => Err(format!(
            "json: cannot unmarshal {} into Go value of type string",
            json_type_name(value)
        )),
        (Type::Texts, Value::Array(items)) => {
            let items: Result<Vec<Value>, String> =
                items.iter().map(|item| text_or_misfit(item, "string")).collect();
            items.map(|items| (!items.is_empty()).then(|| Value::from(items)))
        }
        (Type::Texts, _) => Err(misfit(value, "[]string")),
        (Type::TextMap, Value::Object(map)) => read_text_map(map, |v| text_or_misfit(v, "string")),
        (Type::TextMap, _) => Err(misfit(value, "map[string]string")),
        (Type::Structs(inner), Value::Array(items)) => {
            read_structs(inner, items, way, unknown, misfit)
        }
        (Type::Structs(inner), _) => Err(misfit(value, &format!("[]v1.{}", inner.name))),
        (Type::Bool, Value::Bool(_)) | (Type::Raw, _) => Ok(Some(value.clone())),
        (Type::Bool, _) => Err(misfit(value, "bool")),
    }
}

fn read_text_map(
    map: &Map<String, Value>,
    read: impl Fn(&Value) -> Result<Value, String>,
) -> Result<Option<Value>, String> {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    let map: Result<Map<String, Value>, String> =
        entries.into_iter().map(|(name, value)| Ok((name.clone(), read(value)?))).collect();
    map.map(|map| (!map.is_empty()).then_some(Value::Object(map)))
}

fn read_structs(
    kind: &'static Struct,
    items: &[Value],
    way: &str,
    unknown: &mut Vec<String>,
    misfit: impl Fn(&Value, &str) -> String,
) -> Result<Option<Value>, String> {
    let mut out = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let empty = Map::new();
        let map = match item {
            Value::Object(map) => map,
            Value::Null => &empty,
            other => return Err(misfit(other, &format!("v1.{}", kind.name))),
        };
        let mut below = Vec::new();
        let read = read(kind, map, "", &mut below);
        unknown.extend(below.iter().map(|field| format!("{way}[{i}].{field}")));
        // Inside an element the way to the field has no index.
        out.push(Value::Object(read.map_err(|error| {
            error.replace(&format!("field {}.", kind.name), &format!("field {}.{way}.", kind.name))
        })?));
    }
    Ok((!out.is_empty()).then(|| Value::from(out)))
}

fn unparsable_time(text: &str) -> String {
    let quoted = text::quote(text);
    format!(
        "parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\""
    )
}

/// Reads metadata strictly: written back, with the unknown fields, or Go's complaint.
pub(crate) fn read_meta(metadata: &Value) -> Result<(Map<String, Value>, Vec<String>), String> {
    let mut unknown = Vec::new();
    let map = match metadata {
        Value::Object(map) => map,
        Value::Null => return Ok((Map::new(), unknown)),
        other => {
            let found = json_type_name(other);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
            ));
        }
    };
    read(&OBJECT_META, map, "", &mut unknown).map(|read| (read, unknown))
}

/// Normalises type and object metadata at the root and in embedded resources; returns the paths
/// of unknown metadata fields, sorted.
pub(crate) fn coerce(
    node: &Node,
    value: &mut Value,
    root: bool,
    malformed: Malformed,
) -> Result<Vec<String>, Box<FieldError>> {
    coerce_at(&Path::NIL, node, value, root, malformed)
}

/// The first metadata of a resource that does not fit: what is said of its own is Go's complaint
/// alone, that of embedded resources is told with its place.
pub(crate) fn find_fault(node: &Node, value: &Value) -> Option<String> {
    if let Some(Err(complaint)) = value.get("metadata").map(read_meta) {
        return Some(complaint);
    }
    if !node.has(Flags::HOLDS_EMBEDDED) {
        return None;
    }
    let told = coerce(node, &mut value.clone(), true, Malformed::Refuse).err();
    told.map(|error| error.to_string())
}

/// The same for a value at some path.
pub(crate) fn coerce_at(
    path: &Path,
    node: &Node,
    value: &mut Value,
    root: bool,
    malformed: Malformed,
) -> Result<Vec<String>, Box<FieldError>> {
    let mut unknown = Vec::new();
    coerce_value(path, node, value, root, malformed, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn coerce_value(
    path: &Path,
    node: &Node,
    value: &mut Value,
    root: bool,
    malformed: Malformed,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    if !root && !node.has(Flags::HOLDS_EMBEDDED) {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if root || node.has(Flags::EMBEDDED) {
                coerce_meta(path, map, malformed, unknown)?;
            }
            for (name, value) in map.iter_mut() {
                match (node.property(name), &node.additional) {
                    (Some(schema), _) => {
                        coerce_value(&path.child(name), schema, value, false, malformed, unknown)?;
                    }
                    (None, Additional::Schema(schema)) => {
                        coerce_value(&path.key(name), schema, value, false, malformed, unknown)?;
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.items.as_deref() else { return Ok(()) };
            for (i, item) in items.iter_mut().enumerate() {
                coerce_value(&path.index(i), schema, item, false, malformed, unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_meta(
    path: &Path,
    map: &mut Map<String, Value>,
    malformed: Malformed,
    unknown: &mut Vec<String>,
) -> Result<(), Box<FieldError>> {
    for name in ["apiVersion", "kind"] {
        match map.get(name) {
            None | Some(Value::String(_)) => {}
            Some(_) if malformed == Malformed::Drop => _ = map.shift_remove(name),
            Some(other) => {
                return Err(Box::new(FieldError::invalid(
                    &path.child(name),
                    other.clone(),
                    "must be a string",
                )));
            }
        }
    }
    let Some(metadata) = map.get("metadata") else { return Ok(()) };
    let prefix = path.child("metadata");
    let read = match (read_meta(metadata), malformed, metadata) {
        (Ok(read), _, _) => read,
        (Err(error), Malformed::Refuse, _) => {
            return Err(Box::new(FieldError::invalid(&prefix, metadata.clone(), error)));
        }
        (Err(_), Malformed::Drop, Value::Object(metadata)) => read_each(metadata),
        (Err(_), Malformed::Drop, _) => return Ok(()),
    };
    unknown.extend(read.1.iter().map(|field| format!("{prefix}.{field}")));
    map.insert("metadata".to_owned(), Value::Object(read.0));
    Ok(())
}

/// Reads metadata field by field, without those that do not fit.
fn read_each(metadata: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let mut out = Map::new();
    let mut unknown = Vec::new();
    for (name, value) in metadata {
        let single: Map<String, Value> = [(name.clone(), value.clone())].into_iter().collect();
        if let Ok(read) = read(&OBJECT_META, &single, "", &mut unknown) {
            out.extend(read);
        }
    }
    (out, unknown)
}
