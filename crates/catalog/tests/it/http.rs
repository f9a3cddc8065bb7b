//! The catalog over HTTP: every address, asked by everybody.

use crate::questions::catalog;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use catalog::Rights;
use catalog::http::{Admitted, Gate, Problem, router};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value as Json;
use std::io::Read as _;
use std::sync::Arc;
use tempfile::TempDir;
use tower::ServiceExt as _;

/// Lets the owner read everything, anybody what is not private, and asks strangers who they are.
struct Door;

#[async_trait]
impl Gate for Door {
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem> {
        let refuse = || {
            let problem =
                Problem::new(StatusCode::UNAUTHORIZED, "who asks is not known", "sign in");
            problem.header(http::header::WWW_AUTHENTICATE, "Basic")
        };
        match request.headers.get("user").and_then(|value| value.to_str().ok()) {
            Some("owner") => Ok(Admitted { rights: Rights::all(), otherwise: None }),
            Some("anybody") => {
                let rights = Rights::when(|name| !name.starts_with("private/"));
                Ok(Admitted { rights, otherwise: None })
            }
            Some("nothing") => Ok(Admitted { rights: Rights::when(|_| false), otherwise: None }),
            _ => Ok(Admitted { rights: Rights::when(|_| false), otherwise: Some(refuse()) }),
        }
    }
}

struct Served {
    router: Router,
    _directory: TempDir,
}

fn served() -> Served {
    let kept = catalog();
    let router = router(Arc::new(kept.index), Arc::new(Door));
    Served { router, _directory: kept.directory }
}

