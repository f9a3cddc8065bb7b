//! JSON values as structured merge compares them.
//!
//! Two rules differ from `==` on [`Value`]: numbers are one kind (`1` equals `1.0`), and there is
//! a total order across kinds (numbers, strings, booleans, lists, maps, null), because path
//! elements are kept sorted and any JSON value may be a list key.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// A number as the server holds it: an integer when it fits 64 signed bits, else a float.
#[derive(Debug, Clone, Copy)]
pub(super) enum Numeric {
    /// A signed 64-bit integer.
    Int(i64),
    /// Everything else.
    Float(f64),
}

impl Numeric {
    pub(super) fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(0.0)), Self::Int)
    }

    #[expect(clippy::cast_precision_loss, reason = "the server compares mixed numbers as floats")]
    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (a, b) => a.float().partial_cmp(&b.float()).unwrap_or(Ordering::Equal),
        }
    }
}

/// Orders any two values.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Numeric::of(a).compare(Numeric::of(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => compare_lists(a, b),
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values mean the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            Numeric::of(a).compare(Numeric::of(b)) == Ordering::Equal
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_lists(a: &[Value], b: &[Value]) -> Ordering {
    let unequal = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let (a, b) = (sorted(a), sorted(b));
    let unequal = a
        .iter()
        .zip(&b)
        .map(|((ka, va), (kb, vb))| ka.cmp(kb).then_with(|| compare(va, vb)))
        .find(|order| order.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Maps with more entries than this are gone through in key order where a sorted set is made of
/// them: putting each entry into the middle of what is there already would move all of it.
pub(super) const SORTED_FROM: usize = 64;

/// A map's entries, in key order if they are many.
pub(super) fn entries(map: &Map<String, Value>) -> Entries<'_> {
    if map.len() > SORTED_FROM {
        Entries::Sorted(sorted(map).into_iter())
    } else {
        Entries::Written(map.iter())
    }
}

/// See [`entries`].
pub(super) enum Entries<'a> {
    /// As they are written.
    Written(serde_json::map::Iter<'a>),
    /// In key order.
    Sorted(std::vec::IntoIter<(&'a String, &'a Value)>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a String, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Written(entries) => entries.next(),
            Self::Sorted(entries) => entries.next(),
        }
    }
}

/// A map's entries in key order.
pub(super) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_ordered_and_numbers_are_one_kind() {
        let sorted = [
            json!(-1),
            json!(1.5),
            json!(2),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!({}),
            json!({"a": 1}),
            json!({"b": 0}),
            json!(null),
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(equal(a, b), i == j, "{a} {b}");
            }
        }
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!equal(&json!({"a": 1}), &json!({"b": 1})));
    }
}
