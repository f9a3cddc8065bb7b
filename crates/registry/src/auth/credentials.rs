//! Credentials: read from requests, checked once, remembered for a while.

use super::limit::Limiter;
use super::oidc::{Identity, Oidc, is_token};
use super::rules::Rule;
use super::users::{Bound, KEY_PREFIX, USERS_FILE, Users, check_name, read_htpasswd};
use super::{Auth, AuthError, Settings, now, password, token};
use crate::access::{Access as _, Peer, Principal, Record};
use crate::budget::Kind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
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

/// Everybody who is known.
struct Known {
    users: Users,
    htpasswd: BTreeMap<String, String>,
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
    ) -> Result<Bound, Failure> {
        let known = self.known();
        // Keys end, and are cheap to check.
        if secret.starts_with(KEY_PREFIX) {
            let (owner, bound) = self.check_key(peer, secret)?;
            return if owner == name { Ok(bound) } else { Err(Failure::Wrong) };
        }
        let seal = self.seal(name, secret);
        if self.remembers(&seal) {
            return Ok(Bound::default());
        }
        let tried = if check_name(name).is_ok() { name } else { "" };
        self.limiter.take(peer, tried, Instant::now()).map_err(Failure::Wait)?;
        if !self.verify(known.hash_of(name), secret).await {
            return Err(Failure::Wrong);
        }
        self.limiter.give_back(peer, tried);
        // Only what was checked against the users of now is remembered.
        if Arc::ptr_eq(&known, &self.known()) {
            self.remember(seal);
        }
        Ok(Bound::default())
    }

    /// Whose key this is, and what it is good for.
    pub(super) fn check_key(
        &self,
        peer: Option<IpAddr>,
        key: &str,
    ) -> Result<(String, Bound), Failure> {
        self.limiter.take(peer, "", Instant::now()).map_err(Failure::Wait)?;
        let known = self.known();
        let (owner, bound) = known.users.key_owner(key, now()).ok_or(Failure::Wrong)?;
        self.limiter.give_back(peer, "");
        Ok((owner.to_owned(), bound.clone()))
    }

    /// Who brings a token of somebody we trust.
    async fn check_token(
        &self,
        peer: Option<IpAddr>,
        oidc: &Oidc,
        token: &str,
    ) -> Result<Identity, Failure> {
        self.limiter.take(peer, "", Instant::now()).map_err(Failure::Wait)?;
        let identity = oidc.verify(token, now()).await.ok_or(Failure::Wrong)?;
        self.limiter.give_back(peer, "");
        Ok(identity)
    }

    /// Whether somebody is still there.
    pub(super) fn knows(&self, name: &str) -> bool {
        let known = self.known();
        known.users.users.contains_key(name) || known.htpasswd.contains_key(name)
    }

    async fn verify(&self, hash: Option<String>, secret: &str) -> bool {
        let Ok(_permit) = self.hashing.acquire().await else { return false };
        let secret = secret.to_owned();
        let work = move || password::verify(&secret, hash.as_deref());
        tokio::task::spawn_blocking(work).await.unwrap_or(false)
    }

    fn seal(&self, name: &str, secret: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.salt);
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
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
        Ok(Self { users, htpasswd, stamps })
    }

    /// The hash of somebody's password; our own file comes first.
    fn hash_of(&self, name: &str) -> Option<String> {
        match self.users.users.get(name) {
            Some(user) => user.password.clone(),
            None => self.htpasswd.get(name).cloned(),
        }
    }
}

fn stamps(settings: &Settings) -> [Stamp; 2] {
    let stamp = |path: &Path| {
        let found = fs_err::metadata(path).ok()?;
        Some((found.modified().ok()?, found.ino()))
    };
    let users = stamp(&settings.directory.join(USERS_FILE));
    [users, settings.htpasswd.as_deref().and_then(stamp)]
}

impl Auth {
    /// Who makes a request, by what it says about that.
    pub(super) async fn identify(&self, request: &Parts) -> Result<Principal, Failure> {
        let Some(value) = request.headers.get(AUTHORIZATION) else {
            return Ok(Principal::anonymous());
        };
        let (peer, value) = (Peer::of(request), value.to_str().map_err(|_| Failure::Wrong)?);
        let (scheme, rest) = value.split_once(' ').ok_or(Failure::Wrong)?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("basic") {
            let (name, secret) = basic(rest).ok_or(Failure::Wrong)?;
            // Some clients write it like this when they have no name.
            if name.is_empty() && secret.is_empty() {
                return Ok(Principal::anonymous());
            }
            if self.settings.oidc.is_some() && is_token(&secret) {
                return self.sign_in_with_token(peer, &secret).await;
            }
            return self.sign_in(peer, &name, &secret).await;
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Failure::Wrong);
        }
        if rest.starts_with(KEY_PREFIX) {
            return self.sign_in_with_key(peer, rest);
        }
        let Some(claims) = self.keys().verify(rest, &self.service, now()) else {
            return match self.settings.oidc {
                Some(_) if is_token(rest) => self.sign_in_with_token(peer, rest).await,
                _ => Err(Failure::Wrong),
            };
        };
        let by_token = || self.settings.oidc.as_ref().is_some_and(|it| it.knows(&claims.sub));
        if !claims.sub.is_empty() && !self.credentials.knows(&claims.sub) && !by_token() {
            return Err(Failure::Wrong);
        }
        Ok(Principal::named(&claims.sub).within(claims.access))
    }

    /// Somebody by name and password, or name and key.
    pub(super) async fn sign_in(
        &self,
        peer: Option<IpAddr>,
        name: &str,
        secret: &str,
    ) -> Result<Principal, Failure> {
        let checked = self.credentials.check(peer, name, secret).await;
        // Passwords are typed where names belong: a name is written down only if it is one.
        let known = if self.credentials.knows(name) { name } else { "" };
        let bound = checked.inspect_err(|failure| self.note_failure(peer, known, *failure))?;
        Ok(Principal::named(name).bound_by(&bound))
    }

    /// Somebody by a token of an issuer we trust.
    pub(super) async fn sign_in_with_token(
        &self,
        peer: Option<IpAddr>,
        token: &str,
    ) -> Result<Principal, Failure> {
        let Some(oidc) = &self.settings.oidc else { return Err(Failure::Wrong) };
        let identity = self.credentials.check_token(peer, oidc, token).await;
        let identity = identity.inspect_err(|failure| self.note_failure(peer, "", *failure))?;
        Ok(Principal::named(&identity.user).bound_by(&identity.bound))
    }

    /// Somebody by a key alone.
    pub(super) fn sign_in_with_key(
        &self,
        peer: Option<IpAddr>,
        key: &str,
    ) -> Result<Principal, Failure> {
        let owner = self.credentials.check_key(peer, key);
        let owner = owner.inspect_err(|failure| self.note_failure(peer, "", *failure));
        let (owner, bound) = owner?;
        Ok(Principal::named(&owner).bound_by(&bound))
    }

    fn note_failure(&self, peer: Option<IpAddr>, who: &str, failure: Failure) {
        let status = if failure == Failure::Wrong { 401 } else { 429 };
        if failure != Failure::Wrong {
            self.settings.budgets.refused(Kind::SignIn);
        }
        let (what, nothing) = ("sign-in", None);
        let (repository, reference, digest) = (nothing, nothing, nothing);
        self.record(&Record { who, peer, what, repository, reference, digest, status });
    }
}

/// The name and the password of a `Basic` header.
fn basic(text: &str) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let (name, secret) = text.split_once(':')?;
    Some((name.to_owned(), secret.to_owned()))
}
