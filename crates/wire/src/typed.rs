//! JSON in the form in which a structure is written: empty fields left out or written as
//! zero, as its type has it, and fields in its order.

use serde_json::{Map, Value, json};

use schema::object::quantity::{self, Finest};

use crate::table::{self, Empty, Field, Form, SCHEMA, Type};

/// Brings an object of a built-in kind into form; others are left alone.
pub fn settle(api_version: &str, kind: &str, object: &mut Value) {
    if let Some(of) = table::kind(api_version, kind) {
        settle_whole(of, object);
    }
}

/// Brings the printed columns of a definition into form.
pub fn settle_columns(definition: &mut Value) {
    let Some(of) = table::named("extensions.CustomResourceColumnDefinition") else { return };
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        columns.into_iter().flatten().for_each(|column| settle_as(of, column));
    }
}

/// Brings a whole object into form: its kind comes first.
pub(crate) fn settle_whole(of: &Type, object: &mut Value) {
    let Value::Object(map) = object else { return };
    let mut old = std::mem::take(map);
    for name in ["kind", "apiVersion"] {
        if let Some(value) = old.shift_remove(name) {
            map.insert(name.to_owned(), value);
        }
    }
    settle_map(of, old, map);
}

pub(crate) fn settle_as(of: &Type, object: &mut Value) {
    let Value::Object(map) = object else { return };
    let old = std::mem::take(map);
    settle_map(of, old, map);
}

fn settle_map(of: &Type, mut old: Map<String, Value>, map: &mut Map<String, Value>) {
    fields(of, &mut old, map);
    // What nobody knows is somebody else's to drop.
    map.append(&mut old);
}

/// Moves the fields of a type from one map to another, each in its form.
fn fields(of: &Type, from: &mut Map<String, Value>, to: &mut Map<String, Value>) {
    for field in &of.fields {
        if let (Form::Message(inside), true) = (&field.form, field.name.is_empty()) {
            if let Some(inside) = table::named(inside) {
                fields(inside, from, to);
            }
            continue;
        }
        let said = from.shift_remove(field.name).filter(|value| !value.is_null());
        if let Some(value) = settled(field, said) {
            to.insert(field.name.to_owned(), value);
        }
    }
}

/// A field's value as it is written, if it is.
fn settled(field: &Field, said: Option<Value>) -> Option<Value> {
    let Some(mut value) = said else {
        return match field.empty {
            Empty::Zero => Some(zero(&field.form)),
            Empty::Null => Some(Value::Null),
            Empty::Omitted if is_structure(&field.form) => Some(zero(&field.form)),
            Empty::Omitted | Empty::Dropped | Empty::Absent => None,
        };
    };
    inside(&field.form, &mut value);
    let omitted = field.empty == Empty::Omitted && !is_structure(&field.form) && is_zero(&value);
    (!omitted).then_some(value)
}

fn inside(form: &Form, value: &mut Value) {
    match (form, value) {
        (Form::Message(name), value @ Value::Object(_)) => {
            if let Some(of) = table::named(name) {
                settle_as(of, value);
            }
        }
        (
            Form::SchemaOrList | Form::SchemaOrFlag | Form::SchemaOrTexts,
            value @ (Value::Object(_) | Value::Array(_)),
        ) => schemas(value),
        (Form::Quantity, value) => amount(value, Finest::Billionth),
        (Form::List(form), Value::Array(items)) => items.iter_mut().for_each(|item| {
            if item.is_null() {
                *item = zero(form);
            }
            inside(form, item);
        }),
        (Form::Map(form), Value::Object(map)) => {
            map.sort_keys();
            map.values_mut().for_each(|one| {
                if one.is_null() {
                    *one = zero(form);
                }
                match **form {
                    // What pods ask for is counted in thousandths.
                    Form::Quantity => amount(one, Finest::Thousandth),
                    _ => inside(form, one),
                }
            });
        }
        _ => {}
    }
}

/// Writes a quantity as it is written.
fn amount(value: &mut Value, finest: Finest) {
    let said = match value {
        Value::String(text) => quantity::canonical(text, finest),
        Value::Number(number) => quantity::canonical(&number.to_string(), finest),
        _ => None,
    };
    if let Some(canonical) = said {
        *value = Value::String(canonical);
    }
}

/// A schema or a list of them.
fn schemas(value: &mut Value) {
    let Some(of) = table::named(SCHEMA) else { return };
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| settle_as(of, item)),
        value => settle_as(of, value),
    }
}

/// Forms that are written even when they are empty.
fn is_structure(form: &Form) -> bool {
    !matches!(
        form,
        Form::Text
            | Form::Flag
            | Form::Int
            | Form::Int32
            | Form::Float
            | Form::Bytes
            | Form::List(_)
            | Form::Map(_)
            | Form::Texts
    )
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The empty value of a form, as it is written.
pub(crate) fn zero(form: &Form) -> Value {
    match form {
        Form::Text => json!(""),
        Form::Flag => json!(false),
        Form::Int | Form::Int32 | Form::Float | Form::IntOrText => json!(0),
        Form::Quantity => json!("0"),
        Form::Message(name) => {
            let mut empty = json!({});
            if let Some(of) = table::named(name) {
                settle_as(of, &mut empty);
            }
            empty
        }
        _ => Value::Null,
    }
}
