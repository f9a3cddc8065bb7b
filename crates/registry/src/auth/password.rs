//! Passwords: argon2id for ours, bcrypt for those of an htpasswd file.
//!
//! How long an answer takes must not tell who exists. Each name costs the same work: one check for
//! every way of hashing that anybody's password has, whether that is theirs or nobody's.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use std::collections::BTreeSet;

/// The longest password that is looked at.
pub const PASSWORD_LENGTH_MAX: usize = 1024;
/// How passwords of ours are hashed.
const OURS: &str = "$argon2id$v=19$m=19456,t=2,p=1";
/// A salt and a hash that belong to nobody, as each algorithm writes them.
const ARGON2_NOBODY: &str = "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const BCRYPT_NOBODY: &str = "......................eeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

/// A way of hashing, with everything that decides how long it takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Work(String);

impl Work {
    /// The way a hash was made; none if it is no hash.
    pub(super) fn of(hash: &str) -> Option<Self> {
        let fields: Vec<&str> = hash.split('$').collect();
        match fields.as_slice() {
            ["", "2a" | "2b" | "2y", cost, rest]
                if rest.len() == BCRYPT_NOBODY.len() && cost.parse::<u8>().is_ok() =>
            {
                Some(Self(format!("$2b${cost}")))
            }
            ["", kind, version, parameters, _, _] if kind.starts_with("argon2") => {
                Some(Self(format!("${kind}${version}${parameters}")))
            }
            _ => None,
        }
    }

    /// A hash made this way that no password is meant to have.
    fn nobody(&self) -> String {
        let rest = if self.0.starts_with("$2") { BCRYPT_NOBODY } else { ARGON2_NOBODY };
        format!("{}${rest}", self.0)
    }
}

/// All ways of hashing among some hashes; without any, ours.
pub(super) fn works<'hash>(hashes: impl Iterator<Item = &'hash str>) -> BTreeSet<Work> {
    let found: BTreeSet<Work> = hashes.filter_map(Work::of).collect();
    if found.is_empty() { BTreeSet::from([Work(OURS.to_owned())]) } else { found }
}

/// Hashes a password with a salt of its own; `None` if the system has no randomness.
pub fn hash(password: &str) -> Option<String> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).ok()?;
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).ok()?;
    Some(hash.to_string())
}

/// Whether a password is the one that was hashed. The same is done for every hash, and without
/// one: a check for each way of hashing that there is.
pub(super) fn verify(password: &str, hash: Option<&str>, works: &BTreeSet<Work>) -> bool {
    verify_by(matches, password, hash, works)
}

/// The same, by some way to hold a password against a hash.
fn verify_by(
    mut matches: impl FnMut(&str, &str) -> bool,
    password: &str,
    hash: Option<&str>,
    works: &BTreeSet<Work>,
) -> bool {
    if password.len() > PASSWORD_LENGTH_MAX {
        return false;
    }
    let mut right = false;
    for check in checks(hash, works) {
        let matches = matches(password, &check.hash);
        right |= matches && check.counts;
    }
    right
}

/// A hash that a password is held against.
struct Check {
    hash: String,
    /// Whether it is somebody's.
    counts: bool,
}

/// What is done for a hash.
fn checks(hash: Option<&str>, works: &BTreeSet<Work>) -> Vec<Check> {
    let own = hash.and_then(|hash| Some((hash, Work::of(hash)?)));
    let check = |work: &Work| match &own {
        Some((hash, own)) if own == work => Check { hash: (*hash).to_owned(), counts: true },
        _ => Check { hash: work.nobody(), counts: false },
    };
    works.iter().map(check).collect()
}

fn matches(password: &str, hash: &str) -> bool {
    if hash.starts_with("$2") {
        return bcrypt::verify(password, hash).unwrap_or(false);
    }
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_verified() {
        let known = hash("correct horse").unwrap();
        assert!(known.starts_with(&format!("{OURS}$")), "{known}");
        assert_ne!(known, hash("correct horse").unwrap());
        // htpasswd -nbB -C 4 user secret
        let old = bcrypt::hash("secret", 4).unwrap();
        let works = works([known.as_str(), old.as_str()].into_iter());
        let verify = |password: &str, hash: Option<&str>| verify(password, hash, &works);
        assert!(verify("correct horse", Some(&known)));
        assert!(!verify("wrong horse", Some(&known)));
        assert!(!verify("nobody has this password", None));
        assert!(!verify("", Some("")));
        assert!(!verify("x", Some("plain text")));
        assert!(verify("secret", Some(&old)) && !verify("Secret", Some(&old)));
    }

    #[test]
    fn l2_whoever_does_not_exist_costs_what_everybody_costs() {
        let ours = hash("one").unwrap();
        let (light, heavy) = (bcrypt::hash("two", 4).unwrap(), bcrypt::hash("three", 5).unwrap());
        let done = |hash: Option<&str>, works: &BTreeSet<Work>| -> Vec<Work> {
            let mut done = Vec::new();
            let note = |password: &str, hash: &str| {
                done.push(Work::of(hash).unwrap());
                matches(password, hash)
            };
            verify_by(note, "one", hash, works);
            done
        };
        for all in [vec![&ours], vec![&light], vec![&light, &heavy], vec![&ours, &light, &heavy]] {
            let works = works(all.iter().map(|hash| hash.as_str()));
            assert_eq!(works.len(), all.len());
            let nobody = done(None, &works);
            assert_eq!(nobody, works.iter().cloned().collect::<Vec<_>>());
            for hash in all {
                assert_eq!(done(Some(hash), &works), nobody, "{hash}");
            }
            // A line of the file that is broken is nobody's.
            assert_eq!(done(Some("$2y$05$abc"), &works), nobody);
        }
        let nobody = works(std::iter::empty());
        assert_eq!(nobody.first().unwrap().nobody(), format!("{OURS}${ARGON2_NOBODY}"));
    }

    #[test]
    fn l2_nobodys_hashes_take_the_whole_work() {
        // What cannot be read is refused at once, which would tell.
        for hash in [hash("x").unwrap(), bcrypt::hash("x", 4).unwrap()] {
            let nobody = Work::of(&hash).unwrap().nobody();
            if nobody.starts_with("$2") {
                assert!(matches!(bcrypt::verify("x", &nobody), Ok(false)), "{nobody}");
            } else {
                let read = PasswordHash::new(&nobody).unwrap();
                let verified = Argon2::default().verify_password(b"x", &read);
                assert!(
                    matches!(verified, Err(argon2::password_hash::Error::PasswordInvalid)),
                    "{verified:?}"
                );
            }
        }
    }
}
