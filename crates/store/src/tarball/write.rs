//! Writing docker-save archives, byte for byte as upstream's tools lay them down.
//!
//! Headers are plain ustar with mode 0644 and zeros everywhere else, so that the same image gives
//! the same file on every machine. The archive appears under its name only when it is complete.

use super::XPKG_ANNOTATION;
use super::docker::{self, Line};
use crate::error::{Cause, Unsupported};
use crate::files::{self, Durability, MODE_ORDINARY, blocking};
use crate::{Blob, Error, Layout, Source, Store, names};
use async_trait::async_trait;
use bytes::Bytes;
use oci::{Descriptor, Digest, Identifier, ImageConfig, Manifest, MediaType, Raw};
use std::collections::HashSet;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const BLOCK: usize = 512;
const NAME_LENGTH_MAX: usize = 100;
const PREFIX_LENGTH_MAX: usize = 155;
const SIZE_MAX: u64 = 8 << 30;
/// What an archive ends with.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];
pub(super) const WRITE_BUFFER: usize = 256 << 10;

/// A layer for an archive.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Its type, digest and size; checked while writing.
    pub descriptor: Descriptor,
    /// Its bytes.
    pub content: LayerContent,
}

/// Where a layer's bytes are.
#[derive(Debug, Clone)]
pub enum LayerContent {
    /// At hand.
    Bytes(Bytes),
    /// In a file.
    File(PathBuf),
}

/// Writes a docker-save archive of one image, atomically, and gives the manifest a push of it
/// would have.
pub fn write(path: &Path, config: &[u8], layers: &[Layer]) -> Result<Raw, Error> {
    write_atomically(path, config, layers)
        .map_err(|cause| Error::Write { path: path.to_owned(), cause })
}

/// Writes a docker-save archive of one image into a writer.
pub fn write_to(writer: impl Write, config: &[u8], layers: &[Layer]) -> Result<Raw, Cause> {
    let mut writer = BufWriter::with_capacity(WRITE_BUFFER, writer);
    let descriptors = layers.iter().map(describe).collect::<Result<Vec<_>, Cause>>()?;
    let manifest = manifest(config, &descriptors)?;
    let config_name = Digest::of(config).to_string();
    entry(&mut writer, &config_name, config.len() as u64, &mut &*config, None)?;
    let mut names = Vec::new();
    let mut written = HashSet::new();
    for (layer, descriptor) in layers.iter().zip(&descriptors) {
        let name = layer_name(descriptor);
        if written.insert(name.clone()) {
            write_layer(&mut writer, &name, layer)?;
        }
        names.push(name);
    }
    let line = Line { config: config_name, repo_tags: None, layers: Some(names) };
    let json = serde_json::to_vec(&[line])
        .map_err(|source| Cause::Json { what: "manifest.json".to_owned(), source })?;
    entry(&mut writer, "manifest.json", json.len() as u64, &mut json.as_slice(), None)?;
    writer.write_all(&END)?;
    writer.flush()?;
    Ok(manifest)
}

fn write_atomically(path: &Path, config: &[u8], layers: &[Layer]) -> Result<Raw, Cause> {
    let mut file = files::temporary(files::parent(path), MODE_ORDINARY)?;
    let raw = write_to(file.as_file_mut(), config, layers)?;
    files::persist(file, path, Durability::Synced)?;
    Ok(raw)
}

/// The manifest a push of the archive has.
fn manifest(config: &[u8], layers: &[Descriptor]) -> Result<Raw, Cause> {
    let parsed: ImageConfig = serde_json::from_slice(config)
        .map_err(|source| Cause::Json { what: "the image config".to_owned(), source })?;
    let mut descriptors = layers.to_vec();
    for descriptor in &mut descriptors {
        docker::annotate(descriptor, &parsed);
    }
    let config = Descriptor::of(MediaType::DOCKER_CONFIG, config);
    Ok(Raw::from_manifest(&Manifest::docker(config, descriptors))?)
}

/// A layer as it will be read back: its type is told by its first bytes, nothing else is kept.
fn describe(layer: &Layer) -> Result<Descriptor, Cause> {
    let mut magic = Vec::new();
    match &layer.content {
        LayerContent::Bytes(bytes) => magic.extend(bytes.iter().take(4)),
        LayerContent::File(path) => {
            fs_err::File::open(path)?.take(4).read_to_end(&mut magic)?;
        }
    }
    let Descriptor { digest, size, .. } = layer.descriptor.clone();
    Ok(Descriptor::new(docker::layer_type(&magic), digest, size))
}

fn layer_name(descriptor: &Descriptor) -> String {
    let extension = if descriptor.media_type == MediaType::DOCKER_LAYER {
        ".tar"
    } else if descriptor.media_type == MediaType::OCI_LAYER_ZSTD {
        ".tar.zst"
    } else {
        ".tar.gz"
    };
    format!("{}{extension}", descriptor.digest.hex())
}

fn write_layer(writer: &mut impl Write, name: &str, layer: &Layer) -> Result<(), Cause> {
    let (size, digest) = (layer.descriptor.size, Some(&layer.descriptor.digest));
    match &layer.content {
        LayerContent::Bytes(bytes) => entry(writer, name, size, &mut bytes.as_ref(), digest),
        LayerContent::File(path) => {
            entry(writer, name, size, &mut fs_err::File::open(path)?, digest)
        }
    }
}

