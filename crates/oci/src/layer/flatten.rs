//! What a stack of layers looks like once all are applied.

use super::{Archive, Entry, EntryKind, LayerError, Limits, decompress};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Bound;

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// Layers that can be opened, more than once, lowest first.
pub trait LayerSource {
    /// How many there are.
    fn count(&self) -> usize;
    /// The compressed bytes of one.
    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>>;
}

/// Where a path of the flattened file system has its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which layer.
    pub layer: usize,
    /// Which entry of it, counted from 0.
    pub ordinal: usize,
    /// What it is; never a hard link, for those are resolved.
    pub kind: EntryKind,
    /// Bytes of content.
    pub size: u64,
}

/// A flattened file system: every path that is left, and where its content is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Flat {
    /// By cleaned path.
    pub paths: BTreeMap<String, Location>,
}

/// Applies all layers, lowest first, as the image specification says: whiteouts hide what lower
/// layers had, opaque directories hide everything lower in them, a file in place of a directory
/// hides the directory's content.
pub fn flatten(source: &dyn LayerSource, limits: &Limits) -> Result<Flat, LayerError> {
    let mut flat = Flat::default();
    let mut budget = limits.clone();
    for layer in 0..source.count() {
        let entries =
            read_entries(source, layer, &mut budget).map_err(|error| error.of_the_whole(limits))?;
        flat.hide(&entries);
        for (ordinal, entry) in entries.into_iter().enumerate() {
            flat.add(layer, ordinal, entry)?;
        }
    }
    Ok(flat)
}

/// Opens one file of the flattened file system; `None` if it is not there. When there is one
/// layer it is read once, and the reader gives its clean end only after the rest of the archive
/// was seen to be sound.
pub fn open_file<'a>(
    source: &'a dyn LayerSource,
    path: &str,
    limits: &'a Limits,
) -> Result<Option<Box<dyn Read + 'a>>, LayerError> {
    if source.count() == 1 {
        match open_single(source, path, limits)? {
            Single::File(reader) => return Ok(Some(reader)),
            Single::Missing => return Ok(None),
            Single::Link => {}
        }
    }
    let flat = flatten(source, limits)?;
    let Some(location) = flat.paths.get(path) else {
        return Ok(None);
    };
    if location.kind != EntryKind::File {
        let what = location.kind.name();
        return Err(LayerError::NotAFile { path: path.to_owned(), what });
    }
    let mut archive = open_layer(source, location.layer, limits)?;
    for _ in 0..=location.ordinal {
        archive.next_entry()?.ok_or(LayerError::Truncated)?;
    }
    Ok(Some(Box::new(archive)))
}

enum Single<'a> {
    File(Box<dyn Read + 'a>),
    Missing,
    /// A hard link: its content may stand earlier in the archive.
    Link,
}

fn open_single<'a>(
    source: &'a dyn LayerSource,
    path: &str,
    limits: &'a Limits,
) -> Result<Single<'a>, LayerError> {
    let mut archive = open_layer(source, 0, limits)?;
    while let Some(entry) = archive.next_entry()? {
        if entry.path != path {
            continue;
        }
        return match entry.kind {
            EntryKind::File => {
                let rest = CheckedToEnd { archive, path: entry.path, ended: false };
                Ok(Single::File(Box::new(rest)))
            }
            EntryKind::HardLink(_) => Ok(Single::Link),
            other => Err(LayerError::NotAFile { path: entry.path, what: other.name() }),
        };
    }
    Ok(Single::Missing)
}

/// Reads one entry, and then the rest of the archive before saying that all is well.
struct CheckedToEnd<'a> {
    archive: Archive<'a, Box<dyn Read + 'a>>,
    path: String,
    ended: bool,
}

impl Read for CheckedToEnd<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.archive.read(buffer)?;
        if count == 0 {
            while let Some(entry) = self.archive.next_entry()? {
                if entry.path == self.path {
                    return Err(LayerError::Duplicate(entry.path).into());
                }
            }
            self.ended = true;
        }
        Ok(count)
    }
}

fn open_layer<'a>(
    source: &'a dyn LayerSource,
    layer: usize,
    limits: &'a Limits,
) -> Result<Archive<'a, Box<dyn Read + 'a>>, LayerError> {
    let blob = source.open(layer).map_err(LayerError::Read)?;
    let expanded = decompress(blob, limits).map_err(LayerError::from_io)?;
    Ok(Archive::new(expanded, limits))
}

/// Lists a layer and takes what it used off the budget, so that limits hold for the whole image.
fn read_entries(
    source: &dyn LayerSource,
    layer: usize,
    budget: &mut Limits,
) -> Result<Vec<Entry>, LayerError> {
    let mut entries = Vec::new();
    let mut archive = open_layer(source, layer, budget)?;
    while let Some(entry) = archive.next_entry()? {
        entries.push(entry);
    }
    let used = archive.used();
    drop(archive);
    *budget = budget.without(used);
    Ok(entries)
}

impl Flat {
    /// Applies a layer's whiteouts. They hide lower layers only, wherever they stand in theirs.
    fn hide(&mut self, entries: &[Entry]) {
        for entry in entries {
            let (directory, name) = split(&entry.path);
            if name == OPAQUE {
                self.remove_below(directory);
            } else if let Some(hidden) = name.strip_prefix(WHITEOUT) {
                self.remove(&join(directory, hidden));
            }
        }
    }

    fn add(&mut self, layer: usize, ordinal: usize, entry: Entry) -> Result<(), LayerError> {
        let (_, name) = split(&entry.path);
        if name.starts_with(WHITEOUT) || entry.path.is_empty() {
            return Ok(());
        }
        let location = match &entry.kind {
            EntryKind::HardLink(target) => {
                let broken =
                    || LayerError::LinkBroken { path: entry.path.clone(), target: target.clone() };
                self.paths.get(target).cloned().ok_or_else(broken)?
            }
            kind => Location { layer, ordinal, kind: kind.clone(), size: entry.size },
        };
        if entry.kind != EntryKind::Directory {
            self.remove_below(&entry.path);
        }
        self.remove_files_above(&entry.path);
        self.paths.insert(entry.path, location);
        Ok(())
    }

    fn remove(&mut self, path: &str) {
        self.paths.remove(path);
        self.remove_below(path);
    }

    fn remove_below(&mut self, directory: &str) {
        if directory.is_empty() {
            self.paths.clear();
            return;
        }
        let prefix = format!("{directory}/");
        let below: Vec<String> = self
            .paths
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .map(|(path, _)| path)
            .take_while(|path| path.starts_with(&prefix))
            .cloned()
            .collect();
        for path in below {
            self.paths.remove(&path);
        }
    }

    /// A path under something that is not a directory replaces it.
    fn remove_files_above(&mut self, path: &str) {
        let mut directory = split(path).0;
        while !directory.is_empty() {
            let shadowed = self.paths.get(directory).is_some_and(|location| {
                !matches!(location.kind, EntryKind::Directory | EntryKind::Symlink(_))
            });
            if shadowed {
                self.paths.remove(directory);
            }
            directory = split(directory).0;
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
