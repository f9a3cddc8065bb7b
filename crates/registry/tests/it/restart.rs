//! What a restart finds: everything that was acknowledged, and nothing half done.

use crate::support::World;
use axum::body::Body;
use oci::{Descriptor, Digest, MediaType, Raw};
use registry::{OpenError, Registry, Settings, rebuild};
use store::{Layout, Store};

#[tokio::test]
async fn acknowledged_things_survive_a_crash() {
    let world = World::new();
    let raw = world.push("a/b", "v1.0.0", "x").await;
    let location = world.upload("a/b").await;
    world.call("PATCH", &location, &[], "0123").await.is(202);
    // Bytes that came after the last acknowledgement count for nothing.
    let id = location.rsplit('/').next().unwrap();
    let after = world.after_crash();
    let torn = after.directory.path().join("uploads").join(id);
    let mut bytes = fs_err::read(&torn).unwrap();
    bytes.extend_from_slice(b"torn");
    fs_err::write(&torn, bytes).unwrap();
    fs_err::write(after.directory.path().join("uploads/unknown"), "x").unwrap();
    assert_eq!(after.get("/v2/a/b/manifests/v1.0.0").await.is(200).body, raw.bytes);
    assert_eq!(after.get(&location).await.is(204).header("range"), "0-3");
    after.call("PATCH", &location, &[("content-range", "4-6")], "456").await.is(202);
    let digest = Digest::of(b"0123456");
    after.call("PUT", &format!("{location}?digest={digest}"), &[], Body::empty()).await.is(201);
    assert_eq!(after.get(&format!("/v2/a/b/blobs/{digest}")).await.body, "0123456");
    let again = after.after_crash();
    assert!(!again.directory.path().join("uploads/unknown").exists());
}

#[tokio::test]
async fn a_directory_is_used_by_one_process() {
    let world = World::new();
    let second = Registry::open(world.directory.path(), Settings::default());
    assert!(matches!(second.err().unwrap(), OpenError::InUse(_)));
    assert!(matches!(rebuild(world.directory.path()).unwrap_err(), OpenError::InUse(_)));
}

#[tokio::test]
async fn every_repository_is_a_layout_that_others_read() {
    let world = World::new();
    let raw = world.push("team/deep/er", "v1.0.0", "x").await;
    world.put("team/deep/er", "latest", &raw).await.is(201);
    world.registry.flush_views().await;
    let view = world.directory.path().join("repos/team/deep/er/_layout");
    let layout = Layout::open(&view).await.unwrap();
    assert_eq!(layout.tags().await.unwrap(), ["latest", "v1.0.0"]);
    let found = layout.manifest(&oci::Identifier::Tag("latest".to_owned())).await.unwrap().unwrap();
    assert_eq!(found, raw);
    let layer = &raw.manifest().unwrap().layers[0];
    assert!(layout.blob(layer).await.unwrap().is_some());
}

/// Waits until the last handle's threads have let go of a directory.
pub(crate) fn released(root: &std::path::Path) {
    let file = fs_err::File::open(root.join("lock")).unwrap().into_parts().0;
    file.lock().unwrap();
    // Not by closing: a test that starts a program at this moment would keep it.
    file.unlock().unwrap();
}

#[tokio::test]
async fn a_lost_database_is_made_again_from_the_views() {
    let world = World::new();
    let raw = world.push("a/b", "v1.0.0", "x").await;
    let child = world.push("c", "child", "y").await;
    let index = crate::support::index(&[&child]);
    world.put("c", "index", &index).await.is(201);
    let config = world.blob("c", b"{}").await;
    let signature = crate::support::artifact(config, &index, "application/x.sig", "n");
    world.put("c", &signature.digest.to_string(), &signature).await.is(201);
    world.registry.flush_views().await;
    let copy = world.after_crash();
    let root = copy.directory.path().to_owned();
    let keep = copy.directory;
    drop((copy.registry, copy.router));
    released(&root);
    for name in ["meta.db", "meta.db-wal", "meta.db-shm"] {
        let _ = fs_err::remove_file(root.join(name));
    }
    let refused = Registry::open(&root, Settings::default()).err().unwrap();
    assert!(matches!(refused, OpenError::DatabaseMissing(_)));
    let rebuilt = rebuild(&root).unwrap();
    assert_eq!(rebuilt.problems, Vec::<String>::new());
    assert_eq!((rebuilt.repositories, rebuilt.manifests, rebuilt.tags), (2, 4, 3));
    let registry = Registry::open(&root, Settings::default()).unwrap();
    let router = registry::router(registry.clone(), registry::Options::open());
    let after = World { directory: keep, registry, router };
    assert_eq!(after.get("/v2/a/b/manifests/v1.0.0").await.is(200).body, raw.bytes);
    assert_eq!(after.get("/v2/c/manifests/index").await.is(200).body, index.bytes);
    after.get(&format!("/v2/c/manifests/{}", child.digest)).await.is(200);
    let layer = &raw.manifest().unwrap().layers[0].digest;
    after.get(&format!("/v2/a/b/blobs/{layer}")).await.is(200);
    let referrers = after.get(&format!("/v2/c/referrers/{}", index.digest)).await.is(200);
    assert_eq!(referrers.json()["manifests"][0]["annotations"]["note"], "n");
}

