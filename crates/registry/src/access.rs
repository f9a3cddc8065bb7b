//! Who may do what: the seam between the protocol and whoever knows users and rules.
//!
//! The protocol asks twice per request: who is this ([`Access::principal`]), and may they do
//! this here ([`Access::decide`]). [`Open`] lets everybody do everything, which is right on a
//! loopback address and nowhere else.

use crate::name::Name;
use async_trait::async_trait;
use http::request::Parts;
use std::sync::Arc;

/// Somebody who makes requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Somebody by name.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Somebody who did not say.
    pub fn anonymous() -> Self {
        Self("".into())
    }

    /// The name; empty if they did not say.
    pub fn as_str(&self) -> &str {
        &self.0
    }
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
    /// Who makes this request. Wrong credentials are an answer: the text of a `WWW-Authenticate`
    /// header.
    async fn principal(&self, request: &Parts) -> Result<Principal, String>;

    /// Whether somebody may do something to a repository; `None` is the registry as a whole.
    fn decide(&self, who: &Principal, repository: Option<&Name>, action: Action) -> Decision;
}

/// Everybody may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

#[async_trait]
impl Access for Open {
    async fn principal(&self, _request: &Parts) -> Result<Principal, String> {
        Ok(Principal::anonymous())
    }

    fn decide(&self, _who: &Principal, _repository: Option<&Name>, _action: Action) -> Decision {
        Decision::Allow
    }
}
