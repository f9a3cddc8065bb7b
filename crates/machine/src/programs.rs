//! Programs of this machine.

use std::ffi::OsStr;
use std::path::PathBuf;

/// A program by its name, where `search` (the variable `PATH`) leads to one.
pub(crate) fn find_program(name: &str, search: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search).map(|path| path.join(name)).find(|path| path.is_file())
}
