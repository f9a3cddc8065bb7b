//! From one type to another.

use std::net::IpAddr;

use super::super::value::{Result, Trouble, Val};
use super::time;

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let [value] = args else { return Err(Trouble::overload()) };
    match name {
        "bool" => bool(value),
        "bytes" => match value {
            Val::Bytes(_) => Ok(value.clone()),
            Val::String(text) => Ok(Val::Bytes(text.as_bytes().into())),
            _ => Err(Trouble::overload()),
        },
        "double" => double(value),
        "int" => int(value),
        "uint" => uint(value),
        "string" => string(value),
        "timestamp" => timestamp(value),
        _ => duration(value),
    }
}

/// A value as a text, where it has one.
pub(super) fn text(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => float(*value),
        Val::String(text) => text.to_string(),
        Val::Timestamp(nanos) => time::text(*nanos),
        Val::Duration(nanos) => time::duration_text(*nanos),
        Val::Ip(address) => address.to_string(),
        Val::Cidr(address, bits) => cidr(*address, *bits),
        Val::Type(name) => name.to_string(),
        Val::Null => "null".to_owned(),
        _ => return None,
    })
}

pub(super) fn cidr(address: IpAddr, bits: u8) -> String {
    format!("{address}/{bits}")
}

/// A float as Go's `%g` with the fewest digits.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn string<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::String(_) => Ok(value.clone()),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::text(text)),
            Err(_) => Err(Trouble::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Val::Null | Val::Type(_) => Err(Trouble::overload()),
        other => text(other).map(Val::text).ok_or_else(Trouble::overload),
    }
}

fn bool<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Bool(_) => Ok(value.clone()),
        Val::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(refused("string", "bool")),
        },
        _ => Err(Trouble::overload()),
    }
}

fn refused(from: &str, to: &str) -> Trouble {
    Trouble::new(format!("type conversion error from '{from}' to '{to}'"))
}

#[expect(clippy::cast_precision_loss, reason = "so does upstream")]
fn double<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Double(_) => Ok(value.clone()),
        Val::Int(n) => Ok(Val::Double(*n as f64)),
        Val::Uint(n) => Ok(Val::Double(*n as f64)),
        Val::String(text) => text.parse().map(Val::Double).map_err(|_| {
            Trouble::new(format!(
                "strconv.ParseFloat: parsing {}: invalid syntax",
                crate::quote(text)
            ))
        }),
        _ => Err(Trouble::overload()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "within bounds")]
fn int<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Int(_) => Ok(value.clone()),
        Val::Uint(n) => i64::try_from(*n).map(Val::Int).map_err(|_| overflow("integer")),
        Val::Double(n) if n.is_finite() && n.abs() < 9.223_372_036_854_775e18 => {
            Ok(Val::Int(*n as i64))
        }
        Val::Double(_) => Err(overflow("integer")),
        Val::String(text) => text.parse().map(Val::Int).map_err(|_| unparsed("ParseInt", text)),
        Val::Timestamp(nanos) => {
            Ok(Val::Int(i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or_default()))
        }
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        _ => Err(Trouble::overload()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and within bounds"
)]
fn uint<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Uint(_) => Ok(value.clone()),
        Val::Int(n) => u64::try_from(*n).map(Val::Uint).map_err(|_| overflow("unsigned integer")),
        Val::Double(n) if (0.0..1.844_674_407_370_955e19).contains(n) => Ok(Val::Uint(*n as u64)),
        Val::Double(_) => Err(overflow("unsigned integer")),
        Val::String(text) => text.parse().map(Val::Uint).map_err(|_| unparsed("ParseUint", text)),
        _ => Err(Trouble::overload()),
    }
}

fn overflow(what: &str) -> Trouble {
    Trouble::new(format!("{what} overflow"))
}

fn unparsed(how: &str, text: &str) -> Trouble {
    let quoted = crate::quote(text);
    Trouble::new(format!("strconv.{how}: parsing {quoted}: invalid syntax"))
}

fn timestamp<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Timestamp(_) => Ok(value.clone()),
        Val::Int(seconds) => i128::from(*seconds)
            .checked_mul(1_000_000_000)
            .and_then(time::bounded)
            .ok_or_else(|| overflow("timestamp")),
        Val::String(text) => time::timestamp(text)
            .map(Val::Timestamp)
            .ok_or_else(|| refused("string", "google.protobuf.Timestamp")),
        _ => Err(Trouble::overload()),
    }
}

fn duration<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    match value {
        Val::Duration(_) => Ok(value.clone()),
        Val::Int(nanos) => Ok(Val::Duration(*nanos)),
        Val::String(text) => time::duration(text)
            .map(Val::Duration)
            .ok_or_else(|| refused("string", "google.protobuf.Duration")),
        _ => Err(Trouble::overload()),
    }
}
