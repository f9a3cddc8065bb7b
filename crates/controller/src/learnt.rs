//! What became of a question.

/// How finding something out went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// It is known now.
    Known,
    /// It is known that it cannot be known now; it is tried again before long.
    Unknown,
}
