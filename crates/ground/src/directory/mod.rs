//! A package directory on disk: the only place that walks one.

mod walk;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::io;
use std::path::{Path, PathBuf};
use walk::{Found, Walk};
use xpkg::glob::Glob;
use xpkg::source::{self, Selection, SkippedFile};

/// Which files of a directory make up a package.
#[derive(Clone, Debug, Default)]
pub struct Selecting {
    /// Patterns of what to leave out.
    pub ignore: Vec<String>,
    /// Which links are followed.
    pub links: Links,
    /// The file that has to hold the metadata.
    pub metadata: Metadata,
    /// Directories whose files go elsewhere, if they are below the root.
    pub apart: Vec<PathBuf>,
    /// Whether patterns leave out no examples.
    pub keeps_examples: bool,
}

/// Which links to files are followed.
#[derive(Clone, Debug, Default)]
pub enum Links {
    #[default]
    /// None of them.
    None,
    /// Those that lead into the root, or into one of these.
    Into(Vec<PathBuf>),
}

/// Where the metadata has to be.
#[derive(Clone, Debug, Default)]
pub enum Metadata {
    /// In `crossplane.yaml` at the root.
    #[default]
    AtRoot,
    /// In this file, relative to the root.
    In(String),
    /// Anywhere, as upstream has it.
    Anywhere,
}

impl Metadata {
    /// The file, if it has to be one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::AtRoot => Some(source::METADATA_FILE),
            Self::In(file) => Some(file.trim_start_matches("./")),
            Self::Anywhere => None,
        }
    }
}

/// The files of a package, sorted, relative to its root.
pub struct Directory {
    root: PathBuf,
    examples_root: Option<PathBuf>,
    /// Files of the package.
    pub files: Vec<String>,
    /// Files of its examples, relative to their own root.
    pub examples: Vec<String>,
    /// What could have been among them, and was not taken.
    pub skipped: Vec<SkippedFile>,
}

impl Directory {
    /// Finds the files of a package.
    pub fn walk(root: &Path, examples: Option<&Path>, selecting: &Selecting) -> Outcome<Self> {
        check_root(root)?;
        let ignore = parse_patterns(&selecting.ignore)?;
        let walk = Walk::new(root, selecting);
        let examples_root = examples.filter(|path| path.is_dir()).map(Path::to_owned);
        let selection = Selection {
            examples: examples.and_then(|path| below(root, path)),
            apart: selecting.apart.iter().filter_map(|path| below(root, path)).collect(),
            ignore,
        };
        let mut found = walk.list(root)?;
        found.files.retain(|(path, size)| selection.takes(path, *size));
        let is_examples = |path: &str| {
            let examples = examples_root.as_ref().and_then(|path| path.canonicalize().ok());
            examples.is_some() && root.join(path).canonicalize().ok() == examples
        };
        found.skipped.retain(|one| selection.reaches(&one.path) && !is_examples(&one.path));
        let mut beside = match &examples_root {
            Some(path) => walk.list(path)?,
            None => Found::default(),
        };
        let shown = selection.examples.clone().unwrap_or_else(|| "examples".to_owned());
        for one in &mut beside.skipped {
            one.path = format!("{shown}/{}", one.path);
        }
        let is_ignored = |path: &str| !selecting.keeps_examples && selection.ignores(path);
        beside.skipped.retain(|one| !is_ignored(&one.path));
        beside.files.retain(|(path, size)| {
            source::is_yaml(path) && *size > 0 && !is_ignored(&format!("{shown}/{path}"))
        });
        found.files.iter().chain(&beside.files).try_for_each(check_size)?;
        let mut skipped = found.skipped;
        skipped.append(&mut beside.skipped);
        let (files, examples) = (sorted_names(found.files), sorted_names(beside.files));
        Self { root: root.to_owned(), examples_root, files, examples, skipped }.check_not_empty()
    }

