//! A gzip stream whose bytes depend on nothing but its content.
//!
//! Content is cut into blocks of fixed size, each deflated on its own, so that all cores can
//! help and the result is the same with any number of them. Together they are one ordinary gzip
//! stream, without a name or a time.

use flate2::{Compress, Compression, Crc, FlushCompress};
use rayon::prelude::*;
use std::io::{self, Read, Write};

/// Changing this, a level, or the compressor changes every digest we make.
const BLOCK: usize = 512 << 10;
/// The most blocks that wait before they are deflated together: a bound on memory.
const PENDING_MAX: usize = 8;
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// What matters more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Time: for files that stay here.
    Fast,
    /// Size: for layers that travel.
    Small,
}

impl Effort {
    fn level(self) -> Compression {
        match self {
            Self::Fast => Compression::new(3),
            Self::Small => Compression::new(6),
        }
    }
}

/// Compresses everything a reader gives.
pub fn gzip(reader: &mut impl Read, out: impl Write, effort: Effort) -> io::Result<()> {
    let mut writer = GzipWriter::new(out, effort)?;
    io::copy(reader, &mut writer)?;
    writer.finish()?;
    Ok(())
}

/// Compresses what is written to it. Nothing is complete before [`GzipWriter::finish`].
pub struct GzipWriter<W: Write> {
    out: W,
    effort: Effort,
    crc: Crc,
    blocks: Vec<Vec<u8>>,
}

impl<W: Write> GzipWriter<W> {
    /// Starts a stream.
    pub fn new(mut out: W, effort: Effort) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        Ok(Self { out, effort, crc: Crc::new(), blocks: Vec::new() })
    }

    /// Ends the stream.
    pub fn finish(mut self) -> io::Result<W> {
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        self.deflate_pending(FlushCompress::Finish)?;
        let (sum, amount) = (self.crc.sum(), self.crc.amount());
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(&amount.to_le_bytes())?;
        Ok(self.out)
    }

    /// Deflates what waits; the last block of a finished stream closes it.
    fn deflate_pending(&mut self, last: FlushCompress) -> io::Result<()> {
        let blocks = std::mem::take(&mut self.blocks);
        let closing = blocks.len().saturating_sub(1);
        let level = self.effort.level();
        let flush = |index| {
            if index == closing { last } else { FlushCompress::Sync }
        };
        let deflated: Vec<io::Result<(Vec<u8>, Crc)>> = blocks
            .par_iter()
            .enumerate()
            .map(|(index, block)| deflate(block, level, flush(index)))
            .collect();
        for block in deflated {
            let (bytes, crc) = block?;
            self.out.write_all(&bytes)?;
            self.crc.combine(&crc);
        }
        Ok(())
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            if self.blocks.len() >= pending() {
                self.deflate_pending(FlushCompress::Sync)?;
            }
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let Some(block) = self.blocks.last_mut() else {
            return Ok(0);
        };
        let count = buffer.len().min(BLOCK - block.len());
        block.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many blocks wait: one for each core. The bytes do not depend on it.
fn pending() -> usize {
    rayon::current_num_threads().clamp(1, PENDING_MAX)
}

/// Deflates one block on its own. The buffer holds the worst case, so that one call is enough and
/// the bytes cannot depend on how a buffer grew.
fn deflate(block: &[u8], level: Compression, flush: FlushCompress) -> io::Result<(Vec<u8>, Crc)> {
    let mut crc = Crc::new();
    crc.update(block);
    let mut state = Compress::new(level, false);
    let mut out = Vec::with_capacity(block.len() + block.len() / 8 + 1024);
    state.compress_vec(block, &mut out, flush).map_err(io::Error::other)?;
    if state.total_in() != block.len() as u64 {
        return Err(io::Error::other("the compressor did not take a whole block"));
    }
    Ok((out, crc))
}
