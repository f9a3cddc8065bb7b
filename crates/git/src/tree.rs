//! The files of a commit: listed, held to limits, and written.
//!
//! A tree of a few kilobytes can name a billion files, and the same file under a million names. The
//! list is read as it comes, and ends where a limit is met.

use crate::WantedFiles;
use crate::program::GitProgram;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};

/// Entries of a tree, of all kinds.
const ENTRIES_MAX: usize = 100_000;
/// The length of one entry: its mode, name and the rest.
const ENTRY_LENGTH_MAX: u64 = 8 << 10;
/// The length of what a link leads to.
const LINK_LENGTH_MAX: u64 = 4 << 10;

/// An entry of a tree that counts.
#[derive(Debug, PartialEq, Eq)]
struct TreeEntry {
    kind: TreeEntryKind,
    object: String,
    size: u64,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeEntryKind {
    File,
    Link,
    Submodule,
}

/// Writes the wanted files of a tree and its links, and says which submodules it has.
pub(crate) fn write_files(
    git: &GitProgram,
    place: &str,
    wanted: WantedFiles,
    to: &Path,
) -> Result<Vec<String>, String> {
    let entries = list_entries(git, place)?;
    refuse_paths_through_links(&entries)?;
    let mut objects = GitObjects::open(git)?;
    let files = entries
        .iter()
        .filter(|one| one.kind == TreeEntryKind::File && (wanted.is_wanted)(&one.path));
    let mut left = wanted.bytes_max;
    for file in files {
        let rest = left.checked_sub(file.size);
        let too_large = || format!("its files have more than {} bytes", wanted.bytes_max);
        left = rest.ok_or_else(too_large)?;
        let path = prepare_path(to, &file.path)?;
        fs_err::write(path, objects.read_entry(file)?).map_err(|error| error.to_string())?;
    }
    // Links are written last, so that nothing is ever written through one.
    for link in entries.iter().filter(|one| one.kind == TreeEntryKind::Link) {
        if link.size > LINK_LENGTH_MAX {
            return Err(format!("the link {} leads too far", link.path));
        }
        let target = String::from_utf8(objects.read_entry(link)?);
        let target = target.map_err(|_| format!("the link {} leads nowhere", link.path))?;
        let path = prepare_path(to, &link.path)?;
        fs_err::os::unix::fs::symlink(target, path).map_err(|error| error.to_string())?;
    }
    let submodules = entries.into_iter().filter(|one| one.kind == TreeEntryKind::Submodule);
    Ok(submodules.map(|one| one.path).collect())
}

fn list_entries(git: &GitProgram, place: &str) -> Result<Vec<TreeEntry>, String> {
    let mut listing = git.start_talk(&["ls-tree", "-r", "-z", "-l", "--full-tree", place])?;
    drop(listing.stdin.take());
    let output = listing.stdout.take().map(BufReader::new);
    let entries = output.map_or_else(|| Ok(Vec::new()), read_entries);
    if entries.is_err() {
        let _ = listing.kill();
    }
    let ended = listing.wait().map_err(|error| error.to_string())?;
    let entries = entries?;
    if ended.success() { Ok(entries) } else { Err("there is no such directory in it".to_owned()) }
}

fn read_entries(mut output: impl BufRead) -> Result<Vec<TreeEntry>, String> {
    let mut entries = Vec::new();
    for count in 0.. {
        let mut line = Vec::new();
        let read = output.by_ref().take(ENTRY_LENGTH_MAX).read_until(0, &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        if count >= ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} files"));
        }
        if line.pop() != Some(0) {
            return Err("a name in it is too long".to_owned());
        }
        entries.extend(parse_entry(line)?);
    }
    Ok(entries)
}

