//! How what is shipped is built.

use super::text;

/// H2, the second half: servers contain panics, which only works where a panic unwinds.
#[test]
fn h2_a_panic_unwinds_in_what_is_shipped() {
    let toml = text("Cargo.toml");
    let release = toml.split("[profile.release]").nth(1).unwrap();
    let release = release.split("\n[").next().unwrap();
    assert!(release.contains("panic = \"unwind\""), "{release}");
    assert!(!toml.contains("panic = \"abort\""));
    let shipped = toml.split("[profile.dist]").nth(1).unwrap();
    assert!(shipped.contains("inherits = \"release\""), "{shipped}");
}
