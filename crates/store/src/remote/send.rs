//! From a call to an answer: retries, authorisation, redirects, one exchange.

use super::error::{innermost, is_transient};
use super::http::is_tls;
use super::lead::check_lead;
use super::pace::Pace;
use super::request::{self, Activity, Call, Payload, same_origin, shown};
use super::{Body, BoxError, Client, HttpError, text};
use crate::error::Cause;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use oci::Repository;
use reqwest::Url;
use serde::Deserialize;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tower::ServiceExt;

const REDIRECTS_MAX: usize = 5;
/// How much of an error body is read.
const ERROR_SIZE_MAX: u64 = 64 << 10;
/// How much of it is shown.
const MESSAGE_LENGTH_MAX: usize = 500;
/// How much, if it is not the registry's.
const FOREIGN_LENGTH_MAX: usize = 200;

impl Client {
    /// Sends a call until it is answered for good or the tries are used up. Answers with an error
    /// status are answers; the caller knows what they mean.
    pub(crate) async fn send(
        &self,
        repository: &Repository,
        call: &Call<'_>,
    ) -> Result<Response<Body>, Cause> {
        let mut tries = 1;
        loop {
            let outcome = self.authorised(repository, call).await;
            let asked = match &outcome {
                Ok(response) if is_transient(response.status()) => retry_after(response),
                Err(Cause::Http(error)) if error.is_transient() => None,
                _ => return outcome,
            };
            if !call.retry || tries >= self.inner.settings.tries {
                return outcome;
            }
            let why = match &outcome {
                Ok(response) => format!("answered with {}", response.status()),
                Err(cause) => cause.to_string(),
            };
            self.wait_to_retry(repository.registry(), tries, asked, &why).await;
            tries += cost(&outcome);
        }
    }

