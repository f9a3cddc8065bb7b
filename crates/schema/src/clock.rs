//! Points in time as text
//!
//! Only what objects need: RFC 3339 in, RFC 3339 in UTC out, and the age of something in few
//! letters. The time of day itself comes from the caller.

use std::fmt::Write as _;

/// Seconds since 1970 of an RFC 3339 text.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.len() < 20 || marks.iter().any(|(i, mark)| bytes[*i] != *mark) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut zone = &text[19..];
    if let Some(fraction) = zone.strip_prefix(['.', ',']) {
        let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == fraction.len() {
            return None;
        }
        zone = rest;
    }
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds - offset(zone)?)
}

fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let bytes = zone.as_bytes();
    if bytes.len() != 6 || bytes[3] != b':' {
        return None;
    }
    let hours: i64 = zone.get(1..3)?.parse().ok().filter(|h| *h <= 24)?;
    let minutes: i64 = zone.get(4..6)?.parse().ok().filter(|m| *m <= 60)?;
    match bytes[0] {
        b'+' => Some(hours * 3_600 + minutes * 60),
        b'-' => Some(-(hours * 3_600 + minutes * 60)),
        _ => None,
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 in the Gregorian calendar, counted in years that start in March.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// A point in time as RFC 3339 in UTC, to the second.
pub fn format(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A span of seconds in two or three significant figures, as `kubectl get` shows an age.
pub fn age(seconds: i64) -> String {
    match seconds {
        ..=-2 => return "<invalid>".to_owned(),
        -1 => return "0s".to_owned(),
        0..120 => return format!("{seconds}s"),
        _ => {}
    }
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let (main, rest) = match () {
        () if minutes < 10 => ((minutes, 'm'), Some((seconds % 60, 's'))),
        () if minutes < 180 => ((minutes, 'm'), None),
        () if hours < 8 => ((hours, 'h'), Some((minutes % 60, 'm'))),
        () if hours < 48 => ((hours, 'h'), None),
        () if hours < 192 => ((days, 'd'), Some((hours % 24, 'h'))),
        () if hours < 24 * 365 * 2 => ((days, 'd'), None),
        () if hours < 24 * 365 * 8 => ((years, 'y'), Some((days % 365, 'd'))),
        () => ((years, 'y'), None),
    };
    let mut out = format!("{}{}", main.0, main.1);
    if let Some((count, unit)) = rest.filter(|(count, _)| *count > 0) {
        _ = write!(out, "{count}{unit}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        for text in ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "1999-12-31T12:00:01Z"] {
            assert_eq!(parse(text).map(format).as_deref(), Some(text));
        }
        assert_eq!(
            parse("2024-01-02T03:04:05.123+01:00").map(format).unwrap(),
            "2024-01-02T02:04:05Z"
        );
        for text in ["2024-02-30T00:00:00Z", "2024-01-01", "2024-01-01T24:00:00Z", ""] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        let day = 86_400;
        let table: [(i64, &str); 14] = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (305, "5m5s"),
            (660, "11m"),
            (3 * 3_600, "3h"),
            (3 * 3_600 + 60, "3h1m"),
            (9 * 3_600, "9h"),
            (2 * day, "2d"),
            (2 * day + 3_600, "2d1h"),
            (9 * day, "9d"),
            (2 * 365 * day + day, "2y1d"),
            (9 * 365 * day, "9y"),
        ];
        for (seconds, text) in table {
            assert_eq!(age(seconds), text);
        }
    }
}
