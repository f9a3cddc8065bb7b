//! Registries as a control plane that was brought up here sees them: what the own registry has is
//! taken from there without a socket, under the name it has in the world; everything else comes
//! from where it is.
//!
//! A package `registry.example.org/team/p` that was built here is the repository
//! `registry.example.org/team/p` of the own registry. So packages name their dependencies as
//! they always will, and nobody has to push anything anywhere to try them. What the control plane
//! did not build, and nobody pushed with its credential, stands in for nothing. Commands that read what
//! such a control plane reads (`plan`) see registries the same way, through the socket of its
//! registry, which its kubeconfig names.

use crate::cluster::kubeconfig::OwnRegistry;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use futures::future::BoxFuture;
use std::task::{Context, Poll};
use store::remote::{Body, BoxError, Transport, transport};
use tower::{Service, ServiceExt as _};

/// Asks the own registry for what stands in for packages of the world. That is not all it has:
/// only what its control plane built, or what was pushed with its credential.
pub(crate) const STAND_IN: &str = "apron-stand-in";

/// A transport that looks first into the registry of a control plane, which is reached some way.
pub(crate) fn nearby(own: Transport, registry: &OwnRegistry, world: Transport) -> Transport {
    let authorization = registry.authorization();
    transport(Nearby { own, world, address: registry.address.to_string(), authorization })
}

type Answer = BoxFuture<'static, Result<Response<Body>, BoxError>>;

#[derive(Clone)]
struct Nearby {
    own: Transport,
    world: Transport,
    /// Where the own registry listens.
    address: String,
    /// What it is shown.
    authorization: Option<HeaderValue>,
}

impl Service<Request<Body>> for Nearby {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

impl Nearby {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(authority) = request.uri().authority().map(ToString::to_string) else {
            return through(self.world, request).await;
        };
        if authority == self.address {
            if !request.headers().contains_key(header::AUTHORIZATION) {
                self.introduce(request.headers_mut());
            }
            return through(self.own, request).await;
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_read
            && let Some(inner) = inside(&authority, request.uri(), &self.address)
            && self.has(&inner).await
        {
            *request.uri_mut() = inner.uri;
            // It is for somebody else.
            request.headers_mut().remove(header::AUTHORIZATION);
            self.introduce(request.headers_mut());
            request.headers_mut().insert(STAND_IN, HeaderValue::from_static("1"));
            return through(self.own, request).await;
        }
        through(self.world, request).await
    }

    fn introduce(&self, headers: &mut HeaderMap) {
        if let Some(value) = &self.authorization {
            headers.insert(header::AUTHORIZATION, value.clone());
        }
    }

    /// Whether the own registry has such a repository that stands in for the world's.
    async fn has(&self, inner: &Inner) -> bool {
        let address = format!("http://{}/v2/{}/tags/list?n=1", self.address, inner.repository);
        let Ok(mut request) = Request::get(address).body(Body::default()) else { return false };
        self.introduce(request.headers_mut());
        request.headers_mut().insert(STAND_IN, HeaderValue::from_static("1"));
        let answer = through(self.own.clone(), request).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }
}

fn through(way: Transport, request: Request<Body>) -> Answer {
    Box::pin(way.oneshot(request))
}

/// What somebody else's request is in the own registry.
struct Inner {
    repository: String,
    uri: Uri,
}

/// Reads `/v2/REPOSITORY/…`; nothing if that is not a repository's.
fn inside(authority: &str, uri: &Uri, address: &str) -> Option<Inner> {
    // A port cannot be part of a repository's name.
    if authority.contains(':') {
        return None;
    }
    let rest = uri.path().strip_prefix("/v2/")?;
    let marks = ["/manifests/", "/blobs/", "/tags/", "/referrers/"];
    let end = marks.iter().filter_map(|mark| rest.rfind(mark)).max()?;
    let name = &rest[..end];
    // Addresses that the own registry gave out, for further pages, have the host already.
    let own = format!("{authority}/");
    let whole = if name.starts_with(&own) { name.to_owned() } else { format!("{own}{name}") };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = format!("/v2/{whole}{}{query}", &rest[end..]);
    let mut parts = uri.clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(address.parse::<Authority>().ok()?);
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Some(Inner { repository: whole, uri: Uri::from_parts(parts).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_others_are_found_in_the_own_registry() {
        let check = |uri: &str, expected: Option<(&str, &str)>| {
            let uri: Uri = uri.parse().unwrap();
            let authority = uri.authority().unwrap().to_string();
            let found = inside(&authority, &uri, "127.0.0.1:5000");
            let found = found.map(|it| (it.repository.clone(), it.uri.to_string()));
            let inside = |path: &str| format!("http://127.0.0.1:5000{path}");
            let expected = expected.map(|(name, path)| (name.to_owned(), inside(path)));
            assert_eq!(found, expected, "{uri}");
        };
        check(
            "https://a.org/v2/team/p/manifests/v1",
            Some(("a.org/team/p", "/v2/a.org/team/p/manifests/v1")),
        );
        check(
            "https://a.org/v2/tags/p/tags/list?n=5",
            Some(("a.org/tags/p", "/v2/a.org/tags/p/tags/list?n=5")),
        );
        check(
            "https://a.org/v2/a.org/p/tags/list?last=v1",
            Some(("a.org/p", "/v2/a.org/p/tags/list?last=v1")),
        );
        check("https://a.org/v2/", None);
        check("https://a.org:5000/v2/p/manifests/v1", None);
    }
}
