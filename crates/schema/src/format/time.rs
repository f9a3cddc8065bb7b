//! Dates, times and durations

/// `2006-01-02`, and a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u32>().ok()).flatten()
    };
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (digits(0..4), digits(5..7), digits(8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// A date, a `T`, a time and a zone, with any single character before a fraction.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    text.len() >= 4 && is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let bytes = clock.as_bytes();
    let two = |at: usize, max: &[u8]| {
        bytes[at..at + 2].iter().all(u8::is_ascii_digit) && bytes[at..at + 2] <= *max
    };
    if !(two(0, b"23") && bytes[2] == b':' && two(3, b"59") && bytes[5] == b':' && two(6, b"59")) {
        return false;
    }
    if is_zone(rest) {
        return true;
    }
    let mut chars = rest.chars();
    if chars.next().is_none_or(|c| c == '\n') {
        return false;
    }
    let fraction = chars.as_str();
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    zone.len() < fraction.len() && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    text == "z"
        || (bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|i| bytes[*i].is_ascii_digit()))
}

/// A Go duration (`1h30m`), or any text with a number and a unit in it (`22 ns`, `5 days`).
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_loose_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let whole = digits(rest);
        let (mut after, mut seen) = (&rest[whole..], whole > 0);
        if rest[..whole].len() > 18 {
            return false;
        }
        if let Some(fraction) = after.strip_prefix('.') {
            let length = digits(fraction);
            seen |= length > 0;
            after = &fraction[length..];
        }
        let unit = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        if !seen || !matches!(&after[..unit], "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h")
        {
            return false;
        }
        rest = &after[unit..];
    }
    true
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn is_loose_duration(text: &str) -> bool {
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let count = digits(rest);
        let number = &rest[..count];
        let after = rest[count..].trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let length =
            after.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(after.len());
        if length == 0 {
            rest = &rest[count..];
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&after[..length].to_lowercase());
        rest = &after[length..];
    }
    found
}

/// Units by name, or by the beginning of the longest name.
fn is_unit(unit: &str) -> bool {
    const EXACT: [&str; 13] =
        ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "μs", "sec"];
    const BEGINNING: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    EXACT.contains(&unit) || BEGINNING.iter().any(|beginning| unit.starts_with(beginning))
}
