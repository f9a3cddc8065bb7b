//! A store in a directory: the OCI image layout.
//!
//! ```text
//! dir/
//! ├── oci-layout            {"imageLayoutVersion":"1.0.0"}
//! ├── index.json            which manifests there are, and their names
//! ├── blobs/sha256/<hex>    manifests, configs and layers alike
//! ├── .apron-lock           held while index.json is replaced
//! └── .apron-XXXXXX         a write that has not finished (or never will)
//! ```
//!
//! Blobs get their name only after they were verified and flushed, and index.json is replaced
//! whole under a file lock, so two writers cannot lose each other's entries and a crash at any
//! point leaves a layout every tool can read.

use crate::blob::FileSource;
use crate::error::Cause;
use crate::files::{self, Durability, MODE_ORDINARY, blocking};
use crate::verify::{check_digest, verify};
use crate::{Blob, Error, Source, Store, names};
use async_trait::async_trait;
use oci::manifest::MANIFEST_SIZE_MAX;
use oci::{Descriptor, Digest, Identifier, Index, MediaType, Raw};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest index.json we read: room for 20,000 tags. Hostile JSON takes fifty times its size.
const INDEX_SIZE_MAX: u64 = 8 << 20;
const LOCK_FILE: &str = ".apron-lock";

/// An OCI image layout directory.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    durability: Durability,
}

impl Layout {
    /// Opens a layout that is there.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let layout = Self { root: root.into(), durability: Durability::Synced };
        let path = layout.root.clone();
        layout.index().await.map_err(|cause| Error::Open { path, cause })?;
        Ok(layout)
    }

    /// Opens a layout, making an empty one in the directory if there is none yet.
    pub async fn create(root: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::create_with(root.into(), Durability::Synced).await
    }

    /// A layout that need not survive a power cut.
    pub(crate) async fn scratch(root: PathBuf) -> Result<Self, Error> {
        Self::create_with(root, Durability::Scratch).await
    }

    async fn create_with(root: PathBuf, durability: Durability) -> Result<Self, Error> {
        let layout = Self { root, durability };
        let (this, path) = (layout.clone(), layout.root.clone());
        blocking(move || this.initialise()).await.map_err(|cause| Error::Open { path, cause })?;
        Ok(layout)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// All manifests `index.json` lists, named or not.
    pub async fn manifests(&self) -> Result<Vec<Descriptor>, Error> {
        let failed = |cause| Error::Open { path: self.root.clone(), cause };
        Ok(self.index().await.map_err(failed)?.manifests)
    }

    fn initialise(&self) -> Result<(), Cause> {
        fs_err::create_dir_all(&self.root)?;
        fs_err::create_dir_all(self.root.join("blobs").join("sha256"))?;
        let _lock = self.lock()?;
        let (index, marker) =
            (self.root.join(names::INDEX_FILE), self.root.join(names::LAYOUT_FILE));
        if !index.exists() {
            self.write_index(&names::empty())?;
        }
        // Last, because a directory with it must be a valid layout.
        if !marker.exists() {
            files::replace(&marker, names::LAYOUT_CONTENT, MODE_ORDINARY, self.durability)?;
        }
        self.read_index().map(drop)
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join(names::blob_path(digest))
    }

    async fn index(&self) -> Result<Index, Cause> {
        let this = self.clone();
        blocking(move || this.read_index()).await
    }

    fn read_index(&self) -> Result<Index, Cause> {
        let marker = self.root.join(names::LAYOUT_FILE);
        fs_err::metadata(&marker)?;
        let path = self.root.join(names::INDEX_FILE);
        let bytes = read_bounded(&path, INDEX_SIZE_MAX)?;
        serde_json::from_slice(&bytes)
            .map_err(|source| Cause::Json { what: names::INDEX_FILE.to_owned(), source })
    }

    fn write_index(&self, index: &Index) -> Result<(), Cause> {
        let json = |source| Cause::Json { what: names::INDEX_FILE.to_owned(), source };
        let bytes = serde_json::to_vec(index).map_err(json)?;
        let path = self.root.join(names::INDEX_FILE);
        Ok(files::replace(&path, &bytes, MODE_ORDINARY, self.durability)?)
    }

    /// Held until dropped; the operating system lets go of it if we crash.
    fn lock(&self) -> Result<fs_err::File, Cause> {
        let path = self.root.join(LOCK_FILE);
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?;
        file.file().lock()?;
        Ok(file)
    }

    fn enter(&self, id: &Identifier, raw: &Raw) -> Result<(), Cause> {
        let _lock = self.lock()?;
        let mut index = self.read_index()?;
        names::enter(&mut index, id, raw);
        self.write_index(&index)
    }

    async fn read_manifest(&self, id: &Identifier) -> Result<Option<Raw>, Cause> {
        let found = names::find(&self.index().await?, id).cloned();
        let (digest, media_type) = match (found, id) {
            (Some(found), _) => (found.digest, found.media_type),
            (None, Identifier::Digest(digest)) => (digest.clone(), MediaType::default()),
            (None, Identifier::Tag(_)) => return Ok(None),
        };
        let path = self.blob_path(&digest);
        blocking(move || {
            let bytes = match read_bounded(&path, MANIFEST_SIZE_MAX) {
                Err(Cause::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                other => other?,
            };
            check_digest(&bytes, &digest)?;
            Ok(Some(Raw::parse(bytes, &media_type)?))
        })
        .await
    }

    async fn write_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Cause> {
        let digest = match id {
            Identifier::Digest(digest) => digest.clone(),
            Identifier::Tag(_) => raw.digest.clone(),
        };
        check_digest(&raw.bytes, &digest)?;
        let mut descriptor = raw.descriptor();
        descriptor.digest = digest;
        self.write_blob(&descriptor, Blob::from_bytes(raw.bytes.clone())).await?;
        let (this, id, raw) = (self.clone(), id.clone(), raw.clone());
        blocking(move || this.enter(&id, &raw)).await
    }

    async fn write_blob(&self, descriptor: &Descriptor, blob: Blob) -> Result<(), Cause> {
        let blob = verify(blob.stream, descriptor);
        let target = self.blob_path(&descriptor.digest);
        files::write_blob(blob, self.root.clone(), target, self.durability).await
    }

    async fn read_referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Cause> {
        let mut found: Vec<Descriptor> = Vec::new();
        for entry in self.index().await?.manifests {
            let id = Identifier::Digest(entry.digest);
            let Some(raw) = self.read_manifest(&id).await? else {
                continue;
            };
            let refers = names::subject(&raw).is_some_and(|each| each.digest == *digest);
            let descriptor = names::describe(&raw);
            let new = !found.iter().any(|each| each.digest == descriptor.digest);
            if refers && new && names::is_of_type(&descriptor, artifact_type) {
                found.push(descriptor);
            }
        }
        Ok(found)
    }
}

fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Cause> {
    let mut bytes = Vec::new();
    files::open_regular(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Cause::TooLarge { what: path.display().to_string(), limit });
    }
    Ok(bytes)
}

