//! The package cache: what was fetched, on disk, by digest.
//!
//! ```text
//! DIR/<64 digits>.gz      package.yaml, one gzip member per document, so that any document can be
//!                         read by itself; for every other tool it is an ordinary gzip file
//! DIR/<64 digits>.objects.gz   the same documents as JSON, so that each is parsed as YAML but
//!                         once; if it is lost, the texts are parsed again
//! DIR/<64 digits>.json    where each document is and its digest; written last, so it vouches for
//!                         the files beside it
//! DIR/tag-<64 digits>.json   what a tag meant when it was fetched
//! DIR/signatures-<64 digits>.json   who signed the package; checked anew whenever it is used
//! DIR/NAME.xpkg, NAME.gz  put there by people; read, never changed
//! ```
//!
//! A file is written beside its place, flushed and renamed; whoever is killed leaves the old state.
//! Bytes are checked against their digest each time they are read. In memory there is only what
//! documents are called and what is to be said about them, not what they contain.

mod entry;
mod files;
mod notes;
#[cfg(test)]
mod tests;

pub use entry::Contents;

use files::{OBJECTS, RECORD, TEXTS};
use flate2::read::MultiGzDecoder;
use oci::Digest;
use oci::layer::LayerSource;
use plan::signature::Signed;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use xpkg::Limits;
use xpkg::open::{self, OpenError};

/// How many digits of its digest a revision's name has.
pub const NAME_DIGITS: usize = 12;
/// What nothing refers to is kept this long: somebody may be about to.
const GRACE: Duration = Duration::from_secs(600);

/// Documents that are parsed at a time.
const PARSED_MAX: usize = 2;

/// What may go wrong with the cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The directory or a file in it cannot be read or written.
    #[error("cannot use the package cache {}{}", directory.display(), plainly(source))]
    Disk {
        /// The cache.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The package is not there.
    #[error("package {digest} is not in the package cache")]
    Absent {
        /// Which.
        digest: Digest,
    },
    /// The package is there and is not what was written.
    #[error("package {digest} is damaged in the package cache")]
    Damaged {
        /// Which.
        digest: Digest,
    },
    /// What should be cached is not a package.
    #[error("it cannot be read as a package")]
    Package(#[source] OpenError),
    /// It is a package of the first format, and something is wrong with it.
    #[error("it cannot be read as a package")]
    Stack(#[source] stack::StreamError),
    /// A document of it is not what the API server could read.
    #[error("document {document} of package {digest} cannot be read: {why}")]
    Document {
        /// The package.
        digest: Digest,
        /// Which document, from 1.
        document: usize,
        /// Why.
        why: String,
    },
}

impl From<OpenError> for CacheError {
    fn from(error: OpenError) -> Self {
        Self::Package(error)
    }
}

/// What an error of the disk comes to.
fn plainly(error: &io::Error) -> &'static str {
    if is_full(error) { ": the disk is full" } else { "" }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl CacheError {
    /// What to do about it, if that is plain.
    pub fn advice(&self) -> Option<&'static str> {
        let Self::Disk { source, .. } = self else { return None };
        match source.kind() {
            _ if is_full(source) => Some("free some space or give the cache more"),
            io::ErrorKind::PermissionDenied => Some("make the cache writable for the manager"),
            _ => Some("mend the disk, or give the manager another --cache-dir"),
        }
    }
}

/// What a package is kept under.
#[derive(Clone, Debug)]
pub enum Name {
    /// The digest of its image.
    Image(Digest),
    /// The digest of what it contains, for files that are no image.
    Content,
}

/// Where a package comes from.
pub enum Origin {
    /// Layers of its image, which were found whole.
    Layers(Box<dyn LayerSource + Send>),
    /// Its contents in a gzip file, as `apron extract` writes it.
    Gzip(PathBuf),
}

/// The cache in one directory.
#[derive(Clone, Debug)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    limits: Limits,
    opened: Mutex<HashMap<Digest, Arc<Contents>>>,
    parsing: Semaphore,
    /// When this process put what there.
    fresh: Mutex<HashMap<Digest, Instant>>,
}

impl Cache {
    /// The cache in a directory, which is made if it is not there. What a killed process left
    /// half written is removed.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let directory = directory.into();
        let made = fs_err::create_dir_all(&directory).and_then(|()| files::sweep(&directory));
        made.map_err(|source| CacheError::Disk { directory: directory.clone(), source })?;
        let (opened, fresh) = (Mutex::default(), Mutex::default());
        let (limits, parsing) = (Limits::default(), Semaphore::new(PARSED_MAX));
        let inner = Inner { directory, limits, opened, parsing, fresh };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    fn failed(&self, source: io::Error) -> CacheError {
        CacheError::Disk { directory: self.inner.directory.clone(), source }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.inner.directory.join(name)
    }

