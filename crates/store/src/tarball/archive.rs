//! A tar file as a map from names to spans of bytes.
//!
//! The archive is walked once, without reading contents. Links (Docker 25 writes layers twice,
//! the second time as a link) are followed in the map, never on the disk.

use crate::ByteStream;
use crate::error::{ArchiveFault, Cause, Unsupported};
use crate::files::{blocking, open_regular};
use bytes::Bytes;
use futures::{StreamExt, stream};
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const ENTRIES_MAX: usize = 100_000;
const LINKS_MAX: usize = 8;
/// The longest extension header: a name, or a few records.
const NOTE_SIZE_MAX: u64 = 64 << 10;
/// The longest name that is kept.
const NAME_LENGTH_MAX: usize = 4096;
const CHUNK_SIZE: u64 = 256 << 10;

/// Where an entry's bytes lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

#[derive(Debug)]
enum Entry {
    File(Span),
    Link(String),
}

/// A tar file, walked once.
#[derive(Debug)]
pub(crate) struct Archive {
    file: Mutex<fs_err::File>,
    entries: HashMap<String, Entry>,
}

impl Archive {
    /// Walks the archive.
    pub(crate) fn open(path: &Path) -> Result<Self, Cause> {
        let mut file = open_regular(path)?;
        refuse_compressed(&mut file)?;
        let size = file.metadata()?.len();
        let entries = walk(&mut file, size)?;
        Ok(Self { file: Mutex::new(file), entries })
    }

    /// Where the bytes of a name lie.
    pub(crate) fn find(&self, name: &str) -> Option<Span> {
        let mut name = normalise(name);
        for _ in 0..LINKS_MAX {
            match self.entries.get(&name)? {
                Entry::File(span) => return Some(*span),
                Entry::Link(target) => name.clone_from(target),
            }
        }
        None
    }

    /// All bytes of a small entry, if it is there.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Cause> {
        let Some(span) = self.find(name) else {
            return Ok(None);
        };
        if span.size > limit {
            return Err(Cause::TooLarge { what: format!("archive entry `{name}`"), limit });
        }
        self.read_at(span.offset, span.size).map(Some)
    }

    /// Some bytes from anywhere.
    pub(crate) fn read_at(&self, offset: u64, size: u64) -> Result<Vec<u8>, Cause> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        (&mut *file).take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == size {
            Ok(bytes)
        } else {
            Err(Cause::Io(io::ErrorKind::UnexpectedEof.into()))
        }
    }

    /// The bytes of a span, piece by piece, each asked for when the last was taken.
    pub(crate) fn stream(this: &Arc<Self>, span: Span) -> ByteStream {
        let state = (Arc::clone(this), span);
        let pieces = stream::try_unfold(state, |(archive, span)| async move {
            if span.size == 0 {
                return Ok(None);
            }
            let count = span.size.min(CHUNK_SIZE);
            let reader = Arc::clone(&archive);
            let bytes = blocking(move || reader.read_at(span.offset, count))
                .await
                .map_err(Cause::into_io)?;
            let rest = Span { offset: span.offset + count, size: span.size - count };
            Ok(Some((Bytes::from(bytes), (archive, rest))))
        });
        pieces.boxed()
    }
}

/// The name as a key: no leading `./` or `/`.
fn normalise(name: &str) -> String {
    name.trim_start_matches("./").trim_start_matches('/').to_owned()
}

