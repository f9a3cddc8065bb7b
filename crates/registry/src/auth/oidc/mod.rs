//! Robots that bring a token of somebody we trust: CI systems that speak `OpenID` Connect.
//!
//! ```text
//!   token ─► issuer we know ─► its keys (fetched over TLS, kept) ─► signature, audience, time
//!                                   ─► claims fit a mapping ─► a user, bound to repositories
//! ```
//!
//! A mapping says which claims a token must have, as whom its bearer then counts, and where
//! that holds. It cannot be without conditions: an issuer such as a public CI system signs
//! tokens for everybody in the world.

mod jwk;

use super::rules::{Actions, is_pattern, matches_text};
use super::token::Origin;
use super::users::{Bound, check_name, fingerprint};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Empty};
use jwk::{Header, Keys};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::remote::{BoxError, Transport};
use tokio::sync::Mutex;
use tower::ServiceExt as _;

/// The longest token that is looked at.
const TOKEN_LENGTH_MAX: usize = 16 << 10;
/// The largest document an issuer may publish.
const DOCUMENT_SIZE_MAX: usize = 1 << 20;
/// How long an issuer may take.
const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
/// How long keys are kept.
const KEYS_AGE_MAX: Duration = Duration::from_secs(3600);
/// The shortest pause between two looks at an issuer; tokens with unknown keys are cheap to make.
const FETCH_PAUSE: Duration = Duration::from_secs(30);
/// Clocks that differ a little do no harm.
const CLOCK_SLACK: u64 = 60;

/// Whom we trust, as it is written in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Everybody whose tokens count.
    pub issuers: Vec<IssuerConfig>,
}

/// Somebody whose tokens count.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// Their address, exactly as tokens have it.
    pub issuer: String,
    /// Whom tokens must be made for.
    pub audience: String,
    /// What their bearers may do; the first that fits counts.
    pub mappings: Vec<Mapping>,
}

/// Tokens with these claims, and what they are good for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Claims that a token must have; `*` stands for anything.
    pub claims: BTreeMap<String, String>,
    /// As whom its bearer counts.
    pub user: String,
    /// Repositories it is good for.
    pub repositories: String,
    /// What may be done there, of what the user may do.
    pub actions: Actions,
}

/// Why a file says nothing that could be meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not JSON of the right form.
    #[error("the file does not have the form it should have")]
    Form(#[source] serde_json::Error),
    /// Keys must come over TLS.
    #[error("issuer `{0}` is not an https address")]
    Issuer(String),
    /// Everybody's tokens are for somebody.
    #[error("issuer `{0}` has no audience")]
    Audience(String),
    /// Everybody with a token would pass.
    #[error("a mapping of `{0}` has no claims, so that any of its tokens would do")]
    Claims(String),
    /// The user or the pattern is none.
    #[error("`{0}` is not a user, or not a pattern for repositories")]
    Mapping(String),
}

impl Config {
    /// Reads a file's content.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_slice(bytes).map_err(ConfigError::Form)?;
        for issuer in &config.issuers {
            let name = || issuer.issuer.clone();
            if !issuer.issuer.starts_with("https://") {
                return Err(ConfigError::Issuer(name()));
            }
            if issuer.audience.is_empty() {
                return Err(ConfigError::Audience(name()));
            }
            for mapping in &issuer.mappings {
                // A condition that everything meets is none.
                if mapping.claims.values().all(|it| it.bytes().all(|byte| byte == b'*')) {
                    return Err(ConfigError::Claims(name()));
                }
                check_name(&mapping.user)
                    .map_err(|_| ConfigError::Mapping(mapping.user.clone()))?;
                if !is_pattern(&mapping.repositories) {
                    return Err(ConfigError::Mapping(mapping.repositories.clone()));
                }
            }
        }
        Ok(config)
    }
}

/// Checks tokens of those we trust.
pub struct Oidc {
    issuers: Vec<Issuer>,
}

struct Issuer {
    config: IssuerConfig,
    /// What tells each of its mappings from all others.
    proofs: Vec<String>,
    transport: Transport,
    state: Mutex<State>,
}

