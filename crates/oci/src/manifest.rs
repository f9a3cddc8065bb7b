//! Manifests, indexes, descriptors and image configs, OCI and Docker schema 2 alike.
//!
//! What came over the wire is kept as bytes ([`Raw`]); the parsed view sits beside it. The
//! digest of a manifest is the digest of its bytes, so nothing here re-encodes what it did not
//! make. Parsed types keep fields they do not know.

use crate::{Digest, MediaType, Platform, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Annotations, sorted as Go writes them.
pub type Annotations = BTreeMap<String, String>;

/// The largest manifest anyone may hand us: what the distribution specification asks registries
/// to accept at least.
pub const MANIFEST_SIZE_MAX: u64 = 4 << 20;

/// A pointer to bytes: type, size, digest. Field order is Go's, so that a manifest we write
/// has the digest upstream's tools would give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What the bytes are.
    pub media_type: MediaType,
    /// How many there are.
    pub size: u64,
    /// Their address.
    pub digest: Digest,
    /// The bytes themselves, in base64, where an author inlined them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Where else they may be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Notes on the bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// What they run on (in an index).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// What an artifact is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Descriptor {
    /// A bare descriptor.
    pub fn new(media_type: MediaType, digest: Digest, size: u64) -> Self {
        Self {
            media_type,
            size,
            digest,
            data: None,
            urls: Vec::new(),
            annotations: Annotations::new(),
            platform: None,
            artifact_type: None,
            extra: Map::new(),
        }
    }

    /// A descriptor of these bytes.
    pub fn of(media_type: MediaType, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }
}

/// An image manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The manifest's own type; may be absent in OCI manifests.
    #[serde(default, skip_serializing_if = "MediaType::is_empty")]
    pub media_type: MediaType,
    /// What an artifact is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The image config.
    pub config: Descriptor,
    /// The layers, lowest first.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// Notes on the image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// The manifest this one refers to (signatures and the like).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Manifest {
    /// A Docker schema 2 manifest, the form package tools write.
    pub fn docker(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: MediaType::DOCKER_MANIFEST,
            artifact_type: None,
            config,
            layers,
            annotations: Annotations::new(),
            subject: None,
            extra: Map::new(),
        }
    }
}

/// An image index, or Docker's manifest list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The index's own type; may be absent in OCI indexes.
    #[serde(default, skip_serializing_if = "MediaType::is_empty")]
    pub media_type: MediaType,
    /// What an artifact is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The children.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
    /// Notes on the index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// The manifest this one refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Everything else that was written.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Index {
    /// An OCI index of these children.
    pub fn oci(manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: MediaType::OCI_INDEX,
            artifact_type: None,
            manifests,
            annotations: Annotations::new(),
            subject: None,
            extra: Map::new(),
        }
    }
}

/// What a tag or digest in a registry may point at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one lives inside each Raw; never in bulk")]
pub enum Document {
    /// One image.
    Manifest(Manifest),
    /// Several images.
    Index(Index),
}

/// Why bytes are not a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON, or not of the shape.
    #[error("manifest is not valid JSON of the form its media type promises")]
    Json(#[source] serde_json::Error),
    /// Larger than anyone needs.
    #[error(
        "manifest has {size} bytes, more than the limit of {MANIFEST_SIZE_MAX} (manifest_size_max)"
    )]
    TooLarge {
        /// How large it is.
        size: u64,
    },
    /// A media type we do not read.
    #[error("media type `{0}` is neither an image manifest nor an image index")]
    MediaType(String),
    /// Docker schema 1, which nobody may trust.
    #[error("manifest has schema version {0}; only version 2 is supported")]
    SchemaVersion(u64),
    /// `layers` and `manifests` in one document: two readings of the same bytes.
    #[error("manifest has both `layers` and `manifests`, so that its meaning is ambiguous")]
    Ambiguous,
    /// A media type of one kind over the content of the other: an index with `layers` would be
    /// read as empty here, and as an image by tools that look inside.
    #[error(
        "manifest is called `{media_type}` but has `{field}`, so that its meaning is ambiguous"
    )]
    Mislabelled {
        /// What it is called.
        media_type: String,
        /// The field that does not belong there.
        field: &'static str,
    },
    /// The media type outside and the one inside disagree.
    #[error("manifest says it is `{inner}` but was served as `{outer}`")]
    Disagree {
        /// What the bytes say.
        inner: String,
        /// What the server said.
        outer: String,
    },
}

/// A manifest or index exactly as its bytes are, with the address they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they are.
    pub media_type: MediaType,
    /// Their address.
    pub digest: Digest,
    /// What they say.
    pub document: Document,
}

impl Raw {
    /// Reads bytes that were served as `media_type` (empty if the server did not say).
    pub fn parse(bytes: Vec<u8>, media_type: &MediaType) -> Result<Self, ManifestError> {
        let size = bytes.len() as u64;
        if size > MANIFEST_SIZE_MAX {
            return Err(ManifestError::TooLarge { size });
        }
        let probe: Probe = serde_json::from_slice(&bytes).map_err(ManifestError::Json)?;
        let media_type = probe.decide(media_type)?;
        let document = if media_type.is_index() {
            Document::Index(serde_json::from_slice(&bytes).map_err(ManifestError::Json)?)
        } else {
            Document::Manifest(serde_json::from_slice(&bytes).map_err(ManifestError::Json)?)
        };
        let digest = Digest::of(&bytes);
        Ok(Self { bytes, media_type, digest, document })
    }

    /// Lays down a manifest of our own making.
    pub fn from_manifest(manifest: &Manifest) -> Result<Self, ManifestError> {
        let bytes = json::to_vec(manifest).map_err(ManifestError::Json)?;
        Self::parse(bytes, &manifest.media_type)
    }

