//! Values against a schema, in the server's words and order
//!
//! The server validates with a fork of go-openapi, and its answers have that library's habits:
//! a fixed order of checks per node, an error said only once, and below `anyOf` and `oneOf` the
//! errors of the alternative that came closest, measured by a count of checks passed. Those
//! habits decide which messages a user sees, so they are kept, count included.
//!
//! On update an error at a place whose value did not change is forgiven (ratcheting): see
//! [`correlate`]. Properties are visited in order of name where the server's order is random.

mod correlate;
mod number;

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value, json};

pub(crate) use correlate::{Correlated, Past, Twins};

use super::error::{ErrorKind, FieldError, NAME_MAX, Path};
use super::format::Format;
use super::node::{Additional, Checks, Flags, Kind, Node};
use super::text::{self, Num};
use crate::object::shortened;

/// The way from the root to a value, as the library spells it; text only when something is wrong.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    Root,
    Property(&'a Self, &'a str),
    /// An additional property: dotted even at the root.
    Entry(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Property(Self::Root, name) => f.write_str(&shortened(name, NAME_MAX)),
            Self::Property(parent, name) | Self::Entry(parent, name) => {
                write!(f, "{parent}.{}", shortened(name, NAME_MAX))
            }
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// One complaint, before it has a place in the object.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The library's sentence; complaints with the same sentence are one.
    message: String,
    /// Where; `None` for complaints without a place of their own.
    name: Option<String>,
    what: What,
}

/// What a complaint becomes when reported.
#[derive(Clone, Debug)]
enum What {
    Required,
    Type(Value),
    Enum(Value, Vec<String>),
    TooLong(i64),
    TooMany(usize, i64),
    Invalid(Value),
}

impl Fault {
    fn new(path: &Step<'_>, message: String, what: What) -> Self {
        Self { message, name: Some(path.to_string()), what }
    }

    fn invalid(path: &Step<'_>, value: Value, message: String) -> Self {
        Self::new(path, message, What::Invalid(value))
    }

    /// A complaint about the value as a whole, which names its place in the sentence only.
    fn general(message: String) -> Self {
        Self { message, name: None, what: What::Invalid(json!("")) }
    }

    fn report(self, base: &Path) -> FieldError {
        let path = match self.name.as_deref() {
            None | Some("" | ".") => base.clone(),
            Some(name) => base.child(name.strip_prefix('.').unwrap_or(name)),
        };
        match self.what {
            What::Required => FieldError::required(&path, ""),
            What::Type(value) => FieldError::type_invalid(&path, value, self.message),
            What::Enum(value, supported) => FieldError::not_supported(&path, value, supported),
            What::TooLong(max) => FieldError::too_long(&path, max),
            What::TooMany(actual, max) => FieldError::too_many(&path, actual, max),
            What::Invalid(value) => {
                let value = if value.is_null() { json!("") } else { value };
                FieldError::invalid(&path, value, self.message)
            }
        }
    }
}

/// The most complaints about one object. Each is compared with all others.
const FAULTS_MAX: usize = 100;

/// The result of some checks: what failed, and how many passed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    faults: Vec<Fault>,
    matches: usize,
}

impl Outcome {
    fn add(&mut self, fault: Fault) {
        if self.faults.len() >= FAULTS_MAX {
            return;
        }
        if !self.faults.iter().any(|known| known.message == fault.message) {
            self.faults.push(fault);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for fault in other.faults {
            self.add(fault);
        }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// The errors below a base path.
    pub(crate) fn errors(self, base: &Path) -> Vec<FieldError> {
        self.faults.into_iter().map(|fault| fault.report(base)).collect()
    }
}

/// Whether an error of this kind keeps the rules from being evaluated.
pub(crate) fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        ErrorKind::NotSupported
            | ErrorKind::Required
            | ErrorKind::TooLong
            | ErrorKind::TooMany
            | ErrorKind::TypeInvalid
    )
}

/// Checks a value; with what it was before, unchanged faults are forgiven.
pub(crate) fn check(
    node: &Node,
    value: &Value,
    path: &Step<'_>,
    before: Option<Correlated<'_>>,
) -> Outcome {
    let mut outcome = check_node(node, value, path, before);
    if !outcome.is_valid() && before.is_some_and(Correlated::unchanged) {
        outcome.faults.clear();
    }
    outcome
}

