//! Who may do what: nothing leaks about what somebody may not see.

use crate::support::{World, artifact};
use async_trait::async_trait;
use axum::body::Body;
use http::request::Parts;
use registry::access::Refused;
use registry::{Access, Action, Decision, Name, Options, Principal};
use std::sync::Arc;

/// Ada may do everything; others pull what is not below `secret/`, and nobody else pushes.
struct Rules;

#[async_trait]
impl Access for Rules {
    async fn principal(&self, request: &Parts) -> Result<Principal, Refused> {
        match request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            None => Ok(Principal::anonymous()),
            Some("nobody") => Err(Refused::Challenge("Basic realm=\"test\"".to_owned())),
            Some(user) => Ok(Principal::named(user)),
        }
    }

    fn decide(&self, who: &Principal, repository: Option<&Name>, action: Action) -> Decision {
        let secret = repository.is_some_and(|name| name.as_str().starts_with("secret/"));
        match (who.as_str(), action) {
            ("ada", _) | (_, Action::Look) => Decision::Allow,
            _ if secret => Decision::Hide,
            (_, Action::Pull | Action::List) | ("bob", Action::Push) => Decision::Allow,
            ("", _) => Decision::Challenge("Basic realm=\"test\"".to_owned()),
            _ => Decision::Deny,
        }
    }
}

/// A world with a secret and a public package in it, under these rules.
async fn guarded() -> (World, oci::Raw, oci::Raw) {
    let mut world = World::new();
    let secret = world.push("secret/p", "v1", "secret").await;
    let public = world.push("public/p", "v1", "public").await;
    let config = world.blob("secret/p", b"{}").await;
    let signature = artifact(config, &secret, "application/x.sig", "n");
    world.put("secret/p", "signature", &signature).await.is(201);
    world.router = registry::router(world.registry.clone(), Options::guarded(Arc::new(Rules)));
    (world, secret, public)
}

#[tokio::test]
async fn what_is_hidden_looks_like_what_is_not_there() {
    let (world, secret, _) = guarded().await;
    let digest = &secret.digest;
    let paths = [
        "manifests/v1".to_owned(),
        format!("manifests/{digest}"),
        format!("blobs/{}", secret.manifest().unwrap().config.digest),
        "tags/list".to_owned(),
        format!("referrers/{digest}"),
    ];
    for path in paths {
        let user = [("x-user", "bob")];
        let hidden = world.call("GET", &format!("/v2/secret/p/{path}"), &user, Body::empty()).await;
        let hidden = hidden.refuses(404, "NAME_UNKNOWN");
        let nothing =
            world.call("GET", &format!("/v2/secret/q/{path}"), &user, Body::empty()).await;
        let same = String::from_utf8_lossy(&nothing.body).replace("secret/q", "secret/p");
        assert_eq!(String::from_utf8_lossy(&hidden.body), same);
        let ada = [("x-user", "ada")];
        world.call("GET", &format!("/v2/secret/p/{path}"), &ada, Body::empty()).await.is(200);
    }
    let listed = world.get("/v2/_catalog").await.is(200).json();
    assert_eq!(listed["repositories"], serde_json::json!(["public/p"]));
    let one = world.get("/v2/_catalog?n=1").await.is(200);
    assert!(one.headers.get("link").is_none(), "a next page would tell of more");
}

#[tokio::test]
async fn nothing_is_mounted_from_what_is_hidden() {
    let (world, secret, public) = guarded().await;
    let bob = [("x-user", "bob")];
    let layer = |raw: &oci::Raw| raw.manifest().unwrap().layers[0].digest.clone();
    for query in ["", "&from=secret/p", "&from=secret/q", "&from=..%2fsecret"] {
        let path = format!("/v2/bob/p/blobs/uploads/?mount={}{query}", layer(&secret));
        world.call("POST", &path, &bob, Body::empty()).await.is(202);
    }
    let path = format!("/v2/bob/p/blobs/uploads/?mount={}", layer(&public));
    world.call("POST", &path, &bob, Body::empty()).await.is(201);
}

#[tokio::test]
async fn everybody_is_told_what_they_lack() {
    let (world, _, public) = guarded().await;
    let post = "/v2/public/p/blobs/uploads/";
    let asked = world.call("POST", post, &[], Body::empty()).await.refuses(401, "UNAUTHORIZED");
    assert_eq!(asked.header("www-authenticate"), "Basic realm=\"test\"");
    let wrong = world.call("GET", "/v2/", &[("x-user", "nobody")], Body::empty()).await;
    wrong.refuses(401, "UNAUTHORIZED");
    world.call("POST", post, &[("x-user", "eve")], Body::empty()).await.refuses(403, "DENIED");
    let path = format!("/v2/public/p/manifests/{}", public.digest);
    world.call("DELETE", &path, &[("x-user", "bob")], Body::empty()).await.refuses(403, "DENIED");
    world.call("DELETE", &path, &[("x-user", "ada")], Body::empty()).await.is(202);
}

#[tokio::test]
async fn uploads_are_continued_by_those_who_began_them() {
    let (world, ..) = guarded().await;
    let bob = [("x-user", "bob")];
    let begun = world.call("POST", "/v2/bob/p/blobs/uploads/", &bob, Body::empty()).await.is(202);
    let location = begun.header("location").to_owned();
    for method in ["PATCH", "GET", "DELETE"] {
        let answer = world.call(method, &location, &[("x-user", "ada")], "x").await;
        answer.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    }
    world.call("PATCH", &location, &bob, "x").await.is(202);
}

/// Rules that break down over one name.
struct Brittle;

#[async_trait]
impl Access for Brittle {
    async fn principal(&self, _: &Parts) -> Result<Principal, Refused> {
        Ok(Principal::anonymous())
    }

    fn decide(&self, _: &Principal, repository: Option<&Name>, _: Action) -> Decision {
        assert!(repository.is_none_or(|name| name.as_str() != "brittle/p"), "it broke");
        Decision::Allow
    }
}

/// H2, the second half.
#[tokio::test]
async fn h2_a_panic_costs_the_request_it_happened_in_and_no_other() {
    let mut world = World::new();
    world.push("sound/p", "v1", "sound").await;
    world.router = registry::router(world.registry.clone(), Options::guarded(Arc::new(Brittle)));
    for round in 0..3 {
        let broken = world.get("/v2/brittle/p/tags/list").await.refuses(500, "UNSUPPORTED");
        assert!(broken.headers.get("docker-distribution-api-version").is_some());
        world.get("/v2/sound/p/manifests/v1").await.is(200);
        world.push("sound/p", &format!("v2-{round}"), "more").await;
    }
    let counted = world.get("/metrics").await.is(200);
    let counted = String::from_utf8_lossy(&counted.body).into_owned();
    assert!(counted.contains("{method=\"GET\",status=\"5xx\"} 3"), "{counted}");
}
