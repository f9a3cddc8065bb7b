//! Formats the server checks, as it checks them
//!
//! Which formats count depends on the type beside them; others are ignored, as are names the
//! server does not know. Each check has the habits of the Go function behind it, since objects
//! that pass there must pass here.

mod address;
mod mail;
mod time;
mod uri;

use std::sync::LazyLock;

use super::node::Kind;
use super::pattern::Pattern;

/// A format that is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Format {
    /// As the schema spells it.
    name: Box<str>,
    text: bool,
}

/// Names of the formats of strings, without dashes.
const TEXT: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

impl Format {
    /// The format of that name, if it is checked for values of that type.
    pub(crate) fn parse(name: &str, kind: Option<Kind>) -> Option<Self> {
        let text = matches!(kind, None | Some(Kind::String));
        let known = match kind {
            None | Some(Kind::String) => {
                TEXT.binary_search(&name.replace('-', "").as_str()).is_ok()
            }
            Some(Kind::Integer) => matches!(name, "int32" | "int64"),
            Some(Kind::Number) => matches!(name, "float" | "double"),
            Some(_) => false,
        };
        known.then(|| Self { name: name.into(), text })
    }

    /// The format of that name, checked or not: its presence alone relaxes the check of types.
    pub(crate) fn any(name: &str) -> Option<Self> {
        let text = TEXT.binary_search(&name.replace('-', "").as_str()).is_ok();
        (!name.is_empty()).then(|| Self { name: name.into(), text })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a format of strings.
    pub(crate) fn is_text(&self) -> bool {
        self.text
    }

    /// Whether a string has the format.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        match self.name.replace('-', "").as_str() {
            "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            "byte" => BASE64.matches(text),
            "cidr" => address::is_cidr(text),
            "creditcard" => is_credit_card(text),
            "date" => time::is_date(text),
            "datetime" => time::is_date_time(text),
            "duration" => time::is_duration(text),
            "email" => mail::is_address(text),
            "hexcolor" => HEX_COLOR.matches(text),
            "hostname" => is_hostname(text),
            "ipv4" => address::is_ip_sloppy(text) && text.contains('.'),
            "ipv6" => address::is_ip(text) && text.contains(':'),
            "isbn" => is_isbn10(text) || is_isbn13(text),
            "isbn10" => is_isbn10(text),
            "isbn13" => is_isbn13(text),
            "k8slongname" => text.len() <= 253 && LONG_NAME.matches(text),
            "k8sshortname" => text.len() <= 63 && SHORT_NAME.matches(text),
            "mac" => address::is_mac(text),
            "rgbcolor" => RGB_COLOR.matches(text),
            "ssn" => text.len() == 11 && SSN.matches(text),
            "uri" => uri::is_request_uri(text),
            "uuid" => is_uuid(text, None),
            "uuid3" => is_uuid(text, Some('3')),
            "uuid4" => is_uuid(text, Some('4')),
            "uuid5" => is_uuid(text, Some('5')),
            _ => true,
        }
    }
}

macro_rules! patterns {
    ($($name:ident = $source:expr;)*) => {
        $(static $name: LazyLock<Pattern> = LazyLock::new(|| Pattern::new($source));)*
    };
}

patterns! {
    BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$";
    SSN = r"^\d{3}[- ]?\d{2}[- ]?\d{4}$";
    SHORT_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    LONG_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
}

fn is_hostname(text: &str) -> bool {
    HOSTNAME.matches(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// A UUID with or without dashes, of a version where one is asked for.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    for (i, part) in split_uuid(text).into_iter().enumerate() {
        let Some(part) = part else { return false };
        if part.len() != [8, 4, 4, 4, 12][i] || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        digits.push_str(part);
    }
    let variant = digits.as_bytes().get(16).map(u8::to_ascii_lowercase);
    version.is_none_or(|version| {
        digits.chars().nth(12) == Some(version)
            && (version == '3' || matches!(variant, Some(b'8' | b'9' | b'a' | b'b')))
    })
}

/// The five groups, each with at most one dash before it.
fn split_uuid(text: &str) -> [Option<&str>; 5] {
    let mut rest = text;
    let mut groups = [None; 5];
    for (i, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return [None; 5] };
        groups[i] = Some(group);
        rest = after;
    }
    if rest.is_empty() { groups } else { [None; 5] }
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.matches(&digits) {
        return false;
    }
    let luhn = |(i, b): (usize, u8)| {
        let digit = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
        digit / 10 + digit % 10
    };
    digits.bytes().rev().enumerate().map(luhn).sum::<u32>() % 10 == 0
}

/// An ISBN without spaces and dashes.
fn isbn_digits(text: &str) -> Vec<u8> {
    let space = |b: &u8| matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'-');
    text.bytes().filter(|b| !space(b)).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let body = digits.len() == 10 && digits[..9].iter().all(u8::is_ascii_digit);
    if !body || !(digits[9].is_ascii_digit() || digits[9] == b'X') {
        return false;
    }
    let value = |b: u8| if b == b'X' { 10 } else { u32::from(b - b'0') };
    (1..).zip(digits).map(|(weight, b): (u32, u8)| weight * value(b)).sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weigh = |(i, b): (usize, &u8)| u32::from(b - b'0') * if i % 2 == 1 { 3 } else { 1 };
    digits.iter().enumerate().map(weigh).sum::<u32>() % 10 == 0
}