/// What is known of an issuer's keys, and since when.
#[derive(Default)]
struct State {
    keys: Arc<Keys>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

/// Who brings a token.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) bound: Bound,
    pub(super) origin: Origin,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Oidc {
    /// Trusts whom a config names; keys are fetched this way.
    pub fn new(config: Config, transport: &Transport) -> Arc<Self> {
        let issuer = |config: IssuerConfig| Issuer {
            proofs: config.mappings.iter().map(|mapping| config.proof(mapping)).collect(),
            config,
            transport: transport.clone(),
            state: Mutex::default(),
        };
        Arc::new(Self { issuers: config.issuers.into_iter().map(issuer).collect() })
    }

    /// What a mapping lets a user do, if it is still there.
    pub(super) fn bound_of(&self, user: &str, proof: &str) -> Option<Bound> {
        let mut all = self.issuers.iter().flat_map(|it| it.config.mappings.iter().zip(&it.proofs));
        let (mapping, _) = all.find(|(mapping, known)| mapping.user == user && *known == proof)?;
        Some(mapping.bound())
    }

    /// Who brings this token, if it is a good one.
    pub(super) async fn verify(&self, token: &str, now: u64) -> Option<Identity> {
        if token.len() > TOKEN_LENGTH_MAX {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Header = decode(header)?;
        let claims: BTreeMap<String, Value> = decode(claims)?;
        let named = claims.get("iss")?.as_str()?;
        let issuer = self.issuers.iter().find(|it| it.config.issuer == named)?;
        let signature = BASE64.decode(signature).ok()?;
        let keys = issuer.keys(&header.kid).await;
        if !keys.verify(&header, text.as_bytes(), &signature) {
            return None;
        }
        let timely = is_timely(&claims, now) && is_for(&claims, &issuer.config.audience);
        let mut mappings = issuer.config.mappings.iter().zip(&issuer.proofs);
        let (mapping, proof) = mappings.find(|(it, _)| it.fits(&claims))?;
        let ends = claims.get("exp").and_then(Value::as_u64);
        let ends = ends.map(|exp| exp.saturating_add(CLOCK_SLACK));
        let origin = Origin { proof: Some(proof.clone()), ends };
        timely.then(|| Identity { user: mapping.user.clone(), bound: mapping.bound(), origin })
    }
}

impl IssuerConfig {
    fn proof(&self, mapping: &Mapping) -> String {
        fingerprint("mapping", &format!("{} {} {mapping:?}", self.issuer, self.audience))
    }
}

impl Mapping {
    fn fits(&self, claims: &BTreeMap<String, Value>) -> bool {
        self.claims.iter().all(|(name, pattern)| {
            let held = claims.get(name).map(texts).unwrap_or_default();
            held.iter().any(|text| matches_text(pattern, text))
        })
    }

    fn bound(&self) -> Bound {
        Bound { repositories: Some(self.repositories.clone()), actions: Some(self.actions) }
    }
}

impl Issuer {
    /// The keys; fetched again when they are old, or when this one is not among them.
    async fn keys(&self, kid: &str) -> Arc<Keys> {
        let mut state = self.state.lock().await;
        let fresh = state.fetched.is_some_and(|it| it.elapsed() < KEYS_AGE_MAX);
        let waits = state.tried.is_some_and(|it| it.elapsed() < FETCH_PAUSE);
        if (fresh && state.keys.has(kid)) || waits {
            return state.keys.clone();
        }
        state.tried = Some(Instant::now());
        // Keys we have stay good when nobody answers.
        if let Ok(Some(keys)) = tokio::time::timeout(FETCH_TIME_MAX, self.fetch()).await {
            state.keys = Arc::new(keys);
            state.fetched = Some(Instant::now());
        }
        state.keys.clone()
    }

    async fn fetch(&self) -> Option<Keys> {
        let base = self.config.issuer.trim_end_matches('/');
        let found: Discovery =
            self.get(&format!("{base}/.well-known/openid-configuration")).await?;
        // A document that speaks for somebody else is not about this one.
        let ours = found.issuer == self.config.issuer && found.jwks_uri.starts_with("https://");
        if !ours {
            return None;
        }
        self.get(&found.jwks_uri).await
    }

    /// A small document; redirects are not followed.
    async fn get<T: DeserializeOwned>(&self, address: &str) -> Option<T> {
        let body = Empty::<Bytes>::new().map_err(|never| -> BoxError { match never {} });
        let body = body.boxed_unsync();
        let request = http::Request::get(address).body(body).ok()?;
        // Boxed, so that the compiler need not see through the transport in every caller.
        let sent: BoxFuture<'static, _> = Box::pin(self.transport.clone().oneshot(request));
        let response = sent.await.ok()?;
        if response.status() != http::StatusCode::OK {
            return None;
        }
        let (mut body, mut bytes) = (response.into_body(), Vec::new());
        while let Some(frame) = body.frame().await {
            bytes.extend_from_slice(&frame.ok()?.into_data().unwrap_or_default());
            if bytes.len() > DOCUMENT_SIZE_MAX {
                return None;
            }
        }
        serde_json::from_slice(&bytes).ok()
    }
}

/// Whether something may be a token of this kind, and not a password or a key.
pub(super) fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.split('.').count() == 3
}

fn decode<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}

fn is_timely(claims: &BTreeMap<String, Value>, now: u64) -> bool {
    let time = |name: &str| claims.get(name).and_then(Value::as_u64);
    let begun = |name: &str| time(name).is_none_or(|it| it <= now.saturating_add(CLOCK_SLACK));
    time("exp").is_some_and(|exp| now < exp.saturating_add(CLOCK_SLACK))
        && begun("nbf")
        && begun("iat")
}

fn is_for(claims: &BTreeMap<String, Value>, audience: &str) -> bool {
    claims.get("aud").map(texts).unwrap_or_default().iter().any(|it| it == audience)
}

/// A claim's texts: one, or several of a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_however_far_off_they_are() {
        let claims = |exp: u64, nbf: u64| {
            BTreeMap::from([("exp".to_owned(), exp.into()), ("nbf".to_owned(), nbf.into())])
        };
        assert!(is_timely(&claims(u64::MAX, 0), 1000));
        assert!(is_timely(&claims(1000, 1000), 1000 + CLOCK_SLACK - 1));
        assert!(!is_timely(&claims(1000, 1000), 1000 + CLOCK_SLACK));
        assert!(!is_timely(&claims(u64::MAX, u64::MAX), 1000));
        assert!(!is_timely(&BTreeMap::new(), 1000));
    }
}
