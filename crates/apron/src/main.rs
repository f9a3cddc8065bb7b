//! The apron binary.
fn main() {}
