//! `/token`: credentials in, a token out.
//!
//! What is asked for and may not be had is left out of the token; that is no error. Only wrong
//! credentials are one. A token of ours is none: whoever had it could renew it for ever, after the
//! password or the key that it came from is gone.

use super::credentials::Failure;
use super::scope::{Grant, Scope};
use super::sign_in::shown;
use super::token::Claims;
use super::{Actions, Auth, now, oidc};
use crate::access::{Peer, Principal};
use crate::budget::Kind;
use crate::calendar::timestamp;
use crate::query::Query;
use crate::wire::{self, Refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The longest form that is read.
const FORM_SIZE_MAX: usize = 32 << 10;
/// How long a form may take.
const FORM_TIME_MAX: Duration = Duration::from_secs(10);

pub(super) fn routes(auth: Arc<Auth>) -> Router {
    Router::new().route("/token", any(handle)).with_state(auth)
}

async fn handle(State(auth): State<Arc<Auth>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = auth.answer(&parts, body).await.unwrap_or_else(Refusal::into_response);
    wire::set(&mut response, CACHE_CONTROL, "no-store");
    wire::set(&mut response, http::header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

impl Auth {
    async fn answer(&self, parts: &Parts, body: Body) -> Result<Response, Refusal> {
        let too_long = parts.uri.query().is_some_and(|it| it.len() > FORM_SIZE_MAX);
        if too_long {
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, "UNSUPPORTED", "too many scopes"));
        }
        self.refresh();
        if self.asks_nobody() {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "UNSUPPORTED", "nobody is asked here"));
        }
        let (who, query) = match parts.method {
            Method::GET => {
                let who = self.sign_in_by(Peer::of(parts), shown(parts).map_err(refuse)?).await;
                let who = who.map_err(refuse)?;
                (who, Query::parse(parts.uri.query()))
            }
            Method::POST => {
                let form = read_form(body).await?;
                (self.by_form(parts, &form).await?, form)
            }
            _ => return Err(Refusal::method("GET, POST")),
        };
        let taken = self.settings.budgets.take(Kind::Token, who.as_str(), Peer::of(parts));
        taken.map_err(Refusal::too_often)?;
        self.issue(&who, &query)
    }

    /// Who fills in a form: by password, or with a key as the refresh token.
    async fn by_form(&self, parts: &Parts, form: &Query) -> Result<Principal, Refusal> {
        let field = |name: &str| form.get(name).unwrap_or_default();
        let peer = Peer::of(parts);
        match field("grant_type") {
            "password" => {
                self.sign_in(peer, field("username"), field("password")).await.map_err(refuse)
            }
            "refresh_token" => {
                let secret = field("refresh_token");
                let signed_in = if oidc::is_token(secret) {
                    self.sign_in_with_token(peer, secret).await
                } else {
                    self.sign_in_with_key(peer, secret)
                };
                signed_in.map_err(refuse)
            }
            _ => {
                Err(Refusal::bad("UNSUPPORTED", "grant_type is neither password nor refresh_token"))
            }
        }
    }

    fn issue(&self, who: &Principal, query: &Query) -> Result<Response, Refusal> {
        let now = now();
        let scopes = Scope::parse_all(query.all("scope"));
        let access = self.intersect(who, &scopes);
        let failed = || {
            let message = "no token can be made at the moment";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "UNSUPPORTED", message)
        };
        let written: Vec<String> = access.iter().map(written).collect();
        let claims = Claims::new(who.as_str(), &self.service, who.origin().clone(), access, now);
        let claims = claims.ok_or_else(failed)?;
        let token = self.keys().sign(&claims).ok_or_else(failed)?;
        let body = json!({
            "token": token,
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": claims.exp.saturating_sub(now),
            "issued_at": timestamp(now),
            "scope": written.join(" "),
        });
        let mut response = wire::answer(StatusCode::OK, body.to_string());
        wire::set(&mut response, CONTENT_TYPE, wire::JSON);
        Ok(response)
    }

    /// What was asked for and may be had.
    fn intersect(&self, who: &Principal, scopes: &[Scope]) -> Vec<Grant> {
        let grant = |kind: &str, name: &str, actions: Vec<&str>| Grant {
            kind: kind.to_owned(),
            name: name.to_owned(),
            actions: actions.into_iter().map(str::to_owned).collect(),
        };
        let mut grants = Vec::new();
        for scope in scopes {
            match scope {
                // A list shows whatever its owner may see, so a key for some of it is none for that.
                Scope::Catalog if who.bound().is_none() => {
                    grants.push(grant("registry", "catalog", vec!["*"]));
                }
                Scope::Catalog => {}
                Scope::Repository(name, asked) => {
                    let name = name.as_str();
                    let bound = who.bound().map_or(Actions::ALL, |it| it.held(name));
                    let held = self.granted(who.as_str(), name).within(*asked).within(bound);
                    if held != Actions::NONE {
                        grants.push(grant("repository", name, held.words()));
                    }
                }
            }
        }
        grants
    }
}

fn written(grant: &Grant) -> String {
    format!("{}:{}:{}", grant.kind, grant.name, grant.actions.join(","))
}

fn refuse(failure: Failure) -> Refusal {
    match failure {
        Failure::Wrong => {
            let message = "the name, the password or the key is wrong";
            Refusal::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
                .header(WWW_AUTHENTICATE, "Basic realm=\"apron\", charset=\"UTF-8\"")
        }
        Failure::Wait(seconds) => Refusal::refused(crate::access::Refused::Wait(seconds)),
    }
}

async fn read_form(body: Body) -> Result<Query, Refusal> {
    let bad = || Refusal::bad("UNSUPPORTED", "the form is too large, too slow or broken");
    let reading = Limited::new(body, FORM_SIZE_MAX).collect();
    let read = tokio::time::timeout(FORM_TIME_MAX, reading).await.map_err(|_| bad())?;
    let bytes = read.map_err(|_| bad())?.to_bytes();
    let text = std::str::from_utf8(&bytes).map_err(|_| bad())?;
    Ok(Query::parse(Some(text)))
}
