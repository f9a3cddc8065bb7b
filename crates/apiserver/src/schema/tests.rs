//! Vectors made with the Go code of the real server, replayed

use serde_json::{Map, Value};

use super::*;

/// What differs between two lists of errors, as text.
fn texts(errors: &[FieldError]) -> Vec<(String, String, String)> {
    let entry = |e: &FieldError| (e.to_string(), e.kind.reason().to_owned(), e.path.clone());
    let mut texts: Vec<_> = errors.iter().map(entry).collect();
    texts.sort();
    texts
}

fn wanted(value: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let entry = |e: &Value| (text(e, "M"), text(e, "T"), text(e, "F"));
    let mut wanted: Vec<_> = value.as_array().unwrap().iter().map(entry).collect();
    wanted.sort();
    wanted
}

struct Replay {
    cases: usize,
    differences: Vec<String>,
}

impl Replay {
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        case: &str,
        ours: &T,
        theirs: &T,
    ) {
        if ours != theirs {
            self.differences
                .push(format!("{what}: {case}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }

    fn schema(&mut self, record: &Value) {
        let raw = &record["schema"];
        let compiled = Structural::compile(raw);
        if let Some(errors) = record.get("structural") {
            self.cases += 1;
            let ours = texts(&compiled.err().unwrap_or_default());
            self.compare("structural", &raw.to_string(), &ours, &wanted(errors));
            return;
        }
        let schema = compiled.unwrap_or_else(|errors| panic!("{raw}: {errors:?}"));
        for case in record["cases"].as_array().unwrap() {
            self.cases += 1;
            self.case(&schema, raw, case);
        }
    }

    fn case(&mut self, schema: &Structural, raw: &Value, case: &Value) {
        let value = &case["value"];
        let context = format!("{raw}\n  value  {value}\n  old {}", case["old"]);
        let mut pruned = value.clone();
        let unknown = schema.prune(&mut pruned, Root::Resource);
        self.compare("pruned", &context, &pruned, &case["pruned"]);
        self.compare("unknown", &context, &Value::from(unknown), &case["unknown"]);
        let mut coerced = value.clone();
        let result = schema.coerce(&mut coerced, Malformed::Drop);
        if let Some(theirs) = case.get("coerced") {
            assert!(result.is_ok());
            self.compare("coerced", &context, &coerced, theirs);
        }
        let mut defaulted = value.clone();
        schema.default(&mut defaulted);
        self.compare("defaulted", &context, &defaulted, &case["defaulted"]);
        let errors = schema.validate(value, None);
        self.compare("errors", &context, &texts(&errors), &wanted(&case["errors"]));
        if let Some(old) = case.get("old") {
            let errors = schema.validate(value, Some(old));
            self.compare("update", &context, &texts(&errors), &wanted(&case["update"]));
        }
    }
}

fn replay(text: &str) {
    let mut replay = Replay { cases: 0, differences: Vec::new() };
    for line in text.lines() {
        replay.schema(&serde_json::from_str(line).unwrap());
    }
    let mut kinds: Map<String, Value> = Map::new();
    for difference in &replay.differences {
        let kind = difference.split(':').next().unwrap_or_default();
        let count = kinds.get(kind).and_then(Value::as_u64).unwrap_or(0);
        kinds.insert(kind.to_owned(), Value::from(count + 1));
    }
    for difference in replay.differences.iter().take(12) {
        println!("{difference}\n");
    }
    println!("{} cases, differences {}", replay.cases, Value::Object(kinds));
    assert!(replay.cases > 0 && replay.differences.is_empty());
}

#[test]
fn answers_are_those_of_the_real_server() {
    replay(include_str!("../../testdata/schema/vectors.jsonl"));
}

/// More vectors than a repository should hold: made on the side, named by `APRON_VECTORS`.
#[test]
fn more_answers_are_those_of_the_real_server() {
    #[expect(clippy::disallowed_methods, reason = "a developer's knob, not a setting")]
    let Some(path) = std::env::var_os("APRON_VECTORS") else { return };
    #[expect(clippy::disallowed_methods, reason = "test")]
    replay(&std::fs::read_to_string(path).unwrap());
}

#[test]
fn cells_are_those_of_the_real_server() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../testdata/schema/columns.json")).unwrap();
    let now = vectors["now"].as_i64().unwrap();
    let objects = vectors["objects"].as_array().unwrap();
    let mut differences = Vec::new();
    for (path, column) in vectors["columns"].as_object().unwrap() {
        assert_eq!(jsonpath::JsonPath::parse(path).is_ok(), column["ok"] == true, "{path}");
        for (kind, rows) in column["cells"].as_object().unwrap() {
            let entry = serde_json::json!({ "name": "c", "type": kind, "jsonPath": path });
            let version = serde_json::json!({ "additionalPrinterColumns": [entry] });
            for (object, theirs) in objects.iter().zip(rows.as_array().unwrap()) {
                let ours = Value::from(columns::cells(&version, object, now));
                // A whole float is written without its point by Go.
                if ours.to_string().replace(".0]", "]") != theirs.to_string() {
                    differences.push(format!("{path} {kind}: {ours} {theirs}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
