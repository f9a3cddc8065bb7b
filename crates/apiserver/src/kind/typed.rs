//! Whether the values of a built-in object have the types its kind says.
//!
//! Upstream decodes built-in kinds into structs and tells what does not fit in the words of
//! Go's JSON decoder: the first fault in the order of the text, with the struct, the path
//! and the type. The structs are those of the `OpenAPI` document.

use serde_json::{Map, Value};

use schema::object::{json_type_name, time};

/// What text values of some fields are called, where it is not `string`.
const NAMED: &[(&str, &str, &str)] = &[
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("Container", "terminationMessagePolicy", "v1.TerminationMessagePolicy"),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("DeleteOptions", "propagationPolicy", "v1.DeletionPropagation"),
    ("DeploymentStrategy", "type", "v1.DeploymentStrategyType"),
    ("MutatingWebhook", "failurePolicy", "v1.FailurePolicyType"),
    ("MutatingWebhook", "matchPolicy", "v1.MatchPolicyType"),
    ("MutatingWebhook", "reinvocationPolicy", "v1.ReinvocationPolicyType"),
    ("MutatingWebhook", "sideEffects", "v1.SideEffectClass"),
    ("NamespaceSpec", "finalizers", "v1.FinalizerName"),
    ("ObjectMeta", "uid", "types.UID"),
    ("ObjectReference", "uid", "types.UID"),
    ("OwnerReference", "uid", "types.UID"),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("Preconditions", "uid", "types.UID"),
    ("RuleWithOperations", "operations", "v1.OperationType"),
    ("RuleWithOperations", "scope", "v1.ScopeType"),
    ("Secret", "type", "v1.SecretType"),
    ("ServicePort", "protocol", "v1.Protocol"),
    ("ServiceSpec", "externalTrafficPolicy", "v1.ServiceExternalTrafficPolicy"),
    ("ServiceSpec", "internalTrafficPolicy", "v1.ServiceInternalTrafficPolicy"),
    ("ServiceSpec", "ipFamilies", "v1.IPFamily"),
    ("ServiceSpec", "ipFamilyPolicy", "v1.IPFamilyPolicy"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    ("ValidatingWebhook", "failurePolicy", "v1.FailurePolicyType"),
    ("ValidatingWebhook", "matchPolicy", "v1.MatchPolicyType"),
    ("ValidatingWebhook", "sideEffects", "v1.SideEffectClass"),
];

/// The first value in `object` that is not of the type its field has.
pub(super) fn fault(
    components: &Map<String, Value>,
    component: &str,
    object: &Value,
) -> Option<String> {
    let schema = components.get(component)?;
    Walk { components, structure: "", path: Vec::new() }.value(component, schema, object).err()
}

struct Walk<'a> {
    components: &'a Map<String, Value>,
    /// The struct whose field is being read.
    structure: &'a str,
    /// The fields that led here.
    path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    /// `name` is the component that the schema is, if it is one.
    fn value(&mut self, name: &'a str, schema: &'a Value, value: &Value) -> Result<(), String> {
        if let Some(name) = reference(schema) {
            let target = self.components.get(name).unwrap_or(&Value::Null);
            return self.value(name, target, value);
        }
        if value.is_null() {
            return Ok(());
        }
        let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("format")) {
            ("object", _) => self.object(name, schema, value),
            ("array", _) => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                let Value::Array(list) = value else {
                    return self.refuse(value, &format!("[]{}", self.go_type("", items)));
                };
                list.iter().try_for_each(|item| self.value("", items, item))
            }
            ("string", "date-time") => match value {
                Value::String(said) => time::check(said, last(name) == "MicroTime"),
                _ => self.refuse(value, "string"),
            },
            ("string", "byte") => match value {
                Value::String(said) => base64(said),
                _ => self.refuse(value, "[]uint8"),
            },
            ("string", _) if !value.is_string() => self.refuse(value, &self.go_type("", schema)),
            ("boolean", _) if !value.is_boolean() => self.refuse(value, "bool"),
            ("integer", format) => {
                self.integer(value, if format == "int32" { format } else { "int64" })
            }
            ("number", _) if !value.is_number() => self.refuse(value, "float64"),
            ("", "int-or-string") if !value.is_string() => self.integer(value, "int32"),
            ("", _) if last(name) == "Quantity" => quantity(value),
            _ => Ok(()),
        }
    }

    fn object(&mut self, name: &'a str, schema: &'a Value, value: &Value) -> Result<(), String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties");
        if properties.is_none() && rest.is_none() {
            // Anything goes.
            return Ok(());
        }
        let Value::Object(map) = value else {
            return self.refuse(value, &self.go_type(name, schema));
        };
        let Some(properties) = properties else {
            let rest = rest.unwrap_or(&Value::Null);
            return map.values().try_for_each(|value| self.value("", rest, value));
        };
        for (key, value) in map {
            let Some((key, schema)) = properties.get_key_value(key) else { continue };
            let outside = std::mem::replace(&mut self.structure, last(name));
            self.path.push(key);
            self.value("", schema, value)?;
            self.path.pop();
            self.structure = outside;
        }
        Ok(())
    }

    fn integer(&self, value: &Value, type_: &str) -> Result<(), String> {
        let Value::Number(number) = value else { return self.refuse(value, type_) };
        let fits = match number.as_i64() {
            Some(whole) => type_ == "int64" || i32::try_from(whole).is_ok(),
            None => false,
        };
        if fits { Ok(()) } else { Err(self.sentence(&format!("number {number}"), type_)) }
    }

    fn refuse(&self, value: &Value, type_: &str) -> Result<(), String> {
        Err(self.sentence(json_type_name(value), type_))
    }

    fn sentence(&self, what: &str, type_: &str) -> String {
        let (structure, path) = (self.structure, self.path.join("."));
        format!(
            "json: cannot unmarshal {what} into Go struct field {structure}.{path} of type {type_}"
        )
    }

    /// What Go calls the type that a schema describes.
    fn go_type(&self, name: &str, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            return self.go_type(name, self.components.get(name).unwrap_or(&Value::Null));
        }
        let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("format")) {
            ("object", _) => match schema.get("additionalProperties") {
                Some(rest) => format!("map[string]{}", self.go_type("", rest)),
                None => qualified(name),
            },
            ("array", _) => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                format!("[]{}", self.go_type("", items))
            }
            ("string", "byte") => "[]uint8".to_owned(),
            ("string", _) if !name.is_empty() => qualified(name),
            ("string", _) => {
                let field = self.path.last().copied().unwrap_or_default();
                let named = |row: &&(&str, &str, &str)| row.0 == self.structure && row.1 == field;
                NAMED.iter().find(named).map_or("string", |row| row.2).to_owned()
            }
            ("boolean", _) => "bool".to_owned(),
            ("integer", "int32") => "int32".to_owned(),
            ("integer", _) => "int64".to_owned(),
            ("number", _) => "float64".to_owned(),
            _ => qualified(name),
        }
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?;
    reference.as_str()?.rsplit('/').next()
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// `v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`.
fn qualified(name: &str) -> String {
    let mut parts: Vec<&str> = name.rsplit('.').take(2).collect();
    parts.reverse();
    parts.join(".")
}

