//! One package of the cache: written document by document, read the same way.

use super::files::{self, OBJECTS, RECORD, TEXTS};
use super::{CacheError, IsCancelled};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use oci::Digest;
use oci::digest::{Algorithm, Hasher};
use plan::revision::desired::prepared;
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use xpkg::Limits;
use xpkg::open::{self, OpenError, Opened};
use yaml::{DuplicateKeys, Node, Options, RawDocument};

/// What a document says is kept if it is at most so many times as long as its text. Aliases can make
/// it thousands of times as long; such documents are parsed again when they are needed, and a disk
/// is not filled by a small package.
const GROWTH_MAX: usize = 4;
/// What stands before each document.
const SEPARATOR: &[u8] = b"---\n";

/// Where a member of a file is, and what it must be.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Member {
    /// The byte of the file it begins at.
    at: u64,
    /// How many bytes it has once it is expanded.
    size: u64,
    /// Their digest.
    digest: String,
}

/// What is kept of a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    /// The line of the package it begins at.
    line: u32,
    /// Its text, in the one file.
    text: Member,
    /// What it says, in the other; nothing if it cannot be parsed or is too long.
    object: Option<Member>,
}

/// The format of the files of a package. One of another format is damaged to this version, and is fetched again.
const FORMAT: u32 = 1;

/// What vouches for the files.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    /// Files from before there was this field have the first format.
    #[serde(default = "first_format")]
    format: u32,
    documents: Vec<Document>,
}

fn first_format() -> u32 {
    1
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
    Stack(stack::StreamError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<OpenError> for WriteError {
    fn from(error: OpenError) -> Self {
        Self::Package(error)
    }
}

impl From<stack::StreamError> for WriteError {
    fn from(error: stack::StreamError) -> Self {
        Self::Stack(error)
    }
}

/// A package that is on the disk and has no name yet.
pub(super) struct Written {
    texts: Growing,
    objects: Growing,
    record: Record,
    opened: Opened,
    /// Of all documents together.
    pub(super) digest: Digest,
}

/// A file that members are added to.
struct Growing {
    file: tempfile::NamedTempFile,
    size: u64,
}

impl Growing {
    fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { file: files::partial(directory)?, size: 0 })
    }

    fn add(&mut self, packed: &Packed) -> io::Result<Member> {
        self.file.write_all(&packed.bytes)?;
        let member = Member { at: self.size, size: packed.size, digest: packed.digest.clone() };
        self.size += packed.bytes.len() as u64;
        Ok(member)
    }
}

/// Bytes that were made a gzip member.
struct Packed {
    bytes: Vec<u8>,
    size: u64,
    digest: String,
}

impl Packed {
    fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(bytes)?;
        let (size, digest) = (bytes.len() as u64, Digest::of(bytes).to_string());
        Ok(Self { bytes: member.finish()?, size, digest })
    }
}

/// Writes a package's stream, one gzip member per document; parses and checks it on the way, and
/// writes what each document says beside it.
pub(super) fn write(
    directory: &Path,
    reader: impl Read,
    limits: &Limits,
    is_cancelled: IsCancelled<'_>,
) -> Result<Written, WriteError> {
    let (mut texts, mut objects) = (Growing::new(directory)?, Growing::new(directory)?);
    let mut documents = Vec::new();
    let mut whole = Hasher::new(Algorithm::Sha256);
    let make = |document: &RawDocument, node: Option<&Node<'_>>| {
        let mut bytes = SEPARATOR.to_vec();
        bytes.extend_from_slice(document.text.as_bytes());
        if !document.text.ends_with('\n') {
            bytes.push(b'\n');
        }
        let object = node.map(|node| prepared(node.to_json()));
        let object = object.filter(|object| object.len() <= bytes.len() * GROWTH_MAX);
        let object = object.map(|object| Packed::new(object.as_bytes()));
        Ok((document.line, Packed::new(&bytes)?, object.transpose()?, bytes))
    };
    let take = |made: io::Result<(u32, Packed, Option<Packed>, Vec<u8>)>| {
        let (line, text, object, bytes) = made?;
        whole.update(&bytes);
        let object = object.map(|object| objects.add(&object)).transpose()?;
        documents.push(Document { line, text: texts.add(&text)?, object });
        Ok::<_, WriteError>(())
    };
    let opened = open::read_with(reader, limits, make, take, is_cancelled)?;
    Ok(Written {
        texts,
        objects,
        record: Record { format: FORMAT, documents },
        opened,
        digest: whole.finish(),
    })
}

