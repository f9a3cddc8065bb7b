//! A request's body as an object.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};

use super::negotiate;
use super::query::FieldValidation;
use super::status::Failure;
use crate::kind::Kind;
use schema::object::field_error::FieldError;
use schema::object::{json_type_name, lines, meta, strict};

/// The biggest body accepted.
pub const BODY_MAX: usize = 3 << 20;

/// How long a body may take to arrive, which is as long as upstream lets a request take. A body that is
/// waited for keeps a connection and its user's share of the server.
const ARRIVAL_TIME_MAX: Duration = Duration::from_secs(60);

/// Reads all of a body, unless it is too big or too slow.
pub async fn read(body: Body) -> Result<Bytes, Failure> {
    let reading = axum::body::to_bytes(body, BODY_MAX);
    let Ok(read) = tokio::time::timeout(ARRIVAL_TIME_MAX, reading).await else {
        let message = "Timeout: request did not complete within the allotted timeout";
        return Err(Failure::new(504, "Timeout", message).with(json!({})));
    };
    read.map_err(|_| {
        let message = format!("Request entity too large: limit is {BODY_MAX}");
        Failure::new(413, "RequestEntityTooLarge", message)
    })
}

/// The media type without its parameters.
pub fn media(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

/// An incoming object and what was odd about it.
#[derive(Debug)]
pub struct Decoded {
    /// The object.
    pub object: Value,
    /// `unknown field "x"` and `duplicate field "y"`.
    pub odd: Vec<String>,
}

/// Parses the body of a create or an update.
pub fn decode(kind: &Kind, media: &str, bytes: &[u8]) -> Result<Decoded, Failure> {
    let (mut object, mut odd) = parse(kind, media, bytes)?;
    check_kind(kind, media, bytes, &object)?;
    for (field, value) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        if let Value::Object(map) = &mut object {
            map.insert(field.to_owned(), Value::String(value));
        }
    }
    if let Some(fault) = crate::kind::shape::fault(kind, &object) {
        return Err(Failure::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {fault}",
            kind.kind, kind.version, kind.kind
        )));
    }
    // Only to tell where several unknown fields stand is the body read again.
    let written = || parse(kind, media, bytes).map(|(object, _)| object).unwrap_or_default();
    odd.extend(dropped(kind, prune(kind, &mut object), written));
    Ok(Decoded { object, odd })
}

/// A body as JSON, and what it says twice.
pub fn parse(kind: &Kind, media: &str, bytes: &[u8]) -> Result<(Value, Vec<String>), Failure> {
    match media {
        "application/json" | "" | "*/*" => {
            let (object, duplicates) = strict::parse(bytes).map_err(|error| {
                let said = super::syntax::complaint(bytes).unwrap_or_else(|| error.to_string());
                let why = format!("couldn't get version/kind; json parse error: {said}");
                unrecognized(kind, bytes, &why)
            })?;
            let odd = duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
            Ok((object, odd))
        }
        negotiate::YAML => {
            let (mut object, odd) =
                lines::parse(bytes).map_err(|why| unrecognized(kind, bytes, &why))?;
            if object.is_null() {
                object = Value::Object(serde_json::Map::new());
            }
            Ok((object, odd.into_iter().collect()))
        }
        _ => Err(unknown_media(kind)),
    }
}

/// Drops what nobody knows; says where it was.
pub fn prune(kind: &Kind, object: &mut Value) -> Vec<String> {
    let mut unknown = meta::tidy(object);
    unknown.extend(kind.shape.prune(object));
    unknown.sort();
    unknown.dedup();
    unknown
}

/// Names what was dropped. Built-in kinds name it in the order in which it was written.
pub fn dropped(
    kind: &Kind,
    mut unknown: Vec<String>,
    written: impl FnOnce() -> Value,
) -> impl Iterator<Item = String> {
    if !kind.custom && unknown.len() > 1 {
        let written = written();
        unknown.sort_by_cached_key(|path| position(&written, path));
    }
    unknown.into_iter().map(|path| format!("unknown field {path:?}"))
}

