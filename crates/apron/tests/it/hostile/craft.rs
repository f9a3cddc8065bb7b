//! Archives, images and layouts as no honest tool would make them.

use crate::support::Scratch;
use oci::layer::{Effort, gzip};
use oci::{Descriptor, Digest, Manifest, MediaType, Raw};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

const BLOCK: usize = 512;

/// A package nobody objects to.
pub(super) const GOOD: &str = "apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: small
spec:
  crossplane:
    version: \">=v1.14.0\"
";

/// A tar archive in the making, with any header one likes.
#[derive(Default, Clone)]
pub(super) struct Tar(Vec<u8>);

impl Tar {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(b'0', name, "", content)
    }

    pub(super) fn entry(self, kind: u8, name: &str, link: &str, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        self.header(kind, name, link, content.len() as u64).content(content)
    }

    /// A header that promises so many bytes; whether they follow is another matter.
    pub(super) fn header(mut self, kind: u8, name: &str, link: &str, size: u64) -> Self {
        let mut block = [0; BLOCK];
        let mut put = |offset: usize, text: &[u8]| {
            block[offset..offset + text.len()].copy_from_slice(text);
        };
        put(0, name.as_bytes());
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        if size < 8 << 30 {
            put(124, format!("{size:011o}\0").as_bytes());
        } else {
            put(124, &[0x80, 0, 0, 0]);
            put(128, &size.to_be_bytes());
        }
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(block);
        self
    }

    fn content(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// A pax header with these records, for the entry that follows.
    pub(super) fn pax(self, records: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let mut length = rest + 1;
            while length != rest + length.to_string().len() {
                length = rest + length.to_string().len();
            }
            writeln!(text, "{length} {key}={value}").unwrap();
        }
        self.entry(b'x', "pax", "", text)
    }

    /// So far, without an end.
    pub(super) fn open(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 2 * BLOCK]);
        self.0
    }
}

/// One gzip stream.
pub(super) fn gz(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    gzip(&mut bytes.as_ref(), &mut out, Effort::Fast).unwrap();
    out
}

/// A gzip stream of the same bytes again and again: compressed once, written many times.
pub(super) fn gz_repeated(bytes: &[u8], times: usize) -> Vec<u8> {
    gz(bytes).repeat(times)
}

/// A gzip stream of so many MiB of one byte.
pub(super) fn gz_mebibytes(byte: u8, mebibytes: usize) -> Vec<u8> {
    const PIECE: usize = 32;
    gz_repeated(&vec![byte; PIECE << 20], mebibytes / PIECE)
}

/// A layer as a package has it.
pub(super) fn package_layer(yaml: impl AsRef<[u8]>) -> Vec<u8> {
    gz(Tar::new().file("package.yaml", yaml).end())
}

/// An image in the making.
#[derive(Clone, Default)]
pub(super) struct Image {
    /// Bytes, and the role that is written to them.
    pub(super) layers: Vec<(Vec<u8>, Option<&'static str>)>,
}

impl Image {
    /// An image with one layer that says it is the package.
    pub(super) fn base(layer: Vec<u8>) -> Self {
        Self { layers: vec![(layer, Some("base"))] }
    }

    /// An image whose layers say nothing, so that all of them have to be flattened.
    pub(super) fn plain(layers: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { layers: layers.into_iter().map(|layer| (layer, None)).collect() }
    }

    pub(super) fn good() -> Self {
        Self::base(package_layer(GOOD))
    }

    pub(super) fn config(&self) -> Vec<u8> {
        let mut labels = serde_json::Map::new();
        let mut diff_ids = Vec::new();
        for (layer, role) in &self.layers {
            let digest = Digest::of(layer);
            diff_ids.push(digest.to_string());
            if let Some(role) = role {
                labels.insert(format!("io.crossplane.xpkg:{digest}"), json!(role));
            }
        }
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": { "Labels": labels },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        serde_json::to_vec(&config).unwrap()
    }

    pub(super) fn manifest(&self) -> Manifest {
        let layers = self.layers.iter().map(|(layer, role)| {
            let mut descriptor = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, layer);
            let role = role.map(|role| ("io.crossplane.xpkg".to_owned(), role.to_owned()));
            descriptor.annotations.extend(role);
            descriptor
        });
        let config = Descriptor::of(MediaType::DOCKER_CONFIG, &self.config());
        Manifest::docker(config, layers.collect())
    }

    pub(super) fn raw(&self) -> Vec<u8> {
        Raw::from_manifest(&self.manifest()).unwrap().bytes
    }

    /// All blobs, config included.
    pub(super) fn blobs(&self) -> Vec<Vec<u8>> {
        let layers = self.layers.iter().map(|(layer, _)| layer.clone());
        layers.chain([self.config()]).collect()
    }

    /// The image as a docker-save archive, not ended.
    pub(super) fn tar(&self) -> Tar {
        let config = self.config();
        let mut tar = Tar::new().file("config.json", config);
        let mut names = Vec::new();
        for (index, (layer, _)) in self.layers.iter().enumerate() {
            let name = format!("{index}.tar.gz");
            tar = tar.file(&name, layer);
            names.push(name);
        }
        let line = json!([{ "Config": "config.json", "RepoTags": null, "Layers": names }]);
        tar.file("manifest.json", line.to_string())
    }

    /// Writes the image as a docker-save archive.
    pub(super) fn xpkg(&self, scratch: &Scratch, name: &str) -> PathBuf {
        scratch.write(name, self.tar().end())
    }

    /// Writes the image as an OCI layout directory.
    pub(super) fn layout(&self, scratch: &Scratch, name: &str) -> PathBuf {
        layout(scratch, name, &self.raw(), MediaType::DOCKER_MANIFEST, &self.blobs())
    }
}

/// Writes a layout with one manifest and blobs under their true names.
pub(super) fn layout(
    scratch: &Scratch,
    name: &str,
    manifest: &[u8],
    media_type: MediaType,
    blobs: &[Vec<u8>],
) -> PathBuf {
    let descriptor = Descriptor::of(media_type, manifest);
    let index = json!({ "schemaVersion": 2, "manifests": [descriptor] });
    scratch.write(&format!("{name}/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    scratch.write(&format!("{name}/index.json"), index.to_string());
    for blob in blobs.iter().map(Vec::as_slice).chain([manifest]) {
        scratch.write(&format!("{name}/blobs/sha256/{}", Digest::of(blob).hex()), blob);
    }
    scratch.join(name)
}