    /// The bytes of a file of the package.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        interrupt::check()?;
        fs_err::read(self.root.join(path))
    }

    /// The bytes of an example.
    pub fn read_example(&self, path: &str) -> io::Result<Vec<u8>> {
        interrupt::check()?;
        fs_err::read(self.examples_root.as_deref().unwrap_or(&self.root).join(path))
    }

    fn check_not_empty(self) -> Outcome<Self> {
        if self.files.is_empty() && self.skipped.is_empty() {
            let place = self.root.display();
            return Err(Failure::new(
                format!("there are no YAML files in {place}, so there is no package"),
                "go to the directory that holds crossplane.yaml, or create a package with `apron init configuration NAME`",
            ));
        }
        Ok(self)
    }
}

/// All files of a directory that becomes a layer, sorted, with their sizes. What is no regular file
/// cannot be packed, and nothing is left out, so that is refused.
pub fn list_all(root: &Path) -> Outcome<Vec<(String, u64)>> {
    if !root.is_dir() {
        let message = format!("there is no directory {}", root.display());
        return Err(Failure::new(message, "name a directory with files to pack"));
    }
    let (files, skipped) = list_everything(root)?;
    if let Some(skipped) = skipped.first() {
        return Err(Failure::new(
            format!("{}/{} cannot be packed", root.display(), skipped.path),
            "put files with plain names there, and no links",
        ));
    }
    if files.is_empty() {
        let message = format!("there are no files in {}", root.display());
        return Err(Failure::new(message, "name a directory with files to pack"));
    }
    Ok(files)
}

/// Regular files with their sizes, sorted, and what is none.
type Everything = (Vec<(String, u64)>, Vec<SkippedFile>);

/// Everything below a directory.
pub fn list_everything(root: &Path) -> Outcome<Everything> {
    let Found { mut files, skipped } = Walk::of_everything().list(root)?;
    files.sort_by(|(left, _), (right, _)| source::order(left, right));
    Ok((files, skipped))
}

/// Where examples are unless another place is named. A link is followed there as little as elsewhere.
pub fn examples_below(root: &Path) -> Option<PathBuf> {
    Some(root.join("examples")).filter(|path| !path.is_symlink())
}

fn check_root(root: &Path) -> Outcome {
    let metadata = std::fs::metadata(root).map_err(|error| {
        let hint = "give the directory that holds crossplane.yaml";
        Failure::new(format!("there is no package directory {}", root.display()), hint)
            .because(&error)
    })?;
    if metadata.is_dir() {
        return Ok(());
    }
    Err(Failure::new(
        format!("{} is a file, not a package directory", root.display()),
        "give the directory that holds crossplane.yaml",
    ))
}

/// Refuses a file that no package could hold, before it is read.
fn check_size((path, size): &(String, u64)) -> Outcome {
    let limit = xpkg::Limits::default().package_bytes_max;
    if *size <= limit {
        return Ok(());
    }
    Err(Failure::new(
        format!("{path} is larger than the limit of {limit} bytes (package_bytes_max)"),
        "leave the file out with --ignore, or split the package into several",
    ))
}

fn parse_patterns(patterns: &[String]) -> Outcome<Vec<Glob>> {
    let globs = patterns.iter().map(|text| Glob::parse(text)).collect::<Result<Vec<_>, _>>();
    globs.map_err(|error| {
        Failure::new("cannot use --ignore", "write a literal `[` as `\\[`").because(&error)
    })
}

fn sorted_names(files: Vec<(String, u64)>) -> Vec<String> {
    let mut names: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
    names.sort_by(|left, right| source::order(left, right));
    names
}

/// Where `path` lies below `root`, if it does.
fn below(root: &Path, path: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let path = path.canonicalize().ok()?;
    let rest = path.strip_prefix(root).ok()?.to_str()?;
    Some(rest.to_owned()).filter(|rest| !rest.is_empty())
}

/// A name with exactly one extension of this kind.
pub fn with_extension(name: &str, extension: &str) -> String {
    match name.strip_suffix(&format!(".{extension}")) {
        Some(_) => name.to_owned(),
        None => format!("{name}.{extension}"),
    }
}
