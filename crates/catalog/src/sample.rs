//! An object to begin with, made from a schema.
//!
//! A sample has what must be there: required fields, with their defaults, the first of allowed
//! values, or a word of the right type. A field that is not required is shown if it has a default, or if
//! the object would be empty without. What rules in CEL ask for is not known here.

use serde_json::{Map, Value as Json, json};

/// How deep a sample goes.
const DEPTH_MAX: usize = 24;
/// Values in a sample.
const VALUES_MAX: usize = 2000;
/// The longest list that a schema can ask for.
const ITEMS_MAX: u64 = 8;

/// Makes an object of a kind that its schema would accept, as far as schemas tell.
pub fn sample_object(schema: &Json, group: &str, version: &str, kind: &str) -> Json {
    let mut budget = VALUES_MAX;
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), json!(format!("{group}/{version}")));
    object.insert("kind".to_owned(), json!(kind));
    object.insert("metadata".to_owned(), json!({"name": format!("my-{}", kind.to_lowercase())}));
    for (name, field) in properties_of(schema) {
        let is_known = matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status");
        let is_shown =
            name == "spec" || is_required(schema, name) || field.get("default").is_some();
        if !is_known && is_shown {
            object.insert(name.clone(), sample_value(field, name, DEPTH_MAX, &mut budget));
        }
    }
    Json::Object(object)
}

