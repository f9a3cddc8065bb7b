//! Numbers, and what can be added to or compared with what.

use std::cmp::Ordering;

use super::super::meter::Meter;
use super::super::value::{Result, Trouble, Val};

pub(super) fn compare<'a>(name: &str, args: &[Val<'a>], meter: &Meter) -> Result<Val<'a>> {
    let [a, b] = args else { return Err(Trouble::overload()) };
    let order = match a.compare_within(b, meter)? {
        Some(order) => order,
        // Nothing compares with what is not a number.
        None if matches!(a, Val::Double(_)) || matches!(b, Val::Double(_)) => {
            return if a.type_name() == b.type_name() {
                Ok(Val::Bool(false))
            } else {
                Err(Trouble::overload())
            };
        }
        None => return Err(Trouble::overload()),
    };
    Ok(Val::Bool(match name {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

pub(super) fn arithmetic<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Int(a)] => a.checked_neg().map(Val::Int).ok_or_else(|| overflow("integer")),
        [Val::Double(a)] => Ok(Val::Double(-a)),
        [Val::Int(a), Val::Int(b)] => int(name, *a, *b),
        [Val::Uint(a), Val::Uint(b)] => uint(name, *a, *b),
        [Val::Double(a), Val::Double(b)] => double(name, *a, *b),
        _ => super::time::arithmetic(name, args),
    }
}

fn overflow(what: &str) -> Trouble {
    Trouble::new(format!("{what} overflow"))
}

fn int<'a>(name: &str, a: i64, b: i64) -> Result<Val<'a>> {
    let value = match name {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return Err(Trouble::new("division by zero")),
        "_/_" => a.checked_div(b),
        "_%_" if b == 0 => return Err(Trouble::new("modulus by zero")),
        "_%_" => a.checked_rem(b),
        _ => return Err(Trouble::overload()),
    };
    value.map(Val::Int).ok_or_else(|| overflow("integer"))
}

fn uint<'a>(name: &str, a: u64, b: u64) -> Result<Val<'a>> {
    let value = match name {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return Err(Trouble::new("division by zero")),
        "_/_" => a.checked_div(b),
        "_%_" if b == 0 => return Err(Trouble::new("modulus by zero")),
        "_%_" => a.checked_rem(b),
        _ => return Err(Trouble::overload()),
    };
    value.map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
}

fn double<'a>(name: &str, a: f64, b: f64) -> Result<Val<'a>> {
    Ok(Val::Double(match name {
        "_+_" => a + b,
        "_-_" => a - b,
        "_*_" => a * b,
        "_/_" => a / b,
        _ => return Err(Trouble::overload()),
    }))
}
