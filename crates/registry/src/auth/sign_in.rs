//! Signing in: from what a request shows to who makes it.

use super::credentials::Failure;
use super::oidc::is_token;
use super::token::Claims;
use super::users::{Bound, KEY_PREFIX};
use super::{Auth, now};
use crate::access::{Access as _, Peer, Principal, Record};
use crate::budget::Kind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use std::net::IpAddr;

/// What a request shows.
pub(super) enum Shown {
    Nothing,
    /// A name, and a password or a key.
    Pair(String, String),
    /// A key or a token.
    Bearer(String),
}

/// Reads what a request shows.
pub(super) fn shown(request: &Parts) -> Result<Shown, Failure> {
    let Some(value) = request.headers.get(AUTHORIZATION) else { return Ok(Shown::Nothing) };
    let value = value.to_str().map_err(|_| Failure::Wrong)?;
    let (scheme, rest) = value.split_once(' ').ok_or(Failure::Wrong)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Shown::Bearer(rest.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(Failure::Wrong);
    }
    let (name, secret) = basic(rest).ok_or(Failure::Wrong)?;
    // Some clients write it like this when they have no name.
    let nothing = name.is_empty() && secret.is_empty();
    Ok(if nothing { Shown::Nothing } else { Shown::Pair(name, secret) })
}

impl Auth {
    /// Who makes a request, by what it says about that.
    pub(super) async fn identify(&self, request: &Parts) -> Result<Principal, Failure> {
        let shown = shown(request)?;
        if let Shown::Bearer(token) = &shown
            && let Some(claims) = self.keys().verify(token, &self.service, now())
        {
            return self.by_token(claims);
        }
        self.sign_in_by(Peer::of(request), shown).await
    }

    /// Somebody by a token that we signed, as long as what they had it for counts.
    fn by_token(&self, claims: Claims) -> Result<Principal, Failure> {
        let bound = match (&claims.sub, &claims.origin.proof) {
            (sub, None) if sub.is_empty() => Some(Bound::default()),
            (_, None) => None,
            (sub, Some(proof)) => self.credentials.bound_of(sub, proof).or_else(|| {
                let oidc = self.settings.oidc.as_ref()?;
                oidc.bound_of(sub, proof)
            }),
        };
        let bound = bound.ok_or(Failure::Wrong)?;
        Ok(Principal::named(&claims.sub).within(claims.access).bound_by(&bound))
    }

    /// Somebody by what they show, which is no token of ours.
    pub(super) async fn sign_in_by(
        &self,
        peer: Option<IpAddr>,
        shown: Shown,
    ) -> Result<Principal, Failure> {
        let foreign = |secret: &str| self.settings.oidc.is_some() && is_token(secret);
        match shown {
            Shown::Nothing => Ok(Principal::anonymous()),
            Shown::Pair(_, secret) if foreign(&secret) => {
                self.sign_in_with_token(peer, &secret).await
            }
            Shown::Pair(name, secret) => self.sign_in(peer, &name, &secret).await,
            Shown::Bearer(key) if key.starts_with(KEY_PREFIX) => self.sign_in_with_key(peer, &key),
            Shown::Bearer(token) if foreign(&token) => self.sign_in_with_token(peer, &token).await,
            Shown::Bearer(_) => Err(Failure::Wrong),
        }
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
        let checked = checked.inspect_err(|failure| self.note_failure(peer, known, *failure))?;
        Ok(Principal::named(name).bound_by(&checked.bound).known_by(checked.origin))
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
        Ok(Principal::named(&identity.user).bound_by(&identity.bound).known_by(identity.origin))
    }

    /// Somebody by a key alone.
    pub(super) fn sign_in_with_key(
        &self,
        peer: Option<IpAddr>,
        key: &str,
    ) -> Result<Principal, Failure> {
        let owner = self.credentials.check_key(peer, key);
        let owner = owner.inspect_err(|failure| self.note_failure(peer, "", *failure));
        let (owner, checked) = owner?;
        Ok(Principal::named(&owner).bound_by(&checked.bound).known_by(checked.origin))
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
