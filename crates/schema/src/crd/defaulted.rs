//! Whether defaults are what they should be
//!
//! A default must survive pruning, hold valid metadata where it is a resource, and satisfy its
//! own schema. Below metadata it is judged as part of the resource around it.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::error::{ERRORS_MAX, FieldError, Path, summary};
use super::super::metadata::{self, Malformed};
use super::super::node::{Node, Pool};
use super::super::prune::{self, Root};
use super::super::structural::{below, flag, properties};
use super::super::validate::{self, Step};
use super::schema::{any, has_default};

/// Checks all defaults of a structural schema.
pub(super) fn check(schema: &Value, path: &Path, pruned: bool, errors: &mut Vec<FieldError>) {
    if !any(schema, &has_default) {
        return;
    }
    walk(&Walk::new(schema, pruned), schema, path, true, errors);
}

/// Whether some default would lose fields to pruning.
pub(super) fn has_unpruned(schema: &Value) -> bool {
    // A default for the whole object that is none cannot be pruned, and counts as clean.
    if schema.get("default").is_some_and(|default| !default.is_null() && !default.is_object()) {
        return false;
    }
    any(schema, &|schema| {
        let Some(default) = schema.get("default").filter(|default| !default.is_null()) else {
            return false;
        };
        let mut value = default.clone();
        prune::prune_below(&compile(schema), &mut value, false);
        value != *default
    })
}

/// Where a default is: the resource around it and the way from there.
struct Walk<'a> {
    resource: &'a Value,
    /// The resource, compiled for the first default that is judged as part of it.
    compiled: Rc<OnceCell<Arc<Node>>>,
    inside_meta: bool,
    pruned: bool,
    /// Field names; `None` for an element of a list.
    way: Vec<Option<&'a str>>,
}

impl<'a> Walk<'a> {
    fn new(resource: &'a Value, pruned: bool) -> Self {
        Self { resource, compiled: Rc::default(), inside_meta: false, pruned, way: Vec::new() }
    }
}

fn walk<'a>(
    walk_: &Walk<'a>,
    schema: &'a Value,
    path: &Path,
    root: bool,
    errors: &mut Vec<FieldError>,
) {
    if errors.len() >= ERRORS_MAX {
        return;
    }
    let resource = root || flag(schema, "x-kubernetes-embedded-resource");
    let own = resource.then(|| Walk::new(schema, walk_.pruned));
    let around = own.as_ref().unwrap_or(walk_);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        if around.inside_meta {
            check_inside(around, schema, default, path, errors);
        } else {
            check_default(around.pruned, schema, (default, resource), path, errors);
        }
    }
    let step = |step: Option<&'a str>, inside_meta: bool| {
        let way = around.way.iter().copied().chain([step]).collect();
        let compiled = Rc::clone(&around.compiled);
        Walk { resource: around.resource, compiled, inside_meta, pruned: around.pruned, way }
    };
    if let Some(items) = below(schema, "items").filter(|items| any(items, &has_default)) {
        walk(&step(None, around.inside_meta), items, &path.child("items"), false, errors);
    }
    // Most properties have no defaults: paths are only spelled out for those that have.
    for (name, property) in properties(schema) {
        if !any(property, &has_default) {
            continue;
        }
        let inside = around.inside_meta || (resource && prune::is_meta(name));
        let path = path.child("properties").key(name);
        walk(&step(Some(name), inside), property, &path, false, errors);
    }
}

fn compile(schema: &Value) -> Arc<Node> {
    Pool::default().compile_part(schema)
}

/// Values against the schema of a default, where mixed types are not looked at.
fn check_values(schema: &Value, default: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let mut schema = schema.clone();
    forget_mixed_types(&mut schema);
    let node = Pool::with_all_formats().compile_part(&schema);
    let outcome = validate::check(&node, default, &Step::Root, None);
    errors.extend(outcome.errors(path));
}

fn forget_mixed_types(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.shift_remove("x-kubernetes-int-or-string");
            map.values_mut().for_each(forget_mixed_types);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_mixed_types),
        _ => {}
    }
}

fn check_default(
    pruned: bool,
    schema: &Value,
    (default, resource): (&Value, bool),
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("default");
    let node = compile(schema);
    if pruned {
        let mut pruned = default.clone();
        let root = if resource { Root::Resource } else { Root::Value };
        prune::prune(&node, &mut pruned, root);
        if pruned != *default {
            errors.push(FieldError::invalid(
                &path,
                default.clone(),
                "must not have unknown fields",
            ));
        }
    }
    let mut value = default.clone();
    if let Err(error) = metadata::coerce_at(&path, &node, &mut value, resource, Malformed::Refuse) {
        return errors.push(*error);
    }
    let mut faults = Vec::new();
    metadata::check_embedded(&node, &value, &path, resource, &mut faults);
    if faults.is_empty() {
        check_values(schema, &value, &path, &mut faults);
    }
    errors.append(&mut faults);
}

fn check_inside(
    around: &Walk<'_>,
    schema: &Value,
    default: &Value,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("default");
    let mut object = around.way.iter().rev().fold(default.clone(), |value, step| match step {
        Some(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
        None => json!([value]),
    });
    if let Some(map) = object.as_object_mut() {
        map.entry("kind").or_insert_with(|| json!("Validation"));
        map.entry("apiVersion").or_insert_with(|| json!("validation/v1"));
    }
    let node = around.compiled.get_or_init(|| compile(around.resource));
    let refuse = |error: &str| {
        let detail = format!("must result in valid metadata: {error}");
        FieldError::invalid(&path, default.clone(), detail)
    };
    if let Err(error) = metadata::coerce(node, &mut object, true, Malformed::Refuse) {
        return errors.push(refuse(&error.to_string()));
    }
    let mut faults = Vec::new();
    metadata::check_embedded(node, &object, &Path::NIL, true, &mut faults);
    if faults.is_empty() {
        check_values(schema, default, &path, errors);
    } else {
        errors.push(refuse(&summary(&faults)));
    }
}
