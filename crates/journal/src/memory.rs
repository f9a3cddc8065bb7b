//! The twin without a disk: for simulations, tests and `--in-memory`.

use super::{Disk, DiskError, Record, Recovered};

/// A disk that keeps nothing: the state in memory is all there is.
#[derive(Debug, Default, Clone, Copy)]
pub struct Memory;

impl Disk for Memory {
    fn recover(&mut self) -> Result<Recovered, DiskError> {
        Ok(Recovered::default())
    }

    fn commit(&mut self, _batch: &[Record]) -> Result<(), DiskError> {
        Ok(())
    }

    fn compact(&mut self, _version: u64) -> Result<(), DiskError> {
        Ok(())
    }
}
