//! Who may do what, from users and rules.
//!
//! ```text
//!   Authorization ─► Basic   name and password, or name and key ─► cache ─► argon2id, bcrypt
//!                    Bearer  a key, or a token we signed, or one of an issuer we trust
//!                       │
//!                       ▼
//!                  Principal (a name; with a token also what that is good for)
//!                       │
//!                       ▼
//!                  rules ∩ token, and what anybody may do anyway
//! ```
//!
//! A token never widens anything: what it says is intersected with the rules of this moment. Nor
//! does it outlive the password, the key or the mapping that it was had for: it names which, and
//! that is looked for with every request. A repository that somebody may not pull is not there for
//! them, whether it exists or not: nobody asks the storage before the rules have answered.

mod audit;
mod credentials;
mod endpoint;
mod limit;
pub mod oidc;
pub mod password;
pub mod rules;
pub mod scope;
mod sign_in;
pub mod token;
pub mod users;

pub use audit::AUDIT_FILE;
pub use rules::{Actions, Mode, Rule};
pub use users::{Users, UsersError};

use crate::access::{Access, Action, Decision, Principal, Record, Refused};
use crate::budget::Budgets;
use crate::hosts::Hosts;
use crate::name::Name;
use crate::storage::private;
use async_trait::async_trait;
use audit::Audit;
use credentials::Credentials;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use oidc::Oidc;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use token::Keys;

/// How often users and keys are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
/// The longest name of a host that is repeated.
const HOST_LENGTH_MAX: usize = 260;

/// Where users are, and how the registry is reached.
#[derive(Clone)]
pub struct Settings {
    /// The data directory.
    pub directory: PathBuf,
    /// An htpasswd file with more users.
    pub htpasswd: Option<PathBuf>,
    /// What somebody without a name may do.
    pub mode: Mode,
    /// The registry's own address as clients know it (`https://host:port`). Without it there are
    /// no tokens to be had, and names and passwords are asked for directly.
    pub address: Option<String>,
    /// Names of the registry: clients that called one of these are sent there for tokens, and not
    /// to that address. What else somebody calls it does not get into an answer.
    pub names: Option<Hosts>,
    /// Whether everybody may do everything as long as the directory has no users.
    pub open_without_users: bool,
    /// How much one client may do.
    pub budgets: Budgets,
    /// Robots that bring tokens of somebody else.
    pub oidc: Option<Arc<Oidc>>,
    /// Bytes of the audit log after which a new one is begun.
    pub audit_size_max: u64,
}

impl Settings {
    /// Users of a data directory, who sign in with names and passwords.
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            htpasswd: None,
            mode: Mode::default(),
            address: None,
            names: None,
            open_without_users: false,
            budgets: Budgets::default(),
            oidc: None,
            audit_size_max: audit::SIZE_MAX,
        }
    }
}

