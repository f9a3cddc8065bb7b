//! What requests cost: time and memory linear in what a client sends, measured by growing it.
//!
//! Four times as much takes four times as long, and a little more where things are sorted or do
//! not fit a cache; with a square in it, sixteen times. What counts is how long this thread
//! worked, not how long it waited: tests run beside each other. Memory is the most that the thread
//! had at once, which is counted, and the same each time. Expressions count their steps
//! (`cel::tests`), JSON patches what they move (`patch::json`).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use crate::http::body::BODY_MAX;
use crate::kind::Kinds;
use crate::kind::shape;
use apply::fieldpath::Set;
use apply::patch::{self, strategic};
use apply::types::Schema;
use apply::{self, ApplyContext, Timestamp};
use schema::object::selector::{Fields, Labels};
use schema::object::{path, strict};
use schema::{Root, Structural};

/// More than linear work that is sorted takes, less than a square.
const GROWTH_MAX: f64 = 10.0;
/// More than four times as much memory, for buffers that grow by doubling; less than a square. In
/// hundredths.
const MEMORY_GROWTH_MAX: u64 = 600;
/// What some work needs however little there is to do.
const MEMORY_LEAST: u64 = 16 << 10;

fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap());
    Duration::new(seconds, nanos)
}

/// The least that some work takes; what comes in between makes it more, never less.
fn least<T>(mut work: impl FnMut() -> T) -> f64 {
    let times = (0..4).map(|_| {
        let start = worked();
        std::hint::black_box(work());
        worked().saturating_sub(start).as_secs_f64()
    });
    times.fold(f64::MAX, f64::min)
}

/// The most memory that some work has at once.
fn peak_memory<T>(work: impl FnOnce() -> T) -> u64 {
    let info = allocation_counter::measure(|| drop(std::hint::black_box(work())));
    info.bytes_max
}

/// How many times as much memory the second work has at once, in hundredths.
fn memory_growth<T>(few: impl FnOnce() -> T, many: impl FnOnce() -> T) -> u64 {
    let (few, many) = (peak_memory(few).max(MEMORY_LEAST), peak_memory(many));
    100 * many / few
}

/// Checks that work on four times as much takes no more time and memory than linear work does.
fn check<I, T>(what: &str, count: usize, make: impl Fn(usize) -> I, work: impl Fn(&I) -> T) {
    let (small, big) = (make(count), make(4 * count));
    // What is made once for all is not this work's.
    drop(work(&small));
    let memory = memory_growth(|| work(&small), || work(&big));
    assert!(memory < MEMORY_GROWTH_MAX, "{what}: four times as much took {memory} % of the memory");
    let mut growth = f64::MAX;
    for _ in 0..5 {
        let few = least(|| work(&small)).max(1e-4);
        growth = growth.min(least(|| work(&big)) / few);
        if growth < GROWTH_MAX {
            return;
        }
    }
    panic!("{what}: four times as much took {growth} times as long");
}

/// `{"k0": value, "k1": value, …}`, last first: what is kept in order finds it in the worst one.
fn fields(count: usize, value: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..count).rev().map(|at| (format!("k{at:06}"), value(at))).collect()
}

fn named(count: usize) -> Vec<Value> {
    (0..count).rev().map(|at| json!({"name": format!("n{at:06}"), "value": "v"})).collect()
}

/// What judges memory here can tell linear work from a square.
#[test]
fn memory_that_grows_as_a_square_is_noticed() {
    let linear = |count: usize| vec![1_u8; 1000 * count];
    let square = |count: usize| (0..count).map(|_| linear(count)).collect::<Vec<_>>();
    let linear = memory_growth(|| linear(50), || linear(200));
    let square = memory_growth(|| square(50), || square(200));
    assert!((390..410).contains(&linear), "{linear}");
    assert!(square > 2 * MEMORY_GROWTH_MAX, "{square}");
}

