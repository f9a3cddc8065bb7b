//! The path to a schema, kept as a chain of borrowed steps and written only on demand.

use std::fmt;

/// A path, as a step from its parent.
pub(super) struct Path<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

enum Step<'p> {
    Child(&'p str),
    Property(&'p str),
    Item(&'p str, usize),
}

impl<'p> Path<'p> {
    pub(super) fn root(name: &'p str) -> Self {
        Self { parent: None, step: Step::Child(name) }
    }

    /// The path of the value under a keyword.
    pub(super) fn child<'c>(&'c self, keyword: &'c str) -> Path<'c> {
        Path { parent: Some(self), step: Step::Child(keyword) }
    }

    /// The path of a property's schema.
    pub(super) fn properties<'c>(&'c self, name: &'c str) -> Path<'c> {
        Path { parent: Some(self), step: Step::Property(name) }
    }

    /// The path of an item in the list under a keyword.
    pub(super) fn item<'c>(&'c self, keyword: &'c str, index: usize) -> Path<'c> {
        Path { parent: Some(self), step: Step::Item(keyword, index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        match self.step {
            Step::Child(keyword) => f.write_str(keyword),
            Step::Property(name) => write!(f, "properties.{name}"),
            Step::Item(keyword, index) => write!(f, "{keyword}[{index}]"),
        }
    }
}
