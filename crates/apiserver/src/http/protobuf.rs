//! Bodies in protobuf, for the kinds that kubectl sends that way.
//!
//! A table says which number is which field. What the table does not know is refused, not
//! dropped: the client is told that it must send JSON.

use base64::Engine;
use serde_json::{Map, Value, json};

/// The media type.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What a field holds.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Number,
    Flag,
    Texts,
    TextMap,
    BytesMap,
    Message(&'static [Field]),
    /// Set by the server; whatever a client says here has no effect.
    Ignored,
}

type Field = (u64, &'static str, Form);

const META: &[Field] = &[
    (1, "name", Form::Text),
    (2, "generateName", Form::Text),
    (3, "namespace", Form::Text),
    (4, "selfLink", Form::Ignored),
    (5, "uid", Form::Text),
    (6, "resourceVersion", Form::Text),
    (7, "generation", Form::Ignored),
    (8, "creationTimestamp", Form::Ignored),
    (11, "labels", Form::TextMap),
    (12, "annotations", Form::TextMap),
    (14, "finalizers", Form::Texts),
];
const NAMESPACE: &[Field] = &[
    (1, "metadata", Form::Message(META)),
    (2, "spec", Form::Message(&[(1, "finalizers", Form::Texts)])),
    (3, "status", Form::Message(&[(1, "phase", Form::Text)])),
];
const CONFIG_MAP: &[Field] = &[
    (1, "metadata", Form::Message(META)),
    (2, "data", Form::TextMap),
    (3, "binaryData", Form::BytesMap),
    (4, "immutable", Form::Flag),
];
const SECRET: &[Field] = &[
    (1, "metadata", Form::Message(META)),
    (2, "data", Form::BytesMap),
    (3, "type", Form::Text),
    (4, "stringData", Form::TextMap),
    (5, "immutable", Form::Flag),
];
const ACCOUNT: &[Field] = &[(1, "metadata", Form::Message(META))];
const PRECONDITIONS: &[Field] = &[(1, "uid", Form::Text), (2, "resourceVersion", Form::Text)];
const DELETE: &[Field] = &[
    (1, "gracePeriodSeconds", Form::Number),
    (2, "preconditions", Form::Message(PRECONDITIONS)),
    (3, "orphanDependents", Form::Flag),
    (4, "propagationPolicy", Form::Text),
    (5, "dryRun", Form::Texts),
];

/// The object in a body, if it is of a kind and a form that the tables know.
pub fn decode(bytes: &[u8]) -> Option<Value> {
    let envelope = bytes.strip_prefix(b"k8s\0")?;
    let mut found = (String::new(), String::new(), &[][..]);
    for (number, value) in fields(envelope)? {
        match (number, value) {
            (1, Wire::Block(block)) => {
                for (number, value) in fields(block)? {
                    match (number, value) {
                        (1, Wire::Block(text)) => found.0 = utf8(text)?,
                        (2, Wire::Block(text)) => found.1 = utf8(text)?,
                        _ => return None,
                    }
                }
            }
            (2, Wire::Block(raw)) => found.2 = raw,
            _ => {}
        }
    }
    let (api_version, kind, raw) = found;
    let table = match (api_version.as_str(), kind.as_str()) {
        ("v1", "Namespace") => NAMESPACE,
        ("v1", "ConfigMap") => CONFIG_MAP,
        ("v1", "Secret") => SECRET,
        ("v1", "ServiceAccount") => ACCOUNT,
        (_, "DeleteOptions") => DELETE,
        _ => return None,
    };
    let mut object = message(raw, table)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Some(Value::Object(object))
}

fn message(bytes: &[u8], table: &[Field]) -> Option<Map<String, Value>> {
    let code = |bytes: &[u8]| json!(base64::engine::general_purpose::STANDARD.encode(bytes));
    let mut out = Map::new();
    for (number, wire) in fields(bytes)? {
        let (_, name, form) = table.iter().find(|(known, ..)| *known == number)?;
        let value = match (form, wire) {
            (Form::Ignored, _) | (Form::Text, Wire::Block(b"")) => continue,
            (Form::Text, Wire::Block(text)) => json!(utf8(text)?),
            (Form::Number, Wire::Number(number)) => json!(number.cast_signed()),
            (Form::Flag, Wire::Number(number)) => json!(number != 0),
            (Form::Message(table), Wire::Block(inner)) => Value::Object(message(inner, table)?),
            (Form::Texts, Wire::Block(text)) => {
                let list = out.entry(*name).or_insert_with(|| json!([]));
                list.as_array_mut()?.push(json!(utf8(text)?));
                continue;
            }
            (Form::TextMap | Form::BytesMap, Wire::Block(pair)) => {
                let (mut key, mut value) = (String::new(), &[][..]);
                for (number, wire) in fields(pair)? {
                    match (number, wire) {
                        (1, Wire::Block(text)) => key = utf8(text)?,
                        (2, Wire::Block(bytes)) => value = bytes,
                        _ => return None,
                    }
                }
                let value =
                    if matches!(form, Form::TextMap) { json!(utf8(value)?) } else { code(value) };
                let map = out.entry(*name).or_insert_with(|| json!({}));
                map.as_object_mut()?.insert(key, value);
                continue;
            }
            _ => return None,
        };
        out.insert((*name).to_owned(), value);
    }
    Some(out)
}

enum Wire<'a> {
    Number(u64),
    Block(&'a [u8]),
}

fn utf8(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// A message's fields, or nothing when it is malformed.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let wire = match key & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (block, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Block(block)
            }
            _ => return None,
        };
        out.push((key >> 3, wire));
    }
    Some(out)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_is_read() {
        let body = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x19\n\x11\n\x02p2\x12\0\x1a\x07default\"\0\x12\x04\n\0\x12\0";
        let expect = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"": ""},
            "metadata": {"name": "p2", "namespace": "default"}});
        assert_eq!(decode(body), Some(expect));
        assert_eq!(decode(&body[..20]), None, "cut short");
        assert_eq!(decode(b"{}"), None);
    }
}
