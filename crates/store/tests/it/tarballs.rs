//! Archives: what we write, what we read, what we refuse.

use crate::{chain, hold, tag};
use bytes::Bytes;
use oci::{Descriptor, Digest, Identifier, Index, Manifest, MediaType, Raw};
use std::io::Write;
use std::path::{Path, PathBuf};
use store::tarball::{Layer, LayerContent};
use store::{Layout, Memory, Store, Tarball, TarballSink, suite};

const GZIP: &[u8] = b"\x1f\x8b\x08 not really gzip, but it begins like it";

fn layer(content: &'static [u8]) -> Layer {
    let media_type = MediaType::DOCKER_LAYER_GZIP;
    Layer {
        descriptor: Descriptor::of(media_type, content),
        content: LayerContent::Bytes(Bytes::from_static(content)),
    }
}

fn config(layers: &[&[u8]], labelled: bool) -> Vec<u8> {
    let ids: Vec<Digest> = layers.iter().map(|each| Digest::of(each)).collect();
    let labels: serde_json::Map<_, _> = ids
        .iter()
        .filter(|_| labelled)
        .map(|id| (format!("io.crossplane.xpkg:{id}"), "base".into()))
        .collect();
    let json = serde_json::json!({
        "architecture": "", "os": "", "config": {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": ids},
    });
    serde_json::to_vec(&json).unwrap()
}

fn written(directory: &Path) -> (PathBuf, Raw) {
    let path = directory.join("x.xpkg");
    let raw = store::tarball::write(&path, &config(&[GZIP], true), &[layer(GZIP)]).unwrap();
    (path, raw)
}

/// An archive of any entries.
fn archive(path: &Path, entries: &[(&str, &[u8])]) {
    let mut builder = tar::Builder::new(fs_err::File::create(path).unwrap());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.finish().unwrap();
}

async fn refusal(path: &Path) -> String {
    chain(&Tarball::open(path).await.unwrap_err())
}

#[tokio::test]
async fn what_is_written_is_read_back_with_its_annotation() {
    let directory = tempfile::tempdir().unwrap();
    let (path, raw) = written(directory.path());
    let tarball = Tarball::open(&path).await.unwrap();
    // Any tag means the only image.
    let read = tarball.manifest(&tag("whatever")).await.unwrap().unwrap();
    assert_eq!(read, raw);
    assert_eq!(tarball.only().unwrap(), raw.digest);
    let layers = &read.manifest().unwrap().layers;
    assert_eq!(layers[0].annotations["io.crossplane.xpkg"], "base");
    let bytes = store::fetch_bytes(&tarball, &layers[0], 100).await.unwrap();
    assert_eq!(bytes, GZIP);
    let missing = Identifier::Digest(Digest::of(b"other"));
    assert!(tarball.manifest(&missing).await.unwrap().is_none());
    assert!(tarball.tags().await.unwrap().is_empty());
}

#[test]
fn the_same_image_is_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = written(directory.path());
    let one = fs_err::read(&path).unwrap();
    let (path, _) = written(directory.path());
    assert_eq!(one, fs_err::read(&path).unwrap());
    assert_eq!(&one[257..265], b"ustar\x0000");
    assert_eq!(one.len() % 512, 0);
    assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_layer_that_lies_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.xpkg");
    let mut lying = layer(GZIP);
    lying.content = LayerContent::Bytes(Bytes::from_static(b"short"));
    let config = config(&[GZIP], true);
    let error = store::tarball::write(&path, &config, &[lying.clone()]).unwrap_err();
    assert_eq!(error.advice(), store::Advice::Corrupt);
    lying.content = LayerContent::Bytes(Bytes::from(vec![0; GZIP.len()]));
    let error = store::tarball::write(&path, &config, &[lying]).unwrap_err();
    assert!(chain(&error).contains("instead of sha256:"), "{}", chain(&error));
    assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_sink_collects_and_writes_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.xpkg");
    let sink = TarballSink::create(&path).await.unwrap();
    hold(suite::missing_things_are_answers(&sink).await);
    hold(suite::blobs_come_back(&sink).await);
    hold(suite::wrong_bytes_are_refused(&sink).await);
    hold(suite::big_blobs_stream(&sink).await);
    let raw = suite::image(&sink, "text").await.unwrap();
    sink.put_manifest(&tag("v1"), &raw).await.unwrap();
    assert!(!path.exists());
    let expected = sink.finish().await.unwrap();
    assert_eq!(expected, raw);
    let tarball = Tarball::open(&path).await.unwrap();
    assert_eq!(tarball.manifest(&tag("v1")).await.unwrap().unwrap(), raw);
    assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_sink_refuses_what_it_would_lose() {
    let directory = tempfile::tempdir().unwrap();
    let sink = TarballSink::create(directory.path().join("x.xpkg")).await.unwrap();
    let raw = suite::image(&sink, "text").await.unwrap();
    let mut manifest = raw.manifest().unwrap().clone();
    manifest.layers[0].annotations.insert("io.crossplane.xpkg".into(), "base".into());
    let annotated = Raw::from_manifest(&manifest).unwrap();
    let error = sink.put_manifest(&tag("v1"), &annotated).await.unwrap_err();
    assert!(chain(&error).contains("would lose"), "{}", chain(&error));
    let index = Raw::from_index(&Index::oci(vec![raw.descriptor()])).unwrap();
    let error = sink.put_manifest(&tag("v1"), &index).await.unwrap_err();
    assert!(chain(&error).contains("layout directory"), "{}", chain(&error));
    sink.put_manifest(&tag("v1"), &raw).await.unwrap();
    let second = suite::image(&sink, "second").await.unwrap();
    assert!(sink.put_manifest(&tag("v2"), &second).await.is_err());
}

#[tokio::test]
async fn a_sink_without_an_image_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let sink = TarballSink::create(directory.path().join("x.xpkg")).await.unwrap();
    assert!(sink.finish().await.is_err());
    assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn several_images_are_told_apart_by_their_tags() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("two.tar");
    let (one, two) = (config(&[GZIP], false), config(&[b"plain tar"], false));
    let manifest = br#"[{"Config":"one.json","RepoTags":["r.io/a:v1"],"Layers":["l/one"]},
        {"Config":"two.json","RepoTags":["r.io:5000/a:v2"],"Layers":["l/two"]}]"#;
    let entries: &[(&str, &[u8])] = &[
        ("one.json", &one),
        ("two.json", &two),
        ("l/one", GZIP),
        ("l/two", b"plain tar"),
        ("manifest.json", manifest),
    ];
    archive(&path, entries);
    let tarball = Tarball::open(&path).await.unwrap();
    assert_eq!(tarball.tags().await.unwrap(), ["v1", "v2"]);
    let second = tarball.manifest(&tag("v2")).await.unwrap().unwrap();
    assert_eq!(second.manifest().unwrap().layers[0].media_type, MediaType::DOCKER_LAYER);
    let error = chain(&tarball.manifest(&tag("v3")).await.unwrap_err());
    assert!(error.contains("r.io/a:v1, r.io:5000/a:v2"), "{error}");
    assert!(tarball.only().is_err());
}

