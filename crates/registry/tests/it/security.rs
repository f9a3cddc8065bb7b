//! What somebody who means no good may try. Each attack has a test, and each test looks at what
//! is answered and at what is written down.

use crate::support::{Answer, World, artifact};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use registry::auth::scope::Grant;
use registry::auth::token::{Claims, Keys, Origin};
use registry::auth::{AUDIT_FILE, Actions, Auth, Mode, Rule, Settings, Users};
use registry::{Options, Registry};
use serde_json::json;
use std::time::{Duration, SystemTime};

const ADDRESS: &str = "https://registry.test:5000";
const SERVICE: &str = "registry.test:5000";

/// Alice and Bob may use everything but `secret/**`, which is Alice's, and `frozen/**`, which
/// everybody may only read.
fn guarded(mode: Mode) -> World {
    let directory = tempfile::tempdir().unwrap();
    let rule = |who: &str, repositories: &str, actions: &str| Rule {
        who: who.to_owned(),
        repositories: repositories.to_owned(),
        actions: Actions::parse(actions).unwrap(),
    };
    Users::change(directory.path(), |users| {
        users.set_password("alice", "alice's password")?;
        users.set_password("bob", "bob's password")?;
        users.rules.push(rule("alice", "secret/**", "pull,push,delete"));
        users.rules.push(rule("anonymous", "frozen/**", "pull"));
        users.rules.push(rule("alice", "frozen/**", "push"));
        Ok(())
    })
    .unwrap();
    let settings =
        Settings { mode, address: Some(ADDRESS.to_owned()), ..Settings::new(directory.path()) };
    let registry = Registry::open(directory.path(), registry::Settings::default()).unwrap();
    let router = serve(&registry, settings);
    World { directory, registry, router }
}

