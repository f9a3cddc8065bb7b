//! Manifests: pushed, pulled, tagged, refused, deleted, watched.

use crate::support::{World, artifact, index};
use axum::body::Body;
use oci::{Algorithm, Digest, Hasher, MediaType};
use registry::{Event, Missing, Name, Settings, Tag, Versions};

#[tokio::test]
async fn a_manifest_comes_back_byte_for_byte() {
    let world = World::new();
    let raw = world.image("a/b", "x").await;
    let put = world.put("a/b", "latest", &raw).await.is(201);
    assert_eq!(put.header("docker-content-digest"), raw.digest.to_string());
    assert_eq!(put.header("location"), format!("/v2/a/b/manifests/{}", raw.digest));
    for reference in ["latest", &raw.digest.to_string()] {
        for method in ["GET", "HEAD", "GET"] {
            let path = format!("/v2/a/b/manifests/{reference}");
            let accept = [("accept", "application/vnd.something.else")];
            let answer = world.call(method, &path, &accept, Body::empty()).await.is(200);
            assert_eq!(answer.header("content-type"), raw.media_type.as_str());
            assert_eq!(answer.header("content-length"), raw.bytes.len().to_string());
            assert_eq!(answer.header("docker-content-digest"), raw.digest.to_string());
            assert!(method == "HEAD" || answer.body == raw.bytes);
        }
    }
    world.get("/v2/a/b/manifests/other").await.refuses(404, "MANIFEST_UNKNOWN");
    world.get("/v2/a/manifests/latest").await.refuses(404, "NAME_UNKNOWN");
    world.get("/v2/a/b/manifests/.INVALID").await.refuses(404, "MANIFEST_UNKNOWN");
    world.get("/v2/a/b/manifests/sha256:baddigeststring").await.refuses(400, "DIGEST_INVALID");
}

#[tokio::test]
async fn what_cannot_be_a_manifest_is_refused() {
    let world = World::new();
    let raw = world.image("a", "x").await;
    let put = async |reference: &str, kind: &str, body: Vec<u8>| {
        let path = format!("/v2/a/manifests/{reference}");
        world.call("PUT", &path, &[("content-type", kind)], body).await
    };
    let kind = MediaType::OCI_MANIFEST.to_string();
    put("v1", &kind, b"{".to_vec()).await.refuses(400, "MANIFEST_INVALID");
    put("v1", MediaType::OCI_INDEX.as_str(), raw.bytes.clone())
        .await
        .refuses(400, "MANIFEST_INVALID");
    put("v1", "text/html", raw.bytes.clone()).await.refuses(400, "MANIFEST_INVALID");
    put("-bad", &kind, raw.bytes.clone()).await.refuses(400, "MANIFEST_INVALID");
    let other = Digest::of(b"other").to_string();
    put(&other, &kind, raw.bytes.clone()).await.refuses(400, "DIGEST_INVALID");
    put("v1", &kind, vec![b' '; (4 << 20) + 1]).await.is(413);
    // Blobs of another repository do not count.
    world.put("b", "v1", &raw).await.refuses(404, "MANIFEST_BLOB_UNKNOWN");
    world.get("/v2/b/tags/list").await.is(404);
    assert!(!world.has_file(&raw.digest), "a refused manifest leaves no file");
    let sparse = World::with(Settings { missing: Missing::Accept, ..Settings::default() });
    sparse.put("b", "v1", &raw).await.is(201);
}

