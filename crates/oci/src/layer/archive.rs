//! Walking a tar archive entry by entry, within limits.
//!
//! The `tar` crate decodes header fields; the walk is ours because long names and pax records
//! must be bounded before they are read into memory.

use super::{LayerError, Limits};
use std::io::{self, Read};
use tar::{EntryType, Header, PaxExtensions};

const BLOCK: usize = 512;
/// What one pax header may hold; real ones have a few hundred bytes.
const PAX_BYTES_MAX: u64 = 64 << 10;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Another name of a file; the target is cleaned like a path.
    HardLink(String),
    /// A symbolic link; the target is as written and never followed.
    Symlink(String),
    /// A device, a pipe or something newer.
    Special,
}

impl EntryKind {
    /// What messages call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File => "regular file",
            Self::Directory => "directory",
            Self::HardLink(_) => "hard link",
            Self::Symlink(_) => "symbolic link",
            Self::Special => "special file",
        }
    }
}

/// One entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, cleaned: no leading `/` or `./`, no `.` or `..` components.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of content.
    pub size: u64,
    /// What else a file system keeps about it.
    pub attributes: EntryAttributes,
}

/// What a file system keeps about an entry beside its content, as written; nothing of it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAttributes {
    /// Permission bits, and whatever else was written there.
    pub mode: u32,
    /// Its user.
    pub uid: u64,
    /// Its group.
    pub gid: u64,
    /// When it was changed last, in seconds since 1970.
    pub modified: u64,
}

/// An archive being read. [`Archive::next_entry`] moves to the next entry; reading from the
/// archive itself reads the current entry's content.
pub struct Archive<'a, R> {
    reader: Counted<R>,
    limits: &'a Limits,
    left: u64,
    padding: u64,
    entries: u64,
    names: u64,
    ended: bool,
}

/// What an archive has taken of its limits so far.
#[derive(Clone, Copy, Debug)]
pub struct LayerUse {
    /// Bytes of the archive.
    pub bytes: u64,
    /// Its entries.
    pub entries: u64,
    /// Bytes of their names and link targets.
    pub names: u64,
}

/// What extension headers give to the entry behind them.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    modified: Option<u64>,
}

impl<'a, R: Read> Archive<'a, R> {
    /// Starts at the first entry of uncompressed archive bytes.
    pub fn new(reader: R, limits: &'a Limits) -> Self {
        Self {
            reader: Counted { reader, count: 0 },
            limits,
            left: 0,
            padding: 0,
            entries: 0,
            names: 0,
            ended: false,
        }
    }

    /// What was read so far, counted as the limits count.
    pub fn used(&self) -> LayerUse {
        LayerUse { bytes: self.reader.count, entries: self.entries, names: self.names }
    }