fn serve(registry: &Registry, settings: Settings) -> axum::Router {
    let auth = Auth::open(settings).unwrap();
    let options = Options::guarded(auth.clone());
    registry::router(registry.clone(), options).merge(auth.routes())
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

fn alice() -> String {
    basic("alice", "alice's password")
}

fn bob() -> String {
    basic("bob", "bob's password")
}

async fn ask(world: &World, method: &str, path: &str, who: &str) -> Answer {
    let headers = [("authorization", who)];
    let headers = if who.is_empty() { &headers[..0] } else { &headers[..] };
    world.call(method, path, headers, Body::empty()).await
}

async fn token(world: &World, who: &str, scopes: &[&str]) -> String {
    let scopes: Vec<String> = scopes.iter().map(|scope| format!("scope={scope}")).collect();
    let path = format!("/token?service={SERVICE}&{}", scopes.join("&"));
    let answer = ask(world, "GET", &path, who).await.is(200).json();
    assert_eq!(answer["token"], answer["access_token"]);
    assert!(answer["expires_in"].as_u64().unwrap() >= 60);
    format!("Bearer {}", answer["token"].as_str().unwrap())
}

fn claims(token: &str) -> serde_json::Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Pushes a blob and a manifest with it; gives the digests of both.
async fn push(world: &World, name: &str, who: &str) -> (String, String) {
    let content = format!("{{\"of\":\"{name}\"}}").into_bytes();
    let mut config = oci::Descriptor::of(oci::MediaType::OCI_CONFIG, &content);
    config.media_type = oci::MediaType::OCI_CONFIG;
    let blob = config.digest.to_string();
    let path = format!("/v2/{name}/blobs/uploads/?digest={blob}");
    world.call("POST", &path, &[("authorization", who)], content).await.is(201);
    let mut manifest = oci::Manifest::docker(config, Vec::new());
    manifest.media_type = oci::MediaType::OCI_MANIFEST;
    let raw = oci::Raw::from_manifest(&manifest).unwrap();
    let headers = [("authorization", who), ("content-type", raw.media_type.as_str())];
    let path = format!("/v2/{name}/manifests/latest");
    world.call("PUT", &path, &headers, raw.bytes.clone()).await.is(201);
    (blob, raw.digest.to_string())
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// The audit log, once it holds a word.
async fn audit(world: &World, awaited: &str) -> String {
    let path = world.directory.path().join(AUDIT_FILE);
    for _ in 0..6000 {
        let text = fs_err::read_to_string(&path).unwrap();
        if text.contains(awaited) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("`{awaited}` never came: {}", fs_err::read_to_string(&path).unwrap());
}

#[tokio::test]
async fn strangers_learn_how_to_sign_in() {
    let world = guarded(Mode::Public);
    let base = ask(&world, "GET", "/v2/", "").await.refuses(401, "UNAUTHORIZED");
    let expected = format!("Bearer realm=\"{ADDRESS}/token\",service=\"{SERVICE}\"");
    assert_eq!(base.header("www-authenticate"), expected);
    let path = "/v2/team/a/blobs/uploads/";
    let start = ask(&world, "POST", path, "").await.refuses(401, "UNAUTHORIZED");
    let expected = format!("{expected},scope=\"repository:team/a:pull,push\"");
    assert_eq!(start.header("www-authenticate"), expected);
    ask(&world, "GET", "/v2/", &alice()).await.is(200);
    let nobody = token(&world, "", &["repository:team/a:pull,push"]).await;
    assert_eq!(claims(&nobody)["access"][0]["actions"], json!(["pull"]));
    ask(&world, "GET", "/v2/", &nobody).await.is(200);
    ask(&world, "POST", path, &nobody).await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn anybody_pulls_and_users_push() {
    let world = guarded(Mode::Public);
    let (_, digest) = push(&world, "team/a", &bob()).await;
    ask(&world, "GET", "/v2/team/a/manifests/latest", "").await.is(200);
    ask(&world, "DELETE", &format!("/v2/team/a/manifests/{digest}"), "").await.is(401);
    let private = guarded(Mode::Private);
    push(&private, "team/a", &bob()).await;
    ask(&private, "GET", "/v2/team/a/manifests/latest", "").await.is(401);
    ask(&private, "GET", "/v2/frozen/a/tags/list", "").await.is(401);
    ask(&private, "GET", "/v2/team/a/manifests/latest", &alice()).await.is(200);
    let nobody = token(&private, "", &["repository:team/a:pull"]).await;
    assert_eq!(claims(&nobody)["access"], json!([]));
}

#[tokio::test]
async fn private_repositories_leak_nowhere() {
    let world = guarded(Mode::Public);
    let (blob, digest) = push(&world, "secret/a", &alice()).await;
    push(&world, "team/a", &bob()).await;
    let subject = oci::Raw::from_index(&oci::Index::oci(Vec::new())).unwrap();
    let config = oci::Descriptor::of(oci::MediaType::OCI_CONFIG, b"{\"of\":\"secret/a\"}");
    let raw = artifact(config.clone(), &subject, "application/x", "secret note");
    let headers = [("content-type", raw.media_type.as_str()), ("authorization", &alice())];
    let path = format!("/v2/secret/a/manifests/{}", raw.digest);
    world.call("PUT", &path, &headers, raw.bytes.clone()).await.is(201);
    // There and not there answer alike, to the letter.
    for tail in [
        "tags/list".to_owned(),
        "manifests/latest".to_owned(),
        format!("manifests/{digest}"),
        format!("blobs/{blob}"),
        format!("referrers/{}", subject.digest),
    ] {
        for who in [String::new(), bob()] {
            let there = ask(&world, "GET", &format!("/v2/secret/a/{tail}"), &who).await;
            let not = ask(&world, "GET", &format!("/v2/secret/b/{tail}"), &who).await;
            assert_eq!(there.status.as_u16(), if who.is_empty() { 401 } else { 404 }, "{tail}");
            let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!(text(&there), text(&not).replace("secret/b", "secret/a"), "{tail}");
        }
    }
    for method in ["PUT", "DELETE"] {
        ask(&world, method, "/v2/secret/a/manifests/latest", &bob())
            .await
            .refuses(404, "NAME_UNKNOWN");
    }
    for who in [bob(), token(&world, "", &[]).await] {
        let catalog = ask(&world, "GET", "/v2/_catalog", &who).await.is(200).json();
        assert_eq!(catalog, json!({ "repositories": ["team/a"] }));
        let page = ask(&world, "GET", "/v2/_catalog?n=1&last=s", &who).await.is(200);
        assert_eq!(page.json(), json!({ "repositories": ["team/a"] }));
        assert!(page.headers.get("link").is_none());
    }
    let catalog = ask(&world, "GET", "/v2/_catalog", &alice()).await.is(200).json();
    assert_eq!(catalog, json!({ "repositories": ["secret/a", "team/a"] }));
    // Mounting needs to read the source, named or not; it falls back to an upload.
    for from in ["&from=secret/a", ""] {
        let path = format!("/v2/team/a/blobs/uploads/?mount={blob}{from}");
        ask(&world, "POST", &path, &bob()).await.is(202);
        let other = path.replace("secret/a", "secret/none");
        ask(&world, "POST", &other, &bob()).await.is(202);
    }
    ask(&world, "GET", &format!("/v2/team/a/blobs/{blob}"), &bob()).await.is(404);
    // A manifest cannot pull in blobs that its repository does not have.
    let mut manifest = oci::Manifest::docker(config, Vec::new());
    manifest.media_type = oci::MediaType::OCI_MANIFEST;
    let raw = oci::Raw::from_manifest(&manifest).unwrap();
    let headers = [("content-type", raw.media_type.as_str()), ("authorization", &bob())];
    let put = world.call("PUT", "/v2/team/a/manifests/x", &headers, raw.bytes.clone()).await;
    assert_eq!(put.json()["errors"][0]["code"], "MANIFEST_BLOB_UNKNOWN");
    let path = format!("/v2/secret/a/blobs/uploads/?mount={blob}&from=secret/a");
    ask(&world, "POST", &path, &bob()).await.refuses(404, "NAME_UNKNOWN");
}

#[tokio::test]
async fn what_may_be_read_but_not_written_says_so() {
    let world = guarded(Mode::Public);
    push(&world, "frozen/a", &alice()).await;
    ask(&world, "GET", "/v2/frozen/a/tags/list", &bob()).await.is(200);
    ask(&world, "POST", "/v2/frozen/a/blobs/uploads/", &bob()).await.refuses(403, "DENIED");
    let path = "/v2/frozen/a/manifests/latest";
    ask(&world, "DELETE", path, &alice()).await.refuses(403, "DENIED");
}

#[tokio::test]
async fn tokens_are_good_for_what_was_granted_only() {
    let world = guarded(Mode::Public);
    push(&world, "secret/a", &alice()).await;
    push(&world, "secret/b", &alice()).await;
    let scopes = ["repository:secret/a:*", "repository:team/a:pull,push", "registry:catalog:*"];
    let bobs = token(&world, &bob(), &scopes).await;
    let access = claims(&bobs)["access"].clone();
    assert_eq!(access.as_array().unwrap().len(), 2, "{access}");
    assert_eq!(access[0]["name"], "team/a");
    ask(&world, "GET", "/v2/secret/a/tags/list", &bobs).await.refuses(404, "NAME_UNKNOWN");
    ask(&world, "POST", "/v2/team/a/blobs/uploads/", &bobs).await.is(202);
    let other = ask(&world, "POST", "/v2/team/b/blobs/uploads/", &bobs).await;
    let challenge = other.refuses(401, "UNAUTHORIZED").header("www-authenticate").to_owned();
    assert!(
        challenge.contains("scope=\"repository:team/b:pull,push\",error=\"insufficient_scope\"")
    );
    let reader = token(&world, &alice(), &["repository:secret/a:pull"]).await;
    ask(&world, "GET", "/v2/secret/a/tags/list", &reader).await.is(200);
    ask(&world, "GET", "/v2/secret/b/tags/list", &reader).await.is(401);
    ask(&world, "DELETE", "/v2/secret/a/manifests/latest", &reader).await.is(401);
    ask(&world, "POST", "/v2/secret/a/blobs/uploads/", &reader).await.is(401);
    let catalog = ask(&world, "GET", "/v2/_catalog", &reader).await.is(200).json();
    assert_eq!(catalog, json!({ "repositories": ["secret/a"] }));
    // A token gets nobody a better one.
    let path = "/token?scope=repository:secret/b:pull";
    ask(&world, "GET", path, &reader).await.refuses(401, "UNAUTHORIZED");
    // Nor does one that lists everything read it by mounting.
    let scopes = ["registry:catalog:*", "repository:team/a:pull,push"];
    let lister = token(&world, &alice(), &scopes).await;
    let catalog = ask(&world, "GET", "/v2/_catalog", &lister).await.is(200).json();
    assert_eq!(catalog, json!({ "repositories": ["secret/a", "secret/b"] }));
    let blob = oci::Descriptor::of(oci::MediaType::OCI_CONFIG, b"{\"of\":\"secret/a\"}").digest;
    let path = format!("/v2/team/a/blobs/uploads/?mount={blob}&from=secret/a");
    ask(&world, "POST", &path, &lister).await.is(202);
}

#[tokio::test]
async fn forged_expired_and_foreign_tokens_are_refused() {
    let world = guarded(Mode::Public);
    push(&world, "secret/a", &alice()).await;
    let path = "/v2/secret/a/tags/list";
    let keys = Keys::open(world.directory.path(), seconds()).unwrap();
    let grant = Grant {
        kind: "repository".to_owned(),
        name: "secret/a".to_owned(),
        actions: vec!["pull".to_owned(), "push".to_owned(), "delete".to_owned()],
    };
    let origin = |bearer: &str| -> Origin {
        serde_json::from_value(claims(bearer)["origin"].clone()).unwrap()
    };
    let alices = origin(&token(&world, &alice(), &[]).await);
    let bobs = origin(&token(&world, &bob(), &[]).await);
    let good = Claims::new("alice", SERVICE, alices, vec![grant], seconds()).unwrap();
    let bearer = |claims: &Claims| format!("Bearer {}", keys.sign(claims).unwrap());
    ask(&world, "GET", path, &bearer(&good)).await.is(200);
    let check = async |what: &str, token: &str| {
        let answer = ask(&world, "GET", path, token).await;
        assert_eq!(answer.status.as_u16(), 401, "{what}");
        assert!(answer.header("www-authenticate").contains("invalid_token"), "{what}");
    };
    let now = seconds();
    check("expired", &bearer(&Claims { exp: now - 1, ..good.clone() })).await;
    check("not yet", &bearer(&Claims { nbf: now + 60, ..good.clone() })).await;
    check("elsewhere", &bearer(&Claims { aud: "other.test".to_owned(), ..good.clone() })).await;
    check("issuer", &bearer(&Claims { iss: "other".to_owned(), ..good.clone() })).await;
    check("nobody we know", &bearer(&Claims { sub: "carol".to_owned(), ..good.clone() })).await;
    let good_token = bearer(&good);
    let parts: Vec<&str> = good_token.strip_prefix("Bearer ").unwrap().split('.').collect();
    let header: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[0]).unwrap()).unwrap();
    for alg in ["none", "HS256", "RS256", "ES256"] {
        let header = json!({ "alg": alg, "typ": "JWT", "kid": header["kid"] }).to_string();
        let header = URL_SAFE_NO_PAD.encode(header);
        check(alg, &format!("Bearer {header}.{}.", parts[1])).await;
        check(alg, &format!("Bearer {header}.{}.{}", parts[1], parts[2])).await;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let stranger = Keys::open(elsewhere.path(), now).unwrap();
    check("another key", &format!("Bearer {}", stranger.sign(&good).unwrap())).await;
    // Rules still hold for whoever a token names: this one was signed for too much.
    check("had for nothing", &bearer(&Claims { origin: Origin::default(), ..good.clone() })).await;
    check("had by somebody else", &bearer(&Claims { origin: bobs.clone(), ..good.clone() })).await;
    let bobs = bearer(&Claims { sub: "bob".to_owned(), origin: bobs, ..good });
    ask(&world, "GET", path, &bobs).await.refuses(404, "NAME_UNKNOWN");
    check("rubbish", "Bearer rubbish").await;
    check("scheme", "Digest x").await;
}

#[tokio::test]
async fn keys_sign_in_and_forms_give_tokens() {
    let world = guarded(Mode::Private);
    let directory = tempfile::tempdir().unwrap();
    let key = Users::change(directory.path(), |users| users.add_key("ci", "main")).unwrap();
    let path = directory.path().to_owned();
    let settings =
        Settings { mode: Mode::Private, address: Some(ADDRESS.to_owned()), ..Settings::new(&path) };
    let world = World { router: serve(&world.registry, settings), ..world };
    ask(&world, "GET", "/v2/", &basic("ci", &key)).await.is(200);
    ask(&world, "GET", "/v2/", &format!("Bearer {key}")).await.is(200);
    ask(&world, "GET", "/v2/", &basic("alice", &key)).await.is(401);
    ask(&world, "GET", "/v2/", &basic("ci", &format!("{key}x"))).await.is(401);
    let form = format!("grant_type=refresh_token&refresh_token={key}&scope=repository:a:push");
    let answer = world.call("POST", "/token", &[], form).await.is(200);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.json()["scope"], "repository:a:push");
    let bearer = format!("Bearer {}", answer.json()["access_token"].as_str().unwrap());
    ask(&world, "POST", "/v2/a/blobs/uploads/", &bearer).await.is(202);
    let form = format!("grant_type=password&username=ci&password={key}");
    world.call("POST", "/token", &[], form).await.is(200);
    let form = "grant_type=password&username=ci&password=x";
    world.call("POST", "/token", &[], form).await.refuses(401, "UNAUTHORIZED");
    world.call("POST", "/token", &[], "grant_type=magic").await.refuses(400, "UNSUPPORTED");
    world.call("POST", "/token", &[], "x".repeat(100_000)).await.is(400);
    world.call("PUT", "/token", &[], "").await.is(405);
}

#[tokio::test]
async fn guessing_is_slowed_down_for_the_guesser() {
    let world = guarded(Mode::Public);
    ask(&world, "GET", "/v2/", &alice()).await.is(200);
    let mut slowed = ask(&world, "GET", "/v2/", &basic("alice", "guess")).await.is(401);
    // Ten at once; one more for every six seconds that hashing takes here.
    let mut guesses = 1;
    while slowed.status.as_u16() == 401 {
        slowed = ask(&world, "GET", "/v2/", &basic("alice", "guess")).await;
        guesses += 1;
        assert!(guesses <= 100, "guessing goes on and on");
    }
    assert!(guesses > 10);
    let slowed = slowed.refuses(429, "TOOMANYREQUESTS");
    assert!(slowed.header("retry-after").parse::<u64>().unwrap() > 0);
    let token = ask(&world, "GET", "/token", &basic("alice", "guess")).await;
    token.refuses(429, "TOOMANYREQUESTS").header("retry-after");
    // Whoever was right a moment ago, and whoever else is there, goes on.
    ask(&world, "GET", "/v2/", &alice()).await.is(200);
    ask(&world, "GET", "/v2/", &bob()).await.is(200);
}

#[tokio::test]
async fn the_audit_log_tells_who_did_what_and_no_secrets() {
    let world = guarded(Mode::Public);
    let (blob, digest) = push(&world, "secret/a", &alice()).await;
    let wrong = ask(&world, "GET", "/v2/", &basic("alice", "mistyped password")).await.is(401);
    assert!(!String::from_utf8_lossy(&wrong.body).contains("mistyped"));
    // A password where the name belongs.
    ask(&world, "GET", "/v2/", &basic("alice's password", "x")).await.is(401);
    let bearer = token(&world, &alice(), &["repository:secret/a:pull"]).await;
    ask(&world, "GET", "/v2/secret/a/tags/list", &bob()).await.is(404);
    let path = format!("/v2/secret/a/manifests/{digest}");
    ask(&world, "DELETE", &path, &alice()).await.is(202);
    let log = audit(&world, "\"delete\"").await;
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |who: &str, what: &str, outcome: u16| {
        let same = |it: &&serde_json::Value| {
            it["who"] == who && it["what"] == what && it["outcome"] == outcome
        };
        lines.iter().find(same).unwrap_or_else(|| panic!("{who} {what} {outcome}: {log}"))
    };
    assert_eq!(has("alice", "push", 201)["digest"], blob);
    assert_eq!(has("alice", "push", 201)["repository"], "secret/a");
    assert_eq!(has("alice", "delete", 202)["reference"], digest);
    has("alice", "sign-in", 401);
    has("anonymous", "sign-in", 401);
    has("bob", "pull", 404);
    let secrets = ["password", "mistyped", &bearer[7..], &alice()[6..], &bob()[6..]];
    for secret in secrets {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[tokio::test]
async fn paths_cannot_climb_and_digests_cannot_confuse() {
    let world = guarded(Mode::Public);
    let outside = world.directory.path().join("users.json");
    let before = fs_err::read(&outside).unwrap();
    for name in [
        "..",
        "../..",
        "a/..",
        "a/../b",
        "%2e%2e",
        "a%2f..%2fb",
        "a//b",
        ".",
        "a/./b",
        "a\\b",
        "_layout",
        "a/_layout",
        "a%00b",
        "-",
        "a/",
        "/a",
        "A",
        "ä",
        "%c3%a4",
    ] {
        for tail in ["tags/list", "manifests/latest", "blobs/uploads/", "blobs/uploads/..%2fx"] {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                let Ok(uri) = format!("/v2/{name}/{tail}").parse::<http::Uri>() else { continue };
                let request = http::Request::builder().method(method).uri(uri);
                let request = request.header("authorization", alice()).body(Body::empty());
                let status = world.send(request.unwrap()).await.status.as_u16();
                assert!((400..500).contains(&status), "{method} {name} {tail}: {status}");
            }
        }
    }
    for id in ["..", "%2e%2e", "..%2f..%2fusers.json", "users.json", "x".repeat(300).as_str()] {
        for method in ["GET", "PATCH", "PUT", "DELETE"] {
            let path = format!("/v2/a/blobs/uploads/{id}");
            let status = ask(&world, method, &path, &alice()).await.status.as_u16();
            assert!((400..500).contains(&status), "{method} {id}: {status}");
        }
    }
    let hex = "a".repeat(64);
    for digest in [
        format!("sha256:{}", "A".repeat(64)),
        format!("sha256:{}", "a".repeat(63)),
        format!("sha512:{hex}"),
        format!("SHA256:{hex}"),
        format!("sha256:../{}", "a".repeat(61)),
        format!("md5:{}", "a".repeat(32)),
        format!("sha256:{hex}/"),
        format!("sha256%3a{hex}%00"),
    ] {
        let path = format!("/v2/a/blobs/{digest}");
        let status = ask(&world, "GET", &path, &alice()).await.status.as_u16();
        assert!(status == 400 || status == 404, "{digest}: {status}");
    }
    // Content under a digest that is not its own, by every way in.
    let path = format!("/v2/a/blobs/uploads/?digest=sha256:{hex}");
    let who = alice();
    let headers = [("authorization", who.as_str())];
    world.call("POST", &path, &headers, "x").await.refuses(400, "DIGEST_INVALID");
    let path = format!("/v2/a/manifests/sha256:{hex}");
    let kind = "application/vnd.oci.image.index.v1+json";
    let headers = [("authorization", who.as_str()), ("content-type", kind)];
    let body = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": [] }).to_string();
    world.call("PUT", &path, &headers, body).await.refuses(400, "DIGEST_INVALID");
    ask(&world, "GET", &format!("/v2/a/blobs/sha256:{hex}"), &alice()).await.is(404);
    assert_eq!(fs_err::read(&outside).unwrap(), before);
}

#[tokio::test]
async fn uploads_belong_to_whoever_began_them() {
    let world = guarded(Mode::Public);
    let begun = ask(&world, "POST", "/v2/team/a/blobs/uploads/", &alice()).await.is(202);
    let place = begun.header("location").to_owned();
    for method in ["GET", "PATCH", "DELETE"] {
        ask(&world, method, &place, &bob()).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    }
    let elsewhere = place.replace("team/a", "team/b");
    ask(&world, "GET", &elsewhere, &alice()).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    ask(&world, "GET", &place, &alice()).await.is(204);
}

#[tokio::test]
async fn oversized_requests_are_refused() {
    let world = guarded(Mode::Public);
    let who = alice();
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let headers = [("authorization", who.as_str()), ("content-type", kind)];
    let body = vec![b' '; (4 << 20) + 1];
    world.call("PUT", "/v2/a/manifests/latest", &headers, body).await.is(413);
    let long = "a".repeat(9000);
    let answer = ask(&world, "GET", &format!("/v2/{long}/tags/list"), &alice()).await;
    assert!(answer.status.is_client_error());
    let huge = format!("Bearer {}", "a".repeat(60_000));
    ask(&world, "GET", "/v2/", &huge).await.is(401);
    let password = basic("alice", &"x".repeat(60_000));
    ask(&world, "GET", "/v2/", &password).await.is(401);
}

#[tokio::test]
async fn users_of_an_htpasswd_file_sign_in_without_tokens() {
    let world = guarded(Mode::Public);
    let file = tempfile::NamedTempFile::new().unwrap();
    // `secret`, and the same for somebody who has a better password of ours.
    let hash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
    let lines = format!("old:{hash}\nalice:{hash}\nplain:secret\n");
    fs_err::write(file.path(), lines).unwrap();
    let settings = Settings {
        htpasswd: Some(file.path().to_owned()),
        mode: Mode::Private,
        ..Settings::new(world.directory.path())
    };
    let world = World { router: serve(&world.registry, settings), ..world };
    // Where the registry does not know its own address, it asks for the password itself.
    let base = ask(&world, "GET", "/v2/", "").await.is(401);
    assert_eq!(base.header("www-authenticate"), "Basic realm=\"apron\", charset=\"UTF-8\"");
    ask(&world, "GET", "/v2/", &basic("old", "secret")).await.is(200);
    ask(&world, "GET", "/v2/", &alice()).await.is(200);
    for (name, password) in [("old", "Secret"), ("alice", "secret"), ("plain", "secret")] {
        ask(&world, "GET", "/v2/", &basic(name, password)).await.is(401);
    }
    // A name without a password is nobody; nothing at all is a way to say so.
    ask(&world, "GET", "/v2/", &basic("old", "")).await.is(401);
    ask(&world, "GET", "/v2/a/tags/list", &basic("", "")).await.is(401);
}

#[tokio::test(start_paused = true)]
async fn slow_requests_do_not_hold_anything_forever() {
    let world = guarded(Mode::Public);
    let silent = || Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>());
    let form = world.call("POST", "/token", &[], silent()).await;
    form.refuses(400, "UNSUPPORTED");
    let who = alice();
    let headers = [("authorization", who.as_str())];
    let path = format!("/v2/a/blobs/uploads/?digest=sha256:{}", "a".repeat(64));
    let upload = world.call("POST", &path, &headers, silent()).await;
    assert!(upload.status.is_client_error(), "{upload:?}");
    let manifest = world.call("PUT", "/v2/a/manifests/x", &headers, silent()).await;
    assert!(manifest.status.is_client_error(), "{manifest:?}");
}

#[tokio::test]
async fn losing_the_users_file_opens_nothing() {
    let world = guarded(Mode::Public);
    push(&world, "secret/a", &alice()).await;
    let settings =
        Settings { address: Some(ADDRESS.to_owned()), ..Settings::new(world.directory.path()) };
    let auth = Auth::open(settings).unwrap();
    let router = registry::router(world.registry.clone(), Options::guarded(auth.clone()));
    let world = World { router, ..world };
    let file = world.directory.path().join("users.json");
    fs_err::remove_file(&file).unwrap();
    auth.refresh();
    ask(&world, "GET", "/v2/secret/a/tags/list", "").await.is(401);
    fs_err::write(&file, "rubbish").unwrap();
    auth.refresh();
    ask(&world, "GET", "/v2/secret/a/tags/list", "").await.is(401);
    ask(&world, "GET", "/v2/secret/a/tags/list", &alice()).await.is(200);
    fs_err::remove_file(&file).unwrap();
    Users::change(world.directory.path(), |users| users.set_password("carol", "carol's")).unwrap();
    auth.refresh();
    ask(&world, "GET", "/v2/", &alice()).await.is(401);
    ask(&world, "GET", "/v2/", &basic("carol", "carol's")).await.is(200);
}
