//! Tables for what a reader would look up, and replays of recorded sequences for the rest.

mod replay;

use serde_json::{Value, json};

use super::fieldpath::{Path, Set};
use super::types::Schema;
use super::{ApplyContext, ApplyError, SameShape, Timestamp, apply, keep_times, update};

const VERSION: &str = "example.org/v1";

/// A kind with one field of each sort.
fn schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "whole": {"type": "array", "items": {"type": "integer"}},
                    "tags": {
                        "type": "array", "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"}, "name": {"type": "string"},
                                "protocol": {"type": "string", "default": "TCP"},
                            },
                        },
                    },
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    });
    Schema::from_crd(Some(&schema), false)
}

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "T", "metadata": {"name": "n", "namespace": "ns"}, "spec": spec,
    })
}

/// One object and everybody who writes to it, a second apart.
struct World {
    schema: Schema,
    live: Option<Value>,
    now: i64,
}

impl World {
    fn new() -> Self {
        Self { schema: schema(), live: None, now: 0 }
    }

    fn apply(&mut self, manager: &str, force: bool, spec: &Value) -> Result<bool, ApplyError> {
        self.now += 1;
        let now = Timestamp(self.now);
        let context = ApplyContext::new(manager, now, (VERSION, "T"), &self.schema);
        let context = ApplyContext { force, ..context };
        let applied = apply(self.live.as_ref(), &object(spec), &context)?;
        self.live = Some(applied.object);
        Ok(applied.changed)
    }

    fn refused(&mut self, manager: &str, spec: &Value) -> String {
        self.apply(manager, false, spec).expect_err("refused").message()
    }

    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        self.now += 1;
        let now = Timestamp(self.now);
        let context = ApplyContext::new(manager, now, (VERSION, "T"), &self.schema);
        let mut new = self.live.clone().unwrap_or_else(|| object(&json!({})));
        change(&mut new);
        self.live = Some(update(self.live.as_ref(), &new, &context).unwrap());
    }

    fn spec(&self) -> &Value {
        &self.live.as_ref().unwrap()["spec"]
    }

    /// Owners as `manager operation fields time`.
    fn owners(&self) -> Vec<String> {
        let list = &self.live.as_ref().unwrap()["metadata"]["managedFields"];
        let show = |entry: &Value| {
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let time = text("time").replace("1970-01-01T00:00:", "");
            format!("{} {} {time} {}", text("manager"), text("operation"), entry["fieldsV1"])
        };
        list.as_array().map(|list| list.iter().map(show).collect()).unwrap_or_default()
    }
}

#[test]
fn recorded_sequences_end_as_the_server_ended_them() {
    let mut operations = 0;
    for line in include_str!("../../testdata/sequences.jsonl").lines() {
        operations += replay::replay(line).unwrap_or_else(|difference| panic!("{difference}"));
    }
    assert!(operations > 400, "{operations}");
}

#[test]
fn fields_no_longer_applied_go_unless_somebody_else_owns_them() {
    let mut world = World::new();
    world.apply("a", false, &json!({"size": 1, "labels": {"x": "1", "y": "1"}})).unwrap();
    world.apply("b", false, &json!({"labels": {"y": "1"}})).unwrap();
    world.apply("a", false, &json!({"size": 1})).unwrap();
    assert_eq!(world.spec(), &json!({"size": 1, "labels": {"y": "1"}}));
    let want = [
        r#"b Apply - {"f:spec":{"f:labels":{"f:y":{}}}}"#,
        r#"a Apply 03Z {"f:spec":{"f:size":{}}}"#,
    ];
    assert_eq!(world.owners(), want);
}

