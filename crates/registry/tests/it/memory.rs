//! A registry that keeps everything in memory and tells the time it is told.

use crate::support::{World, artifact};
use axum::body::Body;
use oci::{Digest, Hasher};
use registry::{Collect, Collected, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn an_upload_in_chunks_becomes_a_blob_that_is_read_in_parts() {
    let world = World::in_memory(Settings::default(), SystemTime::now);
    let location = world.upload("a/b").await;
    world.call("PATCH", &location, &[], "0123").await.is(202);
    let short = [("content-range", "4-9"), ("content-length", "6")];
    world.call("PATCH", &location, &short, "456").await.refuses(400, "SIZE_INVALID");
    assert_eq!(world.get(&location).await.is(204).header("range"), "0-3");
    world.call("PATCH", &location, &[("content-range", "4-6")], "456").await.is(202);
    // Hashed as sha256 on the way, and finished as sha512.
    let mut hasher = Hasher::new(oci::Algorithm::Sha512);
    hasher.update(b"0123456");
    let digest = hasher.finish();
    world.call("PUT", &format!("{location}?digest={digest}"), &[], Body::empty()).await.is(201);
    let path = format!("/v2/a/b/blobs/{digest}");
    assert_eq!(world.get(&path).await.is(200).body, "0123456");
    let part = world.call("GET", &path, &[("range", "bytes=2-4")], Body::empty()).await.is(206);
    assert_eq!(part.body, "234");
    world.get(&location).await.refuses(404, "BLOB_UPLOAD_UNKNOWN");
    assert_eq!(world.registry.scrub().await.unwrap().bytes, 7);
}

#[tokio::test]
async fn leases_end_by_the_clock_that_was_given() {
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let told = seconds.clone();
    let clock = move || SystemTime::UNIX_EPOCH + Duration::from_secs(told.load(Ordering::Relaxed));
    let lease = Duration::from_secs(60);
    let world = World::in_memory(Settings { lease, ..Settings::default() }, clock);
    let kept = world.push("a", "v1", "kept").await;
    let note = artifact(kept.manifest().unwrap().config.clone(), &kept, "text/note", "n");
    world.put("a", &note.digest.to_string(), &note).await.is(201);
    let loose = world.blob("a", b"loose").await;
    let all = Collect { untagged_after: Some(lease), ..Collect::default() };
    seconds.fetch_add(60, Ordering::Relaxed);
    assert_eq!(world.registry.collect(&all).await.unwrap(), Collected::default());
    seconds.fetch_add(1, Ordering::Relaxed);
    let collected = world.registry.collect(&all).await.unwrap();
    assert_eq!((collected.manifests, collected.links, collected.blobs), (0, 1, 1));
    let path = |digest: &Digest| format!("/v2/a/blobs/{digest}");
    world.get(&path(&loose.digest)).await.refuses(404, "BLOB_UNKNOWN");
    world.get(&path(&kept.manifest().unwrap().layers[0].digest)).await.is(200);
    let referrers = world.get(&format!("/v2/a/referrers/{}", kept.digest)).await.is(200).json();
    assert_eq!(referrers["manifests"][0]["digest"], note.digest.to_string());
    assert_eq!(std::fs::read_dir(world.directory.path()).unwrap().count(), 0);
}

/// C7: what is needed to make room needs no room itself.
#[tokio::test]
async fn c7_a_full_registry_is_emptied_while_it_serves_and_takes_pushes_again() {
    let settings = Settings {
        space_reserve: u64::MAX - (1 << 20),
        lease: Duration::from_secs(3600),
        ..Settings::default()
    };
    let world = World::in_memory(settings, SystemTime::now);
    let push = async |number: usize| {
        let text = number.to_string().repeat(200_000);
        let path = format!("/v2/a/blobs/uploads/?digest={}", Digest::of(text.as_bytes()));
        world.call("POST", &path, &[], text).await
    };
    let old = world.push("a", "v1", &"old".repeat(100_000)).await;
    let mut number = 1;
    let refused = loop {
        let answer = push(number).await;
        if answer.status != 201 {
            break answer;
        }
        number += 1;
        assert!(number < 9, "there is room for a megabyte");
    };
    refused.refuses(507, "DENIED");
    world.delete(&format!("/v2/a/manifests/{}", old.digest)).await.is(202);
    let all = Collect { ignore_lease: true, ..Collect::default() };
    assert!(world.registry.collect(&all).await.unwrap().blobs > 3);
    push(number).await.is(201);
    world.get("/readyz").await.is(200);
}
