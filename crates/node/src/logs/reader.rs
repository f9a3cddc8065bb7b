//! Reading a log forwards, over all of its files, for as long as it is written.

use super::files::LogFiles;
use super::record::LogRecord;
use super::tail::{LogPosition, find_last_lines};
use super::{LogOptions, LogSource};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use k8s_openapi::jiff::Timestamp;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// What is read, and so given, at once.
const CHUNK_BYTES: u64 = 64 << 10;
/// How often is looked whether there is more.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The log of an attempt of a container, from the container's directory, as kubectl asks for it. What was removed
/// because there is too much is missing at the beginning.
pub fn read_log(
    directory: &Path,
    attempt: u32,
    options: LogOptions,
) -> BoxStream<'static, io::Result<Bytes>> {
    let reader = LogReader::new(directory, attempt, options);
    stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        loop {
            let task = tokio::task::spawn_blocking(move || {
                let step = reader.read_step();
                (reader, step)
            });
            let (returned, step) = match task.await {
                Ok(finished) => finished,
                Err(error) => return Some((Err(io::Error::other(error)), None)),
            };
            reader = returned;
            match step {
                Ok(ReadStep::Text(text)) => return Some((Ok(text.into()), Some(reader))),
                Ok(ReadStep::Waiting) => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(ReadStep::Ended) => return None,
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
    .boxed()
}

/// The last lines of a log as it is now, and of those so many bytes at most, from the end.
pub fn read_last_lines(
    directory: &Path,
    attempt: u32,
    lines: u64,
    bytes_max: usize,
) -> io::Result<String> {
    let options = LogOptions { tail_lines: Some(lines), ..LogOptions::default() };
    let mut reader = LogReader::new(directory, attempt, options);
    let mut text = Vec::new();
    while let ReadStep::Text(more) = reader.read_step()? {
        text.extend(more);
        // A line may be as long as a log.
        text.drain(..text.len().saturating_sub(bytes_max));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What came of reading once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadStep {
    /// Some of the log.
    Text(Vec<u8>),
    /// There is nothing yet.
    Waiting,
    /// There will be nothing.
    Ended,
}

/// A log being read.
#[derive(Debug)]
pub(super) struct LogReader {
    files: LogFiles,
    options: LogOptions,
    /// The file being read, and where it is among the others.
    file: Option<File>,
    position: Option<LogPosition>,
    /// The beginning of a record whose end was not read yet.
    unread: Vec<u8>,
    /// Whether the next file was there before this one was read to its end, so that nothing is missed in this one.
    has_successor: bool,
    /// Whether the writer had ended before the file was read to its end.
    has_ended: bool,
    /// Whether what was given so far ends with a whole line.
    is_at_line_start: bool,
    /// Bytes that may still be given.
    left: Option<u64>,
}

impl LogReader {
    pub(super) fn new(directory: &Path, attempt: u32, options: LogOptions) -> Self {
        Self {
            files: LogFiles::new(directory, attempt),
            left: options.limit_bytes,
            options,
            file: None,
            position: None,
            unread: Vec::new(),
            has_successor: false,
            has_ended: false,
            is_at_line_start: true,
        }
    }

    /// Reads on until there is something to give or nothing to read.
    pub(super) fn read_step(&mut self) -> io::Result<ReadStep> {
        loop {
            if self.left == Some(0) {
                return Ok(ReadStep::Ended);
            }
            if self.file.is_none() && !self.open_next()? {
                if let Some(step) = self.look_for_end()? {
                    return Ok(step);
                }
                continue;
            }
            let mut chunk = Vec::new();
            if let Some(file) = &mut self.file {
                file.take(CHUNK_BYTES).read_to_end(&mut chunk)?;
            }
            if chunk.is_empty() {
                if let Some(step) = self.leave_file()? {
                    return Ok(step);
                }
                continue;
            }
            self.unread.append(&mut chunk);
            let text = self.take_records();
            if !text.is_empty() {
                return Ok(ReadStep::Text(text));
            }
        }
    }

    /// Opens the file that is to be read next; `false` if there is none yet.
    fn open_next(&mut self) -> io::Result<bool> {
        let wanted = match (self.position, self.options.tail_lines) {
            (Some(position), _) => position,
            (None, Some(lines)) => find_last_lines(&self.files, lines, self.options.source)?,
            (None, None) => LogPosition::default(),
        };
        self.position = Some(wanted);
        for sequence in self.files.sequences()? {
            if sequence < wanted.sequence {
                continue;
            }
            let offset = if sequence == wanted.sequence { wanted.offset } else { 0 };
            let mut file = match fs_err::File::open(self.files.path(sequence)) {
                Ok(file) => file.into_parts().0,
                // The writer removed it meanwhile, for there are enough that are newer.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            file.seek(SeekFrom::Start(offset))?;
            self.file = Some(file);
            self.position = Some(LogPosition { sequence, offset });
            self.has_successor = false;
            return Ok(true);
        }
        Ok(false)
    }

    /// At the end of a file: goes to the next one if there is one, and otherwise to whether there will be.
    fn leave_file(&mut self) -> io::Result<Option<ReadStep>> {
        let sequence = self.position.map_or(0, |position| position.sequence);
        if self.has_successor {
            self.file = None;
            self.unread.clear();
            self.position = Some(LogPosition { sequence: sequence.saturating_add(1), offset: 0 });
            return Ok(None);
        }
        // What is written last to this file is there before the next one is: it is read once more.
        self.has_successor = self.files.sequences()?.last().is_some_and(|last| *last > sequence);
        if self.has_successor { Ok(None) } else { self.look_for_end() }
    }

    /// Whether all was read. It is once nothing came after the writer had ended.
    fn look_for_end(&mut self) -> io::Result<Option<ReadStep>> {
        if self.has_ended || !self.options.follow {
            let has_writer = !self.has_ended && self.files.has_writer()?;
            let mut text = Vec::new();
            if !has_writer {
                // Nothing will complete it; whatever of it was written is given.
                let torn = std::mem::take(&mut self.unread);
                self.append_text(&torn, false, &mut text);
                self.cut_to_limit(&mut text);
            }
            self.left = Some(0);
            return Ok(Some(if text.is_empty() { ReadStep::Ended } else { ReadStep::Text(text) }));
        }
        if self.files.has_writer()? {
            return Ok(Some(ReadStep::Waiting));
        }
        self.has_ended = true;
        Ok(None)
    }

    /// What the whole records that were read are to a user.
    fn take_records(&mut self) -> Vec<u8> {
        let unread = std::mem::take(&mut self.unread);
        let mut text = Vec::new();
        let mut rest = unread.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.append_text(line, true, &mut text);
            rest = after.get(1..).unwrap_or_default();
        }
        self.unread = rest.to_vec();
        self.cut_to_limit(&mut text);
        text
    }

    fn append_text(&mut self, line: &[u8], is_whole: bool, text: &mut Vec<u8>) {
        let Some(record) = LogRecord::parse(line).filter(|record| self.is_wanted(record)) else {
            return;
        };
        if self.options.timestamps && self.is_at_line_start {
            text.extend_from_slice(record.time.as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(record.text);
        self.is_at_line_start = is_whole && !record.is_partial;
        if self.is_at_line_start {
            text.push(b'\n');
        }
    }

    fn is_wanted(&self, record: &LogRecord<'_>) -> bool {
        let is_late_enough = |since: Timestamp| record.timestamp().is_none_or(|time| time >= since);
        self.options.source.is_none_or(|wanted: LogSource| wanted == record.source)
            && self.options.since.is_none_or(is_late_enough)
    }

    fn cut_to_limit(&mut self, text: &mut Vec<u8>) {
        if let Some(left) = self.left {
            text.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.left = Some(left.saturating_sub(text.len() as u64));
        }
    }
}
