//! What is kept of a manifest besides its bytes.

use crate::error::Error;
use crate::limits::DESCRIPTORS_MAX;
use oci::manifest::Annotations;
use oci::{Descriptor, Digest, Document, MediaType, Raw};
use std::collections::BTreeSet;

/// What a manifest says.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) digest: Digest,
    pub(crate) media_type: MediaType,
    pub(crate) size: u64,
    pub(crate) subject: Option<Digest>,
    pub(crate) artifact_type: Option<String>,
    /// Those of a referrer, for lists of referrers show them.
    pub(crate) annotations: Annotations,
    /// What must be there before it.
    pub(crate) required: BTreeSet<Digest>,
    /// Everything it names.
    pub(crate) children: BTreeSet<Digest>,
}

impl Row {
    /// Reads what a manifest says.
    pub(crate) fn of(raw: &Raw, digest: Digest) -> Result<Self, Error> {
        let (children, subject, artifact_type, annotations) = match &raw.document {
            Document::Manifest(it) => {
                let all: Vec<&Descriptor> = std::iter::once(&it.config).chain(&it.layers).collect();
                let kind = it.artifact_type.clone().filter(|kind| !kind.is_empty());
                let kind = kind.unwrap_or_else(|| it.config.media_type.to_string());
                (all, &it.subject, Some(kind), &it.annotations)
            }
            Document::Index(it) => {
                let kind = it.artifact_type.clone().filter(|kind| !kind.is_empty());
                (it.manifests.iter().collect(), &it.subject, kind, &it.annotations)
            }
        };
        if children.len() > DESCRIPTORS_MAX {
            return Err(Error::ManifestTooMany);
        }
        let needed = children.iter().filter(|it| !is_elsewhere(&it.media_type));
        let annotations = if subject.is_some() { annotations.clone() } else { Annotations::new() };
        Ok(Self {
            digest,
            media_type: raw.media_type.clone(),
            size: raw.bytes.len() as u64,
            subject: subject.as_ref().map(|it| it.digest.clone()),
            artifact_type,
            annotations,
            required: needed.map(|it| it.digest.clone()).collect(),
            children: children.iter().map(|it| it.digest.clone()).collect(),
        })
    }
}

/// Layers that their authors want fetched from elsewhere are never here.
fn is_elsewhere(media_type: &MediaType) -> bool {
    media_type.as_str().contains(".nondistributable.") || media_type.as_str().contains(".foreign.")
}
