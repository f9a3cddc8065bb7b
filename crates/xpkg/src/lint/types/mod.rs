//! What Crossplane decodes the fields of objects to.
//!
//! Crossplane reads each object of a package into the type of its kind before it looks at it. One
//! value that does not fit, however deep, and it refuses the whole package; so do its tools. Fields
//! that a type does not have are ignored there, and are not looked at here. A null is no value.

mod tables;

use super::findings::Findings;
use super::kinds::ObjectKind;
use super::rules;
use tables::{META, SCHEMA, fields};
use yaml::{Node, Value};

/// What a value is decoded to.
#[derive(Debug)]
enum Type {
    Any,
    Bool,
    Int32,
    Int64,
    Float,
    String,
    /// Bytes in base64.
    Bytes,
    List(&'static Self),
    Map(&'static Self),
    Fields(&'static [(&'static str, &'static Self)]),
    /// The fields of both.
    Both(&'static Self, &'static Self),
    /// A schema, or whether anything goes.
    SchemaOrBool,
    /// A schema or several; anything else is taken for none.
    SchemaOrList,
    /// A schema or the names of fields; anything else is taken for neither.
    SchemaOrNames,
}

/// Values reported at once: nobody reads more, and a hostile document must not have its way.
const REPORTED_MAX: usize = 32;

/// Reports the values of an object that its kind cannot have.
pub(super) fn check(kind: ObjectKind, node: &Node<'_>, findings: &mut Findings<'_>) {
    let api_version = node.get("apiVersion").and_then(Node::as_str).unwrap_or_default();
    let mut walk = Walk { path: Vec::new(), left: REPORTED_MAX, findings };
    walk.fields(node, &[("metadata", META)]);
    walk.fields(node, fields(kind, api_version));
}

/// Reports the values of the metadata of a package that no object can have.
pub(super) fn check_metadata(node: &Node<'_>, findings: &mut Findings<'_>) {
    let mut walk = Walk { path: Vec::new(), left: REPORTED_MAX, findings };
    walk.fields(node, &[("metadata", META)]);
}

struct Walk<'n, 'w, 'f> {
    /// Where the walk is.
    path: Vec<Step<'n>>,
    /// How many values may still be reported.
    left: usize,
    findings: &'w mut Findings<'f>,
}

enum Step<'n> {
    Key(&'n str),
    Index(usize),
}

impl<'n> Walk<'n, '_, '_> {
    fn fields(&mut self, node: &'n Node<'_>, fields: &[(&str, &'static Type)]) {
        for entry in node.entries() {
            if let Some((_, of)) = fields.iter().find(|(name, _)| *name == entry.key) {
                self.step(Step::Key(&entry.key), &entry.value, of);
            }
        }
    }

    fn step(&mut self, step: Step<'n>, node: &'n Node<'_>, of: &'static Type) {
        self.path.push(step);
        self.value(node, of);
        self.path.pop();
    }

    fn value(&mut self, node: &'n Node<'_>, of: &'static Type) {
        match (of, &node.value) {
            (_, value) if fits(of, value) => {}
            (Type::List(each), Value::Sequence(items)) => self.items(items, each),
            (Type::SchemaOrList, Value::Sequence(items)) => self.items(items, &SCHEMA),
            (Type::SchemaOrNames, Value::Sequence(items)) => self.items(items, &Type::String),
            (Type::Map(each), Value::Mapping(entries)) => {
                for entry in entries {
                    self.step(Step::Key(&entry.key), &entry.value, each);
                }
            }
            (Type::Fields(fields), Value::Mapping(_)) => self.fields(node, fields),
            (Type::Both(one, two), Value::Mapping(_)) => {
                self.value(node, one);
                self.value(node, two);
            }
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrNames, Value::Mapping(_)) => {
                self.value(node, &SCHEMA);
            }
            _ => self.report(node, of),
        }
    }

    fn items(&mut self, items: &'n [Node<'_>], each: &'static Type) {
        for (index, item) in items.iter().enumerate() {
            self.step(Step::Index(index), item, each);
        }
    }

    /// Says so, unless something was said about the same value before.
    fn report(&mut self, node: &Node<'_>, of: &Type) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.findings.mention(node.position) {
            return;
        }
        let path = self.written();
        let (name, hint) = words(of);
        let (message, hint) = match &node.value {
            Value::String(_) if matches!(of, Type::Bytes) => {
                (format!("{path} is not {name}"), hint)
            }
            Value::Int(_) | Value::UInt(_) if matches!(of, Type::Int32 | Type::Int64) => {
                (format!("{path} is too large for an {name}"), "write a smaller number")
            }
            _ => (format!("{path} is of type {}, not {name}", node.type_name()), hint),
        };
        self.findings.advise(&rules::OBJECT_TYPE, node.position, message, hint);
    }

    /// Where the walk is, in words.
    fn written(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text = format!("{text}.{key}"),
                Step::Index(index) => text = format!("{text}[{index}]"),
            }
        }
        text
    }
}

/// What a type is called, and how a value of it is written.
fn words(of: &Type) -> (&'static str, &'static str) {
    match of {
        Type::Any => ("anything", "leave it out"),
        Type::Bool => ("boolean", "write true or false, without quotes"),
        Type::Int32 => ("integer of 32 bits", "write a whole number, without quotes"),
        Type::Int64 => ("integer", "write a whole number, without quotes"),
        Type::Float => ("number", "write a number, without quotes"),
        Type::String => ("string", "quote the value to make it a string"),
        Type::Bytes => ("base64", "encode the bytes in base64"),
        Type::List(_) => {
            ("sequence", "write it as a sequence; Crossplane cannot read it otherwise")
        }
        Type::Map(_)
        | Type::Fields(_)
        | Type::Both(..)
        | Type::SchemaOrList
        | Type::SchemaOrNames => {
            ("mapping", "write it as a mapping; Crossplane cannot read it otherwise")
        }
        Type::SchemaOrBool => {
            ("mapping or boolean", "write a schema, or true or false without quotes")
        }
    }
}

/// Whether a value fits that nothing more is to be said about.
fn fits(of: &Type, value: &Value<'_>) -> bool {
    let is_parent = matches!(value, Value::Sequence(_) | Value::Mapping(_));
    match of {
        _ if matches!(value, Value::Null) => true,
        Type::Any => true,
        Type::Bool | Type::SchemaOrBool => matches!(value, Value::Bool(_)),
        Type::Int32 => whole(value).is_some_and(|number| i32::try_from(number).is_ok()),
        Type::Int64 => whole(value).is_some(),
        Type::Float => matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_)),
        Type::String => matches!(value, Value::String(_)),
        Type::Bytes => matches!(value, Value::String(text) if is_base64(text)),
        Type::SchemaOrList | Type::SchemaOrNames => !is_parent,
        Type::List(_) | Type::Map(_) | Type::Fields(_) | Type::Both(..) => false,
    }
}

/// A whole number of 64 bits, however it is written.
fn whole(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Int(number) => Some(number),
        // JSON has one kind of number: 1.0 is 1 there.
        #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e18 => Some(number as i64),
        _ => None,
    }
}

/// Whether this is base64 with padding, in one line or several.
fn is_base64(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    let (body, _) = digits.split_at(digits.len() - padding);
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    digits.len().is_multiple_of(4) && padding <= 2 && body.iter().all(is_digit)
}
