//! The docker-save form: from `manifest.json`, config and layers to the manifest upstream pushes.

use super::XPKG_ANNOTATION;
use super::archive::{Archive, Span};
use crate::error::{ArchiveFault, Cause};
use oci::{Descriptor, Digest, Hasher, Identifier, ImageConfig, Manifest, MediaType, Raw};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const CONFIG_SIZE_MAX: u64 = 8 << 20;
const HASH_CHUNK_SIZE: u64 = 1 << 20;
/// Images of one archive.
const IMAGES_MAX: usize = 100;

/// One line of `manifest.json`, in the field order upstream writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Line {
    /// Name of the config's entry.
    pub(crate) config: String,
    /// References the image has; `null` where it has none.
    #[serde(default)]
    pub(crate) repo_tags: Option<Vec<String>>,
    /// Names of the layers' entries, lowest first.
    #[serde(default)]
    pub(crate) layers: Option<Vec<String>>,
}

/// An image of the archive.
#[derive(Debug)]
pub(crate) struct Image {
    /// The manifest upstream would push.
    pub(crate) raw: Raw,
    references: Vec<String>,
    blobs: Vec<(Digest, Span)>,
}

impl Image {
    /// What to call the image: its reference, or else its digest.
    pub(crate) fn name(&self) -> String {
        self.references.first().cloned().unwrap_or_else(|| self.raw.digest.to_string())
    }

    /// Where a blob of the image lies.
    pub(crate) fn locate(&self, digest: &Digest) -> Option<Span> {
        self.blobs.iter().find(|(each, _)| each == digest).map(|(_, span)| *span)
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.references.iter().filter_map(|each| each.rsplit_once(':').map(|(_, tag)| tag))
    }
}

/// All images of an archive.
pub(crate) fn images(archive: &Archive, manifest_json: &[u8]) -> Result<Vec<Image>, Cause> {
    let lines: Vec<Line> = serde_json::from_slice(manifest_json)
        .map_err(|source| Cause::Json { what: "manifest.json".to_owned(), source })?;
    if lines.len() > IMAGES_MAX {
        return Err(ArchiveFault::Images(IMAGES_MAX).into());
    }
    let mut known = HashMap::new();
    lines.iter().map(|line| image(archive, line, &mut known)).collect()
}

/// The image a tag or digest stands for: if there is one only, any tag means it.
pub(crate) fn choose<'images>(
    images: &'images [Image],
    id: &Identifier,
) -> Result<Option<&'images Raw>, Cause> {
    let found = images.iter().find(|image| match id {
        Identifier::Digest(digest) => digest.matches(&image.raw.bytes),
        Identifier::Tag(tag) => images.len() == 1 || image.tags().any(|each| each == tag),
    });
    match (found, id) {
        (None, Identifier::Tag(_)) if images.len() > 1 => {
            Err(ArchiveFault::Several(images.iter().map(Image::name).collect()).into())
        }
        (found, _) => Ok(found.map(|image| &image.raw)),
    }
}

/// All tags, sorted.
pub(crate) fn tags(images: &[Image]) -> Vec<String> {
    let mut tags: Vec<String> = images.iter().flat_map(Image::tags).map(str::to_owned).collect();
    tags.sort();
    tags.dedup();
    tags
}

/// What a layer is, told by its first bytes.
pub(crate) fn layer_type(magic: &[u8]) -> MediaType {
    match magic {
        [0x1f, 0x8b, ..] => MediaType::DOCKER_LAYER_GZIP,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => MediaType::OCI_LAYER_ZSTD,
        _ => MediaType::DOCKER_LAYER,
    }
}

/// The annotation upstream's push gives a layer.
pub(crate) fn annotate(layer: &mut Descriptor, config: &ImageConfig) {
    let label = format!("{XPKG_ANNOTATION}:{}", layer.digest);
    if let Some(value) = config.config.labels.get(&label) {
        layer.annotations.insert(XPKG_ANNOTATION.to_owned(), value.clone());
    }
}

/// Layers that were hashed already: images share them, and hostile ones name one many times.
type Known = HashMap<Span, Descriptor>;

fn image(archive: &Archive, line: &Line, known: &mut Known) -> Result<Image, Cause> {
    let missing = |name: &str| ArchiveFault::Entry(name.to_owned());
    let config_bytes =
        archive.read(&line.config, CONFIG_SIZE_MAX)?.ok_or_else(|| missing(&line.config))?;
    let config: ImageConfig = serde_json::from_slice(&config_bytes)
        .map_err(|source| Cause::Json { what: "the image config".to_owned(), source })?;
    let names = line.layers.as_deref().unwrap_or_default();
    let counts = (config.rootfs.diff_ids.len(), names.len());
    if counts.0 != counts.1 {
        return Err(ArchiveFault::Layers { config: counts.0, archive: counts.1 }.into());
    }
    let config_descriptor = Descriptor::of(MediaType::DOCKER_CONFIG, &config_bytes);
    let config_span = archive.find(&line.config).ok_or_else(|| missing(&line.config))?;
    let mut blobs = vec![(config_descriptor.digest.clone(), config_span)];
    let mut layers = Vec::new();
    for name in names {
        let span = archive.find(name).ok_or_else(|| missing(name))?;
        let mut layer = match known.get(&span) {
            Some(layer) => layer.clone(),
            None => known.entry(span).or_insert(layer(archive, span)?).clone(),
        };
        annotate(&mut layer, &config);
        blobs.push((layer.digest.clone(), span));
        layers.push(layer);
    }
    let raw = Raw::from_manifest(&Manifest::docker(config_descriptor, layers))?;
    let references = line.repo_tags.clone().unwrap_or_default();
    Ok(Image { raw, references, blobs })
}

fn layer(archive: &Archive, span: Span) -> Result<Descriptor, Cause> {
    let media_type = layer_type(&archive.read_at(span.offset, span.size.min(4))?);
    let mut hasher = Hasher::new(oci::Algorithm::Sha256);
    let mut done = 0;
    while done < span.size {
        let count = (span.size - done).min(HASH_CHUNK_SIZE);
        hasher.update(&archive.read_at(span.offset + done, count)?);
        done += count;
    }
    Ok(Descriptor::new(media_type, hasher.finish(), span.size))
}