#[test]
fn h5_strict_decoding_is_linear() {
    let text = |count: usize, times: usize| {
        let one = |at: usize| vec![format!("\"k{at}\":1"); times].join(",");
        let all: Vec<String> = (0..count).map(one).collect();
        format!("{{{}}}", all.join(","))
    };
    check("new keys", 20_000, |count| text(count, 1), |text| strict::parse(text.as_bytes()));
    check("keys twice", 10_000, |count| text(count, 2), |text| strict::parse(text.as_bytes()));
    // A long name is around everything that is told of.
    let wrapped = |count: usize| format!("{{{:?}:{}}}", "x".repeat(20 * count), text(count, 2));
    check("long paths", 5_000, wrapped, |text| strict::parse(text.as_bytes()));
}

#[test]
fn h5_unknown_fields_are_linear() {
    let kinds = Kinds::new();
    let kind = kinds.find("authorization.k8s.io", "v1", "selfsubjectaccessreviews").unwrap();
    let object = |count: usize| {
        let mut map = fields(count, |_| json!(1));
        map.insert("metadata".to_owned(), Value::Object(fields(count, |_| json!(1))));
        Value::Object(map)
    };
    check("unknown fields", 10_000, object, |object| {
        let mut pruned = object.clone();
        let unknown = crate::http::body::prune(&kind, &mut pruned);
        crate::http::body::dropped(&kind, unknown, || object.clone()).count()
    });
}

fn structural(schema: &Value) -> Structural {
    let spec = json!({"type": "object", "properties": {"spec": schema}});
    Structural::compile(&spec).unwrap()
}

fn map_list(rules: &Value) -> Structural {
    structural(&json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "x-kubernetes-validations": rules,
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}}},
    }))
}

