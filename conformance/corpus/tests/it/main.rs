//! The corpus has the shape that was measured, and is the same everywhere.

use corpus::definition::Definition;
use corpus::{SEED, measured};
use std::collections::BTreeSet;

#[test]
fn the_corpus_has_the_shape_that_was_measured() {
    let mut sizes = Vec::new();
    let (mut names, mut groups) = (BTreeSet::new(), BTreeSet::new());
    for index in 0..measured::COUNT {
        let definition = Definition::generate(index, SEED);
        let name = definition.file_name();
        groups.insert(name.split('_').next().map(str::to_owned));
        names.insert(name);
        sizes.push(definition.to_yaml().len());
    }
    assert_eq!((names.len(), groups.len()), (measured::COUNT, measured::GROUPS));
    sizes.sort_unstable();
    let total: usize = sizes.iter().sum();
    assert!((80_000_000..130_000_000).contains(&total), "{total} bytes in all");
    let (median, largest) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    assert!((22_000..36_000).contains(&median), "the median has {median} bytes");
    assert!((600_000..1_800_000).contains(&largest), "the largest has {largest} bytes");
}

#[test]
fn a_definition_depends_on_its_seed_and_index_alone() {
    let text = |index, seed| Definition::generate(index, seed).to_yaml();
    assert_eq!(text(7, SEED), text(7, SEED));
    assert_ne!(text(7, SEED), text(8, SEED));
    assert_ne!(text(7, SEED), text(7, SEED + 1));
}

#[test]
fn definitions_are_written_one_to_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    corpus::write_definitions(&scratch.path().join("crds"), 5, SEED).unwrap();
    assert_eq!(fs_err::read_dir(scratch.path().join("crds")).unwrap().count(), 5);
}