#[async_trait]
impl Store for Layout {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    async fn manifest(&self, id: &Identifier) -> Result<Option<Raw>, Error> {
        self.read_manifest(id).await.map_err(|cause| Error::Manifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<Option<Blob>, Error> {
        if !self.has_blob(&descriptor.digest).await? {
            return Ok(None);
        }
        let blob = FileSource(self.blob_path(&descriptor.digest)).open().await?;
        Ok(Some(verify(blob.stream, descriptor)))
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        let path = self.blob_path(digest);
        let failed = |cause| Error::Blob { place: self.place(), digest: digest.clone(), cause };
        blocking(move || Ok(path.try_exists()?)).await.map_err(failed)
    }

    async fn put_blob(&self, descriptor: &Descriptor, source: &dyn Source) -> Result<(), Error> {
        let blob = source.open().await?;
        self.write_blob(descriptor, blob).await.map_err(|cause| Error::PutBlob {
            place: self.place(),
            digest: descriptor.digest.clone(),
            cause,
        })
    }

    async fn put_manifest(&self, id: &Identifier, raw: &Raw) -> Result<(), Error> {
        self.write_manifest(id, raw).await.map_err(|cause| Error::PutManifest {
            place: self.place(),
            id: id.to_string(),
            cause,
        })
    }

    async fn tags(&self) -> Result<Vec<String>, Error> {
        let failed = |cause| Error::Tags { place: self.place(), cause };
        Ok(names::tags(&self.index().await.map_err(failed)?))
    }

    async fn referrers(
        &self,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        self.read_referrers(digest, artifact_type).await.map_err(|cause| Error::Referrers {
            place: self.place(),
            digest: digest.clone(),
            cause,
        })
    }
}
