//! Digests, computed here and nowhere else: the suite trusts no digest that a registry states.

use sha2::{Digest as _, Sha256, Sha512};

/// The two registered algorithms of the image specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// `algorithm:hex` of the bytes.
    pub(crate) fn digest(self, bytes: &[u8]) -> String {
        let encoded = match self {
            Self::Sha256 => hex::encode(Sha256::digest(bytes)),
            Self::Sha512 => hex::encode(Sha512::digest(bytes)),
        };
        format!("{}:{encoded}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Algorithm;

    #[test]
    fn the_empty_string_has_its_well_known_digests() {
        assert_eq!(
            Algorithm::Sha256.digest(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert!(Algorithm::Sha512.digest(b"").starts_with("sha512:cf83e1357eefb8bdf1542850d66d80"));
    }
}
