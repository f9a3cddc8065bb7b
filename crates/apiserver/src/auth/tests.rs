//! What must not open the door, and what must close it at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Signer, Token, User};
use crate::log::Log;
use crate::testing::Still;
use crate::world::World;
use crate::{Options, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMIN: &str = "the-admin";

struct House {
    server: Arc<Server>,
    world: Arc<Still>,
}

impl House {
    async fn new() -> Self {
        Self::on(Log::in_memory()).await
    }

    async fn on(log: Log) -> Self {
        let world = Arc::new(Still::at(1_800_000_000));
        let token = |secret: &str, name: &str, group: &str| Token {
            secret: secret.to_owned(),
            user: User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() },
        };
        let options = Options {
            authenticate: true,
            tokens: vec![token(ADMIN, "admin", "system:masters"), token("bobs", "bob", "devs")],
            ..Options::default()
        };
        let server = Server::new(log, options, Arc::clone(&world) as Arc<dyn World>);
        server.furnish().await.unwrap();
        Self { server, world }
    }

    async fn ask(&self, method: &str, path: &str, token: &str, body: Value) -> (u16, Value) {
        let mut request = http::Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if method == "PATCH" {
            request = request.header("Content-Type", "application/merge-patch+json");
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let answer = self.server.router().oneshot(request.body(body).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn code(&self, path: &str, token: &str) -> u16 {
        self.ask("GET", path, token, Value::Null).await.0
    }

    async fn must(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, answer) = self.ask(method, path, ADMIN, body).await;
        assert!(code < 300, "{method} {path}: {answer}");
        answer
    }

    async fn bind(&self, name: &str, role: &str, user: &str) {
        let path = format!("{RBAC}/namespaces/default/rolebindings");
        let binding = json!({
            "metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": user}],
        });
        self.must("POST", &path, binding).await;
    }

    /// A service account's token.
    async fn robot(&self) -> String {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        self.must("POST", accounts, json!({"metadata": {"name": "robot"}})).await;
        let path = format!("{accounts}/robot/token");
        let answer = self.must("POST", &path, json!({})).await;
        answer["status"]["token"].as_str().unwrap().to_owned()
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_revoked_binding_is_revoked_for_the_next_request() {
    let house = House::new().await;
    for round in 0..20 {
        assert_eq!(house.code(MAPS, "bobs").await, 403, "{round}");
        house.bind("b", "view", "bob").await;
        assert_eq!(house.code(MAPS, "bobs").await, 200, "{round}");
        let path = format!("{RBAC}/namespaces/default/rolebindings/b");
        house.must("DELETE", &path, Value::Null).await;
    }
    assert_eq!(house.code(MAPS, "bobs").await, 403);
}

#[tokio::test]
async fn the_index_finds_its_way_back_when_the_log_has_forgotten() {
    let house = House::new().await;
    assert_eq!(house.code(MAPS, "bobs").await, 403);
    house.bind("b", "view", "bob").await;
    let path = format!("{RBAC}/namespaces/default/rolebindings/b");
    house.must("DELETE", &path, Value::Null).await;
    house.bind("c", "view", "bob").await;
    house.server.log.forget(house.server.log.version());
    assert_eq!(house.code(MAPS, "bobs").await, 200);
    let path = format!("{RBAC}/namespaces/default/rolebindings/c");
    house.must("DELETE", &path, Value::Null).await;
    house.server.log.forget(house.server.log.version());
    assert_eq!(house.code(MAPS, "bobs").await, 403);
}

#[tokio::test]
async fn those_who_may_not_ask_learn_nothing() {
    let house = House::new().await;
    house.must("POST", MAPS, json!({"metadata": {"name": "there"}})).await;
    for path in
        [MAPS, "/apis", "/api", "/openapi/v3", "/nope", "/apis/nope/v1/x", "/openid/v1/jwks"]
    {
        assert_eq!(house.code(path, "").await, 403, "{path}");
        assert_eq!(house.code(path, "wrong").await, 401, "{path}");
    }
    let told = async |name: &str| {
        let path = format!("{MAPS}/{name}");
        house.ask("GET", &path, "bobs", Value::Null).await.1["message"].to_string()
    };
    let (there, gone) = (told("there").await, told("gone").await);
    assert_eq!(there.replace("there", "gone"), gone);
}

/// A token with another header, other claims, or another signature.
fn forge(token: &str, change: impl Fn(&mut Value, &mut Value), sign: Option<&Signer>) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let open =
        |part: &str| -> Value { serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap() };
    let (mut header, mut claims) = (open(parts[0]), open(parts[1]));
    change(&mut header, &mut claims);
    if let Some(signer) = sign {
        return signer.sign(&claims).unwrap();
    }
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}.{}", BASE64.encode(header), BASE64.encode(claims), parts[2])
}

