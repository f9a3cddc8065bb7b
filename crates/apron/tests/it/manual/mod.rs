//! The manual (`docs/`): what its pages tell people to type is typed and compared with what they
//! show, and what its reference lists is held against the code.
//!
//! A page shows a command and what it prints in a `console` block, and a file to write in a block
//! with a title. `?` below a command stands for what is not written down yet: with `APRON_UPDATE=1`
//! the test that types the page fills it in.

mod help;
mod looks;
mod page;
mod reference;
mod server;
mod shells;
mod typed;
mod typist;

use crate::readme::repository;
use std::path::{Path, PathBuf};

/// Every page, those of folders too.
pub(crate) fn page_paths() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    gather_pages(&repository().join("docs"), &mut pages);
    pages.sort();
    pages
}

fn gather_pages(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather_pages(&path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

/// Whether pages are to be written, not compared.
fn is_updating() -> bool {
    std::env::var_os("APRON_UPDATE").is_some()
}
