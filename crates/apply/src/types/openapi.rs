//! Reading element types from `OpenAPI`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    Atom, BOOLEAN, Builder, DEDUCED, Field, List, Map, NUMERIC, STRING, Scalar, Schema, TypeRef,
    UNTYPED, UNTYPED_ATOMIC, common,
};

type Json = serde_json::Map<String, Value>;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

impl Schema {
    /// Reads one self-contained `OpenAPI` v3 schema.
    ///
    /// References are resolved in the schema's own `components.schemas` or `definitions`;
    /// `ObjectMeta` is always known.
    pub fn from_openapi(schema: &Value) -> Self {
        static EMPTY: LazyLock<Json> = LazyLock::new(Json::new);
        let components = (schema.pointer("/components/schemas"))
            .or_else(|| schema.get("definitions"))
            .and_then(Value::as_object);
        let mut builder = Builder::new(components.unwrap_or(&EMPTY));
        let root = builder.reference(schema, false);
        builder.finish(root)
    }

    /// Reads a kind from a document's components, by name.
    pub fn from_components(components: &Json, name: &str) -> Self {
        let mut builder = Builder::new(components);
        let root = builder.named(name);
        builder.finish(root)
    }

    /// Reads a custom resource's structural schema as the server does: type and object metadata
    /// are declared on the root and on every embedded resource, whatever the schema says there.
    ///
    /// `preserve_unknown_fields` is the definition's old top-level switch.
    pub fn from_crd(schema: Option<&Value>, preserve_unknown_fields: bool) -> Self {
        let Some(schema) = schema else {
            return Self::from_openapi(&json!({"type": "object"}));
        };
        let mut schema = schema.clone();
        add_metadata(&mut schema);
        embed(&mut schema);
        let empty = Json::new();
        let mut builder = Builder::new(&empty);
        builder.preserve = preserve_unknown_fields;
        let root = builder.inlined(&schema, preserve_unknown_fields);
        // The builder borrows the schema only while it reads.
        builder.finish(root)
    }
}

fn add_metadata(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let properties = map.entry("properties").or_insert_with(|| Value::Object(Json::new()));
    let Some(properties) = properties.as_object_mut() else { return };
    for (name, value) in [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        ("metadata", json!({"$ref": format!("#/components/schemas/{OBJECT_META}")})),
    ] {
        properties.insert(name.to_owned(), value);
    }
}

fn embed(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(embed);
    }
    for below in ["items", "additionalProperties"] {
        map.get_mut(below).into_iter().for_each(embed);
    }
    if is_true(map, "x-kubernetes-embedded-resource") {
        add_metadata(schema);
    }
}

impl<'a> Builder<'a> {
    fn new(components: &'a Json) -> Self {
        let named = HashMap::new();
        Self { types: common(), named, components, copies: Vec::new(), preserve: false }
    }

    fn finish(mut self, root: TypeRef) -> Schema {
        for (at, source, atomic) in std::mem::take(&mut self.copies) {
            let source = source.0.and_then(|source| self.types.get(source as usize));
            let Some(mut atom) = source.cloned() else { continue };
            if let Some(map) = &mut atom.map {
                map.atomic = atomic;
            } else if let Some(list) = &mut atom.list {
                list.associative = !atomic && list.associative;
            }
            self.types[at] = atom;
        }
        self.types.shrink_to_fit();
        Schema { types: self.types, root }
    }

    fn push(&mut self, atom: Atom) -> TypeRef {
        self.types.push(atom);
        u32::try_from(self.types.len() - 1).map_or(TypeRef::NONE, TypeRef::at)
    }

    /// A named type: read once, and reserved first so that it may refer to itself.
    fn named(&mut self, name: &str) -> TypeRef {
        if let Some(of) = self.named.get(name) {
            return *of;
        }
        let found = self.components.get_key_value(name);
        let known =
            if name.starts_with("io.k8s.apimachinery.") { META.get_key_value(name) } else { None };
        let (key, schema): (&'a str, &'a Value) = match found.or(known) {
            Some((key, schema)) => (key, schema),
            None => return TypeRef::NONE,
        };
        let of = match name {
            QUANTITY => UNTYPED,
            RAW_EXTENSION => UNTYPED_ATOMIC,
            _ => {
                let of = self.push(Atom::default());
                self.named.insert(key, of);
                let atom = self.atom(schema, self.preserve);
                if let TypeRef(Some(at)) = of {
                    self.types[at as usize] = atom;
                }
                of
            }
        };
        self.named.insert(key, of);
        of
    }