#[tokio::test]
async fn strange_but_legal_manifests_are_kept() {
    let world = World::new();
    let empty = index(&[]);
    world.put("a", "empty-index", &empty).await.is(201);
    let nested = index(&[&empty]);
    world.put("a", "nested", &nested).await.is(201);
    let config = world.blob("a", b"{}").await;
    let foreign = r#"{"mediaType":"application/vnd.oci.image.layer.nondistributable.v1.tar","size":9,"digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;
    let text = format!(
        r#"{{ "schemaVersion":2, "later":[1], "config":{{"mediaType":"application/vnd.oci.empty.v1+json","size":2,"digest":"{}","data":"e30="}}, "layers":[{foreign}] }}"#,
        config.digest
    );
    let kind = [("content-type", MediaType::OCI_MANIFEST.as_str().to_owned())];
    let kind = [(kind[0].0, kind[0].1.as_str())];
    world.call("PUT", "/v2/a/manifests/odd", &kind, text.clone()).await.is(201);
    assert_eq!(world.get("/v2/a/manifests/odd").await.is(200).body, text);
    let big = format!(r#"{{"schemaVersion":2,"manifests":[],"pad":"{}"}}"#, "x".repeat(3_900_000));
    let kind = [("content-type", "application/vnd.oci.image.index.v1+json")];
    world.call("PUT", "/v2/a/manifests/big", &kind, big.clone()).await.is(201);
    assert_eq!(world.get("/v2/a/manifests/big").await.is(200).body, big);
}

#[tokio::test]
async fn sha512_addresses_are_kept_as_asked() {
    let world = World::new();
    let raw = world.image("a", "x").await;
    let mut hasher = Hasher::new(Algorithm::Sha512);
    hasher.update(&raw.bytes);
    let digest = hasher.finish().to_string();
    let put = world.put("a", &format!("{digest}?tag=one&tag=two"), &raw).await.is(201);
    assert_eq!(put.header("docker-content-digest"), digest);
    assert_eq!(put.header("oci-tag"), "one, two");
    for reference in ["one", "two", &digest] {
        let answer = world.get(&format!("/v2/a/manifests/{reference}")).await.is(200);
        assert_eq!(answer.header("docker-content-digest"), digest);
    }
    world.get(&format!("/v2/a/manifests/{}", raw.digest)).await.is(404);
    let many = (0..65).map(|n| format!("tag=t{n}")).collect::<Vec<_>>().join("&");
    world.put("a", &format!("{digest}?{many}"), &raw).await.is(414);
    world.put("a", &format!("{digest}?tag=b@d"), &raw).await.is(400);
}

#[tokio::test]
async fn versions_stay_and_other_tags_move() {
    let world = World::new();
    let one = world.push("a", "latest", "one").await;
    world.put("a", "v1.0.0", &one).await.is(201);
    let two = world.push("a", "latest", "two").await;
    world.put("a", "v1.0.0", &one).await.is(201);
    let refused = world.put("a", "v1.0.0", &two).await.refuses(409, "DENIED");
    assert!(
        refused.json()["errors"][0]["message"].as_str().unwrap().contains("push a new version")
    );
    let latest = world.get("/v2/a/manifests/latest").await;
    assert_eq!(latest.header("docker-content-digest"), two.digest.to_string());
    let loose = World::with(Settings { versions: Versions::Move, ..Settings::default() });
    loose.push("a", "v1.0.0", "one").await;
    loose.push("a", "v1.0.0", "two").await;
}

#[tokio::test]
async fn deleted_manifests_are_gone_at_once_with_their_tags() {
    let world = World::new();
    let raw = world.push("a", "one", "x").await;
    world.put("a", "two", &raw).await.is(201);
    world.get("/v2/a/manifests/one").await.is(200);
    world.delete("/v2/a/manifests/one").await.is(202);
    world.get("/v2/a/manifests/one").await.refuses(404, "MANIFEST_UNKNOWN");
    world.delete("/v2/a/manifests/one").await.refuses(404, "MANIFEST_UNKNOWN");
    world.get("/v2/a/manifests/two").await.is(200);
    let path = format!("/v2/a/manifests/{}", raw.digest);
    world.get(&path).await.is(200);
    world.delete(&path).await.is(202);
    for gone in [path.as_str(), "/v2/a/manifests/two"] {
        world.head(gone).await.is(404);
    }
    assert_eq!(world.get("/v2/a/tags/list").await.is(200).json()["tags"], serde_json::json!([]));
    world.put("a", "two", &raw).await.is(201);
}

#[tokio::test]
async fn a_subject_is_acknowledged_and_need_not_be_there() {
    let world = World::new();
    let subject = world.image("elsewhere", "subject").await;
    let config = world.blob("a", b"{}").await;
    let raw = artifact(config, &subject, "application/x.sig", "n");
    let put = world.put("a", &raw.digest.to_string(), &raw).await.is(201);
    assert_eq!(put.header("oci-subject"), subject.digest.to_string());
    assert!(put.headers.get("oci-tag").is_none());
}

#[tokio::test]
async fn observers_hear_of_everything_and_hinder_nothing() {
    let world = World::new();
    let mut events = world.registry.observe();
    let idle = world.registry.observe();
    let one = world.push("a", "v", "one").await;
    let two = world.push("a", "v", "two").await;
    world.delete("/v2/a/manifests/v").await.is(202);
    world.delete(&format!("/v2/a/manifests/{}", one.digest)).await.is(202);
    let (repository, tag) = (Name::parse("a").unwrap(), Tag::parse("v").unwrap());
    let tagged = |before, digest| Event::Tagged {
        repository: repository.clone(),
        tag: tag.clone(),
        before,
        digest,
    };
    let pushed = |digest| Event::Pushed { repository: repository.clone(), digest };
    for expected in [
        pushed(one.digest.clone()),
        tagged(None, one.digest.clone()),
        pushed(two.digest.clone()),
        tagged(Some(one.digest.clone()), two.digest.clone()),
        Event::Untagged { repository: repository.clone(), tag: tag.clone() },
        Event::Deleted { repository: repository.clone(), digest: one.digest.clone() },
    ] {
        let mut event = events.recv().await.unwrap();
        while let Event::Completed { repository: place, .. } = &event {
            assert_eq!(*place, repository, "blobs come before what names them");
            event = events.recv().await.unwrap();
        }
        assert_eq!(event, expected);
    }
    drop(idle);
    // One that missed something looks again.
    let left = world.registry.manifests(&repository, "", 10).await.unwrap();
    assert_eq!((left.items, left.more), (vec![two.digest], false));
}