fn check_node(
    node: &Node,
    value: &Value,
    path: &Step<'_>,
    before: Option<Correlated<'_>>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let checks = node.checks.as_deref();
    let format = checks.and_then(|c| c.format.as_ref());
    if value.is_null() {
        outcome.merge(check_null(node, path));
        outcome.merge(check_values(checks, value, path));
        return outcome;
    }
    if node.kind.is_some() || node.has(Flags::INT_OR_STRING) || format.is_some() {
        outcome.merge(check_type(node, value, path));
        outcome.matches += 1;
    }
    outcome.merge(checks.map_or_else(passed, |checks| check_branches(checks, value, path)));
    outcome.matches += 1;
    match value {
        Value::String(data) => {
            if let Some(fault) = checks.and_then(|checks| check_string(checks, data, path)) {
                outcome.add(fault);
            }
            outcome.matches += 1;
            if let Some(format) = format.filter(|format| format.is_text()) {
                if !format.accepts(data) {
                    let message = format!(
                        "{path} in body must be of type {}: {}",
                        format.name(),
                        text::quote(data)
                    );
                    outcome.add(Fault::new(path, message, What::Type(json!(data))));
                }
                outcome.matches += 1;
            }
        }
        Value::Number(number) => {
            outcome.merge(number::check(node, Num::of(number), path));
            outcome.matches += 1;
        }
        Value::Array(items) => {
            outcome.merge(check_items(node, items, path, before));
            outcome.matches += 1;
        }
        _ => {}
    }
    outcome.merge(check_values(checks, value, path));
    outcome.matches += 1;
    if let Value::Object(map) = value {
        outcome.merge(check_object(node, map, path, before));
        outcome.matches += 1;
    }
    outcome.matches += 1;
    outcome
}

fn passed() -> Outcome {
    Outcome { faults: Vec::new(), matches: 1 }
}

/// The types a node accepts, joined as messages do.
fn type_names(node: &Node) -> &'static str {
    if node.has(Flags::INT_OR_STRING) {
        return "integer,string";
    }
    node.kind.map_or("", Kind::name)
}

/// Whether a node's list of types holds this one.
fn wants(node: &Node, kind: Kind) -> bool {
    if node.has(Flags::INT_OR_STRING) {
        return matches!(kind, Kind::Integer | Kind::String);
    }
    node.kind == Some(kind)
}

fn wrong_type(path: &Step<'_>, wanted: &str, found: &str) -> Outcome {
    let message = format!("{path} in body must be of type {wanted}: {}", text::quote(found));
    Outcome { faults: vec![Fault::new(path, message, What::Type(json!(found)))], matches: 0 }
}

fn check_null(node: &Node, path: &Step<'_>) -> Outcome {
    let wanted = type_names(node);
    if wanted.is_empty() || node.has(Flags::NULLABLE) {
        return passed();
    }
    wrong_type(path, wanted, "null")
}

fn check_type(node: &Node, value: &Value, path: &Step<'_>) -> Outcome {
    let (kind, format) = match value {
        Value::Bool(_) => (Kind::Boolean, ""),
        Value::String(_) => (Kind::String, ""),
        Value::Array(_) => (Kind::Array, ""),
        Value::Number(number) => match Num::of(number) {
            Num::Int(_) => (Kind::Integer, "int64"),
            Num::Float(_) => (Kind::Number, "float64"),
        },
        Value::Null | Value::Object(_) => (Kind::Object, ""),
    };
    let whole = matches!(value, Value::Number(n) if matches!(Num::of(n), Num::Float(f) if number::is_integer(f)));
    let float_as_int = kind == Kind::Number && whole && wants(node, Kind::Integer);
    let int_as_float = kind == Kind::Integer && wants(node, Kind::Number);
    let sequence = matches!(kind, Kind::String | Kind::Array);
    let wanted_format = node.checks.as_deref().and_then(|c| c.format.as_ref()).map(Format::name);
    let accepted = wants(node, kind) || float_as_int || int_as_float;
    if let Some(wanted) = wanted_format {
        if !(sequence || accepted || format == wanted) {
            return wrong_type(path, wanted, format);
        }
        if sequence && !(wants(node, Kind::Number) || wants(node, Kind::Integer)) {
            return passed();
        }
    }
    if accepted { passed() } else { wrong_type(path, type_names(node), kind.name()) }
}

