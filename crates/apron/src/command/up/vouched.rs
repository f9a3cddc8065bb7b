//! What stands in for packages of the world: those that `up` built itself, and those that were
//! pushed with its credential. Whatever else came into the registry (by another user, or while
//! earlier versions let anybody in) can be had there by its address, and under no other name.
//!
//! ```text
//!   PUT manifest, with the credential ─► remembered ─► found as registry.example.org/team/p
//!   PUT manifest, by anybody else ────────────────────► found as 127.0.0.1:5000/…/team/p only
//! ```

use crate::failure::{Failure, Outcome};
use crate::nearby::STAND_IN;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tower::ServiceExt as _;

/// The longest list of tags that is looked through.
const LIST_SIZE_MAX: usize = 4 << 20;
/// The digest of a manifest, as registries answer it.
const DIGEST: &str = "docker-content-digest";

/// Manifests by repository.
type Manifests = BTreeMap<String, BTreeSet<String>>;

/// Manifests that may stand in for those of the world.
#[derive(Clone)]
pub(super) struct Vouched {
    manifests: Arc<Mutex<Manifests>>,
    /// Where they are kept, if anything is.
    file: Option<Arc<PathBuf>>,
}

impl Vouched {
    /// Those of the last time.
    pub(super) fn open(file: Option<PathBuf>) -> Outcome<Self> {
        let read = file.as_ref().map(fs_err::read).transpose();
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::file(&error)),
        };
        // A file that is damaged vouches for nothing.
        let manifests = bytes.and_then(|bytes| serde_json::from_slice::<Manifests>(&bytes).ok());
        let manifests = Arc::new(Mutex::new(manifests.unwrap_or_default()));
        Ok(Self { manifests, file: file.map(Arc::new) })
    }

    fn lock(&self) -> MutexGuard<'_, Manifests> {
        self.manifests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Vouches for a manifest from now on.
    pub(super) fn add(&self, repository: &str, digest: &str) -> Outcome {
        let mut manifests = self.lock();
        if !manifests.entry(repository.to_owned()).or_default().insert(digest.to_owned()) {
            return Ok(());
        }
        let Some(file) = &self.file else { return Ok(()) };
        let text = serde_json::to_string_pretty(&*manifests).unwrap_or_default();
        crate::private::write_file(file, &text)
    }

    fn knows(&self, repository: &str) -> bool {
        self.lock().get(repository).is_some_and(|all| !all.is_empty())
    }

    fn has(&self, repository: &str, digest: &str) -> bool {
        self.lock().get(repository).is_some_and(|all| all.contains(digest))
    }

    /// The same registry, which remembers what is pushed with a secret, and shows no more than
    /// that to whoever looks for stand-ins.
    pub(super) fn within(&self, router: Router, secret: Option<&str>) -> Router {
        let (vouched, inner, secret) = (self.clone(), router.clone(), secret.map(str::to_owned));
        router.layer(from_fn(move |request: Request, next: Next| {
            let (vouched, inner, secret) = (vouched.clone(), inner.clone(), secret.clone());
            async move { vouched.answer(request, next, &inner, secret.as_deref()).await }
        }))
    }

    async fn answer(
        &self,
        request: Request,
        next: Next,
        inner: &Router,
        secret: Option<&str>,
    ) -> Response {
        let Some(Target { repository, part }) = Target::of(request.uri().path()) else {
            return next.run(request).await;
        };
        let stands_in = request.headers().contains_key(STAND_IN);
        if stands_in && !self.knows(&repository) {
            return StatusCode::NOT_FOUND.into_response();
        }
        let pushes = *request.method() == Method::PUT && part == Part::Manifest;
        let vouches = pushes && secret.is_some_and(|it| shows(request.headers(), it));
        let authorization = request.headers().get(AUTHORIZATION).cloned();
        let response = next.run(request).await;
        let digest = text(response.headers(), DIGEST);
        match part {
            Part::Manifest if vouches && response.status() == StatusCode::CREATED => {
                if let Err(failure) = self.add(&repository, &digest) {
                    crate::output::fail(&failure);
                }
                response
            }
            Part::Manifest if stands_in && !self.has(&repository, &digest) => {
                StatusCode::NOT_FOUND.into_response()
            }
            Part::Tags if stands_in && response.status().is_success() => {
                let ask = |tag: &str| {
                    let request = Request::head(format!("/v2/{repository}/manifests/{tag}"));
                    let request = match &authorization {
                        Some(value) => request.header(AUTHORIZATION, value),
                        None => request,
                    };
                    request.body(Body::empty())
                };
                self.only_vouched(&repository, response, inner, ask).await
            }
            _ => response,
        }
    }

    /// A list of tags, without those that mean something else.
    async fn only_vouched(
        &self,
        repository: &str,
        response: Response,
        inner: &Router,
        ask: impl Fn(&str) -> Result<Request, axum::http::Error>,
    ) -> Response {
        let (mut parts, body) = response.into_parts();
        let read = to_bytes(body, LIST_SIZE_MAX).await.ok();
        let Some(mut list) = read.and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok())
        else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let tags = list["tags"].as_array().cloned().unwrap_or_default();
        let mut kept = Vec::new();
        for tag in tags {
            let Some(Ok(request)) = tag.as_str().map(&ask) else { continue };
            let Ok(found) = inner.clone().oneshot(request).await;
            if self.has(repository, &text(found.headers(), DIGEST)) {
                kept.push(tag);
            }
        }
        list["tags"] = Json::Array(kept);
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(list.to_string()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Manifest,
    Tags,
    Other,
}

