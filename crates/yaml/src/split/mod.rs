//! A stream of YAML cut into documents, without parsing any.
//!
//! Kubernetes tools split first and parse later, by lines alone: a line that starts with `---`
//! ends a document, wherever it stands, a block scalar included. We do the same, so that a
//! package falls into the same documents everywhere. Only whitespace or a comment may follow the
//! `---`; `--- text`, which YAML would allow, is refused there and here.
//!
//! Documents that say nothing are left out: those whose every line is empty, a comment, or a
//! document marker. What remains is verbatim: no byte of it changed, and its place in the stream
//! known, so that an error in the fortieth document still names the line an editor shows.
//!
//! Two drivers feed the same rules line by line: [`stream`] reads a stream and holds one
//! document at a time; [`documents`] borrows from a text that is in memory anyway.

use std::io::{self, BufRead, BufReader, Read};

use super::Limits;

mod cutter;

use cutter::{Cut, Cutter, Place};

/// One document of a stream, verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawDocument {
    /// Its text, without the separators around it.
    pub text: String,
    /// The line of the stream its text starts at, from 1.
    pub line: u32,
    /// The byte of the stream its text starts at.
    pub offset: u64,
    /// How many documents came before it.
    pub index: usize,
}

/// One document of a text, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawDocumentRef<'a> {
    /// Its text, without the separators around it.
    pub text: &'a str,
    /// The line of the stream its text starts at, from 1.
    pub line: u32,
    /// The byte of the stream its text starts at.
    pub offset: u64,
    /// How many documents came before it.
    pub index: usize,
}

/// Why a stream cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum SplitError {
    /// The stream could not be read.
    #[error("cannot read the stream after line {line}")]
    Read {
        /// The last line read.
        line: u32,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The stream is not UTF-8 text.
    #[error("line {line} is not UTF-8 text")]
    NotUtf8 {
        /// The line of the first byte that is not.
        line: u32,
    },
    /// A line starts like a separator and goes on like content.
    #[error("line {line} starts with `---`, but more than a comment follows: `{rest}`")]
    Separator {
        /// The line.
        line: u32,
        /// What follows the dashes, shortened.
        rest: String,
    },
    /// A document has too many bytes.
    #[error(
        "document {} at line {line} is larger than the limit of {} (document_bytes_max)",
        index + 1,
        size(*limit)
    )]
    DocumentTooLarge {
        /// How many documents came before it.
        index: usize,
        /// The line it starts at.
        line: u32,
        /// The limit in bytes.
        limit: u64,
    },
    /// The stream has too many documents.
    #[error("line {line} starts more documents than the limit of {limit} (documents_max)")]
    TooManyDocuments {
        /// The line of the first document that is too many.
        line: u32,
        /// The limit.
        limit: usize,
    },
}

/// A separator may carry a comment this long past the limit of the document before it.
const SEPARATOR_BYTES_MAX: u64 = 4096;

/// What a new document's buffer starts with; documents of packages are of this order.
const BUFFER_BYTES: usize = 64 << 10;

/// Splits a stream, one document in memory at a time; an error ends the iteration.
pub fn stream<R: Read>(reader: R, limits: &Limits) -> Stream<R> {
    Stream {
        reader: BufReader::with_capacity(BUFFER_BYTES, reader),
        cutter: Cutter::new(limits),
        finished: false,
    }
}

/// Splits a text, borrowing every document from it; an error ends the iteration.
pub fn documents<'a>(text: &'a str, limits: &Limits) -> Documents<'a> {
    let mut cutter = Cutter::new(limits);
    let position = cutter.byte_order_mark(text.as_bytes());
    Documents { text, position, cutter, finished: false }
}

/// The documents of a stream; made by [`stream`].
#[derive(Debug)]
pub struct Stream<R> {
    reader: BufReader<R>,
    cutter: Cutter,
    finished: bool,
}

impl<R: Read> Iterator for Stream<R> {
    type Item = Result<RawDocument, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.finished {
            match self.read() {
                Ok(Some(document)) => return Some(Ok(document)),
                Ok(None) => {}
                Err(error) => {
                    self.finished = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl<R: Read> Stream<R> {
    /// Reads up to the next separator or the end; nothing if there was nothing to keep.
    fn read(&mut self) -> Result<Option<RawDocument>, SplitError> {
        let mut buffer = Vec::new();
        loop {
            let start = buffer.len();
            let line = self.read_line(&mut buffer, start)?;
            if line == 0 {
                self.finished = true;
                return raw(buffer, self.cutter.finish());
            }
            if let Cut::Separator(document) = self.cutter.line(&buffer[start..])? {
                buffer.truncate(start);
                return raw(buffer, document);
            }
        }
    }

    /// Appends one line and says how long it is; refuses one that goes far past the limit.
    fn read_line(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<usize, SplitError> {
        let room = self.cutter.room().saturating_add(SEPARATOR_BYTES_MAX);
        let mut limited = (&mut self.reader).take(room);
        let read = limited.read_until(b'\n', buffer);
        let read = read.map_err(|source| self.cutter.unreadable(source))?;
        if read as u64 == room && !buffer.ends_with(b"\n") {
            return Err(self.cutter.too_large());
        }
        let mark = self.cutter.byte_order_mark(&buffer[start..]);
        buffer.drain(start..start + mark);
        Ok(read - mark)
    }
}

/// A buffer as the document it holds, if it holds one.
fn raw(buffer: Vec<u8>, place: Option<Place>) -> Result<Option<RawDocument>, SplitError> {
    let Some(Place { line, offset, index }) = place else {
        return Ok(None);
    };
    match String::from_utf8(buffer) {
        Ok(text) => Ok(Some(RawDocument { text, line, offset, index })),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let lines = valid.split(|byte| *byte == b'\n').count() - 1;
            let lines = u32::try_from(lines).unwrap_or(u32::MAX);
            Err(SplitError::NotUtf8 { line: line.saturating_add(lines) })
        }
    }
}

/// The documents of a text; made by [`documents`].
#[derive(Debug)]
pub struct Documents<'a> {
    text: &'a str,
    position: usize,
    cutter: Cutter,
    finished: bool,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<RawDocumentRef<'a>, SplitError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.finished {
            match self.read() {
                Ok(Some(document)) => return Some(Ok(document)),
                Ok(None) => {}
                Err(error) => {
                    self.finished = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl<'a> Documents<'a> {
    /// Walks up to the next separator or the end; nothing if there was nothing to keep.
    fn read(&mut self) -> Result<Option<RawDocumentRef<'a>>, SplitError> {
        let start = self.position;
        loop {
            let rest = &self.text[self.position..];
            if rest.is_empty() {
                self.finished = true;
                let place = self.cutter.finish();
                return Ok(borrowed(&self.text[start..], place));
            }
            let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let end = self.position;
            self.position += length;
            if let Cut::Separator(place) = self.cutter.line(&rest.as_bytes()[..length])? {
                return Ok(borrowed(&self.text[start..end], place));
            }
        }
    }
}

/// A text as the document it is, if it is one.
fn borrowed(text: &str, place: Option<Place>) -> Option<RawDocumentRef<'_>> {
    place.map(|Place { line, offset, index }| RawDocumentRef { text, line, offset, index })
}

/// A number of bytes as people say it.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests;
