//! Spans of time as people and Go programs write them: `90`, `30s`, `1m30s`.

use std::time::Duration;

/// Reads a span; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span of time such as 30s, 5m or 1m30s");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let span = number.checked_mul(milliseconds).map(Duration::from_millis);
        total = span.and_then(|span| total.checked_add(span)).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// A span as [`parse`] reads it.
pub(crate) fn tell(span: Duration) -> String {
    let (seconds, rest) = (span.as_secs(), span.subsec_millis());
    match (seconds / 60, seconds % 60, rest) {
        (0, 0, rest) if rest > 0 => format!("{rest}ms"),
        (0, seconds, _) => format!("{seconds}s"),
        (minutes, 0, _) => format!("{minutes}m"),
        (minutes, seconds, _) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_writes_them() {
        let check = |text: &str, expected: Option<u64>| {
            let found = parse(text).ok().map(|span| u64::try_from(span.as_millis()).unwrap());
            assert_eq!(found, expected, "{text}");
        };
        check("90", Some(90_000));
        check("30s", Some(30_000));
        check("1m30s", Some(90_000));
        check("2h", Some(7_200_000));
        check("250ms", Some(250));
        for wrong in ["", "s", "5x", "1m30", "-3s", "99999999999999999999s", "1.5s"] {
            check(wrong, None);
        }
    }

    #[test]
    fn spans_are_told_as_they_are_read() {
        for text in ["250ms", "0s", "59s", "1m", "1m30s", "90m"] {
            assert_eq!(tell(parse(text).unwrap()), text);
        }
    }
}
