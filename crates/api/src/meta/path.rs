//! Where in a document a field stands.

use std::fmt;

/// The way from a document's root to a field, written like `spec.dependsOn[2].version`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the value under a key.
    Key(String),
    /// Into an item of a list.
    Index(usize),
}

impl FieldPath {
    /// The steps, from the root.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path of the value under `key`.
    pub(super) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// The path of an item.
    pub(super) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the document");
        }
        // Annotation keys have dots and slashes of their own.
        let plain =
            |key: &str| key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => f.write_str(key)?,
                Step::Key(key) if plain(key) => write!(f, ".{key}")?,
                Step::Key(key) => write!(f, "[{key:?}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
