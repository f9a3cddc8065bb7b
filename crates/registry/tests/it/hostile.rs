//! Requests made to do harm: whatever is sent, the answer is one of the table and nothing breaks.

use crate::support::World;
use http::Request;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PARTS: &[&str] = &[
    "v2",
    "a",
    "a",
    "b",
    "blobs",
    "uploads",
    "manifests",
    "tags",
    "list",
    "referrers",
    "_catalog",
    "_oci",
    "ext",
    "discover",
    "..",
    ".",
    "%2e%2e",
    "%2f",
    "%00",
    "v1",
    "latest",
    "_layout",
    "sha256:",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha512:00",
    "A",
    "-",
    "12345678-1234-4123-8123-123456789012",
    "",
];
const QUERIES: &[&str] = &[
    "",
    "n=1",
    "n=-1",
    "n=99999999999999999999",
    "last=%ff",
    "digest=sha256:0",
    "mount=x&from=..",
    "mount=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855&from=a",
    "digest=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "tag=a&tag=%2f",
    "artifactType=%00",
    "digest-algorithm=none",
    "&&==&",
];
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];
const RANGES: &[&str] =
    &["", "bytes=0-", "bytes=-0", "0-0", "5-1", "bytes=9-1", "99999999999999999999-1"];
const BODIES: &[&str] = &["", "x", "{}", r#"{"schemaVersion":2,"manifests":[]}"#, "[[[[[[[[[[[[["];

#[test]
fn no_request_breaks_the_registry() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let world = World::new();
    runtime.block_on(world.push("a", "v1", "x"));
    let request = (
        prop::sample::select(METHODS),
        prop::collection::vec(prop::sample::select(PARTS), 0..7),
        prop::sample::select(QUERIES),
        prop::sample::select(RANGES),
        prop::sample::select(BODIES),
    );
    let mut runner = TestRunner::new(Config { cases: 3000, ..Config::default() });
    let ran = runner.run(&request, |(method, parts, query, range, body)| {
        let path = format!("/v2/{}?{query}", parts.join("/"));
        let Ok(request) = Request::builder()
            .method(method)
            .uri(&path)
            .header("range", range)
            .header("content-range", range)
            .header("content-type", "application/vnd.oci.image.index.v1+json")
            .body(body.into())
        else {
            return Ok(());
        };
        let answer = runtime.block_on(world.send(request));
        prop_assert!(answer.status.as_u16() < 500, "{method} {path}: {}", answer.status);
        if answer.status.is_client_error() && method != "HEAD" {
            prop_assert!(answer.json()["errors"][0]["code"].is_string(), "{method} {path}");
        }
        Ok(())
    });
    ran.unwrap();
    runtime.block_on(async { world.get("/v2/a/manifests/v1").await.is(200) });
    // Nothing was written outside the places for it.
    let mut left: Vec<_> = fs_err::read_dir(world.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("meta.db"))
        .collect();
    left.sort();
    assert_eq!(left, ["blobs", "lock", "oci-layout", "quarantine", "repos", "uploads"]);
}