/// `target` as written in a symbolic link at `name`, resolved to a key.
fn resolve(name: &str, target: &str) -> String {
    if target.starts_with('/') {
        return normalise(target);
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn refuse_compressed(file: &mut fs_err::File) -> Result<(), Cause> {
    let mut magic = Vec::new();
    (&mut *file).take(6).read_to_end(&mut magic)?;
    file.rewind()?;
    let compression = match magic.as_slice() {
        [0x1f, 0x8b, ..] => "gzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [b'B', b'Z', b'h', ..] => "bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
        _ => return Ok(()),
    };
    Err(ArchiveFault::Compressed(compression).into())
}

fn walk(file: &mut fs_err::File, size: u64) -> Result<HashMap<String, Entry>, Cause> {
    let mut entries = HashMap::new();
    let mut notes = Notes::default();
    let mut archive = tar::Archive::new(file);
    // Raw, because otherwise long names are read whole, however long they say they are.
    for (count, entry) in archive.entries_with_seek()?.raw(true).enumerate() {
        if count >= ENTRIES_MAX {
            return Err(ArchiveFault::Entries(ENTRIES_MAX).into());
        }
        // The library's words are about its own blocks and headers.
        let mut entry = entry.map_err(|_| ArchiveFault::NotTar)?;
        if notes.take_note(&mut entry)? {
            continue;
        }
        let Notes { name, link } = std::mem::take(&mut notes);
        let name = name.unwrap_or_else(|| lossy(&entry.path_bytes()));
        let link = link.or_else(|| entry.link_name_bytes().map(|link| lossy(&link)));
        let name = normalise(&name);
        if name.len().max(link.as_ref().map_or(0, String::len)) > NAME_LENGTH_MAX {
            return Err(name_too_large(NAME_LENGTH_MAX as u64));
        }
        let found = match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                Entry::File(span(&entry, &name, size)?)
            }
            tar::EntryType::Symlink => Entry::Link(resolve(&name, &link.unwrap_or_default())),
            tar::EntryType::Link => Entry::Link(normalise(&link.unwrap_or_default())),
            _ => continue,
        };
        entries.insert(name, found);
    }
    Ok(entries)
}

fn span<R: Read>(entry: &tar::Entry<'_, R>, name: &str, size: u64) -> Result<Span, ArchiveFault> {
    let span = Span { offset: entry.raw_file_position(), size: entry.size() };
    match span.offset.checked_add(span.size) {
        Some(end) if end <= size => Ok(span),
        _ => Err(ArchiveFault::Truncated(name.to_owned())),
    }
}

/// What extension headers said about the entry that follows them.
#[derive(Default)]
struct Notes {
    name: Option<String>,
    link: Option<String>,
}

impl Notes {
    /// Reads an extension header; `false` if the entry is an ordinary one.
    fn take_note<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>) -> Result<bool, Cause> {
        match entry.header().entry_type() {
            tar::EntryType::GNULongName => self.name = Some(lossy(&read_note(entry)?)),
            tar::EntryType::GNULongLink => self.link = Some(lossy(&read_note(entry)?)),
            tar::EntryType::XHeader => self.take_pax(&read_note(entry)?)?,
            tar::EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_pax(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        for record in tar::PaxExtensions::new(bytes) {
            let record = record?;
            match record.key_bytes() {
                b"path" => self.name = Some(lossy(record.value_bytes())),
                b"linkpath" => self.link = Some(lossy(record.value_bytes())),
                // Only sizes a plain header cannot say are said here.
                b"size" => return Err(Unsupported::Huge("an entry".to_owned()).into()),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_note<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Vec<u8>, Cause> {
    let mut bytes = Vec::new();
    entry.take(NOTE_SIZE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > NOTE_SIZE_MAX {
        return Err(name_too_large(NOTE_SIZE_MAX));
    }
    Ok(bytes)
}

fn name_too_large(limit: u64) -> Cause {
    let what = "the name of an archive entry".to_owned();
    Cause::TooLarge { what, limit }
}

/// GNU ends long names with a NUL byte.
fn lossy(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_as_names() {
        assert_eq!(resolve("abc/layer.tar", "../def/layer.tar"), "def/layer.tar");
        assert_eq!(resolve("a", "../../../etc/passwd"), "etc/passwd");
        assert_eq!(resolve("a/b", "/c"), "c");
        assert_eq!(normalise("./manifest.json"), "manifest.json");
    }
}
