//! Values in the server's inner shape, for errors that show them

use serde_json::{Map, Value, json};

use super::super::structural::{flag, list, text};
use super::spec::Version;

/// How a field of the inner schema is written.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Flag,
    /// As it is, or `null`.
    Raw,
    Float,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrFlag,
    SchemaOrList,
    Dependencies,
    Docs,
    Rules,
}

/// Fields of a schema: the name in the object, the name inside, the shape; in the inner order.
pub(super) const FIELDS: [(&str, &str, Shape); 44] = [
    ("id", "ID", Shape::Text),
    ("$schema", "Schema", Shape::Text),
    ("$ref", "Ref", Shape::Raw),
    ("description", "Description", Shape::Text),
    ("type", "Type", Shape::Text),
    ("nullable", "Nullable", Shape::Flag),
    ("format", "Format", Shape::Text),
    ("title", "Title", Shape::Text),
    ("default", "Default", Shape::Raw),
    ("maximum", "Maximum", Shape::Float),
    ("exclusiveMaximum", "ExclusiveMaximum", Shape::Flag),
    ("minimum", "Minimum", Shape::Float),
    ("exclusiveMinimum", "ExclusiveMinimum", Shape::Flag),
    ("maxLength", "MaxLength", Shape::Raw),
    ("minLength", "MinLength", Shape::Raw),
    ("pattern", "Pattern", Shape::Text),
    ("maxItems", "MaxItems", Shape::Raw),
    ("minItems", "MinItems", Shape::Raw),
    ("uniqueItems", "UniqueItems", Shape::Flag),
    ("multipleOf", "MultipleOf", Shape::Float),
    ("enum", "Enum", Shape::Raw),
    ("maxProperties", "MaxProperties", Shape::Raw),
    ("minProperties", "MinProperties", Shape::Raw),
    ("required", "Required", Shape::Raw),
    ("items", "Items", Shape::SchemaOrList),
    ("allOf", "AllOf", Shape::Schemas),
    ("oneOf", "OneOf", Shape::Schemas),
    ("anyOf", "AnyOf", Shape::Schemas),
    ("not", "Not", Shape::Schema),
    ("properties", "Properties", Shape::SchemaMap),
    ("additionalProperties", "AdditionalProperties", Shape::SchemaOrFlag),
    ("patternProperties", "PatternProperties", Shape::SchemaMap),
    ("dependencies", "Dependencies", Shape::Dependencies),
    ("additionalItems", "AdditionalItems", Shape::SchemaOrFlag),
    ("definitions", "Definitions", Shape::SchemaMap),
    ("externalDocs", "ExternalDocs", Shape::Docs),
    ("example", "Example", Shape::Raw),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Shape::Raw),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Shape::Flag),
    ("x-kubernetes-int-or-string", "XIntOrString", Shape::Flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Shape::Raw),
    ("x-kubernetes-list-type", "XListType", Shape::Raw),
    ("x-kubernetes-map-type", "XMapType", Shape::Raw),
    ("x-kubernetes-validations", "XValidations", Shape::Rules),
];

/// A schema as an error shows it.
pub(super) fn schema(raw: &Value) -> Value {
    let field = |(name, inner, shape): &(&str, &str, Shape)| {
        let value = raw.get(name).unwrap_or(&Value::Null);
        ((*inner).to_owned(), shaped(raw, name, value, *shape))
    };
    FIELDS.iter().map(field).collect()
}

fn shaped(raw: &Value, name: &str, value: &Value, shape: Shape) -> Value {
    match (shape, value) {
        (Shape::Text, _) => json!(text(raw, name)),
        (Shape::Flag, _) => json!(flag(raw, name)),
        (_, Value::Null) => Value::Null,
        (Shape::Raw, value) => value.clone(),
        (Shape::Float, value) => json!(value.as_f64()),
        (Shape::Schema, value) => schema(value),
        (Shape::Schemas, _) => list(raw, name).iter().map(schema).collect(),
        (Shape::SchemaMap, value) => {
            let mut entries: Vec<_> = value.as_object().into_iter().flatten().collect();
            entries.sort_by_key(|(name, _)| *name);
            entries.into_iter().map(|(name, value)| (name.clone(), schema(value))).collect()
        }
        (Shape::SchemaOrFlag, Value::Bool(allows)) => json!({ "Allows": allows, "Schema": null }),
        (Shape::SchemaOrFlag, value) => json!({ "Allows": true, "Schema": schema(value) }),
        (Shape::SchemaOrList, Value::Array(items)) => {
            let items: Vec<Value> = items.iter().map(schema).collect();
            json!({ "Schema": null, "JSONSchemas": items })
        }
        (Shape::SchemaOrList, value) => json!({ "Schema": schema(value), "JSONSchemas": null }),
        (Shape::Dependencies, value) => {
            let entry = |value: &Value| match value {
                Value::Object(_) => json!({ "Schema": schema(value), "Property": null }),
                names => json!({ "Schema": null, "Property": names }),
            };
            let entries = value.as_object().into_iter().flatten();
            entries.map(|(name, value)| (name.clone(), entry(value))).collect()
        }
        (Shape::Docs, value) => {
            json!({ "Description": text(value, "description"), "URL": text(value, "url") })
        }
        (Shape::Rules, _) => list(raw, name).iter().map(rule).collect(),
    }
}

/// A rule as an error shows it.
pub(super) fn rule(raw: &Value) -> Value {
    json!({
        "Rule": text(raw, "rule"),
        "Message": text(raw, "message"),
        "MessageExpression": text(raw, "messageExpression"),
        "Reason": raw.get("reason"),
        "FieldPath": text(raw, "fieldPath"),
        "OptionalOldSelf": raw.get("optionalOldSelf"),
    })
}

/// A version as an error shows it.
pub(super) fn version(version: &Version<'_>) -> Value {
    let scale = |scale: &Value| {
        json!({
            "SpecReplicasPath": text(scale, "specReplicasPath"),
            "StatusReplicasPath": text(scale, "statusReplicasPath"),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        })
    };
    let subresources = version.subresources.map(|subresources| {
        let present = |name: &str| subresources.get(name).filter(|value| !value.is_null());
        json!({ "Status": present("status").map(|_| Map::new()), "Scale": present("scale").map(scale) })
    });
    let column = |column: &Value| {
        json!({
            "Name": text(column, "name"),
            "Type": text(column, "type"),
            "Format": text(column, "format"),
            "Description": text(column, "description"),
            "Priority": column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            "JSONPath": text(column, "jsonPath"),
        })
    };
    let some =
        |values: Vec<Value>| if values.is_empty() { Value::Null } else { Value::from(values) };
    let selectable = |field: &Value| json!({ "JSONPath": text(field, "jsonPath") });
    json!({
        "Name": version.name,
        "Served": version.served,
        "Storage": version.storage,
        "Deprecated": version.deprecated,
        "DeprecationWarning": version.deprecation_warning,
        "Schema": version.schema.as_ref().map(|s| json!({ "OpenAPIV3Schema": schema(s) })),
        "Subresources": subresources,
        "AdditionalPrinterColumns": some(version.columns.iter().map(column).collect()),
        "SelectableFields": some(version.selectable.iter().map(selectable).collect()),
    })
}
