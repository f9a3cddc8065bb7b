//! Protobuf bodies as JSON.
//!
//! Numbers nobody knows are skipped, as every protobuf reader does; what cannot be read is
//! refused in the words of upstream's reader.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::special;
use crate::table::{self, Form, Type};
use crate::typed;

/// The deepest nesting accepted, as for JSON.
pub const DEPTH_MAX: usize = 128;

type Object = Map<String, Value>;
pub(crate) type Result<T> = std::result::Result<T, Malformed>;

/// Why bytes are not the message they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// They end in the middle.
    #[error("unexpected EOF")]
    Cut,
    /// A number is longer than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A group ends that never began.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// Anything else, in upstream's words.
    #[error("{0}")]
    Said(String),
}

/// What is in the envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What the object says it is.
    pub api_version: String,
    /// What the object says it is.
    pub kind: String,
    /// The object.
    pub raw: &'a [u8],
}

/// Opens the envelope around every object.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>> {
    let said = |text: &str| Malformed::Said(text.to_owned());
    let inside = bytes.strip_prefix(b"k8s\0").ok_or_else(|| {
        said(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        )
    })?;
    if inside.is_empty() {
        return Err(said("empty body"));
    }
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    let mut reader = Reader { bytes: inside };
    while let Some((number, wire)) = reader.tag("Unknown")? {
        match number {
            1 => {
                let mut inner = Reader { bytes: reader.block(wire, "TypeMeta")? };
                while let Some((number, wire)) = inner.tag("TypeMeta")? {
                    match number {
                        1 => envelope.api_version = text(inner.block(wire, "APIVersion")?),
                        2 => envelope.kind = text(inner.block(wire, "Kind")?),
                        _ => inner.skip(wire)?,
                    }
                }
            }
            2 => envelope.raw = reader.block(wire, "Raw")?,
            _ => reader.skip(wire)?,
        }
    }
    Ok(envelope)
}

