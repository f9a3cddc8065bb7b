//! Does a value fit its schema?

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Faults, Named, Shape, identify, shape_of};
use crate::fieldpath::PathElement;
use crate::golang;
use crate::types::{List, Map, Scalar, Schema, TypeRef};

/// Whether two items of an associative list may share an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Stored objects and updates may: the server never refused them there.
    Allowed,
    /// Applied configurations may not.
    Refused,
}

/// Checks a value against its schema.
pub(crate) fn validate(
    schema: &Schema,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), Faults> {
    let walk = Walk { schema, duplicates };
    let mut faults = Faults::default();
    walk.node(schema.root(), value, &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

struct Walk<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
}

impl Walk<'_> {
    fn node(&self, of: TypeRef, value: &Value, faults: &mut Faults) {
        match shape_of(self.schema.resolve(of), Some(value)) {
            Shape::Map(map) => match value {
                Value::Null => {}
                Value::Object(fields) => self.map(map, fields, faults),
                other => faults.push(format!("expected map, got {}", golang::wrapped(other))),
            },
            Shape::Scalar(scalar) => {
                if let Some(message) = scalar_fault(scalar, value, "") {
                    faults.push(message);
                }
            }
            Shape::List(list) => match value {
                Value::Null => {}
                Value::Array(items) => self.list(list, items, faults),
                other => faults.push(format!("expected list, got {}", golang::wrapped(other))),
            },
            Shape::Nothing => faults.push("schema error: invalid atom: inlined"),
        }
    }

    fn map(&self, map: &Map, fields: &serde_json::Map<String, Value>, faults: &mut Faults) {
        for (name, value) in fields {
            let from = faults.0.len();
            let of = map.type_of(name);
            if of == TypeRef::NONE {
                faults.push("field not declared in schema");
                faults.prefix(from, &Named(name));
                return;
            }
            self.node(of, value, faults);
            faults.prefix(from, &Named(name));
        }
    }

    fn list(&self, list: &List, items: &[Value], faults: &mut Faults) {
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            if let Some(reason) = self.anonymous(list, item) {
                faults.push(format!("element {i}: {reason}"));
                return;
            }
            if list.associative && self.duplicates == Duplicates::Refused {
                let element = self.element(list, i, item);
                if seen.contains(&element) {
                    faults.push(format!("duplicate entries for key {element}"));
                }
                seen.insert(element);
            }
            let from = faults.0.len();
            self.node(list.element, item, faults);
            if faults.0.len() > from {
                faults.prefix(from, &self.element(list, i, item));
            }
        }
    }

    /// Why an item has no identity although it needs one; the common cases without building it.
    fn anonymous(&self, list: &List, item: &Value) -> Option<String> {
        let scalar = || matches!(item, Value::String(_) | Value::Number(_) | Value::Bool(_));
        let keyed = |map: &serde_json::Map<String, Value>| {
            list.keys.iter().all(|key| map.contains_key(&**key))
        };
        match (list.associative, list.keys.is_empty()) {
            (false, _) => None,
            (true, true) if scalar() => None,
            (true, false) if item.as_object().is_some_and(keyed) => None,
            _ => identify(self.schema, list, item).err(),
        }
    }

    fn element(&self, list: &List, i: usize, item: &Value) -> PathElement {
        let index = || PathElement::Index(i64::try_from(i).unwrap_or(i64::MAX));
        identify(self.schema, list, item).unwrap_or_else(|_| index())
    }
}

/// Why a value is not the scalar it should be.
pub(super) fn scalar_fault(scalar: Scalar, value: &Value, prefix: &str) -> Option<String> {
    let fits = matches!(
        (scalar, value),
        (_, Value::Null)
            | (Scalar::Numeric | Scalar::Untyped, Value::Number(_))
            | (Scalar::String | Scalar::Untyped, Value::String(_))
            | (Scalar::Boolean | Scalar::Untyped, Value::Bool(_))
    );
    if fits {
        return None;
    }
    let (want, got) = match scalar {
        Scalar::Numeric => ("numeric (int or float)", golang::type_name(value).to_owned()),
        Scalar::String => ("string", golang::wrapped_verbose(value)),
        Scalar::Boolean => ("boolean", golang::wrapped(value)),
        Scalar::Untyped => ("any scalar", golang::wrapped(value)),
    };
    Some(format!("{prefix}expected {want}, got {got}"))
}
