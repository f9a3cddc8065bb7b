//! The audit log: one line of JSON for everything that changes something and everything that is
//! refused. Credentials have no field here, so they cannot get in.

use super::users::private_file;
use crate::access::Record;
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

/// The file in the data directory.
pub const AUDIT_FILE: &str = "audit.log";
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
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let mut file = private_file(&directory.join(AUDIT_FILE))?;
        let (lines, incoming) = sync_channel::<Vec<u8>>(LINES_WAITING_MAX);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            for line in incoming {
                // A full disk must not stop the registry; it refuses pushes by itself.
                let _ = file.write_all(&line);
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

/// A moment as RFC 3339 writes it.
pub(super) fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that leap days come last (Howard Hinnant).
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_794_722_399), "2026-11-15T05:59:59Z");
        assert_eq!(timestamp(4_102_444_799), "2099-12-31T23:59:59Z");
    }
}
