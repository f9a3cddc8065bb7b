//! Packages out of Git: one commit is fetched, and its files are laid down as they are.
//!
//! What a repository says is a stranger's, and `git` is a program with many ways out. So it is told
//! to speak to one server by one protocol, with no configuration of a user and nothing to ask; it never
//! checks anything out. The tree is read as a list, held to limits, and the files that can be part of a
//! package are written here: no hooks, filters, submodules or large files of others take part.

mod packages;
mod program;
mod tree;

pub(crate) use packages::{AllowedPlace, GitPackages, build_source};

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use oci::{GitSource, Identifier, Reference, Rules};
use program::GitProgram;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How Git is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitSettings {
    /// Where programs are looked for, proxies, and where temporary files may be put.
    pub(crate) environment: Settings,
    /// Certificate authorities to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

/// A commit whose files lie in a directory that goes when this does.
pub(crate) struct Checkout {
    directory: TempDir,
    /// The commit, which says what every file was.
    pub(crate) commit: String,
    /// Submodules, which are not followed.
    pub(crate) submodules: Vec<String>,
}

impl Checkout {
    /// Where the package is.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    /// Tells of what is not part of the package though the repository names it.
    pub(crate) fn warn_of_submodules(&self) {
        for path in &self.submodules {
            output::warn(format_args!("the submodule {path} is not followed"));
        }
    }
}

/// Reads a text as a Git source; nothing if it does not begin like one.
pub(crate) fn parse_source(text: &str) -> Outcome<Option<Reference>> {
    if !text.starts_with("git+") {
        return Ok(None);
    }
    let rules = Rules::weak().git_sources();
    let parsed = Reference::parse(text, &rules).map_err(|error| {
        Failure::new(
            format!("`{text}` is not a package in Git"),
            "a package in Git looks like git+https://example.org/team/platform//packages/app@v1.0.0",
        )
        .because(&error)
    })?;
    Ok(Some(parsed))
}

/// Fetches what a Git source names now.
pub(crate) fn fetch_source(reference: &Reference, settings: &GitSettings) -> Outcome<Checkout> {
    let (Some(source), Identifier::Tag(wanted)) =
        (reference.repository().git_source(), reference.identifier())
    else {
        return Err(Failure::new(
            format!("{reference} names bytes, and no branch, tag or commit"),
            "name a commit: git+https://example.org/team/platform@COMMIT",
        ));
    };
    let temporary = &settings.environment.temporary;
    let directory = tempfile::Builder::new().prefix("apron-git-").tempdir_in(temporary);
    let directory = directory.map_err(|error| Failure::file(&error))?;
    let git = GitProgram::find_program(settings, directory.path(), &source.address)?;
    let commit = fetch_commit(&git, &source, wanted)?;
    let files = directory.path().join("files");
    fs_err::create_dir(&files).map_err(|error| Failure::file(&error))?;
    let submodules = write_package_files(&git, &source, &commit, &files)?;
    Ok(Checkout { directory, commit, submodules })
}

/// Fetches one commit without its past, and says which it is.
fn fetch_commit(git: &GitProgram, source: &GitSource, wanted: &str) -> Outcome<String> {
    let cannot = || format!("cannot fetch {wanted} of {}", source.address);
    let hint = "check the address and the ref; only what everybody may read can be fetched, \
                without redirects";
    git.create_repository()?;
    git.fetch_ref(&source.address, wanted)
        .map_err(|why| with_cause(Failure::new(cannot(), hint), why))?;
    let head = git.read_line(&["rev-parse", "--verify", "--end-of-options", "FETCH_HEAD^{commit}"]);
    let commit = head.map_err(|why| with_cause(Failure::new(cannot(), "name a commit"), why))?;
    if !oci::is_commit(&commit) || (oci::is_commit(wanted) && commit != wanted) {
        let failure = Failure::new(cannot(), "name a commit, a branch or a tag");
        return Err(with_cause(failure, "what came is another commit".to_owned()));
    }
    Ok(commit)
}

/// Writes the files of the package, and says which submodules there are.
fn write_package_files(
    git: &GitProgram,
    source: &GitSource,
    commit: &str,
    to: &Path,
) -> Outcome<Vec<String>> {
    let place = match source.directory.as_str() {
        "" => format!("{commit}^{{tree}}"),
        directory => format!("{commit}:{directory}"),
    };
    let cannot = || format!("cannot read {} of {}", source.directory, source.address);
    let hint = "check the directory behind the two slashes, and what the commit has in it";
    tree::write_files(git, &place, to).map_err(|why| with_cause(Failure::new(cannot(), hint), why))
}

fn with_cause(mut failure: Failure, why: String) -> Failure {
    failure.causes.push(why);
    failure
}