    /// How long to wait after so many tries.
    pub(crate) fn pause(&self, tries: u32, asked: Option<Duration>) -> Duration {
        let settings = &self.inner.settings;
        let doubled = settings.backoff.saturating_mul(1 << (tries - 1).min(16));
        // A quarter more or less, told by the seed and the try, so that tests can repeat it.
        let mixed = (settings.jitter ^ u64::from(tries)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let share = u32::try_from(mixed >> 54).unwrap_or(0);
        let spread = doubled * share / 4096;
        asked.unwrap_or_default().max(doubled + spread).min(settings.backoff_max)
    }

    /// Sends with the authorisation the registry is known to want; learns it from a 401.
    async fn authorised(
        &self,
        repository: &Repository,
        call: &Call<'_>,
    ) -> Result<Response<Body>, Cause> {
        // An upload may go to another host, which has no business with our credentials.
        let home = same_origin(&call.url, &self.base(repository).await?);
        if !home {
            return self.follow(call, None).await.map(foreign);
        }
        let shown = self.authorization(repository, &call.scopes).await?;
        let response = self.follow(call, shown.clone()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let renewed = self.authorise(repository, &call.scopes, response.headers(), shown).await?;
        let Some(renewed) = renewed else {
            return Err(self.unauthorized(repository, response).await.into());
        };
        drop(response);
        let response = self.follow(call, Some(renewed)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(self.unauthorized(repository, response).await.into());
        }
        Ok(response)
    }

    async fn unauthorized(&self, repository: &Repository, response: Response<Body>) -> HttpError {
        HttpError::Unauthorized {
            registry: repository.registry().to_owned(),
            message: self.message(response).await,
        }
    }

    /// Follows redirects. Credentials never leave the host they are for.
    pub(crate) async fn follow(
        &self,
        call: &Call<'_>,
        mut authorization: Option<HeaderValue>,
    ) -> Result<Response<Body>, Cause> {
        let mut url = call.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.exchange(call, &url, authorization.as_ref()).await?;
            let Some(next) = redirect(call, &url, &response)? else {
                let is_foreign = call.for_token || !same_origin(&call.url, &url);
                return Ok(if is_foreign { foreign(response) } else { response });
            };
            check_lead(&url, &next)?;
            if !same_origin(&url, &next) {
                Self::check_token_redirect(call, &url, &next)?;
                authorization = None;
            }
            url = next;
        }
        Err(HttpError::Redirects { url: shown(&call.url), limit: REDIRECTS_MAX }.into())
    }

    /// A question for a token is not asked elsewhere with a credential in it, nor in plain.
    fn check_token_redirect(call: &Call<'_>, from: &Url, to: &Url) -> Result<(), HttpError> {
        let has_body = !matches!(call.payload, Payload::Empty);
        let is_plain = to.scheme() == "http" && from.host() != to.host();
        if call.for_token && (has_body || is_plain) {
            return Err(HttpError::Leak { from: shown(from), to: shown(to) });
        }
        Ok(())
    }

    /// One request, one answer, and no waiting for ever.
    async fn exchange(
        &self,
        call: &Call<'_>,
        url: &Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response<Body>, Cause> {
        let activity = Activity::new();
        let mut request = call.request(url, &activity).await?;
        let headers = request.headers_mut();
        if let Ok(agent) = HeaderValue::from_str(&self.inner.settings.user_agent) {
            headers.insert(USER_AGENT, agent);
        }
        if let Some(authorization) = authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            headers.insert(AUTHORIZATION, authorization);
        }
        let mut future = self.dispatch(request);
        let idle = self.inner.settings.idle_timeout;
        let outcome = loop {
            tokio::select! {
                outcome = &mut future => break outcome,
                () = sleep_until(activity.last() + idle) => {
                    // An upload that still moves is not idle.
                    if activity.last() + idle <= Instant::now() {
                        return Err(self.silent(url).into());
                    }
                }
            }
        };
        outcome.map_err(|error| match activity.take_error() {
            Some(own) => Cause::from(own),
            None => HttpError::Connection {
                host: host(url),
                tls: is_tls(&*error),
                reason: innermost(&*error),
            }
            .into(),
        })
    }

    /// Boxed, so that the compiler need not see through the transport in every caller.
    fn dispatch(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, BoxError>> {
        Box::pin(self.inner.transport.clone().oneshot(request))
    }

    fn silent(&self, url: &Url) -> HttpError {
        HttpError::Timeout { host: host(url), after: self.inner.settings.idle_timeout }
    }

    /// The next piece of an answer; `None` at its end.
    pub(crate) async fn next(
        &self,
        url: &Url,
        body: &mut Body,
    ) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = timeout(self.inner.settings.idle_timeout, body.frame()).await;
            match frame.map_err(|_| self.silent(url))? {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(source)) => {
                    return Err(HttpError::Connection {
                        host: host(url),
                        tls: false,
                        reason: innermost(&*source),
                    });
                }
            }
        }
    }

    /// All of an answer, if it is not longer than `limit`.
    pub(crate) async fn read(
        &self,
        call: &Call<'_>,
        mut body: Body,
        what: &str,
        limit: u64,
    ) -> Result<Vec<u8>, Cause> {
        let mut bytes = Vec::new();
        let mut pace = Pace::new(self.inner.settings.idle_timeout);
        let mut start = Instant::now();
        while let Some(chunk) = self.next(&call.url, &mut body).await? {
            pace.advance(&host(&call.url), chunk.len(), start.elapsed())?;
            start = Instant::now();
            if bytes.len() as u64 + chunk.len() as u64 > limit {
                return Err(Cause::TooLarge { what: what.to_owned(), limit });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Sends a call and reads all of its answer, again if the connection breaks in the middle.
    pub(crate) async fn fetch_whole(
        &self,
        repository: &Repository,
        call: &Call<'_>,
        what: &str,
        limit: u64,
    ) -> Result<Fetched, Cause> {
        let mut tries = 1;
        loop {
            let response = self.send(repository, call).await?;
            if response.status() != StatusCode::OK {
                return Ok(Fetched::Refused(response));
            }
            let (parts, body) = response.into_parts();
            match self.read(call, body, what, limit).await {
                Ok(bytes) => return Ok(Fetched::Found(parts.headers, bytes)),
                Err(Cause::Http(error))
                    if error.is_transient() && tries < self.inner.settings.tries =>
                {
                    let why = error.to_string();
                    self.wait_to_retry(repository.registry(), tries, None, &why).await;
                }
                Err(cause) => return Err(cause),
            }
            tries += 1;
        }
    }

    /// An answer nobody wanted, as an error.
    pub(crate) async fn refusal(&self, call: &Call<'_>, response: Response<Body>) -> HttpError {
        HttpError::Status {
            method: call.method.to_string(),
            url: shown(&call.url),
            status: response.status(),
            retry_after: retry_after(&response),
            message: self.message(response).await,
        }
    }

    /// The registry's own words, as far as they are worth showing. What comes from elsewhere is shown
    /// only if it is an error as registries write them: it may be anything.
    pub(crate) async fn message(&self, response: Response<Body>) -> String {
        let is_foreign = response.extensions().get::<Foreign>().is_some();
        let mut body = response.into_body();
        let mut bytes = Vec::new();
        let limit = usize::try_from(ERROR_SIZE_MAX).unwrap_or(usize::MAX);
        let nowhere = Url::parse("http://registry/").ok();
        while let Some(url) = &nowhere {
            match self.next(url, &mut body).await {
                Ok(Some(chunk)) if bytes.len() < limit => bytes.extend_from_slice(&chunk),
                _ => break,
            }
        }
        bytes.truncate(limit);
        if is_foreign { foreign_message(&bytes) } else { message(&bytes) }
    }

    /// Which scheme a registry speaks; `None` if it does not speak at all.
    async fn probe(&self, secure: Url, plain: Url) -> Option<&'static str> {
        let secure = Call::new(Method::GET, secure);
        match self.exchange(&secure, &secure.url, None).await {
            Ok(_) => return Some("https"),
            // A certificate we do not trust is still a sign of TLS, and worth an error.
            Err(Cause::Http(error)) if is_certificate(&error) => return Some("https"),
            Err(_) => {}
        }
        let plain = Call::new(Method::GET, plain);
        self.exchange(&plain, &plain.url, None).await.ok().map(|_| "http")
    }

    /// `scheme://host/v2/` of a registry. Where plain HTTP is allowed without being asked for,
    /// TLS is tried first, once.
    pub(crate) async fn base(&self, repository: &Repository) -> Result<Url, Cause> {
        let registry = repository.registry();
        let address = |scheme: &str| request::base(scheme, registry).map_err(Cause::from);
        if self.inner.settings.plain_http {
            return address("http");
        }
        if self.inner.settings.tls_only || repository.scheme() == "https" {
            return address("https");
        }
        let schemes = || self.inner.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = schemes().get(registry, Instant::now());
        if let Some(scheme) = known {
            return address(scheme);
        }
        // If nobody answers, the request itself will say why; asking twice again before each
        // of its tries would only make that take three times as long.
        let probed = self.probe(address("https")?, address("http")?).await;
        let scheme = probed.unwrap_or("http");
        let expires = Instant::now() + super::SCHEME_AGE_MAX;
        schemes().keep(registry.to_owned(), scheme, 0, expires);
        address(scheme)
    }
}

/// Marks an answer that another host than the registry gave.
#[derive(Clone)]
struct Foreign;

fn foreign(mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(Foreign);
    response
}

/// A body read whole, or the answer that came instead.
pub(crate) enum Fetched {
    Found(HeaderMap, Vec<u8>),
    Refused(Response<Body>),
}

/// How many tries an outcome uses up. Silence was waited for already: once more is enough.
fn cost(outcome: &Result<Response<Body>, Cause>) -> u32 {
    match outcome {
        Err(Cause::Http(error)) if matches!(**error, HttpError::Timeout { .. }) => 3,
        _ => 1,
    }
}

fn is_certificate(error: &HttpError) -> bool {
    matches!(error, HttpError::Connection { reason, .. } if reason.to_lowercase().contains("certificate"))
}

pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    text(response.headers(), RETRY_AFTER.as_str()).trim().parse().ok().map(Duration::from_secs)
}

