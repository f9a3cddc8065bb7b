//! Images on this machine: pulled once, found again, and removed.
//!
//! ```text
//!   DIRECTORY/rootfs/NAME/fs            a file system, complete and never changed
//!             rootfs/NAME/config.json   the config it belongs to
//!             images/DIGEST             the NAME that a manifest or an index leads to
//!             names/DIGEST              the manifest or index that a reference led to
//!             tmp/                      what is being made or removed; emptied at each start
//!             format                    how all of it is written
//!             lock                      held by the process that uses the directory
//! ```

use super::places::make_mount_places;
use super::plan::{PullPlan, digest_name, fetch_document, plan_pull};
use super::unpack::lay_down_image;
use super::{ImageDefaults, ImageOptions, PullError, PullProgress};
use crate::removal::remove_tree;
use oci::layer::LayerSource;
use oci::{Digest, Identifier};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use store::{Store, VerifiedBlob};

/// How images are kept. Those that are kept otherwise are pulled again.
const FORMAT: &str = "1\n";
/// Parts of the directory that hold images, and what leads to them.
const PARTS: [&str; 3] = ["rootfs", "images", "names"];
/// The unit in which files say what they take.
const BLOCK_BYTES: u64 = 512;

/// Images on this machine. Clones share everything.
#[derive(Clone, Debug)]
pub struct ImageCache {
    shared: Arc<CacheState>,
}

/// An image that is on this machine, and stays as long as this value or a clone of it.
#[derive(Clone, Debug)]
pub struct PulledImage {
    /// Its file system.
    pub rootfs: PathBuf,
    /// What is run in it.
    pub defaults: ImageDefaults,
    /// The digest of its manifest, or of the index it was chosen from.
    pub digest: Digest,
    _lease: Arc<ImageTurn>,
}

#[derive(Debug)]
struct CacheState {
    directory: PathBuf,
    options: ImageOptions,
    /// By name of the file system: those in use or being pulled.
    leases: Mutex<BTreeMap<String, Weak<ImageTurn>>>,
    /// By name of the file system: what it takes on the disk, once that was counted.
    sizes: Mutex<BTreeMap<String, u64>>,
    lock: File,
}

impl Drop for CacheState {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is being started has all descriptors for a moment.
        let _ = self.lock.unlock();
    }
}

/// What pulls of one file system wait for, so that it is made once.
#[derive(Debug, Default)]
struct ImageTurn {
    pulling: tokio::sync::Mutex<()>,
}

