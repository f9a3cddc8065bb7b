//! What was acknowledged, in a small file beside the database.
//!
//! `SQLite` reads its write-ahead log up to the first frame that does not fit and takes the rest
//! for the torn end of a crash. Whether that rest had been promised to a client only somebody else
//! can know: after each durable batch, and before its answers, this file is told how far the log
//! has come and what its rows add up to. What is found at the next start must reach that far.
//!
//! Telling it is one small write in place and no sync, so a commit still costs one sync. A process
//! that dies at any point leaves the write with the kernel. After a power failure the file may lag
//! behind by what the kernel had not written yet, [`SYNC_EVERY`] batches at most; a lower bound is
//! still a bound.

use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::{Damage, DiskError};

/// The name of the file.
pub(super) const NAME: &str = "log.acknowledged";
/// Batches between two syncs of the file.
const SYNC_EVERY: u64 = 1024;
/// Two slots, each in a sector of its own, are written in turn: one is always whole.
const SECTOR: usize = 512;
const LENGTH: usize = 2 * SECTOR;
const MAGIC: u64 = u64::from_le_bytes(*b"apronack");
/// Words of a slot: the magic number, the turn, the tally, their checksum.
const WORDS: usize = 7;

/// How far a log has come, and what its rows add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// The highest version given out.
    pub(super) version: u64,
    /// Versions up to this one have been compacted.
    pub(super) compacted: u64,
    /// How many rows there are.
    pub(super) rows: u64,
    /// The sum of their checksums.
    pub(super) sum: u64,
}

impl Tally {
    /// Takes a row in.
    pub(super) fn add_row(&mut self, checksum: i64) {
        self.rows = self.rows.wrapping_add(1);
        self.sum = self.sum.wrapping_add(checksum.cast_unsigned());
    }

    /// Takes a row out.
    pub(super) fn drop_row(&mut self, checksum: i64) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(checksum.cast_unsigned());
    }
}

/// The file, open.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: fs_err::File,
    turn: u64,
}

impl Acknowledged {
    /// Opens the file, or makes an empty one, which says nothing.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = fs_err::OpenOptions::new();
        options.options_mut().mode(0o600);
        let options = options.read(true).write(true).create(true).truncate(false);
        Ok(Self { file: options.open(directory.join(NAME))?, turn: 0 })
    }

    /// What was acknowledged; nothing is known of a home that never had this file.
    pub(super) fn read(&mut self) -> Result<Option<Tally>, DiskError> {
        let mut bytes = vec![0; LENGTH.saturating_add(1)];
        let length = read_all(self.file.file(), &mut bytes).map_err(DiskError::Directory)?;
        bytes.truncate(length);
        let Some((turn, tally)) = newest(&bytes)? else { return Ok(None) };
        self.turn = turn;
        Ok(Some(tally))
    }

    /// Writes what is acknowledged from now on.
    pub(super) fn note(&mut self, tally: &Tally) -> io::Result<()> {
        self.turn = self.turn.wrapping_add(1);
        let at = if self.turn.is_multiple_of(2) { 0 } else { SECTOR as u64 };
        self.file.file().write_all_at(&slot(self.turn, tally), at)?;
        if self.turn.is_multiple_of(SYNC_EVERY) { self.sync() } else { Ok(()) }
    }

    /// Writes both slots of a file and syncs it, so that nothing of an earlier life is left.
    pub(super) fn begin(&mut self, tally: &Tally) -> io::Result<()> {
        self.note(tally)?;
        self.note(tally)?;
        self.file.file().set_len(LENGTH as u64)?;
        self.sync()
    }

    /// Waits until the file is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.file().sync_data()
    }
}

/// The newest whole slot of a file. An empty file is one that was just made.
fn newest(bytes: &[u8]) -> Result<Option<(u64, Tally)>, DiskError> {
    let slots = bytes.chunks(SECTOR).filter_map(read_slot);
    match slots.max_by_key(|(turn, _)| *turn) {
        None if bytes.iter().all(|byte| *byte == 0) => Ok(None),
        None => Err(DiskError::Damaged(Damage::Acknowledged)),
        found => Ok(found),
    }
}

fn slot(turn: u64, tally: &Tally) -> Vec<u8> {
    let words = [MAGIC, turn, tally.version, tally.compacted, tally.rows, tally.sum];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let sum = hash(&[&bytes]);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn read_slot(bytes: &[u8]) -> Option<(u64, Tally)> {
    let (words, _) = bytes.get(..WORDS.saturating_mul(8))?.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let &[MAGIC, turn, version, compacted, rows, sum, checksum] = words.as_slice() else {
        return None;
    };
    let whole = hash(&[bytes.get(..WORDS.saturating_sub(1).saturating_mul(8))?]) == checksum;
    whole.then_some((turn, Tally { version, compacted, rows, sum }))
}

fn read_all(file: &std::fs::File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0_usize;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length = length.saturating_add(more),
        }
    }
    Ok(length)
}

/// FNV-1a: not against malice, against a bad disk.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