/// A registry whose database was lost and made again.
async fn rebuilt(world: World) -> World {
    world.registry.flush_views().await;
    let World { directory, registry, router } = world;
    drop((registry, router));
    let root = directory.path();
    released(root);
    rebuild(root).unwrap();
    let registry = Registry::open(root, Settings::default()).unwrap();
    let router = registry::router(registry.clone(), registry::Options::open());
    World { directory, registry, router }
}

fn image(config: Descriptor, layer: Descriptor) -> Raw {
    let mut manifest = oci::Manifest::docker(config, vec![layer]);
    manifest.media_type = MediaType::OCI_MANIFEST;
    Raw::from_manifest(&manifest).unwrap()
}

#[tokio::test]
async fn m11_a_rebuilt_registry_gives_nobody_what_they_only_named() {
    let world = World::new();
    let secret = world.push("alice/p", "v1", "secret").await;
    let secret = secret.manifest().unwrap().layers[0].clone();
    let config = world.blob("mallory/p", b"{}").await;
    let mut foreign = secret.clone();
    foreign.media_type =
        MediaType::new("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip");
    world.put("mallory/p", "v1", &image(config, foreign)).await.is(201);
    let (hers, his) = (
        format!("/v2/alice/p/blobs/{}", secret.digest),
        format!("/v2/mallory/p/blobs/{}", secret.digest),
    );
    world.get(&hers).await.is(200);
    world.get(&his).await.is(404);
    let world = rebuilt(world).await;
    world.get(&hers).await.is(200);
    world.get(&his).await.is(404);
    world.get("/v2/mallory/p/manifests/v1").await.is(200);
}

#[tokio::test]
async fn m11_nor_where_manifests_may_name_what_is_not_there() {
    let world = World::with(Settings { missing: registry::Missing::Accept, ..Settings::default() });
    let secret = world.push("alice/p", "v1", "secret").await;
    let secret = secret.manifest().unwrap().layers[0].clone();
    let late = Descriptor::of(MediaType::OCI_CONFIG, b"{\"late\":1}");
    let raw = image(late.clone(), secret.clone());
    world.put("mallory/p", "v1", &raw).await.is(201);
    // What comes after the manifest that names it is the repository's all the same.
    world.registry.flush_views().await;
    world.blob("mallory/p", b"{\"late\":1}").await;
    let world = rebuilt(world).await;
    world.get(&format!("/v2/alice/p/blobs/{}", secret.digest)).await.is(200);
    world.get(&format!("/v2/mallory/p/blobs/{}", secret.digest)).await.is(404);
    world.get(&format!("/v2/mallory/p/blobs/{}", late.digest)).await.is(200);
}

#[tokio::test]
async fn l7_nobody_else_on_the_machine_reads_the_directory() {
    let world = World::new();
    world.push("secret/p", "v1", "x").await;
    let upload = world.upload("secret/p").await;
    world.call("PATCH", &upload, &[], "half a secret").await.is(202);
    world.registry.flush_views().await;
    let World { directory, registry, router } = world;
    drop((registry, router));
    released(directory.path());
    assert_eq!(open_to_others(directory.path()), Vec::<String>::new());
    // As earlier versions left it.
    let run = |command: &str| {
        let mut shell = std::process::Command::new("sh");
        let ran = shell.args(["-c", command]).current_dir(directory.path()).status();
        assert!(ran.unwrap().success(), "{command}");
    };
    run(
        "chmod 755 . blobs blobs/* uploads repos quarantine && chmod 644 meta.db blobs/*/* uploads/*",
    );
    assert!(open_to_others(directory.path()).len() > 5);
    let registry = Registry::open(directory.path(), Settings::default()).unwrap();
    assert_eq!(open_to_others(directory.path()), Vec::<String>::new());
    let router = registry::router(registry.clone(), registry::Options::open());
    let world = World { directory, registry, router };
    world.get("/v2/secret/p/manifests/v1").await.is(200);
}

/// What of a directory somebody else may look at.
fn open_to_others(path: &std::path::Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = fs_err::symlink_metadata(path).unwrap();
    let mut all = Vec::new();
    if found.is_symlink() {
        return all;
    }
    if found.permissions().mode() & 0o077 != 0 {
        all.push(format!("{} {:o}", path.display(), found.permissions().mode()));
    }
    if found.is_dir() {
        for entry in fs_err::read_dir(path).unwrap() {
            all.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    all
}
