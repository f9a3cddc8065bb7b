//! Uploads: bytes on their way in, hashed as they pass, resumable after a crash.
//!
//! ```text
//!   begin ─► append ─► keep ─► append ─► keep ─► finish ─► blob
//!              │        └ flushed, offset and hash state in the database: only now acknowledged
//!              └ written at the offset, hashed on the way
//! ```
//!
//! One request at a time has an upload: the guard travels with the work, also onto the threads
//! that write, so that a client that vanishes cannot leave two writers behind. Bytes beyond the
//! last kept offset count for nothing; a restart cuts them off.

mod gather;
mod writing;

use super::content::{Content, Source, Staged};
use super::metadata::{Arrived, Kept, Metadata};
use super::{Registry, blocking, millis};
use crate::error::{Error, OpenError};
use crate::limits::{SPACE_CHECK_INTERVAL, UPLOAD_AGE_MAX, UPLOADS_MAX};
use crate::name::Name;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use gather::Gathered;
use oci::{Algorithm, Digest, Hasher};
use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use writing::{Writing, flush, hash};

/// A body on its way in.
pub(crate) type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;
/// An upload that one request has for itself.
pub(crate) type Upload = OwnedMutexGuard<Session>;

type Shared = Arc<tokio::sync::Mutex<Session>>;

/// The uploads under way that this process knows of.
#[derive(Default)]
pub(super) struct Uploads {
    sessions: Mutex<HashMap<String, Shared>>,
}

/// An upload under way.
pub(crate) struct Session {
    id: String,
    repository: Name,
    principal: String,
    offset: u64,
    hasher: Hasher,
    staged: Option<Arc<dyn Staged>>,
    /// Whether everything up to the offset is on the disk.
    flushed: bool,
    /// Whether the file's name is on the disk.
    named: bool,
    /// Whether the database knows of it.
    kept: bool,
    touched: i64,
}

impl Session {
    /// The address's last part.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// How many bytes are there.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes so far, for whoever reads along.
    pub(crate) fn source(&self) -> Option<Arc<Source>> {
        self.staged.as_ref().map(|staged| staged.source())
    }
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Shared>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Starts an upload. Nothing is written yet: an upload without bytes is not worth a flush.
    pub(crate) async fn begin_upload(
        &self,
        name: &Name,
        principal: &str,
        algorithm: Algorithm,
    ) -> Result<Upload, Error> {
        self.check_space(0)?;
        let id = unguessable()?;
        let session = Session {
            id: id.clone(),
            repository: name.clone(),
            principal: principal.to_owned(),
            offset: 0,
            hasher: Hasher::new(algorithm),
            staged: None,
            flushed: true,
            named: false,
            kept: false,
            touched: self.now(),
        };
        let shared: Shared = Arc::new(tokio::sync::Mutex::new(session));
        {
            let mut sessions = self.inner.uploads.lock();
            if sessions.len() >= UPLOADS_MAX {
                return Err(Error::UploadsTooMany);
            }
            sessions.insert(id, shared.clone());
        }
        Ok(shared.lock_owned().await)
    }

    /// Takes up an upload of this repository and principal, waiting for whoever has it now.
    pub(crate) async fn upload(
        &self,
        name: &Name,
        principal: &str,
        id: &str,
    ) -> Result<Upload, Error> {
        if !is_id(id) {
            return Err(Error::UploadUnknown);
        }
        let here = self.inner.uploads.lock().get(id).cloned();
        let shared = match here {
            Some(shared) => shared,
            None => self.load(id).await?,
        };
        let mut upload = shared.lock_owned().await;
        let ours = upload.repository == *name && upload.principal == principal;
        // Whoever had it before may have finished it.
        if !ours || !self.inner.uploads.lock().contains_key(id) {
            return Err(Error::UploadUnknown);
        }
        upload.touched = self.now();
        Ok(upload)
    }

