//! Whether the expressions of rules make sense for what they are about
//!
//! Each schema with rules gives `self` a type; expressions are checked against it when a
//! definition is written, so that on objects they can only fail for values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::error::{ERRORS_MAX, FieldError, Path};
use super::super::structural::{below, flag, list, properties, text};
use super::internal;
use crate::cel::types::{Object, Type};
use crate::cel::{self, Program};

/// Checks all rules of a schema that is otherwise in order.
pub(super) fn check(schema: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if !holds_rules(schema) {
        return;
    }
    let kind = declared(schema, true, "selfType");
    walk(schema, kind.as_ref(), path, None, errors);
}

/// Keys are looked at one by one: most schemas have few.
fn holds_rules(schema: &Value) -> bool {
    let keys = schema.as_object().into_iter().flatten();
    keys.into_iter().any(|(key, value)| match key.as_str() {
        "x-kubernetes-validations" => value.as_array().is_some_and(|rules| !rules.is_empty()),
        "properties" => value.as_object().is_some_and(|all| all.values().any(holds_rules)),
        "items" | "additionalProperties" => holds_rules(value),
        _ => false,
    })
}

fn walk(
    schema: &Value,
    kind: Option<&Type>,
    path: &Path,
    uncorrelatable: Option<&Path>,
    errors: &mut Vec<FieldError>,
) {
    if errors.len() >= ERRORS_MAX {
        return;
    }
    let element = match kind {
        Some(Type::List(of) | Type::Map(_, of)) => Some(&**of),
        _ => None,
    };
    let with_rules = |key: &str| below(schema, key).filter(|below| holds_rules(below));
    if let Some(additional) = with_rules("additionalProperties") {
        walk(additional, element, &path.child("additionalProperties"), uncorrelatable, errors);
    }
    for (name, property) in properties(schema) {
        if !holds_rules(property) {
            continue;
        }
        let own = declared_field(kind, name, property);
        let path = path.child("properties").key(name);
        walk(property, own.as_ref(), &path, uncorrelatable, errors);
    }
    if let Some(items) = with_rules("items") {
        let forbidden = (text(schema, "x-kubernetes-list-type") != "map").then_some(path);
        let forbidden = uncorrelatable.or(forbidden);
        walk(items, element, &path.child("items"), forbidden, errors);
    }
    let path = path.child("x-kubernetes-validations");
    let rules = list(schema, "x-kubernetes-validations");
    let Some(kind) = kind else {
        if !rules.is_empty() {
            let why = "failed to convert to declType for CEL validation rules";
            errors.push(FieldError::internal(&path, why));
        }
        return;
    };
    for (i, rule) in rules.iter().enumerate() {
        check_rule(rule, kind, &path.index(i), uncorrelatable, errors);
    }
}

/// The type of a property: as part of the object, or alone where its name cannot be written.
fn declared_field(kind: Option<&Type>, name: &str, property: &Value) -> Option<Type> {
    match (cel::escape(name), kind) {
        (Some(escaped), Some(Type::Object(object))) => object.fields.get(&escaped).cloned(),
        (Some(_), _) => None,
        (None, _) => {
            declared(property, flag(property, "x-kubernetes-embedded-resource"), "selfType")
        }
    }
}

fn check_rule(
    rule: &Value,
    kind: &Type,
    path: &Path,
    uncorrelatable: Option<&Path>,
    errors: &mut Vec<FieldError>,
) {
    let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
    let old = if optional == Some(true) { Type::optional(kind.clone()) } else { kind.clone() };
    let names = [("self", kind.clone()), ("oldSelf", old)];
    let shown = internal::rule(rule);
    let expression = text(rule, "rule");
    let mut uses_old = false;
    let fault = match Program::checked(expression, &names) {
        Err(issues) => Some(format!("compilation failed: {issues}")),
        Ok((_, found)) if !matches!(found, Type::Bool) => {
            Some("cel expression must evaluate to a bool".to_owned())
        }
        Ok((program, _)) => {
            uses_old = program.mentions("oldSelf");
            None
        }
    };
    let failed = fault.is_some();
    if let Some(detail) = fault {
        let error = FieldError::invalid(&path.child("rule"), shown.clone(), detail);
        errors.push(error.with_field_order());
    }
    let message = text(rule, "messageExpression");
    if !failed && !message.is_empty() {
        let fault = match Program::checked(message, &names) {
            Err(issues) => Some(format!("messageExpression compilation failed: {issues}")),
            Ok((_, Type::String)) => None,
            Ok(_) => Some("messageExpression must evaluate to a string".to_owned()),
        };
        if let Some(detail) = fault {
            let error = FieldError::invalid(&path.child("messageExpression"), shown, detail);
            errors.push(error.with_field_order());
        }
    }
    if uses_old {
        if let Some(within) = uncorrelatable {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
            );
            errors.push(FieldError::invalid(&path.child("rule"), expression, detail));
        }
    } else if let Some(optional) = optional {
        let detail = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(&path.child("optionalOldSelf"), optional, detail));
    }
}

/// The type of values of a schema; none where expressions cannot see them.
fn declared(schema: &Value, root: bool, name: &str) -> Option<Type> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(Type::Dyn);
    }
    match text(schema, "type") {
        "array" => {
            let items = below(schema, "items")?;
            let embedded = flag(items, "x-kubernetes-embedded-resource");
            declared(items, embedded, &format!("{name}.@idx")).map(Type::list)
        }
        "object" => declared_object(schema, root, name),
        "string" => Some(match text(schema, "format") {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        }),
        "boolean" => Some(Type::Bool),
        "number" => Some(Type::Double),
        "integer" => Some(Type::Int),
        _ => None,
    }
}

fn declared_object(schema: &Value, root: bool, name: &str) -> Option<Type> {
    if !root && let Some(additional) = below(schema, "additionalProperties") {
        let embedded = flag(additional, "x-kubernetes-embedded-resource");
        let value = declared(additional, embedded, &format!("{name}.@elem"))?;
        return Some(Type::map(Type::String, value));
    }
    let mut fields = BTreeMap::new();
    for (field, property) in properties(schema) {
        let Some(escaped) = cel::escape(field) else { continue };
        let embedded = flag(property, "x-kubernetes-embedded-resource");
        if let Some(kind) = declared(property, embedded, &format!("{name}.{escaped}")) {
            fields.insert(escaped, kind);
        }
    }
    if root && !declares_identity(schema) {
        fields.insert("apiVersion".to_owned(), Type::String);
        fields.insert("kind".to_owned(), Type::String);
        let names = ["name", "generateName"].map(|field| (field.to_owned(), Type::String));
        let metadata = Object { name: format!("{name}.metadata"), fields: names.into() };
        fields.insert("metadata".to_owned(), Type::Object(Arc::new(metadata)));
    }
    Some(Type::Object(Arc::new(Object { name: name.to_owned(), fields })))
}

/// Whether the schema of a resource itself says all that is known of every resource.
fn declares_identity(schema: &Value) -> bool {
    let is = |pointer: &str, kind: &str| {
        schema.pointer(pointer).is_some_and(|property| text(property, "type") == kind)
    };
    is("/properties/kind", "string")
        && is("/properties/apiVersion", "string")
        && is("/properties/metadata", "object")
        && is("/properties/metadata/properties/name", "string")
        && is("/properties/metadata/properties/generateName", "string")
}
