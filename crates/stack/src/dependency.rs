//! What a package says it depends on: definitions, by name.

use std::fmt;

/// A definition that a package depends on: `NAME.GROUP` or `NAME.GROUP/VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdRequirement {
    /// The plural, singular or kind in lower case; `*` for all of the group.
    pub name: String,
    /// The group.
    pub group: String,
    /// The version, if one is named.
    pub version: Option<String>,
}

impl CrdRequirement {
    /// Reads one, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (qualified, version) = match text.split_once('/') {
            Some((qualified, version)) => (qualified, Some(version)),
            None => (text, None),
        };
        let (name, group) = qualified.split_once('.').ok_or("it has no group")?;
        if name != "*" && !is_dns_label(name) {
            return Err("its name is neither a lower-case DNS label nor *");
        }
        if !(group.contains('.') && group.len() <= 253 && group.split('.').all(is_dns_label)) {
            return Err("its group is not a domain with a dot");
        }
        if version.is_some_and(|version| !is_dns_label(version)) {
            return Err("its version is not a lower-case DNS label");
        }
        Ok(Self {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.map(str::to_owned),
        })
    }
}

impl fmt::Display for CrdRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.group)?;
        match &self.version {
            Some(version) => write!(f, "/{version}"),
            None => Ok(()),
        }
    }
}

fn is_dns_label(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_edged = !text.starts_with('-') && !text.ends_with('-');
    (1..=63).contains(&text.len()) && is_edged && text.bytes().all(is_plain)
}