impl Written {
    /// Gives it its name; the record comes last.
    pub(super) fn keep(self, directory: &Path, digest: &Digest) -> io::Result<Contents> {
        let at = |end: &str| directory.join(format!("{}.{end}", digest.hex()));
        let record = serde_json::to_vec(&self.record).map_err(io::Error::other)?;
        files::adopt(self.texts.file, &at(TEXTS))?;
        files::adopt(self.objects.file, &at(OBJECTS))?;
        files::write(&at(RECORD), &record)?;
        Ok(Contents { digest: digest.clone(), opened: self.opened, record: self.record })
    }
}

impl Contents {
    /// Reads all of a package and keeps what is to be known of it.
    pub(super) fn read(
        directory: &Path,
        digest: &Digest,
        limits: &Limits,
        is_cancelled: IsCancelled<'_>,
    ) -> Result<Self, CacheError> {
        let disk = |source| CacheError::Disk { directory: directory.to_owned(), source };
        let damaged = || CacheError::Damaged { digest: digest.clone() };
        let record = match fs_err::read(directory.join(format!("{}.{RECORD}", digest.hex()))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CacheError::Absent { digest: digest.clone() });
            }
            record => record.map_err(disk)?,
        };
        let record: Record = serde_json::from_slice(&record).map_err(|_| damaged())?;
        if record.format != FORMAT {
            return Err(damaged());
        }
        let mut file = match open_file(directory, digest, TEXTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged()),
            file => file.map_err(disk)?,
        };
        let (mut offset, documents) = (0, record.documents.iter().enumerate());
        let documents = documents.map(|(index, Document { line, text, .. })| {
            let text = read_text(&mut file, text).map_err(|_| damaged())?;
            let read = RawDocument { line: *line, offset, index, text };
            offset += read.text.len() as u64;
            Ok::<_, CacheError>(read)
        });
        let opened = open::check(documents, limits, |_, _| (), |()| Ok(()), is_cancelled)?;
        Ok(Self { digest: digest.clone(), opened, record })
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.record.documents.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.record.documents.is_empty()
    }

    /// What a document says to the API server, as JSON that something can be laid over.
    pub(super) fn document(
        &self,
        directory: &Path,
        index: usize,
        limits: &Limits,
    ) -> Result<String, CacheError> {
        let damaged = || CacheError::Damaged { digest: self.digest.clone() };
        let bad = |why: String| CacheError::Document {
            digest: self.digest.clone(),
            document: index + 1,
            why,
        };
        let document = self.record.documents.get(index);
        let document = document.ok_or_else(|| bad("there is no such document".to_owned()))?;
        if let Some(object) = document.object.as_ref().and_then(|one| self.object(directory, one)) {
            return Ok(object);
        }
        let mut file = open_file(directory, &self.digest, TEXTS).map_err(|_| damaged())?;
        let text = read_text(&mut file, &document.text).map_err(|_| damaged())?;
        let options = Options { duplicate_keys: DuplicateKeys::LastWins };
        let node = yaml::parse_with(&text, document.line, &limits.yaml, options);
        node.map(|node| prepared(node.to_json())).map_err(|error| bad(error.to_string()))
    }

    /// What a document said when it was parsed. Nothing is lost if that is: the text is there.
    fn object(&self, directory: &Path, object: &Member) -> Option<String> {
        let mut file = open_file(directory, &self.digest, OBJECTS).ok()?;
        String::from_utf8(expand(&mut file, object).ok()?).ok()
    }
}

fn open_file(directory: &Path, digest: &Digest, end: &str) -> io::Result<BufReader<fs_err::File>> {
    let file = fs_err::File::open(directory.join(format!("{}.{end}", digest.hex())))?;
    Ok(BufReader::new(file))
}

/// The bytes of a member, which are what they were when they were written.
fn expand(file: &mut BufReader<fs_err::File>, member: &Member) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(member.at))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file).take(member.size + 1).read_to_end(&mut bytes)?;
    if Digest::of(&bytes).to_string() != member.digest {
        return Err(changed());
    }
    Ok(bytes)
}

/// A document's text, without what stands before it.
fn read_text(file: &mut BufReader<fs_err::File>, member: &Member) -> io::Result<String> {
    let mut bytes = expand(file, member)?;
    if bytes.starts_with(SEPARATOR) {
        bytes.drain(..SEPARATOR.len());
    }
    String::from_utf8(bytes).map_err(|_| changed())
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the bytes have changed")
}
