//! JSON with a memory for what was written twice.
//!
//! `serde_json` keeps the last of two equal keys and says nothing; Kubernetes warns.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::findings::Findings;

/// Parses, and lists the paths of keys that appear twice in one object.
pub fn parse(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let duplicates = RefCell::new(Findings::default());
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Seed { way: Way::Root, duplicates: &duplicates };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates.into_inner().into_paths()))
}

/// The way to a value. It becomes text only for the few that are told of: texts of all ways
/// together are much longer than the body.
#[derive(Clone, Copy)]
enum Way<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(before, key) => write!(f, "{before}.{key}"),
            Self::Index(before, at) => write!(f, "{before}[{at}]"),
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    way: Way<'a>,
    duplicates: &'a RefCell<Findings>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(whole(value).or_else(|| Number::from_f64(value)).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let seed = Seed { way: Way::Index(&self.way, list.len()), ..self };
            let Some(item) = items.next_element_seed(seed)? else {
                return Ok(Value::Array(list));
            };
            list.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let way = Way::Key(&self.way, &key);
            let value = entries.next_value_seed(Seed { way, ..self })?;
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    entry.insert(value);
                    self.duplicates.borrow_mut().add(&Way::Key(&self.way, entry.key()));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

/// A number without a fraction is written without one, as Go does.
fn whole(value: f64) -> Option<Number> {
    if value.fract() != 0.0 || value.abs() >= 9.2e18 {
        return None;
    }
    format!("{value:.0}").parse::<i64>().ok().map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_written_twice_are_noticed() {
        let text = br#"{"a":{"b":1,"b":2,"b":3},"c":[{"d":1,"d":1}]}"#;
        let (value, duplicates) = parse(text).unwrap();
        assert_eq!(value["a"]["b"], 3);
        assert_eq!(duplicates, ["a.b", "c[0].d"]);
        assert!(parse(b"{\"a\":1} x").is_err());
    }

    #[test]
    fn whole_numbers_lose_their_fraction() {
        let (value, _) = parse(b"[2.0, -0.0, 1e3, 2.5, 1e18]").unwrap();
        assert_eq!(value.to_string(), "[2,0,1000,2.5,1000000000000000000]");
    }

    /// H5: many keys written twice took time quadratic in their number.
    #[test]
    fn h5_only_so_many_keys_written_twice_are_told_of() {
        let twice: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":1,\"k{n}\":1")).collect();
        let (value, duplicates) = parse(format!("{{{}}}", twice.join(",")).as_bytes()).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 1000);
        assert_eq!(duplicates.len(), super::super::findings::FINDINGS_MAX);
        assert_eq!(duplicates[..2], ["k0", "k1"]);
    }
}
