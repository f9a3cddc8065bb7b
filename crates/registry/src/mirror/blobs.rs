//! Blobs of a mirrored repository: written here while they arrive, and read along by everybody
//! who asks meanwhile.

use super::{Halt, Mirror, Trouble, landed};
use crate::error::Error;
use crate::limits::READ_SIZE;
use crate::name::Name;
use crate::storage::{Holder, Source, Upload, blocking};
use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt, stream};
use oci::Digest;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use store::{Blob, Cause};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Pieces that are written at once, if that many have arrived.
const PIECES_MAX: usize = 32;

/// Where a blob is.
#[derive(Clone)]
pub(crate) enum Found {
    /// In our storage, now.
    Here,
    /// On its way.
    Coming(Arc<Coming>),
}

/// A blob on its way.
pub(crate) struct Coming {
    size: u64,
    progress: watch::Sender<Progress>,
}

/// How far it is.
#[derive(Clone)]
struct Progress {
    /// The bytes, as soon as there are some.
    source: Option<Arc<Source>>,
    /// How many bytes of it may be read. The last ones are among them only when the digest was
    /// found right and the blob is recorded: who has all of it can rely on it being here.
    count: u64,
    broken: bool,
}

impl Mirror {
    /// Finds a blob, fetching it if need be, once for all who ask.
    pub(crate) async fn blob(
        self: &Arc<Self>,
        name: &Name,
        digest: &Digest,
    ) -> Result<Found, Error> {
        if self.has_blob(name, digest).await?.is_some() {
            return Ok(Found::Here);
        }
        let key = key(name, digest);
        if let Some(coming) = self.coming(&key) {
            return Ok(Found::Coming(coming));
        }
        let unknown = || Error::BlobUnknown(digest.clone());
        self.check(name, &digest.to_string()).map_err(|halt| self.error(halt, unknown()))?;
        let (mirror, name, wanted) = (self.clone(), name.clone(), digest.clone());
        let errand = self.openings.join(key, || async move { mirror.open(name, wanted).await });
        landed(errand.await).map_err(|halt| self.error(halt, unknown()))
    }

    /// The size of a blob, without fetching it.
    pub(crate) async fn blob_size(&self, name: &Name, digest: &Digest) -> Result<u64, Error> {
        if let Some(size) = self.has_blob(name, digest).await? {
            return Ok(size);
        }
        if let Some(coming) = self.coming(&key(name, digest)) {
            return Ok(coming.size);
        }
        let unknown = || Error::BlobUnknown(digest.clone());
        let size = self.size_there(name, digest).await;
        size.map_err(|halt| self.error(halt, unknown()))
    }

    async fn size_there(&self, name: &Name, digest: &Digest) -> Result<u64, Halt> {
        let reference = digest.to_string();
        self.check(name, &reference)?;
        let found = self.remote(name)?.blob_size(digest).await;
        let found = found.map_err(|error| self.halt(name, &reference, &error))?;
        found.ok_or_else(|| self.note(name, &reference, Trouble::Missing))
    }

