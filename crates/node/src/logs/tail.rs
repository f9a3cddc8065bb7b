//! Where the last lines of a log begin, found from its end.

use super::LogSource;
use super::files::LogFiles;
use super::record::LogRecord;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// What is read at once.
const BLOCK_BYTES: u64 = 64 << 10;

/// A place in an attempt's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct LogPosition {
    pub(super) sequence: u64,
    pub(super) offset: u64,
}

/// Where to begin so that no more than `lines` lines follow. A line that was written in parts is one.
pub(super) fn find_last_lines(
    files: &LogFiles,
    lines: u64,
    source: Option<LogSource>,
) -> io::Result<LogPosition> {
    let mut start = None;
    let mut found = 0_u64;
    let mut is_last = true;
    for sequence in files.sequences()?.into_iter().rev() {
        let mut reader = match LinesBackwards::open(files, sequence) {
            Ok(reader) => reader,
            // It was old enough to be removed meanwhile, and so were those before it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        let mut at = start.unwrap_or(LogPosition { sequence, offset: reader.end() });
        while let Some((offset, line)) = reader.previous_line()? {
            let Some(record) = LogRecord::parse(line) else {
                continue;
            };
            if source.is_some_and(|wanted| wanted != record.source) {
                continue;
            }
            if !record.is_partial || is_last {
                if found == lines {
                    return Ok(at);
                }
                found = found.saturating_add(1);
            }
            is_last = false;
            at = LogPosition { sequence, offset };
        }
        start = Some(at);
    }
    Ok(start.unwrap_or_default())
}

/// The whole lines of a file, the last one first.
struct LinesBackwards {
    file: File,
    /// Bytes of the file that come before `rest`.
    before: u64,
    /// Lines that were read and not yet given.
    rest: Vec<u8>,
    /// The line that was given last.
    line: Vec<u8>,
}

impl LinesBackwards {
    /// Ends before a line that is not whole, for it is being written.
    fn open(files: &LogFiles, sequence: u64) -> io::Result<Self> {
        let file = fs_err::File::open(files.path(sequence))?.into_parts().0;
        let before = file.metadata()?.len();
        let mut lines = Self { file, before, rest: Vec::new(), line: Vec::new() };
        while lines.last_newline(lines.rest.len()).is_none() && lines.read_before()? {}
        let whole = lines.last_newline(lines.rest.len()).map_or(0, |at| at.saturating_add(1));
        lines.rest.truncate(whole);
        Ok(lines)
    }

    /// Where the last line that was not given yet ends.
    fn end(&self) -> u64 {
        self.before.saturating_add(self.rest.len() as u64)
    }

    fn last_newline(&self, end: usize) -> Option<usize> {
        self.rest.iter().take(end).rposition(|byte| *byte == b'\n')
    }

    /// Reads the block before what is there; `false` if there is none.
    fn read_before(&mut self) -> io::Result<bool> {
        let size = self.before.min(BLOCK_BYTES);
        if size == 0 {
            return Ok(false);
        }
        let start = self.before.saturating_sub(size);
        let mut block = Vec::new();
        self.file.seek(SeekFrom::Start(start))?;
        (&mut self.file).take(size).read_to_end(&mut block)?;
        if block.len() as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        block.append(&mut self.rest);
        (self.rest, self.before) = (block, start);
        Ok(true)
    }

    /// The line before, without its newline, and where it begins.
    fn previous_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        // `rest` ends with a newline from here on, or is empty.
        loop {
            let content = self.rest.len().saturating_sub(1);
            let newline = self.last_newline(content);
            if newline.is_none() && self.read_before()? {
                continue;
            }
            if self.rest.is_empty() {
                return Ok(None);
            }
            let start = newline.map_or(0, |at| at.saturating_add(1));
            self.line.clear();
            self.line.extend(self.rest.drain(start..).take(content.saturating_sub(start)));
            return Ok(Some((self.end(), &self.line)));
        }
    }
}
