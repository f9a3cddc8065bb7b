//! `apron image build`: an image of the program under test, that runs with nothing below it.

use crate::support::{Registry, Scratch, apron, command_at, program};
use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;

#[test]
fn h7_the_image_runs_from_nothing_and_is_the_same_each_time() {
    let (scratch, registry) = (Scratch::new(), Registry::start());
    let said = apron(&scratch, ["image", "build"]).ok();
    assert!(said.stdout.starts_with("built an image of apron for linux/"), "{}", said.stdout);
    let built: Json = serde_json::from_str(
        &apron(&scratch, ["image", "build", "-o", "again.tar", "--output", "json"]).ok().stdout,
    )
    .unwrap();
    let bytes = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(bytes("apron.tar") == bytes("again.tar"), "two builds gave other bytes");

    // Tools of others read it, from the file and from a registry.
    let there = registry.reference("platform/apron:v1");
    apron(&scratch, ["copy", "apron.tar", &there]).ok();
    let inspected = program(
        &scratch,
        "skopeo",
        ["inspect", "--tls-verify=false", "--config", &format!("docker://{there}")],
    );
    let config: Json = serde_json::from_str(&inspected.ok().stdout).unwrap();
    assert_eq!(config["config"]["User"], "65532:65532");
    let loaded = command_at(&scratch, Path::new("podman"))
        .args(["--root", "store", "--runroot", "run", "load", "-i", "apron.tar"])
        .output()
        .unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));

    // With nothing but its own files it starts.
    let root = scratch.join("root");
    let layout = format!("oci:{}:v1", scratch.join("layout").display());
    apron(&scratch, ["copy", "apron.tar", &layout]).ok();
    unpack(&scratch, &root);
    assert!(
        built["files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|path| { root.join(path.as_str().unwrap()).is_file() })
    );
    let entrypoint = config["config"]["Entrypoint"][0].as_str().unwrap();
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "chroot"])
        .arg(&root)
        .args([entrypoint, "version"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&ran.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && words.contains(env!("CARGO_PKG_VERSION")), "{words}{wrong}");
}

/// Unpacks the only layer of the layout, with the system's own tar.
fn unpack(scratch: &Scratch, root: &Path) {
    fs_err::create_dir_all(root).unwrap();
    let read = |path: &str| -> Json {
        serde_json::from_slice(&fs_err::read(scratch.join(path)).unwrap()).unwrap()
    };
    let blob = |digest: &Json| {
        format!("layout/blobs/sha256/{}", digest.as_str().unwrap().trim_start_matches("sha256:"))
    };
    let manifest = read(&blob(&read("layout/index.json")["manifests"][0]["digest"]));
    let layer = scratch.join(blob(&manifest["layers"][0]["digest"]));
    let layer = layer.to_str().unwrap();
    program(scratch, "tar", ["-xzf", layer, "-C", root.to_str().unwrap()]).ok();
}
