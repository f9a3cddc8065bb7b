//! The table of types, read from `data/types.txt` when it is first needed.

use std::collections::HashMap;
use std::sync::LazyLock;

static TEXT: &str = include_str!("../data/types.txt");
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));

/// The type of schemas, which refer to themselves in forms of their own.
pub(crate) const SCHEMA: &str = "extensions.JSONSchemaProps";

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Flag,
    Int32,
    Int,
    Float,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    /// JSON as it is.
    Json,
    /// A schema or a list of schemas.
    SchemaOrList,
    /// A schema, or whether anything goes.
    SchemaOrFlag,
    /// A schema or a list of texts.
    SchemaOrTexts,
    /// A list of texts, wrapped in a message.
    Texts,
    List(Box<Self>),
    Map(Box<Self>),
    Message(&'static str),
}

/// How a field is written when it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    /// Not at all; structures are written always.
    Omitted,
    /// Not at all, structure or not.
    Dropped,
    /// As the zero of its form.
    Zero,
    /// It may be absent, which is something else than zero, and then is not written.
    Absent,
    /// It may be absent, and then is written as null.
    Null,
}

/// A field of a type.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) number: u64,
    /// The name in JSON; empty when the fields of the form are written in its place.
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) empty: Empty,
}

/// A type: its own name and its fields.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug, Default)]
struct Table {
    kinds: HashMap<&'static str, &'static str>,
    types: HashMap<&'static str, Type>,
}

/// The type of a kind such as `apps/v1/Deployment`, if there is one.
pub(crate) fn kind(api_version: &str, kind: &str) -> Option<&'static Type> {
    let own = TABLE.kinds.get(format!("{api_version}/{kind}").as_str());
    named(own.or_else(|| TABLE.kinds.get(format!("*/{kind}").as_str()))?)
}

/// A type by its own name.
pub(crate) fn named(name: &str) -> Option<&'static Type> {
    TABLE.types.get(name)
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((kind, name)) = line.split_once(" = ") {
                table.kinds.insert(kind, name);
            } else {
                let mut words = line.split(' ');
                let name = words.next().unwrap_or_default();
                let fields = words.filter_map(field).collect();
                table.types.insert(name, Type { name, fields });
            }
        }
        table
    }
}

/// `7!name:form` as a field.
fn field(word: &'static str) -> Option<Field> {
    let (head, form) = word.split_once(':')?;
    let digits = head.find(|c: char| !c.is_ascii_digit()).unwrap_or(head.len());
    let (number, head) = head.split_at(digits);
    let name = head.trim_start_matches(['!', '?', '~', '^']);
    let empty = match head.strip_suffix(name).unwrap_or_default() {
        "!" => Empty::Zero,
        "?" => Empty::Absent,
        "?!" => Empty::Null,
        "~" => Empty::Dropped,
        _ => Empty::Omitted,
    };
    Some(Field { number: number.parse().ok()?, name, form: form_of(form), empty })
}

fn form_of(text: &'static str) -> Form {
    if let Some(item) = text.strip_prefix("[]") {
        return Form::List(Box::new(form_of(item)));
    }
    if let Some(value) = text.strip_prefix("{}") {
        return Form::Map(Box::new(form_of(value)));
    }
    match text {
        "s" => Form::Text,
        "b" => Form::Flag,
        "i32" => Form::Int32,
        "i" => Form::Int,
        "f" => Form::Float,
        "bytes" => Form::Bytes,
        "time" => Form::Time,
        "microtime" => Form::MicroTime,
        "quantity" => Form::Quantity,
        "intorstring" => Form::IntOrText,
        "json" | "raw" | "fields" => Form::Json,
        "orarray" => Form::SchemaOrList,
        "orbool" => Form::SchemaOrFlag,
        "orstrings" => Form::SchemaOrTexts,
        "extra" => Form::Texts,
        name => Form::Message(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_is_named_is_there() {
        fn check(form: &Form) {
            match form {
                Form::Message(name) => assert!(named(name).is_some(), "{name}"),
                Form::List(inside) | Form::Map(inside) => check(inside),
                _ => {}
            }
        }
        assert!(TABLE.types.len() > 250 && TABLE.kinds.len() >= 30);
        for name in TABLE.kinds.values() {
            check(&Form::Message(name));
        }
        for one in TABLE.types.values() {
            one.fields.iter().for_each(|field| check(&field.form));
        }
    }
}
