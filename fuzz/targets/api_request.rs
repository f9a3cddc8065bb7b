//! Conversations with the API server: no request makes it panic, stop answering, or keep what cannot
//! be listed and deleted again. Time and memory are bounded by the engine (scripts/fuzz).
//!
//! A conversation is with a server that leaves pods to controllers outside, unless its first part says
//! `HOSTING pods` or `HOSTING simulated`.

#![no_main]

use apiserver::log::Log;
use apiserver::runtime::{Hosting, LogPieces, LogQuery, PodLogs};
use apiserver::world::World;
use apiserver::{Options, Server};
use apron_fuzz::{block_on, call, mutate, requests};
use axum::Router;
use axum::body::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::Request;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

const NOW: u64 = 1_700_000_000;
const WIDGETS: &str = "/apis/example.org/v1/widgets";
const WEBHOOKS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

/// What follows from one request at most, where pods are made: a replica set may wish for many.
const STEPS_MAX: usize = 8;

/// How pods come about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pods {
    Unattended,
    Made,
    Simulated,
}

impl Pods {
    /// What the first part of a conversation says, and the conversation behind it.
    fn split(input: &[u8]) -> (Self, &[u8]) {
        if let Some(rest) = input.strip_prefix(b"HOSTING pods\n---\n") {
            return (Self::Made, rest);
        }
        if let Some(rest) = input.strip_prefix(b"HOSTING simulated\n---\n") {
            return (Self::Simulated, rest);
        }
        (Self::Unattended, input)
    }

    fn hosting(self) -> Hosting {
        match self {
            Self::Unattended => Hosting::Unattended,
            Self::Made => Hosting::Pods,
            Self::Simulated => Hosting::simulated(),
        }
    }

    fn cluster(self) -> &'static Log {
        match self {
            Self::Unattended => &UNATTENDED,
            Self::Made => &MADE,
            Self::Simulated => &SIMULATED,
        }
    }
}

/// Logs that say what they were asked for.
#[derive(Debug)]
struct Echo;

impl PodLogs for Echo {
    fn open_log(&self, _pod: &Value, query: LogQuery) -> BoxFuture<'_, Result<LogPieces, String>> {
        let pieces: [std::io::Result<Bytes>; 1] = [Ok(Bytes::from(format!("{query:?}\n")))];
        Box::pin(async move { Ok(futures::stream::iter(pieces).boxed()) })
    }
}

/// A world in which nothing happens by itself.
struct Still(AtomicU64);

impl World for Still {
    fn now(&self) -> u64 {
        NOW
    }

    fn random(&self) -> u64 {
        let number = self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }
}

static UNATTENDED: LazyLock<Log> = LazyLock::new(|| make_cluster(Pods::Unattended));
static MADE: LazyLock<Log> = LazyLock::new(|| make_cluster(Pods::Made));
static SIMULATED: LazyLock<Log> = LazyLock::new(|| make_cluster(Pods::Simulated));

/// A cluster with a custom kind and a few objects, made once; where pods are made, with a node.
fn make_cluster(pods: Pods) -> Log {
    block_on(async {
        let log = Log::in_memory();
        let server = serve(&log, pods);
        server.furnish().await.expect("an empty log takes what clusters have");
        let node = if pods == Pods::Made { apron_fuzz::NODE } else { b"" };
        for request in [requests(apron_fuzz::SETTING), requests(node)].into_iter().flatten() {
            let (status, body) = call(&server.router(), request).await.expect("an answer");
            assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        }
        if pods == Pods::Made {
            server.settle().await;
        }
        log
    })
}

fn serve(log: &Log, pods: Pods) -> Arc<Server> {
    let world = Arc::new(Still(AtomicU64::new(log.version() << 20)));
    let mut options = Options { runtime: pods.hosting(), ..Options::default() };
    if pods == Pods::Made {
        options.root_ca = Some("certificates".to_owned());
        options.logs = Some(Arc::new(Echo));
    }
    Server::new(log.clone(), options, world)
}

/// Does what a conversation says, and what follows from it.
async fn converse(server: &Arc<Server>, pods: Pods, input: &[u8]) {
    let router = server.router();
    if pods != Pods::Made {
        server.attend();
    }
    for request in requests(input) {
        call(&router, request).await;
        if pods == Pods::Made {
            follow_up(server).await;
        }
    }
}

/// Does a few things that follow from what was written.
async fn follow_up(server: &Arc<Server>) {
    for _ in 0..STEPS_MAX {
        if !server.step().await {
            return;
        }
    }
}

/// Status and text of an answer; status 0 if none came.
async fn ask(server: &Router, method: &str, target: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(target).body(Bytes::new());
    let answer = call(server, request.expect("a request")).await;
    answer.map_or((0, String::new()), |(status, body)| {
        (status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    })
}

async fn expect_success(server: &Router, method: &str, target: &str) {
    let (status, text) = ask(server, method, target).await;
    assert_eq!(status, 200, "{method} {target}: {text}");
}

/// Custom objects are listed, unless the conversation deleted their kind, stopped serving it, or
/// gave it a conversion webhook, which cannot be reached here.
async fn expect_custom_list(server: &Router) {
    let (status, text) = ask(server, "GET", WIDGETS).await;
    let converts = status == 500 && text.contains("conversion webhook for ");
    assert!(matches!(status, 200 | 404) || converts, "GET {WIDGETS}: {status} {text}");
}

/// Pods can be read by typed clients: their times have years of four digits, and annotations are texts.
async fn expect_readable_pods(server: &Router) {
    let (status, text) = ask(server, "GET", "/api/v1/pods").await;
    assert_eq!(status, 200, "{text}");
    let list: Value = serde_json::from_str(&text).expect("a list is JSON");
    for pod in list["items"].as_array().into_iter().flatten() {
        let metadata = &pod["metadata"];
        let until = metadata["deletionTimestamp"].as_str();
        assert!(until.is_none_or(|time| time.len() == "2006-01-02T15:04:05Z".len()), "{pod}");
        let annotations = metadata["annotations"].as_object();
        assert!(annotations.is_none_or(|all| all.values().all(Value::is_string)), "{pod}");
    }
}

fuzz_target!(|input: &[u8]| {
    // Made outside: a runtime does not start inside another.
    let (pods, input) = Pods::split(input);
    let cluster = pods.cluster().fork();
    block_on(async {
        let server = serve(&cluster, pods);
        converse(&server, pods, input).await;
        let router = server.router();
        // What was kept can be listed and goes when it is told to.
        for list in ["/api/v1/configmaps", "/api/v1/secrets", "/api/v1/namespaces"] {
            expect_success(&router, "GET", list).await;
        }
        expect_custom_list(&router).await;
        expect_readable_pods(&router).await;
        // A webhook that cannot be reached refuses writes, as it must, but never its own removal.
        for collection in WEBHOOKS {
            expect_success(&router, "DELETE", collection).await;
        }
        expect_success(&router, "DELETE", "/api/v1/namespaces/default/configmaps").await;
    });
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::change_in_place(data, size, max_size, seed)
});
