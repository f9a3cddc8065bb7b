//! Capabilities: free-form words with which a package says what it can do.

/// A function that composes resources.
pub const COMPOSITION: &str = "composition";
/// A function that runs operations.
pub const OPERATION: &str = "operation";
/// A provider that may start before its resources are activated.
pub const SAFE_START: &str = "safe-start";

/// Whether two capabilities are the same word, however they are spelled: only ASCII letters and
/// digits count, and their case does not (`SafeStart`, `safe_start` and `safe-start` are one).
pub fn matches(a: &str, b: &str) -> bool {
    let essence = |text: &str| -> Vec<u8> {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    essence(a) == essence(b)
}
