//! Quantities such as `500m` and `2Gi`.

use super::super::value::{Result, Trouble, Val};

/// A quantity, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

const UNIT: i128 = 1_000_000_000;

impl Quantity {
    /// Reads a quantity in Kubernetes' notation. What is finer than a billionth is rounded up.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (two, ten) = scale(suffix)?;
        let digits = format!("{whole}{fraction}");
        let mantissa: i128 =
            if digits.len() > 36 { return None } else { digits.parse().unwrap_or(0) };
        let mantissa = mantissa.checked_mul(1_i128.checked_shl(two)?)?;
        let exponent = 9 + ten - i32::try_from(fraction.len()).ok()?;
        let value = if exponent >= 0 {
            mantissa.checked_mul(10_i128.checked_pow(u32::try_from(exponent).ok()?)?)?
        } else {
            let by = 10_i128.checked_pow(u32::try_from(-exponent).ok()?)?;
            mantissa / by + i128::from(mantissa % by != 0)
        };
        Some(Self(sign * value))
    }

    fn whole(self) -> Option<i64> {
        (self.0 % UNIT == 0).then(|| i64::try_from(self.0 / UNIT).ok()).flatten()
    }
}

/// What a suffix multiplies by: a power of two and a power of ten.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?;
            (0, exponent.parse::<i32>().ok().filter(|e| (-30..=30).contains(e))?)
        }
    })
}

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
        Val::Quantity(quantity) => Some(quantity.0),
        Val::Int(n) => Some(i128::from(*n) * UNIT),
        _ => None,
    };
    match args {
        [Val::Quantity(quantity)] => match name {
            "sign" => Ok(Val::Int(i64::try_from(quantity.0.signum()).unwrap_or(0))),
            "asApproximateFloat" => Ok(Val::Double(quantity.0 as f64 / UNIT as f64)),
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
                "add" => a.0.checked_add(b).map(|n| Val::Quantity(Quantity(n))).ok_or_else(wide),
                "sub" => a.0.checked_sub(b).map(|n| Val::Quantity(Quantity(n))).ok_or_else(wide),
                "isGreaterThan" => Ok(Val::Bool(a.0 > b)),
                "isLessThan" => Ok(Val::Bool(a.0 < b)),
                "compareTo" => Ok(Val::Int(a.0.cmp(&b) as i64)),
                _ => Err(Trouble::overload()),
            }
        }
        _ => Err(Trouble::overload()),
    }
}
