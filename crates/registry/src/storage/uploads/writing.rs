//! Writing an upload: at the offset, hashed on the way, flushed when asked.

use super::Upload;
use crate::error::Error;
use crate::storage::blocking;
use crate::storage::content::{Content, Written};
use bytes::Bytes;
use oci::{Algorithm, Digest, Hasher};
use std::sync::Arc;

/// An upload being written; until [`Writing::accept`], the session does not know.
pub(super) struct Writing {
    upload: Upload,
    content: Arc<dyn Content>,
    hasher: Hasher,
    offset: u64,
    expected: Option<u64>,
    pub(super) count: u64,
    /// Bytes that were let in, written or not.
    arrived: u64,
}

/// How many bytes may arrive.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// As many as one blob may have.
    Plenty,
    /// Those of a blob that the repository has already.
    Known(u64),
    /// What is left of the repository's quota, with everything else that is on its way.
    Quota {
        /// The quota.
        limit: u64,
        /// What of it is used by what has arrived.
        used: u64,
    },
}

impl Writing {
    /// An upload about to be written, perhaps with a body of known length.
    pub(super) fn new(
        mut upload: Upload,
        content: Arc<dyn Content>,
        expected: Option<u64>,
    ) -> Self {
        let (hasher, offset) = (upload.hasher.clone(), upload.offset);
        // What came after that before, and did not count, is cut off now.
        upload.stake.set(offset);
        Self { upload, content, hasher, offset, expected, count: 0, arrived: 0 }
    }

    /// Lets more bytes in, if there is room for them.
    pub(super) fn admit(&mut self, room: Room, more: u64) -> Result<(), Error> {
        self.arrived = self.arrived.saturating_add(more);
        let size = self.upload.offset.saturating_add(self.arrived);
        let (fits, refusal) = match room {
            Room::Plenty => return Ok(()),
            Room::Known(expected) => {
                let fits = size <= expected && self.upload.stake.grow(more, u64::MAX);
                (fits, Error::SizeMismatch { expected, actual: size })
            }
            Room::Quota { limit, used } => {
                let fits = self.upload.stake.grow(more, limit.saturating_sub(used));
                (fits, Error::QuotaExceeded { limit })
            }
        };
        if fits { Ok(()) } else { Err(refusal) }
    }

    /// The upload, to be thrown away.
    pub(super) fn give_up(self) -> Upload {
        self.upload
    }

    /// Hashes and writes some pieces on a thread that may wait for the disk. The guard goes
    /// along, so that the upload stays taken until the write is over.
    pub(super) async fn write(mut self, pieces: Vec<Bytes>) -> Result<Self, Error> {
        blocking(move || {
            self.write_here(&pieces)?;
            Ok(self)
        })
        .await
    }

    /// The same on this thread.
    pub(super) fn write_here(&mut self, pieces: &[Bytes]) -> Result<(), Error> {
        let staged = match self.upload.staged.clone() {
            Some(staged) => staged,
            None => self.content.stage(&self.upload.id, self.upload.offset)?,
        };
        self.upload.staged = Some(staged.clone());
        staged.write(pieces, self.offset)?;
        for piece in pieces {
            self.hasher.update(piece);
            self.offset = self.offset.saturating_add(piece.len() as u64);
            self.count = self.count.saturating_add(piece.len() as u64);
        }
        match self.expected {
            Some(expected) if self.count > expected => {
                Err(Error::SizeMismatch { expected, actual: self.count })
            }
            _ => Ok(()),
        }
    }

    /// The upload with all that was written, unless that is less than announced.
    pub(super) fn accept(self) -> Result<Upload, Error> {
        match self.expected {
            Some(expected) if expected != self.count => {
                Err(Error::SizeMismatch { expected, actual: self.count })
            }
            _ => Ok(self.accept_part()),
        }
    }

    /// The upload with what was written, for the client to go on from.
    pub(super) fn accept_part(mut self) -> Upload {
        self.upload.flushed = self.upload.flushed && self.count == 0;
        self.upload.hasher = self.hasher;
        self.upload.offset = self.offset;
        self.upload
    }
}

/// Brings an upload's bytes to the disk, and cuts off those that do not count.
pub(super) fn flush(upload: &mut Upload) -> Result<(), Error> {
    let Some(staged) = upload.staged.clone() else { return Ok(()) };
    let written = if upload.flushed { Written::Nothing } else { Written::Something };
    staged.flush(upload.offset, written)?;
    upload.flushed = true;
    Ok(())
}

/// The digest of what was uploaded. An algorithm other than the one hashed on the way means
/// reading the file once more, as far as it counts.
pub(super) fn hash(upload: &Upload, algorithm: Algorithm) -> Result<Digest, Error> {
    if upload.hasher.algorithm() == algorithm {
        return Ok(upload.hasher.clone().finish());
    }
    let Some(staged) = &upload.staged else { return Err(Error::UploadUnknown) };
    Ok(staged.source().hash(algorithm, upload.offset)?)
}
