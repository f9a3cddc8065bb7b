//! Quantities such as `500m` and `2Gi`.

use super::super::value::{Result, Trouble, Val};
use crate::object::quantity::{Quantity, UNIT};

pub(super) fn read<'a>(name: &str, text: &str) -> Result<Val<'a>> {
    let read = Quantity::parse(text);
    match (name, read) {
        ("isQuantity", read) => Ok(Val::Bool(read.is_some())),
        (_, Some(quantity)) => Ok(Val::Quantity(quantity)),
        (_, None) => Err(Trouble::new(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )),
    }
}

#[expect(clippy::cast_precision_loss, reason = "approximate by name")]
pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let number = |value: &Val<'a>| match value {
        Val::Quantity(quantity) => Some(quantity.billionths()),
        Val::Int(n) => Some(i128::from(*n) * UNIT),
        _ => None,
    };
    match args {
        [Val::Quantity(quantity)] => match name {
            "sign" => Ok(Val::Int(i64::try_from(quantity.billionths().signum()).unwrap_or(0))),
            "asApproximateFloat" => Ok(Val::Double(quantity.billionths() as f64 / UNIT as f64)),
            "isInteger" => Ok(Val::Bool(quantity.whole().is_some())),
            "asInteger" => quantity
                .whole()
                .map(Val::Int)
                .ok_or_else(|| Trouble::new("cannot convert value to integer")),
            _ => Err(Trouble::overload()),
        },
        [Val::Quantity(a), other] => {
            let b = number(other).ok_or_else(Trouble::overload)?;
            let wide = || Trouble::new("quantity overflow");
            match name {
                "add" => a
                    .billionths()
                    .checked_add(b)
                    .map(|n| Val::Quantity(Quantity::new(n)))
                    .ok_or_else(wide),
                "sub" => a
                    .billionths()
                    .checked_sub(b)
                    .map(|n| Val::Quantity(Quantity::new(n)))
                    .ok_or_else(wide),
                "isGreaterThan" => Ok(Val::Bool(a.billionths() > b)),
                "isLessThan" => Ok(Val::Bool(a.billionths() < b)),
                "compareTo" => Ok(Val::Int(a.billionths().cmp(&b) as i64)),
                _ => Err(Trouble::overload()),
            }
        }
        _ => Err(Trouble::overload()),
    }
}
