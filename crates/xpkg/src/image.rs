//! From package layers to an image: config, labels, manifest.
//!
//! The form is upstream's: Docker media types, and because a docker-save file has no place for
//! layer annotations, a config label per package layer that names its digest. Pushing turns the
//! labels back into annotations ([`annotated`]).

use crate::locate::{ANNOTATION, EXTENSIONS};
use oci::config::EPOCH;
use oci::layer::WrittenLayer;
use oci::{Descriptor, Digest, ImageConfig, Manifest, ManifestError, MediaType, Raw};
use serde_json::{Map, json};

/// A runtime image that a package is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its config; everything in it is kept.
    pub config: ImageConfig,
    /// Its layers, lowest first.
    pub layers: Vec<Descriptor>,
}

/// A layer of the package and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageLayer {
    /// The layer.
    pub layer: WrittenLayer,
    /// The annotation's value: `base`, `upbound`, or what other readers look for; empty for a layer
    /// that is found by its files alone.
    pub role: String,
}

/// A built image, all digests known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The config's bytes.
    pub config: Vec<u8>,
    /// All layers, lowest first, without annotations.
    pub layers: Vec<Descriptor>,
    /// The manifest as the file holds it: no annotations. Its digest names the file.
    pub plain: Raw,
    /// The manifest as a registry gets it: annotated.
    pub annotated: Raw,
}

/// Why layers do not make an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The runtime image is a package itself.
    #[error("the runtime image already contains a package (its config is labelled `{0}`)")]
    RuntimeIsPackage(String),
    /// The config could not be written as JSON.
    #[error("cannot write the image config")]
    Config(#[source] serde_json::Error),
    /// The manifest could not be written.
    #[error("cannot write the image manifest")]
    Manifest(#[source] ManifestError),
}

/// Stacks package layers on a runtime image, or on nothing.
pub fn assemble(runtime: Option<Runtime>, package: &[PackageLayer]) -> Result<Image, ImageError> {
    let (mut config, mut layers) = match runtime {
        Some(runtime) => (runtime.config, runtime.layers),
        None => (scratch(), Vec::new()),
    };
    let taken = config.config.labels.keys().find(|key| key.starts_with(&format!("{ANNOTATION}:")));
    if let Some(label) = taken {
        return Err(ImageError::RuntimeIsPackage(label.clone()));
    }
    for part in package {
        let digest = &part.layer.descriptor.digest;
        config.rootfs.diff_ids.push(part.layer.diff_id.clone());
        if !part.role.is_empty() {
            config.config.labels.insert(label(digest), part.role.clone());
        }
        let entry = Map::from_iter([("created".to_owned(), json!(EPOCH))]);
        config.history.get_or_insert_default().push(entry);
        layers.push(part.layer.descriptor.clone());
    }
    let bytes = config.canonical().map_err(ImageError::Config)?;
    let descriptor = Descriptor::of(MediaType::DOCKER_CONFIG, &bytes);
    let plain = Manifest::docker(descriptor, layers.clone());
    let annotated = annotated(&plain, &config);
    Ok(Image {
        config: bytes,
        layers,
        plain: Raw::from_manifest(&plain).map_err(ImageError::Manifest)?,
        annotated: Raw::from_manifest(&annotated).map_err(ImageError::Manifest)?,
    })
}

/// The label under which a config says what a layer is for.
pub fn label(digest: &Digest) -> String {
    format!("{ANNOTATION}:{digest}")
}

/// The same manifest with layer annotations restored from the config's labels.
pub fn annotated(manifest: &Manifest, config: &ImageConfig) -> Manifest {
    let mut manifest = manifest.clone();
    for layer in &mut manifest.layers {
        if let Some(role) = config.config.labels.get(&label(&layer.digest)) {
            layer.annotations.insert(ANNOTATION.to_owned(), role.clone());
        }
    }
    manifest
}

/// An image of content for other readers, beside a package in its index: its manifest and config.
pub fn extensions(layer: &WrittenLayer) -> Result<(Raw, Vec<u8>), ImageError> {
    let part = PackageLayer { layer: layer.clone(), role: EXTENSIONS.to_owned() };
    let image = assemble(None, &[part])?;
    Ok((image.annotated, image.config))
}

/// A manifest as a child of an index that holds content for other readers: without a platform, so
/// that nothing runs it.
pub fn extensions_child(manifest: &Raw) -> Descriptor {
    let mut child = manifest.descriptor();
    child.annotations.insert(ANNOTATION.to_owned(), EXTENSIONS.to_owned());
    child
}

fn scratch() -> ImageConfig {
    ImageConfig { created: Some(EPOCH.to_owned()), ..ImageConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn part(content: &[u8], role: &str) -> PackageLayer {
        let descriptor = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, content);
        PackageLayer {
            layer: WrittenLayer { descriptor, diff_id: Digest::of(b"tar") },
            role: role.to_owned(),
        }
    }

    #[test]
    fn labels_and_annotations_say_the_same() {
        let image = assemble(None, &[part(b"a", "base"), part(b"b", "upbound")]).unwrap();
        let config: ImageConfig = serde_json::from_slice(&image.config).unwrap();
        assert_eq!(config.rootfs.diff_ids.len(), 2);
        let manifest = image.annotated.manifest().unwrap();
        for (layer, role) in manifest.layers.iter().zip(["base", "upbound"]) {
            assert_eq!(layer.annotations[ANNOTATION], role);
            assert_eq!(config.config.labels[&label(&layer.digest)], role);
        }
        assert!(image.plain.manifest().unwrap().layers.iter().all(|l| l.annotations.is_empty()));
    }

    #[test]
    fn a_runtime_keeps_its_config_and_layers() {
        let config: ImageConfig = serde_json::from_value(json!({
            "architecture": "arm64", "os": "linux",
            "config": {"Entrypoint": ["/provider"], "Labels": {"a": "b"}},
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(b"r")]},
        }))
        .unwrap();
        let layer = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, b"r");
        let runtime = Runtime { config, layers: vec![layer.clone()] };
        let image = assemble(Some(runtime), &[part(b"a", "base")]).unwrap();
        let config: Value = serde_json::from_slice(&image.config).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/provider"]));
        assert_eq!(config["config"]["Labels"]["a"], "b");
        assert_eq!(config["architecture"], "arm64");
        assert_eq!(image.layers[0], layer);
        let again = Runtime {
            config: serde_json::from_slice(&image.config).unwrap(),
            layers: image.layers,
        };
        let error = assemble(Some(again), &[part(b"b", "base")]).unwrap_err().to_string();
        assert!(error.starts_with("the runtime image already contains a package"), "{error}");
    }
}
