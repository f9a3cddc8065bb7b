//! Conversations with the registry: no request makes it panic or stop answering.

#![no_main]

use apron_fuzz::{block_on, call, mutate, requests};
use axum::body::Bytes;
use http::Request;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use registry::{Options, Registry, Settings};
use std::time::{Duration, SystemTime};

const NOW: Duration = Duration::from_secs(1_700_000_000);

fuzz_target!(|input: &[u8]| {
    block_on(async {
        let now = SystemTime::UNIX_EPOCH + NOW;
        let kept = Registry::in_memory(Settings::default(), move || now);
        let router = registry::router(kept, Options::open());
        for request in requests(input) {
            call(&router, request).await;
        }
        for target in ["/v2/", "/v2/_catalog"] {
            let request = Request::get(target).header("Host", "localhost").body(Bytes::new());
            let answer = call(&router, request.expect("a request")).await;
            assert_eq!(answer.map(|(status, _)| status.as_u16()), Some(200), "{target}");
        }
    });
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::change_in_place(data, size, max_size, seed)
});