/// What of a repository a request is about.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    repository: String,
    part: Part,
}

impl Target {
    /// Reads `/v2/REPOSITORY/…`; the last mark counts, as it does for the registry.
    fn of(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/v2/")?;
        let marks = [
            ("/manifests/", Part::Manifest),
            ("/tags/list", Part::Tags),
            ("/blobs/", Part::Other),
            ("/referrers/", Part::Other),
        ];
        let found = marks.iter().filter_map(|(mark, part)| Some((rest.rfind(mark)?, *part)));
        let (end, part) = found.max_by_key(|(end, _)| *end)?;
        Some(Self { repository: rest[..end].to_owned(), part })
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Whether a request shows a secret; whether that opened anything, its answer tells.
fn shows(headers: &HeaderMap, secret: &str) -> bool {
    let value = text(headers, AUTHORIZATION.as_str());
    let Some((scheme, rest)) = value.split_once(' ') else { return false };
    if scheme.eq_ignore_ascii_case("bearer") {
        return rest.trim() == secret;
    }
    let pair = STANDARD.decode(rest.trim()).ok().and_then(|it| String::from_utf8(it).ok());
    let shown = pair.as_deref().and_then(|pair| pair.split_once(':'));
    scheme.eq_ignore_ascii_case("basic") && shown.is_some_and(|(_, shown)| shown == secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m5_requests_are_read_as_the_registry_reads_them() {
        let check = |path: &str, expected: Option<(&str, Part)>| {
            let found = Target::of(path).map(|it| (it.repository, it.part));
            let expected = expected.map(|(name, part)| (name.to_owned(), part));
            assert_eq!(found, expected, "{path}");
        };
        check("/v2/a.org/p/manifests/v1", Some(("a.org/p", Part::Manifest)));
        check(
            "/v2/manifests/manifests/manifests/v1",
            Some(("manifests/manifests", Part::Manifest)),
        );
        check("/v2/a/manifests/p/tags/list", Some(("a/manifests/p", Part::Tags)));
        check("/v2/a/blobs/uploads/", Some(("a", Part::Other)));
        check("/v2/", None);
        check("/v2/_catalog", None);
    }

    #[test]
    fn m5_what_is_vouched_for_is_there_the_next_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = Some(directory.path().join("vouched.json"));
        let open = || Vouched::open(file.clone()).ok().unwrap();
        assert!(!open().knows("a.org/p"));
        open().add("a.org/p", "sha256:1").ok().unwrap();
        assert!(open().knows("a.org/p") && open().has("a.org/p", "sha256:1"));
        assert!(!open().has("a.org/p", "sha256:2") && !open().has("a.org/q", "sha256:1"));
        fs_err::write(file.clone().unwrap(), "rubbish").unwrap();
        assert!(!open().knows("a.org/p"));
    }

    #[test]
    fn m5_only_the_credential_vouches() {
        let header = |value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            headers
        };
        let basic = |pair: &str| header(format!("Basic {}", STANDARD.encode(pair)));
        assert!(shows(&basic("apron:apr_1"), "apr_1"));
        assert!(shows(&header("Bearer apr_1".to_owned()), "apr_1"));
        assert!(!shows(&basic("apron:apr_2"), "apr_1") && !shows(&basic("apr_1"), "apr_1"));
        assert!(!shows(&HeaderMap::new(), "apr_1"));
    }

    /// M5: also who may push, as another user of the registry, lets nothing stand in for the world.
    #[tokio::test]
    async fn m5_a_push_without_the_credential_vouches_for_nothing() {
        let vouched = Vouched::open(None).ok().unwrap();
        let accepts = async || (StatusCode::CREATED, [(DIGEST, "sha256:1")]);
        let router = vouched.within(Router::new().fallback(accepts), Some("apr_1"));
        for (shown, is_known) in [("", false), ("apr_2", false), ("apr_1", true)] {
            let push = Request::put("/v2/a.org/p/manifests/v1");
            let push = push.header(AUTHORIZATION, format!("Bearer {shown}"));
            let answer = router.clone().oneshot(push.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(answer.status(), StatusCode::CREATED);
            assert_eq!(vouched.has("a.org/p", "sha256:1"), is_known, "{shown:?}");
        }
    }
}