fn properties_of(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

fn is_required(schema: &Json, name: &str) -> bool {
    let required = schema.get("required").and_then(Json::as_array);
    required.is_some_and(|all| all.iter().any(|one| one == name))
}

fn sample_value(schema: &Json, name: &str, depth: usize, budget: &mut usize) -> Json {
    if depth == 0 || *budget == 0 {
        return Json::Null;
    }
    *budget -= 1;
    let said = ["default", "example", "const"].into_iter().find_map(|key| schema.get(key));
    let first = schema.get("enum").and_then(Json::as_array).and_then(|all| all.first());
    if let Some(value) = said.or(first) {
        return value.clone();
    }
    let is_either = schema.get("x-kubernetes-int-or-string") == Some(&Json::Bool(true));
    match schema.get("type").and_then(Json::as_str) {
        _ if is_either => sample_number(schema),
        Some("boolean") => json!(false),
        Some("integer" | "number") => sample_number(schema),
        Some("string") => json!(sample_text(schema, name)),
        Some("array") => sample_list(schema, name, depth, budget),
        Some("object") | None => sample_fields(schema, depth, budget),
        Some(_) => Json::Null,
    }
}

fn sample_number(schema: &Json) -> Json {
    let minimum = schema.get("minimum").and_then(Json::as_i64);
    let maximum = schema.get("maximum").and_then(Json::as_i64);
    let is_above = schema.get("exclusiveMinimum") == Some(&Json::Bool(true));
    let least = minimum.map_or(1, |minimum| minimum.saturating_add(i64::from(is_above)));
    let least = if minimum.is_none_or(|minimum| minimum <= 1) { least.max(1) } else { least };
    let step = schema.get("multipleOf").and_then(Json::as_i64).filter(|step| *step > 1);
    let number = step.map_or(least, |step| {
        let rest = least.rem_euclid(step);
        if rest == 0 { least } else { least.saturating_add(step - rest) }
    });
    json!(maximum.map_or(number, |maximum| number.min(maximum)))
}

fn sample_text(schema: &Json, name: &str) -> String {
    let by_format = match schema.get("format").and_then(Json::as_str) {
        Some("date-time") => Some("2026-01-01T00:00:00Z"),
        Some("date") => Some("2026-01-01"),
        Some("duration") => Some("1h0m0s"),
        Some("byte") => Some("ZXhhbXBsZQ=="),
        Some("uuid" | "uuid3" | "uuid4" | "uuid5") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("cidr") => Some("192.0.2.0/24"),
        Some("mac") => Some("00:00:5e:00:53:01"),
        Some("uri") => Some("https://example.org"),
        Some("email") => Some("user@example.org"),
        Some("hostname") => Some("example.org"),
        _ => None,
    };
    let length = |key| schema.get(key).and_then(Json::as_u64).map(usize::try_from);
    let least = length("minLength").and_then(Result::ok).unwrap_or_default().min(256);
    let most = length("maxLength").and_then(Result::ok).unwrap_or(usize::MAX);
    let mut text = by_format.map_or_else(|| format!("my-{}", name.to_lowercase()), str::to_owned);
    while text.chars().count() < least {
        text.push('x');
    }
    text.chars().take(most).collect()
}

fn sample_list(schema: &Json, name: &str, depth: usize, budget: &mut usize) -> Json {
    let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(1).clamp(1, ITEMS_MAX);
    let Some(items) = schema.get("items") else { return json!([]) };
    let item = |number: u64, budget: &mut usize| {
        let name = if number == 0 { name.to_owned() } else { format!("{name}-{number}") };
        sample_value(items, &name, depth - 1, budget)
    };
    Json::Array((0..least).map(|number| item(number, budget)).collect())
}

fn sample_fields(schema: &Json, depth: usize, budget: &mut usize) -> Json {
    let mut fields = Map::new();
    for (name, field) in properties_of(schema) {
        if is_required(schema, name) || field.get("default").is_some() {
            fields.insert(name.clone(), sample_value(field, name, depth - 1, budget));
        }
    }
    if fields.is_empty() {
        let first = properties_of(schema).next();
        let sample = |(name, field): (&String, &Json)| {
            (name.clone(), sample_value(field, name, depth - 1, &mut *budget))
        };
        fields.extend(first.map(sample));
    }
    Json::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_must_be_there_and_the_first_of_what_is_allowed() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "required": ["forProvider"], "properties": {
                "forProvider": {"type": "object", "required": ["region", "size", "rules"], "properties": {
                    "region": {"type": "string"},
                    "size": {"type": "integer", "minimum": 5, "multipleOf": 4},
                    "note": {"type": "string"},
                    "rules": {"type": "array", "minItems": 2, "items": {"type": "object",
                        "required": ["until"], "properties": {
                            "until": {"type": "string", "format": "date-time"},
                            "mode": {"type": "string", "enum": ["Once", "Often"], "default": "Often"}}}},
                }},
                "deletionPolicy": {"type": "string", "enum": ["Orphan", "Delete"], "default": "Delete"},
                "writeConnectionSecretToRef": {"type": "object", "required": ["name"]},
            }},
            "status": {"type": "object"},
        }});
        let rule = json!({"until": "2026-01-01T00:00:00Z", "mode": "Often"});
        assert_eq!(
            sample_object(&schema, "s3.example.org", "v1", "Bucket"),
            json!({
                "apiVersion": "s3.example.org/v1",
                "kind": "Bucket",
                "metadata": {"name": "my-bucket"},
                "spec": {
                    "forProvider": {"region": "my-region", "size": 8, "rules": [rule, rule]},
                    "deletionPolicy": "Delete",
                },
            })
        );
    }

    #[test]
    fn a_schema_that_nests_without_end_makes_a_small_sample() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "array", "minItems": 1_000_000, "items":
                {"type": "object", "required": ["a"], "properties": {"a": schema}}});
        }
        let schema = json!({"properties": {"spec": schema}});
        let text = sample_object(&schema, "a.b", "v1", "X").to_string();
        assert!(text.len() < 100_000, "{}", text.len());
        let odd = json!({"properties": {"spec": {"type": 7, "required": "x", "properties": []}}});
        assert_eq!(sample_object(&odd, "a.b", "v1", "X")["spec"], json!({}));
        assert_eq!(sample_object(&json!(null), "a.b", "v1", "X")["kind"], "X");
    }
}
