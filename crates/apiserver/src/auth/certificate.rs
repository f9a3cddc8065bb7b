//! Who a certificate is for: its subject's common name is the user, its organizations
//! are the groups.
//!
//! The listener has verified the certificate with our own authority before it comes here,
//! so this only finds two kinds of text in bytes that are known to be sound; whatever
//! is not as expected is nobody.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};

use crate::Identity;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

impl Identity {
    /// The identity in a verified certificate; none if it names nobody.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let mut user = String::new();
        let mut groups = Vec::new();
        for (kind, text) in subject(der)? {
            if kind == COMMON_NAME {
                user = text;
            } else if kind == ORGANIZATION {
                groups.push(text);
            }
        }
        if user.is_empty() {
            return None;
        }
        let mut credential = "X509SHA256=".to_owned();
        for byte in digest(&SHA256, der).as_ref() {
            let _ = write!(credential, "{byte:02x}");
        }
        Some(Self { user, groups, credential: Some(credential) })
    }
}

/// The parts of a certificate's subject: what they are, and their text.
fn subject(der: &[u8]) -> Option<Vec<(&[u8], String)>> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (signed, _) = element(certificate, SEQUENCE)?;
    // An optional version, the serial number, the algorithm, the issuer, the validity.
    let rest = match signed.first()? {
        0xa0 => skip(signed)?,
        _ => signed,
    };
    let rest = skip(skip(skip(skip(rest)?)?)?)?;
    let (mut names, _) = element(rest, SEQUENCE)?;
    let mut parts = Vec::new();
    while !names.is_empty() {
        let (mut set, after) = element(names, SET)?;
        while !set.is_empty() {
            let (pair, next) = element(set, SEQUENCE)?;
            let (kind, value) = element(pair, OBJECT_ID)?;
            let (_, text, _) = any(value)?;
            parts.push((kind, std::str::from_utf8(text).ok()?.to_owned()));
            set = next;
        }
        names = after;
    }
    Some(parts)
}

fn skip(bytes: &[u8]) -> Option<&[u8]> {
    any(bytes).map(|(_, _, rest)| rest)
}

/// The content of an element that must have this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(bytes)?;
    (found == tag).then_some((content, rest))
}

/// An element's tag and content, and what follows it.
fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}
