//! Who a client is: by its certificate, by a token agreed on, by a token we signed.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, header};

use super::{ANONYMOUS, AUTHENTICATED, Token, UNAUTHENTICATED, User, token};
use crate::{Identity, Server};

/// Tokens agreed on beforehand. Only digests are compared, all of them each time and in
/// the same time, so that a guess learns nothing from how long its refusal took.
pub struct Known(Vec<(Vec<u8>, User)>);

impl Known {
    pub(super) fn new(tokens: &[Token]) -> Self {
        let digested = tokens.iter().map(|token| (hash(&token.secret), token.user.clone()));
        Self(digested.collect())
    }

    fn find(&self, secret: &str) -> Option<&User> {
        let asked = hash(secret);
        let fits = |known: &[u8]| verify_slices_are_equal(known, &asked).is_ok();
        let mut found = None;
        for (known, user) in &self.0 {
            if fits(known) {
                found = Some(user);
            }
        }
        found
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, user)| &user.name)).finish()
    }
}

fn hash(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

/// What is said of tokens that are not worth another word.
pub(super) const INVALID: &str = "invalid bearer token";

/// Why a token was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected(pub String);

/// The user behind a token, and for whom it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) user: User,
    pub(super) audiences: Vec<String>,
}

/// The user behind a request. Who shows nothing is anonymous; who shows something wrong
/// is nobody.
pub(super) fn identify(server: &Server, parts: &http::request::Parts) -> Result<User, Rejected> {
    if let Some(identity) = parts.extensions.get::<Identity>() {
        return Ok(member(identity.to_user()));
    }
    match bearer(&parts.headers) {
        Some(token) => accept(server, token, server.audiences()).map(|it| it.user),
        None if server.options.authenticate => Ok(User {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..User::default()
        }),
        None => Ok(User::system()),
    }
}

/// Looks at a token that must be meant for one of `audiences`.
pub(super) fn accept(
    server: &Server,
    token: &str,
    audiences: &[String],
) -> Result<Accepted, Rejected> {
    if let Some(user) = server.access.known.find(token) {
        // Tokens agreed on with this server are meant for it alone.
        let common = server.audiences().iter().filter(|own| audiences.contains(own));
        let audiences: Vec<String> = common.cloned().collect();
        if audiences.is_empty() {
            return Err(Rejected(INVALID.to_owned()));
        }
        return Ok(Accepted { user: member(user.clone()), audiences });
    }
    let accepted = token::accept(server, token, audiences)?;
    Ok(Accepted { user: member(accepted.user), ..accepted })
}

/// Adds the group of everybody who is known.
fn member(mut user: User) -> User {
    if !user.groups.iter().any(|group| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str())) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// The token in an `Authorization` header; other schemes count as nothing.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = text.splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