impl ImageCache {
    /// Opens a directory of images, which is made if need be. What an earlier process left half made is removed.
    pub fn open(directory: &Path, options: ImageOptions) -> Result<Self, PullError> {
        let failed = |cause| PullError::directory(directory, cause);
        for part in PARTS.into_iter().chain(["tmp"]) {
            fs_err::create_dir_all(directory.join(part)).map_err(failed)?;
        }
        let lock = fs_err::File::create(directory.join("lock")).map_err(failed)?.into_parts().0;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PullError::InUse(directory.to_owned())),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        empty_directory(&directory.join("tmp")).map_err(failed)?;
        drop_other_format(directory).map_err(failed)?;
        let directory = directory.to_owned();
        let (leases, sizes) = (Mutex::default(), Mutex::default());
        let shared = CacheState { directory, options, leases, sizes, lock };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Fetches an image if it is not there. A digest that is there is not asked for again. Pulls of the same image
    /// at the same time are one.
    pub async fn pull(
        &self,
        store: &dyn Store,
        identifier: &Identifier,
        on_progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<PulledImage, PullError> {
        if let Identifier::Digest(digest) = identifier
            && let Some(image) = self.cached(digest)?
        {
            return Ok(image);
        }
        let raw = fetch_document(store, identifier).await?;
        let digest = raw.digest.clone();
        if let Some(image) = self.cached(&digest)? {
            return Ok(image);
        }
        let plan = plan_pull(store, raw, &self.shared.options).await?;
        let lease = self.lease(&plan.name);
        let turn = lease.pulling.lock().await;
        let rootfs = self.rootfs(&plan.name);
        if !rootfs.exists() {
            let layers = self.fetch_layers(store, &plan, on_progress).await?;
            self.make_rootfs(&plan, layers).await?;
        }
        self.write_record(&self.image_record(&digest), plan.name.as_bytes())?;
        drop(turn);
        Ok(PulledImage { rootfs, defaults: plan.defaults, digest, _lease: lease })
    }

    /// The image that a manifest's or an index's digest stands for, if it is there.
    pub fn cached(&self, digest: &Digest) -> Result<Option<PulledImage>, PullError> {
        let Some(name) = read_record(&self.image_record(digest))? else {
            return Ok(None);
        };
        let lease = self.lease(&name);
        let rootfs = self.rootfs(&name);
        if !rootfs.exists() {
            return Ok(None);
        }
        let path = self.shared.directory.join("rootfs").join(&name).join("config.json");
        let bytes = fs_err::read(&path).map_err(|cause| PullError::directory(&path, cause))?;
        let config = serde_json::from_slice(&bytes)
            .map_err(|error| PullError::Malformed(format!("{}: {error}", path.display())))?;
        let defaults = ImageDefaults::from_config(&config)?;
        Ok(Some(PulledImage { rootfs, defaults, digest: digest.clone(), _lease: lease }))
    }

    /// Notes what a reference such as `registry.example.org/a/b:v1` led to.
    pub fn remember(&self, reference: &str, image: &PulledImage) -> Result<(), PullError> {
        self.write_record(&self.name_record(reference), image.digest.to_string().as_bytes())
    }

    /// The image that a reference led to when it was noted last, if it is still there.
    pub fn remembered(&self, reference: &str) -> Result<Option<PulledImage>, PullError> {
        let record = read_record(&self.name_record(reference))?;
        match record.and_then(|text| text.parse().ok()) {
            Some(digest) => self.cached(&digest),
            None => Ok(None),
        }
    }

    /// Removes images until all of them take no more bytes than this, those first that were pulled first; gives how many it
    /// were. These here stay, and so do those that a [`PulledImage`] stands for.
    pub async fn collect(
        &self,
        keep: BTreeSet<Digest>,
        bytes_max: u64,
    ) -> Result<usize, PullError> {
        let cache = self.clone();
        let task = tokio::task::spawn_blocking(move || cache.remove_unused(&keep, bytes_max));
        task.await.unwrap_or_else(|error| {
            Err(PullError::directory(&self.shared.directory, io::Error::other(error)))
        })
    }

    fn remove_unused(&self, keep: &BTreeSet<Digest>, bytes_max: u64) -> Result<usize, PullError> {
        let directory = &self.shared.directory;
        let failed = |cause| PullError::directory(directory, cause);
        let mut kept = BTreeSet::new();
        for digest in keep {
            kept.extend(read_record(&self.image_record(digest))?);
        }
        let discarded = tempfile::tempdir_in(directory.join("tmp")).map_err(failed)?;
        let mut removed = 0_usize;
        let sized = self.size_images().map_err(failed)?;
        let mut total = sized.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
        for (name, size) in sized {
            if total <= bytes_max {
                break;
            }
            let mut leases = self.leases();
            let is_used = leases.get(&name).is_some_and(|lease| lease.strong_count() > 0);
            if is_used || kept.contains(&name) {
                continue;
            }
            leases.remove(&name);
            // From here on it is not there; its files take longer.
            let rootfs = directory.join("rootfs").join(&name);
            fs_err::rename(rootfs, discarded.path().join(&name)).map_err(failed)?;
            drop(leases);
            lock(&self.shared.sizes).remove(&name);
            total = total.saturating_sub(size);
            removed = removed.saturating_add(1);
        }
        discarded.close().map_err(failed)?;
        self.remove_stale_records().map_err(failed)?;
        Ok(removed)
    }

    /// The file systems that are there, those that were made first in front, and what they take on the disk.
    fn size_images(&self) -> io::Result<Vec<(String, u64)>> {
        let directory = self.shared.directory.join("rootfs");
        let mut found = Vec::new();
        for name in list_directory(&directory)? {
            let path = directory.join(&name);
            let made = fs_err::symlink_metadata(&path)?.modified()?;
            let known = lock(&self.shared.sizes).get(&name).copied();
            let size = match known {
                Some(size) => size,
                // They never change, so that each is counted once.
                None => count_bytes(&path)?,
            };
            lock(&self.shared.sizes).insert(name.clone(), size);
            found.push((made, name, size));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, name, size)| (name, size)).collect())
    }

    /// Removes records of what is not there any more.
    fn remove_stale_records(&self) -> io::Result<()> {
        let directory = &self.shared.directory;
        for (records, targets) in [("images", "rootfs"), ("names", "images")] {
            for name in list_directory(&directory.join(records))? {
                let record = directory.join(records).join(name);
                let target = fs_err::read_to_string(&record)?.replace(':', "-");
                if !directory.join(targets).join(target).exists() {
                    fs_err::remove_file(record)?;
                }
            }
        }
        Ok(())
    }

    async fn fetch_layers(
        &self,
        store: &dyn Store,
        plan: &PullPlan,
        on_progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Vec<VerifiedBlob>, PullError> {
        let sizes = plan.layers.iter().map(|layer| layer.descriptor.size);
        let total = sizes.fold(0_u64, u64::saturating_add);
        let limit = self.shared.options.limits.layers.compressed_bytes_max;
        let spool = self.shared.directory.join("tmp");
        let mut fetched = 0_u64;
        let mut blobs = Vec::new();
        on_progress(PullProgress { fetched, total });
        for layer in &plan.layers {
            blobs.push(store::fetch_to_file(store, &layer.descriptor, limit, &spool).await?);
            fetched = fetched.saturating_add(layer.descriptor.size);
            on_progress(PullProgress { fetched, total });
        }
        Ok(blobs)
    }

    /// Makes the file system beside the others and names it once it is whole and on the disk.
    async fn make_rootfs(
        &self,
        plan: &PullPlan,
        layers: Vec<VerifiedBlob>,
    ) -> Result<(), PullError> {
        let (plan, shared) = (plan.clone(), Arc::clone(&self.shared));
        let task = tokio::task::spawn_blocking(move || {
            let target = shared.directory.join("rootfs").join(&plan.name);
            let failed = |cause| PullError::directory(&target, cause);
            let made = tempfile::tempdir_in(shared.directory.join("tmp")).map_err(failed)?;
            lay_down_image(made.path(), &plan, &FetchedLayers(layers), &shared.options)?;
            let image = made.path().join("image");
            make_mount_places(&image.join("fs"), shared.options.owners).map_err(failed)?;
            fs_err::write(image.join("config.json"), &plan.config).map_err(failed)?;
            publish_directory(&image, &target).map_err(failed)
        });
        task.await.unwrap_or_else(|error| {
            Err(PullError::directory(&self.shared.directory, io::Error::other(error)))
        })
    }

    fn rootfs(&self, name: &str) -> PathBuf {
        self.shared.directory.join("rootfs").join(name).join("fs")
    }

    fn image_record(&self, digest: &Digest) -> PathBuf {
        self.shared.directory.join("images").join(digest_name(digest))
    }

    fn name_record(&self, reference: &str) -> PathBuf {
        self.shared.directory.join("names").join(digest_name(&Digest::of(reference.as_bytes())))
    }

    fn write_record(&self, path: &Path, bytes: &[u8]) -> Result<(), PullError> {
        let failed = |cause| PullError::directory(path, cause);
        let temporary = tempfile::NamedTempFile::new_in(self.shared.directory.join("tmp"));
        let mut file = temporary.map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn lease(&self, name: &str) -> Arc<ImageTurn> {
        let mut leases = self.leases();
        leases.retain(|_, lease| lease.strong_count() > 0);
        if let Some(lease) = leases.get(name).and_then(Weak::upgrade) {
            return lease;
        }
        let lease = Arc::default();
        leases.insert(name.to_owned(), Arc::downgrade(&lease));
        lease
    }

    fn leases(&self) -> MutexGuard<'_, BTreeMap<String, Weak<ImageTurn>>> {
        // Every change is one insertion or removal, so a panic elsewhere leaves nothing half done.
        lock(&self.shared.leases)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a directory takes on the disk. Links are not followed, and a file of two names counts twice.
pub(super) fn count_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0_u64;
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs_err::symlink_metadata(&path)?;
        bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK_BYTES));
        if metadata.is_dir() {
            for entry in fs_err::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
    }
    Ok(bytes)
}

