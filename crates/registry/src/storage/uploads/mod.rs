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

mod writing;

use super::files::{self, Files};
use super::{Registry, blobs, blocking, detached, ensure, now, quota, schema, stored_size};
use crate::error::{Error, OpenError};
use crate::limits::{SPACE_CHECK_INTERVAL, UPLOAD_AGE_MAX, UPLOADS_MAX, WRITE_SIZE};
use crate::name::Name;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use oci::{Algorithm, Digest, Hasher};
use rusqlite::{OptionalExtension, params};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use writing::{Writing, flush, hash, open};

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
    file: Option<Arc<File>>,
    /// Whether everything up to the offset is on the disk.
    flushed: bool,
    /// Whether the file's name is on the disk.
    named: bool,
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
    pub(crate) fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
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
            file: None,
            flushed: true,
            named: false,
            touched: now(),
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
        upload.touched = now();
        Ok(upload)
    }

    /// Writes a body at the upload's offset. With `expected`, a body of another length changes
    /// nothing; a body that breaks off keeps what came, for the client to go on from.
    pub(crate) async fn append(
        &self,
        upload: Upload,
        mut body: BodyStream,
        expected: Option<u64>,
    ) -> Result<Upload, Error> {
        self.check_space(expected.unwrap_or(0))?;
        let mut writing = self.open_for_writing(upload).await?;
        let (mut pieces, mut size) = (Vec::new(), 0);
        let mut checked = 0;
        let broken = loop {
            let piece = match body.next().await {
                None => break None,
                Some(Err(error)) => break Some(error),
                Some(Ok(piece)) => piece,
            };
            size += piece.len();
            pieces.push(piece);
            if size < WRITE_SIZE {
                continue;
            }
            writing = writing.write(std::mem::take(&mut pieces)).await?;
            size = 0;
            writing.check(expected)?;
            if writing.count - checked > SPACE_CHECK_INTERVAL {
                checked = writing.count;
                self.check_space(0)?;
            }
        };
        if !pieces.is_empty() {
            writing = writing.write(pieces).await?;
            writing.check(expected)?;
        }
        match (broken, expected) {
            (None, Some(expected)) if expected != writing.count => {
                Err(Error::SizeMismatch { expected, actual: writing.count })
            }
            (None, _) => Ok(writing.accept()),
            (Some(error), _) => {
                self.keep(writing.accept()).await?;
                Err(error)
            }
        }
    }

    /// Makes the upload's bytes, offset and hash state durable.
    pub(crate) async fn keep(&self, upload: Upload) -> Result<Upload, Error> {
        let mut upload = self.name(flush(upload).await?).await?;
        let (id, repository) = (upload.id.clone(), upload.repository.to_string());
        let (principal, offset) = (upload.principal.clone(), stored_size(upload.offset));
        let (algorithm, state) = (upload.hasher.algorithm().as_str(), upload.hasher.state());
        self.inner
            .database
            .write(move |transaction| {
                transaction
                    .prepare_cached("REPLACE INTO upload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
                    .execute(params![id, repository, principal, offset, algorithm, state, now()])?;
                Ok(())
            })
            .await?;
        // Many uploads may wait for their clients; open files are few.
        upload.file = None;
        Ok(upload)
    }

    /// Turns an upload into a blob of its repository. An upload whose bytes have another digest
    /// is thrown away.
    pub(crate) async fn finish(&self, upload: Upload, digest: &Digest) -> Result<(), Error> {
        let (registry, digest) = (self.clone(), digest.clone());
        detached(async move { registry.finish_here(upload, digest).await }).await
    }

    /// Throws an upload away.
    pub(crate) async fn cancel(&self, upload: Upload) -> Result<(), Error> {
        let id = upload.id.clone();
        self.inner.uploads.lock().remove(&id);
        self.forget_upload(&id).await
    }

    /// Throws away uploads nobody has touched for long; gives their number.
    pub(super) async fn expire_uploads(&self) -> Result<u64, Error> {
        let limit = now().saturating_sub(super::millis(UPLOAD_AGE_MAX));
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
        let rows = self.inner.database.read(move |database| {
            let mut statement = database.prepare("SELECT id FROM upload WHERE updated < ?1")?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map([limit], |row| row.get(0))?.collect();
            Ok(rows?)
        });
        let rows = rows.await?;
        let known = |id: &String| self.inner.uploads.lock().contains_key(id);
        expired.extend(rows.into_iter().filter(|id| !known(id)));
        for id in &expired {
            self.forget_upload(id).await?;
        }
        Ok(expired.len() as u64)
    }

    async fn finish_here(&self, upload: Upload, digest: Digest) -> Result<(), Error> {
        let upload = self.open_for_writing(upload).await?.accept();
        let upload = flush(upload).await?;
        let (upload, actual) = hash(upload, digest.algorithm()).await?;
        if actual != digest {
            self.cancel(upload).await?;
            return Err(Error::DigestMismatch { expected: digest, actual });
        }
        let held = self.hold(&digest).await;
        let (files, id, address) = (self.inner.files.clone(), upload.id.clone(), digest.clone());
        let adopted = blocking(move || Ok(files.adopt(&files.upload(&id), &address)?)).await;
        // From here on the upload's file may be gone, so the upload is over, come what may.
        self.inner.uploads.lock().remove(&upload.id);
        adopted?;
        let (name, size, id) = (upload.repository.clone(), upload.offset, upload.id.clone());
        let (lease, address) = (self.lease(), digest.clone());
        let quota = self.inner.settings.quota;
        let recorded = self.inner.database.write(move |transaction| {
            let repository = ensure(transaction, &name)?;
            quota::check(transaction, repository, &address, size, quota)?;
            blobs::record(transaction, &address, size)?;
            blobs::link(transaction, repository, &address, lease)?;
            transaction.prepare_cached("DELETE FROM upload WHERE id = ?1")?.execute([id])?;
            Ok(())
        });
        let recorded = recorded.await;
        if recorded.is_err() {
            self.drop_unknown_file(&digest).await;
        }
        drop(held);
        recorded
    }

    /// Takes up an upload from the database, after a restart.
    async fn load(&self, id: &str) -> Result<Shared, Error> {
        let wanted = id.to_owned();
        let found = self.inner.database.read(move |database| {
            let mut statement = database.prepare_cached(
                "SELECT repository, principal, offset, algorithm, state FROM upload WHERE id = ?1",
            )?;
            let row = statement.query_row([&wanted], |row| {
                let offset: i64 = row.get(2)?;
                let (name, principal): (String, String) = (row.get(0)?, row.get(1)?);
                let (algorithm, state): (String, Vec<u8>) = (row.get(3)?, row.get(4)?);
                Ok((name, principal, offset.unsigned_abs(), algorithm, state))
            });
            Ok(row.optional()?)
        });
        let (name, principal, offset, algorithm, state) =
            found.await?.ok_or(Error::UploadUnknown)?;
        let repository = Name::parse(&name).ok_or(Error::UploadUnknown)?;
        let hasher = Algorithm::parse(&algorithm).and_then(|it| Hasher::resume(it, &state));
        let session = Session {
            id: id.to_owned(),
            repository,
            principal,
            offset,
            hasher: hasher.ok_or(Error::UploadUnknown)?,
            file: None,
            flushed: true,
            named: true,
            touched: now(),
        };
        let shared = Arc::new(tokio::sync::Mutex::new(session));
        let mut sessions = self.inner.uploads.lock();
        Ok(sessions.entry(id.to_owned()).or_insert(shared).clone())
    }

    async fn open_for_writing(&self, mut upload: Upload) -> Result<Writing, Error> {
        let file = if let Some(file) = &upload.file {
            file.clone()
        } else {
            let (path, offset) = (self.inner.files.upload(&upload.id), upload.offset);
            blocking(move || open(&path, offset)).await?
        };
        upload.file = Some(file.clone());
        Ok(Writing::new(upload, file))
    }

    /// Makes the name of an upload's file durable, once.
    async fn name(&self, mut upload: Upload) -> Result<Upload, Error> {
        if !upload.named && upload.file.is_some() {
            let directory = self.inner.files.uploads();
            blocking(move || Ok(files::sync_directory(&directory)?)).await?;
            upload.named = true;
        }
        Ok(upload)
    }

    async fn forget_upload(&self, id: &str) -> Result<(), Error> {
        let (files, id) = (self.inner.files.clone(), id.to_owned());
        let file = id.clone();
        blocking(move || Ok(files.remove_upload(&file)?)).await?;
        self.inner
            .database
            .write(move |transaction| {
                transaction.prepare_cached("DELETE FROM upload WHERE id = ?1")?.execute([id])?;
                Ok(())
            })
            .await
    }
}

/// Removes files of uploads the database does not know: their clients were never told.
pub(super) fn sweep_at_start(files: &Files) -> Result<(), OpenError> {
    let database = schema::open_reader(&files.database())?;
    let mut statement = database.prepare("SELECT id FROM upload")?;
    let known: rusqlite::Result<HashSet<String>> =
        statement.query_map([], |row| row.get(0))?.collect();
    let known = known?;
    for entry in fs_err::read_dir(files.uploads())? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_none_or(|name| !known.contains(name)) {
            fs_err::remove_file(entry.path())?;
        }
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
