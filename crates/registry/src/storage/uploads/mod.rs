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

mod expire;
mod gather;
mod ledger;
mod writing;

pub(crate) use ledger::Holder;

use super::content::{Content, Source, Staged};
use super::metadata::{Arrived, Kept, Metadata};
use super::{Registry, blocking};
use crate::error::{Error, OpenError};
use crate::limits::SPACE_CHECK_INTERVAL;
use crate::name::Name;
use crate::observe::Event;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use gather::Gathered;
use ledger::{Ledger, Stake};
use oci::{Algorithm, Digest, Hasher};
use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use writing::{Room, Writing, flush, hash};

/// A body on its way in.
pub(crate) type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;
/// An upload that one request has for itself.
pub(crate) type Upload = OwnedMutexGuard<Session>;

type Shared = Arc<tokio::sync::Mutex<Session>>;

/// The uploads under way that this process knows of.
#[derive(Default)]
pub(super) struct Uploads {
    sessions: Mutex<HashMap<String, Shared>>,
    ledger: Ledger,
    /// When it was last looked which of them are over.
    swept: AtomicI64,
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
    begun: i64,
    touched: i64,
    /// What it counts for.
    stake: Stake,
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
    /// The uploads that a database keeps, after a restart: they count as they did before.
    pub(super) fn restored(metadata: &dyn Metadata) -> Result<Self, Error> {
        let uploads = Self::default();
        for id in metadata.uploads_before(i64::MAX)? {
            metadata.kept_upload(&id)?.map(|kept| uploads.take_up(kept));
        }
        Ok(uploads)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Shared>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up an upload that was kept, unless that was done already.
    fn take_up(&self, kept: Kept) -> Shared {
        let mut sessions = self.lock();
        if let Some(shared) = sessions.get(&kept.id) {
            return shared.clone();
        }
        let holder = Holder::new(&kept.principal, None);
        let session = Session {
            stake: self.ledger.reenter(&holder, &kept.repository, kept.offset),
            id: kept.id.clone(),
            repository: kept.repository,
            principal: kept.principal,
            offset: kept.offset,
            hasher: kept.hasher,
            staged: None,
            flushed: true,
            named: true,
            kept: true,
            begun: kept.updated,
            touched: kept.updated,
        };
        let shared = Arc::new(tokio::sync::Mutex::new(session));
        sessions.insert(kept.id, shared.clone());
        shared
    }
}

impl Registry {
    /// Starts an upload. Nothing is written yet: an upload without bytes is not worth a flush.
    pub(crate) async fn begin_upload(
        &self,
        name: &Name,
        holder: &Holder,
        algorithm: Algorithm,
    ) -> Result<Upload, Error> {
        self.check_space(0)?;
        let stake = self.enter(name, holder).await?;
        let id = unguessable()?;
        let session = Session {
            id: id.clone(),
            repository: name.clone(),
            principal: holder.principal().to_owned(),
            offset: 0,
            hasher: Hasher::new(algorithm),
            staged: None,
            flushed: true,
            named: false,
            kept: false,
            begun: self.now(),
            touched: self.now(),
            stake,
        };
        let shared: Shared = Arc::new(tokio::sync::Mutex::new(session));
        self.inner.uploads.lock().insert(id, shared.clone());
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
        if self.is_over(&upload) {
            self.cancel(upload).await?;
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
        let room = self.room(&upload.repository, None).await?;
        let (writing, rest) = self.receive(upload, body, expected, room).await?;
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
        let room = self.room(&upload.repository, Some(digest)).await?;
        let (mut writing, rest) = self.receive(upload, body, expected, room).await?;
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
        room: Room,
    ) -> Result<(Writing, Vec<Bytes>), Error> {
        self.check_space(expected.unwrap_or(0))?;
        let mut writing = Writing::new(upload, self.inner.content.clone(), expected);
        let (mut gathered, mut checked) = (Gathered::default(), 0);
        loop {
            match body.next().await {
                None => return Ok((writing, gathered.rest())),
                Some(Ok(piece)) => match writing.admit(room, piece.len() as u64) {
                    Ok(()) => gathered.push(piece),
                    // Nothing can become of it, and what came must not lie there.
                    Err(error) => {
                        self.cancel(writing.give_up()).await?;
                        return Err(error);
                    }
                },
                Some(Err(error)) => {
                    self.keep(writing.write(gathered.rest()).await?.accept_part()).await?;
                    return Err(error);
                }
            }
            while let Some(block) = gathered.block() {
                writing = writing.write(block).await?;
            }
            if writing.count.saturating_sub(checked) > SPACE_CHECK_INTERVAL {
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
        self.tell_waiting(recorded?, digest);
        Ok(())
    }

    /// Tells that bytes came which manifests of some repositories have been without.
    pub(super) fn tell_waiting(&self, repositories: Vec<Name>, digest: &Digest) {
        if !repositories.is_empty() {
            self.view_later();
        }
        for repository in repositories {
            self.tell(Event::Completed { repository, digest: digest.clone() });
        }
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

    /// Lets the database know of an upload that became a blob; tells whether a manifest waited
    /// for it.
    fn record_upload(&self, upload: &Upload, digest: &Digest) -> Result<Vec<Name>, Error> {
        self.inner.metadata.finish_upload(Arrived {
            repository: upload.repository.clone(),
            digest: digest.clone(),
            size: upload.offset,
            lease: self.lease(),
            quota: self.inner.settings.quota,
            upload: upload.kept.then(|| upload.id.clone()),
        })
    }

    /// What may still arrive in a repository; of a blob that it has, as much as that has.
    async fn room(&self, name: &Name, digest: Option<&Digest>) -> Result<Room, Error> {
        let Some(limit) = self.inner.settings.quota else { return Ok(Room::Plenty) };
        let (name, digest) = (name.clone(), digest.cloned());
        self.ask(move |inner| {
            if let Some(digest) = &digest
                && let Ok(found) = inner.metadata.blob(&name, digest)
            {
                return Ok(Room::Known(found.size));
            }
            Ok(Room::Quota { limit, used: inner.metadata.used(&name)? })
        })
        .await
    }

    /// Refuses early what is announced and would not fit, as [`Self::receive`] would later.
    pub(crate) async fn check_room(
        &self,
        upload: &Upload,
        digest: Option<&Digest>,
        announced: u64,
    ) -> Result<(), Error> {
        let size = upload.offset.saturating_add(announced);
        match self.room(&upload.repository, digest).await? {
            Room::Known(expected) if size > expected => {
                Err(Error::SizeMismatch { expected, actual: size })
            }
            Room::Plenty | Room::Known(_) => Ok(()),
            Room::Quota { limit, used } => {
                let used = used.saturating_add(self.staged(&upload.repository));
                let fits = used.saturating_add(announced) <= limit;
                if fits { Ok(()) } else { Err(Error::QuotaExceeded { limit }) }
            }
        }
    }

    /// Bytes on their way to a repository.
    pub(super) fn staged(&self, name: &Name) -> u64 {
        self.inner.uploads.ledger.staged(name)
    }

    /// Takes up an upload from the database, which another replica may have kept.
    async fn load(&self, id: &str) -> Result<Shared, Error> {
        let wanted = id.to_owned();
        let found = self.ask(move |inner| inner.metadata.kept_upload(&wanted)).await?;
        let found = found.ok_or(Error::UploadUnknown)?;
        Ok(self.inner.uploads.take_up(found))
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
