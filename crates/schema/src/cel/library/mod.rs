//! The functions, and what calling them costs.

mod convert;
pub(crate) mod format;
pub(crate) mod lists;
mod net;
mod numbers;
pub(crate) mod quantity;
pub(crate) mod semver;
mod strings;
pub(crate) mod time;
pub(crate) mod url;

use std::rc::Rc;
use std::sync::OnceLock;

use super::meter::Meter;
use super::value::{Result, Trouble, Val};
pub(crate) use strings::Pattern;

/// A place to keep a constant pattern.
type Kept<'a> = Option<&'a OnceLock<std::result::Result<Pattern, String>>>;

/// Calls a function; the receiver of a member is its first argument.
pub(crate) fn call<'a>(
    meter: &Meter,
    name: &str,
    args: &[Val<'a>],
    kept: Kept<'a>,
) -> Result<Val<'a>> {
    // Comparisons look at texts only as far as they are alike, and say so themselves.
    if !matches!(name, "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in") {
        meter.scan(args.iter().map(Val::bytes).fold(0, usize::saturating_add))?;
    }
    meter.charge(before(name, args))?;
    let value = dispatch(name, args, kept, meter)?;
    meter.charge(after(name, args, &value))?;
    Ok(value)
}

/// How big the smaller of two is. Of texts, only as much is counted as that takes: a text has at
/// least a quarter as many characters as bytes.
fn smaller(args: &[Val<'_>]) -> usize {
    let [a, b, ..] = args else { return 0 };
    let (short, long) = if a.bytes() <= b.bytes() { (a, b) } else { (b, a) };
    match (short, long) {
        (Val::String(short), Val::String(long)) => {
            let count = short.chars().count();
            let much_longer = long.len() / 4 >= short.len();
            if much_longer { count } else { count.min(long.chars().count()) }
        }
        (Val::String(_), _) | (_, Val::String(_)) => 1,
        _ => a.size().min(b.size()),
    }
}

/// A tenth for each character that is gone through.
fn traversal(size: usize) -> u64 {
    u64::try_from(size.div_ceil(10)).unwrap_or(u64::MAX)
}

fn size(args: &[Val<'_>], at: usize) -> usize {
    args.get(at).map_or(0, Val::size)
}

fn matching(text: usize, pattern: usize) -> u64 {
    let pattern = u64::try_from(pattern.div_ceil(4)).unwrap_or(u64::MAX);
    traversal(text + 1).saturating_mul(pattern)
}

/// What a call costs by its arguments.
fn before(name: &str, args: &[Val<'_>]) -> u64 {
    if matches!(name, "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_") {
        let text = matches!(args.first(), Some(Val::String(_) | Val::Bytes(_)));
        let alike = text || name.ends_with("=_") && !name.contains(['<', '>']);
        return if alike { traversal(smaller(args)) } else { 1 };
    }
    let (first, second) = match args {
        // How long a text is does not matter here, and finding out takes as long as it is.
        [Val::String(_), Val::Items(..) | Val::List(_) | Val::Object(..) | Val::Map(_)]
            if name == "@in" =>
        {
            (1, size(args, 1))
        }
        _ => (size(args, 0), size(args, 1)),
    };
    let whole = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    let product = || whole(first).saturating_mul(whole(second));
    let text = matches!(args.first(), Some(Val::String(_) | Val::Bytes(_)));
    match name {
        "startsWith" | "endsWith" => traversal(second),
        "bytes" | "string" | "ip" | "isSorted" | "sum" | "max" | "min" | "indexOf"
        | "lastIndexOf"
            if text =>
        {
            traversal(first)
        }
        "@in" => match args.get(1) {
            Some(Val::Items(..) | Val::List(_)) => whole(second),
            _ => 1,
        },
        "_+_" if text => traversal(first + second),
        // Lists are copied: a tenth of each element keeps them from growing without bound.
        "_+_" => 1 + traversal(first + second) / 10,
        "matches" | "find" | "findAll" => matching(first, second),
        "contains" => traversal(first).saturating_mul(traversal(second)),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" | "strings.quote" | "format" => {
            traversal(first)
        }
        "replace" | "split" | "ip.isCanonical" => traversal(2 * first),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => whole(first),
        "validate" => matching(second, 60),
        "sets.contains" | "sets.intersects" | "distinct" => product().max(1),
        "sets.equivalent" => 2 * product().max(1),
        "containsIP" => 1 + traversal(second),
        "containsCIDR" => 2 + traversal(second),
        "lists.range" => match args.first() {
            Some(Val::Int(count)) => u64::try_from(*count).unwrap_or(1).max(1),
            _ => 1,
        },
        "slice" | "flatten" | "reverse" | "sort" => whole(first).max(1),
        _ => 1,
    }
}

/// What a call costs by its result.
fn after(name: &str, args: &[Val<'_>], value: &Val<'_>) -> u64 {
    match name {
        "join" => traversal(2 * value.size()),
        // A replacement may be longer than what it replaces.
        "replace" | "format" => traversal(value.size().saturating_sub(2 * size(args, 0))),
        "distinct" => u64::try_from(size(args, 0)).unwrap_or(u64::MAX),
        _ => 0,
    }
}

fn dispatch<'a>(name: &str, args: &[Val<'a>], kept: Kept<'a>, meter: &Meter) -> Result<Val<'a>> {
    match name {
        "_==_" => equal(args, meter).map(Val::Bool),
        "_!=_" => equal(args, meter).map(|same| Val::Bool(!same)),
        "@in" => member(args, meter),
        "!_" => match args {
            [Val::Bool(value)] => Ok(Val::Bool(!value)),
            _ => Err(Trouble::overload()),
        },
        "_<_" | "_<=_" | "_>_" | "_>=_" => numbers::compare(name, args, meter),
        "-_" | "_-_" | "_*_" | "_/_" | "_%_" => numbers::arithmetic(name, args),
        "_+_" => add(args, meter),
        "size" => match args {
            [
                Val::String(_)
                | Val::Bytes(_)
                | Val::Items(..)
                | Val::List(_)
                | Val::Object(..)
                | Val::Map(_),
            ] => Ok(Val::int(args[0].size())),
            _ => Err(Trouble::overload()),
        },
        "type" => match args {
            [value] => Ok(Val::Type(value.type_name().into())),
            _ => Err(Trouble::overload()),
        },
        "dyn" => args.first().cloned().ok_or_else(Trouble::overload),
        "bool" | "bytes" | "double" | "int" | "uint" | "string" | "timestamp" | "duration" => {
            convert::call(name, args)
        }
        "value"
        | "hasValue"
        | "optional.of"
        | "optional.none"
        | "optional.ofNonZeroValue"
        | "optional.unwrap"
        | "unwrapOpt" => optional(name, args, meter),
        _ => by_family(name, args, kept, meter),
    }
}

/// The functions that share a name across types go by their first argument.
fn by_family<'a>(name: &str, args: &[Val<'a>], kept: Kept<'a>, meter: &Meter) -> Result<Val<'a>> {
    match args.first() {
        Some(Val::Timestamp(_) | Val::Duration(_)) => time::call(name, args),
        Some(Val::Quantity(_)) => quantity::call(name, args),
        Some(Val::Semver(_)) => semver::call(name, args),
        Some(Val::Url(_)) => url::call(name, args),
        Some(Val::Ip(_) | Val::Cidr(..)) => net::call(name, args),
        Some(Val::Format(named)) => format::validate(name, named, args),
        Some(Val::Items(..) | Val::List(_)) => lists::call(name, args, meter),
        _ if name.starts_with("format.") => format::named(name, args),
        Some(Val::String(text)) => match name {
            "url" | "isURL" => url::read(name, text),
            "ip" | "isIP" | "ip.isCanonical" | "cidr" | "isCIDR" => net::read(name, text),
            "quantity" | "isQuantity" => quantity::read(name, text),
            "semver" | "isSemver" => semver::read(name, text, args),
            _ => strings::call(name, args, kept, meter),
        },
        Some(Val::Int(_)) if name == "lists.range" => lists::call(name, args, meter),
        _ => Err(Trouble::overload()),
    }
}

fn equal(args: &[Val<'_>], meter: &Meter) -> Result<bool> {
    match args {
        [a, b] => a.equals(b, meter),
        _ => Err(Trouble::overload()),
    }
}

fn member<'a>(args: &[Val<'a>], meter: &Meter) -> Result<Val<'a>> {
    match args {
        [wanted, list @ (Val::Items(..) | Val::List(_))] => {
            for at in 0..list.size() {
                let item = list.item(at, meter)?;
                if let Some(item) = item
                    && item.equals(wanted, meter)?
                {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        [key, map @ (Val::Object(..) | Val::Map(_))] => {
            map.find(key, meter).map(|found| Val::Bool(found.is_some()))
        }
        _ => Err(Trouble::overload()),
    }
}

fn add<'a>(args: &[Val<'a>], meter: &Meter) -> Result<Val<'a>> {
    match args {
        [Val::String(a), Val::String(b)] => Ok(Val::text(format!("{}{}", &**a, &**b))),
        [Val::Bytes(a), Val::Bytes(b)] => Ok(Val::Bytes([&**a, &**b].concat().into())),
        [a @ (Val::Items(..) | Val::List(_)), b @ (Val::Items(..) | Val::List(_))] => {
            lists::joined(a, b, meter)
        }
        _ => numbers::arithmetic("_+_", args),
    }
}

