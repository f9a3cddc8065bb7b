//! `fieldsV1`: sets as JSON.

use serde_json::{Map, Value};

use super::{PathElement, Set};

/// Why a `fieldsV1` value is not a set, or a set cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key has no room for its kind.
    #[error("key must be 2 characters long: {key:?}")]
    ShortKey {
        /// The key.
        key: String,
    },
    /// The second character of a key is not a colon.
    #[error("missing colon: {key}")]
    NoColon {
        /// The key.
        key: String,
    },
    /// What follows the colon does not parse.
    #[error("parsing key as path element: {key}")]
    BadKey {
        /// The key.
        key: String,
    },
    /// A node of the tree is not an object.
    #[error("expected an object of fields")]
    NotAnObject,
    /// The set holds a list item without identity.
    #[error("invalid PathElement")]
    Unidentified,
}

impl Set {
    /// Reads a `fieldsV1` value.
    pub fn from_fields(fields: &Value) -> Result<Self, FieldsError> {
        Ok(read(fields)?.0)
    }

    /// Writes a `fieldsV1` value.
    pub fn to_fields(&self) -> Result<Value, FieldsError> {
        Ok(Value::Object(self.write(Map::with_capacity(self.width()))?))
    }

    /// At most how many keys this node has in JSON.
    fn width(&self) -> usize {
        self.members().len() + self.children().count()
    }

    /// Members and children in one order; a child that is also a member says so with `.`.
    fn write(&self, mut out: Map<String, Value>) -> Result<Map<String, Value>, FieldsError> {
        let mut members = self.members().iter().peekable();
        let mut children = self.children().peekable();
        loop {
            let order = match (members.peek(), children.peek()) {
                (None, None) => return Ok(out),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(member), Some((child, _))) => (*member).cmp(child),
            };
            let member = if order.is_le() { members.next() } else { None };
            let child = if order.is_ge() { children.next() } else { None };
            let Some(element) = member.or(child.map(|(element, _)| element)) else {
                return Ok(out);
            };
            let width = child.map_or(0, |(_, set)| set.width() + 1);
            let mut below = Map::with_capacity(width);
            if let (Some(_), Some((_, set))) = (member, child)
                && !set.is_bare()
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            if let Some((_, set)) = child {
                below = set.write(below)?;
            }
            let key = element.to_key().ok_or(FieldsError::Unidentified)?;
            out.insert(key, Value::Object(below));
        }
    }
}

/// Reads a node: what is below it, and whether the node itself belongs to the set.
fn read(fields: &Value) -> Result<(Set, bool), FieldsError> {
    let mut set = Set::default();
    let mut member = false;
    let empty = Map::new();
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => &empty,
        _ => return Err(FieldsError::NotAnObject),
    };
    let mut nodes = Vec::with_capacity(map.len());
    for (key, below) in map {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = PathElement::from_key(key)? else { continue };
        nodes.push((element, read(below)?));
    }
    // In order, each goes to the end; written by strangers, each might go to the front.
    nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (element, (child, is_member)) in nodes {
        if is_member {
            set.insert_member(element.clone());
        }
        set.insert_child(element, child);
    }
    let bare = set.is_bare();
    Ok((set, member || bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_survive_a_round_trip_in_order() {
        let fields = json!({
            "f:b": {}, "f:a": {".": {}, "f:x": {}},
            "v:true": {}, "v:\"s\\u003c\"": {}, "v:1.0": {}, "v:10": {}, "v:9": {}, "i:3": {},
            "k:{\"name\":\"z\",\"a\":1}": {".": {}, "f:name": {}}
        });
        let text = Set::from_fields(&fields).unwrap().to_fields().unwrap().to_string();
        let want = concat!(
            r#"{"f:a":{".":{},"f:x":{}},"f:b":{},"#,
            r#""k:{\"a\":1,\"name\":\"z\"}":{".":{},"f:name":{}},"#,
            r#""v:1":{},"v:9":{},"v:10":{},"v:\"s\\u003c\"":{},"v:true":{},"i:3":{}}"#,
        );
        assert_eq!(text, want);
    }

    #[test]
    fn strange_fields_are_refused_or_ignored() {
        let check = |fields: Value| Set::from_fields(&fields);
        assert_eq!(check(json!({"x:new": {"f:a": {}}})), Ok(Set::default()));
        assert_eq!(check(json!({"f:a": null})).unwrap().len(), 1);
        assert!(matches!(check(json!({"f:a": 1})), Err(FieldsError::NotAnObject)));
        assert!(matches!(check(json!({"f": {}})), Err(FieldsError::ShortKey { .. })));
        assert!(matches!(check(json!({"fa": {}})), Err(FieldsError::NoColon { .. })));
        assert!(matches!(check(json!({"k:x": {}})), Err(FieldsError::BadKey { .. })));
        assert!(matches!(check(json!({"v:": {}})), Err(FieldsError::BadKey { .. })));
        assert!(matches!(check(json!({"i:x": {}})), Err(FieldsError::BadKey { .. })));
    }

    use proptest::prelude::*;

    fn fields() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            "[a-c]".prop_map(|name| format!("f:{name}")),
            (0..3).prop_map(|value| format!("v:{value}")),
            (0..3).prop_map(|value| format!("k:{{\"n\":{value}}}")),
        ];
        Just(json!({})).prop_recursive(3, 24, 4, move |below| {
            let own = prop_oneof![Just("."), Just("")];
            (proptest::collection::btree_map(key.clone(), below, 0..4), own).prop_map(
                |(map, own)| {
                    let mut map: Map<String, Value> = map.into_iter().collect();
                    if own == "." {
                        map.insert(".".to_owned(), json!({}));
                    }
                    Value::Object(map)
                },
            )
        })
    }

    proptest! {
        #[test]
        fn sets_obey_the_laws(a in fields(), b in fields()) {
            let (a, b) = (Set::from_fields(&a).unwrap(), Set::from_fields(&b).unwrap());
            prop_assert_eq!(&Set::from_fields(&a.to_fields().unwrap()).unwrap(), &a);
            let (union, both, rest) = (a.union(&b), a.intersection(&b), a.difference(&b));
            prop_assert_eq!(union.len() + both.len(), a.len() + b.len());
            prop_assert_eq!(&rest.union(&both), &a);
            prop_assert!(a.is_subset(&union) && both.is_subset(&b) && rest.intersection(&b).is_empty());
            prop_assert!(a.recursive_difference(&b).is_subset(&rest));
            for path in a.paths() {
                prop_assert_eq!(both.has(&path.0), b.has(&path.0));
            }
        }
    }
}
