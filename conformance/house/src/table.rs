//! The table that people read.

use crate::{Figures, House, Room, percent};
use std::fmt::Write as _;

/// One line for each room, then the figures that have limits.
pub fn render(house: &House) -> String {
    let mut text = String::from(
        "room        files   lines  file med/p90/max   fns  fn med/p90/max  >70  >40  comments   pub\n",
    );
    for (name, room) in &house.rooms {
        let _ = writeln!(text, "{}", render_room(name, room));
    }
    let figures = Figures::of(house);
    for (name, value) in named(&figures) {
        let _ = writeln!(text, "{name:<48} {value:>8}");
    }
    text
}

/// The figures of a tree, each with its name.
pub fn named(figures: &Figures) -> [(&'static str, String); 7] {
    [
        ("lines of the largest room", figures.largest_room.to_string()),
        ("lines of the longest file", figures.longest_file.to_string()),
        ("lines of the longest function", figures.longest_function.to_string()),
        ("functions with a one-word name, %", format!("{:.1}", figures.one_word_functions)),
        ("types that share their name, %", format!("{:.1}", figures.shared_types)),
        ("comment lines with an indefinite pronoun, %", format!("{:.1}", figures.pronoun_comments)),
        ("modules in the largest circle of imports", figures.largest_knot.to_string()),
    ]
}

/// Figures beside their limits.
pub fn compare(found: &Figures, limits: &Figures) -> String {
    let pairs = named(found).into_iter().zip(named(limits));
    let lines =
        pairs.map(|((name, value), (_, limit))| format!("{name:<48} {value:>8} of {limit:>8}\n"));
    lines.collect()
}

fn render_room(name: &str, room: &Room) -> String {
    let lines: usize = room.files.iter().map(|file| file.lines).sum();
    let comments: usize = room.files.iter().map(|file| file.comments).sum();
    let public: usize = room.files.iter().map(|file| file.public).sum();
    let functions = room.files.iter().flat_map(|file| &file.functions);
    let lengths: Vec<usize> = functions.map(|one| one.lines).collect();
    let longer = |limit: usize| lengths.iter().filter(|length| **length > limit).count();
    format!(
        "{name:<11} {:>5} {lines:>7}  {:<16} {:>5}  {:<14} {:>4} {:>4} {:>7.1} % {public:>5}",
        room.files.len(),
        spread(room.files.iter().map(|file| file.lines).collect()),
        lengths.len(),
        spread(lengths.clone()),
        longer(70),
        longer(40),
        percent(comments, lines),
    )
}

/// Median, ninetieth percentile and maximum.
fn spread(mut values: Vec<usize>) -> String {
    values.sort_unstable();
    let at = |share: usize| values.get(values.len() * share / 100).or(values.last()).unwrap_or(&0);
    format!("{}/{}/{}", at(50), at(90), values.last().unwrap_or(&0))
}
