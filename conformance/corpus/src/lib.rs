//! Packages for tests and benchmarks, made from a seed.
//!
//! The largest provider in the field has 2,065 definitions in 102 MB of YAML. It is not ours to
//! ship, so this room makes a package of the same shape: as many definitions in as many groups,
//! with sizes, depths, numbers of fields, types, lengths of descriptions, versions and validation
//! rules that follow what was measured of the real one ([`measured`]). Every word of it is invented
//! ([`words`]), and the same seed gives the same bytes on every machine.
//!
//! The room refuses to know apron: what it writes is text, as a stranger's generator would write it.
//! Start at [`write_definitions`]; [`definition`] is one of them, [`schema`] grows its fields.

pub mod definition;
pub mod dice;
pub mod measured;
pub mod schema;
pub mod words;

use std::io;
use std::path::Path;

/// The seed of the corpus that tests and benchmarks share.
pub const SEED: u64 = 2065;

/// Writes `count` definitions as `GROUP_PLURAL.yaml` into a directory, which is made if need be.
pub fn write_definitions(directory: &Path, count: usize, seed: u64) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    for index in 0..count {
        let definition = definition::Definition::generate(index, seed);
        fs_err::write(directory.join(definition.file_name()), definition.to_yaml())?;
    }
    Ok(())
}
