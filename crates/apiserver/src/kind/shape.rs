//! What objects of a kind may look like: for pruning, defaulting and checking, and for
//! knowing who owns which field.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::Kind;
use apply::patch::strategic::Meta;
use apply::types::Schema;
use schema::columns::Columns;
use schema::{FieldError, Malformed, Root, Structural};

/// The shapes of built-in kinds, as the real server describes them. Written by the
/// differential test, which also checks that it is still true.
static OPENAPI: &str = include_str!("../../data/openapi.json");

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(OPENAPI).unwrap_or_else(|_| json!({})));

/// Where metadata is described.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// How deep built-in shapes are unfolded; below, anything goes.
const DEPTH_MAX: usize = 12;

/// The shape of a kind in one version.
#[derive(Debug)]
pub struct Shape {
    structural: Structural,
    types: Schema,
    columns: Option<Columns>,
    declared: Value,
    custom: bool,
}

/// A shape that is made when it is first needed: most kinds never are.
#[derive(Clone)]
pub struct LazyShape(Arc<LazyLock<Shape, Box<dyn FnOnce() -> Shape + Send + Sync>>>);

impl std::fmt::Debug for LazyShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LazyShape")
    }
}

impl std::ops::Deref for LazyShape {
    type Target = Shape;

    fn deref(&self) -> &Shape {
        &self.0
    }
}

impl LazyShape {
    fn new(make: impl FnOnce() -> Shape + Send + Sync + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// The shape of a built-in kind.
    pub fn builtin(api_version: String, kind: String) -> Self {
        Self::new(move || builtin(&api_version, &kind))
    }

    /// The shape that one version of a definition declares. The text is the log's own: a
    /// thousand definitions that nobody uses cost nothing more.
    pub fn custom(definition: Bytes, version: String) -> Self {
        Self::new(move || {
            let definition: Value = serde_json::from_slice(&definition).unwrap_or_default();
            let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
            let mut versions = versions.into_iter().flatten();
            let found = versions.find(|one| one.get("name") == Some(&json!(version)));
            let preserve = definition.pointer("/spec/preserveUnknownFields") == Some(&json!(true));
            custom(found.unwrap_or(&Value::Null), preserve)
        })
    }
}

fn builtin(api_version: &str, kind: &str) -> Shape {
    let empty = Map::new();
    let components = DOCUMENT.get("schemas").and_then(Value::as_object).unwrap_or(&empty);
    let name = component(api_version, kind);
    let unfolded = unfold(components, &json!({"$ref": format!("#/{name}")}), 0);
    Shape {
        structural: Structural::compile_stored(&mut schema::Pool::default(), &unfolded),
        types: Schema::from_components(components, name),
        columns: None,
        declared: Value::Null,
        custom: false,
    }
}

/// How the fields of a built-in kind are merged by strategic merge patches.
pub(crate) fn merging(api_version: &str, kind: &str) -> Meta<'static> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let components = DOCUMENT.get("schemas").and_then(Value::as_object).unwrap_or(&EMPTY);
    Meta::new(components, component(api_version, kind))
}

/// The first value in an object that is not of the type its field has. Of a custom kind that is
/// metadata: all else is its schema's.
pub(crate) fn fault(kind: &Kind, object: &Value) -> Option<String> {
    if kind.custom {
        return kind.shape.structural.find_metadata_fault(object);
    }
    let components = DOCUMENT.get("schemas").and_then(Value::as_object)?;
    super::typed::fault(components, component(&kind.api_version(), &kind.kind), object)
}

/// The first value in the options of a deletion that is not of the type its field has.
pub(crate) fn find_options_fault(options: &Value) -> Option<String> {
    // Not in the document: they are not stored, and no client applies them.
    static COMPONENTS: LazyLock<Value> = LazyLock::new(|| {
        let text = || json!({"type": "string"});
        json!({
            format!("{META}DeleteOptions"): {"type": "object", "properties": {
                "dryRun": {"type": "array", "items": text()},
                "gracePeriodSeconds": {"type": "integer", "format": "int64"},
                "orphanDependents": {"type": "boolean"},
                "preconditions": {"$ref": format!("#/components/schemas/{META}Preconditions")},
                "propagationPolicy": text(),
            }},
            format!("{META}Preconditions"): {"type": "object", "properties": {
                "resourceVersion": text(), "uid": text(),
            }},
        })
    });
    super::typed::fault(COMPONENTS.as_object()?, &format!("{META}DeleteOptions"), options)
}

/// Every description there is, by name.
fn described() -> impl Iterator<Item = (&'static String, &'static Value)> {
    DOCUMENT.get("schemas").and_then(Value::as_object).into_iter().flatten()
}

/// Every object says what it is and has metadata, whatever its definition says.
fn identify(schema: &mut Value) {
    let texts = [("apiVersion", crate::openapi::API_VERSION), ("kind", crate::openapi::KIND)];
    let properties = schema::object::map_at(schema, "properties");
    for (name, text) in texts {
        properties.insert(name.to_owned(), json!({"type": "string", "description": text}));
    }
    let reference = json!([{"$ref": format!("#/components/schemas/{META}ObjectMeta")}]);
    let metadata = json!({"description": crate::openapi::METADATA, "allOf": reference});
    properties.insert("metadata".to_owned(), metadata);
}

