//! The layout directory: the suite, crashes, and two writers at once.

use crate::{hold, tag};
use oci::{Descriptor, MediaType};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use store::{Layout, Store};

#[tokio::test]
async fn a_layout_obeys_the_laws() {
    let directory = tempfile::tempdir().unwrap();
    hold(store::suite::run(&Layout::create(directory.path().join("new")).await.unwrap()).await);
}

#[tokio::test]
async fn a_layout_is_read_back_by_another_process() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::create(directory.path()).await.unwrap();
    let raw = store::suite::image(&layout, "text").await.unwrap();
    layout.put_manifest(&tag("v1"), &raw).await.unwrap();
    let again = Layout::open(directory.path()).await.unwrap();
    assert_eq!(again.manifest(&tag("v1")).await.unwrap().unwrap(), raw);
    let marker = fs_err::read_to_string(directory.path().join("oci-layout")).unwrap();
    assert_eq!(marker, r#"{"imageLayoutVersion":"1.0.0"}"#);
    let entries = fs_err::read_dir(directory.path()).unwrap();
    let names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|it| it.starts_with(".apron-") && it != ".apron-lock"), "{names:?}");
}

#[tokio::test]
async fn a_directory_that_is_no_layout_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = Layout::open(directory.path()).await.unwrap_err();
    assert_eq!(error.advice(), store::Advice::NotFound);
}

#[tokio::test]
async fn leftovers_of_a_crash_do_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::create(directory.path()).await.unwrap();
    fs_err::write(directory.path().join(".apron-Ab12Cd"), b"half a blob").unwrap();
    let raw = store::suite::image(&layout, "text").await.unwrap();
    layout.put_manifest(&tag("v1"), &raw).await.unwrap();
    assert_eq!(layout.tags().await.unwrap(), ["v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_once_lose_no_tag() {
    let directory = tempfile::tempdir().unwrap();
    let mut writers = Vec::new();
    for writer in 0..4 {
        let layout = Layout::create(directory.path()).await.unwrap();
        writers.push(tokio::spawn(async move {
            for number in 0..8 {
                let name = format!("w{writer}-{number}");
                let raw = store::suite::image(&layout, &name).await.unwrap();
                layout.put_manifest(&tag(&name), &raw).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let layout = Layout::open(directory.path()).await.unwrap();
    assert_eq!(layout.tags().await.unwrap().len(), 32);
}

#[tokio::test]
async fn a_blob_changed_on_the_disk_does_not_end_well() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::create(directory.path()).await.unwrap();
    let descriptor = Descriptor::of(MediaType::OCTET_STREAM, b"honest");
    layout.put_blob(&descriptor, &bytes::Bytes::from_static(b"honest")).await.unwrap();
    let path = directory.path().join("blobs/sha256").join(descriptor.digest.hex());
    fs_err::write(path, b"hijack").unwrap();
    let error = store::fetch_bytes(&layout, &descriptor, 100).await.unwrap_err();
    assert_eq!(error.advice(), store::Advice::Corrupt);
}

#[tokio::test]
async fn a_fetched_blob_is_whole_before_it_can_be_read() {
    use std::io::{Read, Seek, SeekFrom};
    let layout = store::Memory::new();
    let scratch = tempfile::tempdir().unwrap();
    let descriptor = Descriptor::of(MediaType::OCTET_STREAM, b"honest bytes");
    layout.put_blob(&descriptor, &bytes::Bytes::from_static(b"honest bytes")).await.unwrap();
    let blob = store::fetch_to_file(&layout, &descriptor, 100, scratch.path()).await.unwrap();
    let (mut one, mut two) = (blob.open(), blob.open());
    let mut text = String::new();
    one.seek(SeekFrom::Start(7)).unwrap();
    one.read_to_string(&mut text).unwrap();
    two.read_to_string(&mut text).unwrap();
    assert_eq!(text, "byteshonest bytes");
    assert_eq!(fs_err::read_dir(scratch.path()).unwrap().count(), 0);
    let error = store::fetch_to_file(&layout, &descriptor, 5, scratch.path()).await.unwrap_err();
    assert_eq!(error.advice(), store::Advice::TooLarge);
}

/// Writes images into the working directory until it is killed. Run by the test below, which
/// says where by a file.
#[tokio::test]
#[ignore = "never ends; it is the process that the next test kills"]
async fn a_writer_to_be_killed() {
    let root = std::env::current_dir().unwrap();
    if !root.join(CONSENT).exists() {
        return;
    }
    let layout = Layout::create(root.join("layout")).await.unwrap();
    let first = layout.tags().await.unwrap().len();
    for number in first.. {
        let name = format!("t{number}");
        let raw = store::suite::image(&layout, &name).await.unwrap();
        layout.put_manifest(&tag(&name), &raw).await.unwrap();
        println!("tagged {name}");
    }
}

const CONSENT: &str = "a-writer-may-write-here";

#[tokio::test]
async fn a_writer_killed_at_any_moment_leaves_a_valid_layout() {
    let directory = tempfile::tempdir().unwrap();
    fs_err::write(directory.path().join(CONSENT), "").unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..12 {
        acknowledged.extend(write_and_kill(directory.path(), round));
        let layout = Layout::create(directory.path().join("layout")).await.unwrap();
        let tags = layout.tags().await.unwrap();
        let lost: Vec<&String> = acknowledged.iter().filter(|it| !tags.contains(it)).collect();
        assert!(lost.is_empty(), "{lost:?}");
        for name in tags {
            let raw = layout.manifest(&tag(&name)).await.unwrap().unwrap();
            let manifest = raw.manifest().unwrap();
            for blob in manifest.layers.iter().chain([&manifest.config]) {
                store::fetch_bytes(&layout, blob, 1 << 20).await.unwrap();
            }
        }
    }
}

/// Lets a writer report some tags, kills it, and gives all it reported.
fn write_and_kill(root: &std::path::Path, tags: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "directory::a_writer_to_be_killed", "--ignored", "--nocapture"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut reported =
        lines.filter_map(|it| it.split_once("tagged ").map(|(_, tag)| tag.to_owned()));
    let mut seen: Vec<String> = reported.by_ref().take(tags + 1).collect();
    assert_eq!(seen.len(), tags + 1, "the writer died by itself");
    child.kill().unwrap();
    seen.extend(reported);
    child.wait().unwrap();
    seen
}
