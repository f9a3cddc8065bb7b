//! Times as Kubernetes writes them: RFC 3339, UTC, whole seconds.

/// `2026-11-15T01:20:27Z` for seconds since 1970.
pub fn format(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Seconds since 1970 for a time this module wrote; fractions and offsets are cut off.
pub fn parse(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days(year, month, day)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// What is wrong with a time that a client sent, in the words of Go's parser. Times of leases
/// and events have six digits after the second.
pub fn check(text: &str, micro: bool) -> Result<(), String> {
    let layout =
        if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let wrong = |rest: &str, element: &str| {
        Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let mut numbers = Vec::new();
    let mut rest = text;
    let elements = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    for element in elements {
        let head = rest.get(..element.len()).unwrap_or_default();
        let literal = element.len() == 1;
        let fits = if literal {
            head == element
        } else {
            !head.is_empty() && head.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !fits {
            return wrong(rest, element);
        }
        if !literal {
            let number = head.parse::<u64>().unwrap_or_default();
            numbers.push(number);
            let (what, range) = match numbers.len() {
                2 => ("month", 1..=12),
                3 => ("day", 1..=31),
                4 => ("hour", 0..=23),
                5 => ("minute", 0..=59),
                6 => ("second", 0..=59),
                _ => ("year", 0..=9999),
            };
            if !range.contains(&number) {
                return Err(format!("parsing time {text:?}: {what} out of range"));
            }
        }
        rest = &rest[element.len()..];
    }
    let fraction = rest
        .strip_prefix('.')
        .map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count());
    if micro && fraction < 6 {
        return wrong(rest, ".000000");
    }
    if fraction > 0 {
        rest = &rest[fraction + 1..];
    }
    let zone = rest.as_bytes();
    let offset = zone.len() >= 6
        && b"+-".contains(&zone[0])
        && zone[3] == b':'
        && [1, 2, 4, 5].iter().all(|at| zone[*at].is_ascii_digit());
    let extra = match zone.first() {
        Some(b'Z') => &rest[1..],
        _ if offset => &rest[6..],
        _ => return wrong(rest, "Z07:00"),
    };
    if !extra.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {extra:?}"));
    }
    let [year, month, day, ..] = numbers[..] else { return Ok(()) };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    if day > days { Err(format!("parsing time {text:?}: day out of range")) } else { Ok(()) }
}

/// The age as kubectl's tables say it: `3s`, `5m10s`, `3h2m`, `2d4h`, `5d`, `2y3d`.
pub fn age(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: u64, unit: &str, small: u64, sub: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{sub}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// Days since 1970 to a date (Howard Hinnant's algorithm).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let era = year / 400;
    let year_of_era = year % 400;
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_round_trip() {
        for seconds in [0, 1, 951_782_400, 1_794_705_627, 4_102_444_799] {
            assert_eq!(parse(&format(seconds)), Some(seconds));
        }
        assert_eq!(format(1_794_705_627), "2026-11-15T01:20:27Z");
    }

    #[test]
    fn times_are_judged_as_go_does() {
        let wrong = |text: &str, micro| check(text, micro).unwrap_err();
        for fine in ["2026-02-28T23:59:59Z", "2024-02-29T00:00:00.5+02:00"] {
            assert_eq!(check(fine, false), Ok(()), "{fine}");
        }
        assert_eq!(check("2026-01-01T00:00:00.123456Z", true), Ok(()));
        assert!(wrong("2026-02-29T00:00:00Z", false).ends_with("day out of range"));
        assert!(wrong("2026-01-01T24:00:00Z", false).ends_with("hour out of range"));
        assert!(wrong("2026-01-01T00:00:00Zx", false).ends_with("extra text: \"x\""));
        assert!(wrong("2026-01-01T00:00:00", false).ends_with("cannot parse \"\" as \"Z07:00\""));
        assert!(wrong("2026-01-01T00:00:00Z", true).ends_with("cannot parse \"Z\" as \".000000\""));
    }

    #[test]
    fn ages_are_short() {
        let cases = [(5, "5s"), (119, "119s"), (130, "2m10s"), (1200, "20m"), (90_000, "25h")];
        for (seconds, text) in cases {
            assert_eq!(age(seconds), text);
        }
    }
}
