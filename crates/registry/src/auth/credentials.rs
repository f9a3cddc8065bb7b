//! Credentials: read from requests, checked once, remembered for a while.

use super::limit::Limiter;
use super::oidc::{Identity, Oidc};
use super::password::{self, Work};
use super::rules::Rule;
use super::token::{self, Origin};
use super::users::{Bound, KEY_PREFIX, USERS_FILE, Users, check_name, fingerprint, read_htpasswd};
use super::{AuthError, Settings, now};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;

/// How long a password that was right is not hashed again.
const VERIFIED_AGE_MAX: Duration = Duration::from_secs(300);
/// The most passwords remembered like that.
const VERIFIED_MAX: usize = 1024;
/// Passwords hashed at once: each takes 19 MiB and a core.
const HASHING_MAX: usize = 2;

/// Why credentials are no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// They are wrong.
    Wrong,
    /// There were too many wrong ones; the seconds to wait.
    Wait(u64),
}

/// When a file changed last, and which one it is; `None` if it is not there.
type Stamp = Option<(SystemTime, u64)>;

/// What somebody who signed in is known by, and what that is good for.
pub(super) struct Checked {
    pub(super) bound: Bound,
    pub(super) origin: Origin,
}

/// Everybody who is known.
struct Known {
    users: Users,
    htpasswd: BTreeMap<String, String>,
    /// How their passwords are hashed.
    works: BTreeSet<Work>,
    stamps: [Stamp; 2],
}

/// Checks credentials.
pub(super) struct Credentials {
    known: RwLock<Arc<Known>>,
    /// Passwords that were right, by a hash that means nothing outside of this process.
    verified: Mutex<HashMap<[u8; 32], Instant>>,
    salt: [u8; 32],
    hashing: Semaphore,
    limiter: Limiter,
}

impl Credentials {
    pub(super) fn open(settings: &Settings) -> Result<Self, AuthError> {
        Ok(Self {
            known: RwLock::new(Arc::new(Known::read(settings)?)),
            verified: Mutex::default(),
            salt: token::random().map_err(AuthError::Io)?,
            hashing: Semaphore::new(HASHING_MAX),
            limiter: Limiter::default(),
        })
    }

    fn known(&self) -> Arc<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has_users(&self) -> bool {
        let known = self.known();
        !known.users.users.is_empty() || !known.htpasswd.is_empty()
    }

    /// Whether there are files that name users, or were once.
    pub(super) fn has_file(&self) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.stamps.iter().any(Option::is_some)
    }

    pub(super) fn with_rules<T>(&self, ask: impl FnOnce(&[Rule]) -> T) -> T {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        ask(&known.users.rules)
    }

    /// Reads the files again if they changed; whoever was verified has to be so again.
    pub(super) fn refresh(&self, settings: &Settings) {
        let (before, now) = (self.known().stamps, stamps(settings));
        // A file that is gone is a mistake; without its rules everything would be public.
        let lost = before[0].is_some() && now[0].is_none();
        if before == now || lost {
            return;
        }
        if let Ok(fresh) = Known::read(settings) {
            *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
            self.verified.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Whether these are somebody's name and password, or name and key.
    pub(super) async fn check(
        &self,
        peer: Option<IpAddr>,
        name: &str,
        secret: &str,
    ) -> Result<Checked, Failure> {
        let known = self.known();
        // Keys end, and are cheap to check.
        if secret.starts_with(KEY_PREFIX) {
            let (owner, checked) = self.check_key(peer, secret)?;
            return if owner == name { Ok(checked) } else { Err(self.wrong_key(peer)) };
        }
        let hash = known.hash_of(name);
        let seal = self.seal(name, secret, hash);
        if !self.remembers(&seal) {
            let tried = if check_name(name).is_ok() { name } else { "" };
            self.limiter.take(peer, tried, Instant::now()).map_err(Failure::Wait)?;
            if !self.verify(known.clone(), name, secret).await {
                return Err(Failure::Wrong);
            }
            self.limiter.give_back(peer, tried);
            self.remember(seal);
        }
        let proof = hash.map(password_proof);
        Ok(Checked { bound: Bound::default(), origin: Origin { proof, ends: None } })
    }

    /// Whose key this is, and what it is good for. One that is good is never made to wait for
    /// those that are not.
    pub(super) fn check_key(
        &self,
        peer: Option<IpAddr>,
        key: &str,
    ) -> Result<(String, Checked), Failure> {
        let known = self.known();
        let Some((owner, key)) = known.users.key_owner(key, now()) else {
            return Err(self.wrong_key(peer));
        };
        let origin = Origin { proof: Some(key.fingerprint()), ends: key.expires };
        Ok((owner.to_owned(), Checked { bound: key.bound.clone(), origin }))
    }

    /// Who brings a token of somebody we trust.
    pub(super) async fn check_token(
        &self,
        peer: Option<IpAddr>,
        oidc: &Oidc,
        token: &str,
    ) -> Result<Identity, Failure> {
        let identity = oidc.verify(token, now()).await;
        identity.ok_or_else(|| self.wrong_key(peer))
    }

    /// Counts a key or a token that is wrong.
    fn wrong_key(&self, peer: Option<IpAddr>) -> Failure {
        let counted = self.limiter.count_wrong_key(peer, Instant::now());
        counted.map_or_else(Failure::Wait, |()| Failure::Wrong)
    }

    /// What a token of somebody is good for by what it was had for, if that still counts.
    pub(super) fn bound_of(&self, name: &str, proof: &str) -> Option<Bound> {
        let known = self.known();
        if known.hash_of(name).is_some_and(|hash| password_proof(hash) == proof) {
            return Some(Bound::default());
        }
        let keys = &known.users.users.get(name)?.keys;
        let key = keys.values().find(|key| key.fingerprint() == proof)?;
        key.is_good(now()).then(|| key.bound.clone())
    }

    /// Whether somebody is there.
    pub(super) fn knows(&self, name: &str) -> bool {
        let known = self.known();
        known.users.users.contains_key(name) || known.htpasswd.contains_key(name)
    }

    async fn verify(&self, known: Arc<Known>, name: &str, secret: &str) -> bool {
        let Ok(_permit) = self.hashing.acquire().await else { return false };
        let (name, secret) = (name.to_owned(), secret.to_owned());
        let work = move || password::verify(&secret, known.hash_of(&name), &known.works);
        tokio::task::spawn_blocking(work).await.unwrap_or(false)
    }

    /// What a right password is remembered by. Another hash makes it another password.
    fn seal(&self, name: &str, secret: &str, hash: Option<&str>) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.salt);
        for text in [name, hash.unwrap_or_default()] {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        hasher.update(secret);
        hasher.finalize().into()
    }

    fn remembers(&self, seal: &[u8; 32]) -> bool {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.get(seal).is_some_and(|since| since.elapsed() < VERIFIED_AGE_MAX)
    }

    fn remember(&self, seal: [u8; 32]) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= VERIFIED_MAX {
            verified.retain(|_, since| since.elapsed() < VERIFIED_AGE_MAX);
        }
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(seal, Instant::now());
    }
}

