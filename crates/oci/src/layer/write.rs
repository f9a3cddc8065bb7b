//! Laying down a layer whose bytes depend on nothing but its content: headers carry no time,
//! owner or umask, and compression is [`GzipWriter`]'s.

use super::{Effort, GzipWriter};
use crate::digest::{Algorithm, HashWriter, Hasher};
use crate::{Descriptor, Digest, MediaType};
use std::io::{self, Write};
use tar::{EntryType, Header};

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
    out: GzipWriter<HashWriter<W>>,
    diff: Hasher,
    left: u64,
    size: u64,
}

impl<W: Write> LayerWriter<W> {
    /// Starts an empty layer.
    pub fn new(out: W) -> io::Result<Self> {
        let out = GzipWriter::new(HashWriter::new(out), Effort::Small)?;
        Ok(Self { out, diff: Hasher::new(Algorithm::Sha256), left: 0, size: 0 })
    }

    /// Announces a regular file; exactly `size` bytes must be written next.
    pub fn start_file(&mut self, path: &str, size: u64) -> io::Result<()> {
        self.start_entry(path, size, 0o644)
    }

    /// Announces a file that everybody may run, in the same way.
    pub fn start_program(&mut self, path: &str, size: u64) -> io::Result<()> {
        self.start_entry(path, size, 0o755)
    }

    fn start_entry(&mut self, path: &str, size: u64, mode: u32) -> io::Result<()> {
        self.finish_file()?;
        let mut header = Header::new_ustar();
        header.set_path(path)?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(mode);
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
        let (mut out, digest, size) = self.out.finish()?.finish();
        out.flush()?;
        let descriptor = Descriptor::new(MediaType::DOCKER_LAYER_GZIP, digest, size);
        Ok((out, WrittenLayer { descriptor, diff_id: self.diff.finish() }))
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

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.diff.update(bytes);
        self.out.write_all(bytes)
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
