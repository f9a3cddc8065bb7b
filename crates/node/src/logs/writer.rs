//! Writing what a program prints, as it comes out of its pipes.

use super::files::{LogFiles, remove_attempts_before};
use super::record::append_record;
use super::{LINE_BYTES_MAX, LOG_FILE_BYTES_MAX, LOG_FILES_MAX, LogSource};
use k8s_openapi::jiff::Timestamp;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Records that are written in one go.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// How large files become, and how many are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) file_bytes_max: u64,
    pub(super) files_max: u64,
}

/// The log of one attempt of a container, being written.
#[derive(Debug)]
pub struct LogWriter {
    files: LogFiles,
    rotation: Rotation,
    sequence: u64,
    file: File,
    size: u64,
    /// The beginnings of lines whose ends have not come yet, by source.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Records that are to be written.
    batch: Vec<u8>,
    /// Whether the file may end within a record.
    is_torn: bool,
    /// Held as long as this lives.
    lock: File,
}

impl LogWriter {
    /// Begins the log of an attempt in a container's directory, which is made if need be. Logs of attempts before
    /// the previous one are removed. An attempt that has a log already goes on with it.
    pub fn open(directory: &Path, attempt: u32) -> io::Result<Self> {
        let rotation = Rotation { file_bytes_max: LOG_FILE_BYTES_MAX, files_max: LOG_FILES_MAX };
        Self::open_with(directory, attempt, rotation)
    }

    pub(super) fn open_with(
        directory: &Path,
        attempt: u32,
        rotation: Rotation,
    ) -> io::Result<Self> {
        fs_err::create_dir_all(directory)?;
        remove_attempts_before(directory, attempt.saturating_sub(1))?;
        let files = LogFiles::new(directory, attempt);
        let lock = files.lock()?;
        let sequence = files.sequences()?.last().copied().unwrap_or(0);
        let (mut file, size) = open_file(&files, sequence)?;
        let is_torn = size > 0 && !ends_with_newline(&mut file)?;
        let (stdout, stderr, batch) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { files, rotation, sequence, file, size, stdout, stderr, batch, is_torn, lock })
    }

    /// Takes what came out of a pipe now. Lines are written when they are whole; after an error, what was given is
    /// lost, and the next may be tried.
    pub fn write(&mut self, source: LogSource, bytes: &[u8]) -> io::Result<()> {
        self.write_at(source, bytes, Timestamp::now())
    }

    pub(super) fn write_at(
        &mut self,
        source: LogSource,
        mut bytes: &[u8],
        now: Timestamp,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let pending = self.pending(source);
            let room = LINE_BYTES_MAX.saturating_sub(pending.len());
            let line_end =
                bytes.iter().take(room.saturating_add(1)).position(|byte| *byte == b'\n');
            let taken = line_end.unwrap_or(room).min(bytes.len());
            let (text, rest) = bytes.split_at(taken);
            pending.extend_from_slice(text);
            let is_full = pending.len() >= LINE_BYTES_MAX;
            bytes = rest;
            if line_end.is_some() {
                bytes = rest.get(1..).unwrap_or_default();
                self.add_record(source, false, now)?;
            } else if is_full && !bytes.is_empty() {
                self.add_record(source, true, now)?;
            }
        }
        self.flush_batch()
    }

    /// Writes lines that did not end, because their pipes did. Dropping does it, too, but cannot tell errors.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_pending()
    }

    fn write_pending(&mut self) -> io::Result<()> {
        let now = Timestamp::now();
        for source in [LogSource::Stdout, LogSource::Stderr] {
            if !self.pending(source).is_empty() {
                self.add_record(source, true, now)?;
            }
        }
        self.flush_batch()
    }

    fn pending(&mut self, source: LogSource) -> &mut Vec<u8> {
        match source {
            LogSource::Stdout => &mut self.stdout,
            LogSource::Stderr => &mut self.stderr,
        }
    }

    fn add_record(
        &mut self,
        source: LogSource,
        is_partial: bool,
        now: Timestamp,
    ) -> io::Result<()> {
        let mut text = std::mem::take(self.pending(source));
        let before = self.batch.len();
        append_record(&mut self.batch, now, source, is_partial, &text);
        text.clear();
        *self.pending(source) = text;
        if self.would_overflow() && before > 0 {
            // This record is the first of the next file.
            let record = self.batch.split_off(before);
            let flushed = self.flush_batch();
            self.batch = record;
            flushed?;
        }
        if self.batch.len() >= BATCH_BYTES_MAX { self.flush_batch() } else { Ok(()) }
    }

    fn would_overflow(&self) -> bool {
        self.size.saturating_add(self.batch.len() as u64) > self.rotation.file_bytes_max
    }

    fn flush_batch(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.write_batch();
        self.batch.clear();
        // What was written of it, if anything, may end anywhere.
        self.is_torn = written.is_err();
        written
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.size > 0 && self.would_overflow() {
            self.rotate()?;
        }
        if self.is_torn {
            self.batch.insert(0, b'\n');
        }
        self.file.write_all(&self.batch)?;
        self.size = self.size.saturating_add(self.batch.len() as u64);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = self.sequence.saturating_add(1);
        let (file, size) = open_file(&self.files, next)?;
        (self.file, self.size, self.sequence, self.is_torn) = (file, size, next, false);
        let oldest_kept = next.saturating_add(1).saturating_sub(self.rotation.files_max);
        for sequence in self.files.sequences()? {
            if sequence < oldest_kept {
                fs_err::remove_file(self.files.path(sequence))?;
            }
        }
        Ok(())
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // There is nobody left to tell; `finish` is for those who want to know.
        let _ = self.write_pending();
        // Closing the file is not enough: a process that is being started has all descriptors for a moment.
        let _ = self.lock.unlock();
    }
}

fn open_file(files: &LogFiles, sequence: u64) -> io::Result<(File, u64)> {
    let mut options = fs_err::OpenOptions::new();
    let file = options.read(true).append(true).create(true).open(files.path(sequence))?;
    let size = file.metadata()?.len();
    Ok((file.into_parts().0, size))
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
