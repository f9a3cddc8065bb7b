//! Writing past the system's page cache.
//!
//! The bytes of a large push are flushed at once and read by nobody for a while. Keeping them in
//! memory until then costs more than hashing them does, and drives out what pulls read. Where the
//! file system takes writes past its cache, whole blocks go that way; everything else, and all of
//! it where it does not, is written as usual.

use crate::limits::{WRITE_BLOCKS_IDLE, WRITE_SIZE};
use bytes::Bytes;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What memory, offsets and lengths must be multiples of; larger than any disk asks for.
const ALIGNMENT: usize = 4096;
/// Less than this is not worth the trouble.
const SIZE_MIN: usize = 64 << 10;

/// How to ask for it, where that can be asked for.
#[cfg(target_os = "linux")]
const FLAGS: Option<OFlags> = Some(OFlags::DIRECT);
#[cfg(not(target_os = "linux"))]
const FLAGS: Option<OFlags> = None;

/// What is known of the way to a file past the cache.
pub(super) enum Way {
    /// Nobody has looked yet.
    Unknown,
    /// There is one.
    Open(Direct),
    /// There is none.
    Closed,
}

impl Way {
    /// Writes as many whole blocks of some pieces as can go this way; gives how much that was.
    pub(super) fn write(
        &mut self,
        path: &Path,
        pieces: &[Bytes],
        offset: u64,
    ) -> io::Result<usize> {
        if !is_fit(pieces.iter().map(Bytes::len).sum(), offset) {
            return Ok(0);
        }
        if matches!(self, Self::Unknown) {
            *self = Direct::open(path).map_or(Self::Closed, Self::Open);
        }
        let Self::Open(direct) = self else { return Ok(0) };
        match direct.write(pieces, offset) {
            // The file system lets such files be opened, and not written.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                *self = Self::Closed;
                Ok(0)
            }
            other => other,
        }
    }
}

/// A way to a file past the cache.
pub(super) struct Direct {
    file: File,
}

impl Direct {
    /// Opens a file that is there; `None` if its file system does not take such writes.
    fn open(path: &Path) -> Option<Self> {
        let flags = i32::try_from(FLAGS?.bits()).ok()?;
        let mut options = fs_err::OpenOptions::new();
        let file = options.write(true).custom_flags(flags).open(path).ok()?;
        Some(Self { file: file.into_parts().0 })
    }

    /// Writes as many whole blocks of some pieces as there are, at an offset that is a whole
    /// number of blocks. Gives how much that was.
    fn write(&self, pieces: &[Bytes], offset: u64) -> io::Result<usize> {
        let mut memory = Memory::take();
        let size = memory.fill(pieces);
        let whole = size.saturating_sub(size.checked_rem(ALIGNMENT).unwrap_or_default());
        self.file.write_all_at(&memory.block()[..whole], offset)?;
        Ok(whole)
    }
}

/// Whether pieces of this size can go past the cache to this offset.
fn is_fit(size: usize, offset: u64) -> bool {
    (SIZE_MIN..=WRITE_SIZE).contains(&size) && offset.is_multiple_of(ALIGNMENT as u64)
}

/// Memory at an address such writes can start from. Some is kept for the next.
struct Memory {
    bytes: Vec<u8>,
}

static IDLE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

impl Memory {
    fn take() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self { bytes: idle.unwrap_or_else(|| vec![0; WRITE_SIZE.saturating_add(ALIGNMENT)]) }
    }

    /// A block that begins at a whole multiple of the alignment.
    fn block(&mut self) -> &mut [u8] {
        let start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        &mut self.bytes[start..start.saturating_add(WRITE_SIZE)]
    }

    /// Copies pieces that are no more than a block together; gives their size.
    fn fill(&mut self, pieces: &[Bytes]) -> usize {
        let block = self.block();
        let mut size = 0_usize;
        for piece in pieces {
            let end = size.saturating_add(piece.len());
            block[size..end].copy_from_slice(piece);
            size = end;
        }
        size
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < WRITE_BLOCKS_IDLE {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_go_past_the_cache_and_the_rest_does_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pieces = [Bytes::from(vec![1; 100_001]), Bytes::from(vec![2; 31_072])];
        let Some(direct) = Direct::open(file.path()) else { return };
        match direct.write(&pieces, 8192) {
            Ok(written) => {
                assert_eq!(written, 131_072);
                let bytes = fs_err::read(file.path()).unwrap();
                assert_eq!(bytes.len(), 8192 + 131_072);
                assert_eq!(bytes[8192 + 100_000..8192 + 100_003], [1, 2, 2]);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidInput),
        }
        assert!(is_fit(SIZE_MIN, 4096) && !is_fit(SIZE_MIN, 4095) && !is_fit(100, 0));
    }
}
