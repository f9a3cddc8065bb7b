//! Layer archives.
