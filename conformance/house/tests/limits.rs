//! The figures of the tree, each held to a limit. Limits fall with the figures and never rise: a
//! change that meets one is changed, not the limit.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read fails the test, as it should")]

use house::{Figures, House};
use std::path::Path;

const LIMITS: Figures = Figures {
    largest_room: 17_000,
    longest_file: 599,
    longest_function: 94,
    one_word_functions: 53.0,
    shared_types: 45.0,
    pronoun_comments: 13.4,
    largest_knot: 13,
};

fn figures() -> Figures {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    Figures::of(&House::read(&crates).unwrap())
}

#[test]
fn no_figure_of_the_house_is_above_its_limit() {
    let found = figures();
    let told = house::table::compare(&found, &LIMITS);
    let is_held = found.largest_room <= LIMITS.largest_room
        && found.longest_file <= LIMITS.longest_file
        && found.longest_function <= LIMITS.longest_function
        && found.one_word_functions <= LIMITS.one_word_functions
        && found.shared_types <= LIMITS.shared_types
        && found.pronoun_comments <= LIMITS.pronoun_comments
        && found.largest_knot <= LIMITS.largest_knot;
    assert!(is_held, "a figure is above its limit (scripts/house shows each room):\n{told}");
}

/// A limit far above what it holds would let the house go back to where it was.
#[test]
fn limits_have_followed_the_figures_down() {
    let found = figures();
    let told = house::table::compare(&found, &LIMITS);
    let is_near = found.one_word_functions > LIMITS.one_word_functions - 2.0
        && found.shared_types > LIMITS.shared_types - 2.0
        && found.pronoun_comments > LIMITS.pronoun_comments - 2.0
        && found.largest_room * 10 > LIMITS.largest_room * 9;
    assert!(is_near, "a limit can be lowered:\n{told}");
}
