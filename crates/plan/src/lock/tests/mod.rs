//! Worlds in, steps out, as text a person can check.

mod cluster;
mod dialects;
mod keepers;
mod kinds;
mod limits;
mod names;
mod record;
mod render;
mod report;
mod succession;
mod vectors;
mod waiting;
