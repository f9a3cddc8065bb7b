//! Conversations with the API server: no request makes it panic, stop answering, or keep what cannot
//! be listed and deleted again. Time and memory are bounded by the engine (scripts/fuzz).

#![no_main]

use apiserver::log::Log;
use apiserver::world::World;
use apiserver::{Options, Server};
use apron_fuzz::{block_on, call, mutate, requests};
use axum::Router;
use axum::body::Bytes;
use http::Request;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

const NOW: u64 = 1_700_000_000;
const WIDGETS: &str = "/apis/example.org/v1/widgets";
const WEBHOOKS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

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

/// A cluster with a custom kind and a few objects, made once.
static CLUSTER: LazyLock<Log> = LazyLock::new(|| {
    block_on(async {
        let log = Log::in_memory();
        let server = serve(&log);
        server.furnish().await.expect("an empty log takes what clusters have");
        for request in requests(apron_fuzz::SETTING) {
            let (status, body) = call(&server.router(), request).await.expect("an answer");
            assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        }
        log
    })
});

fn serve(log: &Log) -> Arc<Server> {
    let world = Arc::new(Still(AtomicU64::new(log.version() << 20)));
    Server::new(log.clone(), Options::default(), world)
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

fuzz_target!(|input: &[u8]| {
    // Made outside: a runtime does not start inside another.
    let cluster = CLUSTER.fork();
    block_on(async {
        let server = serve(&cluster);
        server.attend();
        let router = server.router();
        for request in requests(input) {
            call(&router, request).await;
        }
        // What was kept can be listed and goes when it is told to.
        for list in ["/api/v1/configmaps", "/api/v1/secrets", "/api/v1/namespaces"] {
            expect_success(&router, "GET", list).await;
        }
        expect_custom_list(&router).await;
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
