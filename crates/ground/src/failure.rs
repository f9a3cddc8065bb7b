//! How a command ends when it does not end well: what went wrong, why, and what to do.

use std::error::Error;

/// A failure as the user will read it. There is no way to make one without advice.
#[derive(Debug)]
pub struct Failure {
    /// What could not be done.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// What to do.
    pub hint: String,
}

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with advice.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hint: hint.into() }
    }

    /// The same failure with an error and everything behind it as the reason.
    #[must_use]
    pub fn because(mut self, error: &dyn Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            // Some libraries repeat their source in their own words; say it once.
            if *self.causes.last().unwrap_or(&self.message) != text {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// A failure to read or write a file.
    pub fn file(error: &std::io::Error) -> Self {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path",
            std::io::ErrorKind::PermissionDenied => {
                "check the permissions of the file and its directory"
            }
            std::io::ErrorKind::StorageFull => "free some space and run the command again",
            _ => "check the path and the disk, then run the command again",
        };
        Self::new(error.to_string(), hint)
    }
}
