//! Space that is taken while there is some, to be given up on a full disk.

use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = "log.reserve";
/// Its size: the most that clearing the write-ahead log away adds to the database, which is done at
/// 1,000 pages of 4 kB, and a batch.
const SIZE: usize = 5 << 20;
/// Commits between two looks at whether it is there: a log that is only read needs none.
const LOOK_EVERY: u32 = 64;

/// A file that nothing is read from.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    commits: u32,
}

impl Reserve {
    pub(super) fn at(directory: &Path) -> Self {
        Self { path: directory.join(NAME), commits: 0 }
    }

    /// Takes the space now and then, if it is not taken. Half of it is none.
    pub(super) fn keep_filled(&mut self) {
        self.commits = self.commits.wrapping_add(1);
        let is_there = || fs_err::metadata(&self.path).is_ok_and(|file| file.len() == SIZE as u64);
        if self.commits.is_multiple_of(LOOK_EVERY) && !is_there() && self.fill().is_err() {
            self.release();
        }
    }

    fn fill(&self) -> std::io::Result<()> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = fs_err::OpenOptions::new();
        options.options_mut().mode(0o600);
        let mut file = options.write(true).create(true).truncate(true).open(&self.path)?;
        file.write_all(&vec![0; SIZE])
    }

    /// Gives the space up.
    pub(super) fn release(&self) {
        let _ = fs_err::remove_file(&self.path);
    }
}
