//! Who may do what: the seam between the protocol and whoever knows users and rules.
//!
//! The protocol asks twice per request: who is this ([`Access::principal`]), and may they do
//! this here ([`Access::decide`]). [`Open`] lets everybody do everything, which is right on a
//! loopback address and nowhere else.

use crate::auth::scope::Grant;
use crate::auth::token::Origin;
use crate::auth::users::Bound;
use crate::name::Name;
use async_trait::async_trait;
use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;

/// Somebody who makes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    /// What the token they came with is good for; without a token, that is up to the rules.
    grants: Option<Arc<[Grant]>>,
    /// What the key they came with is good for; without one, everything they may do.
    bound: Option<Arc<Bound>>,
    /// What they showed, for tokens that are made from it.
    origin: Arc<Origin>,
    /// What they call the registry, as far as that counts.
    host: Option<Arc<str>>,
}

impl Principal {
    /// Somebody by name.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), grants: None, bound: None, origin: Arc::default(), host: None }
    }

    /// Somebody who did not say.
    pub fn anonymous() -> Self {
        Self::named("")
    }

    /// The same with a token, which is good for no more than this.
    #[must_use]
    pub fn within(self, grants: Vec<Grant>) -> Self {
        Self { grants: Some(grants.into()), ..self }
    }

    /// The same with a key, which is good for no more than this.
    #[must_use]
    pub(crate) fn bound_by(self, bound: &Bound) -> Self {
        let bound = (*bound != Bound::default()).then(|| Arc::new(bound.clone()));
        Self { bound, ..self }
    }

    /// The same, and what they showed.
    #[must_use]
    pub(crate) fn known_by(self, origin: Origin) -> Self {
        Self { origin: Arc::new(origin), ..self }
    }

    /// The same, and what they call the registry.
    #[must_use]
    pub(crate) fn calling(self, host: Option<&str>) -> Self {
        Self { host: host.map(Arc::from), ..self }
    }

    /// What they call the registry.
    pub(crate) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// What they showed.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What their key is good for, if that is not everything.
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.bound.as_deref()
    }

    /// The name; empty if they did not say.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What their token is good for, if they came with one.
    pub fn grants(&self) -> Option<&[Grant]> {
        self.grants.as_deref()
    }
}

/// The address a request came from; whoever accepts connections puts it among its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// Where a request came from, if anybody said.
    pub fn of(request: &Parts) -> Option<IpAddr> {
        request.extensions.get::<Self>().map(|peer| peer.0)
    }
}

/// Why it is not said who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The credentials are wrong; the text is the `WWW-Authenticate` header.
    Challenge(String),
    /// There were too many wrong ones; try again after this many seconds.
    Wait(u64),
}

/// Why a request is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It calls the registry by a name that is not its own.
    Host,
    /// It does not say well enough whose it is.
    Refused(Refused),
    /// There were too many; try again after this many seconds.
    TooOften(u64),
}

/// Something that was done, or refused.
#[derive(Clone, Copy, Debug)]
pub struct Record<'request> {
    /// Who; empty if they did not say.
    pub who: &'request str,
    /// From where.
    pub peer: Option<IpAddr>,
    /// What they wanted, in a word.
    pub what: &'request str,
    /// To which repository.
    pub repository: Option<&'request str>,
    /// By which tag or digest.
    pub reference: Option<&'request str>,
    /// The digest that was answered.
    pub digest: Option<&'request str>,
    /// The status that was answered.
    pub status: u16,
}

/// What somebody wants to do to a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read manifests, blobs, tags and referrers.
    Pull,
    /// Add blobs, manifests and tags.
    Push,
    /// Remove them.
    Delete,
    /// Find the repository in a list.
    List,
    /// Ask about the registry as a whole: the base address, the list of repositories.
    Look,
}

/// Whether they may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They should say who they are; the text is the `WWW-Authenticate` header.
    Challenge(String),
    /// They may not know that the repository exists.
    Hide,
    /// They may not.
    Deny,
}

/// Knows users and rules.
#[async_trait]
pub trait Access: Send + Sync {
    /// Who makes this request.
    async fn principal(&self, request: &Parts) -> Result<Principal, Refused>;

    /// Whether somebody may do something to a repository; `None` is the registry as a whole.
    fn decide(&self, who: &Principal, repository: Option<&Name>, action: Action) -> Decision;

    /// Whether everybody may do everything at the moment.
    fn is_open(&self) -> bool {
        false
    }

    /// Takes note of what was changed or refused.
    fn record(&self, _record: &Record<'_>) {}
}

/// Everybody may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

#[async_trait]
impl Access for Open {
    async fn principal(&self, _request: &Parts) -> Result<Principal, Refused> {
        Ok(Principal::anonymous())
    }

    fn decide(&self, _who: &Principal, _repository: Option<&Name>, _action: Action) -> Decision {
        Decision::Allow
    }

    fn is_open(&self) -> bool {
        true
    }
}
