//! The files of a container's logs: `ATTEMPT.log`, then `ATTEMPT.log.1` and so on, and `ATTEMPT.lock`.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one attempt.
#[derive(Clone, Debug)]
pub(super) struct LogFiles {
    directory: PathBuf,
    attempt: u32,
}

impl LogFiles {
    pub(super) fn new(directory: &Path, attempt: u32) -> Self {
        Self { directory: directory.to_owned(), attempt }
    }

    pub(super) fn path(&self, sequence: u64) -> PathBuf {
        let name = match sequence {
            0 => format!("{}.log", self.attempt),
            sequence => format!("{}.log.{sequence}", self.attempt),
        };
        self.directory.join(name)
    }

    fn lock_path(&self) -> PathBuf {
        self.directory.join(format!("{}.lock", self.attempt))
    }

    /// The numbers of the files that are there, the oldest first.
    pub(super) fn sequences(&self) -> io::Result<Vec<u64>> {
        let mut sequences = Vec::new();
        for (attempt, sequence) in list_files(&self.directory)? {
            if let (true, Some(sequence)) = (attempt == self.attempt, sequence) {
                sequences.push(sequence);
            }
        }
        sequences.sort_unstable();
        Ok(sequences)
    }

    /// Locks the attempt for a writer. The file has its name only when it is locked, so that a reader never takes
    /// a writer that is about to begin for one that ended.
    pub(super) fn lock(&self) -> io::Result<File> {
        let path = self.lock_path();
        let beginning = path.with_extension("lock.new");
        let file = fs_err::File::create(&beginning)?.into_parts().0;
        file.lock()?;
        fs_err::rename(&beginning, &path)?;
        Ok(file)
    }

    /// Whether a writer lives that may still write.
    pub(super) fn has_writer(&self) -> io::Result<bool> {
        let file = match fs_err::File::open(self.lock_path()) {
            Ok(file) => file.into_parts().0,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether an attempt of a container has a log, from the container's directory.
pub fn has_log(directory: &Path, attempt: u32) -> io::Result<bool> {
    Ok(!LogFiles::new(directory, attempt).sequences()?.is_empty())
}

/// Removes what is left of attempts before this one.
pub(super) fn remove_attempts_before(directory: &Path, oldest_kept: u32) -> io::Result<()> {
    for (attempt, sequence) in list_files(directory)? {
        if attempt < oldest_kept {
            let files = LogFiles::new(directory, attempt);
            fs_err::remove_file(
                sequence.map_or_else(|| files.lock_path(), |number| files.path(number)),
            )?;
        }
    }
    Ok(())
}

/// Attempts and numbers of the log files in a directory, and of lock files, which have none.
fn list_files(directory: &Path) -> io::Result<Vec<(u32, Option<u64>)>> {
    let mut found = Vec::new();
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(parse_name));
    }
    Ok(found)
}

fn parse_name(name: &str) -> Option<(u32, Option<u64>)> {
    let (attempt, rest) = name.split_once('.')?;
    let attempt = attempt.parse().ok()?;
    match rest {
        "log" => Some((attempt, Some(0))),
        "lock" => Some((attempt, None)),
        other => Some((attempt, Some(other.strip_prefix("log.")?.parse().ok()?))),
    }
}
