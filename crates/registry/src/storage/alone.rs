//! One process at a time in a data directory.

use super::content::files::Files;
use super::content::private;
use crate::error::OpenError;
use std::fs::{File, TryLockError};

/// Nobody else has the directory until this is dropped.
pub(super) struct Alone(File);

impl Alone {
    pub(super) fn in_directory(files: &Files) -> Result<Self, OpenError> {
        let file = private::ensure(&files.lock())?.into_parts().0;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(files.root().to_owned())),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

impl Drop for Alone {
    /// Closing the file is not enough: a program that another thread is just starting has it
    /// open too, until it is a program of its own, and the lock would stay for as long.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_directory_is_free_at_once_while_programs_are_started() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::new(directory.path());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
            let refused = (0..20_000).filter(|_| Alone::in_directory(&files).is_err()).count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }
}
