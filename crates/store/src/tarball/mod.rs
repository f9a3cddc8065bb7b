//! A store in one file: the docker-save archive upstream calls `.xpkg`, and oci-archive.
//!
//! ```text
//! docker-save                            oci-archive
//! ├── sha256:<hex>      image config     ├── oci-layout
//! ├── <hex>.tar.gz      each layer       ├── index.json
//! └── manifest.json     [{Config,        └── blobs/sha256/<hex>
//!                         RepoTags, Layers}]
//! ```
//!
//! A docker-save archive has no OCI manifest. The one upstream would push is made again from
//! config and layers, byte for byte: Docker schema 2, and a layer whose digest has a config label
//! `io.crossplane.xpkg:<digest>` gets the annotation `io.crossplane.xpkg`. Docker 25 and later
//! write both forms into one archive; manifest.json is then believed, as upstream does.
//!
//! [`Tarball`] reads, [`TarballSink`] and [`OciArchive`] collect and write, [`write()`] writes at
//! once what a build has at hand. Names in archives are only keys of a map here, never paths.

mod archive;
mod docker;
mod pack;
mod write;

pub use pack::OciArchive;
pub use write::{Layer, LayerContent, TarballSink, write, write_to};

use crate::error::{ArchiveFault, Cause, Unsupported};
use crate::files::blocking;
use crate::verify::{check_digest, verify};
use crate::{Blob, Error, Source, Store, names};
use archive::Archive;
use async_trait::async_trait;
use docker::Image;
use oci::manifest::MANIFEST_SIZE_MAX;
use oci::{Descriptor, Digest, Identifier, Index, MediaType, Raw};
use std::path::PathBuf;
use std::sync::Arc;

/// The label (with `:<digest>` behind it) and the annotation that mark package layers.
pub(crate) const XPKG_ANNOTATION: &str = "io.crossplane.xpkg";

/// Hostile JSON takes fifty times its size in memory.
const INDEX_SIZE_MAX: u64 = 8 << 20;

/// An archive, opened for reading.
#[derive(Debug, Clone)]
pub struct Tarball {
    path: PathBuf,
    archive: Arc<Archive>,
    form: Arc<Form>,
}

#[derive(Debug)]
enum Form {
    Docker(Vec<Image>),
    Oci(Box<Index>),
}

impl Tarball {
    /// Opens an archive and hashes its layers; afterwards everything it has is known.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let target = path.clone();
        let opened = blocking(move || {
            let archive = Archive::open(&target)?;
            let form = Form::of(&archive)?;
            Ok((archive, form))
        });
        match opened.await {
            Ok((archive, form)) => {
                Ok(Self { path, archive: Arc::new(archive), form: Arc::new(form) })
            }
            Err(cause) => Err(Error::Open { path, cause }),
        }
    }

    /// The names (references or digests) of the images in the archive.
    pub fn images(&self) -> Vec<String> {
        match &*self.form {
            Form::Docker(images) => images.iter().map(Image::name).collect(),
            Form::Oci(index) => index
                .manifests
                .iter()
                .map(|each| names::tag(each).map_or(each.digest.to_string(), str::to_owned))
                .collect(),
        }
    }

    /// The digest of the only image; an error that lists them if there are several.
    pub fn only(&self) -> Result<Digest, Error> {
        self.form
            .only(&self.images())
            .map_err(|fault| Error::Open { path: self.path.clone(), cause: fault.into() })
    }

    async fn read_manifest(&self, id: &Identifier) -> Result<Option<Raw>, Cause> {
        let descriptor = match &*self.form {
            Form::Docker(images) => return docker::choose(images, id).map(Option::<&Raw>::cloned),
            Form::Oci(index) => match (names::find(index, id), id) {
                (Some(found), _) => found.clone(),
                (None, Identifier::Digest(digest)) => {
                    Descriptor::new(MediaType::default(), digest.clone(), 0)
                }
                (None, Identifier::Tag(_)) => match &index.manifests[..] {
                    [only] => only.clone(),
                    [] => return Ok(None),
                    _ => return Err(ArchiveFault::Several(self.images()).into()),
                },
            },
        };
        let archive = Arc::clone(&self.archive);
        blocking(move || {
            let name = names::blob_path(&descriptor.digest);
            let Some(bytes) = archive.read(&name, MANIFEST_SIZE_MAX)? else {
                return Ok(None);
            };
            check_digest(&bytes, &descriptor.digest)?;
            Ok(Some(Raw::parse(bytes, &descriptor.media_type)?))
        })
        .await
    }

    fn locate(&self, digest: &Digest) -> Option<archive::Span> {
        match &*self.form {
            Form::Docker(images) => images.iter().find_map(|image| image.locate(digest)),
            Form::Oci(_) => self.archive.find(&names::blob_path(digest)),
        }
    }
}

impl Form {
    fn of(archive: &Archive) -> Result<Self, Cause> {
        if let Some(bytes) = archive.read("manifest.json", INDEX_SIZE_MAX)? {
            return docker::images(archive, &bytes).map(Self::Docker);
        }
        let Some(bytes) = archive.read(names::INDEX_FILE, INDEX_SIZE_MAX)? else {
            return Err(ArchiveFault::Unknown.into());
        };
        serde_json::from_slice(&bytes)
            .map(|index| Self::Oci(Box::new(index)))
            .map_err(|source| Cause::Json { what: names::INDEX_FILE.to_owned(), source })
    }

    fn only(&self, names: &[String]) -> Result<Digest, ArchiveFault> {
        let digest = match self {
            Self::Docker(images) if images.len() == 1 => Some(&images[0].raw.digest),
            Self::Oci(index) if index.manifests.len() == 1 => Some(&index.manifests[0].digest),
            Self::Docker(images) if images.is_empty() => return Err(ArchiveFault::Empty),
            Self::Oci(index) if index.manifests.is_empty() => return Err(ArchiveFault::Empty),
            _ => None,
        };
        digest.cloned().ok_or_else(|| ArchiveFault::Several(names.to_vec()))
    }
}

#[async_trait]
impl Store for Tarball {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        self.read_manifest(id).await.map_err(|cause| Error::Manifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        let span = self.locate(&descriptor.digest);
        Ok(span.map(|span| verify(Archive::stream(&self.archive, span), descriptor)))
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.locate(digest).is_some())
    }

    async fn put_blob(&self, descriptor: &Descriptor, _source: &dyn Source) -> Result<(), Error> {
        Err(Error::PutBlob {
            place: self.place(),
            digest: descriptor.digest.clone(),
            cause: Unsupported::ReadOnly.into(),
        })
    }

    async fn put_manifest(&self, id: &Identifier, _raw: &Raw) -> Result<(), Error> {
        Err(Error::PutManifest {
            place: self.place(),
            id: id.to_string(),
            cause: Unsupported::ReadOnly.into(),
        })
    }

    async fn tags(&self) -> Result<Vec<String>, Error> {
        Ok(match &*self.form {
            Form::Docker(images) => docker::tags(images),
            Form::Oci(index) => names::tags(index),
        })
    }

    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        let Form::Oci(index) = &*self.form else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in &index.manifests {
            let id = Identifier::Digest(entry.digest.clone());
            let Some(raw) = self.manifest(&id).await? else {
                continue;
            };
            let refers = names::subject(&raw).is_some_and(|each| each.digest == *digest);
            let descriptor = names::describe(&raw);
            if refers && names::is_of_type(&descriptor, artifact_type) {
                found.push(descriptor);
            }
        }
        Ok(found)
    }
}
