//! How the fields of a built-in kind are merged, read from its description.

use serde_json::{Map, Value};

use super::{Result, StrategicError};

/// A place in the description of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a> {
    components: &'a Map<String, Value>,
    schema: &'a Value,
    name: &'a str,
}

/// What is known about one field.
pub(super) struct Field<'a> {
    /// What it holds; for a list, what its items are.
    pub(super) inside: Meta<'a>,
    /// The field that tells items apart; empty when they are their own identity.
    pub(super) key: &'a str,
    strategies: &'a str,
}

impl Field<'_> {
    /// `merge`, `replace` or nothing. Keys that are retained are told by the patch.
    pub(super) fn strategy(&self) -> Result<&str> {
        let mut others = self.strategies.split(',').filter(|one| *one != "retainKeys");
        let first = others.next().unwrap_or_default();
        match others.next() {
            None => Ok(first),
            Some(_) => Err(StrategicError::Mismatch(format!(
                "unexpected patch strategy: [{}]",
                self.strategies.replace(',', " ")
            ))),
        }
    }
}

impl<'a> Meta<'a> {
    /// The description called `name` among `components`.
    pub fn new(components: &'a Map<String, Value>, name: &'a str) -> Self {
        let schema = components.get(name).unwrap_or(&Value::Null);
        Self { components, schema, name }
    }

    /// A field that holds a map.
    pub(super) fn field(self, name: &str) -> Result<Field<'a>> {
        let found = self.lookup(name)?;
        Ok(Field { inside: self.resolve(found), ..marks(self, found) })
    }

    /// A field that holds a list.
    pub(super) fn list(self, name: &str) -> Result<Field<'a>> {
        let found = self.lookup(name)?;
        match found.get("items") {
            Some(items) => Ok(Field { inside: self.resolve(items), ..marks(self, found) }),
            None => Err(StrategicError::Mismatch(format!(
                "expected slice or array type, but got: {}",
                self.form()
            ))),
        }
    }

    /// What the description says this is.
    pub(super) fn form(self) -> &'static str {
        match self.schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "string" => "string",
            "boolean" => "bool",
            "integer" => "int32",
            "number" => "float64",
            "array" => "slice",
            _ if self.schema.get("additionalProperties").is_some() => "map",
            _ => "struct",
        }
    }

    fn lookup(self, name: &str) -> Result<&'a Value> {
        if self.form() != "struct" {
            return Err(StrategicError::Mismatch(format!(
                "merging an object in json but data type is not struct, instead is: {}",
                self.form()
            )));
        }
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let exact = properties.and_then(|all| all.get(name));
        let folded = || {
            let mut all = properties?.iter();
            all.find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, found)| found)
        };
        exact.or_else(folded).ok_or_else(|| {
            let type_name = self.name.rsplit('.').next().unwrap_or_default();
            StrategicError::Mismatch(format!(
                "unable to find api field in struct {type_name} for the json field {name:?}"
            ))
        })
    }

    fn resolve(self, schema: &'a Value) -> Self {
        let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
        match reference.and_then(Value::as_str).and_then(|text| text.rsplit('/').next()) {
            Some(name) => Self::new(self.components, name),
            None => Self { schema, name: "", ..self },
        }
    }
}

fn marks<'a>(inside: Meta<'a>, found: &'a Value) -> Field<'a> {
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    Field {
        inside,
        key: text("x-kubernetes-patch-merge-key"),
        strategies: text("x-kubernetes-patch-strategy"),
    }
}
