//! Messages with a JSON form of their own.

use serde_json::{Map, Value, json};

use crate::protobuf::{Malformed, Reader, Result, message, value};
use crate::table::{self, Form, SCHEMA};
use crate::typed;
use schema::clock;

/// The first and the last second that a time can be written for.
const YEAR_ZERO: i64 = -62_167_219_200;
const YEAR_10000: i64 = 253_402_300_799;

/// Reads such a message; `old` is what was read for the same field before.
pub(crate) fn read(form: &Form, bytes: &[u8], old: Value, depth: usize) -> Result<Value> {
    match form {
        Form::Time => stamp(bytes, false),
        Form::MicroTime => stamp(bytes, true),
        Form::Quantity => Ok(json!(texts(bytes, "String", depth)?.pop().unwrap_or_default())),
        Form::Texts => Ok(json!(texts(bytes, "Items", depth)?)),
        Form::IntOrText => int_or_text(bytes),
        Form::Json => raw(bytes),
        Form::SchemaOrList => schema_or_list(bytes, depth),
        Form::SchemaOrFlag => schema_or_flag(bytes, depth),
        Form::SchemaOrTexts => schema_or_texts(bytes, depth),
        _ => Ok(old),
    }
}

/// Seconds and nanoseconds; nothing at all is no time.
fn stamp(bytes: &[u8], micro: bool) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.tag("Timestamp")? {
        match number {
            1 => seconds = reader.number(wire, "Seconds")?.cast_signed(),
            2 => nanos = reader.number(wire, "Nanos")?.cast_signed(),
            _ => reader.skip(wire)?,
        }
    }
    let text = clock::format(seconds.clamp(YEAR_ZERO, YEAR_10000));
    Ok(json!(if micro {
        format!("{}.{:06}Z", text.trim_end_matches('Z'), nanos.rem_euclid(1_000_000_000) / 1000)
    } else {
        text
    }))
}

/// The texts under number one.
fn texts(bytes: &[u8], name: &str, depth: usize) -> Result<Vec<String>> {
    let mut reader = Reader { bytes };
    let mut out = Vec::new();
    while let Some((number, wire)) = reader.tag(name)? {
        if number == 1 {
            let mut one = Value::Null;
            value(&mut reader, wire, &Form::Text, name, &mut one, depth)?;
            out.extend(one.as_str().map(str::to_owned));
        } else {
            reader.skip(wire)?;
        }
    }
    Ok(out)
}

fn int_or_text(bytes: &[u8]) -> Result<Value> {
    let (mut is_text, mut number, mut text) = (false, Value::from(0), Value::from(""));
    let mut reader = Reader { bytes };
    while let Some((field, wire)) = reader.tag("IntOrString")? {
        match field {
            1 => is_text = reader.number(wire, "Type")? == 1,
            2 => value(&mut reader, wire, &Form::Int32, "IntVal", &mut number, 1)?,
            3 => value(&mut reader, wire, &Form::Text, "StrVal", &mut text, 1)?,
            _ => reader.skip(wire)?,
        }
    }
    Ok(if is_text { text } else { number })
}

fn raw(bytes: &[u8]) -> Result<Value> {
    let mut reader = Reader { bytes };
    let mut found = Value::Null;
    while let Some((number, wire)) = reader.tag("JSON")? {
        if number == 1 {
            let text = reader.block(wire, "Raw")?;
            found = serde_json::from_slice(text)
                .map_err(|error| Malformed::Said(format!("the raw JSON is not JSON: {error}")))?;
        } else {
            reader.skip(wire)?;
        }
    }
    Ok(found)
}

/// A schema under one, or schemas under two.
fn schema_or_list(bytes: &[u8], depth: usize) -> Result<Value> {
    let (mut one, mut many) = (Value::Null, Vec::new());
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.tag("JSONSchemaPropsOrArray")? {
        match number {
            1 => one = schema(reader.block(wire, "Schema")?, depth)?,
            2 => many.push(schema(reader.block(wire, "JSONSchemas")?, depth)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok(if many.is_empty() { one } else { Value::Array(many) })
}

/// A flag under one, or a schema under two.
fn schema_or_flag(bytes: &[u8], depth: usize) -> Result<Value> {
    let (mut flag, mut one) = (false, None);
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.tag("JSONSchemaPropsOrBool")? {
        match number {
            1 => flag = reader.number(wire, "Allows")? != 0,
            2 => one = Some(schema(reader.block(wire, "Schema")?, depth)?),
            _ => reader.skip(wire)?,
        }
    }
    Ok(one.unwrap_or(Value::Bool(flag)))
}

/// A schema under one, or texts under two.
fn schema_or_texts(bytes: &[u8], depth: usize) -> Result<Value> {
    let (mut one, mut many) = (Value::Null, json!([]));
    let texts = Form::List(Box::new(Form::Text));
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.tag("JSONSchemaPropsOrStringArray")? {
        match number {
            1 => one = schema(reader.block(wire, "Schema")?, depth)?,
            2 => value(&mut reader, wire, &texts, "Property", &mut many, depth)?,
            _ => reader.skip(wire)?,
        }
    }
    Ok(if many == json!([]) { one } else { many })
}

fn schema(bytes: &[u8], depth: usize) -> Result<Value> {
    let mut out = Value::Null;
    let mut map = Map::new();
    if let Some(of) = table::named(SCHEMA) {
        message(bytes, of, &mut map, depth.saturating_sub(1))?;
        out = Value::Object(map);
        typed::settle_as(of, &mut out);
    }
    Ok(out)
}