/// Layers in files without names.
struct FetchedLayers(Vec<VerifiedBlob>);

impl LayerSource for FetchedLayers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        let blob = self.0.get(layer).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(blob.open()))
    }
}

/// Brings a directory to the disk and gives it its name. One that has the name already is as good.
fn publish_directory(made: &Path, target: &Path) -> io::Result<()> {
    rustix::fs::syncfs(fs_err::File::open(made)?.file())?;
    match fs_err::rename(made, target) {
        Ok(()) => {}
        Err(_) if target.join("fs").is_dir() => return Ok(()),
        Err(error) => return Err(error),
    }
    match target.parent() {
        Some(parent) => fs_err::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes images that are kept in another format than this version's. Directories from before there was a note of
/// it have the first.
fn drop_other_format(directory: &Path) -> io::Result<()> {
    let note = directory.join("format");
    match fs_err::read_to_string(&note) {
        Ok(found) if found == FORMAT => return Ok(()),
        Ok(_) => {
            // What leads to images goes first, so that a death on the way leaves none half there.
            for part in PARTS.into_iter().rev() {
                empty_directory(&directory.join(part))?;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs_err::write(note, FORMAT)
}

fn read_record(path: &Path) -> Result<Option<String>, PullError> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(PullError::directory(path, cause)),
    }
}

fn list_directory(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

fn empty_directory(directory: &Path) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        } else {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}
