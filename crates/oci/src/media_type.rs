//! Media types, as far as the house tells them apart.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A media type. Unknown ones are kept as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MediaType(Cow<'static, str>);

macro_rules! known {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        impl MediaType {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($text));)*
        }
    };
}

known! {
    /// OCI image manifest.
    OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
    /// OCI image index.
    OCI_INDEX = "application/vnd.oci.image.index.v1+json";
    /// OCI image configuration.
    OCI_CONFIG = "application/vnd.oci.image.config.v1+json";
    /// OCI layer, gzip.
    OCI_LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// OCI layer, zstd.
    OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// OCI layer, plain tar.
    OCI_LAYER = "application/vnd.oci.image.layer.v1.tar";
    /// Docker schema 2 image manifest.
    DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";
    /// Docker schema 2 manifest list.
    DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Docker image configuration.
    DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json";
    /// Docker layer, gzip.
    DOCKER_LAYER_GZIP = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    /// Docker layer, plain tar.
    DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar";
    /// The empty JSON object OCI uses where a config is not wanted.
    EMPTY_JSON = "application/vnd.oci.empty.v1+json";
    /// Anything.
    OCTET_STREAM = "application/octet-stream";
}

impl MediaType {
    /// A media type as written; parameters such as `; charset=utf-8` are dropped.
    pub fn new(text: &str) -> Self {
        let bare = text.split(';').next().unwrap_or_default().trim();
        Self(Cow::Owned(bare.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this names an image manifest, of either family.
    pub fn is_manifest(&self) -> bool {
        *self == Self::OCI_MANIFEST || *self == Self::DOCKER_MANIFEST
    }

    /// Whether this names an index (or Docker's manifest list).
    pub fn is_index(&self) -> bool {
        *self == Self::OCI_INDEX || *self == Self::DOCKER_INDEX
    }

    /// All manifest and index types we accept, in the order we prefer them.
    pub fn manifest_types() -> [Self; 4] {
        [Self::OCI_MANIFEST, Self::OCI_INDEX, Self::DOCKER_MANIFEST, Self::DOCKER_INDEX]
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