fn check_branches(checks: &Checks, value: &Value, path: &Step<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let quoted = || text::quote(&path.to_string());
    if !checks.any_of.is_empty() {
        check_any_of(checks, value, path, &mut outcome);
    }
    if !checks.one_of.is_empty() {
        check_one_of(checks, value, path, &mut outcome);
    }
    if !checks.all_of.is_empty() {
        let mut valid = 0;
        for branch in &checks.all_of {
            let result = check(branch, value, path, None);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(Fault::general(format!(
                "{} must validate all the schemas (allOf){none}",
                quoted()
            )));
        }
    }
    if let Some(not) = &checks.not
        && check(not, value, path, None).is_valid()
    {
        outcome.add(Fault::general(format!("{} must not validate the schema (not)", quoted())));
    }
    outcome.matches += 1;
    outcome
}

fn check_any_of(checks: &Checks, value: &Value, path: &Step<'_>, outcome: &mut Outcome) {
    let mut closest: Option<Outcome> = None;
    for branch in &checks.any_of {
        let result = check(branch, value, path, None);
        if result.is_valid() {
            outcome.merge(result);
            return;
        }
        if closest.as_ref().is_none_or(|closest| result.matches > closest.matches) {
            closest = Some(result);
        }
    }
    let quoted = text::quote(&path.to_string());
    outcome.add(Fault::general(format!("{quoted} must validate at least one schema (anyOf)")));
    outcome.merge(closest.unwrap_or_default());
}

fn check_one_of(checks: &Checks, value: &Value, path: &Step<'_>, outcome: &mut Outcome) {
    let mut closest: Option<Outcome> = None;
    let mut first: Option<Outcome> = None;
    let mut valid = 0;
    for branch in &checks.one_of {
        let result = check(branch, value, path, None);
        if result.is_valid() {
            valid += 1;
            closest = None;
            first.get_or_insert(result);
        } else if valid == 0 && closest.as_ref().is_none_or(|c| result.matches > c.matches) {
            closest = Some(result);
        }
    }
    if valid == 1 {
        outcome.merge(first.unwrap_or_default());
        return;
    }
    let found = match valid {
        0 => "Found none valid".to_owned(),
        count => format!("Found {count} valid alternatives"),
    };
    let quoted = text::quote(&path.to_string());
    outcome.add(Fault::general(format!(
        "{quoted} must validate one and only one schema (oneOf). {found}"
    )));
    outcome.merge(closest.unwrap_or_default());
}

