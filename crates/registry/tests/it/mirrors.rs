//! Repositories of another registry: the other one is this registry's own service behind a
//! counter that can also break, lie, dawdle and refuse.

use crate::support::{Answer, World, artifact, hasty};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use oci::{Descriptor, MediaType};
use registry::mirror::{Mirrors, Source, Upstream};
use registry::{Access, Action, Collect, Decision, Name, Options, Principal, Selector, Tag};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::remote::{BoxError, Client, transport};
use tower::ServiceExt;

/// What the other registry does.
#[derive(Clone, Default)]
struct Mood {
    /// Nobody answers.
    away: Arc<AtomicBool>,
    /// Blobs have one byte changed.
    lies: Arc<AtomicBool>,
    /// This status is the answer to everything.
    status: Arc<Mutex<Option<StatusCode>>>,
    /// Blobs stop after their first piece until this is told.
    gate: Arc<Mutex<Option<Arc<tokio::sync::Semaphore>>>>,
    /// Everything it was asked.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Mood {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn client(&self, router: axum::Router, keychain: Keychain) -> Client {
        let mood = self.clone();
        let service = tower::service_fn(move |request: Request<store::remote::Body>| {
            let (mood, router) = (mood.clone(), router.clone());
            async move { mood.answer(router, request).await }
        });
        let settings = store::remote::Settings {
            tries: 1,
            plain_http: true,
            ..store::remote::Settings::default()
        };
        Client::new(transport(service), keychain, settings)
    }

    async fn answer(
        &self,
        router: axum::Router,
        request: Request<store::remote::Body>,
    ) -> Result<Response, BoxError> {
        let line = format!("{} {}", request.method(), request.uri().path());
        self.asked.lock().unwrap().push(line.clone());
        if self.away.load(Ordering::SeqCst) {
            return Err("connection refused".into());
        }
        if let Some(status) = *self.status.lock().unwrap() {
            let mut response = Response::new(Body::from("inner words"));
            *response.status_mut() = status;
            response.headers_mut().insert("retry-after", "7".parse().unwrap());
            return Ok(response);
        }
        let request = request.map(Body::new);
        let response = router.oneshot(request).await?;
        if !line.starts_with("GET") || !line.contains("/blobs/") {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let mut bytes = body.collect().await?.to_bytes().to_vec();
        if self.lies.load(Ordering::SeqCst) && !bytes.is_empty() {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        let gate = self.gate.lock().unwrap().clone();
        let half = bytes.split_off(bytes.len() / 2);
        let pieces = stream::iter([bytes, half]).enumerate().then(move |(number, piece)| {
            let gate = gate.clone();
            async move {
                if let Some(gate) = gate.filter(|_| number > 0) {
                    gate.acquire().await.unwrap().forget();
                }
                Ok::<_, BoxError>(Bytes::from(piece))
            }
        });
        Ok(Response::from_parts(parts, Body::from_stream(pieces)))
    }
}

/// Two registries: `there`, and `here` which mirrors it as `up`.
struct Pair {
    there: World,
    here: World,
    mood: Mood,
}

impl Pair {
    fn new(fresh: Duration) -> Self {
        Self::with(fresh, World::new(), Options::open())
    }

    fn with(fresh: Duration, mut here: World, options: Options) -> Self {
        let (there, mood) = (World::new(), Mood::default());
        let client = mood.client(there.router.clone(), Keychain::anonymous());
        here.router = mirroring(&here, client, fresh, options);
        Self { there, here, mood }
    }

    async fn pull(&self, path: &str) -> Answer {
        self.here.get(&format!("/v2/up/{path}")).await
    }
}

fn mirroring(here: &World, client: Client, fresh: Duration, options: Options) -> axum::Router {
    let source = Source::parse("up=http://127.0.0.1:1").unwrap();
    let mirrors = Mirrors::new(&here.registry, vec![Upstream { source, client, fresh }]);
    registry::router(here.registry.clone(), Options { mirrors, ..options })
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn what_was_pulled_once_is_here_for_good() {
    let pair = Pair::new(LONG);
    let raw = pair.there.push("team/p", "v1", "one").await;
    let layer = raw.manifest().unwrap().layers[0].digest.clone();
    let first = pair.pull("team/p/manifests/v1").await.is(200);
    assert_eq!(first.body, raw.bytes);
    assert_eq!(first.header("docker-content-digest"), raw.digest.to_string());
    assert_eq!(first.header("content-type"), raw.media_type.as_str());
    let blob = pair.pull(&format!("team/p/blobs/{layer}")).await.is(200);
    assert_eq!(&blob.body[..], b"layer of one");
    assert_eq!(blob.header("content-length"), "12");
    pair.mood.take();
    // Again, and nobody is asked; also with nobody there.
    pair.mood.away.store(true, Ordering::SeqCst);
    for path in ["manifests/v1".to_owned(), format!("manifests/{}", raw.digest)] {
        let again = pair.pull(&format!("team/p/{path}")).await.is(200);
        assert_eq!(again.body, raw.bytes);
        assert!(!again.headers.contains_key("warning"));
    }
    pair.pull(&format!("team/p/blobs/{layer}")).await.is(200);
    pair.here.head(&format!("/v2/up/team/p/blobs/{layer}")).await.is(200);
    assert_eq!(pair.mood.take(), Vec::<String>::new());
    // Also after a crash, and after collection.
    let after = pair.here.after_crash();
    after.get("/v2/up/team/p/manifests/v1").await.is(200);
    after.get(&format!("/v2/up/team/p/blobs/{layer}")).await.is(200);
}

#[tokio::test]
async fn many_who_pull_at_once_share_one_fetch() {
    let pair = Pair::new(LONG);
    let raw = pair.there.push("p", "v1", "one").await;
    let layer = raw.manifest().unwrap().layers[0].digest.clone();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    *pair.mood.gate.lock().unwrap() = Some(gate.clone());
    let path = format!("p/blobs/{layer}");
    let pulls = async {
        let manifests = (0..20).map(|_| pair.pull("p/manifests/v1"));
        let blobs = (0..20).map(|_| pair.pull(&path));
        futures::join!(futures::future::join_all(manifests), futures::future::join_all(blobs))
    };
    let open = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.add_permits(1);
    };
    let ((manifests, blobs), ()) = futures::join!(pulls, open);
    assert!(manifests.iter().all(|it| it.body == raw.bytes));
    assert!(blobs.iter().all(|it| it.status == 200 && &it.body[..] == b"layer of one"));
    let mut asked = pair.mood.take();
    asked.sort_unstable();
    assert_eq!(asked, [format!("GET /v2/p/blobs/{layer}"), "GET /v2/p/manifests/v1".to_owned()]);
}

#[tokio::test]
async fn a_client_reads_along_while_a_blob_arrives() {
    let pair = Pair::new(LONG);
    let blob = pair.there.blob("p", &[b'x'; 1000]).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    *pair.mood.gate.lock().unwrap() = Some(gate.clone());
    let path = format!("/v2/up/p/blobs/{}", blob.digest);
    let request = || Request::get(&path).body(Body::empty()).unwrap();
    let mut body = pair.here.router.clone().oneshot(request()).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.len(), 500, "half is here before the rest was sent");
    // A part of what is on its way.
    let range = [("range", "bytes=100-199")];
    let part = pair.here.call("GET", &path, &range, Body::empty()).await.is(206);
    assert_eq!(part.body.len(), 100);
    assert_eq!(part.header("content-range"), "bytes 100-199/1000");
    assert!(!pair.here.has_file(&blob.digest), "half a blob has no name");
    // A crash now leaves nothing of it.
    let crashed = pair.here.after_crash();
    let left = std::fs::read_dir(crashed.directory.path().join("uploads")).unwrap().count();
    assert_eq!(left, 0);
    crashed.get(&path).await.refuses(404, "NAME_UNKNOWN");
    gate.add_permits(1);
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!(first.len() + rest.len(), 1000);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_end_the_fetch() {
    let pair = Pair::new(LONG);
    let blob = pair.there.blob("p", &[b'x'; 1000]).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    *pair.mood.gate.lock().unwrap() = Some(gate.clone());
    let path = format!("/v2/up/p/blobs/{}", blob.digest);
    let request = Request::get(&path).body(Body::empty()).unwrap();
    drop(pair.here.router.clone().oneshot(request).await.unwrap());
    gate.add_permits(1);
    let whole = pair.here.get(&path).await.is(200);
    assert_eq!(whole.body.len(), 1000);
    assert_eq!(pair.mood.take().len(), 1);
}

#[tokio::test]
async fn wrong_bytes_reach_nobody_whole_and_are_not_kept() {
    let pair = Pair::new(LONG);
    let blob = pair.there.blob("p", &[b'x'; 1000]).await;
    pair.mood.lies.store(true, Ordering::SeqCst);
    let path = format!("/v2/up/p/blobs/{}", blob.digest);
    let request = Request::get(&path).body(Body::empty()).unwrap();
    let response = pair.here.router.clone().oneshot(request).await.unwrap();
    assert!(response.into_body().collect().await.is_err(), "the body must not end well");
    pair.here.get(&path).await.refuses(502, "UNAVAILABLE");
    assert!(!pair.here.has_file(&blob.digest));
    let uploads = pair.here.directory.path().join("uploads");
    assert_eq!(std::fs::read_dir(uploads).unwrap().count(), 0);
}

#[tokio::test]
async fn a_tag_that_moved_there_moves_here_when_its_time_is_over() {
    let pair = Pair::new(Duration::ZERO);
    let one = pair.there.push("p", "latest", "one").await;
    assert_eq!(pair.pull("p/manifests/latest").await.is(200).body, one.bytes);
    pair.mood.take();
    assert_eq!(pair.pull("p/manifests/latest").await.is(200).body, one.bytes);
    assert_eq!(pair.mood.take(), ["HEAD /v2/p/manifests/latest"]);
    let two = pair.there.push("p", "latest", "two").await;
    assert_eq!(pair.pull("p/manifests/latest").await.is(200).body, two.bytes);
    let asked = ["HEAD /v2/p/manifests/latest", &format!("GET /v2/p/manifests/{}", two.digest)];
    assert_eq!(pair.mood.take(), asked);
    // What it meant before is still here by digest.
    pair.mood.away.store(true, Ordering::SeqCst);
    pair.pull(&format!("p/manifests/{}", one.digest)).await.is(200);
    // Nobody answers: what is here is served, with a word about it.
    let stale = pair.pull("p/manifests/latest").await.is(200);
    assert_eq!(stale.body, two.bytes);
    let warning = stale.header("warning");
    assert!(warning.starts_with("299 - \"") && warning.contains("cannot be reached"), "{warning}");
}

#[tokio::test]
async fn what_is_gone_there_is_not_served_by_its_tag() {
    let pair = Pair::new(Duration::ZERO);
    pair.there.push("p", "v1", "one").await;
    pair.pull("p/manifests/v1").await.is(200);
    pair.there.delete("/v2/p/manifests/v1").await.is(202);
    pair.pull("p/manifests/v1").await.refuses(404, "MANIFEST_UNKNOWN");
}

#[tokio::test]
async fn trouble_there_is_told_clearly_and_remembered_briefly() {
    let pair = Pair::new(Duration::ZERO);
    let expected = [
        (404, 404, "MANIFEST_UNKNOWN"),
        (401, 403, "DENIED"),
        (403, 403, "DENIED"),
        (429, 429, "TOOMANYREQUESTS"),
        (500, 502, "UNAVAILABLE"),
    ];
    for (there, here, code) in expected {
        *pair.mood.status.lock().unwrap() = Some(StatusCode::from_u16(there).unwrap());
        let path = format!("p/manifests/t{there}");
        let told = pair.pull(&path).await.refuses(here, code);
        let text = String::from_utf8_lossy(&told.body).into_owned();
        assert!(!text.contains("inner words"), "{text}");
        assert!(!told.headers.contains_key("www-authenticate"));
        if there == 429 {
            assert_eq!(told.header("retry-after"), "7");
        }
        let asked = pair.mood.take().len();
        assert!(asked > 0);
        pair.pull(&path).await.refuses(here, code);
        assert_eq!(pair.mood.take().len(), 0, "{there} is remembered");
    }
    *pair.mood.status.lock().unwrap() = None;
    pair.mood.away.store(true, Ordering::SeqCst);
    let away = pair.pull("q/manifests/v1").await.refuses(503, "UNAVAILABLE");
    assert_eq!(away.header("retry-after"), "10");
    pair.pull("other/tags/list").await.refuses(503, "UNAVAILABLE");
    assert_eq!(pair.mood.take().len(), 1, "whoever does not answer is not asked at once again");
}

#[tokio::test]
async fn tags_and_referrers_are_those_of_the_other_registry() {
    let pair = Pair::new(Duration::ZERO);
    let raw = pair.there.push("p", "v1", "one").await;
    pair.there.put("p", "v2", &raw).await.is(201);
    let config = pair.there.blob("p", b"{}").await;
    let signature = artifact(config, &raw, "application/x.sig", "n");
    pair.there.put("p", "sig", &signature).await.is(201);
    let tags = pair.pull("p/tags/list").await.is(200).json();
    assert_eq!(tags["name"], "up/p");
    assert_eq!(tags["tags"], serde_json::json!(["sig", "v1", "v2"]));
    let page = pair.pull("p/tags/list?n=1&last=sig").await.is(200);
    assert_eq!(page.json()["tags"], serde_json::json!(["v1"]));
    assert!(page.header("link").contains("/v2/up/p/tags/list?n=1&last=v1"));
    let path = format!("p/referrers/{}", raw.digest);
    let referrers = pair.pull(&path).await.is(200).json();
    assert_eq!(referrers["manifests"][0]["digest"], signature.digest.to_string());
    // Only what was pulled is known when nobody answers.
    pair.pull("p/manifests/v1").await.is(200);
    pair.mood.away.store(true, Ordering::SeqCst);
    let tags = pair.pull("p/tags/list").await.is(200);
    assert_eq!(tags.json()["tags"], serde_json::json!(["v1"]));
    assert!(tags.header("warning").contains("cannot be reached"));
    let none = pair.pull(&path).await.is(200);
    assert_eq!(none.json()["manifests"], serde_json::json!([]));
    assert!(none.header("warning").contains("cannot be reached"));
}

#[tokio::test]
async fn nothing_is_pushed_into_a_mirror() {
    let pair = Pair::new(LONG);
    let raw = pair.there.push("p", "v1", "one").await;
    pair.pull("p/manifests/v1").await.is(200);
    let put = pair.here.put("up/p", "v2", &raw).await.refuses(403, "DENIED");
    let message = put.json()["errors"][0]["message"].to_string();
    assert!(message.contains("http://127.0.0.1:1"), "{message}");
    let post = pair.here.call("POST", "/v2/up/p/blobs/uploads/", &[], Body::empty()).await;
    post.refuses(403, "DENIED");
    // Beside it everything is as ever, and what is kept can be thrown away.
    pair.here.push("upper/p", "v1", "ours").await;
    pair.here.delete("/v2/up/p/manifests/v1").await.is(202);
    pair.pull("p/manifests/v1").await.is(200);
}

#[tokio::test]
async fn a_namespace_chooses_among_the_mirrors_and_nothing_else() {
    let pair = Pair::new(LONG);
    let raw = pair.there.push("team/p", "v1", "theirs").await;
    pair.here.push("team/p", "v1", "ours").await;
    let found = pair.here.get("/v2/team/p/manifests/v1?ns=up").await.is(200);
    assert_eq!(found.body, raw.bytes);
    assert_eq!(found.header("oci-namespace"), "up");
    let ours = pair.here.get("/v2/team/p/manifests/v1").await.is(200);
    assert_ne!(ours.body, raw.bytes);
    assert!(!ours.headers.contains_key("oci-namespace"));
    pair.mood.take();
    for namespace in ["169.254.169.254", "evil.example.org", "up/team", "..", ""] {
        let path = format!("/v2/team/p/manifests/v1?ns={namespace}");
        pair.here.get(&path).await.refuses(404, "NAME_UNKNOWN");
    }
    assert_eq!(pair.mood.take(), Vec::<String>::new());
}

/// Nobody but ada sees `up/secret`.
struct Rules;

#[async_trait::async_trait]
impl Access for Rules {
    async fn principal(
        &self,
        request: &http::request::Parts,
    ) -> Result<Principal, registry::access::Refused> {
        let user = request.headers.get("x-user").and_then(|user| user.to_str().ok());
        Ok(user.map_or_else(Principal::anonymous, Principal::named))
    }

    fn decide(&self, who: &Principal, name: Option<&Name>, _action: Action) -> Decision {
        let secret = name.is_some_and(|name| name.as_str().starts_with("up/secret"));
        if secret && who.as_str() != "ada" { Decision::Hide } else { Decision::Allow }
    }
}

#[tokio::test]
async fn who_may_not_read_a_mirror_makes_it_fetch_nothing() {
    let pair = Pair::with(LONG, World::new(), Options::guarded(Arc::new(Rules)));
    let raw = pair.there.push("secret/p", "v1", "one").await;
    let layer = &raw.manifest().unwrap().layers[0].digest;
    for path in [
        "/v2/up/secret/p/manifests/v1".to_owned(),
        format!("/v2/up/secret/p/blobs/{layer}"),
        "/v2/up/secret/p/tags/list".to_owned(),
        format!("/v2/up/secret/p/referrers/{}", raw.digest),
        "/v2/secret/p/manifests/v1?ns=up".to_owned(),
    ] {
        pair.here.get(&path).await.refuses(404, "NAME_UNKNOWN");
        let ada = [("x-user", "ada")];
        pair.here.call("GET", &path, &ada, Body::empty()).await.is(200);
        pair.mood.take();
        pair.here.get(&path).await.refuses(404, "NAME_UNKNOWN");
        assert_eq!(pair.mood.take(), Vec::<String>::new(), "{path}");
    }
    // The same bytes under a name they may read are asked for there, and are not there.
    pair.pull(&format!("p/blobs/{layer}")).await.refuses(404, "BLOB_UNKNOWN");
}

#[tokio::test]
async fn bytes_that_are_here_already_are_not_fetched_again() {
    let pair = Pair::new(LONG);
    let blob = pair.there.blob("a", b"shared by two").await;
    pair.there.blob("b", b"shared by two").await;
    let path = |name: &str| format!("{name}/blobs/{}", blob.digest);
    pair.pull(&path("a")).await.is(200);
    pair.mood.take();
    pair.pull(&path("b")).await.is(200);
    assert_eq!(pair.mood.take(), [format!("HEAD /v2/b/blobs/{}", blob.digest)]);
    pair.pull(&path("c")).await.refuses(404, "BLOB_UNKNOWN");
}

#[tokio::test]
async fn what_is_mirrored_is_collected_like_everything_else() {
    let pair = Pair::with(LONG, World::with(hasty()), Options::open());
    let raw = pair.there.push("p", "v1", "one").await;
    let loose = pair.there.blob("p", b"named by nothing").await;
    let layer = raw.manifest().unwrap().layers[0].digest.clone();
    pair.pull("p/manifests/v1").await.is(200);
    for digest in [&layer, &loose.digest] {
        pair.pull(&format!("p/blobs/{digest}")).await.is(200);
    }
    // A lease of no length is over in the next millisecond.
    tokio::time::sleep(Duration::from_millis(5)).await;
    pair.here.registry.collect(&Collect::default()).await.unwrap();
    assert!(pair.here.has_file(&layer) && !pair.here.has_file(&loose.digest));
    let tag = Selector::Tag(Tag::parse("v1").unwrap());
    let name = Name::parse("up/p").unwrap();
    assert_eq!(pair.here.registry.manifest(&name, &tag).await.unwrap().digest, raw.digest);
}

#[tokio::test]
async fn empty_blobs_and_sha512_arrive_as_well() {
    let pair = Pair::new(LONG);
    let empty = pair.there.blob("p", b"").await;
    let got = pair.pull(&format!("p/blobs/{}", empty.digest)).await.is(200);
    assert_eq!(got.body.len(), 0);
    let mut hasher = oci::Hasher::new(oci::Algorithm::Sha512);
    hasher.update(b"long");
    let digest = hasher.finish();
    let path = format!("/v2/p/blobs/uploads/?digest={digest}");
    pair.there.call("POST", &path, &[], b"long".to_vec()).await.is(201);
    let got = pair.pull(&format!("p/blobs/{digest}")).await.is(200);
    assert_eq!(&got.body[..], b"long");
    // A manifest by its long digest, too.
    let mut config = Descriptor::of(MediaType::OCI_CONFIG, b"{}");
    config.digest = pair.there.blob("p", b"{}").await.digest;
    let raw = oci::Raw::from_manifest(&oci::Manifest::docker(config, Vec::new())).unwrap();
    let mut hasher = oci::Hasher::new(oci::Algorithm::Sha512);
    hasher.update(&raw.bytes);
    let digest = hasher.finish();
    pair.there.put("p", &digest.to_string(), &raw).await.is(201);
    let got = pair.pull(&format!("p/manifests/{digest}")).await.is(200);
    assert_eq!(got.header("docker-content-digest"), digest.to_string());
}

#[tokio::test]
async fn credentials_go_to_their_registry_and_to_no_client() {
    let (there, mood) = (World::new(), Mood::default());
    there.push("p", "v1", "one").await;
    let basic = Credential::Basic { user: "ada".to_owned(), password: "s3cret".to_owned() };
    // A registry that wants a name and a password, and sends blobs to another host.
    let seen: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let (router, notes) = (there.router.clone(), seen.clone());
    let guarded = axum::Router::new().fallback(move |request: Request<Body>| {
        let (router, notes) = (router.clone(), notes.clone());
        async move {
            let host = request.uri().host().unwrap_or_default().to_owned();
            let signed = request.headers().contains_key("authorization");
            notes.lock().unwrap().push((host.clone(), signed));
            let mut response = Response::new(Body::empty());
            if host == "127.0.0.1" && !signed {
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                let challenge = "Basic realm=\"there\"".parse().unwrap();
                response.headers_mut().insert("www-authenticate", challenge);
                return response;
            }
            if host == "127.0.0.1" && request.uri().path().contains("/blobs/") {
                *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
                let to = format!("http://127.0.0.2{}", request.uri().path());
                response.headers_mut().insert("location", to.parse().unwrap());
                return response;
            }
            router.oneshot(request).await.unwrap()
        }
    });
    let mut here = World::new();
    let client = mood.client(guarded, Keychain::fixed(basic));
    here.router = mirroring(&here, client, LONG, Options::open());
    let got = here.get("/v2/up/p/manifests/v1").await.is(200);
    assert!(!got.headers.contains_key("www-authenticate"));
    let raw: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
    let layer = raw["layers"][0]["digest"].as_str().unwrap();
    here.get(&format!("/v2/up/p/blobs/{layer}")).await.is(200);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.contains(&("127.0.0.1".to_owned(), true)), "{seen:?}");
    assert!(seen.contains(&("127.0.0.2".to_owned(), false)), "{seen:?}");
    assert!(!seen.contains(&("127.0.0.2".to_owned(), true)), "{seen:?}");
}