/// Why access cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The users cannot be read.
    #[error("cannot read the users")]
    Users(#[source] UsersError),
    /// A file of the data directory, or the htpasswd file, cannot be used.
    #[error("cannot use the files that say who may do what")]
    Io(#[source] io::Error),
}

/// Decides by users and rules.
pub struct Auth {
    settings: Settings,
    service: String,
    credentials: Credentials,
    keys: RwLock<Arc<Keys>>,
    audit: Audit,
}

impl Auth {
    /// Reads users, rules and keys; makes what is missing.
    pub fn open(settings: Settings) -> Result<Arc<Self>, AuthError> {
        private::make_directory(&settings.directory).map_err(AuthError::Io)?;
        let credentials = Credentials::open(&settings)?;
        let keys = Keys::open(&settings.directory, now()).map_err(AuthError::Io)?;
        let audit =
            Audit::open(&settings.directory, settings.audit_size_max).map_err(AuthError::Io)?;
        let address = settings.address.as_deref().unwrap_or_default();
        let service = address.split_once("://").map_or(address, |(_, host)| host);
        let service = service.trim_end_matches('/').to_owned();
        let keys = RwLock::new(Arc::new(keys));
        Ok(Arc::new(Self { settings, service, credentials, keys, audit }))
    }

    /// Whether anybody could sign in.
    pub fn has_users(&self) -> bool {
        self.credentials.has_users()
    }

    /// The address where tokens are had; to be merged with [`crate::router`].
    pub fn routes(self: &Arc<Self>) -> axum::Router {
        endpoint::routes(self.clone())
    }

    /// Reads users again and again, and lets new keys take over.
    pub async fn keep_fresh(self: Arc<Self>) {
        let mut rounds = 0_u64;
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let auth = self.clone();
            rounds = rounds.wrapping_add(1);
            let with_keys = rounds.is_multiple_of(3600);
            let work = move || {
                auth.refresh();
                if with_keys {
                    auth.refresh_keys();
                }
            };
            let _ = tokio::task::spawn_blocking(work).await;
        }
    }

    /// Reads users again if their files changed. Files that cannot be read change nothing.
    pub fn refresh(&self) {
        self.credentials.refresh(&self.settings);
    }

    fn refresh_keys(&self) {
        if let Ok(keys) = Keys::open(&self.settings.directory, now()) {
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        }
    }

    fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What somebody may do, by the rules alone; `""` is somebody without a name.
    fn granted(&self, who: &str, repository: &str) -> Actions {
        let user = (!who.is_empty()).then_some(who);
        self.credentials
            .with_rules(|rules| rules::granted(rules, self.settings.mode, user, repository))
    }

    /// What somebody is told who has to say who they are; `host` is what they call the registry.
    fn challenge(&self, host: Option<&str>, scope: Option<&str>, error: Option<&str>) -> String {
        let Some(address) = &self.settings.address else {
            return "Basic realm=\"apron\", charset=\"UTF-8\"".to_owned();
        };
        let called = host.zip(address.split_once("://"));
        let called = called.map(|(host, (scheme, _))| format!("{scheme}://{host}"));
        let address = called.as_deref().unwrap_or(address).trim_end_matches('/');
        let scope = scope.map(|it| format!(",scope=\"{it}\"")).unwrap_or_default();
        let error = error.map(|it| format!(",error=\"{it}\"")).unwrap_or_default();
        format!("Bearer realm=\"{address}/token\",service=\"{}\"{scope}{error}", self.service)
    }

    /// Whether nobody is asked, by the users that were read last.
    fn asks_nobody(&self) -> bool {
        self.settings.open_without_users && !self.credentials.has_file()
    }

    /// What a request calls the registry, if clients are sent there.
    fn host<'request>(&self, request: &'request Parts) -> Option<&'request str> {
        let said = request.headers.get(HOST).and_then(|value| value.to_str().ok());
        let said = request.uri.authority().map(Authority::as_str).or(said)?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_[]".contains(&byte);
        let is_host = said.len() <= HOST_LENGTH_MAX && said.bytes().all(fits);
        let names = self.settings.names.as_ref()?;
        (is_host && names.include(&said.parse().ok()?)).then_some(said)
    }

    fn decide_for(&self, who: &Principal, name: &Name, action: Action) -> Decision {
        let needed = needed(action);
        let anybody = self.granted("", name.as_str());
        let bound = who.bound().map_or(Actions::ALL, |it| it.held(name.as_str()));
        let rules = self.granted(who.as_str(), name.as_str()).within(bound);
        let token = match (who.grants(), action) {
            (None, _) => Actions::ALL,
            (Some(grants), Action::List) if scope::lists(grants) => Actions::ALL,
            (Some(grants), _) => scope::held(grants, name.as_str()),
        };
        if rules.within(token).and(anybody).allow(needed) {
            return Decision::Allow;
        }
        let wanted = match action {
            Action::Push => "pull,push",
            Action::Delete => "delete",
            _ => "pull",
        };
        let scope = format!("repository:{name}:{wanted}");
        match who.as_str() {
            "" => Decision::Challenge(self.challenge(who.host(), Some(&scope), None)),
            _ if rules.allow(needed) => {
                let error = Some("insufficient_scope");
                Decision::Challenge(self.challenge(who.host(), Some(&scope), error))
            }
            _ if rules.and(anybody).allow(Actions::PULL) => Decision::Deny,
            _ => Decision::Hide,
        }
    }
}

#[async_trait]
impl Access for Auth {
    async fn principal(&self, request: &Parts) -> Result<Principal, Refused> {
        // Whoever was removed is so at once.
        self.refresh();
        if self.asks_nobody() {
            return Ok(Principal::anonymous());
        }
        let host = self.host(request);
        let identified = self.identify(request).await;
        let identified = identified.map_err(|failure| match failure {
            credentials::Failure::Wrong => {
                Refused::Challenge(self.challenge(host, None, Some("invalid_token")))
            }
            credentials::Failure::Wait(seconds) => Refused::Wait(seconds),
        });
        Ok(identified?.calling(host))
    }

    fn decide(&self, who: &Principal, repository: Option<&Name>, action: Action) -> Decision {
        match repository {
            _ if self.asks_nobody() => Decision::Allow,
            Some(name) => self.decide_for(who, name, action),
            // Clients ask for the base address to learn how to sign in, so nobody passes here
            // without a name or a token (which may be nobody's).
            None if who.as_str().is_empty() && who.grants().is_none() => {
                Decision::Challenge(self.challenge(who.host(), None, None))
            }
            None => Decision::Allow,
        }
    }

    fn is_open(&self) -> bool {
        self.refresh();
        self.asks_nobody()
    }

    fn record(&self, record: &Record<'_>) {
        // Where nobody is asked, there is nobody to be named.
        if self.asks_nobody() {
            return;
        }
        // Everybody's first request is refused, to tell them how to sign in.
        if !(record.status == 401 && record.who.is_empty() && record.what != "sign-in") {
            self.audit.record(record, now());
        }
    }
}

/// The permission an action needs.
fn needed(action: Action) -> Actions {
    match action {
        Action::Pull | Action::List | Action::Look => Actions::PULL,
        Action::Push => Actions::PUSH,
        Action::Delete => Actions::DELETE,
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_secs())
}
