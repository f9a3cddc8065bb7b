//! Images for tests, hostile ones above all.

use super::super::*;
use bytes::Bytes;
use oci::{Descriptor, Digest, Identifier, ImageConfig, Index, Manifest, MediaType, Platform, Raw};
use std::io::Write;
use std::path::Path;
use store::{Memory, Store};
use tar::{EntryType, Header};

/// One entry of a layer, as a line says it: `file=content`, `directory/`, `link->target`, `link=>hard link`, and with
/// permission bits before it: `4755 file=content`.
pub(crate) fn layer(lines: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for line in lines {
        append_line(&mut builder, line);
    }
    builder.into_inner().unwrap()
}

fn append_line(builder: &mut tar::Builder<Vec<u8>>, line: &str) {
    let (mode, line) = match line.split_once(' ') {
        Some((mode, rest)) => (u32::from_str_radix(mode, 8).unwrap(), rest),
        None => (0o755, line),
    };
    let (path, kind, target, content) = if let Some((path, target)) = line.split_once("->") {
        (path, EntryType::Symlink, target, "")
    } else if let Some((path, target)) = line.split_once("=>") {
        (path, EntryType::Link, target, "")
    } else if let Some((path, content)) = line.split_once('=') {
        (path, EntryType::Regular, "", content)
    } else if let Some(path) = line.strip_suffix('!') {
        (path, EntryType::Char, "", "")
    } else {
        (line, EntryType::Directory, "", "")
    };
    let mut header = Header::new_gnu();
    // Written past the library's own checks: hostile names are the point.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_uid(7);
    header.set_gid(8);
    header.set_mtime(1_234_567_890);
    header.set_cksum();
    builder.append(&header, content.as_bytes()).unwrap();
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An image, and what is said of it, which need not be true.
pub(crate) struct CraftedImage {
    pub(crate) layers: Vec<Vec<u8>>,
    pub(crate) diff_ids: Vec<Digest>,
    pub(crate) annotations: Vec<Option<&'static str>>,
    pub(crate) platform: Platform,
    pub(crate) run: serde_json::Value,
}

impl CraftedImage {
    /// An honest image of these layers.
    pub(crate) fn of(layers: &[&[&str]]) -> Self {
        Self::of_archives(&layers.iter().map(|lines| layer(lines)).collect::<Vec<_>>())
    }

    pub(crate) fn of_archives(archives: &[Vec<u8>]) -> Self {
        Self {
            diff_ids: archives.iter().map(|bytes| Digest::of(bytes)).collect(),
            annotations: vec![None; archives.len()],
            layers: archives.iter().map(|bytes| gzip(bytes)).collect(),
            platform: Platform::linux_amd64(),
            run: serde_json::json!({ "Entrypoint": ["/bin/program"] }),
        }
    }

    /// Puts the image into a store; gives its manifest.
    pub(crate) async fn put(&self, store: &dyn Store) -> Raw {
        let mut config = ImageConfig {
            architecture: self.platform.architecture.clone(),
            os: self.platform.os.clone(),
            ..ImageConfig::default()
        };
        config.rootfs.diff_ids.clone_from(&self.diff_ids);
        config.config.extra = self.run.as_object().unwrap().clone();
        let config = serde_json::to_vec(&config).unwrap();
        let config = put_blob(store, MediaType::OCI_CONFIG, config).await;
        let mut layers = Vec::new();
        for (bytes, annotation) in self.layers.iter().zip(&self.annotations) {
            let media_type = MediaType::OCI_LAYER_GZIP;
            let mut descriptor = put_blob(store, media_type, bytes.clone()).await;
            if let Some(name) = annotation {
                descriptor.annotations.insert((*name).to_owned(), "base".to_owned());
            }
            layers.push(descriptor);
        }
        let mut manifest = Manifest::docker(config, layers);
        manifest.media_type = MediaType::OCI_MANIFEST;
        let raw = Raw::from_manifest(&manifest).unwrap();
        store.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
        raw
    }
}

async fn put_blob(store: &dyn Store, media_type: MediaType, bytes: Vec<u8>) -> Descriptor {
    let descriptor = Descriptor::of(media_type, &bytes);
    store.put_blob(&descriptor, &Bytes::from(bytes)).await.unwrap();
    descriptor
}

/// Puts an index of images for several platforms into a store.
pub(crate) async fn put_index(store: &dyn Store, images: &[&CraftedImage]) -> Raw {
    let mut children = Vec::new();
    for image in images {
        let mut child = image.put(store).await.descriptor();
        child.platform = Some(image.platform.clone());
        children.push(child);
    }
    let raw = Raw::from_index(&Index::oci(children)).unwrap();
    store.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await.unwrap();
    raw
}

pub(crate) fn options() -> ImageOptions {
    ImageOptions {
        machine: Platform::linux_amd64(),
        owners: FileOwners::Ignored,
        limits: ImageLimits::default(),
        skipped_annotations: vec!["io.crossplane.xpkg".to_owned()],
    }
}

/// Pulls an image into a directory of images, and tells why not.
pub(crate) async fn pull_into(
    directory: &Path,
    image: &CraftedImage,
    options: ImageOptions,
) -> Result<PulledImage, String> {
    let store = Memory::new();
    let raw = image.put(&store).await;
    let cache = ImageCache::open(directory, options).unwrap();
    let identifier = Identifier::Digest(raw.digest);
    cache.pull(&store, &identifier, &|_| {}).await.map_err(|error| error.to_string())
}
