//! Replays a sequence recorded from the server's own field manager.
//!
//! A sequence is one line of JSON: schemas by version (none: deduced), then operations with the
//! object or the error they ended in. The live object is always the last one recorded.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fieldpath::{Path, Set};
use crate::types::Schema;
use crate::{ApplyContext, ApplyError, Conflict, SameShape, Timestamp, apply, update};

const GROUP: &str = "example.org";

/// Replays one sequence; answers how many operations it had, or the first difference.
pub(crate) fn replay(recorded: &str) -> Result<usize, String> {
    let sequence: Value = serde_json::from_str(recorded).map_err(|error| error.to_string())?;
    let schemas: Vec<BTreeMap<String, Schema>> =
        list(&sequence, "schemas").iter().map(schemas_of).collect();
    let status = sequence["status"] == true;
    let built_in = (text(&sequence, "apiVersion"), text(&sequence, "kind"));
    let mut live = None;
    for (i, operation) in list(&sequence, "ops").iter().enumerate() {
        let step = Step { operation, schemas: &schemas, status, built_in };
        step.run(&mut live)
            .map_err(|text| format!("seed {} operation {i}: {text}", sequence["seed"]))?;
    }
    Ok(list(&sequence, "ops").len())
}

fn schemas_of(versions: &Value) -> BTreeMap<String, Schema> {
    let versions = versions.as_object().cloned().unwrap_or_default();
    if let Some(schema) = versions.get("openapi") {
        return [(String::new(), Schema::from_openapi(schema))].into();
    }
    if versions.is_empty() {
        let deduced = || Schema::clone(&Schema::deduced());
        return [(format!("{GROUP}/v1"), deduced())].into();
    }
    let read = |(name, schema): (&String, &Value)| {
        (format!("{GROUP}/{name}"), Schema::from_crd(Some(schema), false))
    };
    versions.iter().map(read).collect()
}

struct Step<'a> {
    operation: &'a Value,
    schemas: &'a [BTreeMap<String, Schema>],
    status: bool,
    /// Version and kind, where it is not ours.
    built_in: (&'a str, &'a str),
}

impl Step<'_> {
    fn text(&self, name: &str) -> &str {
        text(self.operation, name)
    }

    /// Version and kind of the object at this step.
    fn kind(&self, version: &str) -> (String, &str) {
        match self.built_in {
            ("", _) => (format!("{GROUP}/{version}"), "T"),
            (version, kind) => (version.to_owned(), kind),
        }
    }

    fn run(&self, live: &mut Option<Value>) -> Result<(), String> {
        if self.text("do") == "edit" {
            *live = Some(self.operation["object"].clone());
            return Ok(());
        }
        let index = usize::try_from(self.operation["schemas"].as_u64().unwrap_or(0)).unwrap_or(0);
        let schemas = &self.schemas[index];
        let (api_version, kind) = self.kind(self.text("version"));
        let Some(schema) = schemas.get(&api_version).or_else(|| schemas.get("")) else {
            return Err(format!("no schema of {api_version}"));
        };
        let versions = schemas.iter().map(|(name, schema)| (name.as_str(), schema)).collect();
        let converter = SameShape { versions };
        let reset = match (self.text("sub"), self.status) {
            ("status", _) => Set::of([Path::fields(["metadata"]), Path::fields(["spec"])]),
            (_, true) => Set::of([Path::fields(["status"])]),
            _ => Set::default(),
        };
        let context = ApplyContext {
            force: self.operation["force"] == true,
            subresource: self.text("sub"),
            reset_fields: Some(&reset),
            converter: &converter,
            ..ApplyContext::new(
                self.text("manager"),
                Timestamp(self.operation["now"].as_i64().unwrap_or(0)),
                (&api_version, kind),
                schema,
            )
        };
        let mut before = live.clone();
        at_version(before.as_mut(), &api_version);
        let body = &self.operation["body"];
        let result = if self.text("do") == "apply" {
            run_apply(before.as_ref(), body, &context)
        } else {
            update(before.as_ref(), body, &context).map_err(|e| (e.message(), Vec::new()))
        };
        self.judge(result, live)
    }

    fn judge(
        &self,
        result: Result<Value, (String, Vec<String>)>,
        live: &mut Option<Value>,
    ) -> Result<(), String> {
        let want = self.operation.get("object");
        match (result, want) {
            (Ok(mut object), Some(want)) => {
                at_version(Some(&mut object), &self.kind("v1").0);
                if !same(&object, want) {
                    return Err(format!(
                        "\n got {object}\nwant {want}\nbody {}",
                        self.operation["body"]
                    ));
                }
                *live = Some(want.clone());
                Ok(())
            }
            (Err((text, causes)), None) => self.judge_error(&text, &causes),
            (Ok(object), None) => {
                Err(format!("\n got {object}\nwant error {}", self.text("error")))
            }
            (Err((text, _)), Some(want)) => Err(format!("\n got error {text}\nwant {want}")),
        }
    }

    fn judge_error(&self, text: &str, causes: &[String]) -> Result<(), String> {
        let want = self.text("error");
        // How the server prints a damaged entry is not ours to repeat.
        let damaged = "failed to decode managed fields: error decoding";
        if want.starts_with(damaged) && text.starts_with(damaged) {
            return Ok(());
        }
        let want_causes = list(self.operation, "causes");
        if lines(text) == lines(want) && want_causes.iter().eq(causes.iter()) {
            return Ok(());
        }
        Err(format!("\n got error {text} {causes:?}\nwant error {want} {want_causes:?}"))
    }
}

fn run_apply(
    live: Option<&Value>,
    body: &Value,
    context: &ApplyContext<'_>,
) -> Result<Value, (String, Vec<String>)> {
    let applied = apply(live, body, context).map_err(|error| {
        let mut causes = Vec::new();
        if let ApplyError::Conflicts(conflicts) = &error {
            let cause = |conflict: &Conflict| {
                format!("FieldManagerConflict|{}|{}", conflict.message(), conflict.path)
            };
            causes = conflicts.0.iter().map(cause).collect();
            causes.sort();
        }
        (error.message(), causes)
    })?;
    let same = live.is_some_and(|live| same(&timeless(live), &timeless(&applied.object)));
    if applied.changed == same {
        return Err((format!("said changed: {}", applied.changed), Vec::new()));
    }
    Ok(applied.object)
}

fn at_version(object: Option<&mut Value>, version: &str) {
    if let Some(map) = object.and_then(Value::as_object_mut) {
        map.insert("apiVersion".to_owned(), Value::String(version.to_owned()));
    }
}

/// The lines of a message, sorted: the server reports several faults in no particular order.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// An object whose managed fields have no times, in an order that does not depend on them.
fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    if let Some(entries) = entries {
        for entry in entries.iter_mut() {
            entry.as_object_mut().map(|entry: &mut Map<String, Value>| entry.shift_remove("time"));
        }
        entries.sort_by_cached_key(|entry| {
            ["operation", "manager", "apiVersion", "subresource"]
                .map(|name| entry[name].to_string())
        });
    }
    object
}

/// Equality in which `1` is `1.0`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
