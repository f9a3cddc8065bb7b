//! The users file: people, their keys, and the rules, in one file that only its owner reads.
//!
//! It is replaced as a whole, so that a running registry, which looks at it every second, sees
//! one version or the next.

use super::password;
use super::rules::{self, ANONYMOUS, Actions, Rule};
use crate::storage::private;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What keys begin with, so that they are recognised where they do not belong.
pub const KEY_PREFIX: &str = "apr_";
/// The file in the data directory.
pub const USERS_FILE: &str = "users.json";
const FORMAT: u32 = 1;

/// Everybody who may sign in, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    format: u32,
    /// People by name.
    pub users: BTreeMap<String, User>,
    /// What they may do.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// Somebody who may sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The hash of their password; without one, only keys are good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Their keys, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, Key>,
}

/// A key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeyForm", into = "KeyForm")]
pub struct Key {
    /// Its sha256. A key has 256 random bits, so nothing slower is needed.
    sha256: String,
    /// When it ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// What it is good for, of what its owner may do.
    pub bound: Bound,
}

/// Where something holds, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// A pattern for repositories; all if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositories: Option<String>,
    /// What may be done; everything if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Actions>,
}

impl Key {
    /// Whether it has not ended.
    pub(super) fn is_good(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// What tells it from every other key, and lets nobody in.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint("key", &self.sha256)
    }
}

/// What tells something secret from all others of its kind without telling anything of it: it has
/// at least 128 random bits (the salt of a password's hash, a key).
pub(super) fn fingerprint(kind: &str, text: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(kind);
    hasher.update([0]);
    hasher.update(text);
    format!("{kind}:{}", URL_SAFE_NO_PAD.encode(&hasher.finalize()[..16]))
}

impl Bound {
    /// What of everything may be done to a repository.
    pub(super) fn held(&self, repository: &str) -> Actions {
        let here = self.repositories.as_deref().is_none_or(|it| rules::covers(it, repository));
        if here { self.actions.unwrap_or(Actions::ALL) } else { Actions::NONE }
    }

    fn is_unbound(&self) -> bool {
        *self == Self::default()
    }
}

/// A key as it is written: keys without conditions are their sha256 alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum KeyForm {
    Plain(String),
    Bound {
        sha256: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<u64>,
        #[serde(flatten)]
        bound: Bound,
    },
}

impl From<KeyForm> for Key {
    fn from(form: KeyForm) -> Self {
        match form {
            KeyForm::Plain(sha256) => Self { sha256, expires: None, bound: Bound::default() },
            KeyForm::Bound { sha256, expires, bound } => Self { sha256, expires, bound },
        }
    }
}

impl From<Key> for KeyForm {
    fn from(Key { sha256, expires, bound }: Key) -> Self {
        if expires.is_none() && bound.is_unbound() {
            return Self::Plain(sha256);
        }
        Self::Bound { sha256, expires, bound }
    }
}

/// Why the users cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The name has characters that names do not have.
    #[error("`{0}` cannot be the name of a user")]
    Name(String),
    /// The file is not one of ours.
    #[error("{} cannot be read as users", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: serde_json::Error,
    },
    /// The file was made by a later version.
    #[error("{} has a format this version does not know", .0.display())]
    Later(PathBuf),
    /// The disk or the operating system failed.
    #[error("cannot use the users file")]
    Io(#[source] io::Error),
}

impl Default for Users {
    fn default() -> Self {
        Self { format: FORMAT, users: BTreeMap::new(), rules: Vec::new() }
    }
}

impl Users {
    /// Reads the file of a data directory; without a file there is nobody.
    pub fn read(directory: &Path) -> Result<Self, UsersError> {
        let path = directory.join(USERS_FILE);
        let bytes = match fs_err::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(UsersError::Io(error)),
        };
        let users: Self = serde_json::from_slice(&bytes)
            .map_err(|cause| UsersError::Format { path: path.clone(), cause })?;
        if users.format == FORMAT { Ok(users) } else { Err(UsersError::Later(path)) }
    }

    /// Whether a data directory has the file: then it is not open to everybody, even if nobody
    /// is left in it.
    pub fn exist(directory: &Path) -> bool {
        directory.join(USERS_FILE).exists()
    }

    /// Changes the file, one change at a time.
    pub fn change<T>(
        directory: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, UsersError>,
    ) -> Result<T, UsersError> {
        private::make_directory(directory).map_err(UsersError::Io)?;
        let lock = private_file(&directory.join("users.lock")).map_err(UsersError::Io)?;
        lock.lock().map_err(UsersError::Io)?;
        let mut users = Self::read(directory)?;
        let answer = change(&mut users)?;
        let mut bytes = serde_json::to_vec_pretty(&users)
            .map_err(|error| UsersError::Io(io::Error::other(error)))?;
        bytes.push(b'\n');
        replace(&directory.join(USERS_FILE), &bytes).map_err(UsersError::Io)?;
        Ok(answer)
    }

    /// Adds somebody, or gives them another password.
    pub fn set_password(&mut self, name: &str, password: &str) -> Result<(), UsersError> {
        let name = check_name(name)?;
        let no_randomness = || UsersError::Io(io::Error::other("no randomness"));
        let hash = password::hash(password).ok_or_else(no_randomness)?;
        self.users.entry(name.to_owned()).or_default().password = Some(hash);
        Ok(())
    }

    /// Gives somebody (who may be new) a key; it is told once and cannot be found out later.
    pub fn add_key(&mut self, name: &str, label: &str) -> Result<String, UsersError> {
        self.add_bound_key(name, label, None, Bound::default())
    }

    /// The same for a key that ends some time, or is good for some things only.
    pub fn add_bound_key(
        &mut self,
        name: &str,
        label: &str,
        expires: Option<u64>,
        bound: Bound,
    ) -> Result<String, UsersError> {
        let name = check_name(name)?;
        let label = check_name(label)?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| UsersError::Io(io::Error::other(error.to_string())))?;
        let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
        let user = self.users.entry(name.to_owned()).or_default();
        user.keys.insert(label.to_owned(), Key { sha256: key_hash(&key), expires, bound });
        Ok(key)
    }

    /// The name of whoever has this key, if it is still good; `now` is in seconds since 1970.
    pub fn owner_of_key(&self, key: &str, now: u64) -> Option<&str> {
        self.key_owner(key, now).map(|(name, _)| name)
    }

    /// Whose key this is, if it is still good.
    pub(super) fn key_owner(&self, key: &str, now: u64) -> Option<(&str, &Key)> {
        let hash = key_hash(key);
        let same = |known: &&Key| {
            let (known, hash) = (known.sha256.as_bytes(), hash.as_bytes());
            aws_lc_rs::constant_time::verify_slices_are_equal(known, hash).is_ok()
        };
        let mut all = self
            .users
            .iter()
            .flat_map(|(name, user)| user.keys.values().map(move |key| (name.as_str(), key)));
        let (name, key) = all.find(|(_, key)| same(key))?;
        key.is_good(now).then_some((name, key))
    }
}

