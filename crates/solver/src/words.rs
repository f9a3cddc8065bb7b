//! Versions as people list them.

use crate::value::Pin;

/// Digits of a digest that tell it apart.
const DIGITS: usize = 12;

/// A pin as people say it: of a digest the beginning.
pub(crate) fn short(pin: &Pin) -> String {
    match pin {
        Pin::Digest(digest) => {
            let digits = digest.hex().get(..DIGITS).unwrap_or_default();
            format!("{}:{digits}", digest.algorithm().as_str())
        }
        Pin::Version(_) | Pin::Channel(_) => pin.to_string(),
    }
}

/// Longest list written out in full.
const LISTED_MAX: usize = 5;

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Some versions of a package, lowest and highest only when there are many.
pub(crate) fn some_versions(pins: &[String]) -> String {
    match pins {
        [first, .., last] if pins.len() > LISTED_MAX => {
            format!("{first}, …, {last} ({} versions)", pins.len())
        }
        _ => list(pins),
    }
}

/// What there is instead, as the end of a sentence.
pub(crate) fn of_versions(pins: &[String]) -> String {
    match pins {
        [] => String::new(),
        [one] => format!(" (there is only {one})"),
        _ => format!(" (there are {})", some_versions(pins)),
    }
}
