//! Measures of the source tree: sizes, words, and knots between modules.
//!
//! Limits of style that only a reviewer remembers are forgotten. This room reads the sources of
//! `crates/*` as text and prints one table (`scripts/house`); its test holds each figure to a limit
//! that may fall and never rise. Test code (modules behind `cfg(test)`, wherever they lie) is left out.
//!
//! The room refuses to know Rust's grammar: functions are found by their first line and by
//! indentation, which rustfmt keeps. Figures are exact for a tree that rustfmt wrote, and the same
//! script over other projects gave the figures they are compared with.
//! Start at [`House::read`]; [`source`] takes one file apart, [`knots`] looks for circles.

pub mod knots;
pub mod source;
pub mod table;

use source::Source;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The rooms of a tree.
pub struct House {
    /// Rooms by name.
    pub rooms: BTreeMap<String, Room>,
}

/// The sources of one crate.
pub struct Room {
    /// Files, each with its path below `src`.
    pub files: Vec<Source>,
}

impl House {
    /// Reads the sources of all crates below a directory.
    pub fn read(crates: &Path) -> io::Result<Self> {
        let mut rooms = BTreeMap::new();
        for entry in fs_err::read_dir(crates)? {
            let entry = entry?;
            let root = entry.path().join("src");
            if root.is_dir() {
                let mut files = Vec::new();
                read_sources(&root, "", &mut files)?;
                files.sort_by(|left, right| left.path.cmp(&right.path));
                rooms.insert(entry.file_name().to_string_lossy().into_owned(), Room { files });
            }
        }
        Ok(Self { rooms })
    }

    /// All files of all rooms.
    pub fn files(&self) -> impl Iterator<Item = &Source> {
        self.rooms.values().flat_map(|room| &room.files)
    }
}

fn read_sources(directory: &Path, prefix: &str, files: &mut Vec<Source>) -> io::Result<()> {
    let roots = ["lib.rs", "main.rs", "mod.rs"].map(|name| directory.join(name));
    let declared = roots.iter().filter_map(|path| fs_err::read_to_string(path).ok());
    let tests: Vec<String> = declared.flat_map(|text| source::test_modules(&text)).collect();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if name != "tests" && !tests.contains(&name) {
                read_sources(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if let Some(stem) = name.strip_suffix(".rs")
            && !tests.iter().any(|test| test == stem)
        {
            files.push(Source::parse(path, &fs_err::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// What a limit may hold, for a whole tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Lines of the largest room.
    pub largest_room: usize,
    /// Lines of the longest file.
    pub longest_file: usize,
    /// Lines of the longest function.
    pub longest_function: usize,
    /// Share of functions whose name is one word, in percent.
    pub one_word_functions: f64,
    /// Share of types whose name another type has, in percent.
    pub shared_types: f64,
    /// Share of comment lines that point with an indefinite pronoun, in percent.
    pub pronoun_comments: f64,
    /// Modules in the largest circle of imports within a room.
    pub largest_knot: usize,
}

impl Figures {
    /// The figures of a tree.
    pub fn of(house: &House) -> Self {
        let functions: Vec<_> = house.files().flat_map(|file| &file.functions).collect();
        let counted = functions.iter().filter(|one| one.is_counted()).count();
        let short = functions.iter().filter(|one| one.is_counted() && one.is_one_word()).count();
        let comments: usize = house.files().map(|file| file.comments).sum();
        let pronouns: usize = house.files().map(|file| file.pronouns).sum();
        let lines = |room: &Room| room.files.iter().map(|file| file.lines).sum();
        Self {
            largest_room: house.rooms.values().map(lines).max().unwrap_or(0),
            longest_file: house.files().map(|file| file.lines).max().unwrap_or(0),
            longest_function: functions.iter().map(|one| one.lines).max().unwrap_or(0),
            one_word_functions: percent(short, counted),
            shared_types: shared_types(house),
            pronoun_comments: percent(pronouns, comments),
            largest_knot: house
                .rooms
                .values()
                .map(|room| knots::largest(room).len())
                .max()
                .unwrap_or(0),
        }
    }
}

fn shared_types(house: &House) -> f64 {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for name in house.files().flat_map(|file| &file.types) {
        *names.entry(name).or_default() += 1;
    }
    let all = names.values().sum();
    percent(names.values().filter(|count| **count > 1).sum(), all)
}

/// A share in percent, with one digit.
pub fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let thousandths = (part * 1000 + whole / 2) / whole;
    f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 10.0
}
