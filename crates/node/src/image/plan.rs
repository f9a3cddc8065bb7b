//! What an image consists of, found out before any of its layers is fetched.

use super::platform::{check_platform, choose_image};
use super::{ImageDefaults, ImageOptions, PullError};
use bytes::Bytes;
use oci::{Descriptor, Digest, Document, Identifier, ImageConfig, Manifest, Platform, Raw};
use store::Store;

/// A layer, and the digest that its content has.
#[derive(Clone, Debug)]
pub(super) struct PlannedLayer {
    pub(super) descriptor: Descriptor,
    pub(super) diff_id: Digest,
}

/// An image that can be fetched.
#[derive(Clone, Debug)]
pub(super) struct PullPlan {
    /// The config as it was written.
    pub(super) config: Bytes,
    pub(super) defaults: ImageDefaults,
    /// The layers that make the file system, lowest first.
    pub(super) layers: Vec<PlannedLayer>,
    /// What the file system is called. Images that come to the same one have the same name.
    pub(super) name: String,
}

/// The manifest or index that is asked for.
pub(super) async fn fetch_document(
    store: &dyn Store,
    identifier: &Identifier,
) -> Result<Raw, PullError> {
    let raw = store.manifest(identifier).await?.ok_or_else(|| PullError::Missing {
        place: store.place(),
        identifier: identifier.to_string(),
    })?;
    match identifier {
        Identifier::Digest(digest) if !digest.matches(&raw.bytes) => {
            Err(PullError::Malformed(format!("the manifest called {digest} is {}", raw.digest)))
        }
        _ => Ok(raw),
    }
}

/// Finds out what an image consists of on this machine.
pub(super) async fn plan_pull(
    store: &dyn Store,
    raw: Raw,
    options: &ImageOptions,
) -> Result<PullPlan, PullError> {
    let manifest = match raw.document {
        Document::Manifest(manifest) => manifest,
        Document::Index(index) => {
            let child = choose_image(&index, &options.machine)?;
            let child = Identifier::Digest(child.digest.clone());
            match fetch_document(store, &child).await?.document {
                Document::Manifest(manifest) => manifest,
                Document::Index(_) => {
                    let message = format!("its index leads to another index, {child}");
                    return Err(PullError::Malformed(message));
                }
            }
        }
    };
    let limit = options.limits.config_bytes_max;
    if manifest.config.size > limit {
        return Err(PullError::Limit { name: "config_bytes_max", limit, unit: "bytes" });
    }
    let config = store::fetch_bytes(store, &manifest.config, limit).await?;
    read_plan(&manifest, config, options)
}

/// What manifest and config come to.
fn read_plan(
    manifest: &Manifest,
    config: Bytes,
    options: &ImageOptions,
) -> Result<PullPlan, PullError> {
    let read: ImageConfig = serde_json::from_slice(&config)
        .map_err(|error| PullError::Malformed(format!("its config: {error}")))?;
    let platform =
        Platform { variant: read.variant.clone(), ..Platform::new(&read.os, &read.architecture) };
    check_platform(&platform, &options.machine)?;
    let (layers, diff_ids) = (&manifest.layers, &read.rootfs.diff_ids);
    if layers.len() != diff_ids.len() {
        return Err(PullError::Malformed(format!(
            "its manifest has {} layers, its config {} (diff_ids)",
            layers.len(),
            diff_ids.len()
        )));
    }
    check_sizes(layers, options)?;
    let is_skipped = |layer: &Descriptor| {
        options.skipped_annotations.iter().any(|name| layer.annotations.contains_key(name))
    };
    let mut kept = Vec::new();
    let mut skipped = String::new();
    for (position, (descriptor, diff_id)) in layers.iter().zip(diff_ids).enumerate() {
        if is_skipped(descriptor) {
            skipped.extend([position.to_string().as_str(), " "]);
        } else {
            kept.push(PlannedLayer { descriptor: descriptor.clone(), diff_id: diff_id.clone() });
        }
    }
    Ok(PullPlan {
        defaults: ImageDefaults::from_config(&read)?,
        name: rootfs_name(&manifest.config.digest, &skipped),
        config,
        layers: kept,
    })
}

fn check_sizes(layers: &[Descriptor], options: &ImageOptions) -> Result<(), PullError> {
    let limits = &options.limits;
    let fetched = layers.iter().fold(0_u64, |sum, layer| sum.saturating_add(layer.size));
    let largest = layers.iter().map(|layer| layer.size).max().unwrap_or(0);
    for (used, limit, name, unit) in [
        (layers.len() as u64, limits.layers_max, "layers_max", "layers"),
        (fetched, limits.fetched_bytes_max, "fetched_bytes_max", "bytes"),
        (largest, limits.layers.compressed_bytes_max, "compressed_bytes_max", "bytes"),
    ] {
        if used > limit {
            return Err(PullError::Limit { name, limit, unit });
        }
    }
    Ok(())
}

/// The config's digest names a file system, for it lists the digests of all layers. What was left out is not said
/// there but by the manifest: it is part of the name, or one image could take the place of another.
fn rootfs_name(config: &Digest, skipped: &str) -> String {
    let name = digest_name(config);
    if skipped.is_empty() {
        return name;
    }
    let short: String = Digest::of(skipped.as_bytes()).hex().chars().take(16).collect();
    format!("{name}-{short}")
}

/// A digest as the name of a file. A colon would mean something in the options of mounts.
pub(super) fn digest_name(digest: &Digest) -> String {
    format!("{}-{}", digest.algorithm().as_str(), digest.hex())
}
