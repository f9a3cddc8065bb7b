use serde_json::json;

use super::*;
use crate::{Limits, parse};

#[test]
fn objects_look_as_kubernetes_shows_them() {
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {}, "finalizers": []},
        "data": {"a10": "on", "a2": "1.0", "text": "x\ny\n", "open": "x\n\n", "none": ""},
        "list": [{"a": 1, "b": [1.5, [true, null]]}, "x: y"],
    });
    insta::assert_snapshot!(to_string(&object), @r#"
    apiVersion: v1
    data:
      a2: "1.0"
      a10: "on"
      none: ""
      open: |+
        x

      text: |
        x
        y
    kind: ConfigMap
    list:
    - a: 1
      b:
      - 1.5
      - - true
        - null
    - 'x: y'
    metadata:
      finalizers: []
      labels: {}
      name: a
    "#);
}

/// What `sigs.k8s.io/yaml` makes of each is in `testdata`.
#[test]
fn every_vector_is_written_as_the_original_writes_it() {
    let vectors: Vec<(Value, String)> =
        serde_json::from_str(include_str!("../../testdata/written.json")).unwrap();
    assert!(vectors.len() > 300);
    for (value, text) in vectors {
        assert_eq!(to_string(&value), text, "{value}");
    }
}

#[test]
fn keys_are_ordered_as_people_count() {
    let keys = |object: Value| {
        let text = to_string(&object);
        text.lines().map(|line| line.split_once(':').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    let natural = keys(json!({"b": 1, "a10": 1, "a9": 1, "a-": 1, "B": 1, "a": 1, "a09": 1}));
    assert_eq!(natural, ["B", "a", "a-", "a9", "a09", "a10", "b"]);
    // A circle: each before the next, the last before the first. Equal ones still look equal.
    let circle = keys(json!({"b39": 1, "b3a": 1, "b18": 1}));
    assert_eq!(circle, keys(json!({"b18": 1, "b39": 1, "b3a": 1})));
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(|number: f64| json!(number)),
            "[ -~\n\tä\u{2028}\u{85}😀]{0,120}".prop_map(Value::from),
            "[-+0-9:._eEyYnNoOfFtT~<]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec(("[ -~\n]{0,20}|[a-c]{125,140}", inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whole floats are read as integers, so numbers are compared as such.
        #[test]
        fn what_is_written_is_read_back(value in value()) {
            let text = to_string(&value);
            let read = parse(&text, 1, &Limits::default()).map(|node| node.to_json());
            prop_assert_eq!(read.map(|read| to_string(&read)), Ok(text));
        }
    }
}
