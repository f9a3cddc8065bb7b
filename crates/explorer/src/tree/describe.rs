//! What a field is, in a line.

use crate::words::shorten;
use serde_json::Value as Json;

/// Values of an enumeration that are shown.
const VALUES_MAX: usize = 6;
/// Characters of a value that are shown.
const VALUE_LENGTH_MAX: usize = 40;

/// The type: `string`, `[]object`, `map of string`.
pub(super) fn describe_type(schema: &Json) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    let bare = schema["type"].as_str().unwrap_or("any");
    match bare {
        "array" => format!("[]{}", describe_type(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", describe_type(&schema["additionalProperties"]))
        }
        "any" if schema["properties"].is_object() => "object".to_owned(),
        bare => shorten(bare, VALUE_LENGTH_MAX),
    }
}

/// What values it takes: enumerations, defaults, bounds, patterns.
pub(super) fn describe_values(schema: &Json) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(values) = schema["enum"].as_array() {
        let mut shown: Vec<String> = values.iter().take(VALUES_MAX).map(show_value).collect();
        if values.len() > VALUES_MAX {
            shown.push(format!("{} more", values.len() - VALUES_MAX));
        }
        told.push(shown.join(" | "));
    }
    if let Some(value) = schema.get("default") {
        told.push(format!("= {}", show_value(value)));
    }
    let bounds = [
        ("minimum", "≥"),
        ("maximum", "≤"),
        ("minLength", "length ≥"),
        ("maxLength", "length ≤"),
        ("minItems", "items ≥"),
        ("maxItems", "items ≤"),
    ];
    for (key, sign) in bounds {
        if schema[key].is_number() {
            told.push(format!("{sign} {}", schema[key]));
        }
    }
    if let Some(format) = schema["format"].as_str() {
        told.push(shorten(format, VALUE_LENGTH_MAX));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        told.push(format!("/{}/", shorten(pattern, VALUE_LENGTH_MAX)));
    }
    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
        let keys: Vec<String> = keys.iter().map(show_value).collect();
        told.push(format!("keyed by {}", keys.join(", ")));
    }
    told
}

/// Rules beyond the type, as people should know them.
pub(super) fn describe_rules(schema: &Json) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array();
    let rules = rules.map(Vec::as_slice).unwrap_or_default();
    let told = rules.iter().take(VALUES_MAX).filter_map(|rule| {
        let message = rule["message"].as_str().or_else(|| rule["rule"].as_str());
        message.map(|text| shorten(text, 4 * VALUE_LENGTH_MAX))
    });
    let mut told: Vec<String> = told.collect();
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        told.push("takes any fields".to_owned());
    }
    if schema["nullable"] == true {
        told.push("may be null".to_owned());
    }
    told
}

fn show_value(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    shorten(&text, VALUE_LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_and_values_are_told_in_a_line() {
        let told = |schema: &Json| {
            let values = describe_values(schema).join(" · ");
            format!("{} {values}", describe_type(schema))
        };
        assert_eq!(
            told(&json!({"type": "string", "enum": ["a", "b"], "default": "a"})),
            "string a | b · = a"
        );
        assert_eq!(told(&json!({"type": "array", "items": {"type": "object"}})), "[]object ");
        assert_eq!(
            told(&json!({"type": "object", "additionalProperties": {"type": "string"}})),
            "map of string "
        );
        assert_eq!(told(&json!({"x-kubernetes-int-or-string": true})), "integer or string ");
        assert_eq!(
            told(&json!({"type": "integer", "minimum": 1, "maximum": 3})),
            "integer ≥ 1 · ≤ 3"
        );
        assert_eq!(told(&json!({})), "any ");
    }
}
