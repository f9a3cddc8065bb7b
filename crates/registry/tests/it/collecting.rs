//! Collection and scrubbing: what goes, what stays, and that pushes never notice.

use crate::support::{World, artifact, hasty};
use oci::{Digest, Raw};
use registry::{Collect, Collected, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn what_nothing_refers_to_goes_and_the_rest_stays() {
    let world = World::with(hasty());
    let kept = world.push("a", "v1", "kept").await;
    let dropped = world.push("a", "v2", "dropped").await;
    let loose = world.blob("a", b"loose").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.delete(&format!("/v2/a/manifests/{}", dropped.digest)).await.is(202);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let counted =
        world.registry.collect(&Collect { dry_run: true, ..Collect::default() }).await.unwrap();
    // A dry run sees one step ahead: links go first, and their blobs only then.
    assert_eq!((counted.links, counted.blobs), (3, 1));
    assert!(world.has_file(&loose.digest));
    let collected = world.registry.collect(&Collect::default()).await.unwrap();
    assert_eq!((collected.links, collected.blobs), (3, 4));
    for gone in [&loose.digest, &dropped.digest, &dropped.manifest().unwrap().config.digest] {
        assert!(!world.has_file(gone), "{gone}");
    }
    world.get(&format!("/v2/a/blobs/{}", loose.digest)).await.refuses(404, "BLOB_UNKNOWN");
    world.get("/v2/a/manifests/v1").await.is(200);
    let layer = &kept.manifest().unwrap().layers[0].digest;
    world.get(&format!("/v2/a/blobs/{layer}")).await.is(200);
    assert_eq!(world.registry.collect(&Collect::default()).await.unwrap(), Collected::default());
}

#[tokio::test]
async fn a_lease_protects_what_a_client_has_seen() {
    let world = World::with(Settings { lease: Duration::from_secs(60), ..Settings::default() });
    let blob = world.blob("a", b"seen").await;
    let raw = world.push("a", "v1", "x").await;
    world.delete(&format!("/v2/a/manifests/{}", raw.digest)).await.is(202);
    let collected = world.registry.collect(&Collect::default()).await.unwrap();
    // Only the manifest itself; its blobs may have been seen a moment ago.
    assert_eq!((collected.links, collected.blobs), (0, 1));
    assert!(world.has_file(&blob.digest));
    world.put("a", "v1", &raw).await.is(201);
}

#[tokio::test]
async fn a_lease_is_ignored_when_asked() {
    let world = World::with(Settings { lease: Duration::from_secs(3600), ..Settings::default() });
    let blob = world.blob("a", b"seen").await;
    let kept = world.push("a", "v1", "kept").await;
    let dropped = world.push("a", "v2", "dropped").await;
    world.delete(&format!("/v2/a/manifests/{}", dropped.digest)).await.is(202);
    let dry = Collect { dry_run: true, ignore_lease: true, ..Collect::default() };
    assert_eq!(world.registry.collect(&dry).await.unwrap().links, 3);
    let all = Collect { ignore_lease: true, ..Collect::default() };
    let collected = world.registry.collect(&all).await.unwrap();
    assert_eq!((collected.links, collected.blobs), (3, 4));
    assert!(!world.has_file(&blob.digest));
    let layer = &kept.manifest().unwrap().layers[0].digest;
    world.get(&format!("/v2/a/blobs/{layer}")).await.is(200);
}

#[tokio::test]
async fn untagged_manifests_go_only_when_asked() {
    let world = World::with(hasty());
    let old = world.push("a", "latest", "old").await;
    let new = world.push("a", "latest", "new").await;
    let config = world.blob("a", b"{}").await;
    let signature = artifact(config, &new, "application/x.sig", "n");
    world.put("a", &signature.digest.to_string(), &signature).await.is(201);
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.registry.collect(&Collect::default()).await.unwrap();
    world.get(&format!("/v2/a/manifests/{}", old.digest)).await.is(200);
    let all = Collect { untagged_after: Some(Duration::ZERO), ..Collect::default() };
    assert_eq!(world.registry.collect(&all).await.unwrap().manifests, 1);
    world.get(&format!("/v2/a/manifests/{}", old.digest)).await.is(404);
    // What refers to a manifest that stays, stays with it.
    world.get(&format!("/v2/a/manifests/{}", signature.digest)).await.is(200);
}

#[tokio::test]
async fn files_that_nothing_knows_of_go() {
    let world = World::new();
    let digest = Digest::of(b"a crash left this");
    let path = world.directory.path().join("blobs/sha256").join(digest.hex());
    fs_err::write(&path, "a crash left this").unwrap();
    assert_eq!(world.registry.collect(&Collect::default()).await.unwrap().orphans, 1);
    assert!(!path.exists());
}

#[tokio::test]
async fn damaged_blobs_are_taken_out_of_service_and_healed_by_a_push() {
    let world = World::new();
    let raw = world.push("a", "v1", "x").await;
    let layer = raw.manifest().unwrap().layers[0].digest.clone();
    let path = world.directory.path().join("blobs/sha256").join(layer.hex());
    fs_err::write(&path, "layer of y").unwrap();
    let scrubbed = world.registry.scrub().await.unwrap();
    assert_eq!((scrubbed.blobs, scrubbed.damaged.as_slice()), (3, &[layer.clone()][..]));
    world.get(&format!("/v2/a/blobs/{layer}")).await.refuses(404, "BLOB_UNKNOWN");
    world.head(&format!("/v2/a/blobs/{layer}")).await.is(404);
    let kept = world.directory.path().join(format!("quarantine/sha256-{}", layer.hex()));
    assert_eq!(fs_err::read(kept).unwrap(), b"layer of y");
    world.blob("a", b"layer of x").await;
    world.get(&format!("/v2/a/blobs/{layer}")).await.is(200);
    assert!(world.registry.scrub().await.unwrap().damaged.is_empty());
}

/// Rounds of the soak. Between two of them time goes on, within one it stands still, so that how
/// fast the machine is decides nothing.
const ROUNDS: u64 = 80;
const ROUND: Duration = Duration::from_secs(10);
/// Over in the fourth round after the one it was given in.
const LEASE: Duration = Duration::from_secs(35);

/// Pushes an image whose blobs others push too, under a manifest of one's own; pulls it; and
/// deletes it. Nothing may be missing at any step.
async fn push_pull_delete(world: &World, pusher: usize, content: u64) {
    let (name, tag) = (format!("r{}", pusher % 2), format!("t{pusher}"));
    let shared = world.image(&name, &format!("shared {content}")).await;
    let mut manifest = shared.manifest().unwrap().clone();
    manifest.annotations.insert("pusher".to_owned(), pusher.to_string());
    let raw = Raw::from_manifest(&manifest).unwrap();
    world.put(&name, &tag, &raw).await.is(201);
    world.get(&format!("/v2/{name}/manifests/{tag}")).await.is(200);
    for child in [&manifest.config, &manifest.layers[0]] {
        let answer = world.get(&format!("/v2/{name}/blobs/{}", child.digest)).await.is(200);
        assert!(child.digest.matches(&answer.body));
    }
    world.delete(&format!("/v2/{name}/manifests/{}", raw.digest)).await.is(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collection_never_races_with_pushes() {
    let (time, settings) = (Arc::new(AtomicU64::new(0)), Settings { lease: LEASE, ..hasty() });
    let told = time.clone();
    let clock = move || SystemTime::UNIX_EPOCH + ROUND * u32::try_from(told.load(SeqCst)).unwrap();
    let world = Arc::new(World::telling(settings, clock));
    let mut collected = 0;
    for round in 0..ROUNDS {
        time.store(round, SeqCst);
        let pushers: Vec<_> = (0..4)
            .map(|pusher| {
                let world = world.clone();
                // Some contents come back in the round in which their leases are over, beside
                // the collection; others only after it.
                let content = round % if pusher < 2 { 4 } else { 6 };
                tokio::spawn(async move { push_pull_delete(&world, pusher, content).await })
            })
            .collect();
        while pushers.iter().any(|pusher| !pusher.is_finished()) {
            collected += world.registry.collect(&Collect::default()).await.unwrap().blobs;
        }
        for pusher in pushers {
            pusher.await.unwrap();
        }
        // Whatever nobody took up again is gone for certain before the next.
        collected += world.registry.collect(&Collect::default()).await.unwrap().blobs;
    }
    println!("{collected} collected blobs beside {} pushes", ROUNDS * 4);
    // In every six rounds, both blobs of two contents that come back only after six.
    assert!(collected >= ROUNDS / 6 * 4 - 8, "the soak must see blobs die: {collected}");
    assert!(world.registry.scrub().await.unwrap().damaged.is_empty());
}