/// Where an answer sends us, if it does and we may go.
fn redirect(
    call: &Call<'_>,
    url: &Url,
    response: &Response<Body>,
) -> Result<Option<Url>, HttpError> {
    let reads = matches!(call.method, Method::GET | Method::HEAD);
    let follows = match response.status().as_u16() {
        301..=303 => reads,
        307 | 308 => true,
        _ => false,
    };
    let location = text(response.headers(), LOCATION.as_str());
    if !follows || location.is_empty() {
        return Ok(None);
    }
    url.join(location).map(Some).map_err(|_| HttpError::Url(location.to_owned()))
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What a list of errors says.
fn listed(bytes: &[u8]) -> Option<String> {
    let list = serde_json::from_slice::<Errors>(bytes).ok()?;
    let each = |fault: &Fault| match (fault.message.as_str(), fault.code.as_str()) {
        ("", code) => code.to_owned(),
        (message, "") => message.to_owned(),
        (message, code) => format!("{message} ({code})"),
    };
    Some(list.errors.iter().map(each).collect::<Vec<_>>().join("; "))
}

fn foreign_message(bytes: &[u8]) -> String {
    listed(bytes).map(|text| printable(&text, FOREIGN_LENGTH_MAX)).unwrap_or_default()
}

fn message(bytes: &[u8]) -> String {
    let text = listed(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
    // Pages made for browsers say nothing to people at a terminal.
    if text.trim_start().starts_with('<') {
        return String::new();
    }
    printable(&text, MESSAGE_LENGTH_MAX)
}

/// Text in one line, cut short.
fn printable(text: &str, length_max: usize) -> String {
    let printable = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    let short: String = printable.take(length_max).collect();
    short.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registrys_words_are_shown_in_one_line() {
        let list = br#"{"errors":[{"code":"DENIED","message":"no\nway"},{"code":"UNKNOWN"}]}"#;
        assert_eq!(message(list), "no way (DENIED); UNKNOWN");
        assert_eq!(message(b"404 page not found\n"), "404 page not found");
        assert_eq!(message(b"<html><body>nginx</body></html>"), "");
        assert_eq!(message("\u{1b}[31mred".as_bytes()), "[31mred");
        assert_eq!(message("x".repeat(9000).as_bytes()).len(), MESSAGE_LENGTH_MAX);
        assert_eq!(foreign_message(list), "no way (DENIED); UNKNOWN");
        assert_eq!(foreign_message(b"role=admin key=AKIA"), "");
    }
}
