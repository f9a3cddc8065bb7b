//! One package of the cache: written document by document, read the same way.

use super::{CacheError, files};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use oci::Digest;
use oci::digest::{Algorithm, Hasher};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use xpkg::Limits;
use xpkg::open::{self, OpenError, Opened};
use yaml::{DuplicateKeys, Options, SplitError};

/// What stands before each document.
const SEPARATOR: &[u8] = b"---\n";

/// Where a document is, and what it must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    /// The byte of the file its member begins at.
    at: u64,
    /// How many bytes it has once it is expanded.
    size: u64,
    /// Their digest.
    digest: String,
}

/// What vouches for a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    documents: Vec<Document>,
}

/// What is known about a package without its bytes.
#[derive(Clone, Debug)]
pub struct Contents {
    /// What it is kept under.
    pub digest: Digest,
    /// What its documents are called, what its metadata says, and what is wrong with them.
    pub opened: Opened,
    record: Record,
}

/// Why a package was not written.
#[derive(Debug)]
pub(super) enum WriteError {
    Disk(io::Error),
    Package(OpenError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A package that is on the disk and has no name yet.
pub(super) struct Written {
    file: tempfile::NamedTempFile,
    record: Record,
    /// Of all documents together.
    pub(super) digest: Digest,
}

/// Writes a package's stream, one gzip member per document.
pub(super) fn write(
    directory: &Path,
    reader: impl Read,
    limits: &Limits,
) -> Result<Written, WriteError> {
    let mut file = files::partial(directory)?;
    let (mut documents, mut at) = (Vec::new(), 0);
    let mut whole = Hasher::new(Algorithm::Sha256);
    for document in yaml::split::stream(reader, &limits.yaml) {
        let text = document.map_err(|error| WriteError::Package(unreadable(error)))?.text;
        let mut bytes = SEPARATOR.to_vec();
        bytes.extend_from_slice(text.as_bytes());
        if !text.ends_with('\n') {
            bytes.push(b'\n');
        }
        whole.update(&bytes);
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(&bytes)?;
        let member = member.finish()?;
        file.write_all(&member)?;
        let digest = Digest::of(&bytes).to_string();
        documents.push(Document { at, size: bytes.len() as u64, digest });
        at += member.len() as u64;
    }
    Ok(Written { file, record: Record { documents }, digest: whole.finish() })
}

/// An error of what is read, which is not the disk's.
fn unreadable(error: SplitError) -> OpenError {
    match error {
        SplitError::Read { source, .. } => match source.downcast::<OpenError>() {
            Ok(ours) => ours,
            Err(other) => OpenError::Layer(oci::layer::LayerError::from_io(other)),
        },
        other => OpenError::Split(other),
    }
}

impl Written {
    /// Gives it its name; the record comes last.
    pub(super) fn keep(self, directory: &Path, digest: &Digest) -> io::Result<()> {
        let at = |end: &str| directory.join(format!("{}.{end}", digest.hex()));
        let record = serde_json::to_vec(&self.record).map_err(io::Error::other)?;
        files::adopt(self.file, &at("gz"))?;
        files::write(&at("json"), &record)
    }
}

impl Contents {
    /// Reads all of a package and keeps what is to be known of it.
    pub(super) fn read(
        directory: &Path,
        digest: &Digest,
        limits: &Limits,
    ) -> Result<Self, CacheError> {
        let disk = |source| CacheError::Disk { directory: directory.to_owned(), source };
        let damaged = || CacheError::Damaged { digest: digest.clone() };
        let record = match fs_err::read(directory.join(format!("{}.json", digest.hex()))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CacheError::Absent { digest: digest.clone() });
            }
            record => record.map_err(disk)?,
        };
        let record: Record = serde_json::from_slice(&record).map_err(|_| damaged())?;
        let file = match open_file(directory, digest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged()),
            file => file.map_err(disk)?,
        };
        let members = Members { file, record: &record, next: 0, rest: io::Cursor::new(Vec::new()) };
        match open::read(members, limits) {
            Ok(opened) => Ok(Self { digest: digest.clone(), opened, record }),
            Err(OpenError::Layer(_) | OpenError::Split(SplitError::Read { .. })) => Err(damaged()),
            Err(error) => Err(CacheError::Package(error)),
        }
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.record.documents.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.record.documents.is_empty()
    }

    /// One document, parsed as the API server would.
    pub(super) fn document(
        &self,
        directory: &Path,
        index: usize,
        limits: &Limits,
    ) -> Result<Json, CacheError> {
        let damaged = || CacheError::Damaged { digest: self.digest.clone() };
        let bad = |why: String| CacheError::Document {
            digest: self.digest.clone(),
            document: index + 1,
            why,
        };
        let document = self.record.documents.get(index);
        let document = document.ok_or_else(|| bad("there is no such document".to_owned()))?;
        let mut file = open_file(directory, &self.digest).map_err(|_| damaged())?;
        let bytes = member(&mut file, document).map_err(|_| damaged())?;
        let text = bytes.strip_prefix(SEPARATOR).unwrap_or(&bytes);
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        let options = Options { duplicate_keys: DuplicateKeys::LastWins };
        let node = yaml::parse_with(text, 1, &limits.yaml, options);
        node.map(|node| node.to_json()).map_err(|error| bad(error.to_string()))
    }
}

fn open_file(directory: &Path, digest: &Digest) -> io::Result<BufReader<fs_err::File>> {
    let file = fs_err::File::open(directory.join(format!("{}.gz", digest.hex())))?;
    Ok(BufReader::new(file))
}

/// One document's bytes, which are what they were when they were written.
fn member(file: &mut BufReader<fs_err::File>, document: &Document) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(document.at))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file).take(document.size + 1).read_to_end(&mut bytes)?;
    if Digest::of(&bytes).to_string() != document.digest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the bytes have changed"));
    }
    Ok(bytes)
}

/// All documents, one after the other, each checked before a byte of it is given.
struct Members<'a> {
    file: BufReader<fs_err::File>,
    record: &'a Record,
    next: usize,
    rest: io::Cursor<Vec<u8>>,
}

impl Read for Members<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.rest.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(document) = self.record.documents.get(self.next) else { return Ok(0) };
            self.rest = io::Cursor::new(member(&mut self.file, document)?);
            self.next += 1;
        }
    }
}
