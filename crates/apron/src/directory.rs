//! A package directory on disk: the only place that walks one.

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::io;
use std::path::{Path, PathBuf};
use xpkg::glob::Glob;
use xpkg::source::{self, Selection};

/// How deep directories are walked; a bind mount into itself should not hang a build.
const DEPTH_MAX: usize = 64;

/// The files of a package, sorted, relative to its root.
pub(crate) struct Directory {
    root: PathBuf,
    examples_root: Option<PathBuf>,
    /// Files of the package.
    pub(crate) files: Vec<String>,
    /// Files of its examples, relative to their own root.
    pub(crate) examples: Vec<String>,
}

impl Directory {
    /// Finds the files of a package. Symbolic links are not followed.
    pub(crate) fn walk(root: &Path, examples: Option<&Path>, ignore: &[String]) -> Outcome<Self> {
        check_root(root)?;
        let ignore = ignore.iter().map(|text| Glob::parse(text)).collect::<Result<Vec<_>, _>>();
        let ignore = ignore.map_err(|error| {
            Failure::new("cannot use --ignore", "write a literal `[` as `\\[`").because(&error)
        })?;
        let examples_root = examples.filter(|path| path.is_dir()).map(Path::to_owned);
        let examples_below = examples.and_then(|path| below(root, path));
        let selection = Selection { examples: examples_below, ignore };
        let mut files = list(root)?;
        files.retain(|(path, size)| selection.takes(path, *size));
        let mut example_files = match &examples_root {
            Some(path) => list(path)?,
            None => Vec::new(),
        };
        let shown = selection.examples.clone().unwrap_or_else(|| "examples".to_owned());
        example_files.retain(|(path, size)| {
            source::is_yaml(path) && *size > 0 && !selection.ignores(&format!("{shown}/{path}"))
        });
        files.iter().chain(&example_files).try_for_each(check_size)?;
        let names = |files: Vec<(String, u64)>| {
            let mut names: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            names.sort_by(|left, right| source::order(left, right));
            names
        };
        let (files, examples) = (names(files), names(example_files));
        Self { root: root.to_owned(), examples_root, files, examples }.check_not_empty()
    }

    /// The bytes of a file of the package.
    pub(crate) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        interrupt::check()?;
        fs_err::read(self.root.join(path))
    }

    /// The bytes of an example.
    pub(crate) fn read_example(&self, path: &str) -> io::Result<Vec<u8>> {
        interrupt::check()?;
        fs_err::read(self.examples_root.as_deref().unwrap_or(&self.root).join(path))
    }

    fn check_not_empty(self) -> Outcome<Self> {
        if self.files.is_empty() {
            let place = self.root.display();
            return Err(Failure::new(
                format!("there are no YAML files in {place}, so there is no package"),
                "go to the directory that holds crossplane.yaml, or create a package with `apron init configuration NAME`",
            ));
        }
        Ok(self)
    }
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

/// All regular files below a directory, with their sizes.
fn list(root: &Path) -> Outcome<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), String::new(), 0)];
    while let Some((directory, prefix, depth)) = open.pop() {
        for entry in fs_err::read_dir(&directory).map_err(|error| Failure::file(&error))? {
            let entry = entry.map_err(|error| Failure::file(&error))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(|error| Failure::file(&error))?;
            if kind.is_dir() && name != ".git" && depth < DEPTH_MAX {
                open.push((entry.path(), format!("{path}/"), depth + 1));
            } else if kind.is_file() {
                let size = entry.metadata().map_err(|error| Failure::file(&error))?.len();
                found.push((path, size));
            }
        }
    }
    Ok(found)
}

/// Where `path` lies below `root`, if it does.
fn below(root: &Path, path: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    let path = path.canonicalize().ok()?;
    let rest = path.strip_prefix(root).ok()?.to_str()?;
    Some(rest.to_owned()).filter(|rest| !rest.is_empty())
}

/// A name with exactly one extension of this kind.
pub(crate) fn with_extension(name: &str, extension: &str) -> String {
    match name.strip_suffix(&format!(".{extension}")) {
        Some(_) => name.to_owned(),
        None => format!("{name}.{extension}"),
    }
}
