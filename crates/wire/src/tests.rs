//! Random objects and what Go made of them.

use base64::Engine;
use serde_json::{Value, json};

use crate::protobuf::{Malformed, object, open};
use crate::typed::settle;

fn bytes(case: &Value) -> Vec<u8> {
    let engine = base64::engine::general_purpose::STANDARD;
    engine.decode(case["bytes"].as_str().unwrap()).unwrap()
}

fn cases() -> impl Iterator<Item = Value> {
    include_str!("../testdata/objects.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn recorded_objects_read_as_go_reads_them() {
    let mut count = 0;
    for case in cases() {
        let bytes = bytes(&case);
        let found = object(&open(&bytes).unwrap()).unwrap().unwrap();
        let expect = case.get("back").unwrap_or(&case["json"]);
        assert_eq!(found.to_string(), expect.to_string(), "{case}");
        count += 1;
    }
    assert!(count >= 200, "{count}");
}

#[test]
fn recorded_objects_settle_as_go_writes_them() {
    for case in cases() {
        let (version, kind) = case["kind"].as_str().unwrap().rsplit_once('/').unwrap();
        let mut found = case["in"].clone();
        found["kind"] = json!(kind);
        found["apiVersion"] = json!(version);
        settle(version, kind, &mut found);
        assert_eq!(found.to_string(), case["json"].to_string(), "{case}");
    }
}

#[test]
fn a_body_cut_short_anywhere_is_refused_or_read() {
    for case in cases().take(60) {
        let bytes = bytes(&case);
        for end in 0..bytes.len() {
            let _ = open(&bytes[..end]).and_then(|envelope| object(&envelope));
        }
    }
}

#[test]
fn malformed_bytes_are_refused_in_upstreams_words() {
    let inside = |raw: &[u8]| {
        let mut bytes = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12".to_vec();
        bytes.push(u8::try_from(raw.len()).unwrap());
        bytes.extend(raw);
        open(&bytes).and_then(|envelope| object(&envelope)).unwrap_err().to_string()
    };
    assert_eq!(inside(b"\n\x50\n\x02p2"), "unexpected EOF");
    assert_eq!(inside(b"\x08\x01"), "proto: wrong wireType = 0 for field ObjectMeta");
    assert_eq!(inside(b"\x0c"), "proto: ConfigMap: wiretype end group for non-group");
    assert_eq!(inside(b"\x02"), "proto: ConfigMap: illegal tag 0 (wire type 2)");
    assert_eq!(inside(&[0xff; 11]), "proto: integer overflow");
    assert_eq!(inside(b"\x7b\x7c\xff"), Malformed::Cut.to_string());
}

#[test]
fn nesting_is_bounded() {
    // spec.versions[0].schema.openAPIV3Schema.not.not.not…
    let wrap = |number: u8, inner: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = inner.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap());
        out.extend(inner);
        out
    };
    let mut schema = Vec::new();
    for _ in 0..20_000 {
        // Field 28 is `not`; its tag takes two bytes.
        let mut next = wrap(1, &schema);
        next.splice(..1, [0xe2, 0x01]);
        schema = next;
    }
    let version = wrap(4, &wrap(1, &schema));
    let raw = wrap(2, &wrap(7, &version));
    let kind = wrap(1, b"apiextensions.k8s.io/v1");
    let kind = [kind, wrap(2, b"CustomResourceDefinition")].concat();
    let bytes = [b"k8s\0".to_vec(), wrap(1, &kind), wrap(2, &raw)].concat();
    let refused = object(&open(&bytes).unwrap()).unwrap_err();
    assert_eq!(refused.to_string(), "proto: nested deeper than 128");
}
