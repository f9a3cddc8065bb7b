//! Quantities, as pods write what they may use.

/// Suffixes, and what they multiply thousandths by.
const SUFFIXES: [(&str, i128, i128); 15] = [
    ("n", 1, 1_000_000),
    ("u", 1, 1_000),
    ("m", 1, 1),
    ("", 1_000, 1),
    ("k", 1_000_000, 1),
    ("M", 1_000_000_000, 1),
    ("G", 1_000_000_000_000, 1),
    ("T", 1_000_000_000_000_000, 1),
    ("P", 1_000_000_000_000_000_000, 1),
    ("E", 1_000_000_000_000_000_000_000, 1),
    ("Ki", 1_000 << 10, 1),
    ("Mi", 1_000 << 20, 1),
    ("Gi", 1_000 << 30, 1),
    ("Ti", 1_000 << 40, 1),
    ("Pi", 1_000 << 50, 1),
];
/// Digits of a number; more are no amount of anything.
const DIGITS_MAX: usize = 18;

/// A quantity in thousandths, rounded up; nothing if it is none.
pub fn parse_milli(text: &str) -> Option<i128> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + part.len() > DIGITS_MAX || whole.len() + part.len() == 0 {
        return None;
    }
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let (times, over) = match suffix.strip_prefix(['e', 'E']).map(str::parse::<u32>) {
        Some(Ok(power)) if power <= 18 => (1_000 * 10_i128.checked_pow(power)?, 1),
        _ => SUFFIXES
            .iter()
            .find(|(name, _, _)| *name == suffix)
            .map(|(_, times, over)| (*times, *over))?,
    };
    let (value, over) = (digits.checked_mul(times)?, scale.checked_mul(over)?);
    Some(divide_up(value, over))
}

/// A quantity in whole numbers, rounded up.
pub fn parse_whole(text: &str) -> Option<u64> {
    u64::try_from(divide_up(parse_milli(text)?, 1_000)).ok()
}

/// A quotient, rounded up.
pub fn divide_up(value: i128, over: i128) -> i128 {
    let whole = value.checked_div(over).unwrap_or_default();
    let is_exact = value.checked_rem(over).unwrap_or_default() == 0;
    if is_exact { whole } else { whole.saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, milli) in [
            ("1", Some(1_000)),
            ("100m", Some(100)),
            ("0.1", Some(100)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("128Mi", Some(134_217_728_000)),
            ("1k", Some(1_000_000)),
            ("2e3", Some(2_000_000)),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("1n", Some(1)),
            ("", None),
            ("x", None),
            ("1x", None),
            ("-1", None),
            ("1111111111111111111111", None),
        ] {
            assert_eq!(parse_milli(text), milli, "{text}");
        }
        assert_eq!(parse_whole("1500m"), Some(2));
    }
}