impl Known {
    fn read(settings: &Settings) -> Result<Self, AuthError> {
        // Stamps first: what changes in between is read again.
        let stamps = stamps(settings);
        let users = Users::read(&settings.directory).map_err(AuthError::Users)?;
        let htpasswd = settings.htpasswd.as_deref().map(read_htpasswd).transpose();
        let htpasswd = htpasswd.map_err(AuthError::Io)?.unwrap_or_default();
        let ours = users.users.values().filter_map(|user| user.password.as_deref());
        let works = password::works(ours.chain(htpasswd.values().map(String::as_str)));
        Ok(Self { users, htpasswd, works, stamps })
    }

    /// The hash of somebody's password; our own file comes first.
    fn hash_of(&self, name: &str) -> Option<&str> {
        match self.users.users.get(name) {
            Some(user) => user.password.as_deref(),
            None => self.htpasswd.get(name).map(String::as_str),
        }
    }
}

/// What tells a password from the one before it.
fn password_proof(hash: &str) -> String {
    fingerprint("password", hash)
}

fn stamps(settings: &Settings) -> [Stamp; 2] {
    let stamp = |path: &Path| {
        let found = fs_err::metadata(path).ok()?;
        Some((found.modified().ok()?, found.ino()))
    };
    let users = stamp(&settings.directory.join(USERS_FILE));
    [users, settings.htpasswd.as_deref().and_then(stamp)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L2: whether a user exists is not told by whether a password is hashed at all.
    #[tokio::test]
    async fn l2_the_password_of_a_user_that_does_not_exist_is_hashed_too() {
        let directory = tempfile::tempdir().unwrap();
        let change = |users: &mut Users| users.set_password("alice", "alice's password");
        Users::change(directory.path(), change).unwrap();
        let credentials = Credentials::open(&Settings::new(directory.path())).ok().unwrap();
        let hashers = u32::try_from(HASHING_MAX).unwrap();
        let taken = credentials.hashing.acquire_many(hashers).await.unwrap();
        for name in ["alice", "mallory", "", "no/name"] {
            let mut checking = Box::pin(credentials.check(None, name, "a guess"));
            assert!(futures::poll!(&mut checking).is_pending(), "{name:?} waits for its turn");
        }
        drop(taken);
        for name in ["alice", "mallory"] {
            let checked = credentials.check(None, name, "a guess").await;
            assert_eq!(checked.err(), Some(Failure::Wrong), "{name}");
        }
        assert!(credentials.check(None, "alice", "alice's password").await.is_ok());
    }
}
