//! Uploads: in chunks, in streams, out of order, broken off, cancelled.

use crate::support::World;
use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use oci::Digest;
use registry::Settings;

#[tokio::test]
async fn chunks_add_up() {
    let world = World::new();
    let location = world.upload("a/b").await;
    let answer = world.get(&location).await.is(204);
    assert_eq!(answer.header("range"), "0-0");
    let first = world.call("PATCH", &location, &[("content-range", "0-4")], "01234").await.is(202);
    assert_eq!(first.header("range"), "0-4");
    assert_eq!(first.header("location"), location);
    assert!(!first.header("docker-upload-uuid").is_empty());
    // Without a range, a stream.
    let second = world.call("PATCH", &location, &[], "567").await.is(202);
    assert_eq!(second.header("range"), "0-7");
    let digest = Digest::of(b"0123456789");
    let last = [("content-range", "8-9"), ("content-length", "2")];
    let done = world.call("PUT", &format!("{location}?digest={digest}"), &last, "89").await.is(201);
    assert_eq!(done.header("location"), format!("/v2/a/b/blobs/{digest}"));
    assert_eq!(done.header("docker-content-digest"), digest.to_string());
    assert_eq!(world.get(done.header("location")).await.is(200).body, "0123456789");
    world.get(&location).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
}

#[tokio::test]
async fn chunks_out_of_order_are_refused_and_the_upload_goes_on() {
    let world = World::new();
    let location = world.upload("a").await;
    world.call("PATCH", &location, &[("content-range", "0-2")], "abc").await.is(202);
    let digest = Digest::of(b"abcdef");
    let put = format!("{location}?digest={digest}");
    for range in ["0-2", "5-7", "4-6"] {
        let refused = world.call("PATCH", &location, &[("content-range", range)], "xyz").await;
        let refused = refused.refuses(416, "BLOB_UPLOAD_INVALID");
        assert_eq!((refused.header("range"), refused.header("location")), ("0-2", &*location));
        world.call("PUT", &put, &[("content-range", range)], "xyz").await.is(416);
    }
    world.call("PATCH", &location, &[("content-range", "nonsense")], "def").await.is(400);
    world
        .call("PATCH", &location, &[("content-range", "3-9")], "def")
        .await
        .refuses(400, "SIZE_INVALID");
    assert_eq!(world.get(&location).await.header("range"), "0-2");
    world.call("PUT", &put, &[("content-range", "3-5")], "def").await.is(201);
    assert_eq!(world.get(&format!("/v2/a/blobs/{digest}")).await.body, "abcdef");
}

#[tokio::test]
async fn wrong_digests_leave_nothing_behind() {
    let world = World::new();
    let digest = Digest::of(b"promised");
    let whole = format!("/v2/a/blobs/uploads/?digest={digest}");
    world.call("POST", &whole, &[], "other").await.refuses(400, "DIGEST_INVALID");
    let location = world.upload("a").await;
    world.call("PATCH", &location, &[], "other").await.is(202);
    world.call("PUT", &location, &[], Body::empty()).await.refuses(400, "DIGEST_INVALID");
    let put = format!("{location}?digest={digest}");
    world.call("PUT", &put, &[], Body::empty()).await.refuses(400, "DIGEST_INVALID");
    world.head(&format!("/v2/a/blobs/{digest}")).await.is(404);
    let left = fs_err::read_dir(world.directory.path().join("uploads")).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn empty_blobs_are_blobs() {
    let world = World::new();
    let digest = Digest::of(b"");
    let location = world.upload("a").await;
    world.call("PUT", &format!("{location}?digest={digest}"), &[], Body::empty()).await.is(201);
    let answer = world.get(&format!("/v2/a/blobs/{digest}")).await.is(200);
    assert_eq!((answer.header("content-length"), answer.body.len()), ("0", 0));
}

#[tokio::test]
async fn a_cancelled_upload_is_gone() {
    let world = World::new();
    let location = world.upload("a").await;
    world.call("PATCH", &location, &[], "x").await.is(202);
    world.delete(&location).await.is(204);
    world.get(&location).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    world.delete(&location).await.is(404);
    world.call("PATCH", &location, &[], "x").await.is(404);
}

#[tokio::test]
async fn uploads_belong_to_their_repository() {
    let world = World::new();
    let location = world.upload("mine").await;
    let elsewhere = location.replace("/mine/", "/yours/");
    world.call("PATCH", &elsewhere, &[], "x").await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    world.get("/v2/mine/blobs/uploads/../../../meta.db").await.is(404);
    world.get("/v2/mine/blobs/uploads/meta.db").await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
}

#[tokio::test]
async fn a_body_that_breaks_off_keeps_what_came() {
    let world = World::new();
    let location = world.upload("a").await;
    let pieces = [Ok(Bytes::from_static(b"hello ")), Err(std::io::Error::other("gone"))];
    let body = Body::from_stream(stream::iter(pieces));
    world.call("PATCH", &location, &[], body).await.is(400);
    assert_eq!(world.get(&location).await.is(204).header("range"), "0-5");
    world.call("PATCH", &location, &[("content-range", "6-10")], "world").await.is(202);
    let digest = Digest::of(b"hello world");
    world.call("PUT", &format!("{location}?digest={digest}"), &[], Body::empty()).await.is(201);
}

#[tokio::test]
async fn pushes_are_refused_before_the_disk_is_full() {
    let world = World::with(Settings { space_reserve: u64::MAX, ..Settings::default() });
    let begun = world.call("POST", "/v2/a/blobs/uploads/", &[], Body::empty()).await;
    begun.refuses(507, "DENIED");
    world.get("/readyz").await.is(503);
    world.get("/healthz").await.is(200);
    world.get("/v2/").await.is(200);
}
