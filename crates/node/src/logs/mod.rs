//! What programs print, kept within limits, and read as kubectl asks.
//!
//! ```text
//!   pipes ─► LogWriter ─► DIRECTORY/3.log 3.log.1 … 3.log.6 (the newest; older ones are removed) ─► read_log
//! ```
//!
//! A container has a directory, and each of its runs (attempts) files in it. Each line is one record as the
//! container runtime interface has it: `2026-11-19T01:02:03.000000004Z stdout F text`. A line longer than
//! [`LINE_BYTES_MAX`] is several records, all but the last marked `P`. Files are never renamed: the next one
//! has the next number, so that a reader always knows which one follows.
//!
//! A writer holds a lock for as long as it lives, however it ends. By that readers who follow know that
//! nothing will come any more.

mod files;
mod reader;
mod record;
mod tail;
mod writer;

pub use files::has_log;
pub use reader::{read_last_lines, read_log};
pub use writer::LogWriter;

use k8s_openapi::jiff::Timestamp;

/// The bytes of a line that are kept together, and so in memory.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// A file that has as many bytes is followed by the next one.
pub const LOG_FILE_BYTES_MAX: u64 = 10 << 20;
/// How many files of an attempt are kept.
pub const LOG_FILES_MAX: u64 = 5;

/// Which of a program's outputs a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogSource {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What of a log is asked for, in kubectl's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on until the program ended.
    pub follow: bool,
    /// Begin each line with its time.
    pub timestamps: bool,
    /// No lines from before.
    pub since: Option<Timestamp>,
    /// No more than so many lines from the end.
    pub tail_lines: Option<u64>,
    /// End after so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only what came from there.
    pub source: Option<LogSource>,
}

#[cfg(test)]
mod tests;
