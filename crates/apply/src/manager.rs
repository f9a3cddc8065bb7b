//! Names of managers.

use super::golang;

/// The longest name of a manager, in bytes.
pub const MANAGER_LENGTH_MAX: usize = 128;

/// What is wrong with a manager's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagerFault {
    /// Too long. The server reports `Too long`.
    #[error("may not be more than {MANAGER_LENGTH_MAX} bytes")]
    TooLong,
    /// A character that does not print. The server reports `Invalid value`.
    #[error("invalid character U+{:04X} (at position {position})", u32::from(*character))]
    Unprintable {
        /// The character.
        character: char,
        /// Its offset in bytes.
        position: usize,
    },
}

/// Checks a manager's name; the empty name is fine here, applies require one elsewhere.
pub fn validate_manager(name: &str) -> Vec<ManagerFault> {
    let long = (name.len() > MANAGER_LENGTH_MAX).then_some(ManagerFault::TooLong);
    let unprintable = name
        .char_indices()
        .filter(|(_, character)| !golang::printable(*character))
        .map(|(position, character)| ManagerFault::Unprintable { character, position });
    long.into_iter().chain(unprintable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(validate_manager("kubectl-édit 1.2/x"), []);
        assert_eq!(validate_manager(&"x".repeat(129)), [ManagerFault::TooLong]);
        let faults = validate_manager("a\u{7}é\n");
        let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "invalid character U+0007 (at position 1)",
                "invalid character U+000A (at position 4)"
            ]
        );
    }
}
