//! JSON with a memory for what was written twice.
//!
//! `serde_json` keeps the last of two equal keys and says nothing; Kubernetes warns.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses, and lists the paths of keys that appear twice in one object.
pub fn parse(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Seed { path: String::new(), duplicates: &duplicates };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates.into_inner()))
}

struct Seed<'a> {
    path: String,
    duplicates: &'a RefCell<Vec<String>>,
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
            let path = format!("{}[{}]", self.path, list.len());
            let Some(item) = items.next_element_seed(Seed { path, duplicates: self.duplicates })?
            else {
                return Ok(Value::Array(list));
            };
            list.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => key.clone(),
                before => format!("{before}.{key}"),
            };
            let seed = Seed { path: path.clone(), duplicates: self.duplicates };
            let value = entries.next_value_seed(seed)?;
            if map.insert(key, value).is_some() {
                let mut duplicates = self.duplicates.borrow_mut();
                if !duplicates.contains(&path) {
                    duplicates.push(path);
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
}