#[tokio::test]
async fn fetches_are_counted() {
    let pair = Pair::new(LONG);
    pair.there.push("p", "v1", "one").await;
    pair.pull("p/manifests/v1").await.is(200);
    let text = pair.here.get("/metrics").await.is(200);
    let text = String::from_utf8_lossy(&text.body).into_owned();
    let line = "apron_registry_mirror_manifests_fetched_total{prefix=\"up\"} 1\n";
    assert!(text.contains(line), "{text}");
}

/// A registry that says it has everything, and has nothing.
fn liar() -> Client {
    let service = tower::service_fn(|request: Request<store::remote::Body>| async move {
        let mut response = Response::new(Body::empty());
        if request.method() == http::Method::HEAD {
            response.headers_mut().insert("content-length", "10".parse().unwrap());
        } else {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        Ok::<_, BoxError>(response)
    });
    let settings = store::remote::Settings {
        tries: 1,
        plain_http: true,
        ..store::remote::Settings::default()
    };
    Client::new(transport(service), Keychain::anonymous(), settings)
}

#[tokio::test]
async fn m10_a_mirrored_registry_that_lies_reads_out_nothing_of_others() {
    let (there, mood) = (World::new(), Mood::default());
    let mut here = World::new();
    let honest = mood.client(there.router.clone(), Keychain::anonymous());
    let upstream = |text: &str, client: Client| Upstream {
        source: Source::parse(text).unwrap(),
        client,
        fresh: LONG,
    };
    let upstreams = vec![
        upstream("up=http://127.0.0.1:1", liar()),
        upstream("up/inner=http://127.0.0.1:2", honest.clone()),
        upstream("upper=http://127.0.0.1:3", honest),
    ];
    let secret = here.blob("secret/y", b"TOP SECRET").await.digest;
    let mirrors = Mirrors::new(&here.registry, upstreams);
    here.router = registry::router(here.registry.clone(), Options { mirrors, ..Options::open() });
    let theirs = there.blob("team/p", b"of another").await.digest;
    for name in ["up/inner/team/p", "upper/team/p"] {
        here.get(&format!("/v2/{name}/blobs/{theirs}")).await.is(200);
    }
    // Somebody pushed it, or another registry gave it: this one has no say.
    for digest in [&secret, &theirs] {
        here.get(&format!("/v2/up/any/blobs/{digest}")).await.refuses(404, "BLOB_UNKNOWN");
    }
    // What came from the same registry is shared, as ever.
    mood.take();
    there.blob("team/q", b"of another").await;
    here.get(&format!("/v2/upper/team/q/blobs/{theirs}")).await.is(200);
    let asked = mood.take();
    assert!(asked.iter().all(|line| line.starts_with("HEAD")), "{asked:?}");
}
