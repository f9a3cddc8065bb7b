//! Passwords: argon2id for ours, bcrypt for those of an htpasswd file.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use std::sync::OnceLock;

/// The longest password that is looked at.
pub const PASSWORD_LENGTH_MAX: usize = 1024;

/// Hashes a password with a salt of its own; `None` if the system has no randomness.
pub fn hash(password: &str) -> Option<String> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).ok()?;
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).ok()?;
    Some(hash.to_string())
}

/// Whether a password is the one that was hashed. Without a hash the work is done all the same,
/// so that the time taken does not tell who exists.
pub(super) fn verify(password: &str, hash: Option<&str>) -> bool {
    let known = hash.is_some();
    let hash = hash.unwrap_or_else(|| dummy());
    if password.len() > PASSWORD_LENGTH_MAX {
        return false;
    }
    let matches = if hash.starts_with("$2") {
        bcrypt::verify(password, hash).unwrap_or(false)
    } else {
        PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
    };
    matches && known
}

fn dummy() -> &'static str {
    static DUMMY: OnceLock<String> = OnceLock::new();
    DUMMY.get_or_init(|| hash("nobody has this password").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_verified() {
        let known = hash("correct horse").unwrap();
        assert!(known.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{known}");
        assert_ne!(known, hash("correct horse").unwrap());
        assert!(verify("correct horse", Some(&known)));
        assert!(!verify("wrong horse", Some(&known)));
        assert!(!verify("nobody has this password", None));
        assert!(!verify("", Some("")));
        assert!(!verify("x", Some("plain text")));
        // htpasswd -nbB -C 4 user secret
        let old = bcrypt::hash("secret", 4).unwrap();
        assert!(verify("secret", Some(&old)) && !verify("Secret", Some(&old)));
    }
}