/// One entry: header, bytes, zeros up to the block's end.
pub(super) fn entry(
    writer: &mut impl Write,
    name: &str,
    size: u64,
    reader: &mut impl Read,
    digest: Option<&Digest>,
) -> Result<(), Cause> {
    writer.write_all(&header(name, size)?)?;
    let mut tee = Tee { writer, hasher: digest.map(Digest::hasher) };
    // One byte more than promised is enough to know that it is too long.
    let actual = io::copy(&mut reader.take(size + 1), &mut tee)?;
    if actual != size {
        return Err(Cause::Size { expected: size, actual });
    }
    if let (Some(hasher), Some(expected)) = (tee.hasher.take(), digest) {
        let actual = hasher.finish();
        if actual != *expected {
            return Err(Cause::Digest { expected: expected.clone(), actual });
        }
    }
    let rest = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    writer.write_all(&[0; BLOCK][..(BLOCK - rest) % BLOCK])?;
    Ok(())
}

struct Tee<'writer, W> {
    writer: &'writer mut W,
    hasher: Option<oci::Hasher>,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.writer.write(bytes)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A ustar header as Go's archive/tar writes it. The `tar` crate lays out the checksum
/// differently, and the file's bytes should be upstream's.
fn header(name: &str, size: u64) -> Result<[u8; BLOCK], Cause> {
    // Long names have their directory in a field of its own.
    let (prefix, base) = match name.rsplit_once('/') {
        Some((prefix, base)) if name.len() > NAME_LENGTH_MAX => (prefix, base),
        _ => ("", name),
    };
    if prefix.len() > PREFIX_LENGTH_MAX || base.len() > NAME_LENGTH_MAX {
        return Err(Unsupported::Name(name.to_owned()).into());
    }
    if size >= SIZE_MAX {
        return Err(Unsupported::Huge(name.to_owned()).into());
    }
    let mut block = [0; BLOCK];
    let mut put = |offset: usize, text: &[u8]| {
        block[offset..offset + text.len()].copy_from_slice(text);
    };
    put(0, base.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Collects one image and writes it as a docker-save archive at the end.
///
/// The manifest that was put is not in the archive; a reader makes it again from config and
/// layers. What it cannot make again is lost, as with every tool that writes this form: manifest
/// annotations, OCI media types. The one thing package tools rely on is the
/// `io.crossplane.xpkg` annotation of a layer; a manifest whose config lacks the label that
/// would bring it back is refused.
#[derive(Debug)]
pub struct TarballSink {
    target: PathBuf,
    // Held for its removal when the sink is dropped.
    _directory: tempfile::TempDir,
    collected: Layout,
    image: Mutex<Option<Raw>>,
}

impl TarballSink {
    /// Starts collecting, in a temporary directory beside the target.
    pub async fn create(target: impl Into<PathBuf>) -> Result<Self, Error> {
        let target = target.into();
        let (directory, collected) = files::collect_beside(&target).await?;
        Ok(Self { target, _directory: directory, collected, image: Mutex::new(None) })
    }

    /// Writes the archive and gives the manifest it will be read back with.
    pub async fn finish(self) -> Result<Raw, Error> {
        let failed = |cause| Error::Write { path: self.target.clone(), cause };
        let Some(raw) = self.image() else {
            return Err(failed(crate::error::ArchiveFault::Empty.into()));
        };
        let (target, root) = (self.target.clone(), self.collected.path().to_owned());
        blocking(move || write_collected(&target, &root, &raw)).await.map_err(failed)
    }

    fn image(&self) -> Option<Raw> {
        self.image.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn judge(&self, raw: &Raw) -> Result<(), Cause> {
        let Some(manifest) = raw.manifest() else {
            return Err(Unsupported::Index.into());
        };
        if let Some(other) = self.image().filter(|other| other.digest != raw.digest) {
            return Err(Unsupported::Second(other.digest).into());
        }
        let path = self.collected.path().join(names::blob_path(&manifest.config.digest));
        let bytes = blocking(move || Ok(fs_err::read(path)?)).await?;
        let config: ImageConfig = serde_json::from_slice(&bytes)
            .map_err(|source| Cause::Json { what: "the image config".to_owned(), source })?;
        let lost = manifest.layers.iter().find(|layer| {
            let mut again = Descriptor::new(MediaType::default(), layer.digest.clone(), 0);
            docker::annotate(&mut again, &config);
            let annotation = layer.annotations.get(XPKG_ANNOTATION);
            annotation.is_some() && again.annotations.get(XPKG_ANNOTATION) != annotation
        });
        lost.map_or(Ok(()), |layer| Err(Unsupported::Annotation(layer.digest.clone()).into()))
    }
}

fn write_collected(target: &Path, root: &Path, raw: &Raw) -> Result<Raw, Cause> {
    let Some(manifest) = raw.manifest() else {
        return Err(Unsupported::Index.into());
    };
    let file = |digest: &Digest| root.join(names::blob_path(digest));
    let config = fs_err::read(file(&manifest.config.digest))?;
    let layers: Vec<Layer> = manifest
        .layers
        .iter()
        .map(|layer| Layer {
            descriptor: layer.clone(),
            content: LayerContent::File(file(&layer.digest)),
        })
        .collect();
    write_atomically(target, &config, &layers)
}

#[async_trait]
impl Store for TarballSink {
    fn place(&self) -> String {
        self.target.display().to_string()
    }

    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        self.collected.manifest(id).await
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        self.collected.blob(descriptor).await
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        self.collected.has_blob(digest).await
    }

    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error> {
        self.collected.put_blob(descriptor, source).await
    }

    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error> {
        self.judge(raw).await.map_err(|cause| Error::PutManifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })?;
        self.collected.put_manifest(id, raw).await?;
        *self.image.lock().unwrap_or_else(PoisonError::into_inner) = Some(raw.clone());
        Ok(())
    }

    async fn tags(&self) -> Result<Vec<String>, Error> {
        self.collected.tags().await
    }

    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        self.collected.referrers(digest, artifact_type).await
    }
}
