//! Files out of Git: one commit is fetched, and those of its files that are wanted are laid down.
//!
//! What a repository says is a stranger's, and `git` is a program with many ways out. So it is told
//! to speak to one server by one protocol, with no configuration of a user and nothing to ask; it never
//! checks anything out. The tree is read as a list, held to limits, and the files are written here: no
//! hooks, filters, submodules or large files of others take part.
//!
//! The room refuses to know what a package is (the caller says which files are wanted, and how many bytes
//! they may have), the environment and the terminal. Start with [`fetch_files`].

mod program;
mod tree;

use oci::{GitSource, Identifier, Reference};
use program::GitProgram;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How Git is reached.
#[derive(Clone, Debug)]
pub struct GitAccess {
    /// Where programs are looked for.
    pub path: OsString,
    /// Proxies, as variables that `git` reads.
    pub proxies: Vec<(&'static str, String)>,
    /// Where temporary files may be put.
    pub temporary: PathBuf,
    /// Certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Why a fetch is to be given up, if it is.
    pub interruption: fn() -> Option<String>,
}

/// Which files of a commit are laid down.
#[derive(Clone, Copy, Debug)]
pub struct WantedFiles {
    /// Whether a file of this path is one.
    pub is_wanted: fn(&str) -> bool,
    /// How many bytes all of them may have.
    pub bytes_max: u64,
}

/// Why there are no files.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct GitError {
    /// What could not be done.
    pub message: String,
    /// Why, in the words of the program or the system.
    pub why: Option<String>,
    /// What to do about it.
    pub hint: &'static str,
}

impl GitError {
    fn because(message: impl Into<String>, hint: &'static str, why: impl Into<String>) -> Self {
        Self { message: message.into(), why: Some(why.into()), hint }
    }
}

/// A commit whose files lie in a directory that goes when this does.
#[derive(Debug)]
pub struct Checkout {
    directory: TempDir,
    /// The commit, which says what every file was.
    pub commit: String,
    /// Submodules, which are not followed.
    pub submodules: Vec<String>,
}

impl Checkout {
    /// Where the files are.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("files")
    }
}

/// Fetches what a Git source names now.
pub fn fetch_files(
    reference: &Reference,
    wanted: WantedFiles,
    access: &GitAccess,
) -> Result<Checkout, GitError> {
    let (Some(source), Identifier::Tag(name)) =
        (reference.repository().git_source(), reference.identifier())
    else {
        return Err(GitError {
            message: format!("{reference} names bytes, and no branch, tag or commit"),
            why: None,
            hint: "name a commit: git+https://example.org/team/platform@COMMIT",
        });
    };
    let no_room = |error: std::io::Error| {
        let hint = "check the temporary directory";
        GitError::because("cannot prepare a directory", hint, error.to_string())
    };
    let directory = tempfile::Builder::new().prefix("apron-git-").tempdir_in(&access.temporary);
    let directory = directory.map_err(no_room)?;
    let git = GitProgram::find_program(access, directory.path(), &source.address)?;
    let commit = fetch_commit(&git, &source, name)?;
    let files = directory.path().join("files");
    fs_err::create_dir(&files).map_err(no_room)?;
    let submodules = write_wanted_files(&git, &source, &commit, wanted, &files)?;
    Ok(Checkout { directory, commit, submodules })
}

/// Fetches one commit without its past, and says which it is.
fn fetch_commit(git: &GitProgram, source: &GitSource, wanted: &str) -> Result<String, GitError> {
    let cannot = || format!("cannot fetch {wanted} of {}", source.address);
    let hint = "check the address and the ref; only what everybody may read can be fetched, \
                without redirects";
    git.create_repository()?;
    git.fetch_ref(&source.address, wanted).map_err(|why| GitError::because(cannot(), hint, why))?;
    let head = git.read_line(&["rev-parse", "--verify", "--end-of-options", "FETCH_HEAD^{commit}"]);
    let commit = head.map_err(|why| GitError::because(cannot(), "name a commit", why))?;
    if !oci::is_commit(&commit) || (oci::is_commit(wanted) && commit != wanted) {
        let hint = "name a commit, a branch or a tag";
        return Err(GitError::because(cannot(), hint, "what came is another commit"));
    }
    Ok(commit)
}

/// Writes the wanted files, and says which submodules there are.
fn write_wanted_files(
    git: &GitProgram,
    source: &GitSource,
    commit: &str,
    wanted: WantedFiles,
    to: &Path,
) -> Result<Vec<String>, GitError> {
    let place = match source.directory.as_str() {
        "" => format!("{commit}^{{tree}}"),
        directory => format!("{commit}:{directory}"),
    };
    let hint = "check the directory behind the two slashes, and what the commit has in it";
    tree::write_files(git, &place, wanted, to).map_err(|why| {
        GitError::because(
            format!("cannot read {} of {}", source.directory, source.address),
            hint,
            why,
        )
    })
}