#[tokio::test]
async fn forged_tokens_open_nothing() {
    let house = House::new().await;
    let token = house.robot().await;
    let ours = house.server.signer.clone().unwrap();
    assert_eq!(house.code("/api", &token).await, 200);
    let check = async |what: &str, token: String| {
        assert_eq!(house.code("/api", &token).await, 401, "{what}");
    };
    let parts: Vec<&str> = token.split('.').collect();
    check("no signature", format!("{}.{}.", parts[0], parts[1])).await;
    check("cut", format!("{}.{}", parts[0], parts[1])).await;
    check("longer", format!("{token}.x")).await;
    for alg in ["none", "None", "HS256", "RS256", "ES384", "es256", ""] {
        let forged = forge(&token, |header, _| header["alg"] = json!(alg), None);
        check(alg, forged.clone()).await;
        let (unsigned, _) = forged.rsplit_once('.').unwrap();
        check(alg, format!("{unsigned}.")).await;
    }
    // The public key as the secret of a symmetric algorithm.
    let key = aws_lc_rs::hmac::Key::new(
        aws_lc_rs::hmac::HMAC_SHA256,
        ours.key_set()["keys"][0]["x"].as_str().unwrap().as_bytes(),
    );
    let head = BASE64.encode(json!({"alg": "HS256"}).to_string());
    let body = format!("{head}.{}", parts[1]);
    let tag = BASE64.encode(aws_lc_rs::hmac::sign(&key, body.as_bytes()));
    check("symmetric", format!("{body}.{tag}")).await;
    check("critical", forge(&token, |header, _| header["crit"] = json!(["x"]), None)).await;
    check("other claims", forge(&token, |_, claims| claims["sub"] = json!("x"), None)).await;
    let other = Signer::generate().unwrap();
    check("other key", forge(&token, |_, _| {}, Some(&other))).await;
    // Even we could not make these.
    let signed = |change: fn(&mut Value)| forge(&token, |_, claims| change(claims), Some(&ours));
    check("issuer", signed(|claims| claims["iss"] = json!("https://else"))).await;
    check("no issuer", signed(|claims| claims["iss"] = Value::Null)).await;
    check("audience", signed(|claims| claims["aud"] = json!(["else"]))).await;
    check("no audience", signed(|claims| claims["aud"] = json!([]))).await;
    check("no end", signed(|claims| claims["exp"] = Value::Null)).await;
    check("an end in words", signed(|claims| claims["exp"] = json!("9999999999"))).await;
    check("later", signed(|claims| claims["nbf"] = json!(1_800_000_100))).await;
    check("account", signed(|claims| claims["kubernetes.io"] = json!({}))).await;
    check("uid", signed(|claims| claims["kubernetes.io"]["serviceaccount"]["uid"] = json!("x")))
        .await;
    assert_eq!(house.code("/api", &signed(|_| {})).await, 200);
    assert_eq!(house.code("/api", &token).await, 200);
}

#[tokio::test]
async fn tokens_end_with_their_time_and_with_their_account() {
    let house = House::new().await;
    let token = house.robot().await;
    house.world.now.fetch_add(3600 + 60, Ordering::SeqCst);
    assert_eq!(house.code("/api", &token).await, 200, "clocks may differ by a minute");
    house.world.now.fetch_add(1, Ordering::SeqCst);
    assert_eq!(house.code("/api", &token).await, 401);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    house.must("DELETE", &format!("{accounts}/robot"), Value::Null).await;
    let token = house.robot().await;
    assert_eq!(house.code("/api", &token).await, 200);
    house.must("DELETE", &format!("{accounts}/robot"), Value::Null).await;
    assert_eq!(house.code("/api", &token).await, 401);
    house.must("POST", accounts, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(house.code("/api", &token).await, 401, "another account of the same name");
}

#[tokio::test]
async fn a_restart_mends_what_every_cluster_has_and_gathers_what_a_crash_left() {
    let log = Log::in_memory();
    let house = House::on(log.clone()).await;
    let roles = format!("{RBAC}/clusterroles");
    let basic = format!("{roles}/system:basic-user");
    let discovery = format!("{roles}/system:discovery");
    let before = house.must("GET", &basic, Value::Null).await;
    house.must("DELETE", &basic, Value::Null).await;
    let added = json!({"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]});
    house.must("PATCH", &discovery, json!({"rules": [added]})).await;
    let alone = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
    let patch = json!({"rules": null, "metadata": {"annotations": alone}});
    house.must("PATCH", &format!("{roles}/system:public-info-viewer"), patch).await;
    // As if the process had died after this write and before what follows from it.
    let kind = house.server.kinds.find("rbac.authorization.k8s.io", "v1", "clusterroles").unwrap();
    let part = json!({
        "metadata": {
            "name": "part", "uid": "u",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": ["crash"], "resources": ["left"], "verbs": ["get"]}],
    });
    let write = crate::log::Write {
        key: kind.key(None, "part"),
        expect: crate::log::Expect::Absent,
        value: Some(crate::rest::close(&kind, &part)),
    };
    log.write(write).await.unwrap();
    drop(house);

    let house = House::on(log).await;
    let after = house.must("GET", &basic, Value::Null).await;
    assert_eq!(after["rules"], before["rules"]);
    let mended = house.must("GET", &discovery, Value::Null).await;
    let listed = mended["rules"].as_array().unwrap();
    assert!(listed.contains(&added), "what was added stays");
    assert!(listed.len() > 1, "what was missing is back");
    let kept = house.must("GET", &format!("{roles}/system:public-info-viewer"), Value::Null).await;
    assert_eq!(kept["rules"], Value::Null, "left alone as it wished");
    for role in ["view", "edit", "admin"] {
        let role = house.must("GET", &format!("{roles}/{role}"), Value::Null).await;
        assert!(role["rules"].to_string().contains("crash"), "{role}");
    }
    let version = house.server.log.version();
    house.server.furnish().await.unwrap();
    assert_eq!(house.server.log.version(), version, "nothing is left to do");
}
