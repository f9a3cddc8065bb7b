//! Collection and scrubbing: what goes, what stays, and that pushes never notice.

use crate::support::{World, artifact, hasty};
use oci::{Digest, Raw};
use registry::{Collect, Collected, Settings};
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// How long the soak lasts; leases are shorter, so that things die and come back meanwhile.
const SOAK: Duration = Duration::from_secs(9);
const LEASE: Duration = Duration::from_secs(3);

/// Pushes an image whose blobs others push too, under a manifest of one's own; pulls it; and
/// deletes it. Nothing may be missing at any step.
async fn push_pull_delete(world: &World, pusher: usize, round: u128) {
    let (name, tag) = (format!("r{}", pusher % 2), format!("t{pusher}"));
    let shared = world.image(&name, &format!("shared {round}")).await;
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
    let world = Arc::new(World::with(Settings { lease: LEASE, ..Settings::default() }));
    let start = Instant::now();
    let collector = tokio::spawn({
        let world = world.clone();
        async move {
            let mut total = 0;
            while start.elapsed() < SOAK {
                total += world.registry.collect(&Collect::default()).await.unwrap().blobs;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            total
        }
    });
    let pushers = (0..4).map(|pusher| {
        let world = world.clone();
        tokio::spawn(async move {
            let mut rounds = 0;
            while start.elapsed() < SOAK {
                // Contents come back about when their leases end.
                let round = start.elapsed().as_millis() / 50 % (LEASE.as_millis() / 50);
                push_pull_delete(&world, pusher, round).await;
                rounds += 1;
            }
            rounds
        })
    });
    let mut rounds = 0;
    for pusher in pushers.collect::<Vec<_>>() {
        rounds += pusher.await.unwrap();
    }
    let collected = collector.await.unwrap();
    println!("{rounds} pushes beside {collected} collected blobs");
    assert!(collected > 10, "the soak must see blobs die: {collected}");
    assert!(world.registry.scrub().await.unwrap().damaged.is_empty());
}