    /// Writes a body at the upload's offset. With `expected`, a body of another length changes
    /// nothing; a body that breaks off keeps what came, for the client to go on from.
    pub(crate) async fn append(
        &self,
        upload: Upload,
        body: BodyStream,
        expected: Option<u64>,
    ) -> Result<Upload, Error> {
        let (writing, rest) = self.receive(upload, body, expected).await?;
        writing.write(rest).await?.accept()
    }

    /// Writes a body at the upload's offset and makes a blob of it all. An upload whose bytes
    /// have another digest is thrown away.
    pub(crate) async fn complete(
        &self,
        upload: Upload,
        body: BodyStream,
        expected: Option<u64>,
        digest: &Digest,
    ) -> Result<(), Error> {
        let (mut writing, rest) = self.receive(upload, body, expected).await?;
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || {
            writing.write_here(&rest)?;
            registry.finish_here(writing.accept()?, &digest)
        })
        .await
    }

    /// Turns an upload into a blob of its repository. An upload whose bytes have another digest
    /// is thrown away.
    pub(crate) async fn finish(&self, upload: Upload, digest: &Digest) -> Result<(), Error> {
        let mut writing = Writing::new(upload, self.inner.content.clone(), None);
        let (registry, digest) = (self.clone(), digest.clone());
        blocking(move || {
            writing.write_here(&[])?;
            registry.finish_here(writing.accept()?, &digest)
        })
        .await
    }

    /// Writes a body as it comes, but for its last pieces.
    async fn receive(
        &self,
        upload: Upload,
        mut body: BodyStream,
        expected: Option<u64>,
    ) -> Result<(Writing, Vec<Bytes>), Error> {
        self.check_space(expected.unwrap_or(0))?;
        let mut writing = Writing::new(upload, self.inner.content.clone(), expected);
        let (mut gathered, mut checked) = (Gathered::default(), 0);
        loop {
            match body.next().await {
                None => return Ok((writing, gathered.rest())),
                Some(Ok(piece)) => gathered.push(piece),
                Some(Err(error)) => {
                    self.keep(writing.write(gathered.rest()).await?.accept_part()).await?;
                    return Err(error);
                }
            }
            while let Some(block) = gathered.block() {
                writing = writing.write(block).await?;
            }
            if writing.count - checked > SPACE_CHECK_INTERVAL {
                checked = writing.count;
                self.check_space(0)?;
            }
        }
    }

    /// Makes the upload's bytes, offset and hash state durable.
    pub(crate) async fn keep(&self, upload: Upload) -> Result<Upload, Error> {
        let registry = self.clone();
        blocking(move || registry.keep_here(upload)).await
    }

    fn keep_here(&self, mut upload: Upload) -> Result<Upload, Error> {
        self.flush_or_cancel(&mut upload)?;
        // The name of the file must be on the disk as well, once.
        if let Some(staged) = upload.staged.clone().filter(|_| !upload.named) {
            staged.flush_name()?;
            upload.named = true;
        }
        upload.kept = true;
        self.inner.metadata.keep_upload(Kept {
            id: upload.id.clone(),
            repository: upload.repository.clone(),
            principal: upload.principal.clone(),
            offset: upload.offset,
            hasher: upload.hasher.clone(),
            updated: self.now(),
        })?;
        // Many uploads may wait for their clients; open files are few.
        upload.staged = None;
        Ok(upload)
    }

    /// Throws an upload away.
    pub(crate) async fn cancel(&self, upload: Upload) -> Result<(), Error> {
        let registry = self.clone();
        blocking(move || registry.cancel_here(&upload)).await
    }

    fn cancel_here(&self, upload: &Upload) -> Result<(), Error> {
        self.inner.uploads.lock().remove(&upload.id);
        self.forget_upload_here(&upload.id)
    }

    /// Throws away uploads nobody has touched for long; gives their number.
    pub(super) async fn expire_uploads(&self) -> Result<u64, Error> {
        let limit = self.now().saturating_sub(millis(UPLOAD_AGE_MAX));
        let here: Vec<(String, Shared)> =
            self.inner.uploads.lock().iter().map(|(id, it)| (id.clone(), it.clone())).collect();
        let mut expired = HashSet::new();
        for (id, shared) in here {
            // An upload that somebody has right now is not old.
            if shared.try_lock().is_ok_and(|session| session.touched < limit) {
                self.inner.uploads.lock().remove(&id);
                expired.insert(id);
            }
        }
        let rows = self.ask(move |inner| inner.metadata.uploads_before(limit)).await?;
        let known = |id: &String| self.inner.uploads.lock().contains_key(id);
        expired.extend(rows.into_iter().filter(|id| !known(id)));
        for id in &expired {
            self.forget_upload(id).await?;
        }
        Ok(expired.len() as u64)
    }

    fn finish_here(&self, mut upload: Upload, digest: &Digest) -> Result<(), Error> {
        let actual = hash(&upload, digest.algorithm())?;
        if actual != *digest {
            self.cancel_here(&upload)?;
            return Err(Error::DigestMismatch { expected: digest.clone(), actual });
        }
        self.flush_or_cancel(&mut upload)?;
        let held = self.inner.metadata.hold(digest)?;
        let adopted = self.inner.content.adopt(&upload.id, digest);
        // From here on the upload's bytes may be gone, so the upload is over, come what may.
        self.inner.uploads.lock().remove(&upload.id);
        adopted?;
        let recorded = self.record_upload(&upload, digest);
        if recorded.is_err() {
            self.drop_unknown_file(digest);
        }
        drop(held);
        recorded
    }

    /// Brings an upload's bytes to the disk. If that fails once, the system may have thrown them
    /// away and say all is well the next time: nothing more can be made of this upload.
    fn flush_or_cancel(&self, upload: &mut Upload) -> Result<(), Error> {
        let flushed = flush(upload);
        if flushed.is_err() {
            let _ = self.cancel_here(upload);
        }
        flushed
    }

    /// Lets the database know of an upload that became a blob.
    fn record_upload(&self, upload: &Upload, digest: &Digest) -> Result<(), Error> {
        self.inner.metadata.finish_upload(Arrived {
            repository: upload.repository.clone(),
            digest: digest.clone(),
            size: upload.offset,
            lease: self.lease(),
            quota: self.inner.settings.quota,
            upload: upload.kept.then(|| upload.id.clone()),
        })
    }

    /// Takes up an upload from the database, after a restart.
    async fn load(&self, id: &str) -> Result<Shared, Error> {
        let wanted = id.to_owned();
        let found = self.ask(move |inner| inner.metadata.kept_upload(&wanted)).await?;
        let found = found.ok_or(Error::UploadUnknown)?;
        let session = Session {
            id: found.id,
            repository: found.repository,
            principal: found.principal,
            offset: found.offset,
            hasher: found.hasher,
            staged: None,
            flushed: true,
            named: true,
            kept: true,
            touched: self.now(),
        };
        let shared = Arc::new(tokio::sync::Mutex::new(session));
        let mut sessions = self.inner.uploads.lock();
        Ok(sessions.entry(id.to_owned()).or_insert(shared).clone())
    }

    async fn forget_upload(&self, id: &str) -> Result<(), Error> {
        let (registry, id) = (self.clone(), id.to_owned());
        blocking(move || registry.forget_upload_here(&id)).await
    }

    fn forget_upload_here(&self, id: &str) -> Result<(), Error> {
        self.inner.content.unstage(id)?;
        self.inner.metadata.forget_upload(id)
    }
}

/// Removes bytes of uploads the database does not know: their clients were never told.
pub(super) fn sweep_at_start(
    content: &dyn Content,
    metadata: &dyn Metadata,
) -> Result<(), OpenError> {
    let known: HashSet<String> = metadata.uploads_before(i64::MAX)?.into_iter().collect();
    for id in content.staged()?.iter().filter(|id| !known.contains(*id)) {
        content.unstage(id)?;
    }
    Ok(())
}

/// A random name of the form of a version 4 UUID.
pub(super) fn unguessable() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Io(io::Error::other(error)))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

fn is_id(text: &str) -> bool {
    let valid = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    text.len() == 36 && text.bytes().all(valid)
}
