//! The same image, laid down by umoci.

use super::craft::{CraftedImage, options, pull_into};
use super::model::read_node;
use oci::Identifier;
use std::process::Command;
use store::{Layout, Store};

/// Layers as tools write them: names before what is in them, links and whiteouts of all kinds.
const LAYERS: [&[&str]; 4] = [
    // With the places that apron makes for mounts, so that both come to the same.
    &[
        "proc/",
        "sys/",
        "dev/",
        "etc/",
        "etc/hosts=",
        "etc/hostname=",
        "etc/resolv.conf=",
        "usr/",
        "usr/lib/",
        "usr/lib/a=1",
        "lib->usr/lib",
        "etc/passwd=root",
        "tmp/x/y=z",
    ],
    &["lib/b=2", "etc/.wh.passwd=", "etc/group=g", "etc/group2=>etc/group", "run->/var/run"],
    &["tmp/", "tmp/.wh..wh..opq=", "tmp/new=3", "etc/group=other", "run/pid=4", "usr/lib/a/"],
    &["lib/.wh.b=", "lib/c=>etc/group2", "opt->nowhere", "opt/", "opt/f=5", "etc/group2->group"],
];

#[tokio::test]
async fn an_image_comes_to_what_umoci_makes_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let image = CraftedImage::of(&LAYERS);
    let pulled = pull_into(&directory.path().join("images"), &image, options()).await.unwrap();
    let layout = Layout::create(directory.path().join("layout")).await.unwrap();
    let raw = image.put(&layout).await;
    layout.put_manifest(&Identifier::Tag("v1".to_owned()), &raw).await.unwrap();
    let bundle = directory.path().join("bundle");
    let unpacked = Command::new("umoci")
        .args(["unpack", "--rootless", "--image"])
        .arg(format!("{}:v1", layout.path().display()))
        .arg(&bundle)
        .output()
        .expect("umoci is needed; scripts/setup test installs it");
    assert!(unpacked.status.success(), "{}", String::from_utf8_lossy(&unpacked.stderr));
    assert_eq!(read_node(&pulled.rootfs), read_node(&bundle.join("rootfs")));
}