/// The name under which a built-in kind is described.
fn component(api_version: &str, kind: &str) -> &'static str {
    let kinds = DOCUMENT.get("kinds");
    let name = kinds.and_then(|kinds| kinds.get(format!("{api_version}/{kind}")));
    name.and_then(Value::as_str).unwrap_or_default()
}

/// A schema without references; what refers to itself is open at some depth.
fn unfold(components: &Map<String, Value>, schema: &Value, depth: usize) -> Value {
    let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    if let Some(reference) = reference.and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let Some(target) = components.get(name).filter(|_| depth < DEPTH_MAX) else {
            return open();
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        if ["JSONSchemaProps", "JSON"].contains(&last) {
            return json!({"x-kubernetes-preserve-unknown-fields": true});
        }
        return unfold(components, target, depth.saturating_add(1));
    }
    let mut out = Map::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        let unfolded = match (key.as_str(), value) {
            ("properties", Value::Object(map)) => map
                .iter()
                .map(|(name, one)| (name.clone(), unfold(components, one, depth)))
                .collect::<Map<String, Value>>()
                .into(),
            ("items" | "additionalProperties", Value::Object(_)) => {
                unfold(components, value, depth)
            }
            ("type" | "x-kubernetes-preserve-unknown-fields", _) => value.clone(),
            _ => continue,
        };
        out.insert(key.clone(), unfolded);
    }
    let bare = out.get("type") == Some(&json!("object")) && out.len() == 1;
    if bare || out.is_empty() {
        out.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
    Value::Object(out)
}

fn custom(version: &Value, preserve: bool) -> Shape {
    let schema = version.pointer("/schema/openAPIV3Schema");
    let mut open = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    if preserve && let Value::Object(map) = &mut open {
        map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
    Shape {
        structural: Structural::compile_stored(&mut schema::Pool::default(), &open),
        types: Schema::from_crd(schema, preserve),
        columns: Some(Columns::compile(version)),
        declared: open,
        custom: true,
    }
}

impl Shape {
    /// Drops what the kind does not know, and each `null` that means nothing; returns the
    /// paths of the former.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let root = if self.custom { Root::Resource } else { Root::Value };
        let mut unknown = Vec::new();
        if self.custom {
            // The typed form leaves out a zero that clients see.
            let grace = object.pointer("/metadata/deletionGracePeriodSeconds").cloned();
            unknown.extend(self.structural.coerce(object, Malformed::Drop).unwrap_or_default());
            if let Some(grace) = grace.filter(Value::is_i64) {
                schema::object::metadata_mut(object)
                    .insert("deletionGracePeriodSeconds".to_owned(), grace);
            }
        }
        unknown.extend(self.structural.prune(object, root));
        if self.custom {
            self.structural.drop_nulls(object);
        }
        unknown
    }

    /// Fills in what the schema says when nobody said anything.
    pub fn default(&self, object: &mut Value) {
        if self.custom {
            self.structural.fill(object);
        }
    }

    /// What is wrong with an object of a custom kind, and what was wrong before and is
    /// forgiven.
    pub fn check(
        &self,
        new: &Value,
        old: Option<&Value>,
        status_only: bool,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        if !self.custom {
            return Default::default();
        }
        let mut wrong = match (old, status_only) {
            (Some(old), true) => self.structural.validate_status(new, old),
            _ => self.structural.validate(new, old),
        };
        if let Some(blocked) = self.structural.rules_blocked(&wrong) {
            wrong.push(blocked);
            return (wrong, Vec::new());
        }
        if !self.structural.has_rules() {
            return (wrong, Vec::new());
        }
        let judged = self.structural.validate_rules(new, old);
        wrong.extend(judged.errors);
        (wrong, judged.forgiven)
    }

    /// Puts what this describes into the components of an `OpenAPI` document.
    pub fn describe(&self, kind: &Kind, schemas: &mut Map<String, Value>) {
        let mark = json!([crate::openapi::group_version_kind(kind)]);
        if self.custom {
            let mut schema = self.declared.clone();
            schema["x-kubernetes-group-version-kind"] = mark;
            identify(&mut schema);
            schemas.insert(crate::openapi::component(kind), schema);
            for (name, schema) in described() {
                if name.starts_with(META) {
                    schemas.entry(name).or_insert_with(|| schema.clone());
                }
            }
            return;
        }
        for (name, schema) in described() {
            schemas.entry(name).or_insert_with(|| schema.clone());
        }
        if let Some(schema) = schemas.get_mut(component(&kind.api_version(), &kind.kind)) {
            schema["x-kubernetes-group-version-kind"] = mark;
        }
    }

    /// What merging knows of the kind.
    pub fn types(&self) -> &Schema {
        &self.types
    }

    /// The printed columns of a custom kind.
    pub fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }
}
