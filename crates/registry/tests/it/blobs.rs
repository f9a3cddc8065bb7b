//! Blobs: pulled whole and in part, mounted, deleted.

use crate::support::World;
use axum::body::Body;
use oci::{Algorithm, Digest, Hasher};

fn sha512(content: &[u8]) -> Digest {
    let mut hasher = Hasher::new(Algorithm::Sha512);
    hasher.update(content);
    hasher.finish()
}

#[tokio::test]
async fn a_blob_comes_back_with_everything_said_about_it() {
    let world = World::new();
    let blob = world.blob("a/b", b"some bytes").await;
    let path = format!("/v2/a/b/blobs/{}", blob.digest);
    for method in ["GET", "HEAD"] {
        let answer = world.call(method, &path, &[], Body::empty()).await.is(200);
        assert_eq!(answer.header("content-length"), "10");
        assert_eq!(answer.header("docker-content-digest"), blob.digest.to_string());
        assert_eq!(answer.header("accept-ranges"), "bytes");
        assert_eq!(answer.header("content-type"), "application/octet-stream");
        assert_eq!(answer.body.len(), if method == "GET" { 10 } else { 0 });
    }
    let tag = format!("\"{}\"", blob.digest);
    world.call("GET", &path, &[("if-none-match", &tag)], Body::empty()).await.is(304);
}

#[tokio::test]
async fn parts_of_a_blob_are_served() {
    let world = World::new();
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let blob = world.blob("a", &content).await;
    let path = format!("/v2/a/blobs/{}", blob.digest);
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=10-300010", 10, 300_010),
        ("bytes=999990-", 999_990, 999_999),
        ("bytes=-5", 999_995, 999_999),
        ("bytes=999990-5000000", 999_990, 999_999),
    ] {
        let answer = world.call("GET", &path, &[("range", range)], Body::empty()).await.is(206);
        assert_eq!(answer.header("content-range"), format!("bytes {first}-{last}/1000000"));
        assert_eq!(answer.body, content[first..=last], "{range}");
    }
    let known = format!("\"{}\"", blob.digest);
    for (tag, status) in [(known.as_str(), 206), ("\"other\"", 200)] {
        let headers = [("range", "bytes=0-0"), ("if-range", tag)];
        world.call("GET", &path, &headers, Body::empty()).await.is(status);
    }
    for range in ["bytes=5000000-10000000", "bytes=500-0"] {
        let answer = world.call("GET", &path, &[("range", range)], Body::empty()).await.is(416);
        assert_eq!(answer.header("content-range"), "bytes */1000000");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_by_code() {
    let world = World::new();
    let digest = Digest::of(b"nothing");
    world.get(&format!("/v2/a/blobs/{digest}")).await.refuses(404, "NAME_UNKNOWN");
    world.blob("a", b"x").await;
    world.get(&format!("/v2/a/blobs/{digest}")).await.refuses(404, "BLOB_UNKNOWN");
    world.head(&format!("/v2/a/blobs/{digest}")).await.is(404);
    world.delete(&format!("/v2/a/blobs/{digest}")).await.refuses(404, "BLOB_UNKNOWN");
    world.get("/v2/a/blobs/sha256:bad").await.refuses(400, "DIGEST_INVALID");
    world.get("/v2/a/blobs/sha256:../../../meta.db").await.is(404);
    world.call("PUT", &format!("/v2/a/blobs/{digest}"), &[], "x").await.refuses(405, "UNSUPPORTED");
}

#[tokio::test]
async fn sha512_is_as_good_as_sha256() {
    let world = World::new();
    let digest = sha512(b"content");
    let path = format!("/v2/a/blobs/uploads/?digest={digest}");
    world.call("POST", &path, &[], "content").await.is(201);
    let answer = world.get(&format!("/v2/a/blobs/{digest}")).await.is(200);
    assert_eq!(answer.header("docker-content-digest"), digest.to_string());
    // An upload that was hashed with one algorithm can be finished with the other.
    for (hint, content) in [("", "one"), ("?digest-algorithm=sha512", "two")] {
        let begun =
            world.call("POST", &format!("/v2/a/blobs/uploads/{hint}"), &[], Body::empty()).await;
        let location = begun.is(202).header("location").to_owned();
        world.call("PATCH", &location, &[], content).await.is(202);
        let digest = sha512(content.as_bytes());
        world.call("PUT", &format!("{location}?digest={digest}"), &[], Body::empty()).await.is(201);
        assert_eq!(world.get(&format!("/v2/a/blobs/{digest}")).await.body, content);
    }
    let bad = "/v2/a/blobs/uploads/?digest-algorithm=md5";
    world.call("POST", bad, &[], Body::empty()).await.refuses(400, "DIGEST_INVALID");
}

#[tokio::test]
async fn blobs_are_mounted_from_where_they_are() {
    let world = World::new();
    let blob = world.blob("from", b"shared").await;
    let mount = |query: &str| format!("/v2/to/blobs/uploads/?mount={}{query}", blob.digest);
    let there = format!("/v2/to/blobs/{}", blob.digest);
    // From a repository that does not have it: an ordinary upload.
    let answer = world.call("POST", &mount("&from=elsewhere"), &[], Body::empty()).await.is(202);
    assert!(answer.header("location").starts_with("/v2/to/blobs/uploads/"));
    world.get(&there).await.is(404);
    let answer = world.call("POST", &mount("&from=from"), &[], Body::empty()).await.is(201);
    assert_eq!(answer.header("location"), there);
    assert_eq!(world.get(&there).await.is(200).body, "shared");
    // Without a source, any that has it.
    let anonymous = format!("/v2/third/blobs/uploads/?mount={}", blob.digest);
    world.call("POST", &anonymous, &[], Body::empty()).await.is(201);
    world.head(&format!("/v2/third/blobs/{}", blob.digest)).await.is(200);
}

#[tokio::test]
async fn a_blob_in_use_cannot_be_deleted() {
    let world = World::new();
    let raw = world.push("a", "v1", "x").await;
    let layer = &raw.manifest().unwrap().layers[0].digest;
    world.delete(&format!("/v2/a/blobs/{layer}")).await.refuses(405, "UNSUPPORTED");
    world.delete(&format!("/v2/a/manifests/{}", raw.digest)).await.is(202);
    world.delete(&format!("/v2/a/blobs/{layer}")).await.is(202);
    world.head(&format!("/v2/a/blobs/{layer}")).await.is(404);
}