#[tokio::test]
async fn dockers_links_are_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docker25.tar");
    let config = config(&[GZIP, GZIP], false);
    let blob = format!("blobs/sha256/{}", Digest::of(GZIP).hex());
    let manifest =
        format!(r#"[{{"Config":"./c.json","RepoTags":null,"Layers":["{blob}","abc/layer.tar"]}}]"#);
    let mut builder = tar::Builder::new(fs_err::File::create(&path).unwrap());
    for (name, content) in
        [("c.json", &config[..]), (&blob, GZIP), ("manifest.json", manifest.as_bytes())]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content).unwrap();
    }
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "abc/layer.tar", format!("../{blob}")).unwrap();
    builder.finish().unwrap();
    let tarball = Tarball::open(&path).await.unwrap();
    let raw = tarball.manifest(&tag("any")).await.unwrap().unwrap();
    let layers = &raw.manifest().unwrap().layers;
    assert_eq!(layers[0].digest, layers[1].digest);
}

#[tokio::test]
async fn an_oci_archive_is_read_too() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("layout");
    let layout = Layout::create(&root).await.unwrap();
    let raw = suite::image(&layout, "text").await.unwrap();
    layout.put_manifest(&tag("v1"), &raw).await.unwrap();
    let path = directory.path().join("oci.tar");
    let mut builder = tar::Builder::new(fs_err::File::create(&path).unwrap());
    builder.append_dir_all(".", &root).unwrap();
    builder.finish().unwrap();
    let tarball = Tarball::open(&path).await.unwrap();
    assert_eq!(tarball.manifest(&tag("v1")).await.unwrap().unwrap(), raw);
    assert_eq!(tarball.tags().await.unwrap(), ["v1"]);
    let to = Memory::new();
    let options = store::CopyOptions::new();
    let id = tag("v1");
    let copied = store::copy(&tarball, &id, &to, &id, &options, std::sync::Arc::new(())).await;
    assert_eq!(copied.unwrap().blobs_copied, 2);
}