    /// The type a schema stands for where it is used: a reference, or an inlined type.
    fn reference(&mut self, schema: &Value, preserve: bool) -> TypeRef {
        let Some(name) = reference_name(schema) else { return self.inlined(schema, preserve) };
        let of = self.named(name);
        let Some(atomic) = map_relationship(schema) else { return of };
        let copy = self.push(Atom::default());
        self.copies.push((self.types.len() - 1, of, atomic));
        copy
    }

    fn inlined(&mut self, schema: &Value, preserve: bool) -> TypeRef {
        match (text(schema, "type"), text(schema, "format")) {
            ("integer" | "number", _) => NUMERIC,
            ("boolean", _) => BOOLEAN,
            ("string", "" | "byte") => STRING,
            ("string", _) => UNTYPED,
            _ => {
                let atom = self.atom(schema, preserve);
                self.push(atom)
            }
        }
    }

    fn atom(&mut self, schema: &Value, preserve: bool) -> Atom {
        let own = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        let preserve = preserve || own;
        match text(schema, "type") {
            "" => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, preserve)),
                map: Some(self.map(schema, preserve)),
            },
            "object" => Atom { map: Some(self.map(schema, preserve)), ..Atom::default() },
            "array" => Atom { list: Some(self.list(schema, preserve)), ..Atom::default() },
            _ => {
                let of = self.inlined(schema, preserve);
                let at = of.0.and_then(|at| self.types.get(at as usize));
                at.cloned().unwrap_or_default()
            }
        }
    }

    fn map(&mut self, schema: &Value, preserve: bool) -> Map {
        let mut fields = Vec::new();
        for (name, member) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let default = member.get("default").filter(|default| !default.is_null());
            fields.push(Field {
                name: name.as_str().into(),
                of: self.reference(member, preserve),
                default: default.cloned().map(Box::new),
            });
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let (element, any) = match schema.get("additionalProperties") {
            None | Some(Value::Null) if preserve || fields.is_empty() => (DEDUCED, true),
            Some(Value::Bool(true)) => (DEDUCED, true),
            Some(below @ Value::Object(_)) => {
                let of = self.reference(below, preserve);
                let scalar = self.types.get(of.0.unwrap_or(u32::MAX) as usize);
                let untyped = scalar.is_some_and(|atom| atom.scalar == Some(Scalar::Untyped));
                (of, untyped && reference_name(below).is_none())
            }
            _ => (TypeRef::NONE, false),
        };
        let atomic = map_relationship(schema).unwrap_or(false);
        Map { free: any && fields.is_empty(), fields, element, atomic }
    }

    fn list(&mut self, schema: &Value, preserve: bool) -> List {
        let element = match schema.get("items") {
            Some(items @ Value::Object(_)) => self.reference(items, preserve),
            _ => UNTYPED_ATOMIC,
        };
        let (associative, keys) = list_relationship(schema);
        List { element, associative, keys }
    }
}

/// Whether a list's items have identities, and the fields that give it.
fn list_relationship(schema: &Value) -> (bool, Vec<Box<str>>) {
    match schema.get("x-kubernetes-list-type").map(|kind| kind.as_str().unwrap_or_default()) {
        Some("set") => (true, Vec::new()),
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let names = keys.into_iter().flatten().filter_map(Value::as_str).map(Into::into);
            (true, names.collect())
        }
        Some(_) => (false, Vec::new()),
        None => match text(schema, "x-kubernetes-patch-strategy") {
            "merge" | "merge,retainKeys" => {
                let key = schema.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
                (true, key.into_iter().map(Into::into).collect())
            }
            _ => (false, Vec::new()),
        },
    }
}

/// Whether a map is atomic, where the schema says so.
fn map_relationship(schema: &Value) -> Option<bool> {
    match text(schema, "x-kubernetes-map-type") {
        "atomic" => Some(true),
        "granular" => Some(false),
        _ => None,
    }
}

/// The name behind `$ref`, also when it is the only member of `allOf`.
fn reference_name(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    let wrapped = || match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref")?.as_str(),
        _ => None,
    };
    let reference = direct.or_else(wrapped)?;
    reference.rsplit('/').next().filter(|name| !name.is_empty())
}