/// A number with a unit: `1`, `0.5`, `100Mi`, `1e3`.
fn quantity(value: &Value) -> Result<(), String> {
    const RULE: &str = "quantities must match the regular expression \
                        '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let said = match value {
        Value::String(said) => said.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(RULE.to_owned()),
    };
    let rest = said.strip_prefix(['+', '-']).unwrap_or(&said);
    let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = rest.strip_suffix(unit).unwrap_or_default();
    let fine =
        !digits.is_empty() && digits.matches('.').count() <= 1 && digits != "." && is_unit(unit);
    if fine { Ok(()) } else { Err(RULE.to_owned()) }
}

fn is_unit(unit: &str) -> bool {
    let known =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let exponent =
        unit.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    known.contains(&unit)
        || exponent.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Where Go's decoder stops reading base64, if it does.
fn base64(said: &str) -> Result<(), String> {
    let wrong = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    // Line breaks are skipped, but count.
    let text: Vec<(usize, u8)> =
        said.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    for group in text.chunks(4) {
        for (at, (place, byte)) in group.iter().enumerate() {
            if fine(*byte) {
                continue;
            }
            if *byte != b'=' || at < 2 {
                return wrong(*place);
            }
            let padded = at == 3 || group.get(3).is_some_and(|(_, byte)| *byte == b'=');
            if !padded {
                return wrong(if group.len() == 4 { *place } else { said.len() });
            }
            let end = group.last().map_or(0, |(place, _)| place.saturating_add(1));
            return match text.iter().find(|(place, _)| *place >= end) {
                Some((place, _)) => wrong(*place),
                None => Ok(()),
            };
        }
        if group.len() < 4 {
            return wrong(group.first().map_or(0, |(place, _)| *place));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_is_read_as_go_reads_it() {
        let cases = [
            ("", None),
            ("YQ==", None),
            ("YWI=", None),
            ("YW\nJj", None),
            ("!!", Some(0)),
            ("YQ", Some(0)),
            ("YWJ", Some(0)),
            ("YWJjYQ", Some(4)),
            ("YQ==x", Some(4)),
            ("YQ=", Some(3)),
            ("YQ=x", Some(2)),
        ];
        for (said, at) in cases {
            let expected = at.map(|at: usize| format!("illegal base64 data at input byte {at}"));
            assert_eq!(base64(said).err(), expected, "{said:?}");
        }
    }

    #[test]
    fn quantities_have_units() {
        for fine in ["1", "0.5", "100m", "1Gi", "1e3", "-1", ".5", "5."] {
            assert!(quantity(&json!(fine)).is_ok(), "{fine}");
        }
        for odd in ["", "lots", "1Xi", "1.2.3", "e3", "1 Gi", "."] {
            assert!(quantity(&json!(odd)).is_err(), "{odd}");
        }
    }
}