#[test]
fn conflicts_are_worded_as_the_server_words_them() {
    let mut world = World::new();
    world.apply("a", false, &json!({"size": 1, "ports": [{"port": 80, "name": "x"}]})).unwrap();
    assert_eq!(
        world.refused("b", &json!({"size": 2})),
        r#"Apply failed with 1 conflict: conflict with "a": .spec.size"#
    );
    world.update("u", |object| object["spec"]["whole"] = json!([1]));
    assert_eq!(
        world.refused("b", &json!({"size": 2, "whole": [], "ports": [{"port": 80, "name": "y"}]})),
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.size\n\
         - .spec.ports[port=80,protocol=\"TCP\"].name\n\
         conflicts with \"u\" using example.org/v1:\n- .spec.whole"
    );
    assert!(world.apply("b", false, &json!({"size": 1})).unwrap(), "sharing is no conflict");
    assert!(world.apply("c", true, &json!({"size": 3})).unwrap());
    let owners = world.owners();
    assert!(owners.iter().all(|owner| owner.starts_with("c ") || !owner.contains("f:size")));
}

#[test]
fn repeating_an_apply_changes_nothing() {
    let mut world = World::new();
    let spec = json!({"size": 1, "tags": ["a", "b"], "ports": [{"port": 80}]});
    assert!(world.apply("a", false, &spec).unwrap());
    let before = world.live.clone();
    assert!(!world.apply("a", false, &spec).unwrap());
    assert_eq!(world.live, before);
    let want = r#"a Apply 01Z {"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:size":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}}"#;
    assert_eq!(world.owners(), [want]);
}

#[test]
fn lists_merge_by_identity_in_the_applied_order() {
    let mut world = World::new();
    world.apply("a", false, &json!({"tags": ["1", "2", "3"]})).unwrap();
    world.apply("b", false, &json!({"tags": ["4", "3", "1"]})).unwrap();
    assert_eq!(world.spec()["tags"], json!(["2", "4", "3", "1"]));
    world.apply("a", false, &json!({"tags": ["2"]})).unwrap();
    assert_eq!(world.spec()["tags"], json!(["2", "4", "3", "1"]));
    world.apply("b", false, &json!({"tags": []})).unwrap();
    assert_eq!(world.spec()["tags"], json!(["2"]));
}

#[test]
fn bad_configurations_are_refused() {
    let mut world = World::new();
    let object = "failed to create typed patch object (ns/n; example.org/v1, Kind=T)";
    let check = |world: &mut World, spec: Value, want: &str| {
        assert_eq!(world.refused("a", &spec), format!("{object}: {want}"));
    };
    check(&mut world, json!({"bogus": 1}), ".spec.bogus: field not declared in schema");
    check(
        &mut world,
        json!({"size": "x"}),
        ".spec.size: expected numeric (int or float), got string",
    );
    check(
        &mut world,
        json!({"labels": {"a": 1}}),
        ".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}",
    );
    check(&mut world, json!({"tags": "x"}), ".spec.tags: expected list, got &{x}");
    check(
        &mut world,
        json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
        ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
    );
    let now = Timestamp(0);
    let context = ApplyContext::new("a", now, (VERSION, "T"), &world.schema);
    let mut config = self::object(&json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let error = apply(None, &config, &context).unwrap_err();
    assert_eq!(error.message(), "metadata.managedFields must be nil");
    config["apiVersion"] = json!("v1");
    let error = apply(None, &config, &context).unwrap_err();
    assert_eq!(error.message(), "invalid object type: /v1, Kind=T");
}

#[test]
fn requests_may_rewrite_or_reset_managed_fields() {
    let mut world = World::new();
    world.apply("a", false, &json!({"size": 1})).unwrap();
    let rename =
        |object: &mut Value| object["metadata"]["managedFields"][0]["manager"] = json!("z");
    world.update("u", rename);
    assert_eq!(world.owners(), [r#"z Apply 01Z {"f:spec":{"f:size":{}}}"#]);
    world.update("u", |object| object["metadata"]["managedFields"] = json!("damaged"));
    assert_eq!(world.owners().len(), 1, "damaged lists are ignored");
    world.update("u", |object| {
        object["metadata"]["uid"] = json!("1");
        object["metadata"]["managedFields"] = json!([]);
    });
    world.update("u", |object| object["metadata"]["managedFields"] = json!([{}]));
    assert_eq!(world.owners(), [""; 0]);
    world.update("u", |object| object["spec"]["size"] = json!(2));
    assert_eq!(world.owners(), [""; 0], "nobody is tracked until the next apply");
    world.apply("a", false, &json!({"tags": ["t"]})).unwrap();
    let want = [
        r#"a Apply 07Z {"f:spec":{"f:tags":{"v:\"t\"":{}}}}"#,
        r#"before-first-apply Update 07Z {"f:spec":{".":{},"f:size":{}}}"#,
    ];
    assert_eq!(world.owners(), want);
}

#[test]
fn the_oldest_of_more_than_ten_updaters_are_thrown_together() {
    let mut world = World::new();
    for i in 0..13 {
        world.update(&format!("m{i}"), |object| {
            object["spec"]["labels"][format!("l{i}")] = json!("x");
        });
    }
    let owners = world.owners();
    assert_eq!(owners.len(), 10);
    let fields =
        r#"{"f:spec":{".":{},"f:labels":{".":{},"f:l0":{},"f:l1":{},"f:l2":{},"f:l3":{}}}}"#;
    assert_eq!(owners[0], format!("ancient-changes Update 04Z {fields}"));
}

#[test]
fn subresources_own_apart_and_do_not_own_what_they_reset() {
    let schema = schema();
    let reset = Set::of([Path::fields(["metadata"]), Path::fields(["spec"])]);
    let main = ApplyContext::new("m", Timestamp(1), (VERSION, "T"), &schema);
    let created = update(None, &object(&json!({"size": 1})), &main).unwrap();
    let status = ApplyContext { subresource: "status", reset_fields: Some(&reset), ..main };
    let mut new = created.clone();
    new["spec"]["size"] = json!(2);
    new["status"] = json!({"ready": true});
    let updated = update(Some(&created), &new, &status).unwrap();
    let entries = updated["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {".": {}, "f:size": {}}}));
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {".": {}, "f:ready": {}}}));
}

#[test]
fn managers_at_versions_that_are_gone_are_forgotten() {
    let schema = schema();
    let old = ApplyContext::new("old", Timestamp(1), (VERSION, "T"), &schema);
    let live = update(None, &object(&json!({"size": 1})), &old).unwrap();
    let version = "example.org/v2";
    let mut live = live;
    live["apiVersion"] = json!(version);
    let mut config = object(&json!({"size": 2}));
    config["apiVersion"] = json!(version);
    let new = ApplyContext::new("new", Timestamp(2), (version, "T"), &schema);
    let applied = apply(Some(&live), &config, &new).unwrap();
    assert_eq!(applied.object["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    let both = SameShape { versions: vec![(VERSION, &schema), (version, &schema)] };
    let new = ApplyContext { converter: &both, ..new };
    let error = apply(Some(&live), &config, &new).unwrap_err();
    assert_eq!(
        error.message(),
        r#"Apply failed with 1 conflict: conflict with "old" using example.org/v1: .spec.size"#
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let schema = schema();
    let update_context = ApplyContext::new("csa", Timestamp(1), (VERSION, "T"), &schema);
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut created = object(&json!({"size": 1, "whole": [1]}));
    let last = object(&json!({"size": 1})).to_string();
    created["metadata"]["annotations"] = json!({annotation: last});
    let live = update(None, &created, &update_context).unwrap();
    let context = ApplyContext { manager: "kubectl", now: Timestamp(2), ..update_context };
    let applied = apply(Some(&live), &object(&json!({"size": 2})), &context).unwrap();
    assert_eq!(applied.object["spec"]["size"], 2);
    assert_eq!(
        applied.object["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"example.org/v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"n\",\
         \"namespace\":\"ns\"},\"spec\":{\"size\":2}}\n"
    );
    let error = apply(Some(&live), &object(&json!({"size": 2, "whole": []})), &context);
    assert_eq!(
        error.unwrap_err().message(),
        r#"Apply failed with 1 conflict: conflict with "csa" using example.org/v1: .spec.whole"#
    );
}

#[test]
fn times_alone_are_no_change() {
    let entry =
        |time: &str, fields: Value| json!({"manager": "a", "time": time, "fieldsV1": fields});
    let with = |entry: Value| {
        let mut object = object(&json!({"size": 1}));
        object["metadata"]["managedFields"] = json!([entry]);
        object
    };
    let old = with(entry("1", json!({"f:a": {}})));
    let mut new = with(entry("2", json!({"f:a": {}})));
    keep_times(&old, &mut new);
    assert_eq!(new, old);
    let mut new = with(entry("2", json!({"f:b": {}})));
    keep_times(&old, &mut new);
    assert_ne!(new, old);
    let mut new = with(entry("2", json!({"f:a": {}})));
    new["spec"]["size"] = json!(2);
    keep_times(&old, &mut new);
    assert_eq!(new["metadata"]["managedFields"][0]["time"], "2");
}
