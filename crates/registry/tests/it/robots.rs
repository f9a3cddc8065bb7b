//! Robots: keys that end or are good for some things only, and tokens of an issuer we trust.

use crate::support::{Answer, World};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use http::Request;
use registry::Options;
use registry::access::Peer;
use registry::auth::oidc::{Config, Oidc};
use registry::auth::users::Bound;
use registry::auth::{Actions, Auth, Mode, Settings, Users};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;
use store::remote::{BoxError, Transport, transport};

const ISSUER: &str = "https://ci.example.org";

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

fn guarded(mut world: World, settings: Settings) -> World {
    let address = Some("https://registry.test".to_owned());
    let auth = Auth::open(Settings { mode: Mode::Private, address, ..settings }).unwrap();
    let options = Options::guarded(auth.clone());
    world.router = registry::router(world.registry.clone(), options).merge(auth.routes());
    world
}

async fn ask(world: &World, method: &str, path: &str, authorization: &str) -> Answer {
    world.call(method, path, &[("authorization", authorization)], Body::empty()).await
}

/// From a machine of its own: failures are rationed.
async fn ask_from(world: &World, machine: usize, token: &str) -> Answer {
    let mut request = Request::get("/v2/")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    let last = u8::try_from(machine).unwrap();
    request.extensions_mut().insert(Peer([192, 0, 2, last].into()));
    world.send(request).await
}

fn basic(name: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{secret}")))
}

#[tokio::test]
async fn a_key_is_good_for_what_it_says_and_until_it_ends() {
    let world = World::new();
    world.push("team/p", "v1", "x").await;
    world.push("other/p", "v1", "y").await;
    let path = world.directory.path().to_owned();
    let bound = Bound { repositories: Some("team/**".to_owned()), actions: Some(Actions::PULL) };
    let (key, old) = Users::change(&path, |users| {
        let key = users.add_bound_key("ci", "good", Some(now() + 1000), bound)?;
        let old = users.add_bound_key("ci", "old", Some(now() - 1), Bound::default())?;
        Ok((key, old))
    })
    .unwrap();
    let world = guarded(world, Settings::new(&path));
    for who in [basic("ci", &key), format!("Bearer {key}")] {
        ask(&world, "GET", "/v2/team/p/manifests/v1", &who).await.is(200);
        ask(&world, "GET", "/v2/other/p/manifests/v1", &who).await.refuses(404, "NAME_UNKNOWN");
        ask(&world, "POST", "/v2/team/p/blobs/uploads/", &who).await.refuses(403, "DENIED");
        ask(&world, "POST", "/v2/other/p/blobs/uploads/", &who).await.refuses(404, "NAME_UNKNOWN");
        let listed = ask(&world, "GET", "/v2/_catalog", &who).await.is(200);
        assert_eq!(listed.json()["repositories"], json!(["team/p"]));
    }
    // A token made with it is good for no more.
    let scopes = "scope=repository:team/p:pull,push+repository:other/p:pull+registry:catalog:*";
    let token = ask(&world, "GET", &format!("/token?{scopes}"), &basic("ci", &key)).await.is(200);
    assert_eq!(token.json()["scope"], "repository:team/p:pull");
    for who in [basic("ci", &old), format!("Bearer {old}")] {
        ask(&world, "GET", "/v2/", &who).await.refuses(401, "UNAUTHORIZED");
    }
}

/// Somebody who signs tokens.
struct Issuer {
    pair: Ed25519KeyPair,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    fn new() -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        Self { pair, asked: Arc::default() }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
        format!("{text}.{}", BASE64.encode(self.pair.sign(text.as_bytes())))
    }

    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = json!({
            "iss": ISSUER,
            "aud": ["registry.test"],
            "exp": now() + 300,
            "nbf": now() - 5,
            "repository": "team/app",
            "ref": "refs/heads/main",
        });
        change(&mut claims);
        self.sign(&json!({ "alg": "EdDSA", "kid": "one" }), &claims)
    }

    /// The way to what it publishes.
    fn transport(&self) -> Transport {
        let key = BASE64.encode(self.pair.public_key().as_ref());
        let asked = self.asked.clone();
        transport(tower::service_fn(move |request: Request<store::remote::Body>| {
            asked.fetch_add(1, Ordering::SeqCst);
            let body = match request.uri().to_string().as_str() {
                "https://ci.example.org/.well-known/openid-configuration" => {
                    json!({ "issuer": ISSUER, "jwks_uri": "https://keys.example.org/jwks" })
                }
                "https://keys.example.org/jwks" => json!({ "keys": [
                    { "kty": "RSA", "kid": "other", "n": "AQAB", "e": "AQAB" },
                    { "kty": "OKP", "crv": "Ed25519", "kid": "one", "use": "sig", "x": key },
                ]}),
                other => panic!("asked for {other}"),
            };
            async move { Ok::<_, BoxError>(Response::new(Body::from(body.to_string()))) }
        }))
    }
}