    /// Lays down an index of our own making.
    pub fn from_index(index: &Index) -> Result<Self, ManifestError> {
        let bytes = json::to_vec(index).map_err(ManifestError::Json)?;
        Self::parse(bytes, &index.media_type)
    }

    /// A descriptor of these bytes.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.media_type.clone(), self.digest.clone(), self.bytes.len() as u64)
    }

    /// The manifest, if it is one.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.document {
            Document::Manifest(manifest) => Some(manifest),
            Document::Index(_) => None,
        }
    }

    /// The index, if it is one.
    pub fn index(&self) -> Option<&Index> {
        match &self.document {
            Document::Index(index) => Some(index),
            Document::Manifest(_) => None,
        }
    }
}

/// Enough of a document to tell what it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    #[serde(default)]
    schema_version: u64,
    #[serde(default)]
    media_type: Option<MediaType>,
    layers: Option<serde::de::IgnoredAny>,
    manifests: Option<serde::de::IgnoredAny>,
}

impl Probe {
    fn decide(&self, outer: &MediaType) -> Result<MediaType, ManifestError> {
        if self.schema_version != 2 {
            return Err(ManifestError::SchemaVersion(self.schema_version));
        }
        if self.layers.is_some() && self.manifests.is_some() {
            return Err(ManifestError::Ambiguous);
        }
        let generic = |media_type: &MediaType| {
            media_type.is_empty()
                || matches!(media_type.as_str(), "application/json" | "text/plain")
                || *media_type == MediaType::OCTET_STREAM
        };
        let decided = match (&self.media_type, outer) {
            (Some(inner), outer) if generic(outer) => inner.clone(),
            (Some(inner), outer) if inner != outer && !inner.is_empty() => {
                return Err(ManifestError::Disagree {
                    inner: inner.to_string(),
                    outer: outer.to_string(),
                });
            }
            (_, outer) if !generic(outer) => outer.clone(),
            _ if self.manifests.is_some() => MediaType::OCI_INDEX,
            _ => MediaType::OCI_MANIFEST,
        };
        let foreign = match (&self.layers, &self.manifests) {
            (Some(_), _) if decided.is_index() => Some("layers"),
            (_, Some(_)) if decided.is_manifest() => Some("manifests"),
            _ => None,
        };
        let media_type = decided.to_string();
        match foreign {
            Some(field) => Err(ManifestError::Mislabelled { media_type, field }),
            None if decided.is_manifest() || decided.is_index() => Ok(decided),
            None => Err(ManifestError::MediaType(media_type)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> Digest {
        Digest::of(b"x")
    }

    #[test]
    fn a_manifest_we_write_has_gos_field_order() {
        let config = Descriptor::new(MediaType::DOCKER_CONFIG, digest(), 7);
        let mut layer = Descriptor::new(MediaType::DOCKER_LAYER_GZIP, digest(), 9);
        layer.annotations.insert("io.crossplane.xpkg".into(), "base".into());
        let raw = Raw::from_manifest(&Manifest::docker(config, vec![layer])).unwrap();
        let hex = digest();
        assert_eq!(
            String::from_utf8(raw.bytes).unwrap(),
            format!(
                r#"{{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{{"mediaType":"application/vnd.docker.container.image.v1+json","size":7,"digest":"{hex}"}},"layers":[{{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":9,"digest":"{hex}","annotations":{{"io.crossplane.xpkg":"base"}}}}]}}"#
            )
        );
    }

    #[test]
    fn unknown_fields_survive() {
        let digest = digest();
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"{digest}","platform":{{"architecture":"arm64","os":"linux","os.features":["x"]}},"later":1}}],"later":{{"a":null}}}}"#
        );
        let raw = Raw::parse(text.clone().into_bytes(), &MediaType::OCI_INDEX).unwrap();
        assert_eq!(raw.bytes, text.as_bytes());
        assert_eq!(serde_json::to_string(raw.index().unwrap()).unwrap(), text);
    }

    #[test]
    fn documents_with_two_readings_are_refused() {
        let check = |text: &str, outer: &MediaType, expected: &str| {
            let error = Raw::parse(text.as_bytes().to_vec(), outer).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            r#"{"schemaVersion":2,"layers":[],"manifests":[]}"#,
            &MediaType::default(),
            "manifest has both `layers` and `manifests`, so that its meaning is ambiguous",
        );
        check(
            r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#,
            &MediaType::OCI_MANIFEST,
            "manifest says it is `application/vnd.oci.image.index.v1+json` but was served as `application/vnd.oci.image.manifest.v1+json`",
        );
        check(
            r#"{"schemaVersion":2,"layers":[]}"#,
            &MediaType::OCI_INDEX,
            "manifest is called `application/vnd.oci.image.index.v1+json` but has `layers`, so that its meaning is ambiguous",
        );
        check(
            r#"{"schemaVersion":2,"manifests":[]}"#,
            &MediaType::OCI_MANIFEST,
            "manifest is called `application/vnd.oci.image.manifest.v1+json` but has `manifests`, so that its meaning is ambiguous",
        );
        check(
            r#"{"schemaVersion":1}"#,
            &MediaType::default(),
            "manifest has schema version 1; only version 2 is supported",
        );
    }

    #[test]
    fn an_index_without_a_media_type_is_told_by_its_fields() {
        let raw =
            Raw::parse(br#"{"schemaVersion":2,"manifests":[]}"#.to_vec(), &MediaType::default());
        assert_eq!(raw.unwrap().media_type, MediaType::OCI_INDEX);
    }
}