/// Where in a text a path like `spec.containers[0].nope` comes: built-in kinds tell unknown
/// fields in the order in which they are written.
fn position(object: &Value, path: &str) -> Vec<usize> {
    let mut at = Some(object);
    let steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    steps
        .map_while(|step| {
            let (place, next) = match at? {
                Value::Object(map) => (map.keys().position(|key| key == step)?, map.get(step)),
                Value::Array(list) => {
                    let place = step.strip_suffix(']')?.parse().ok()?;
                    (place, list.get(place))
                }
                _ => return None,
            };
            at = next;
            Some(place)
        })
        .collect()
}

/// Decides what oddities mean: warnings, a refusal, or nothing.
pub fn judge(
    kind: &Kind,
    odd: Vec<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, Failure> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(odd.into_iter().flat_map(lines::warnings).collect()),
        FieldValidation::Strict if odd.is_empty() => Ok(odd),
        FieldValidation::Strict => Err(Failure::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            odd.join(", ")
        ))),
    }
}

fn unknown_media(_kind: &Kind) -> Failure {
    Failure::unknown_format(&[
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ])
}

fn unrecognized(kind: &Kind, bytes: &[u8], why: &str) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        kind.kind,
        super::syntax::excerpt(bytes)
    ))
}

fn check_kind(kind: &Kind, media: &str, bytes: &[u8], object: &Value) -> Result<(), Failure> {
    check_type_meta(kind, bytes, object)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, name) = (text("apiVersion"), text("kind"));
    if kind.custom {
        // Only JSON is looked at for its version before that is compared.
        if name.is_empty() || (version.is_empty() && media != negotiate::YAML) {
            let missing = if name.is_empty() { "Kind" } else { "apiVersion" };
            let body = String::from_utf8_lossy(bytes);
            let why = format!("Object '{missing}' is missing in '{body}'");
            return Err(unrecognized(kind, bytes, &why));
        }
    } else if name.is_empty() || version.is_empty() {
        // Upstream takes what the URL says for what the body leaves out.
        return Ok(());
    }
    if name == kind.kind && version == kind.api_version() {
        return Ok(());
    }
    if kind.custom {
        return Err(describe_custom_mismatch(kind, version, name, object));
    }
    Err(describe_builtin_mismatch(kind, version, name))
}

/// Refuses a body whose version and kind cannot be read at all.
fn check_type_meta(kind: &Kind, bytes: &[u8], object: &Value) -> Result<(), Failure> {
    if !object.is_object() {
        let found = if object.is_null() { "number" } else { json_type_name(object) };
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }}"
        );
        return Err(unrecognized(kind, bytes, &why));
    }
    for (field, value) in ["apiVersion", "kind"].map(|field| (field, &object[field])) {
        if !value.is_null() && !value.is_string() {
            return Err(Failure::bad_request(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go \
                 struct field .{field} of type string",
                json_type_name(value)
            )));
        }
    }
    Ok(())
}

fn describe_custom_mismatch(kind: &Kind, version: &str, name: &str, object: &Value) -> Failure {
    if version == kind.api_version() {
        let why = format!("must be {}", kind.kind);
        let wrong = FieldError::invalid("kind", &Value::from(name), &why);
        let named = schema::object::meta_text(object, "name");
        return Failure::invalid(name, &kind.group, named, &[wrong]);
    }
    Failure::bad_request(format!(
        "the API version in the data ({version}) does not match the expected API version ({})",
        kind.api_version()
    ))
}

fn describe_builtin_mismatch(kind: &Kind, version: &str, name: &str) -> Failure {
    let plain = version.rsplit_once('/').map_or(version, |(_, plain)| plain);
    let why = if version == kind.api_version() && crate::kind::is_builtin(version, name) {
        let package = match kind.group.split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        format!("converting (v1.{name}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        format!(
            "no kind {name:?} is registered for version {version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )
    };
    Failure::bad_request(format!(
        "{name} in version {plain:?} cannot be handled as a {}: {why}",
        kind.kind
    ))
}