#[tokio::test]
async fn broken_archives_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.xpkg");
    fs_err::write(&path, GZIP).unwrap();
    assert!(refusal(&path).await.contains("compressed with gzip"));
    archive(&path, &[("hello.txt", b"hello")]);
    assert!(refusal(&path).await.contains("neither manifest.json nor index.json"));
    archive(&path, &[("manifest.json", br#"[{"Config":"../etc/passwd","Layers":[]}]"#)]);
    assert!(refusal(&path).await.contains("names the file `../etc/passwd`"));
    archive(&path, &[("manifest.json", b"{}")]);
    assert!(refusal(&path).await.contains("manifest.json is not valid JSON"));
    let config = config(&[GZIP], true);
    archive(&path, &[("c", &config), ("manifest.json", br#"[{"Config":"c","Layers":[]}]"#)]);
    assert!(refusal(&path).await.contains("describes 1 layers but it has 0"));
    fs_err::write(&path, b"this is not an archive at all").unwrap();
    Tarball::open(&path).await.unwrap_err();
    fs_err::write(&path, b"").unwrap();
    Tarball::open(&path).await.unwrap_err();
}

#[tokio::test]
async fn a_truncated_archive_is_refused_wherever_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = written(directory.path());
    let whole = fs_err::read(&path).unwrap();
    // Without the two blocks of zeros at the end it is still whole for us.
    for length in (0..whole.len() - 1536).step_by(100) {
        let mut file = fs_err::File::create(&path).unwrap();
        file.write_all(&whole[..length]).unwrap();
        assert!(Tarball::open(&path).await.is_err(), "cut at {length} of {}", whole.len());
    }
}

#[test]
fn a_manifest_made_again_is_a_docker_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let (_, raw) = written(directory.path());
    let config = Descriptor::of(MediaType::DOCKER_CONFIG, &config(&[GZIP], true));
    let mut layer = Descriptor::of(MediaType::DOCKER_LAYER_GZIP, GZIP);
    layer.annotations.insert("io.crossplane.xpkg".into(), "base".into());
    let expected = Raw::from_manifest(&Manifest::docker(config, vec![layer])).unwrap();
    assert_eq!(raw, expected);
}

#[tokio::test]
async fn long_names_are_read_within_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.tar");
    let long = format!("{}/layer.tar", "d".repeat(200));
    let config = config(&[GZIP], false);
    let manifest = format!(r#"[{{"Config":"c.json","RepoTags":null,"Layers":["{long}"]}}]"#);
    let entries: &[(&str, &[u8])] =
        &[("c.json", &config), (&long, GZIP), ("manifest.json", manifest.as_bytes())];
    archive(&path, entries);
    assert_eq!(Tarball::open(&path).await.unwrap().images().len(), 1);
    // The same with a record as Go writes it.
    let mut builder = tar::Builder::new(fs_err::File::create(&path).unwrap());
    builder.append_pax_extensions([("path", long.as_bytes())]).unwrap();
    for (name, content) in [("short", GZIP), entries[0], entries[2]] {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content).unwrap();
    }
    builder.finish().unwrap();
    drop(builder);
    assert_eq!(Tarball::open(&path).await.unwrap().images().len(), 1);
    archive(&path, &[(&"n".repeat(1 << 20), b"x"), ("manifest.json", b"[]")]);
    assert!(refusal(&path).await.contains("has more than the 65536 bytes allowed"));
}

#[test]
fn a_damaged_archive_is_refused_or_read_right() {
    let directory = tempfile::tempdir().unwrap();
    let (path, raw) = written(directory.path());
    let whole = fs_err::read(&path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let strategy = proptest::collection::vec((0..whole.len(), proptest::num::u8::ANY), 1..4);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let outcome = runner.run(&strategy, |changes| {
        let mut bytes = whole.clone();
        for (position, byte) in changes {
            bytes[position] = byte;
        }
        fs_err::write(&path, bytes).unwrap();
        runtime.block_on(async {
            let Ok(tarball) = Tarball::open(&path).await else {
                return;
            };
            let Ok(Some(read)) = tarball.manifest(&tag("v1")).await else {
                return;
            };
            // Another image may be read, but not the same one with other bytes.
            if read.digest == raw.digest {
                let layer = &raw.manifest().unwrap().layers[0];
                let bytes = store::fetch_bytes(&tarball, layer, 100).await.unwrap();
                assert_eq!(bytes, GZIP);
            }
        });
        Ok(())
    });
    outcome.unwrap();
}