fn optional<'a>(name: &str, args: &[Val<'a>], meter: &Meter) -> Result<Val<'a>> {
    match (name, args) {
        ("optional.none", []) => Ok(Val::Optional(None)),
        ("optional.of", [value]) => Ok(Val::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if is_zero(value) { Val::Optional(None) } else { Val::some(value.clone()) })
        }
        ("hasValue", [Val::Optional(value)]) => Ok(Val::Bool(value.is_some())),
        ("value", [Val::Optional(value)]) => match value {
            Some(value) => Ok(value.as_ref().clone()),
            None => Err(Trouble::new("optional.none() dereference")),
        },
        ("optional.unwrap" | "unwrapOpt", [list]) => {
            let kept = list.items(meter)?.into_iter().filter_map(|item| match item {
                Val::Optional(inner) => inner.map(|inner| inner.as_ref().clone()),
                other => Some(other),
            });
            Ok(Val::List(Rc::new(kept.collect())))
        }
        _ => Err(Trouble::overload()),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(value) => !value,
        Val::Int(value) | Val::Duration(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::String(_)
        | Val::Bytes(_)
        | Val::Items(..)
        | Val::List(_)
        | Val::Object(..)
        | Val::Map(_) => value.size() == 0,
        Val::Optional(inner) => inner.is_none(),
        _ => false,
    }
}

/// A value in an error.
pub(crate) fn shown(value: &Val<'_>) -> String {
    match convert::text(value) {
        Some(text) => text,
        None => value.type_name().to_owned(),
    }
}