    async fn has_blob(&self, name: &Name, digest: &Digest) -> Result<Option<u64>, Error> {
        match self.registry.blob_size(name, digest).await {
            Ok(size) => Ok(Some(size)),
            Err(Error::NameUnknown(_) | Error::BlobUnknown(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn coming(&self, key: &str) -> Option<Arc<Coming>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Begins to fetch a blob, unless that was done a moment ago.
    async fn open(self: Arc<Self>, name: Name, digest: Digest) -> Result<Found, Halt> {
        let key = key(&name, &digest);
        if let Some(coming) = self.coming(&key) {
            return Ok(Found::Coming(coming));
        }
        if self.has_blob(&name, &digest).await?.is_some() || self.mount(&name, &digest).await? {
            return Ok(Found::Here);
        }
        let busy = || Halt::Trouble(Trouble::Busy(None));
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| busy())?;
        let reference = digest.to_string();
        let size_max = self.registry.settings().blob_size_max;
        let found = self.remote(&name)?.blob_by_digest(&digest, size_max).await;
        let found = found.map_err(|error| self.halt(&name, &reference, &error))?;
        let blob = found.ok_or_else(|| self.note(&name, &reference, Trouble::Missing))?;
        self.registry.check_space(blob.size)?;
        self.registry.check_quota(&name, blob.size).await?;
        let upload = self.registry.begin_upload(&name, &Holder::Mirror, digest.algorithm()).await?;
        let progress = Progress { source: None, count: 0, broken: false };
        let coming = Arc::new(Coming { size: blob.size, progress: watch::Sender::new(progress) });
        self.counters.blobs.fetch_add(1, Ordering::Relaxed);
        let arriving = Arriving { key: key.clone(), coming: coming.clone(), permit };
        self.coming.lock().unwrap_or_else(PoisonError::into_inner).insert(key, coming.clone());
        tokio::spawn(self.clone().take(arriving, name, digest, upload, blob));
        Ok(Found::Coming(coming))
    }

    /// Takes the bytes from another repository of this mirror, if the other registry says that
    /// this one has them, too. Of everything else here it is not asked: it could say so to have
    /// us give away what somebody pushed.
    async fn mount(&self, name: &Name, digest: &Digest) -> Result<bool, Halt> {
        if !self.registry.holders(digest).await?.iter().any(|from| self.owns(from)) {
            return Ok(false);
        }
        self.size_there(name, digest).await?;
        Ok(self.registry.mount(name, digest, None, |from| self.owns(from)).await?)
    }

    /// Takes a blob in, to its end.
    async fn take(
        self: Arc<Self>,
        arriving: Arriving,
        name: Name,
        digest: Digest,
        upload: Upload,
        blob: Blob,
    ) {
        let id = upload.id().to_owned();
        let coming = &arriving.coming;
        let taken = async {
            let upload = self.write(coming, upload, blob).await?;
            let source = upload.source();
            self.registry.finish(upload, &digest).await.map(|()| source)
        };
        // Those who wait for it must hear of its end, whatever the end is.
        let outcome = AssertUnwindSafe(taken).catch_unwind().await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(Error::Io(io::Error::other("fetching panicked"))));
        match outcome {
            Ok(source) => coming.publish(coming.size, source),
            Err(error) => {
                self.counters.failures.fetch_add(1, Ordering::Relaxed);
                if matches!(error, Error::DigestMismatch { .. }) {
                    self.memory.note(&name, &digest.to_string(), &Trouble::Wrong);
                }
                if let Ok(upload) =
                    self.registry.upload(&name, Holder::Mirror.principal(), &id).await
                {
                    let _ = self.registry.cancel(upload).await;
                }
                coming.progress.send_modify(|it| it.broken = true);
            }
        }
        // Only now: whoever asks from here on finds it in the storage, or begins anew.
        let mut all = self.coming.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&arriving.key);
        drop(arriving.permit);
    }

    async fn write(
        &self,
        coming: &Coming,
        mut upload: Upload,
        blob: Blob,
    ) -> Result<Upload, Error> {
        let mut pieces = blob.stream.ready_chunks(PIECES_MAX);
        while let Some(batch) = pieces.next().await {
            let batch: io::Result<Vec<Bytes>> = batch.into_iter().collect();
            let batch = batch.map_err(|error| match Cause::from(error) {
                Cause::Digest { expected, actual } => Error::DigestMismatch { expected, actual },
                other => Error::Io(io::Error::other(other)),
            })?;
            let before = upload.offset();
            let body = stream::iter(batch.into_iter().map(Ok)).boxed();
            upload = self.registry.append(upload, body, None).await?;
            let (count, source) = (upload.offset(), upload.source());
            self.counters.bytes.fetch_add(count.saturating_sub(before), Ordering::Relaxed);
            if count < coming.size {
                coming.publish(count, source);
            }
        }
        Ok(upload)
    }
}

/// A fetch under way: its place on the list, and what it takes up.
struct Arriving {
    key: String,
    coming: Arc<Coming>,
    permit: OwnedSemaphorePermit,
}

impl Coming {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Lets everybody read this far.
    fn publish(&self, count: u64, source: Option<Arc<Source>>) {
        self.progress.send_modify(|it| {
            it.count = count;
            it.source = source;
        });
    }

    /// Some of the bytes, as they arrive. A fetch that breaks ends this with an error.
    pub(crate) fn read(
        &self,
        first: u64,
        length: u64,
    ) -> impl Stream<Item = Result<Bytes, Error>> + use<> {
        let progress = self.progress.subscribe();
        stream::try_unfold((progress, first, length), |(mut progress, offset, left)| async move {
            if left == 0 {
                return Ok(None);
            }
            let ready = progress.wait_for(|it| it.count > offset || it.broken).await;
            let Progress { source, count, .. } = ready.map_err(|_| Error::BodyBroken)?.clone();
            let available = count.saturating_sub(offset).min(left).min(READ_SIZE as u64);
            let source = source.filter(|_| available > 0).ok_or(Error::BodyBroken)?;
            let piece = blocking(move || {
                let mut buffer = vec![0; usize::try_from(available).unwrap_or(READ_SIZE)];
                source.read_exact_at(&mut buffer, offset)?;
                Ok(Bytes::from(buffer))
            });
            let piece = piece.await?;
            let (offset, left) = (offset.saturating_add(available), left.saturating_sub(available));
            Ok(Some((piece, (progress, offset, left))))
        })
    }
}

fn key(name: &Name, digest: &Digest) -> String {
    format!("{name} {digest}")
}
