//! Timestamps and durations.

use super::super::value::{Result, Trouble, Val};

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Nanoseconds since 1970 of a time in RFC 3339.
pub(crate) fn timestamp(text: &str) -> Option<i128> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day): (i64, i64, i64) =
        (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let (clock, zone) = rest.split_at_checked(8)?;
    let mut parts = clock.split(':');
    let (hour, minute, second) =
        (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let fits = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !fits {
        return None;
    }
    let (nanos, zone) = fraction(zone)?;
    let offset = offset(zone)?;
    let days = days_from(year, month, day);
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(i128::from(seconds) * i128::from(SECOND) + i128::from(nanos))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let fits = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let nine: String = rest[..count].chars().chain("000000000".chars()).take(9).collect();
    Some((nine.parse().ok()?, &rest[count..]))
}

/// Seconds east of Greenwich.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date.
fn days_from(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// A timestamp in RFC 3339.
pub(super) fn text(nanos: i128) -> String {
    let second = i128::from(SECOND);
    let seconds = i64::try_from(nanos.div_euclid(second)).unwrap_or_default();
    let fraction = nanos.rem_euclid(second);
    let (year, month, day) = date_of(seconds.div_euclid(86_400));
    let clock = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let mut out = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        out.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    out.push('Z');
    out
}

/// Nanoseconds of a duration such as `1h30m`, also with days and weeks as formats allow them.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let value: f64 = rest[..number].parse().ok()?;
        rest = &rest[number..];
        let unit = rest.chars().take_while(|c| !c.is_ascii_digit() && *c != '.').count();
        let end = rest.char_indices().nth(unit).map_or(rest.len(), |(at, _)| at);
        let scale = match rest[..end].trim() {
            "ns" => 1,
            "us" | "µs" | "μs" => 1000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            "w" => 7 * DAY,
            _ => return None,
        };
        rest = &rest[end..];
        #[expect(clippy::cast_precision_loss, reason = "units are exact")]
        {
            total += value * scale as f64;
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "within bounds")]
    (total.abs() < 9.2e18).then_some(sign * total.round() as i64)
}

/// A duration as a number of seconds.
pub(super) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, fraction) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    format!("{sign}{whole}{}s", format!(".{fraction:09}").trim_end_matches('0'))
}

/// A timestamp, if it lies in the years that have four digits.
pub(super) fn bounded<'a>(nanos: i128) -> Option<Val<'a>> {
    const YEARS: std::ops::RangeInclusive<i128> = -62_135_596_800..=253_402_300_799;
    YEARS.contains(&nanos.div_euclid(i128::from(SECOND))).then_some(Val::Timestamp(nanos))
}

pub(super) fn arithmetic<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let long = || Trouble::new("duration overflow");
    let late = || Trouble::new("timestamp overflow");
    match (name, args) {
        (
            "_+_",
            [Val::Timestamp(at), Val::Duration(span)] | [Val::Duration(span), Val::Timestamp(at)],
        ) => at.checked_add(i128::from(*span)).and_then(bounded).ok_or_else(late),
        ("_-_", [Val::Timestamp(at), Val::Duration(span)]) => {
            at.checked_sub(i128::from(*span)).and_then(bounded).ok_or_else(late)
        }
        ("_-_", [Val::Timestamp(a), Val::Timestamp(b)]) => {
            let span = a.checked_sub(*b).and_then(|span| i64::try_from(span).ok());
            span.map(Val::Duration).ok_or_else(long)
        }
        ("_+_", [Val::Duration(a), Val::Duration(b)]) => {
            a.checked_add(*b).map(Val::Duration).ok_or_else(long)
        }
        ("_-_", [Val::Duration(a), Val::Duration(b)]) => {
            a.checked_sub(*b).map(Val::Duration).ok_or_else(long)
        }
        _ => Err(Trouble::overload()),
    }
}

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    match args {
        [Val::Duration(nanos)] => Ok(Val::Int(match name {
            "getHours" => nanos / HOUR,
            "getMinutes" => nanos / MINUTE,
            "getSeconds" => nanos / SECOND,
            "getMilliseconds" => nanos / 1_000_000,
            _ => return Err(Trouble::overload()),
        })),
        [Val::Timestamp(nanos)] => part(name, *nanos, 0),
        [Val::Timestamp(nanos), Val::String(zone)] => {
            let east = offset(zone)
                .ok_or_else(|| Trouble::new(format!("unknown time zone {}", &**zone)))?;
            part(name, *nanos, east)
        }
        _ => Err(Trouble::overload()),
    }
}

fn part<'a>(name: &str, nanos: i128, east: i64) -> Result<Val<'a>> {
    let second = i128::from(SECOND);
    let seconds = i64::try_from(nanos.div_euclid(second)).unwrap_or_default() + east;
    let days = seconds.div_euclid(86_400);
    let clock = seconds.rem_euclid(86_400);
    let (year, month, day) = date_of(days);
    Ok(Val::Int(match name {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDayOfYear" => days - days_from(year, 1, 1),
        "getDayOfMonth" => day - 1,
        "getDate" => day,
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getHours" => clock / 3600,
        "getMinutes" => clock / 60 % 60,
        "getSeconds" => clock % 60,
        "getMilliseconds" => i64::try_from(nanos.rem_euclid(second) / 1_000_000).unwrap_or(0),
        _ => return Err(Trouble::overload()),
    }))
}