/// The object in an envelope as JSON; `None` when nobody knows its kind.
pub fn object(envelope: &Envelope<'_>) -> Result<Option<Value>> {
    let Some(of) = table::kind(&envelope.api_version, &envelope.kind) else { return Ok(None) };
    let mut map = Object::new();
    message(envelope.raw, of, &mut map, DEPTH_MAX)?;
    map.insert("kind".to_owned(), json!(envelope.kind));
    map.insert("apiVersion".to_owned(), json!(envelope.api_version));
    let mut object = Value::Object(map);
    typed::settle_whole(of, &mut object);
    Ok(Some(object))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a message into `out`, which may have some of its fields already.
pub(crate) fn message(bytes: &[u8], of: &Type, out: &mut Object, depth: usize) -> Result<()> {
    if depth == 0 {
        return Err(Malformed::Said(format!("proto: nested deeper than {DEPTH_MAX}")));
    }
    let short = of.name.rsplit('.').next().unwrap_or_default();
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.tag(short)? {
        let Some(field) = of.fields.iter().find(|field| field.number == number) else {
            reader.skip(wire)?;
            continue;
        };
        if let (Form::Message(inside), true) = (&field.form, field.name.is_empty()) {
            let block = reader.block(wire, inside)?;
            into(block, inside, out, depth)?;
            continue;
        }
        let slot = out.entry(field.name).or_insert(Value::Null);
        value(&mut reader, wire, &field.form, field.name, slot, depth)?;
    }
    Ok(())
}

fn into(block: &[u8], name: &str, out: &mut Object, depth: usize) -> Result<()> {
    match table::named(name) {
        Some(of) => message(block, of, out, depth.saturating_sub(1)),
        None => Ok(()),
    }
}

/// Reads one value into its place; lists and maps grow, messages are merged.
pub(crate) fn value(
    reader: &mut Reader<'_>,
    wire: u8,
    form: &Form,
    name: &str,
    slot: &mut Value,
    depth: usize,
) -> Result<()> {
    match form {
        Form::Text => *slot = Value::String(text(reader.block(wire, name)?)),
        Form::Flag => *slot = Value::Bool(reader.number(wire, name)? != 0),
        Form::Int32 => *slot = json!(int32(reader.number(wire, name)?)),
        Form::Int => *slot = json!(reader.number(wire, name)?.cast_signed()),
        Form::Float => *slot = json!(f64::from_bits(reader.fixed(wire, name)?)),
        Form::Bytes => {
            let engine = base64::engine::general_purpose::STANDARD;
            *slot = Value::String(engine.encode(reader.block(wire, name)?));
        }
        Form::Message(inside) => {
            let block = reader.block(wire, name)?;
            if !slot.is_object() {
                *slot = Value::Object(Object::new());
            }
            if let Value::Object(map) = slot {
                into(block, inside, map, depth)?;
            }
        }
        Form::List(item) => {
            if !slot.is_array() {
                *slot = json!([]);
            }
            let Value::Array(items) = slot else { return Ok(()) };
            if wire == 2 && matches!(**item, Form::Int | Form::Int32) {
                let mut packed = Reader { bytes: reader.block(wire, name)? };
                while !packed.bytes.is_empty() {
                    items.push(json!(packed.varint()?.cast_signed()));
                }
                return Ok(());
            }
            let mut one = Value::Null;
            value(reader, wire, item, name, &mut one, depth)?;
            items.push(one);
        }
        Form::Map(of) => {
            let (key, one) = pair(reader.block(wire, name)?, of, name, depth)?;
            if !slot.is_object() {
                *slot = Value::Object(Object::new());
            }
            if let Value::Object(map) = slot {
                map.insert(key, one);
            }
        }
        _ => *slot = special::read(form, reader.block(wire, name)?, slot.take(), depth)?,
    }
    Ok(())
}

fn int32(number: u64) -> i32 {
    // The wire has 64 bits, of which upstream keeps the low half.
    (number & 0xffff_ffff).try_into().map_or(0, u32::cast_signed)
}

/// A map's entry.
fn pair(bytes: &[u8], of: &Form, name: &str, depth: usize) -> Result<(String, Value)> {
    let mut reader = Reader { bytes };
    let (mut key, mut one) = (String::new(), typed::zero(of));
    while let Some((number, wire)) = reader.tag(name)? {
        match number {
            1 => key = text(reader.block(wire, name)?),
            2 => value(&mut reader, wire, of, name, &mut one, depth)?,
            _ => reader.skip(wire)?,
        }
    }
    Ok((key, one))
}

/// Bytes yet to be read.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next field's number and wire type.
    pub(crate) fn tag(&mut self, message: &str) -> Result<Option<(u64, u8)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let (number, wire) = (key >> 3, u8::try_from(key & 7).unwrap_or_default());
        if wire == 4 {
            let said = format!("proto: {message}: wiretype end group for non-group");
            return Err(Malformed::Said(said));
        }
        if int32(number) <= 0 {
            let said = format!("proto: {message}: illegal tag {} (wire type {key})", int32(number));
            return Err(Malformed::Said(said));
        }
        Ok(Some((number & 0xffff_ffff, wire)))
    }

    pub(crate) fn number(&mut self, wire: u8, name: &str) -> Result<u64> {
        expect(wire, 0, name)?;
        self.varint()
    }

    fn fixed(&mut self, wire: u8, name: &str) -> Result<u64> {
        expect(wire, 1, name)?;
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| Malformed::Cut)?))
    }

    pub(crate) fn block(&mut self, wire: u8, name: &str) -> Result<&'a [u8]> {
        expect(wire, 2, name)?;
        let length = self.length()?;
        self.take(length)
    }

    fn length(&mut self) -> Result<usize> {
        let length = self.varint()?;
        if length.cast_signed() < 0 {
            let said = "proto: negative length found during unmarshaling";
            return Err(Malformed::Said(said.to_owned()));
        }
        usize::try_from(length).map_err(|_| Malformed::Cut)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Malformed::Cut)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&first, rest) = self.bytes.split_first().ok_or(Malformed::Cut)?;
            self.bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Overflow)
    }

    /// Passes over a field nobody knows, whose tag has been read.
    pub(crate) fn skip(&mut self, wire: u8) -> Result<()> {
        let (mut depth, mut wire) = (0_usize, wire);
        loop {
            match wire {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => {
                    let length = self.length()?;
                    self.take(length)?;
                }
                3 => depth = depth.saturating_add(1),
                4 => depth = depth.checked_sub(1).ok_or(Malformed::EndOfGroup)?,
                5 => drop(self.take(4)?),
                other => return Err(Malformed::Said(format!("proto: illegal wireType {other}"))),
            }
            if depth == 0 {
                return Ok(());
            }
            wire = u8::try_from(self.varint()? & 7).unwrap_or_default();
        }
    }
}

fn expect(wire: u8, wanted: u8, name: &str) -> Result<()> {
    if wire == wanted {
        return Ok(());
    }
    // The reader names fields as the structures do.
    let mut letters = if name == "metadata" { "objectMeta" } else { name }.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    Err(Malformed::Said(format!("proto: wrong wireType = {wire} for field {name}")))
}
