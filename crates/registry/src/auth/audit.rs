//! The audit log: one line of JSON for everything that changes something and everything that is
//! refused. Credentials have no field here, so they cannot get in.

use super::users::private_file;
use crate::access::Record;
use crate::calendar::timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The file in the data directory.
pub const AUDIT_FILE: &str = "audit.log";
/// Bytes of a log after which a new one is begun, unless told otherwise.
pub(super) const SIZE_MAX: u64 = 64 << 20;
/// Logs of before that are kept: `audit.log.1` is the youngest.
const KEPT: u32 = 5;
/// How often it is looked whether somebody moved the log away.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Lines that may wait for the disk; a request never waits for them.
const LINES_WAITING_MAX: usize = 4096;

/// Where lines go.
pub(super) struct Audit {
    lines: SyncSender<Vec<u8>>,
}

#[derive(Serialize)]
struct Line<'record> {
    time: String,
    who: &'record str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    what: &'record str,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<&'record str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'record str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'record str>,
    outcome: u16,
}

impl Audit {
    /// Opens the log of a data directory, and a thread that writes it.
    pub(super) fn open(directory: &Path, size_max: u64) -> io::Result<Self> {
        let mut log = Log::open(directory.join(AUDIT_FILE), size_max)?;
        let (lines, incoming) = sync_channel::<Vec<u8>>(LINES_WAITING_MAX);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            for line in incoming {
                // A full disk must not stop the registry; it refuses pushes by itself. A line that
                // cannot be written, for whatever reason, keeps none after it from being.
                let _ = catch_unwind(AssertUnwindSafe(|| log.write(&line)));
            }
        })?;
        Ok(Self { lines })
    }

    /// Writes one line, soon.
    pub(super) fn record(&self, record: &Record<'_>, now: u64) {
        let line = Line {
            time: timestamp(now),
            who: if record.who.is_empty() { "anonymous" } else { record.who },
            peer: record.peer.map(|peer| peer.to_string()),
            what: record.what,
            repository: record.repository,
            reference: record.reference,
            digest: record.digest,
            outcome: record.status,
        };
        if let Ok(mut bytes) = serde_json::to_vec(&line) {
            bytes.push(b'\n');
            let _ = self.lines.try_send(bytes);
        }
    }
}

/// The file, which is begun anew when it is large, and when somebody moved it away.
struct Log {
    path: PathBuf,
    file: File,
    size_max: u64,
    looked: Instant,
}

impl Log {
    fn open(path: PathBuf, size_max: u64) -> io::Result<Self> {
        let file = private_file(&path)?;
        Ok(Self { path, file, size_max, looked: Instant::now() })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.looked = Instant::now();
            self.reopen_if_moved()?;
        }
        if self.file.metadata()?.len().saturating_add(line.len() as u64) > self.size_max {
            self.rotate()?;
        }
        self.file.write_all(line)
    }

    /// Programs that look after logs move them away and expect a new one.
    fn reopen_if_moved(&mut self) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let there = fs_err::metadata(&self.path).ok();
        if there.is_none_or(|it| (it.dev(), it.ino()) != (ours.dev(), ours.ino())) {
            self.file = private_file(&self.path)?;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let old = |number: u32| self.path.with_extension(format!("log.{number}"));
        for number in (1..KEPT).rev().filter(|number| old(*number).exists()) {
            fs_err::rename(old(number), old(number.saturating_add(1)))?;
        }
        fs_err::rename(&self.path, old(1))?;
        self.file = private_file(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_makes_room_and_a_moved_one_is_begun_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(AUDIT_FILE);
        let read = |name: &str| fs_err::read_to_string(directory.path().join(name)).unwrap();
        let mut log = Log::open(path.clone(), 10).unwrap();
        for number in 0..8 {
            log.write(format!("line {number}\n").as_bytes()).unwrap();
        }
        assert_eq!(
            (read("audit.log"), read("audit.log.1")),
            ("line 7\n".into(), "line 6\n".into())
        );
        assert_eq!(read("audit.log.5"), "line 2\n");
        assert!(!directory.path().join("audit.log.6").exists());
        fs_err::rename(&path, directory.path().join("elsewhere")).unwrap();
        log.reopen_if_moved().unwrap();
        log.write(b"new\n").unwrap();
        assert_eq!((read("elsewhere"), read("audit.log")), ("line 7\n".into(), "new\n".into()));
    }
}
