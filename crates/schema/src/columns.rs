//! Printer columns: an object as a row of a table
//!
//! A definition lists columns by JSON path; `kubectl get` shows them after the name. What is
//! missing, or does not fit the column's type, is an empty cell.

use serde_json::{Value, json};

use super::clock;
use super::jsonpath::JsonPath;
use super::text::{self, Num};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one version of a definition.
#[derive(Clone, Debug)]
pub struct Columns {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    definition: Value,
    kind: Kind,
    path: JsonPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
    Other,
}

impl Columns {
    /// The columns of an entry of `spec.versions`. Those from an invalid path on are left out.
    pub fn compile(version: &Value) -> Self {
        let age = [json!({
            "name": "Age", "type": "date", "description": CREATED,
            "jsonPath": ".metadata.creationTimestamp",
        })];
        let given = version.get("additionalPrinterColumns").and_then(Value::as_array);
        let given = given.map(Vec::as_slice).filter(|given| !given.is_empty()).unwrap_or(&age);
        Self { columns: given.iter().map_while(Column::compile).collect() }
    }

    /// `columnDefinitions` of a Table.
    pub fn definitions(&self) -> Vec<Value> {
        let name = json!({
            "name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0,
        });
        let columns = self.columns.iter().map(|column| column.definition.clone());
        std::iter::once(name).chain(columns).collect()
    }

    /// The cells of an object's row; `now` is in seconds since 1970.
    pub fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| json!(""));
        std::iter::once(name).chain(self.columns.iter().map(|c| c.cell(object, now))).collect()
    }
}

/// The cells of an object's row for an entry of `spec.versions`, compiled on the way.
pub fn cells(version: &Value, object: &Value, now: i64) -> Vec<Value> {
    Columns::compile(version).cells(object, now)
}

impl Column {
    fn compile(column: &Value) -> Option<Self> {
        let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default();
        let path = JsonPath::parse(text("jsonPath")).ok()?;
        let description = match text("description") {
            "" => {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    text("jsonPath")
                )
            }
            given => given.to_owned(),
        };
        let definition = json!({
            "name": text("name"),
            "type": text("type"),
            "format": text("format"),
            "description": description,
            "priority": column.get("priority").and_then(Value::as_i64).unwrap_or(0),
        });
        let kind = match text("type") {
            "string" => Kind::Text,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            "date" => Kind::Date,
            _ => Kind::Other,
        };
        Some(Self { definition, kind, path })
    }

    fn cell(&self, object: &Value, now: i64) -> Value {
        let Some(value) = self.path.first(object) else { return Value::Null };
        match (self.kind, value.as_ref()) {
            (Kind::Text, value) => json!(shown(value)),
            (Kind::Integer, Value::Number(number)) => json!(truncated(Num::of(number))),
            (Kind::Number, Value::Number(number)) => json!(Num::of(number).as_f64()),
            (Kind::Boolean, Value::Bool(_)) => value.into_owned(),
            (Kind::Date, Value::String(text)) if text.is_empty() => json!("<unknown>"),
            (Kind::Date, Value::String(text)) => match clock::parse(text) {
                Some(then) => json!(clock::age(now - then)),
                None => json!("<invalid>"),
            },
            _ => Value::Null,
        }
    }
}

/// A value in a column of strings.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Object(_) | Value::Array(_) => text::json(value),
        scalar => text::plain(scalar),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an integer column drops the fraction")]
fn truncated(number: Num) -> i64 {
    match number {
        Num::Int(int) => int,
        Num::Float(float) => float as i64,
    }
}
