//! Platforms: `os/architecture[/variant]`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// What a child of an index runs on. Fields we do not know are kept.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Platform {
    /// Processor architecture as Go names it (`amd64`, `arm64`).
    #[serde(default)]
    pub architecture: String,
    /// Operating system as Go names it (`linux`).
    #[serde(default)]
    pub os: String,
    /// Version of the operating system.
    #[serde(rename = "os.version", default, skip_serializing_if = "String::is_empty")]
    pub os_version: String,
    /// Variant of the architecture (`v8`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The text is not a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("platform `{0}` is not of the form os/architecture or os/architecture/variant")]
pub struct PlatformError(String);

impl Platform {
    /// A platform without a variant.
    pub fn new(os: &str, architecture: &str) -> Self {
        Self { os: os.to_owned(), architecture: architecture.to_owned(), ..Self::default() }
    }

    /// The platform whose package content is used when nobody asked for another.
    pub fn linux_amd64() -> Self {
        Self::new("linux", "amd64")
    }

    /// Whether `self`, as found in an index, serves someone who asks for `wanted`: os and
    /// architecture are equal, and so is the variant if one was asked for.
    pub fn serves(&self, wanted: &Self) -> bool {
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && (wanted.variant.is_empty() || self.variant == wanted.variant)
            && (wanted.os_version.is_empty() || self.os_version == wanted.os_version)
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let parts: Vec<&str> = text.split('/').collect();
        let well_formed = matches!(parts.len(), 2 | 3) && parts.iter().all(|part| !part.is_empty());
        if !well_formed {
            return Err(PlatformError(text.to_owned()));
        }
        let mut platform = Self::new(parts[0], parts[1]);
        parts.get(2).copied().unwrap_or_default().clone_into(&mut platform.variant);
        Ok(platform)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        if !self.variant.is_empty() {
            write!(formatter, "/{}", self.variant)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_parse_and_print() {
        for text in ["linux/amd64", "linux/arm/v7"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
        for text in ["", "linux", "linux/", "a/b/c/d", "/amd64"] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_variant_matters_only_when_asked_for() {
        let v8: Platform = "linux/arm64/v8".parse().unwrap();
        assert!(v8.serves(&"linux/arm64".parse().unwrap()));
        assert!(!v8.serves(&"linux/arm64/v9".parse().unwrap()));
        assert!(!v8.serves(&Platform::linux_amd64()));
    }
}