fn text<'v>(schema: &'v Value, key: &str) -> &'v str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_true(map: &Json, key: &str) -> bool {
    map.get(key) == Some(&Value::Bool(true))
}

/// Object metadata, which every custom resource refers to.
static META: LazyLock<Json> = LazyLock::new(|| {
    let string = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer", "format": "int64"});
    let texts = json!({"type": "object", "additionalProperties": string});
    let owner = json!({
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": {"type": "string", "default": ""},
            "kind": {"type": "string", "default": ""},
            "name": {"type": "string", "default": ""},
            "uid": {"type": "string", "default": ""},
            "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
        },
    });
    let entry = json!({
        "type": "object",
        "properties": {
            "manager": string, "operation": string, "apiVersion": string, "time": time,
            "fieldsType": string, "fieldsV1": {"type": "object"}, "subresource": string,
        },
    });
    let meta = json!({
        "type": "object",
        "properties": {
            "name": string, "generateName": string, "namespace": string, "selfLink": string,
            "uid": string, "resourceVersion": string, "generation": number,
            "creationTimestamp": time, "deletionTimestamp": time,
            "deletionGracePeriodSeconds": number, "labels": texts, "annotations": texts,
            "ownerReferences": {
                "type": "array", "items": owner,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            },
            "finalizers": {"type": "array", "items": string, "x-kubernetes-list-type": "set"},
            "managedFields": {"type": "array", "items": entry},
        },
    });
    Json::from_iter([(OBJECT_META.to_owned(), meta)])
});

#[cfg(test)]
mod tests {
    use super::*;

    /// The type at a path of field names; `[]` goes to a list's items, `{}` to a map's values.
    fn at<'s>(schema: &'s Schema, path: &str) -> &'s Atom {
        let mut of = schema.root();
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let atom = schema.resolve(of).unwrap();
            of = match name {
                "[]" => atom.list.as_ref().unwrap().element,
                "{}" => atom.map.as_ref().unwrap().element,
                name => atom.map.as_ref().unwrap().field(name).unwrap().of,
            };
        }
        schema.resolve(of).unwrap()
    }

    #[test]
    fn references_may_recurse_and_override() {
        let schema = Schema::from_openapi(&json!({
            "$ref": "#/components/schemas/x.Node",
            "components": {"schemas": {"x.Node": {
                "type": "object",
                "properties": {
                    "next": {"allOf": [{"$ref": "#/components/schemas/x.Node"}]},
                    "whole": {
                        "$ref": "#/components/schemas/x.Node", "x-kubernetes-map-type": "atomic",
                    },
                    "list": {
                        "type": "array", "items": {"$ref": "#/components/schemas/x.Node"},
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "name",
                    },
                    "name": {"type": "string", "default": "n"},
                },
            }}},
        }));
        assert!(!at(&schema, "next.next.next").map.as_ref().unwrap().atomic);
        assert!(at(&schema, "next.whole").map.as_ref().unwrap().atomic);
        let list = at(&schema, "whole.list").list.as_ref().unwrap();
        assert!(list.associative && list.keys == ["name".into()]);
        let item = at(&schema, "list.[]").map.as_ref().unwrap();
        assert_eq!(item.field("name").unwrap().default.as_deref(), Some(&json!("n")));
    }

    #[test]
    fn custom_resources_and_embedded_ones_have_metadata() {
        let schema = Schema::from_crd(
            Some(&json!({
                "type": "object",
                "properties": {
                    "sub": {"type": "object", "x-kubernetes-embedded-resource": true},
                    "any": {"x-kubernetes-preserve-unknown-fields": true},
                    "port": {"x-kubernetes-int-or-string": true},
                },
            })),
            false,
        );
        for path in ["metadata.labels.{}", "sub.metadata.annotations.{}", "kind", "sub.apiVersion"]
        {
            assert_eq!(at(&schema, path).scalar, Some(Scalar::String), "{path}");
        }
        let owners = at(&schema, "metadata.ownerReferences").list.as_ref().unwrap();
        assert!(owners.associative && owners.keys == ["uid".into()]);
        assert!(at(&schema, "metadata.ownerReferences.[]").map.as_ref().unwrap().atomic);
        let any = at(&schema, "any");
        assert!(any.scalar.is_some() && any.list.is_some());
        assert!(any.map.as_ref().unwrap().free);
        assert_eq!(at(&schema, "port").scalar, Some(Scalar::Untyped));
    }
}
