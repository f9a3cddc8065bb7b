//! The same probes on both servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiserver::log::Log;
use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::normal::{Answer, differences, normal};
use crate::peers::{self, ControlPlane, TOKEN};
use crate::probe::{self, Probe};

/// Who is asked.
enum Side {
    Real { client: reqwest::Client, url: String },
    Ours(axum::Router),
}

struct Asked {
    side: Side,
    saved: BTreeMap<String, Value>,
}

impl Asked {
    fn new(side: Side) -> Self {
        Self { side, saved: BTreeMap::new() }
    }

    /// Sends a probe and reads the answer, all of it.
    async fn ask(&mut self, probe: &Probe) -> Answer {
        let path = probe::fill(&probe.path, &self.saved);
        let body = probe.body.as_ref().map(|body| probe::bytes(probe::fill(body, &self.saved)));
        let authorization = probe.authorization.as_ref().map(|it| probe::fill(it, &self.saved));
        let shown: Vec<(String, String)> = authorization
            .map(|said| ("Authorization".to_owned(), said))
            .into_iter()
            .chain(probe.headers.iter().cloned())
            .collect();
        let method = if probe.method == "WATCH" { "GET" } else { &probe.method };
        let (code, headers, text) = match &self.side {
            Side::Real { client, url } => {
                let method = method.parse().expect("a method");
                let mut request = client
                    .request(method, format!("{url}{path}"))
                    .header("Accept", &probe.accept)
                    .header("User-Agent", "probe/1");
                for (name, value) in &shown {
                    request = request.header(name, value);
                }
                if let Some(body) = body {
                    request = request.header("Content-Type", &probe.media).body(body);
                }
                let response = request.send().await.expect("an answer");
                let (code, headers) = (response.status().as_u16(), response.headers().clone());
                (code, headers, response.text().await.expect("a body"))
            }
            Side::Ours(router) => {
                let mut request = http::Request::builder()
                    .method(method)
                    .uri(&path)
                    .header("Accept", &probe.accept)
                    .header("User-Agent", "probe/1")
                    .header("Host", "127.0.0.1:6443");
                for (name, value) in &shown {
                    request = request.header(name, value);
                }
                if body.is_some() {
                    request = request.header("Content-Type", &probe.media);
                }
                let body = body.map_or_else(Body::empty, Body::from);
                let request = request.body(body).expect("a request");
                let response = router.clone().oneshot(request).await.expect("an answer");
                let (parts, body) = response.into_parts();
                let bytes = body.collect().await.expect("a body").to_bytes();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                (parts.status.as_u16(), parts.headers, text)
            }
        };
        let bodies: Vec<Value> = match serde_json::from_str(&text) {
            Ok(value) => vec![value],
            Err(_) => text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line)))
                .collect(),
        };
        if let (Some(name), Some(first)) = (&probe.save, bodies.first()) {
            self.saved.insert(name.clone(), first.clone());
        }
        let all = |name: &str| {
            headers
                .get_all(name)
                .iter()
                .filter_map(|v| v.to_str().ok())
                .map(str::to_owned)
                .collect()
        };
        let media: Vec<String> = all("content-type");
        normal(Answer { code, media: media.join(", "), warnings: all("warning"), bodies })
    }
}

/// Part of a file's name, to try its probes alone: `APRON_PROBES=80`.
#[expect(clippy::disallowed_methods, reason = "for the person who runs this test")]
fn wanted() -> String {
    std::env::var("APRON_PROBES").unwrap_or_default()
}

/// The same users as the real server's.
fn options() -> apiserver::Options {
    let user = |name: &str, uid: &str, groups: &[&str]| apiserver::auth::User {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..apiserver::auth::User::default()
    };
    let admin = apiserver::auth::Token {
        secret: TOKEN.to_owned(),
        user: user("admin", "1", &["system:masters"]),
    };
    let others = peers::USERS.iter().map(|(name, groups)| apiserver::auth::Token {
        secret: peers::token(name),
        user: user(name, &format!("uid-{name}"), groups),
    });
    apiserver::Options {
        authenticate: true,
        tokens: std::iter::once(admin).chain(others).collect(),
        ..apiserver::Options::default()
    }
}

/// Probes in the order of their files.
fn probes() -> Vec<Probe> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes");
    let wanted = wanted();
    let mut files: Vec<_> = fs_err::read_dir(directory)
        .expect("probes")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "probes"))
        .filter(|path| wanted.is_empty() || path.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            probe::parse(&name, &fs_err::read_to_string(path).expect("a file"))
        })
        .collect()
}

/// Differences that are known, with the reason for each.
fn explained() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes/explained.txt");
    fs_err::read_to_string(path)
        .expect("explained.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" -- ").expect("probe -- reason"))
        .map(|(probe, reason)| (probe.trim().to_owned(), reason.trim().to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_answers_like_the_real_one() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .timeout(Duration::from_secs(300))
        .build()
        .expect("a client");
    let plane = ControlPlane::start(&client).await;
    crate::openapi::check(&client, &plane).await;
    crate::policy::check(&client, &plane).await;
    let hook = crate::hook::Hook::start().await;
    let world = apiserver::world::SystemWorld::with(Arc::new(embed::Caller::default()));
    let router = apiserver::router_in(Log::in_memory(), options(), Arc::new(world))
        .await
        .expect("our server");
    let mut real = Asked::new(Side::Real { client, url: plane.url.clone() });
    let mut ours = Asked::new(Side::Ours(router));
    for asked in [&mut real, &mut ours] {
        asked.saved.insert("hook".to_owned(), hook.place());
    }
    let explained = explained();
    let (mut compared, mut unexplained, mut explained_seen) = (0, Vec::new(), BTreeSet::new());
    for probe in probes() {
        // Upstream's collector learns of new kinds every half minute. When much differs,
        // waiting for each would take too long.
        let seconds = if unexplained.len() < 3 { 300 } else { 2 };
        let patience = Duration::from_secs(seconds);
        let lines = compare(&mut real, &mut ours, &probe, patience).await;
        if probe.quiet {
            continue;
        }
        compared += 1;
        if lines.is_empty() {
            continue;
        }
        if explained.contains_key(&probe.name) {
            explained_seen.insert(probe.name.clone());
        } else {
            unexplained.push(format!("{}\n    {}", probe.name, lines.join("\n    ")));
        }
    }
    println!(
        "{compared} probes compared, {} explained differences, {} unexplained",
        explained_seen.len(),
        unexplained.len()
    );
    let stale: Vec<&String> = explained
        .keys()
        .filter(|name| wanted().is_empty() && !explained_seen.contains(*name))
        .collect();
    assert!(unexplained.is_empty(), "differences (real / ours):\n{}", unexplained.join("\n"));
    assert!(stale.is_empty(), "explained, but there is no difference any more: {stale:#?}");
}

/// Asks both; for as long as `patience` if the answer comes later.
async fn compare(
    real: &mut Asked,
    ours: &mut Asked,
    probe: &Probe,
    patience: Duration,
) -> Vec<String> {
    let end = Instant::now() + patience;
    loop {
        let (one, other) = tokio::join!(real.ask(probe), ours.ask(probe));
        let mut lines = differences(&one, &other);
        if let Some(words) = &probe.until {
            for (side, answer) in [("real", &one), ("ours", &other)] {
                if !answer.bodies.iter().any(|body| body.to_string().contains(words.as_str())) {
                    lines.push(format!("the {side} one does not say {words:?}"));
                }
            }
        }
        if lines.is_empty() || !probe.retry || Instant::now() > end {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
