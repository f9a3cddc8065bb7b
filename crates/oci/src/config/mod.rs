//! The image config: what a runtime would run, and where package tools keep layer labels.

mod canonical;

pub use canonical::EPOCH;

use crate::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An image config. Only what packages need is typed; the rest is kept as it was. Fields stand
/// in the order Go's tools write them, so that re-encoding there does not change the digest.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageConfig {
    /// Processor architecture.
    #[serde(default)]
    pub architecture: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// How each layer came to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Map<String, Value>>>,
    /// Operating system.
    #[serde(default)]
    pub os: String,
    /// The uncompressed layers.
    #[serde(default)]
    pub rootfs: RootFs,
    /// What a runtime would run.
    #[serde(default)]
    pub config: RunConfig,
    /// Version of the operating system.
    #[serde(rename = "os.version", default, skip_serializing_if = "String::is_empty")]
    pub os_version: String,
    /// Variant of the architecture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The uncompressed layers of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Digest of each uncompressed layer, lowest first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub diff_ids: Vec<Digest>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { kind: "layers".to_owned(), diff_ids: Vec::new() }
    }
}

/// What a runtime would run; we read and write its labels only.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunConfig {
    /// Labels, where a docker-save file carries layer annotations.
    #[serde(
        rename = "Labels",
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Go writes `null` for empty maps and slices.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_keeps_what_it_does_not_know() {
        let text = r#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"config":{"Labels":{"a":"b"},"Entrypoint":["/bin/provider"],"User":"65532"},"created":"2024-01-01T00:00:00Z"}"#;
        let config: ImageConfig = serde_json::from_str(text).unwrap();
        let back: Value = serde_json::to_value(&config).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn gos_nulls_are_empty() {
        let text = r#"{"rootfs":{"type":"layers","diff_ids":null},"config":{"Labels":null}}"#;
        let config: ImageConfig = serde_json::from_str(text).unwrap();
        assert!(config.config.labels.is_empty() && config.rootfs.diff_ids.is_empty());
    }

    #[test]
    fn numbers_are_kept_to_the_last_digit() {
        let text = r#"{"rootfs":{"diff_ids":[]},"config":{},"x":NUMBER}"#;
        for number in ["99999991553255926290448382", "9.999999155325591e+25", "1.1e-7"] {
            let text = text.replace("NUMBER", number);
            let config: ImageConfig = serde_json::from_str(&text).unwrap();
            let written = serde_json::to_string(&config).unwrap();
            let again: ImageConfig = serde_json::from_str(&written).unwrap();
            assert_eq!(again, config, "{number}");
        }
    }
}
