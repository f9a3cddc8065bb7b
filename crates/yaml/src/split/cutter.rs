//! The rules of splitting, line by line, for whoever has lines.

use super::{Limits, SplitError};

/// Where a document that is worth keeping starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) offset: u64,
    pub(super) index: usize,
}

/// What a line does to the document being read.
#[derive(Debug)]
pub(super) enum Cut {
    /// The line belongs to it.
    Continues,
    /// The line ends it; nothing if there is nothing in it worth keeping.
    Separator(Option<Place>),
}

/// Counts lines, bytes and documents, and knows a separator when it sees one.
#[derive(Debug)]
pub(super) struct Cutter {
    limits: Limits,
    /// The line to come, from 1.
    pub(super) next_line: u32,
    /// The byte to come.
    offset: u64,
    /// Documents kept so far.
    index: usize,
    /// Where the document being read starts.
    start_line: u32,
    start_offset: u64,
    /// Whether it says anything.
    speaks: bool,
}

impl Cutter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            next_line: 1,
            offset: 0,
            index: 0,
            start_line: 1,
            start_offset: 0,
            speaks: false,
        }
    }

    /// The bytes of the byte order mark to skip, if this is the start of the stream and has one.
    pub(super) fn byte_order_mark(&mut self, start: &[u8]) -> usize {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.offset > 0 || !start.starts_with(MARK) {
            return 0;
        }
        self.offset = MARK.len() as u64;
        self.start_offset = self.offset;
        MARK.len()
    }

    /// How many bytes more the document may have.
    pub(super) fn room(&self) -> u64 {
        let length = self.offset - self.start_offset;
        self.limits.document_bytes_max.saturating_sub(length)
    }

    /// Takes in one line, its line break included.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Cut, SplitError> {
        let kind = kind(line);
        let number = self.next_line;
        self.next_line = number.saturating_add(1);
        self.offset += line.len() as u64;
        match kind {
            Kind::Separator => Ok(Cut::Separator(self.finish())),
            Kind::NoSeparator(rest) => Err(SplitError::Separator { line: number, rest }),
            Kind::Silent => self.check_length(),
            Kind::Content => {
                if !self.speaks {
                    self.speaks = true;
                    self.check_count()?;
                }
                self.check_length()
            }
        }
    }

    /// Ends the document being read and starts the next.
    pub(super) fn finish(&mut self) -> Option<Place> {
        let place = Place { line: self.start_line, offset: self.start_offset, index: self.index };
        self.start_line = self.next_line;
        self.start_offset = self.offset;
        if !std::mem::take(&mut self.speaks) {
            return None;
        }
        self.index += 1;
        Some(place)
    }

    /// The error for a document past its limit.
    pub(super) fn too_large(&self) -> SplitError {
        SplitError::DocumentTooLarge {
            index: self.index,
            line: self.start_line,
            limit: self.limits.document_bytes_max,
        }
    }

    /// The error for a stream that broke off.
    pub(super) fn unreadable(&self, source: std::io::Error) -> SplitError {
        let line = self.next_line.saturating_sub(1);
        SplitError::Read { line, source }
    }

    fn check_length(&self) -> Result<Cut, SplitError> {
        if self.offset - self.start_offset > self.limits.document_bytes_max {
            return Err(self.too_large());
        }
        Ok(Cut::Continues)
    }

    fn check_count(&self) -> Result<(), SplitError> {
        let limit = self.limits.documents_max;
        if self.index >= limit {
            return Err(SplitError::TooManyDocuments { line: self.start_line, limit });
        }
        Ok(())
    }
}

/// What a line is, on its own.
enum Kind {
    Separator,
    /// Starts like a separator, followed by this.
    NoSeparator(String),
    /// Empty, a comment, or a marker: says nothing.
    Silent,
    Content,
}

fn kind(line: &[u8]) -> Kind {
    // Nearly every line is decided by the first bytes that are no spaces; only rare ones need a
    // look at Unicode's other spaces.
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    match &line[spaces..] {
        [] => return Kind::Silent,
        [first, ..] if first.is_ascii_alphanumeric() => return Kind::Content,
        [b'-', second, ..] if *second != b'-' => return Kind::Content,
        _ => {}
    }
    let Ok(line) = std::str::from_utf8(line) else {
        // The document as a whole will be refused, with the exact line.
        return Kind::Content;
    };
    if let Some(rest) = line.strip_prefix("---") {
        let rest = rest.trim();
        return if rest.is_empty() || rest.starts_with('#') {
            Kind::Separator
        } else {
            Kind::NoSeparator(rest.chars().take(40).collect())
        };
    }
    let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    match line.trim_start() {
        "" | "---" | "..." => Kind::Silent,
        text if text.starts_with('#') => Kind::Silent,
        _ => Kind::Content,
    }
}
