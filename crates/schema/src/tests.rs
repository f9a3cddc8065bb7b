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

    fn definition(&mut self, crd: &Value, record: &Value) {
        self.cases += 1;
        let context = format!("{crd}\n  old {}", record["old"]);
        let errors = validate_crd(crd, record.get("old"));
        self.compare("crd", &context, &texts(&errors), &wanted(&record["errors"]));
    }

    fn case(&mut self, schema: &Structural, raw: &Value, case: &Value) {
        let value = &case["value"];
        let context = format!("{raw}\n  value  {value}\n  old {}", case["old"]);
        if let Some(theirs) = case.get("rules") {
            let errors = schema.validate_rules(value, case.get("old")).errors;
            return self.compare("rules", &context, &texts(&errors), &wanted(theirs));
        }
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
        let record: Value = serde_json::from_str(line).unwrap();
        match record.get("crd") {
            Some(crd) => replay.definition(crd, &record),
            None => replay.schema(&record),
        }
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
    replay(include_str!("../testdata/vectors.jsonl"));
}

#[test]
fn rules_apply_where_the_real_server_applies_them() {
    replay(include_str!("../testdata/rules.jsonl"));
}

#[test]
fn definitions_are_judged_as_the_real_server_judges_them() {
    replay(include_str!("../testdata/definitions.jsonl"));
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
    let vectors: Value = serde_json::from_str(include_str!("../testdata/columns.json")).unwrap();
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
                let (shown, theirs) = (ours.to_string().replace(".0]", "]"), theirs.to_string());
                if shown != theirs {
                    differences.push(format!("{path} {kind}: {ours} {theirs}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_whole_float_is_an_integer_and_other_faults_have_the_known_words() {
    let schema = Structural::compile(&serde_json::json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": { "replicas": { "type": "integer", "minimum": 1 } } },
            "status": { "type": "object", "properties": { "phase": { "type": "string", "enum": ["A"] } } },
        },
    }))
    .unwrap();
    let check = |value: &str, expected: &[&str]| {
        let value: Value = serde_json::from_str(value).unwrap();
        let texts: Vec<String> =
            schema.validate(&value, None).iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    };
    check(r#"{"spec":{"replicas":2.0}}"#, &[]);
    check(
        r#"{"spec":{"replicas":"3"}}"#,
        &[
            r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string""#,
        ],
    );
    check(
        r#"{"spec":{"replicas":0}}"#,
        &[
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
        ],
    );
}

#[test]
fn a_status_write_is_held_to_the_status_only() {
    let schema = Structural::compile(&serde_json::json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "required": ["size"], "properties": { "size": { "type": "integer" } } },
            "status": { "type": "object", "properties": { "phase": { "type": "string", "enum": ["A"] } } },
        },
    }))
    .unwrap();
    let object = |phase: &str| serde_json::json!({ "spec": {}, "status": { "phase": phase } });
    let texts = |new: &str, old: &str| -> Vec<String> {
        let errors = schema.validate_status(&object(new), &object(old));
        errors.iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts("B", "A"), [r#"status.phase: Unsupported value: "B": supported values: "A""#]);
    assert!(texts("B", "B").is_empty(), "what did not change is forgiven");
}
