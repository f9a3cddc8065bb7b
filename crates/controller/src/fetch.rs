//! Registries and files: from the name of an image to a package in the cache.
//!
//! A tag is asked for its digest, and the package behind it is brought into the cache before the
//! answer is believed; from then on everything speaks of digests. Only the layers that hold the
//! package are fetched, by digest, and nothing in them is looked at before it was found whole.

use crate::cache::{Cache, CacheError, Contents, Name, Origin};
use crate::cluster::chain;
use futures::future::BoxFuture;
use oci::layer::LayerSource;
use oci::{Digest, Document, Identifier, Reference, Repository};
use plan::package::pull::{RECHECK, Unavailable};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use store::auth::Keychain;
use store::remote::{Client, Settings, Transport};
use store::{Store, Tarball, VerifiedBlob};
use tokio::time::Instant;
use xpkg::Limits;
use xpkg::locate::{self, LocateError};

/// How deep indexes may be nested.
const NESTING_MAX: usize = 4;

/// Why a package could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The registry or the way to it.
    #[error(transparent)]
    Store(Box<store::Error>),
    /// There is no such image.
    #[error("{0} is not there")]
    Absent(String),
    /// It is not a package.
    #[error("{0} is not a package")]
    Locate(String, #[source] LocateError),
    /// Indexes within indexes.
    #[error("{0} is an index that is nested too deeply")]
    Nested(String),
    /// It cannot be read, or not be kept.
    #[error("{0} cannot be kept")]
    Cache(String, #[source] CacheError),
    /// A file of the cache's directory cannot be read.
    #[error("cannot read {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// Packages are not built here.
    #[error("{0} is in Git, and packages are not taken from there")]
    GitClosed(String),
    /// It could not be built.
    #[error("{0} cannot be built: {1}")]
    Git(String, String),
}

/// Makes packages of what is in Git. Without one, nothing there is a package.
pub trait GitBuilder: Send + Sync {
    /// Builds what a reference names now into a file, an archive as `store` reads them; or says why
    /// it does not.
    fn build(&self, reference: Reference, to: PathBuf) -> BoxFuture<'static, Result<(), String>>;
}

impl From<store::Error> for FetchError {
    fn from(error: store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}

impl FetchError {
    /// All of it in one line, with what to do if that is plain.
    pub fn text(&self) -> String {
        let said = chain(self);
        match self {
            Self::Store(error) => match hint(&error.advice()) {
                Some(hint) => format!("{said} ({hint})"),
                None => said,
            },
            _ => said,
        }
    }
}

impl From<FetchError> for Unavailable {
    fn from(error: FetchError) -> Self {
        let advice = match &error {
            FetchError::Cache(_, error) => error.advice().map(str::to_owned),
            FetchError::GitClosed(_) => Some(
                "let the manager take packages from this repository with --allow-git-source, or \
                 push the package to a registry"
                    .to_owned(),
            ),
            FetchError::Git(..) => Some("mend the package in its repository".to_owned()),
            _ => None,
        };
        Self { why: error.text(), advice }
    }
}

fn hint(advice: &store::Advice) -> Option<String> {
    Some(match advice {
        store::Advice::Unauthorized { registry } => format!(
            "name a secret with credentials for {registry} in packagePullSecrets or in an ImageConfig"
        ),
        store::Advice::Forbidden => "its credentials do not allow this".to_owned(),
        store::Advice::Unreachable { host } => {
            format!("check that {host} is spelled right and can be reached from the manager")
        }
        store::Advice::Tls => {
            "give the manager the registry's certificate authority with --ca-bundle-path".to_owned()
        }
        _ => return None,
    })
}

/// What a person called `NAME.xpkg` had in it when it was last looked at.
type Looked = HashMap<PathBuf, (Option<SystemTime>, u64, Digest)>;

/// A tag by its reference, and the Secrets with the credentials that it was asked for with.
type TagQuestion = (String, Vec<String>);

/// Fetches packages into a cache.
#[derive(Clone)]
pub struct Fetcher {
    transport: Transport,
    settings: Settings,
    /// Credentials of the manager itself, after those that packages name.
    own: Keychain,
    cache: Cache,
    git: Option<Arc<dyn GitBuilder>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// What tags meant, and when that was asked.
    asked: Mutex<HashMap<TagQuestion, (Instant, Digest)>>,
    looked: Mutex<Looked>,
    /// A package is fetched by one at a time.
    busy: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
}

impl Fetcher {
    /// Fetches over a transport, into a cache.
    pub fn new(transport: Transport, settings: Settings, own: Keychain, cache: Cache) -> Self {
        Self { transport, settings, own, cache, git: None, shared: Arc::default() }
    }

    /// The same, which also builds packages of what is in Git.
    #[must_use]
    pub fn with_git(mut self, git: Arc<dyn GitBuilder>) -> Self {
        self.git = Some(git);
        self
    }

    /// Registries, with these credentials before the manager's own.
    pub(crate) fn client(&self, keychain: Keychain) -> Client {
        let keychain = keychain.or(self.own.clone());
        Client::new(self.transport.clone(), keychain, self.settings.clone())
    }

    /// A repository, for somebody with these credentials.
    pub(crate) fn remote(&self, repository: &Repository, keychain: Keychain) -> store::Remote {
        self.client(keychain).repository(repository.clone())
    }

    /// What a tag was found to mean less than a minute ago, with credentials of the same Secrets: what
    /// is private to one package is not told to another.
    pub fn remembered(&self, reference: &Reference, secrets: &[String]) -> Option<Digest> {
        let asked = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, digest) = asked.get(&(reference.name(), secrets.to_vec()))?;
        (then.elapsed() < RECHECK && self.cache.has(digest)).then(|| digest.clone())
    }

    /// What a reference means now, for a package with these Secrets and the credentials in them. The
    /// package is in the cache then.
    pub async fn digest(
        &self,
        reference: &Reference,
        keychain: Keychain,
        secrets: &[String],
    ) -> Result<Digest, FetchError> {
        let digest = if reference.repository().git_source().is_some() {
            self.build_from_git(reference).await?
        } else {
            let remote = self.remote(reference.repository(), keychain);
            let found = remote.head(reference.identifier()).await?;
            let digest = found.ok_or_else(|| FetchError::Absent(reference.to_string()))?.digest;
            self.fetch(&remote, &reference.to_string(), &digest).await?;
            digest
        };
        let mut asked = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert((reference.name(), secrets.to_vec()), (Instant::now(), digest.clone()));
        Ok(digest)
    }

    /// What a reference means now, without fetching the package.
    pub async fn head(
        &self,
        reference: &Reference,
        keychain: Keychain,
    ) -> Result<Digest, FetchError> {
        if reference.repository().git_source().is_some() {
            return self.build_from_git(reference).await;
        }
        let remote = self.remote(reference.repository(), keychain);
        let found = remote.head(reference.identifier()).await?;
        Ok(found.ok_or_else(|| FetchError::Absent(reference.to_string()))?.digest)
    }

    /// What is in a package, from the cache or else from the registry.
    pub async fn contents(
        &self,
        repository: &Repository,
        digest: &Digest,
        keychain: Keychain,
    ) -> Result<Arc<Contents>, FetchError> {
        if repository.git_source().is_some() {
            return self.cached_build(repository, digest).await;
        }
        let remote = self.remote(repository, keychain);
        self.fetch(&remote, &format!("{repository}@{digest}"), digest).await
    }

    /// All tags of a repository.
    pub async fn tags(
        &self,
        repository: &Repository,
        keychain: Keychain,
    ) -> Result<Vec<String>, FetchError> {
        // Branches and tags of Git are no versions of a package: a reference means the one it names.
        if repository.git_source().is_some() {
            return Ok(Vec::new());
        }
        Ok(self.remote(repository, keychain).tags().await?)
    }

    /// Builds what a Git source names now, into the cache.
    async fn build_from_git(&self, reference: &Reference) -> Result<Digest, FetchError> {
        let name = reference.name();
        if let Identifier::Digest(digest) = reference.identifier() {
            return self.cached_build(reference.repository(), digest).await.map(|_| digest.clone());
        }
        let git = self.git.as_ref().ok_or_else(|| FetchError::GitClosed(name.clone()))?;
        let key = Digest::of(name.as_bytes());
        let mutex = self.mutex(&key);
        let _alone = mutex.lock().await;
        let file = self.cache.directory().join(format!(".git-{}", key.hex()));
        let built = git.build(reference.clone(), file.clone()).await;
        built.map_err(|why| FetchError::Git(name.clone(), why))?;
        let archive = Tarball::open(&file).await?;
        let digest = archive.only()?;
        let kept = self.fetch(&archive, &name, &digest).await;
        let _ = fs_err::remove_file(&file);
        kept.map(|_| digest)
    }

    /// What was built of a Git source before. Bytes that are lost are built again from what the
    /// package names, which says whether they are still the same.
    async fn cached_build(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Arc<Contents>, FetchError> {
        let name = format!("{repository}@{digest}");
        self.cache.contents(digest).await.map_err(|error| FetchError::Cache(name, error))
    }

    async fn fetch(
        &self,
        store: &dyn Store,
        name: &str,
        digest: &Digest,
    ) -> Result<Arc<Contents>, FetchError> {
        let mutex = self.mutex(digest);
        let _alone = mutex.lock().await;
        match self.cache.contents(digest).await {
            Ok(contents) => return Ok(contents),
            Err(CacheError::Absent { .. } | CacheError::Damaged { .. }) => {}
            Err(error) => return Err(FetchError::Cache(name.to_owned(), error)),
        }
        let layers = self.layers(store, name, digest).await?;
        let put =
            self.cache.put(Name::Image(digest.clone()), Origin::Layers(Box::new(Layers(layers))));
        put.await.map_err(|error| FetchError::Cache(name.to_owned(), error))
    }

    fn mutex(&self, digest: &Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.retain(|_, mutex| Arc::strong_count(mutex) > 1);
        Arc::clone(busy.entry(digest.clone()).or_default())
    }

    /// The layers of an image that hold its package, whole.
    async fn layers(
        &self,
        store: &dyn Store,
        name: &str,
        digest: &Digest,
    ) -> Result<Vec<VerifiedBlob>, FetchError> {
        let not_a_package = |error| FetchError::Locate(name.to_owned(), error);
        let mut id = Identifier::Digest(digest.clone());
        for _ in 0..=NESTING_MAX {
            let raw = store.manifest(&id).await?;
            let raw = raw.ok_or_else(|| FetchError::Absent(name.to_owned()))?;
            let manifest = match &raw.document {
                Document::Manifest(manifest) => manifest,
                Document::Index(index) => {
                    let child = locate::choose(index, None).map_err(not_a_package)?;
                    id = Identifier::Digest(child.digest.clone());
                    continue;
                }
            };
            let wanted = match locate::locate(manifest).map_err(not_a_package)? {
                locate::Contents::Base(layer) => vec![layer],
                locate::Contents::Flattened(layers) => layers,
            };
            let limit = Limits::default().layer.compressed_bytes_max;
            let mut layers = Vec::new();
            for layer in &wanted {
                let directory = self.cache.directory();
                layers.push(store::fetch_to_file(store, layer, limit, directory).await?);
            }
            return Ok(layers);
        }
        Err(FetchError::Nested(name.to_owned()))
    }

    /// What somebody put into the cache's directory under a name, if anybody did: `NAME.xpkg`, an
    /// image; or `NAME.gz`, a package's contents. It is in the cache then.
    pub async fn provided(&self, name: &str) -> Result<Option<Digest>, FetchError> {
        if let Some(path) = self.cache.provided(name, "xpkg") {
            return self.provided_image(&path).await.map(Some);
        }
        match self.cache.provided(name, "gz") {
            Some(path) => self.provided_contents(&path, Name::Content).await.map(Some),
            None => Ok(None),
        }
    }

    /// What somebody put there under the name that upstream's tools give to contents of an image.
    pub async fn provided_for(&self, reference: &Reference, digest: &Digest) -> Option<Digest> {
        let source = xpkg::label::source(reference);
        let name = xpkg::label::friendly_id(source, &digest.to_string());
        let path = self.cache.provided(&name, "gz")?;
        self.provided_contents(&path, Name::Image(digest.clone())).await.ok()
    }

    async fn provided_image(&self, path: &Path) -> Result<Digest, FetchError> {
        let (modified, size) = stamp(path)?;
        if let Some(digest) = self.looked(path, modified, size) {
            return Ok(digest);
        }
        let archive = Tarball::open(path).await?;
        let digest = archive.only()?;
        self.fetch(&archive, &path.display().to_string(), &digest).await?;
        self.look(path, modified, size, &digest);
        Ok(digest)
    }

    async fn provided_contents(&self, path: &Path, name: Name) -> Result<Digest, FetchError> {
        let (modified, size) = stamp(path)?;
        if let Some(digest) = self.looked(path, modified, size) {
            return Ok(digest);
        }
        let kept = self.cache.put(name, Origin::Gzip(path.to_owned())).await;
        let kept = kept.map_err(|error| FetchError::Cache(path.display().to_string(), error))?;
        self.look(path, modified, size, &kept.digest);
        Ok(kept.digest.clone())
    }

    /// What a file had in it, if it has not been changed since and that is still in the cache.
    fn looked(&self, path: &Path, modified: Option<SystemTime>, size: u64) -> Option<Digest> {
        let looked = self.shared.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, length, digest) = looked.get(path)?;
        let same = (*then, *length) == (modified, size);
        (same && self.cache.has(digest)).then(|| digest.clone())
    }

    fn look(&self, path: &Path, modified: Option<SystemTime>, size: u64, digest: &Digest) {
        let mut looked = self.shared.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.insert(path.to_owned(), (modified, size, digest.clone()));
    }
}

fn stamp(path: &Path) -> Result<(Option<SystemTime>, u64), FetchError> {
    let metadata = fs_err::metadata(path);
    let metadata = metadata.map_err(|error| FetchError::File(path.to_owned(), error))?;
    Ok((metadata.modified().ok(), metadata.len()))
}

/// Verified layers, as the pure rooms want them.
struct Layers(Vec<VerifiedBlob>);

impl LayerSource for Layers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].open()))
    }
}