/// Reads `MODE TYPE OBJECT SIZE\tPATH`. Names that are no text are never wanted.
fn parse_entry(line: Vec<u8>) -> Result<Option<TreeEntry>, String> {
    let odd = || "what git lists of it cannot be read".to_owned();
    let Ok(line) = String::from_utf8(line) else { return Ok(None) };
    let (head, path) = line.split_once('\t').ok_or_else(odd)?;
    let mut words = head.split_ascii_whitespace();
    let mut next = || words.next().ok_or_else(odd);
    let (mode, _, object, size) = (next()?, next()?, next()?, next()?);
    let kind = match mode {
        "120000" => TreeEntryKind::Link,
        "160000" => TreeEntryKind::Submodule,
        _ => TreeEntryKind::File,
    };
    let components: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_plain = components.iter().all(|one| matches!(one, Component::Normal(_)));
    if !is_plain || components.is_empty() {
        return Err(format!("it has a file called {path:?}"));
    }
    let size = size.parse().unwrap_or(0);
    Ok(Some(TreeEntry { kind, object: object.to_owned(), size, path: path.to_owned() }))
}

/// Nothing lies behind a link in a sound tree.
fn refuse_paths_through_links(entries: &[TreeEntry]) -> Result<(), String> {
    let links = entries.iter().filter(|one| one.kind == TreeEntryKind::Link);
    let links: BTreeSet<&Path> = links.map(|one| Path::new(&one.path)).collect();
    for entry in entries {
        let path = Path::new(&entry.path);
        if path.ancestors().skip(1).any(|above| links.contains(above)) {
            return Err(format!("{} lies behind a link", entry.path));
        }
    }
    Ok(())
}

fn prepare_path(to: &Path, path: &str) -> Result<PathBuf, String> {
    let whole = to.join(path);
    if let Some(above) = whole.parent() {
        fs_err::create_dir_all(above).map_err(|error| error.to_string())?;
    }
    Ok(whole)
}

/// Objects of a repository, asked for one after the other.
struct GitObjects {
    child: Child,
    asking: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl GitObjects {
    fn open(git: &GitProgram) -> Result<Self, String> {
        let mut child = git.start_talk(&["cat-file", "--batch"])?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (asking, answers) = pipes.ok_or_else(|| "git cannot be talked to".to_owned())?;
        Ok(Self { child, asking, answers: BufReader::new(answers) })
    }

    /// The bytes of an entry, which are as many as its list said.
    fn read_entry(&mut self, entry: &TreeEntry) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| format!("cannot read {}: {error}", entry.path);
        writeln!(self.asking, "{}", entry.object).map_err(failed)?;
        self.asking.flush().map_err(failed)?;
        let mut head = String::new();
        self.answers.read_line(&mut head).map_err(failed)?;
        if head.trim_end() != format!("{} blob {}", entry.object, entry.size) {
            return Err(format!("{} is not what its list says: {}", entry.path, head.trim_end()));
        }
        let mut bytes = Vec::new();
        self.answers.by_ref().take(entry.size).read_to_end(&mut bytes).map_err(failed)?;
        let mut end = [0];
        self.answers.read_exact(&mut end).map_err(failed)?;
        Ok(bytes)
    }
}

impl Drop for GitObjects {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_line(mode: &str, path: &str) -> String {
        format!("{mode} blob {} 5\t{path}\0", "a".repeat(40))
    }

    #[test]
    fn entries_are_read_by_their_modes() {
        let text =
            [entry_line("100644", "a.yaml"), entry_line("120000", "l"), entry_line("160000", "m")]
                .concat();
        let found = read_entries(text.as_bytes()).unwrap();
        let kinds: Vec<TreeEntryKind> = found.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [TreeEntryKind::File, TreeEntryKind::Link, TreeEntryKind::Submodule]);
        assert_eq!((found[0].path.as_str(), found[0].size), ("a.yaml", 5));
    }

    #[test]
    fn what_a_hostile_tree_says_is_refused() {
        let read = |text: &str| read_entries(text.as_bytes());
        for path in ["../a.yaml", "/etc/a.yaml", "a/../../b.yaml"] {
            assert!(read(&entry_line("100644", path)).is_err(), "{path}");
        }
        assert!(read(&entry_line("100644", &"a".repeat(9000))).is_err());
        let many = entry_line("100644", "a.yaml").repeat(ENTRIES_MAX + 1);
        assert!(read(&many).unwrap_err().contains("more than"));
        let behind = [entry_line("120000", "a"), entry_line("100644", "a/b.yaml")].concat();
        assert!(refuse_paths_through_links(&read(&behind).unwrap()).is_err());
    }
}
