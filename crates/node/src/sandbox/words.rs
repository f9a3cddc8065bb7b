//! What a container says of its end, in a file that it finds for that, or else in its log.

use super::because;
use super::supervisor::Supervisor;
use crate::logs::read_last_lines;
use fs_err as fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Bytes of the file that are told, as kubelets do it.
const FILE_BYTES_MAX: u64 = 4_096;
/// Lines of the log and bytes of them that are told instead.
const LOG_LINES_MAX: u64 = 80;
const LOG_BYTES_MAX: usize = 2_048;

/// Makes an empty file in the directory of a run, which every user of the container may write to.
pub(super) fn make_last_words(node: &Supervisor, directory: &Path) -> Result<PathBuf, String> {
    let file = directory.join("words");
    let root = node.ids.outside(0);
    fs::write(&file, "")
        .and_then(|()| chown(&file, Some(root), Some(root)))
        .and_then(|()| fs::set_permissions(&file, PermissionsExt::from_mode(0o666)))
        .map_err(because("make a file for last words"))?;
    Ok(file)
}

/// Where the last words of a run are.
pub(super) struct FoundWords {
    /// The file for them.
    pub(super) file: Option<PathBuf>,
    /// The directory of its log, if that counts.
    pub(super) log: Option<PathBuf>,
}

impl FoundWords {
    /// What was said. What cannot be read is nothing.
    pub(super) fn read_words(&self, attempt: u32, has_failed: bool) -> Option<String> {
        let file = self.file.as_ref().and_then(|file| read_end(file).ok());
        let said = file.filter(|said| !said.is_empty());
        let log = self.log.as_ref().filter(|_| said.is_none() && has_failed);
        let log =
            log.and_then(|log| read_last_lines(log, attempt, LOG_LINES_MAX, LOG_BYTES_MAX).ok());
        said.or(log).filter(|said| !said.is_empty())
    }
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(FILE_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{LogSource, LogWriter};

    #[test]
    fn the_file_counts_before_the_log_and_the_log_only_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let (file, log) = (directory.path().join("words"), directory.path().join("log"));
        let mut writer = LogWriter::open(&log, 2).unwrap();
        for number in 0..200 {
            writer
                .write(
                    LogSource::Stderr,
                    format!("line {number:03} {}\n", "x".repeat(40)).as_bytes(),
                )
                .unwrap();
        }
        writer.finish().unwrap();
        let words = FoundWords { file: Some(file.clone()), log: Some(log) };
        assert_eq!(words.read_words(2, false), None);
        let told = words.read_words(2, true).unwrap();
        assert!(
            told.len() <= LOG_BYTES_MAX
                && told.ends_with(&format!("line 199 {}\n", "x".repeat(40)))
        );
        assert_eq!(words.read_words(1, true), None, "of another run");
        fs::write(&file, "").unwrap();
        assert!(words.read_words(2, true).is_some(), "an empty file says nothing");
        fs::write(&file, format!("{}the end", "y".repeat(5_000))).unwrap();
        let told = words.read_words(2, true).unwrap();
        assert_eq!((told.len(), told.ends_with("ythe end")), (4_096, true));
        let silent = FoundWords { log: None, ..words };
        fs::remove_file(&file).unwrap();
        assert_eq!(silent.read_words(2, true), None);
    }
}
