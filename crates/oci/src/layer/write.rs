//! Laying down a layer whose bytes depend on nothing but its content.
//!
//! Headers carry no time, owner or umask. Compression works on blocks of fixed size, each
//! deflated on its own, so that all cores can help and the result is the same with any number of
//! them; together they are one ordinary gzip stream.

use crate::digest::{Algorithm, HashWriter, Hasher};
use crate::{Descriptor, Digest, MediaType};
use flate2::{Compress, Compression, Crc, FlushCompress};
use rayon::prelude::*;
use std::io::{self, Write};
use tar::{EntryType, Header};

/// Changing this, the level, or the compressor changes every digest we make.
const BLOCK: usize = 1 << 20;
const LEVEL: u32 = 3;
/// How many blocks wait before they are deflated together: enough for several cores, and a
/// bound on memory.
const PENDING: usize = 8;
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const TAR_BLOCK: usize = 512;

/// What became of the bytes given to a [`LayerWriter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenLayer {
    /// Address, size and type of the compressed layer.
    pub descriptor: Descriptor,
    /// Address of the uncompressed archive, which the image config lists.
    pub diff_id: Digest,
}

/// Writes one gzip layer to `W`. Files are announced with their size and then written.
pub struct LayerWriter<W: Write> {
    out: HashWriter<W>,
    diff: Hasher,
    crc: Crc,
    blocks: Vec<Vec<u8>>,
    left: u64,
    size: u64,
}

impl<W: Write> LayerWriter<W> {
    /// Starts an empty layer.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = HashWriter::new(out);
        out.write_all(&GZIP_HEADER)?;
        let diff = Hasher::new(Algorithm::Sha256);
        Ok(Self {
            out,
            diff,
            crc: Crc::new(),
            blocks: Vec::new(),
            left: 0,
            size: 0,
        })
    }

    /// Announces a regular file; exactly `size` bytes must be written next.
    pub fn start_file(&mut self, path: &str, size: u64) -> io::Result<()> {
        self.finish_file()?;
        let mut header = Header::new_ustar();
        header.set_path(path)?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(size);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_cksum();
        self.push(header.as_bytes())?;
        (self.left, self.size) = (size, size);
        Ok(())
    }

    /// Ends the layer.
    pub fn finish(mut self) -> io::Result<(W, WrittenLayer)> {
        self.finish_file()?;
        self.push(&[0; 2 * TAR_BLOCK])?;
        self.deflate_pending(FlushCompress::Finish)?;
        let (sum, amount) = (self.crc.sum(), self.crc.amount());
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(&amount.to_le_bytes())?;
        let (out, digest, size) = self.out.finish();
        let descriptor = Descriptor::new(MediaType::DOCKER_LAYER_GZIP, digest, size);
        Ok((
            out,
            WrittenLayer {
                descriptor,
                diff_id: self.diff.finish(),
            },
        ))
    }

    fn finish_file(&mut self) -> io::Result<()> {
        if self.left > 0 {
            let message = format!("{} bytes of the announced file are missing", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let padding = self.size.next_multiple_of(TAR_BLOCK as u64) - self.size;
        self.size = 0;
        let zeros = [0; TAR_BLOCK];
        self.push(&zeros[..usize::try_from(padding).unwrap_or_default()])
    }

    /// Takes archive bytes, and deflates when enough blocks wait.
    fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.diff.update(bytes);
        while !bytes.is_empty() {
            if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
                if self.blocks.len() == PENDING {
                    self.deflate_pending(FlushCompress::Sync)?;
                }
                self.blocks.push(Vec::with_capacity(BLOCK));
            }
            let Some(block) = self.blocks.last_mut() else {
                continue;
            };
            let count = bytes.len().min(BLOCK - block.len());
            block.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Deflates what waits; the last block of a finished stream closes it.
    fn deflate_pending(&mut self, last: FlushCompress) -> io::Result<()> {
        let blocks = std::mem::take(&mut self.blocks);
        let closing = blocks.len().saturating_sub(1);
        let deflated: Vec<io::Result<(Vec<u8>, Crc)>> = blocks
            .par_iter()
            .enumerate()
            .map(|(index, block)| {
                deflate(
                    block,
                    if index == closing {
                        last
                    } else {
                        FlushCompress::Sync
                    },
                )
            })
            .collect();
        for block in deflated {
            let (bytes, crc) = block?;
            self.out.write_all(&bytes)?;
            self.crc.combine(&crc);
        }
        Ok(())
    }
}

impl<W: Write> Write for LayerWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if buffer.len() as u64 > self.left {
            let message = "more bytes than announced for the file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.left -= buffer.len() as u64;
        self.push(buffer)?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Deflates one block on its own. The buffer holds the worst case, so that one call is enough and
/// the bytes cannot depend on how a buffer grew.
fn deflate(block: &[u8], flush: FlushCompress) -> io::Result<(Vec<u8>, Crc)> {
    let mut crc = Crc::new();
    crc.update(block);
    let mut state = Compress::new(Compression::new(LEVEL), false);
    let mut out = Vec::with_capacity(block.len() + block.len() / 8 + 1024);
    state
        .compress_vec(block, &mut out, flush)
        .map_err(io::Error::other)?;
    if state.total_in() != block.len() as u64 {
        return Err(io::Error::other(
            "the compressor did not take a whole block",
        ));
    }
    Ok((out, crc))
}