#[test]
fn h5_updates_of_long_lists_are_linear() {
    let rules = json!([{"rule": "self.value == 'never'"}]);
    let (plain, judged) = (map_list(&json!([])), map_list(&rules));
    let object = |count: usize| json!({"spec": named(count)});
    check("lists by key", 5_000, object, |object| {
        let wrong = json!({"spec": object["spec"].as_array().unwrap().iter().rev().cloned()
            .chain([json!(1)]).collect::<Vec<_>>()});
        (plain.validate(&wrong, Some(object)), plain.validate(object, Some(object)))
    });
    check("rules on lists", 1_000, object, |object| judged.validate_rules(object, Some(object)));
    let atomic = structural(&json!({"type": "array", "items": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self < 0"}]}}));
    let numbers = |count: usize| json!({"spec": (0..count).collect::<Vec<_>>()});
    check("rules on unchanged lists", 2_000, numbers, |object| {
        atomic.validate_rules(object, Some(object))
    });
}

/// M1: every index copied the list. What else expressions do is counted in `cel::tests`.
#[test]
fn m1_rules_that_look_things_up_are_linear() {
    let rule = "self.l.all(x, self.l[0] == 0) && self.l.all(x, self.l.exists(y, y == 0))";
    let ruled = structural(&json!({"type": "object",
        "x-kubernetes-validations": [{"rule": rule}],
        "properties": {"l": {"type": "array", "items": {"type": "integer"}}}}));
    let object = |count: usize| json!({"spec": {"l": vec![0; count]}});
    check("indices", 1_000, object, |object| {
        assert!(ruled.validate_rules(object, None).errors.is_empty());
    });
}

#[test]
fn h5_faults_are_linear() {
    let strings = structural(&json!({"type": "object", "additionalProperties": {"type": "array",
        "x-kubernetes-list-type": "set", "items": {"type": "string"}}}));
    let object = |count: usize| {
        let name = "x".repeat(10 * count);
        json!({"spec": {name: (0..count).map(|at| at / 2).collect::<Vec<_>>()}})
    };
    check("faults", 5_000, object, |object| strings.validate(object, None));
    let known = structural(&json!({"type": "object", "additionalProperties": {"type": "object",
        "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}}));
    let unknown = |count: usize| {
        let name = "x".repeat(10 * count);
        json!({"spec": {name: fields(count, |_| json!({"b": 1}))}})
    };
    check("unknown below long names", 5_000, unknown, |object| {
        known.prune(&mut object.clone(), Root::Resource)
    });
    let errors = |count: usize| {
        let one =
            |at: usize| schema::object::field_error::FieldError::required(&at.to_string(), "");
        (0..count).map(one).collect::<Vec<_>>()
    };
    check("causes", 5_000, errors, |errors| {
        crate::http::status::Failure::invalid("Widget", "example.org", "w", errors)
    });
}

#[test]
fn h5_checks_of_built_in_kinds_are_linear() {
    let held = |count: usize| {
        let finalizers: Vec<String> = (0..count).map(|at| format!("a/f{at}")).collect();
        json!({"metadata": {"finalizers": finalizers, "deletionTimestamp": "now"}})
    };
    check("finalizers", 5_000, held, |object| schema::object::meta::check_update(object, object));
    let kinds = Kinds::new();
    let kind = kinds.find("apps", "v1", "deployments").unwrap();
    let deployment =
        |count: usize| json!({"spec": {"template": {"spec": {"containers": named(count)}}}});
    check("containers", 5_000, deployment, |object| crate::kind::check(&kind, object, None).len());
    let kind =
        kinds.find("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations").unwrap();
    let hooks = |count: usize| json!({"webhooks": named(count)});
    check("webhooks", 1_000, hooks, |object| crate::kind::check(&kind, object, None).len());
}

#[test]
fn yaml_bodies_are_linear() {
    let text = |count: usize| {
        let lines: Vec<String> = (0..count).map(|at| format!("k{at}: 1\nk{at}: 2\n")).collect();
        lines.concat()
    };
    check("keys set twice", 5_000, text, |text| {
        schema::object::lines::parse(text.as_bytes()).unwrap()
    });
}

/// However little text it takes to ask for much by repeating what is there.
#[test]
fn h5_what_refers_to_itself_takes_no_more_memory_than_it_may() {
    let aliases = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!("k{at}: *a\n")).collect();
        format!("a: &a [{}1]\n{}", "1, ".repeat(count), all.concat())
    };
    check("aliases", 1_000, aliases, |text| schema::object::lines::parse(text.as_bytes()).is_ok());
    let copies = |count: usize| {
        let copy = |at: usize| json!({"op": "copy", "from": "/l", "path": format!("/l/k{at}")});
        (json!({"l": {}}), Value::Array((0..count).map(copy).collect()))
    };
    // A body of the largest size takes as much.
    let body = Value::Object(fields(BODY_MAX / 13, |_| json!({}))).to_string();
    let most = peak_memory(|| strict::parse(body.as_bytes()));
    for count in [20, 100, 1_000] {
        let (mut object, patch) = copies(count);
        let peak = peak_memory(|| patch::json(&mut object, &patch).is_ok());
        assert!(peak < 2 * most, "{count} copies took {peak} bytes, a body takes {most}");
    }
}

#[test]
fn l10_json_and_merge_patches_are_linear() {
    let list = |count: usize| (json!({"l": vec![0; count]}), count);
    check("adding to a list", 2_000, list, |(object, count)| {
        let add = json!({"op": "add", "path": "/l/-", "value": 1});
        patch::json(&mut object.clone(), &Value::Array(vec![add; *count]))
    });
    let map = |count: usize| Value::Object(fields(count, |at| json!(at)));
    check("merging", 10_000, map, |object| patch::merge(&mut object.clone(), object));
    check("removing", 10_000, map, |object| {
        let count = object.as_object().unwrap().len();
        let nulls = Value::Object(fields(count, |_| Value::Null));
        patch::merge(&mut object.clone(), &nulls);
    });
}

#[test]
fn h5_strategic_patches_are_linear() {
    let meta = shape::merging("v1", "Pod");
    let pod = |items: Vec<Value>| json!({"spec": {"containers": items}});
    let merged = |old: &Value, patch: Value| {
        let (Value::Object(old), Value::Object(patch)) = (old.clone(), patch) else { panic!() };
        strategic::strategic(old, patch, meta)
    };
    let make = |count: usize| pod(named(count));
    check("merging by key", 2_000, make, |old| merged(old, old.clone()));
    check("deleting by key", 2_000, make, |old| {
        let items = old["spec"]["containers"].as_array().unwrap().iter();
        let gone = items.map(|item| json!({"name": item["name"], "$patch": "delete"}));
        merged(old, pod(gone.collect()))
    });
    check("an order of others", 2_000, make, |old| {
        let items = old["spec"]["containers"].as_array().unwrap();
        let new = (0..items.len()).map(|at| json!({"name": format!("new{at}")}));
        let patch = json!({"spec": {"containers": new.collect::<Vec<_>>(),
            "$setElementOrder/containers": [{"name": "nobody"}]}});
        merged(old, patch)
    });
    let labels = |count: usize| json!({"metadata": {"labels": fields(count, |_| json!("v"))}});
    check("removing fields", 10_000, labels, |old| {
        let count = old["metadata"]["labels"].as_object().unwrap().len();
        merged(old, json!({"metadata": {"labels": fields(count, |_| Value::Null)}}))
    });
    check("retaining fields", 5_000, labels, |old| {
        let keys: Vec<&String> = old["metadata"]["labels"].as_object().unwrap().keys().collect();
        merged(old, json!({"metadata": {"labels": {"$retainKeys": keys}}}))
    });
}

#[test]
fn h5_apply_is_linear() {
    let schema = json!({"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "value": {"type": "string"}}}},
    }});
    let types = Schema::from_crd(Some(&schema), false);
    let context = |manager| {
        let named = ("example.org/v1", "Widget");
        let mut context = ApplyContext::new(manager, Timestamp(0), named, &types);
        context.force = true;
        context
    };
    let object = |count: usize| {
        let set: Vec<String> = (0..count).rev().map(|at| format!("s{at:06}")).collect();
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"},
            "map": fields(count, |at| json!(at)), "set": set, "list": named(count)})
    };
    check("applying", 2_000, object, |config| {
        let first = apply::apply(None, config, &context("first")).unwrap().object;
        let mut other = config.clone();
        other["map"] =
            Value::Object(fields(2 * config["list"].as_array().unwrap().len(), |_| json!(7)));
        let second = apply::apply(Some(&first), &other, &context("second")).unwrap().object;
        apply::update(Some(&second), config, &context("third")).unwrap()
    });
}

#[test]
fn h5_field_paths_are_linear() {
    let owned = |count: usize| {
        let keys = (0..count).rev().flat_map(|at| {
            let item = format!("k:{{\"name\":\"n{at:06}\"}}");
            [format!("f:k{at:06}"), format!("v:\"s{at:06}\""), item]
        });
        Value::Object(keys.map(|key| (key, json!({".": {}, "f:x": {}}))).collect())
    };
    check("managed fields", 3_000, owned, |fields| {
        let set = Set::from_fields(fields).unwrap();
        (set.union(&set), set.difference(&set), set.paths(), set.to_fields())
    });
    let conditions = |count: usize| json!({"status": {"conditions": named(count)}});
    check("paths of columns", 5_000, conditions, |object| {
        let at = ".status.conditions[?(@.name==\"n000001\")].value";
        path::find(object, at).len() + path::find(object, ".status.conditions[*].name").len()
    });
}

#[test]
fn h5_selectors_are_linear() {
    let text = |count: usize| {
        let values: Vec<String> = (0..count).map(|at| format!("v{at}")).collect();
        let keys: Vec<String> = (0..count).map(|at| format!("k{at}!=x")).collect();
        format!("a in ({}),{}", values.join(","), keys.join(","))
    };
    check("label selectors", 2_000, text, |text| Labels::parse(text).unwrap());
    let read = |count: usize| {
        let labels = Value::Object(fields(count, |_| json!("v1")));
        (Labels::parse(&format!("!z,{}", text(count))).unwrap(), labels)
    };
    check("matching labels", 2_000, read, |(selector, labels)| {
        selector.matches(labels.as_object())
    });
    let fields = |count: usize| vec!["metadata.name!=x"; count].join(",");
    check("field selectors", 2_000, fields, |text| {
        let fields = Fields::parse(text).unwrap();
        fields.matches(|_| "y".to_owned())
    });
}