    /// Whether a package is there.
    pub fn has(&self, digest: &Digest) -> bool {
        self.file(&format!("{}.{RECORD}", digest.hex())).is_file()
    }

    /// Which packages are there.
    pub fn packages(&self) -> Vec<Digest> {
        files::packages(&self.inner.directory).unwrap_or_default()
    }

    /// What a tag meant when it was fetched, if that is still there.
    pub fn tag(&self, reference: &str) -> Option<Digest> {
        let record = fs_err::read(self.file(&tag_file(reference))).ok()?;
        let record: Json = serde_json::from_slice(&record).ok()?;
        let digest: Digest = record["digest"].as_str()?.parse().ok()?;
        (record["reference"] == reference && self.has(&digest)).then_some(digest)
    }

    /// Remembers what a tag means now.
    pub fn remember(&self, reference: &str, digest: &Digest) -> Result<(), CacheError> {
        if self.tag(reference).as_ref() == Some(digest) {
            return Ok(());
        }
        let record = json!({"reference": reference, "digest": digest.to_string()});
        let path = self.file(&tag_file(reference));
        files::write(&path, record.to_string().as_bytes()).map_err(|error| self.failed(error))
    }

    /// The signatures of a package that were found before. They are as good as the keys that are
    /// held against them, wherever they come from.
    pub fn signatures(&self, digest: &Digest) -> Vec<Signed> {
        let record = fs_err::read(self.file(&signature_file(digest))).ok();
        let record = record.and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok());
        let all = record.as_ref().and_then(|record| record["signatures"].as_array());
        all.into_iter().flatten().filter_map(notes::signed).collect()
    }

    /// Remembers the signatures of a package.
    pub fn remember_signatures(&self, digest: &Digest, all: &[Signed]) -> Result<(), CacheError> {
        let all: Vec<Json> = all.iter().map(notes::written).collect();
        let record = json!({"digest": digest.to_string(), "signatures": all});
        let path = self.file(&signature_file(digest));
        files::write(&path, record.to_string().as_bytes()).map_err(|error| self.failed(error))
    }

    /// Puts a package there, read to its end; nothing is there if that fails.
    pub async fn put(&self, name: Name, origin: Origin) -> Result<Arc<Contents>, CacheError> {
        let this = self.clone();
        let put = abandonable(move |is_cancelled| this.put_now(name, origin, is_cancelled));
        let contents = put.await?;
        let mut fresh = self.inner.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.insert(contents.digest.clone(), Instant::now());
        Ok(contents)
    }

    fn put_now(
        &self,
        name: Name,
        origin: Origin,
        is_cancelled: IsCancelled<'_>,
    ) -> Result<Arc<Contents>, CacheError> {
        let written = self.write(origin, is_cancelled).map_err(|error| match error {
            entry::WriteError::Disk(source) => self.failed(source),
            entry::WriteError::Package(error) => CacheError::Package(error),
            entry::WriteError::Stack(error) => CacheError::Stack(error),
        })?;
        let digest = match name {
            Name::Image(digest) => digest,
            Name::Content => written.digest.clone(),
        };
        let contents = written.keep(&self.inner.directory, &digest);
        let contents = Arc::new(contents.map_err(|error| self.failed(error))?);
        let mut opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(digest, Arc::clone(&contents));
        Ok(contents)
    }

    fn write(
        &self,
        origin: Origin,
        is_cancelled: IsCancelled<'_>,
    ) -> Result<entry::Written, entry::WriteError> {
        let (directory, limits) = (&self.inner.directory, &self.inner.limits);
        match origin {
            Origin::Layers(layers) => {
                let reader = match open::package_yaml(&*layers, limits) {
                    // What is no package of today may be one of the first format.
                    Err(OpenError::NotAPackage) => match stack::read_stream(&*layers)? {
                        Some(stream) => {
                            return entry::write(
                                directory,
                                stream.as_bytes(),
                                limits,
                                is_cancelled,
                            );
                        }
                        None => return Err(OpenError::NotAPackage.into()),
                    },
                    other => other?,
                };
                entry::write(directory, reader, limits, is_cancelled)
            }
            Origin::Gzip(path) => {
                let file = io::BufReader::new(fs_err::File::open(path)?);
                let reader = MultiGzDecoder::new(file).take(limits.package_bytes_max);
                entry::write(directory, reader, limits, is_cancelled)
            }
        }
    }

    /// What is known about a package without its bytes, if it is there.
    pub async fn contents(&self, digest: &Digest) -> Result<Arc<Contents>, CacheError> {
        if let Some(known) = self.known(digest) {
            return Ok(known);
        }
        let (this, digest) = (self.clone(), digest.clone());
        abandonable(move |is_cancelled| this.open_now(&digest, is_cancelled)).await
    }

    fn known(&self, digest: &Digest) -> Option<Arc<Contents>> {
        let opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(digest).cloned()
    }

    fn open_now(
        &self,
        digest: &Digest,
        is_cancelled: IsCancelled<'_>,
    ) -> Result<Arc<Contents>, CacheError> {
        if let Some(known) = self.known(digest) {
            return Ok(known);
        }
        let (directory, limits) = (&self.inner.directory, &self.inner.limits);
        let contents = Contents::read(directory, digest, limits, is_cancelled);
        let contents = match contents {
            Err(CacheError::Damaged { digest }) => {
                self.remove(&digest).map_err(|error| self.failed(error))?;
                return Err(CacheError::Damaged { digest });
            }
            other => Arc::new(other?),
        };
        let mut opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(opened.entry(digest.clone()).or_insert(contents)))
    }

    /// What is made of a document of a package, by its place there: of JSON that something can be
    /// laid over ([`plan::revision::desired`]). A parsed document is many times its text, so only
    /// few are read at a time, and what is made of them should be small.
    pub async fn document<T: Send + 'static>(
        &self,
        digest: &Digest,
        document: usize,
        then: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Result<T, CacheError> {
        let contents = self.contents(digest).await?;
        let this = self.clone();
        // Nobody closes it; if somebody did, nothing but memory would be lost.
        let _turn = self.inner.parsing.acquire().await;
        let read = move || {
            let read = contents.document(&this.inner.directory, document, &this.inner.limits);
            if matches!(read, Err(CacheError::Damaged { .. })) {
                this.forget(&contents.digest);
                this.remove(&contents.digest).map_err(|error| this.failed(error))?;
            }
            read.map(|text| then(&text))
        };
        blocking(read).await
    }

    fn forget(&self, digest: &Digest) {
        let mut opened = self.inner.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.remove(digest);
    }

    /// The record goes first, so that nothing vouches for a file that is going.
    fn remove(&self, digest: &Digest) -> io::Result<()> {
        for end in [RECORD, TEXTS, OBJECTS] {
            match fs_err::remove_file(self.file(&format!("{}.{end}", digest.hex()))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes packages that nobody needs, and what is known of tags that meant them. What came
    /// only lately stays: whoever asked for it may not have said so yet.
    pub async fn keep(
        &self,
        is_needed: impl Fn(&Digest) -> bool + Send + 'static,
    ) -> Result<Vec<Digest>, CacheError> {
        let (this, now) = (self.clone(), Instant::now());
        blocking(move || {
            let is_fresh = |digest: &Digest| {
                let fresh = this.inner.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                fresh.get(digest).is_some_and(|then| now.duration_since(*then) < GRACE)
            };
            let all = files::packages(&this.inner.directory).map_err(|error| this.failed(error))?;
            let (kept, gone): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|one| is_needed(one) || is_fresh(one));
            for digest in &gone {
                this.forget(digest);
                this.remove(digest).map_err(|error| this.failed(error))?;
            }
            let mut fresh = this.inner.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.retain(|digest, _| kept.contains(digest));
            drop(fresh);
            files::drop_notes(&this.inner.directory, &kept).map_err(|error| this.failed(error))?;
            Ok(gone)
        })
        .await
    }

    /// A file that people put there, by name and ending; names that lead elsewhere are none.
    pub fn provided(&self, name: &str, ending: &str) -> Option<PathBuf> {
        let relative = PathBuf::from(format!("{name}.{ending}"));
        let stays =
            relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        Some(self.file(relative.to_str()?)).filter(|path| stays && path.is_file())
    }
}

fn tag_file(reference: &str) -> String {
    format!("{}{}.json", files::TAG, Digest::of(reference.as_bytes()).hex())
}

fn signature_file(digest: &Digest) -> String {
    format!("{}{}.json", files::SIGNATURES, digest.hex())
}

/// Whether nobody waits for the outcome of some work any more.
type IsCancelled<'a> = &'a (dyn Fn() -> bool + Sync);

/// Does work on another thread that ends soon after nobody waits for it any more: a process that
/// was told to stop waits for its threads.
async fn abandonable<T: Send + 'static>(
    work: impl FnOnce(IsCancelled<'_>) -> Result<T, CacheError> + Send + 'static,
) -> Result<T, CacheError> {
    struct Waiting(Arc<AtomicBool>);
    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let waiting = Waiting(Arc::default());
    let is_over = Arc::clone(&waiting.0);
    let done = blocking(move || work(&|| is_over.load(Ordering::Relaxed))).await;
    drop(waiting);
    done
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CacheError> + Send + 'static,
) -> Result<T, CacheError> {
    let failed = |error| {
        let source = io::Error::other(error);
        CacheError::Disk { directory: PathBuf::new(), source }
    };
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