impl Served {
    async fn send(&self, user: &str, request: http::request::Builder) -> Response<Body> {
        let request = request.header("user", user).body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, user: &str, path: &str) -> (StatusCode, String) {
        let response = self.send(user, Request::get(format!("/api/v1{path}"))).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        if path == "/index.jsonl.gz" && status == StatusCode::OK {
            let mut text = String::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            return (status, text);
        }
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn json(&self, user: &str, path: &str) -> Json {
        let (status, text) = self.get(user, path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Every address, with what may be said there.
const ADDRESSES: [&str; 50] = [
    "/crds",
    "/crds?q=bucket",
    "/crds?q=secretvault",
    "/crds?group=secret.example.org",
    "/crds/buckets.s3.example.org",
    "/crds/vaults.secret.example.org",
    "/crds/buckets.s3.example.org/packages",
    "/crds/buckets.s3.example.org/packages?version=v1",
    "/crds/vaults.secret.example.org/packages",
    "/crds/vault.secret.example.com/packages",
    "/crds/vaults.secret.example.org/versions/v1/schema",
    "/packages",
    "/packages?q=aws",
    "/packages?q=hidden",
    "/packages/team/aws",
    "/packages/team/aws/-/versions",
    "/packages/team/aws/-/dependents",
    "/packages/private/aws",
    "/packages/private/aws/-/versions",
    "/packages/private/aws/-/versions/v9.0.0",
    "/packages/private/aws/-/versions/v9.0.0/crds",
    "/packages/private/aws/-/versions/v9.0.0/dependencies",
    "/packages/private/aws/-/dependents",
    "/search?q=vaults",
    "/resolve?crd=buckets.s3.example.org/v1",
    "/resolve?crd=vaults.secret.example.org",
    "/resolve?crd=*.secret.example.org&lenient=true",
    "/resolve?crd=vault.secret.example.com",
    "/search?q=secretvault",
    "/search?q=v",
    "/search?q=size",
    "/crds/vaults.secret.example.org/versions/v1/sample",
    "/crds/vaults.secret.example.org/versions/v1/raw",
    "/crds/buckets.s3.example.org/versions/v1/raw?package=private/aws",
    "/groups",
    "/groups/secret.example.org",
    "/groups/s3.example.org",
    "/facets",
    "/facets?q=hidden",
    "/packages?group=secret.example.org",
    "/packages/private/aws/-/versions/v9.0.0/graph",
    "/packages/private/aws/-/versions/v8.0.0/graph?format=dot",
    "/packages/team/platform/-/versions/v0.1.0/graph",
    "/packages/private/aws/-/diff?from=v8.0.0&to=v9.0.0",
    "/packages/private/aws/-/breaking?from=v8.0.0&to=v9.0.0",
    "/packages/team/aws/-/diff?from=v1.0.0&to=v1.1.0",
    "/packages?requires=vaults.secret.example.org",
    "/facets?requires=team/aws",
    "/index.jsonl.gz",
    "/openapi.json",
];

#[tokio::test]
async fn what_is_private_is_in_no_answer_to_those_who_may_not_read_it() {
    let served = served();
    let is_told = |text: &str| {
        [
            "hidden",
            "vaults.secret.example.org",
            "v9.0.0",
            "v8.0.0",
            "\"d3\"",
            "\"d5\"",
            "SecretVault",
        ]
        .iter()
        .any(|word| text.contains(word))
    };
    let mut told_to_owner = 0;
    for address in ADDRESSES {
        let (_, owner) = served.get("owner", address).await;
        told_to_owner += usize::from(is_told(&owner));
        for user in ["anybody", "nothing", ""] {
            let (status, text) = served.get(user, address).await;
            // What was asked for may be repeated, and is no news.
            let text = text.replace(address.split(['/', '?', '=']).next_back().unwrap(), "");
            let text = match address.split_once("/crds/") {
                Some((_, rest)) => text.replace(rest.split('/').next().unwrap(), ""),
                None => text.replace("private/aws v9.0.0", "").replace("private/aws v8.0.0", ""),
            };
            assert!(!is_told(&text), "{user} {address}: {status} {text}");
            let is_named = text.contains("private/") && !address.contains("private/");
            assert!(!is_named, "{user} {address}: {status} {text}");
        }
        let (status, _) = served.get("", address).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{address}");
    }
    assert!(told_to_owner > 12, "the owner is told {told_to_owner} times");
}

/// Whether an address is one of those that a path of the document stands for.
fn leads_to(path: &str, address: &str) -> bool {
    let address = address.split('?').next().unwrap();
    let (wanted, found): (Vec<&str>, Vec<&str>) =
        (path.split('/').collect(), address.split('/').collect());
    let extra = found.len().saturating_sub(wanted.len());
    let mut rest = found.into_iter();
    wanted.iter().all(|part| match *part {
        // Its name may have slashes.
        "{repository}" => rest.by_ref().take(extra + 1).count() == extra + 1,
        _ => rest.next().is_some_and(|it| part.starts_with('{') || it == *part),
    }) && rest.next().is_none()
}

#[tokio::test]
async fn the_matrix_of_rights_has_every_address_there_is() {
    let document = served().json("anybody", "/openapi.json").await;
    for path in document["paths"].as_object().unwrap().keys() {
        let path = path.strip_prefix("/api/v1").unwrap();
        // News are told in a test of their own: they never end.
        let is_there = ADDRESSES.iter().any(|address| leads_to(path, address));
        assert!(is_there || path == "/events", "{path} is missing");
    }
}

/// What is not there, and what is there for others, is one answer.
#[tokio::test]
async fn what_is_private_is_answered_as_what_is_not_there() {
    let served = served();
    for (private, missing) in [
        ("/packages/private/aws", "/packages/missing/xyz"),
        ("/packages/private/aws/-/versions", "/packages/missing/xyz/-/versions"),
        ("/packages/private/aws/-/dependents", "/packages/missing/xyz/-/dependents"),
        ("/crds/vaults.secret.example.org", "/crds/zzzzzz.secret.example.org"),
        ("/crds/vaults.secret.example.org/packages", "/crds/zzzzzz.secret.example.org/packages"),
        ("/resolve?crd=vaults.secret.example.org", "/resolve?crd=zzzzzz.secret.example.org"),
        ("/packages/private/aws/-/diff?from=a&to=b", "/packages/missing/xyz/-/diff?from=a&to=b"),
        ("/packages/private/aws/-/versions/v1/graph", "/packages/missing/xyz/-/versions/v1/graph"),
    ] {
        let (status, text) = served.get("anybody", private).await;
        let (other, missing) = served.get("anybody", missing).await;
        let text = text.replace("private/aws", "X").replace("vaults", "X");
        let missing = missing.replace("missing/xyz", "X").replace("zzzzzz", "X");
        assert_eq!((status, text), (other, missing), "{private}");
    }
}

#[tokio::test]
async fn both_directions_are_one_question_each() {
    let served = served();
    let found = served.json("anybody", "/crds/bucket.s3.example.org/packages?version=v1").await;
    assert_eq!(found["crd"], "buckets.s3.example.org");
    assert_eq!(found["packages"][0]["repository"], "team/aws");
    assert_eq!(found["packages"][0]["versions"][0]["tags"][0], "v1.1.0");
    assert_eq!(found["packages"][0]["versions"][1], Json::Null);
    assert_eq!(found["ambiguous"], false);
    let back = served.json("anybody", "/packages/team/aws/-/versions/v1.1.0/crds").await;
    let names: Vec<&str> =
        back["items"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["buckets.s3.example.org", "queues.sqs.example.org"]);
    let needs =
        served.json("anybody", "/packages/team/platform/-/versions/%3E=v0.1.0/dependencies").await;
    assert_eq!(needs["items"][0]["package"], "registry.example.org/team/aws");
}

#[tokio::test]
async fn lists_come_page_by_page() {
    let served = served();
    let (mut seen, mut address) = (Vec::new(), "/crds?limit=1".to_owned());
    loop {
        let response = served.send("owner", Request::get(format!("/api/v1{address}"))).await;
        let link = response.headers().get("link").map(|it| it.to_str().unwrap().to_owned());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let page: Json = serde_json::from_slice(&bytes).unwrap();
        seen.extend(page["items"].as_array().unwrap().iter().map(|it| it["name"].to_string()));
        let Some(link) = link else { break };
        let next = link.split(['<', '>']).nth(1).unwrap();
        address = next.strip_prefix("/api/v1").unwrap().to_owned();
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    let versions = served.json("anybody", "/packages/team/aws/-/versions?limit=1").await;
    assert_eq!(versions["items"][0]["digest"], "d2");
    let rest = served.json("anybody", "/packages/team/aws/-/versions?limit=1&cursor=d2").await;
    assert_eq!((&rest["items"][0]["digest"], &rest["next"]), (&"d1".into(), &Json::Null));
}

#[tokio::test]
async fn answers_are_known_again_and_mistakes_are_problems() {
    let served = served();
    let response = served.send("anybody", Request::get("/api/v1/packages")).await;
    let tag = response.headers()["etag"].clone();
    let again = Request::get("/api/v1/packages").header("if-none-match", &tag);
    assert_eq!(served.send("anybody", again).await.status(), StatusCode::NOT_MODIFIED);
    for (address, status, word) in [
        ("/crds/pods", 400, "group"),
        ("/crds/buckets.s3.example.org/packages?version=1", 400, "version"),
        ("/crds?limit=0", 400, "limit"),
        ("/packages/team/aws/-/versions?cursor=nowhere", 400, "cursor"),
        ("/packages/team/aws/-/versions/v7.0.0", 404, "v7.0.0"),
        ("/packages/team/aws/-", 404, "address"),
        ("/nowhere", 404, "address"),
        ("/search", 400, "q="),
        ("/resolve", 400, "crd="),
        ("/packages/team/aws/-/diff?from=v1.0.0", 400, "to"),
        ("/packages/team/aws/-/versions/v1.0.0/graph?depth=17", 400, "depth"),
        ("/packages/team/aws/-/versions/v1.0.0/graph?format=png", 400, "format"),
        ("/groups/absent.example.org", 404, "absent.example.org"),
        ("/resolve?crd=buckets.s3.example.org&lenient=maybe", 400, "lenient"),
        ("/resolve?crd=buckets.s3.example.org&constraint=!", 400, "constraint"),
        ("/resolve?crd=absent.s3.example.org", 404, "crd-undefined"),
        ("/resolve?crd=buckets.s3.example.org/v7", 422, "crd-unserved"),
    ] {
        let (found, text) = served.get("anybody", address).await;
        assert_eq!(found.as_u16(), status, "{address}: {text}");
        let problem: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["status"], status);
        assert!(text.contains(word), "{address}: {text}");
        assert!(problem["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    }
    let response = served.send("owner", Request::delete("/api/v1/packages/team/aws")).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

/// Every address of the document, with something that is there.
fn filled_in(path: &str) -> String {
    path.strip_prefix("/api/v1")
        .unwrap()
        .replace("{crd}", "buckets.s3.example.org")
        .replace("{version}", "v1")
        .replace("{group}", "s3.example.org")
        .replace("{repository}", "team/aws")
        .replace("{reference}", "v1.1.0")
}

#[tokio::test]
async fn the_document_tells_of_every_address_and_what_it_answers() {
    let served = served();
    let document = served.json("anybody", "/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 24, "{}", paths.len());
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in paths {
        let told = &item["get"];
        assert!(names.insert(told["operationId"].to_string()), "{path} has a name of its own");
        let parameters = told["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|it| it["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{path}");
        let required = parameters.iter().filter(|it| it["in"] == "query" && it["required"] == true);
        let query = required.map(|it| match it["name"].as_str().unwrap() {
            "crd" => "crd=buckets.s3.example.org/v1".to_owned(),
            "from" => "from=v1.0.0".to_owned(),
            "to" => "to=v1.1.0".to_owned(),
            name => format!("{name}=bucket"),
        });
        let query = query.collect::<Vec<_>>().join("&");
        let address = format!("{}?{query}", filled_in(path));
        // News never end, and the fixture's kinds have no schemas.
        let is_empty =
            ["/events", "/schema", "/sample", "/raw"].iter().any(|it| path.ends_with(it));
        let media = told["responses"]["200"]["content"].as_object().unwrap();
        let Some(json) = media.get("application/json").filter(|_| !is_empty) else { continue };
        let answer = served.json("anybody", &address).await;
        for member in json["schema"]["required"].as_array().into_iter().flatten() {
            assert!(answer.get(member.as_str().unwrap()).is_some(), "{address}: {member}");
        }
    }
}

#[tokio::test]
async fn news_are_told_to_those_who_may_read_what_changed() {
    let kept = catalog();
    let index = Arc::new(kept.index);
    let router = router(index.clone(), Arc::new(Door));
    let request = Request::get("/api/v1/events").header("user", "anybody");
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut next = async || {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    };
    assert_eq!(next().await, ": listening\n\n");
    index.settle("private/new", &[crate::support::head("d1", &["v1.0.0"])]).unwrap();
    index.settle("team/new", &[crate::support::head("d1", &["v1.0.0"])]).unwrap();
    assert_eq!(next().await, "event: changed\ndata: {\"repository\":\"team/new\"}\n\n");
    index.end_news();
    assert!(body.frame().await.is_none(), "who stops has no more news");
    assert!(index.observe().recv().await.is_err(), "nor for those who come later");
}
