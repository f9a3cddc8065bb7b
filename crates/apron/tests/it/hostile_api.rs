//! Bad input to the API server, over real sockets and under a memory limit: Kubernetes' errors,
//! and a server that stays up.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on must stop")]

use crate::control_plane::{Server, runtime};
use crate::peers::{ControlPlane, TOKEN};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MEMORY: usize = 1_200_000_000;

/// A server that ends if it wants more memory than it should.
async fn limited(data: &std::path::Path) -> Server {
    let mut prlimit = Command::new("prlimit");
    prlimit.arg(format!("--as={MEMORY}"));
    Server::start_under(prlimit, data).await.expect("a server")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .timeout(Duration::from_secs(60))
        .build()
        .expect("a client")
}

/// A request that no good client makes.
struct Bad {
    method: &'static str,
    path: String,
    media: &'static str,
    body: Vec<u8>,
}

fn bad(method: &'static str, path: &str, media: &'static str, body: impl Into<Vec<u8>>) -> Bad {
    Bad { method, path: path.to_owned(), media, body: body.into() }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn map(name: &str, labels: &Value, data: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels}, "data": data})
    .to_string()
}

/// Bodies that are none.
fn bodies() -> Vec<Bad> {
    let deep = |depth: usize| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"deep\"}},\
             \"data\":{}1{}}}",
            "{\"a\":".repeat(depth),
            "}".repeat(depth)
        )
    };
    let mut list = vec![
        bad("POST", MAPS, JSON, "{"),
        bad("POST", MAPS, JSON, "[]"),
        bad("POST", MAPS, JSON, "nul"),
        bad("POST", MAPS, JSON, ""),
        bad("POST", MAPS, JSON, "\u{0}\u{1}\u{2}"),
        bad("POST", MAPS, JSON, [b'{', 0xff, 0xfe, b'}']),
        bad("POST", MAPS, JSON, r#"{"kind":5}"#),
        bad("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":7}"#),
        bad("POST", MAPS, JSON, r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1e999}}"#),
        bad("POST", MAPS, JSON, deep(20_000)),
        bad("POST", MAPS, PROTOBUF, "k8s\u{0}garbage"),
        bad("POST", MAPS, PROTOBUF, "not even that"),
        bad("POST", MAPS, "text/plain", "hello"),
        bad("POST", MAPS, JSON, vec![b' '; (3 << 20) + 1]),
        bad("PATCH", &format!("{MAPS}/victim"), MERGE, "{"),
        bad("PATCH", &format!("{MAPS}/victim"), MERGE, "[]"),
        bad("PATCH", &format!("{MAPS}/victim"), PATCH, "{}"),
        bad("PATCH", &format!("{MAPS}/victim"), PATCH, r#"[{"op":"fly","path":"/data"}]"#),
        bad("PATCH", &format!("{MAPS}/victim"), PATCH, r#"[{"op":"remove","path":"/nowhere/x"}]"#),
        bad("PATCH", &format!("{MAPS}/victim"), "application/json", "{}"),
        bad("PATCH", &format!("{MAPS}/victim"), APPLY, "{}"),
    ];
    let many = vec![r#"{"op":"test","path":"/kind","value":"ConfigMap"}"#; 10_001].join(",");
    list.push(bad("PATCH", &format!("{MAPS}/victim"), PATCH, format!("[{many}]")));
    // Each copy doubles what is there.
    let double = r#"{"op":"copy","from":"/data","path":"/data/x"}"#;
    let double = vec![double; 64].join(",");
    list.push(bad("PATCH", &format!("{MAPS}/victim"), PATCH, format!("[{double}]")));
    list
}

/// Names, labels and options that are none.
fn words() -> Vec<Bad> {
    let named = |name: &str| bad("POST", MAPS, JSON, map(name, &json!({}), &json!({})));
    let labelled = |labels: Value| bad("POST", MAPS, JSON, map("labelled", &labels, &json!({})));
    let get = |query: &str| bad("GET", &format!("{MAPS}?{query}"), JSON, "");
    vec![
        named("Upper_Case"),
        named(&"x".repeat(300)),
        named("a/b"),
        named(".."),
        named("\u{1b}[31m"),
        labelled(json!({"a b": "c"})),
        labelled(json!({"a": "c d"})),
        labelled(json!({"a": "x".repeat(64)})),
        labelled(json!({"a": 5})),
        get("labelSelector=a%20in%20("),
        get("labelSelector=!!"),
        get(&format!("labelSelector={}", "a".repeat(5000))),
        get("fieldSelector=spec.nothing=x"),
        get("fieldSelector=metadata.name"),
        get("limit=abc"),
        get("limit=99999999999999999999"),
        get("limit=-1"),
        get("continue=garbage"),
        get("resourceVersion=abc"),
        get("resourceVersionMatch=Exact"),
        get("watch=1&resourceVersion=abc"),
        get("watch=1&resourceVersionMatch=Exact&resourceVersion=1"),
        bad("POST", &format!("{MAPS}?dryRun=No"), JSON, map("d", &json!({}), &json!({}))),
        bad(
            "POST",
            &format!("{MAPS}?fieldManager={}", "m".repeat(200)),
            JSON,
            map("d", &json!({}), &json!({})),
        ),
        bad("DELETE", &format!("{MAPS}/victim?propagationPolicy=Sideways"), JSON, ""),
        bad("DELETE", &format!("{MAPS}/victim"), JSON, r#"{"preconditions":{"uid":"other"}}"#),
        bad("GET", "/api/v1/namespaces/default/nothings", JSON, ""),
        bad("GET", "/apis/nowhere/v1/things", JSON, ""),
        bad("GET", &format!("{MAPS}/%00"), JSON, ""),
        bad("PUT", &format!("{MAPS}/victim"), JSON, map("other", &json!({}), &json!({}))),
        bad("POST", "/api/v1/namespaces/absent/configmaps", JSON, map("x", &json!({}), &json!({}))),
    ]
}

/// The code and the word clients branch on.
async fn ask(client: &reqwest::Client, url: &str, token: &str, bad: &Bad) -> (u16, String) {
    let method = bad.method.parse().expect("a method");
    let request = client
        .request(method, format!("{url}{}", bad.path))
        .bearer_auth(token)
        .header("Content-Type", bad.media)
        .body(bad.body.clone());
    let answer = request.send().await;
    let answer = answer.unwrap_or_else(|error| panic!("{} {}: {error:?}", bad.method, bad.path));
    let code = answer.status().as_u16();
    let text = answer.text().await.expect("a body");
    let status: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    if code >= 400 && !text.starts_with("404 page not found") {
        assert_eq!(status["kind"], "Status", "{} {}: {text}", bad.method, bad.path);
        assert_eq!(status["code"], code, "{text}");
    }
    (code, status["reason"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn bad_requests_are_refused_as_the_real_server_refuses_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    runtime().block_on(async {
        let (client, server) = (client(), limited(&data).await);
        let plane = ControlPlane::start(&client).await;
        let token = fs_err::read_to_string(data.join("pki/admin.token")).expect("a token");
        let victim = map("victim", &json!({}), &json!({"a": "x".repeat(1000)}));
        let victim = bad("POST", MAPS, JSON, victim);
        for (url, token) in [(server.url(), token.trim()), (plane.url.clone(), TOKEN)] {
            assert_eq!(ask(&client, &url, token, &victim).await.0, 201);
        }
        let mut differences = Vec::new();
        let all: Vec<Bad> = bodies().into_iter().chain(words()).collect();
        for bad in &all {
            let ours = ask(&client, &server.url(), token.trim(), bad).await;
            let real = ask(&client, &plane.url, TOKEN, bad).await;
            if ours != real {
                let body =
                    String::from_utf8_lossy(&bad.body[..bad.body.len().min(60)]).into_owned();
                differences
                    .push(format!("{} {} {body}: {real:?} / {ours:?}", bad.method, bad.path));
            }
        }
        assert!(differences.is_empty(), "real / ours:\n{}", differences.join("\n"));
        println!("{} bad requests refused alike", all.len());
    });
}

#[test]
fn nobody_learns_anything_without_credentials() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    runtime().block_on(async {
        let (client, server) = (client(), limited(&data).await);
        let mut said = Vec::new();
        for path in [MAPS, "/api/v1/namespaces/absent/secrets/s", "/apis/nowhere/v1/things"] {
            for token in ["wrong", "eyJhbGciOiJub25lIn0.e30."] {
                let request = client.get(format!("{}{path}", server.url())).bearer_auth(token);
                let answer = request.send().await.expect("an answer");
                assert_eq!(answer.status().as_u16(), 401, "{path}");
                said.push(answer.text().await.expect("a body"));
            }
            let answer = client.get(format!("{}{path}", server.url())).send().await;
            let code = answer.expect("an answer").status().as_u16();
            assert!([401, 403].contains(&code), "{path}: {code}");
        }
        said.dedup();
        assert_eq!(said.len(), 1, "every stranger hears the same: {said:?}");
    });
}

/// A TLS connection, for what no client library does.
async fn raw(server: &Server) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    try_raw(server).await.expect("a handshake")
}

/// The same, where the server may not want to.
async fn try_raw(
    server: &Server,
) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
    let roots = rustls::RootCertStore::empty();
    let mut config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.dangerous().set_certificate_verifier(std::sync::Arc::new(Anybody));
    let stream = tokio::net::TcpStream::connect(server.address()).await.expect("a connection");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    connector.connect(name, stream).await
}

/// Believes every certificate.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// M2: with 1,024 files, 1,010 connections that said nothing kept everybody out.
#[test]
fn m2_one_address_cannot_take_all_connections() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    runtime().block_on(async {
        let mut prlimit = Command::new("prlimit");
        prlimit.arg("--nofile=100:200");
        let server = Server::start_under(prlimit, &data).await.expect("a server");
        let (mut idle, began) = (Vec::new(), std::time::Instant::now());
        for _ in 0..300 {
            let made = tokio::time::timeout(Duration::from_secs(5), try_raw(&server)).await;
            idle.extend(made.ok().and_then(Result::ok));
            // Connections have a third of the 200 files, and one address half of that; the first of them are
            // closed after 30 s, and leave their place to the next.
            let is_over = began.elapsed() > Duration::from_secs(25);
            assert!(idle.len() <= 33 || is_over, "one address has {} connections", idle.len());
        }
        assert!(idle.len() > 10, "some are let in: {}", idle.len());
        let elsewhere = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .local_address(std::net::IpAddr::from([127, 0, 0, 2]))
            .timeout(Duration::from_secs(300))
            .build()
            .expect("a client");
        let answer = elsewhere.get(format!("{}/healthz", server.url())).send().await;
        assert_eq!(answer.expect("others are let in").status().as_u16(), 200);
        drop(idle);
    });
}

#[test]
fn slow_readers_idle_watches_and_half_requests_cost_little() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    runtime().block_on(async {
        let (client, server) = (client(), limited(&data).await);
        let token = fs_err::read_to_string(data.join("pki/admin.token")).expect("a token");
        let token = token.trim();
        // Requests that never end.
        let mut half = Vec::new();
        for _ in 0..100 {
            let mut stream = raw(&server).await;
            stream.write_all(b"POST /api HTTP/1.1\r\nContent-Le").await.expect("a write");
            half.push(stream);
        }
        // Headers without end.
        let mut bomb = raw(&server).await;
        let header = format!("X-Filler: {}\r\n", "x".repeat(8000));
        let _ = bomb.write_all(b"GET /api HTTP/1.1\r\n").await;
        for _ in 0..1000 {
            if bomb.write_all(header.as_bytes()).await.is_err() {
                break;
            }
        }
        let mut answer = vec![0; 64];
        let got = tokio::time::timeout(Duration::from_secs(120), bomb.read(&mut answer)).await;
        let read = got.expect("an end").unwrap_or(0);
        let head = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(read == 0 || head.starts_with("HTTP/1.1 4"), "{head}");
        // Watches that are not read, while much is written.
        let mut slow = Vec::new();
        for _ in 0..20 {
            let mut stream = raw(&server).await;
            let request = format!(
                "GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.expect("a write");
            slow.push(stream);
        }
        // Watches that have nothing to say.
        let mut idle = Vec::new();
        for _ in 0..2 {
            let one = self::client();
            for _ in 0..1000 {
                let url =
                    format!("{}/api/v1/namespaces/kube-public/configmaps?watch=1", server.url());
                idle.push(one.get(url).bearer_auth(token).send().await.expect("a watch"));
            }
        }
        let big = "x".repeat(900_000);
        for number in 0..150 {
            let body = map(
                &format!("big-{}", number % 3),
                &json!({"n": number.to_string()}),
                &json!({"a": big}),
            );
            let url =
                format!("{}{MAPS}/big-{}?fieldManager=x&force=true", server.url(), number % 3);
            let request =
                client.patch(url).bearer_auth(token).header("Content-Type", APPLY).body(body);
            let code = request.send().await.expect("an answer").status().as_u16();
            assert!([200, 201].contains(&code), "{code}");
        }
        let list = client.get(format!("{}{MAPS}", server.url())).bearer_auth(token).send().await;
        assert_eq!(list.expect("an answer").status().as_u16(), 200, "it serves");
        // Whoever reads at last is told what there was, or that it is too late.
        let mut text = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        let reading = async {
            let told = |part: &[u8]| part == b"\"MODIFIED" || part == b"\"Expired\"";
            let mut searched = 0;
            while !text[searched..].windows(9).any(told) {
                searched = text.len().saturating_sub(8);
                let read = slow[0].read(&mut buffer).await.unwrap_or(0);
                if read == 0 {
                    break;
                }
                text.extend_from_slice(&buffer[..read]);
            }
        };
        tokio::time::timeout(Duration::from_secs(120), reading).await.expect("something to read");
        println!("memory at most {} of {MEMORY}", server.memory());
        drop((half, slow, idle));
    });
}
