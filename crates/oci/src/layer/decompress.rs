//! From a blob to an archive's bytes, whatever it is compressed with.

use super::{LayerError, Limits};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, BufReader, Read};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What a zstd frame may ask us to keep in memory.
const ZSTD_WINDOW_MAX: u64 = 64 << 20;
const BUFFER: usize = 128 << 10;

/// The archive inside a blob. Compression is told by the first bytes, for media types lie; more
/// than `compressed_bytes_max` or `expanded_bytes_max` is an error, never a quiet end.
pub fn decompress<'a>(blob: impl Read + 'a, limits: &Limits) -> io::Result<Box<dyn Read + 'a>> {
    let capped = Capped::new(blob, limits.compressed_bytes_max, "compressed_bytes_max");
    let mut reader = BufReader::with_capacity(BUFFER, capped);
    let start = reader.fill_buf()?;
    let expanded: Box<dyn Read + 'a> = if start.starts_with(&GZIP_MAGIC) {
        Box::new(MultiGzDecoder::new(reader))
    } else if start.starts_with(&ZSTD_MAGIC) {
        Box::new(Zstd { state: ZstdState::Between(reader) })
    } else {
        Box::new(reader)
    };
    Ok(Box::new(Capped::new(expanded, limits.expanded_bytes_max, "expanded_bytes_max")))
}

/// Lets `max` bytes pass; one more is an error that names the limit.
struct Capped<R> {
    inner: R,
    left: u64,
    max: u64,
    name: &'static str,
}

impl<R: Read> Capped<R> {
    fn new(inner: R, max: u64, name: &'static str) -> Self {
        Self { inner, left: max, max, name }
    }
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                return Err(
                    LayerError::Limit { name: self.name, limit: self.max, unit: "bytes" }.into()
                );
            }
        }
        Ok(count)
    }
}

/// A zstd stream is one frame after another; the library decodes one.
struct Zstd<R: BufRead> {
    state: ZstdState<R>,
}

enum ZstdState<R: BufRead> {
    Between(R),
    Frame(Box<StreamingDecoder<R, FrameDecoder>>),
    Done,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, ZstdState::Done) {
                ZstdState::Done => return Ok(0),
                ZstdState::Between(mut source) => {
                    if source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder =
                        StreamingDecoder::new_with_max_window_size(source, ZSTD_WINDOW_MAX)
                            .map_err(io::Error::other)?;
                    self.state = ZstdState::Frame(Box::new(decoder));
                }
                ZstdState::Frame(mut decoder) => {
                    let count = decoder.read(buffer)?;
                    self.state = if count == 0 {
                        ZstdState::Between(decoder.into_inner())
                    } else {
                        ZstdState::Frame(decoder)
                    };
                    if count > 0 {
                        return Ok(count);
                    }
                }
            }
        }
    }
}
