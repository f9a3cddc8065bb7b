//! What the program says of itself in a terminal: the manual's own pages, which come with the binary.
//!
//! There is one truth, the files below `docs/`: [`topics`] are its pages that explain something, [`text`] sets
//! them for a terminal, and [`conditions`] looks up one row of the page about conditions, reasons and events.
//!
//! The room refuses to know commands, printing and terminals. Start with [`topics::find_topic`].

pub mod conditions;
pub mod text;
pub mod topics;