    /// The next entry, or `None` at the end of the archive.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, LayerError> {
        let mut extended = Extended::default();
        while let Some(header) = self.next_header()? {
            match header.entry_type() {
                EntryType::GNULongName => {
                    extended.path = Some(self.small_content(self.limits.path_bytes_max)?);
                }
                EntryType::GNULongLink => {
                    extended.link = Some(self.small_content(self.limits.path_bytes_max)?);
                }
                EntryType::XHeader => self.read_pax(&mut extended)?,
                EntryType::XGlobalHeader => {}
                _ => return self.entry(&header, extended).map(Some),
            }
        }
        Ok(None)
    }

    fn next_header(&mut self) -> Result<Option<Header>, LayerError> {
        self.skip_content()?;
        if self.ended {
            return Ok(None);
        }
        let mut block = [0_u8; BLOCK];
        if !read_block(&mut self.reader, &mut block)? || block.iter().all(|byte| *byte == 0) {
            self.ended = true;
            // Whatever follows the end is padding; reading it lets a compressed stream check itself.
            io::copy(&mut self.reader, &mut io::sink()).map_err(LayerError::from_io)?;
            return Ok(None);
        }
        self.entries += 1;
        if self.entries > self.limits.entries_max {
            let limit = self.limits.entries_max;
            return Err(LayerError::Limit { name: "entries_max", limit, unit: "entries" });
        }
        let header = checked_header(&block)?;
        let size = header.entry_size().map_err(|_| LayerError::Malformed("bad entry size"))?;
        let size = content_size(&header, size);
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        let padded = padded.ok_or(LayerError::Malformed("bad entry size"))?;
        (self.left, self.padding) = (size, padded - size);
        Ok(Some(header))
    }

    fn skip_content(&mut self) -> Result<(), LayerError> {
        let wanted = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.reader).take(wanted), &mut io::sink())
            .map_err(LayerError::from_io)?;
        // The last block's padding may be missing; content may not.
        if skipped < self.left {
            return Err(LayerError::Truncated);
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    fn small_content(&mut self, max: u64) -> Result<Vec<u8>, LayerError> {
        if self.left > max {
            return Err(LayerError::Limit { name: "path_bytes_max", limit: max, unit: "bytes" });
        }
        let mut content = Vec::new();
        self.read_to_end(&mut content).map_err(LayerError::from_io)?;
        while content.last() == Some(&0) {
            content.pop();
        }
        Ok(content)
    }

    fn read_pax(&mut self, extended: &mut Extended) -> Result<(), LayerError> {
        let content = self.small_content(PAX_BYTES_MAX)?;
        for record in PaxExtensions::new(&content) {
            let record = record.map_err(|_| LayerError::Malformed("bad pax record"))?;
            match record.key_bytes() {
                b"path" => extended.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => extended.link = Some(record.value_bytes().to_vec()),
                b"size" => {
                    let size = record.value().ok().and_then(|text| text.parse().ok());
                    extended.size = Some(size.ok_or(LayerError::Malformed("bad pax size"))?);
                }
                b"uid" => extended.uid = pax_number(&record),
                b"gid" => extended.gid = pax_number(&record),
                b"mtime" => extended.modified = pax_number(&record),
                key if key.starts_with(b"GNU.sparse") => {
                    return Err(LayerError::Malformed("sparse files are not supported"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn entry(&mut self, header: &Header, extended: Extended) -> Result<Entry, LayerError> {
        let attributes = attributes(header, &extended);
        // Two sizes for one entry are how archives are made to mean different things to
        // different readers.
        if extended.size.is_some_and(|size| size != self.left) {
            return Err(LayerError::Malformed("the pax size differs from the header's"));
        }
        let name = extended.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let name = self.text(name)?;
        let path = clean(&name).ok_or_else(|| LayerError::Traversal(name.clone()))?;
        let target = match header.entry_type() {
            EntryType::Symlink | EntryType::Link => {
                let plain = || header.link_name_bytes().map(std::borrow::Cow::into_owned);
                self.text(extended.link.or_else(plain).unwrap_or_default())?
            }
            _ => String::new(),
        };
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous if name.ends_with('/') => {
                EntryKind::Directory
            }
            EntryType::Regular | EntryType::Continuous => EntryKind::File,
            EntryType::Directory => EntryKind::Directory,
            EntryType::Symlink => EntryKind::Symlink(target),
            EntryType::Link => {
                let outside =
                    || LayerError::LinkOutside { path: path.clone(), target: target.clone() };
                EntryKind::HardLink(clean(&target).ok_or_else(outside)?)
            }
            EntryType::GNUSparse => {
                return Err(LayerError::Malformed("sparse files are not supported"));
            }
            _ => EntryKind::Special,
        };
        Ok(Entry { path, kind, size: self.left, attributes })
    }

    fn text(&mut self, bytes: Vec<u8>) -> Result<String, LayerError> {
        let length = bytes.len() as u64;
        self.names = self.names.saturating_add(length);
        for (used, limit, name) in [
            (length, self.limits.path_bytes_max, "path_bytes_max"),
            (self.names, self.limits.names_bytes_max, "names_bytes_max"),
        ] {
            if used > limit {
                let unit = "bytes";
                return Err(LayerError::Limit { name, limit, unit });
            }
        }
        // Names need not be UTF-8; one that is not cannot be the one anybody looks for.
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

impl<R: Read> Read for Archive<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.reader.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(LayerError::Truncated.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// A number of a pax record; times have fractions, which are left out.
fn pax_number(record: &tar::PaxExtension<'_>) -> Option<u64> {
    record.value().ok()?.split('.').next()?.parse().ok()
}

/// Fields that cannot be read are as an ordinary file of root has them: most readers look for content only.
fn attributes(header: &Header, extended: &Extended) -> EntryAttributes {
    EntryAttributes {
        mode: header.mode().unwrap_or(0o644),
        uid: extended.uid.or_else(|| header.uid().ok()).unwrap_or(0),
        gid: extended.gid.or_else(|| header.gid().ok()).unwrap_or(0),
        modified: extended.modified.or_else(|| header.mtime().ok()).unwrap_or(0),
    }
}

/// Links and directories have no content, whatever size their header claims.
fn content_size(header: &Header, size: u64) -> u64 {
    match header.entry_type() {
        EntryType::Link
        | EntryType::Symlink
        | EntryType::Directory
        | EntryType::Char
        | EntryType::Block
        | EntryType::Fifo => 0,
        _ => size,
    }
}

/// Fills a block; `false` if there is none, an error if there is part of one.
fn read_block(reader: &mut impl Read, block: &mut [u8]) -> Result<bool, LayerError> {
    let mut filled = 0;
    while filled < block.len() {
        match reader.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(LayerError::Truncated),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(LayerError::from_io(error)),
        }
    }
    Ok(true)
}

fn checked_header(block: &[u8; BLOCK]) -> Result<Header, LayerError> {
    let header = Header::from_byte_slice(block).clone();
    let sum: u32 = block[..148].iter().chain(&block[156..]).map(|byte| u32::from(*byte)).sum();
    let spaces = 8 * u32::from(b' ');
    match header.cksum() {
        Ok(expected) if expected == sum + spaces => Ok(header),
        _ => Err(LayerError::Malformed("a header's checksum is wrong")),
    }
}

/// Cleans a path; `None` if it climbs out of the archive.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}
