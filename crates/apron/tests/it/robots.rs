//! Robots and proxies before a real server: tokens of an issuer that publishes its keys over TLS,
//! keys with conditions, addresses that only a proxy may tell.

#![expect(clippy::unwrap_used, reason = "helpers of tests may die like tests do")]

use crate::registry::{Served, ask};
use crate::support::{Scratch, apron, command, free_port, peer, program, until, wait_for};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// An issuer: openssl signs, and serves what it publishes.
struct Issuer<'scratch> {
    scratch: &'scratch Scratch,
    address: String,
    server: Child,
}

impl<'scratch> Issuer<'scratch> {
    fn start(scratch: &'scratch Scratch) -> Self {
        let subject = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
        let rest = ["-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "2"];
        let names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
        let end = ["-addext", "basicConstraints=CA:FALSE"];
        let words = subject.iter().chain(&rest).chain(&names).chain(&end);
        program(scratch, "openssl", words).ok();
        program(scratch, "openssl", ["genrsa", "-out", "signing.key", "2048"]).ok();
        let port = free_port();
        let address = format!("https://127.0.0.1:{port}");
        let words = ["rsa", "-in", "signing.key", "-modulus", "-noout"];
        let modulus = program(scratch, "openssl", words).ok().stdout;
        let modulus = modulus.trim().strip_prefix("Modulus=").unwrap().to_owned();
        let digits: Vec<u8> = (0..modulus.len() / 2)
            .map(|at| u8::from_str_radix(&modulus[at * 2..at * 2 + 2], 16).unwrap())
            .collect();
        let n = base64(scratch, &digits);
        scratch.write(
            "site/.well-known/openid-configuration",
            format!("{{\"issuer\":\"{address}\",\"jwks_uri\":\"{address}/keys.json\"}}"),
        );
        let keys = format!(
            "{{\"keys\":[{{\"kty\":\"RSA\",\"use\":\"sig\",\"kid\":\"k\",\"n\":\"{n}\",\"e\":\"AQAB\"}}]}}"
        );
        scratch.write("site/keys.json", keys);
        let server = Command::new("openssl")
            .args(["s_server", "-WWW", "-quiet", "-port", &port.to_string()])
            .args(["-cert", "../tls.crt", "-key", "../tls.key"])
            .current_dir(scratch.join("site"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&format!("127.0.0.1:{port}"));
        Self { scratch, address, server }
    }

    /// A token for a pipeline of this repository.
    fn token(&self, repository: &str) -> String {
        let exp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 300;
        let claims = format!(
            "{{\"iss\":\"{}\",\"aud\":\"packages\",\"exp\":{exp},\"repository\":\"{repository}\"}}",
            self.address
        );
        let header = base64(self.scratch, b"{\"alg\":\"RS256\",\"kid\":\"k\"}");
        let text = format!("{header}.{}", base64(self.scratch, claims.as_bytes()));
        self.scratch.write("text", &text);
        let words = ["dgst", "-sha256", "-sign", "signing.key", "-out", "signature", "text"];
        program(self.scratch, "openssl", words).ok();
        let signature = fs_err::read(self.scratch.join("signature")).unwrap();
        format!("{text}.{}", base64(self.scratch, &signature))
    }
}

impl Drop for Issuer<'_> {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// base64 as tokens have it, made by openssl.
fn base64(scratch: &Scratch, bytes: &[u8]) -> String {
    scratch.write("plain", bytes);
    let text = program(scratch, "openssl", ["base64", "-A", "-in", "plain"]).ok().stdout;
    text.trim().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

#[test]
fn a_pipeline_pushes_with_the_token_of_its_ci_system() {
    let scratch = Scratch::new();
    let file = crate::registry::package(&scratch);
    let issuer = Issuer::start(&scratch);
    let config = format!(
        "{{\"issuers\":[{{\"issuer\":\"{}\",\"audience\":\"packages\",\"mappings\":[{{
            \"claims\":{{\"repository\":\"team/app\"}},\"user\":\"app-robot\",
            \"repositories\":\"team/app/**\",\"actions\":[\"pull\",\"push\"]}}]}}]}}",
        issuer.address
    );
    scratch.write("oidc.json", config);
    let flags = ["--private", "--oidc", "oidc.json", "--oidc-ca-file", "tls.crt"];
    let served = Served::start_with(&scratch, &flags);
    let login = |token: &str| {
        peer(&scratch, "crane", ["auth", "login", served.address(), "-u", "oidc", "-p", token])
            .ok();
    };
    login(&issuer.token("team/app"));
    apron(&scratch, ["push", "-f", file, &served.reference("team/app/nop:v1.0.0")]).ok();
    peer(&scratch, "crane", ["digest", &served.reference("team/app/nop:v1.0.0")]).ok();
    apron(&scratch, ["push", "-f", file, &served.reference("other/nop:v1.0.0")]).failed();
    login(&issuer.token("evil/app"));
    apron(&scratch, ["push", "-f", file, &served.reference("team/app/nop:v2.0.0")]).failed();
    // It is written a moment after the answer.
    let log = until("the push is in the log", || {
        let log = fs_err::read_to_string(scratch.join("data/audit.log")).ok()?;
        log.contains("\"who\":\"app-robot\"").then_some(log)
    });
    assert!(!log.contains("eyJ"), "a token was written down");
}

#[test]
fn keys_have_conditions_and_the_list_shows_them() {
    let scratch = Scratch::new();
    let user = |words: &[&str]| {
        let words = [&["registry", "user", "--data-dir", "data"], words].concat();
        apron(&scratch, words)
    };
    let conditions = ["--repositories", "team/**", "--actions", "pull", "--expires", "30"];
    let key = user(&[&["key", "robot", "--label", "ci"], &conditions[..]].concat()).ok().stdout;
    let listed = user(&["list"]).ok().stdout;
    assert!(listed.contains("ci (restricted)"), "{listed}");
    let text = user(&["key", "robot", "--repositories", "Team"]).failed();
    assert!(text.contains("hint: write it like a name"), "{text}");
    let text = user(&["key", "robot", "--actions", "fly"]).failed();
    assert!(text.contains("hint: the words are pull"), "{text}");
    let served = Served::start_with(&scratch, &["--private"]);
    let sent = |path: &str| {
        let key = key.trim();
        let head = format!("POST {path} HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n");
        ask(served.address(), &head, b"").unwrap().0
    };
    assert_eq!((sent("/v2/team/p/blobs/uploads/"), sent("/v2/p/blobs/uploads/")), (403, 404));
}

#[test]
fn only_a_proxy_of_ours_says_where_a_request_comes_from() {
    let scratch = Scratch::new();
    let start = |flags: &[&str]| {
        let flags = [&["--pull-rate", "1"], flags].concat();
        Served::start_with(&scratch, &flags)
    };
    let pull = |served: &Served, client: &str| {
        let head = format!("GET /v2/ HTTP/1.0\r\nX-Forwarded-For: {client}\r\n\r\n");
        ask(served.address(), &head, b"").unwrap()
    };
    let is_refused =
        |served: &Served, tries: usize| (0..tries).any(|_| pull(served, "198.51.100.7").0 == 429);
    {
        // Believed by nobody: everybody is on this machine.
        let served = start(&[]);
        assert!(!is_refused(&served, 20));
    }
    let served =
        start(&["--trusted-proxy", "127.0.0.0/8", "--public-url", "https://r.example.org"]);
    // Ten at once, and one more each second: somebody who is quick enough.
    assert!(is_refused(&served, 5000));
    let (status, text) = pull(&served, "198.51.100.8");
    assert_eq!(status, 200, "another client has its own budget");
    let text = text.to_lowercase();
    assert!(text.contains("strict-transport-security: max-age=31536000"), "{text}");
    let (_, text) = served.get("/metrics");
    assert!(text.contains("apron_registry_refusals_total{limit=\"pull\"} "), "{text}");
    let mut words = command(&scratch);
    words.args(["registry", "serve", "--trusted-proxy", "proxy", "--listen", "127.0.0.1:0"]);
    let ran: crate::support::Ran = words.output().unwrap().into();
    assert!(ran.failed().contains("hint: --trusted-proxy takes"));
}
