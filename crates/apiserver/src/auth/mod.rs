//! # Who may do what
//!
//! ```text
//!  certificate ─┐
//!  token ───────┼─► who: a User ─► impersonate ─► ask: verb, resource ─► policy: allowed?
//!  nothing ─────┘   (or 401)       (or 403)        (or path)              (or 403)
//! ```
//!
//! Every request passes here before anything is looked up, so that whoever may not ask
//! does not learn what there is. Decisions follow roles and bindings ([`policy`]) as they
//! are at that moment; nothing is remembered between requests.

pub mod aggregate;
pub mod ask;
pub mod bootstrap;
mod certificate;
pub(crate) mod escalate;
pub(crate) mod grant;
mod impersonate;
pub(crate) mod openid;
pub mod policy;
pub(crate) mod review;
pub mod rule;
#[cfg(test)]
mod tests;
mod token;
pub mod validate;
mod who;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::Server;
use crate::http::query::Query;
use crate::http::status::Failure;

use aggregate::Gathered;
use ask::Attributes;
use policy::{Policy, Verdict};
pub use token::{KeyError, Signer};
pub use who::{Known, Rejected};

/// The group of everybody who showed who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of those who did not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of those who did not.
pub const ANONYMOUS: &str = "system:anonymous";

/// Someone who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The name that rules know.
    pub name: String,
    /// What tells two of the same name apart.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Whatever else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The server itself, and whoever uses a server without authentication.
    pub fn system() -> Self {
        Self {
            name: "system:apiserver".to_owned(),
            groups: vec![policy::MASTERS.to_owned(), AUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The user as reviews show it.
    pub fn show(&self) -> Value {
        let mut map = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                map.insert(field.to_owned(), json!(text));
            }
        }
        if !self.groups.is_empty() {
            map.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            map.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(map)
    }
}

/// A bearer token that was agreed on beforehand.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What the client sends.
    pub secret: String,
    /// Who that is.
    pub user: User,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("user", &self.user.name).finish_non_exhaustive()
    }
}

/// What decisions are made with.
#[derive(Debug)]
pub struct Access {
    /// Roles and bindings.
    pub policy: Policy,
    pub(crate) known: Known,
    pub(crate) gathered: aggregate::Gathered,
}

impl Access {
    /// With these tokens, and nothing read yet.
    pub fn new(tokens: &[Token]) -> Self {
        let known = Known::new(tokens);
        Self { policy: Policy::default(), known, gathered: Gathered::default() }
    }
}

/// Lets a request in, and says for whom; or says why not.
pub fn admit(server: &Server, parts: &http::request::Parts) -> Result<Arc<User>, Failure> {
    let user = who::identify(server, parts)
        .map_err(|_| Failure::new(401, "Unauthorized", "Unauthorized"))?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let asked = Attributes::of(&user, parts.method.as_str(), parts.uri.path(), &query);
    let Some(other) = impersonate::wanted(&parts.headers)? else {
        check(server, &asked)?;
        drop(asked);
        return Ok(Arc::new(user));
    };
    let other = impersonate::become_other(server, &asked, other)?;
    check(server, &Attributes { user: &other, ..asked.clone() })?;
    Ok(Arc::new(other))
}

/// Decides what is asked.
pub fn authorize(server: &Server, asked: &Attributes<'_>) -> Verdict {
    server.access.policy.authorize(&server.log, asked)
}

/// Refuses what may not be.
fn check(server: &Server, asked: &Attributes<'_>) -> Result<(), Failure> {
    let verdict = authorize(server, asked);
    if verdict.allowed { Ok(()) } else { Err(asked.forbidden(&verdict.reason)) }
}

/// The name under which a service account is known.
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups a service account is in.
fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// The namespace and name in a service account's user name.
fn split_service_account(user: &str) -> Option<(&str, &str)> {
    use schema::object::name::{NameRule, check};
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let fits =
        check(NameRule::Label, namespace).is_empty() && check(NameRule::Subdomain, name).is_empty();
    fits.then_some((namespace, name))
}