fn check_string(checks: &Checks, data: &str, path: &Step<'_>) -> Option<Fault> {
    let length = || i64::try_from(data.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = checks.length_max.filter(|max| length() > *max) {
        let message = format!("{path} in body should be at most {max} chars long");
        return Some(Fault::new(path, message, What::TooLong(max)));
    }
    if let Some(min) = checks.length_min.filter(|min| length() < *min) {
        let message = format!("{path} in body should be at least {min} chars long");
        return Some(Fault::invalid(path, json!(data), message));
    }
    let pattern = checks.pattern.as_ref().filter(|pattern| !pattern.matches(data))?;
    let message = format!("{path} in body should match '{}'", pattern.source());
    Some(Fault::invalid(path, json!(data), message))
}

fn check_items(
    node: &Node,
    items: &[Value],
    path: &Step<'_>,
    before: Option<Correlated<'_>>,
) -> Outcome {
    let mut outcome = passed();
    if let Some(schema) = &node.items {
        let twins = before.and_then(Correlated::twins);
        for (i, item) in items.iter().enumerate() {
            let before = twins.as_ref().and_then(|twins| twins.get(i));
            outcome.merge(check(schema, item, &Step::Index(path, i), before));
        }
    }
    let Some(checks) = node.checks.as_deref() else { return outcome };
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = checks.items_min.filter(|min| size < *min) {
        let message = format!("{path} in body should have at least {min} items");
        outcome.add(Fault::invalid(path, json!(size), message));
    }
    if let Some(max) = checks.items_max.filter(|max| size > *max) {
        let message = format!("{path} in body should have at most {max} items");
        outcome.add(Fault::new(path, message, What::TooMany(items.len(), max)));
    }
    let mut seen = HashSet::new();
    if checks.unique_items && !items.iter().all(|item| seen.insert(item)) {
        outcome.add(Fault::invalid(
            path,
            json!(""),
            format!("{path} in body shouldn't contain duplicates"),
        ));
    }
    outcome
}

/// The closed list of values, compared as Go compares after converting to the listed value's
/// type: floats lose their fraction against integers, and `null` equals nothing.
fn check_values(checks: Option<&Checks>, value: &Value, path: &Step<'_>) -> Outcome {
    let Some(checks) = checks.filter(|checks| !checks.values.is_empty()) else {
        return Outcome::default();
    };
    if checks.values.iter().any(|listed| number::equals_converted(value, listed)) {
        return Outcome::default();
    }
    let supported = checks.values.iter().map(|value| match value {
        Value::String(s) => s.clone(),
        other => text::json(other),
    });
    let listed: Vec<String> = checks.values.iter().map(text::plain).collect();
    let message = format!("{path} in body should be one of [{}]", listed.join(" "));
    let what = What::Enum(value.clone(), supported.collect());
    Outcome { faults: vec![Fault::new(path, message, what)], matches: 0 }
}

fn check_object(
    node: &Node,
    map: &Map<String, Value>,
    path: &Step<'_>,
    before: Option<Correlated<'_>>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let checks = node.checks.as_deref();
    if let Some(checks) = checks {
        check_size(checks, map.len(), path, &mut outcome);
    }
    check_additional(node, map, path, before, &mut outcome);
    let type_meta =
        |name: &str| matches!(path, Step::Root) && matches!(name, "kind" | "apiVersion");
    for (name, schema) in &node.properties {
        if let Some(value) = map.get(name.as_ref()) {
            let before = before.filter(|_| !type_meta(name)).and_then(|before| before.key(name));
            outcome.merge(check(schema, value, &Step::Property(path, name), before));
        }
    }
    for name in checks.iter().flat_map(|checks| &checks.required) {
        if !map.contains_key(name.as_ref()) {
            let path = Step::Entry(path, name);
            outcome.add(Fault::new(&path, format!("{path} in body is required"), What::Required));
        }
    }
    outcome
}

fn check_size(checks: &Checks, len: usize, path: &Step<'_>, outcome: &mut Outcome) {
    let size = i64::try_from(len).unwrap_or(i64::MAX);
    if let Some(min) = checks.properties_min.filter(|min| size < *min) {
        let message = format!("{path} in body should have at least {min} properties");
        outcome.add(Fault::invalid(path, json!(size), message));
    }
    if let Some(max) = checks.properties_max.filter(|max| size > *max) {
        let message = format!("{path} in body should have at most {max} properties");
        outcome.add(Fault::new(path, message, What::TooMany(len, max)));
    }
}

fn check_additional(
    node: &Node,
    map: &Map<String, Value>,
    path: &Step<'_>,
    before: Option<Correlated<'_>>,
    outcome: &mut Outcome,
) {
    if !matches!(node.additional, Additional::Denied | Additional::Schema(_)) {
        return;
    }
    let mut names: Vec<&String> = map.keys().filter(|name| node.property(name).is_none()).collect();
    names.sort();
    for name in names {
        let type_meta =
            matches!(path, Step::Root) && matches!(name.as_str(), "kind" | "apiVersion");
        if let Additional::Schema(schema) = &node.additional {
            let before = before.filter(|_| !type_meta).and_then(|before| before.key(name));
            outcome.merge(check(schema, &map[name], &Step::Entry(path, name), before));
        } else {
            let message = format!("{path}.{name} in body is a forbidden property");
            outcome.add(Fault::invalid(path, json!(name), message));
        }
    }
}
