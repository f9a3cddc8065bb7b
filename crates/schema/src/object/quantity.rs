//! Quantities such as `500m` and `2Gi`: what they are worth, and how they are written.

/// A quantity, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// Billionths in one.
pub const UNIT: i128 = 1_000_000_000;

impl Quantity {
    /// Reads a quantity in Kubernetes' notation. What is finer than a billionth is rounded up.
    pub fn parse(text: &str) -> Option<Self> {
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
        let exponent = ten.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let value = if exponent >= 0 {
            mantissa.checked_mul(10_i128.checked_pow(u32::try_from(exponent).ok()?)?)?
        } else {
            let by = 10_i128.checked_pow(u32::try_from(-exponent).ok()?)?;
            mantissa / by + i128::from(mantissa % by != 0)
        };
        value.checked_mul(sign).map(Self)
    }

    /// A number of billionths.
    pub fn new(billionths: i128) -> Self {
        Self(billionths)
    }

    /// The amount in billionths.
    pub fn billionths(self) -> i128 {
        self.0
    }

    /// The number, if it is a whole one.
    pub fn whole(self) -> Option<i64> {
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

/// The smallest difference that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finest {
    /// Nano, the finest there is.
    Billionth,
    /// Of what pods ask for.
    Thousandth,
}

/// A quantity as it is written once it has been read: without zeros at the end, in the unit that
/// leaves no fraction. It stays binary, or with an exponent, if it was.
pub fn canonical(text: &str, finest: Finest) -> Option<String> {
    let text = text.trim();
    let value = Quantity::parse(text)?.0;
    let step = match finest {
        Finest::Billionth => 1,
        Finest::Thousandth => UNIT / 1000,
    };
    // Away from zero, to the next step.
    let steps = value.abs().checked_add(step - 1)? / step;
    let value = steps.checked_mul(step)?.checked_mul(value.signum())?;
    if value == 0 {
        return Some("0".to_owned());
    }
    let small = value.abs() < 1024 * UNIT;
    if text.ends_with('i') && !small && value % UNIT == 0 {
        return Some(binary(value / UNIT));
    }
    let exponent =
        text.strip_suffix(|c: char| c.is_ascii_digit()).is_some() && text.contains(['e', 'E']);
    Some(decimal(value, exponent))
}

fn binary(mut value: i128) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut unit = 0;
    while value % 1024 == 0 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", UNITS[unit])
}

fn decimal(mut value: i128, exponent: bool) -> String {
    const UNITS: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let mut unit = 0;
    while value % 1000 == 0 && (exponent || unit + 1 < UNITS.len()) {
        value /= 1000;
        unit += 1;
    }
    match UNITS.get(unit).filter(|_| !exponent) {
        Some(unit) => format!("{value}{unit}"),
        None if unit == 3 => value.to_string(),
        None => format!("{value}e{}", i64::try_from(unit).unwrap_or(0) * 3 - 9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_the_unit_that_leaves_no_fraction() {
        let check = |text: &str, expect: &str| {
            assert_eq!(canonical(text, Finest::Billionth).as_deref(), Some(expect), "{text}");
        };
        check("1000m", "1");
        check("0.5", "500m");
        check("1024Mi", "1Gi");
        check("1.5Gi", "1536Mi");
        check("512Ki", "512Ki");
        check("1Ki", "1Ki");
        check("0.5Ki", "512");
        check("1e3", "1e3");
        check("12e2", "1200");
        check("1500M", "1500M");
        check("1000M", "1G");
        check("0.1n", "1n");
        check("-2000m", "-2");
        check("+1", "1");
        check("0", "0");
        check("0Gi", "0");
        check("1000000E", "1000000E");
        assert_eq!(canonical("nothing", Finest::Billionth), None);
        assert_eq!(canonical("100u", Finest::Thousandth).as_deref(), Some("1m"));
    }
}