/// The names there can be: they go into logs, URLs and `Basic` credentials.
pub fn check_name(name: &str) -> Result<&str, UsersError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && name.len() <= 64 && name.bytes().all(fits) && name != ANONYMOUS {
        return Ok(name);
    }
    Err(UsersError::Name(name.chars().take(64).collect()))
}

/// Reads an htpasswd file: bcrypt entries only, everything else is passed over.
pub(super) fn read_htpasswd(path: &Path) -> io::Result<BTreeMap<String, String>> {
    let text = fs_err::read_to_string(path)?;
    let entry = |line: &str| {
        let (name, hash) = line.trim().split_once(':')?;
        let bcrypt = ["$2a$", "$2b$", "$2y$"].iter().any(|mark| hash.starts_with(mark));
        (bcrypt && check_name(name).is_ok()).then(|| (name.to_owned(), hash.to_owned()))
    };
    Ok(text.lines().filter_map(entry).collect())
}

fn key_hash(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

/// Opens a file that only its owner can read, making it if need be.
pub(super) fn private_file(path: &Path) -> io::Result<std::fs::File> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs_err::OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    Ok(options.open(path)?.into_parts().0)
}

/// Replaces a file by one that only its owner can read, durably.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    fs_err::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn users_are_kept_in_a_file_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Users::read(directory.path()).unwrap(), Users::default());
        let key = Users::change(directory.path(), |users| {
            users.set_password("alice", "secret")?;
            users.add_key("ci", "github")
        })
        .unwrap();
        assert_eq!(key.len(), KEY_PREFIX.len() + 43);
        let users = Users::read(directory.path()).unwrap();
        let owner = |key: &str| users.key_owner(key, 0).map(|(name, key)| (name, &key.bound));
        assert_eq!(owner(&key), Some(("ci", &Bound::default())));
        assert_eq!(owner("apr_x"), None);
        let path = directory.path().join(USERS_FILE);
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(!text.contains("secret") && !text.contains(&key));
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn keys_end_and_are_bound() {
        let bound = Bound {
            repositories: Some("team/**".to_owned()),
            actions: Some(Actions::PULL.and(Actions::PUSH)),
        };
        let mut users = Users::default();
        let key = users.add_bound_key("ci", "main", Some(1000), bound.clone()).unwrap();
        let text = serde_json::to_string(&users).unwrap();
        let read: Users = serde_json::from_str(&text).unwrap();
        assert_eq!(read, users);
        let owner = |now| read.key_owner(&key, now).map(|(name, key)| (name, &key.bound));
        assert_eq!((owner(999), owner(1000)), (Some(("ci", &bound)), None));
        assert_eq!(bound.held("team/a").to_string(), "pull,push");
        assert_eq!(bound.held("other"), Actions::NONE);
        // Files of before have the hash alone.
        let old = format!(
            "{{\"format\":1,\"users\":{{\"a\":{{\"keys\":{{\"k\":\"{}\"}}}}}}}}",
            key_hash("apr_1")
        );
        let old: Users = serde_json::from_str(&old).unwrap();
        let (owner, key) = old.key_owner("apr_1", 0).unwrap();
        assert_eq!((owner, &key.bound), ("a", &Bound::default()));
    }

    #[test]
    fn odd_names_are_refused() {
        let check = |name: &str| assert!(check_name(name).is_err(), "{name}");
        for name in ["", "a:b", "a b", "anonymous", "-x", "*", "a\n", "ä", &"x".repeat(65)] {
            check(name);
        }
        assert!(check_name("bot+ci@example.org").is_ok());
    }

    #[test]
    fn htpasswd_gives_bcrypt_entries_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), "# x\na:$2y$05$abc\nb:plain\nc:{SHA}x\n\nd:$2b$05$d\n").unwrap();
        let entries = read_htpasswd(file.path()).unwrap();
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["a", "d"]);
    }
}
