//! What an evaluation costs, in two currencies.
//!
//! *Cost* is upstream's: what a rule may cost is promised in it, so it is counted as upstream
//! counts. It leaves out much of what is done: how deep two values are compared, what is copied,
//! how long a text is that is only measured. *Steps* are what is done: one for each node of the
//! expression that is evaluated, each value looked at or copied, each few bytes of text. An
//! evaluation ends when either is spent, and costs whichever is more.

use std::cell::Cell;

use super::value::{Result, Trouble};

/// How many steps one unit of cost pays for; expressions that do nothing odd take two or three.
const STEPS_PER_COST: u64 = 10;
/// How many bytes of text are looked at in one step.
const BYTES_PER_STEP: usize = 64;
/// How many steps it takes to make a value that stays: memory is dearer than time.
const STEPS_PER_COPY: usize = 4;

/// Counts what one evaluation costs.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: Cell<u64>,
    steps: Cell<u64>,
    limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: Cell::new(0), steps: Cell::new(0), limit }
    }

    /// What it came to.
    pub(crate) fn cost(&self) -> u64 {
        self.cost.get().max(self.steps.get() / STEPS_PER_COST)
    }

    /// What was done.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Something costs as much by upstream's measure.
    pub(crate) fn charge(&self, cost: u64) -> Result<()> {
        self.cost.set(self.cost.get().saturating_add(cost));
        self.check()
    }

    /// So many values are looked at.
    pub(crate) fn work(&self, steps: usize) -> Result<()> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps.set(self.steps.get().saturating_add(steps));
        self.check()
    }

    /// So many values are made.
    pub(crate) fn copy(&self, values: usize) -> Result<()> {
        self.work(values.saturating_mul(STEPS_PER_COPY))
    }

    /// A text of so many bytes is looked at.
    pub(crate) fn scan(&self, bytes: usize) -> Result<()> {
        self.work(bytes / BYTES_PER_STEP)
    }

    /// A text of so many bytes is made.
    pub(crate) fn write(&self, bytes: usize) -> Result<()> {
        self.copy(1)?;
        self.work(bytes / 8)
    }

    fn check(&self) -> Result<()> {
        if self.cost() > self.limit { Err(Trouble::Cost) } else { Ok(()) }
    }
}