fn config() -> Config {
    let text = json!({ "issuers": [{
        "issuer": ISSUER,
        "audience": "registry.test",
        "mappings": [{
            "claims": { "repository": "team/app", "ref": "refs/heads/*" },
            "user": "app-robot",
            "repositories": "team/app/**",
            "actions": ["pull", "push"],
        }],
    }]});
    Config::parse(text.to_string().as_bytes()).unwrap()
}

fn trusting(issuer: &Issuer) -> World {
    trusting_by(World::new(), issuer, config())
}

fn trusting_by(world: World, issuer: &Issuer, config: Config) -> World {
    let path = world.directory.path().to_owned();
    let oidc = Some(Oidc::new(config, &issuer.transport()));
    guarded(world, Settings { oidc, ..Settings::new(&path) })
}

#[tokio::test]
async fn m3_a_token_had_for_a_robots_token_ends_with_that_and_with_its_mapping() {
    let issuer = Issuer::new();
    let world = trusting(&issuer);
    let foreign = issuer.token(|it| it["exp"] = json!(now() + 100));
    let path = "/token?scope=repository:team/app:push";
    let ours = ask(&world, "GET", path, &format!("Bearer {foreign}")).await.is(200).json();
    // Clocks may differ by a minute.
    assert!(ours["expires_in"].as_u64().unwrap() <= 160, "{ours}");
    let bearer = format!("Bearer {}", ours["token"].as_str().unwrap());
    let push = "/v2/team/app/blobs/uploads/";
    ask(&world, "POST", push, &bearer).await.is(202);
    ask(&world, "GET", path, &bearer).await.refuses(401, "UNAUTHORIZED");
    let same = trusting_by(world, &issuer, config());
    ask(&same, "POST", push, &bearer).await.is(202);
    // The same user by another mapping: what it was had for is gone.
    let mut other = config();
    other.issuers[0].mappings[0].claims.insert("ref".to_owned(), "refs/heads/main".to_owned());
    let changed = trusting_by(same, &issuer, other);
    ask(&changed, "POST", push, &bearer).await.refuses(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_robot_signs_in_with_a_token_of_an_issuer_we_trust() {
    let issuer = Issuer::new();
    let world = trusting(&issuer);
    world.registry.check().await.unwrap();
    let token = issuer.token(|_| {});
    for who in [format!("Bearer {token}"), basic("any", &token)] {
        ask(&world, "POST", "/v2/team/app/x/blobs/uploads/", &who).await.is(202);
        ask(&world, "POST", "/v2/other/blobs/uploads/", &who).await.refuses(404, "NAME_UNKNOWN");
        let delete = ask(&world, "DELETE", "/v2/team/app/x/manifests/v1", &who).await;
        delete.refuses(403, "DENIED");
    }
    // For a token of our own, as clients do it; that one is good for no more.
    let form = format!(
        "grant_type=refresh_token&refresh_token={token}&scope=repository:team/app:pull,push,delete"
    );
    let ours = world.call("POST", "/token", &[], form).await.is(200).json();
    assert_eq!(ours["scope"], "repository:team/app:pull,push");
    let ours = format!("Bearer {}", ours["token"].as_str().unwrap());
    ask(&world, "POST", "/v2/team/app/blobs/uploads/", &ours).await.is(202);
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 2, "keys are fetched once");
}

/// L3: whoever tries tokens on and on keeps no robot at the same address out.
#[tokio::test]
async fn l3_wrong_tokens_keep_no_robot_out_that_has_a_right_one() {
    let issuer = Issuer::new();
    let world = trusting(&issuer);
    let good = issuer.token(|_| {});
    let wrong = issuer.token(|it| it["aud"] = json!("other"));
    let mut slowed = 0;
    for _ in 0..300 {
        slowed += usize::from(ask_from(&world, 1, &wrong).await.status.as_u16() == 429);
    }
    assert!(slowed > 100, "whoever tries on and on is told to wait");
    ask_from(&world, 1, &good).await.is(200);
}

#[tokio::test]
async fn a_token_that_is_not_quite_right_lets_nobody_in() {
    let issuer = Issuer::new();
    let world = trusting(&issuer);
    let good = issuer.token(|_| {});
    ask(&world, "GET", "/v2/", &format!("Bearer {good}")).await.is(200);
    let claims = |change: fn(&mut Value)| issuer.token(change);
    let parts: Vec<&str> = good.split('.').collect();
    let stranger =
        Issuer { pair: Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap(), ..Issuer::new() };
    let body: Value = serde_json::from_slice(&BASE64.decode(parts[1]).unwrap()).unwrap();
    let header = |header: Value| issuer.sign(&header, &body);
    let wrong = [
        ("another audience", claims(|it| it["aud"] = json!("other"))),
        ("no audience", claims(|it| it["aud"] = Value::Null)),
        ("over", claims(|it| it["exp"] = json!(now() - 100))),
        ("without end", claims(|it| it["exp"] = Value::Null)),
        ("not yet", claims(|it| it["nbf"] = json!(now() + 1000))),
        ("another issuer", claims(|it| it["iss"] = json!("https://evil.example.org"))),
        ("an issuer that looks like it", claims(|it| it["iss"] = json!("https://ci.example.org/"))),
        ("another repository", claims(|it| it["repository"] = json!("evil/app"))),
        ("a repository that begins like it", claims(|it| it["repository"] = json!("team/app2"))),
        ("a tag", claims(|it| it["ref"] = json!("refs/tags/v1"))),
        ("no ref", claims(|it| it["ref"] = Value::Null)),
        ("another key", stranger.token(|_| {})),
        ("no algorithm", header(json!({ "alg": "none", "kid": "one" }))),
        ("a shared secret", header(json!({ "alg": "HS256", "kid": "one" }))),
        ("the algorithm of another key", header(json!({ "alg": "RS256", "kid": "one" }))),
        ("a key of another kind", header(json!({ "alg": "EdDSA", "kid": "other" }))),
        ("something critical", header(json!({ "alg": "EdDSA", "kid": "one", "crit": ["b64"] }))),
        ("no signature", format!("{}.{}.", parts[0], parts[1])),
    ];
    for (number, (what, token)) in wrong.into_iter().enumerate() {
        let refused = ask_from(&world, number, &token).await;
        assert_eq!(refused.status.as_u16(), 401, "{what}");
    }
    // Unknown keys do not make us ask again and again.
    for number in 0..5 {
        let token = header(json!({ "alg": "EdDSA", "kid": number.to_string() }));
        ask_from(&world, 100 + number, &token).await.is(401);
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_config_that_trusts_everybody_is_refused() {
    let check = |change: fn(&mut Value), expected: &str| {
        let mut text = json!({ "issuers": [{
            "issuer": ISSUER, "audience": "a",
            "mappings": [{ "claims": { "sub": "x" }, "user": "u", "repositories": "a/**", "actions": ["pull"] }],
        }]});
        change(&mut text["issuers"][0]);
        let error = Config::parse(text.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(|it| it["issuer"] = json!("http://ci.example.org"), "https");
    check(|it| it["audience"] = json!(""), "audience");
    check(|it| it["mappings"][0]["claims"] = json!({}), "any of its tokens");
    check(|it| it["mappings"][0]["claims"] = json!({ "sub": "*" }), "any of its tokens");
    check(|it| it["mappings"][0]["user"] = json!("anonymous"), "anonymous");
    check(|it| it["mappings"][0]["repositories"] = json!("A/*"), "A/*");
    check(|it| it["mappings"][0]["actions"] = json!(["fly"]), "form");
    check(|it| it["typo"] = json!(1), "form");
}
