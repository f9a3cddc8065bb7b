//! The two tags whose text has a grammar of its own: `!!binary` and `!!timestamp`.
//!
//! Hardly any package uses them. They are here so that the few that do are read as the cluster
//! reads them, and kept out of [`super::scalar`] so that they do not hide the rules that matter.

/// Standard base64 with padding; line breaks do not count, as in Go.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let padding = symbols.iter().rev().take_while(|byte| **byte == b'=').count();
    if !symbols.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
    for group in symbols[..symbols.len() - padding].chunks(4) {
        let mut bits = 0_u32;
        for symbol in group {
            bits = (bits << 6) | sextet(*symbol)?;
        }
        bits <<= 6 * (4 - group.len());
        // Four symbols carry three bytes; each missing symbol takes one byte with it.
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

/// The six bits a base64 symbol stands for.
fn sextet(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Whether go-yaml takes the text for a date, or a date and a time.
pub(super) fn is_timestamp(text: &str) -> bool {
    if let Some((date, time)) = text.split_once(['T', 't']) {
        return is_date(date) && is_zoned_clock(time);
    }
    match text.split_once(' ') {
        Some((date, time)) => is_date(date) && is_clock(time),
        None => is_date(text),
    }
}

/// `2006-1-2`, a day the calendar has.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) =
        (digits(year, 4, 4), digits(month, 1, 2), digits(day, 1, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

/// `15:4:5.999Z` or with an offset like `+07:00`.
fn is_zoned_clock(text: &str) -> bool {
    if let Some(clock) = text.strip_suffix('Z') {
        return is_clock(clock);
    }
    let Some(at) = text.find(['+', '-']) else {
        return false;
    };
    let (clock, zone) = text.split_at(at);
    let Some((hours, minutes)) = zone[1..].split_once(':') else {
        return false;
    };
    let within = |text, max| digits(text, 2, 2).is_some_and(|value| value <= max);
    is_clock(clock) && within(hours, 24) && within(minutes, 60)
}

/// `15:4:5.999`: hours with one or two digits, the fraction optional.
fn is_clock(text: &str) -> bool {
    let (clock, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let (Some(hours), Some(minutes), Some(seconds), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let within = |text, max| digits(text, 1, 2).is_some_and(|value| value <= max);
    within(hours, 23)
        && within(minutes, 59)
        && within(seconds, 59)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number in a text of so many digits and nothing else.
fn digits(text: &str, min: usize, max: usize) -> Option<u32> {
    let fits = (min..=max).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}
