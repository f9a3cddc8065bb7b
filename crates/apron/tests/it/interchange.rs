//! Packages move between apron and everybody else's tools without loss.

use crate::support::{Ran, Registry, Scratch, apron, corpora, package_sources, peer, program};
use serde_json::Value;
use std::path::{Path, PathBuf};

const MANIFEST_TYPES: &str = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

/// `(apiVersion, kind, name)` of everything in a package, metadata included, sorted.
fn objects(scratch: &Scratch, package: &str) -> Vec<(String, String, String)> {
    let shown = json(&apron(scratch, ["inspect", package, "-o", "json"]).ok());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let identity = |one: &Value| (text(&one["apiVersion"]), text(&one["kind"]), text(&one["name"]));
    let mut all: Vec<_> = shown["objects"].as_array().unwrap().iter().map(identity).collect();
    all.push(identity(&shown["package"]));
    all.sort();
    all
}

/// A package directory that holds the 2,065 CRDs and a Provider.
fn big_package(scratch: &Scratch, corpus: &Path) -> String {
    let _ = fs_err::remove_dir_all(scratch.join("big"));
    let meta =
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-aws\n";
    scratch.write("big/crossplane.yaml", meta);
    fs_err::create_dir_all(scratch.join("big/crds")).unwrap();
    for entry in fs_err::read_dir(corpus.join("crds")).unwrap() {
        let entry = entry.unwrap();
        fs_err::copy(entry.path(), scratch.join("big/crds").join(entry.file_name())).unwrap();
    }
    "big".to_owned()
}

/// A provider and a function, our own and the real ones if they are there.
fn small_packages() -> impl Iterator<Item = (&'static str, PathBuf)> {
    ["provider-nop", "function-auto-ready"]
        .into_iter()
        .flat_map(|name| package_sources(name).into_iter().map(move |source| (name, source)))
}

fn upstream_extracts(scratch: &Scratch, package: &str) {
    peer(scratch, "crossplane", ["xpkg", "extract", "--from-xpkg", package, "-o", "up.gz"]).ok();
    apron(scratch, ["extract", package, "-o", "our.gz"]).ok();
    assert_eq!(gunzip(&scratch.join("our.gz")), gunzip(&scratch.join("up.gz")));
}

fn gunzip(path: &Path) -> Vec<u8> {
    std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap().stdout
}

#[test]
fn upstream_reads_what_apron_builds() {
    let scratch = Scratch::new();
    for (name, source) in small_packages() {
        scratch.copy_package_from(&source, name);
        let file = format!("{name}.xpkg");
        apron(&scratch, ["build", name, "-o", &file]).ok();
        upstream_extracts(&scratch, &file);
    }
}

#[test]
fn apron_reads_what_upstream_builds_with_the_same_objects() {
    let scratch = Scratch::new();
    for (name, source) in small_packages() {
        scratch.copy_package_from(&source, name);
        peer(&scratch, "crossplane", ["xpkg", "build", "-f", name, "-o", "up.xpkg"]).ok();
        apron(&scratch, ["build", name, "-o", "our.xpkg"]).ok();
        assert_eq!(objects(&scratch, "up.xpkg"), objects(&scratch, "our.xpkg"));
        assert_eq!(objects(&scratch, "up.xpkg"), objects(&scratch, name));
        // Nothing is wrong with it but that nothing was embedded to run.
        let checked = apron(&scratch, ["lint", "up.xpkg"]).ok().stdout;
        assert!(checked.contains("[runtime-missing]"), "{checked}");
        assert!(checked.ends_with("0 errors, 1 warning\n"), "{checked}");
    }
}

#[test]
fn the_largest_provider_travels_everywhere() {
    for corpus in corpora() {
        large_provider_travels(&corpus);
    }
}

fn large_provider_travels(corpus: &Path) {
    let scratch = Scratch::new();
    let registry = Registry::start();
    let big = big_package(&scratch, corpus);
    apron(&scratch, ["build", &big, "-o", "big.xpkg"]).ok();
    upstream_extracts(&scratch, "big.xpkg");
    assert_eq!(objects(&scratch, "big.xpkg").len(), 2066);
    // skopeo takes the file for what it is, a docker-save archive.
    program(
        &scratch,
        "skopeo",
        ["copy", "--insecure-policy", "docker-archive:big.xpkg", "dir:skopeo"],
    )
    .ok();
    // Both push the file to the same digest.
    let ours = registry.reference("ours/provider-aws:v1");
    let theirs = registry.reference("theirs/provider-aws:v1");
    let pushed = json(&apron(&scratch, ["push", "-f", "big.xpkg", &ours, "-o", "json"]).ok());
    peer(&scratch, "crossplane", ["xpkg", "push", "-f", "big.xpkg", &theirs]).ok();
    let digest = |reference: &str| peer(&scratch, "crane", ["digest", reference]).ok().stdout;
    assert_eq!(digest(&ours).trim(), pushed["digest"].as_str().unwrap());
    assert_eq!(digest(&ours), digest(&theirs));
    assert_eq!(objects(&scratch, &ours).len(), 2066);
}

#[test]
fn the_base_layer_is_annotated_in_the_registry() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    apron(&scratch, ["build", "provider-nop", "-o", "nop.xpkg"]).ok();
    apron(&scratch, ["push", "-f", "nop.xpkg", &registry.reference("p/nop:v1")]).ok();
    let manifest = registry.get("/v2/p/nop/manifests/v1", MANIFEST_TYPES);
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["layers"][0]["annotations"]["io.crossplane.xpkg"], "base");
    assert_eq!(manifest["mediaType"], "application/vnd.docker.distribution.manifest.v2+json");
    // An independent client finds nothing wrong with it.
    peer(&scratch, "crane", ["validate", "--remote", &registry.reference("p/nop:v1")]).ok();
}

#[test]
fn a_package_comes_back_from_a_registry_as_it_went() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    let there = registry.reference("p/nop:v1");
    for builder in ["apron", "crossplane"] {
        if builder == "apron" {
            apron(&scratch, ["build", "provider-nop", "-o", "a.xpkg"]).ok();
        } else {
            let words = ["xpkg", "build", "-f", "provider-nop", "-o", "a.xpkg"];
            peer(&scratch, builder, words).ok();
        }
        apron(&scratch, ["push", "-f", "a.xpkg", &there]).ok();
        apron(&scratch, ["pull", &there, "-f", "b.xpkg"]).ok();
        let (went, came) =
            (fs_err::read(scratch.join("a.xpkg")), fs_err::read(scratch.join("b.xpkg")));
        assert!(went.unwrap() == came.unwrap(), "{builder}: the file differs");
    }
}

#[test]
fn copies_keep_the_digest_through_every_medium() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("function-auto-ready");
    apron(&scratch, ["build", "function-auto-ready", "-o", "f.xpkg"]).ok();
    let (one, two) = (registry.reference("one/f:v1"), registry.reference("two/f:v1"));
    let chain = [
        "f.xpkg",
        "oci:layout:v1",
        &one,
        "oci-archive:kept.tar",
        &two,
        "oci-archive:named.tar:v2",
        "oci:other:v2",
        "g.xpkg",
    ];
    let mut digests = Vec::new();
    for pair in chain.windows(2) {
        let copied = apron(&scratch, ["copy", pair[0], pair[1], "-o", "json"]).ok();
        digests.push(json(&copied)["digest"].as_str().unwrap().to_owned());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
    assert_eq!(
        fs_err::read(scratch.join("f.xpkg")).unwrap(),
        fs_err::read(scratch.join("g.xpkg")).unwrap()
    );
    // An archive is the layout it would be, for other tools too.
    fs_err::create_dir(scratch.join("unpacked")).unwrap();
    program(&scratch, "tar", ["-C", "unpacked", "-xf", "kept.tar"]).ok();
    let four = registry.reference("four/f:v1");
    peer(&scratch, "crane", ["push", "unpacked", &four]).ok();
    assert_eq!(peer(&scratch, "crane", ["digest", &four]).ok().stdout.trim(), digests[0]);
    apron(&scratch, ["inspect", "oci-archive:named.tar:v2"]).ok();
    apron(&scratch, ["inspect", "other:v2"]).ok();
    apron(&scratch, ["inspect", &format!("oci:other@{}", digests[0])]).ok();
    // A neighbouring repository's blobs are taken over, not sent again.
    let three = registry.reference("three/f:v1");
    let mounted = json(&apron(&scratch, ["copy", &one, &three, "-o", "json"]).ok());
    assert_eq!((mounted["bytes"].as_u64(), mounted["blobsMounted"].as_u64()), (Some(0), Some(2)));
    // And what is there already is not sent at all.
    let again = json(&apron(&scratch, ["copy", &one, &three, "-o", "json"]).ok());
    assert_eq!((again["blobsAlreadyThere"].as_u64(), again["bytes"].as_u64()), (Some(2), Some(0)));
}

/// A runtime image made by other tools: skopeo converts what crane makes.
fn runtime_archives(scratch: &Scratch) -> [&'static str; 3] {
    scratch.write("root/usr/local/bin/provider", "#!/bin/sh\nexec sleep infinity\n");
    program(scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    let append = ["append", "-f", "root.tar", "-t", "example.org/runtime:v1", "-o", "docker.tar"];
    peer(scratch, "crane", append).ok();
    let convert = |to: &str| {
        let words = ["copy", "--insecure-policy", "docker-archive:docker.tar", to];
        program(scratch, "skopeo", words).ok();
    };
    convert("oci-archive:oci.tar:example.org/runtime:v1");
    convert("oci:layout:v1");
    ["docker.tar", "oci.tar", "layout"]
}

#[test]
fn a_runtime_image_is_embedded_from_every_form_of_archive() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    for archive in runtime_archives(&scratch) {
        let words =
            ["build", "provider-nop", "-o", "p.xpkg", "--embed-runtime-image-tarball", archive];
        apron(&scratch, words).ok();
        upstream_extracts(&scratch, "p.xpkg");
        let there = registry.reference(&format!("p/{}:v1", archive.replace('.', "-")));
        apron(&scratch, ["push", "-f", "p.xpkg", &there]).ok();
        peer(&scratch, "crane", ["validate", "--remote", &there]).ok();
        // The runtime's file and the package are both in the flattened image.
        peer(&scratch, "crane", ["export", &there, "flat.tar"]).ok();
        let listed = program(&scratch, "tar", ["-tf", "flat.tar"]).ok().stdout;
        assert!(listed.contains("usr/local/bin/provider"), "{archive}: {listed}");
        assert!(listed.contains("package.yaml"), "{archive}: {listed}");
        assert_eq!(objects(&scratch, &there), objects(&scratch, "provider-nop"));
    }
}

#[test]
fn upstream_embeds_the_same_runtime_in_the_same_way() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    let [docker, ..] = runtime_archives(&scratch);
    let flags = ["--embed-runtime-image-tarball", docker];
    apron(&scratch, ["build", "provider-nop", "-o", "our.xpkg"].iter().chain(&flags)).ok();
    let theirs = ["xpkg", "build", "-f", "provider-nop", "-o", "up.xpkg"];
    peer(&scratch, "crossplane", theirs.iter().chain(&flags)).ok();
    let config = |file: &str| -> Value {
        let words = ["inspect", "--config", &format!("docker-archive:{file}")];
        let mut config = json(&program(&scratch, "skopeo", words).ok());
        // Layer digests differ by the compressor; everything else must not.
        config["rootfs"] = Value::Null;
        let labels = config["config"]["Labels"].as_object().unwrap().clone();
        config["config"]["Labels"] = labels.values().cloned().collect();
        config
    };
    assert_eq!(config("our.xpkg"), config("up.xpkg"));
}

/// A runtime image as people build them: with what to run, and a history that needs escapes.
fn real_runtime(scratch: &Scratch, registry: &Registry, architecture: &str) -> String {
    scratch.write("root/usr/local/bin/provider", architecture);
    program(scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    let there = registry.reference(&format!("r/{architecture}:v1"));
    let plain = ["append", "-f", "root.tar", "-t", &there, "-o", "plain.tar"];
    peer(scratch, "crane", plain).ok();
    peer(scratch, "crane", ["push", "plain.tar", &there]).ok();
    let platform = format!("linux/{architecture}");
    let mutate = [
        "mutate",
        &there,
        "--tag",
        &there,
        "--set-platform",
        &platform,
        "--user",
        "65532",
        "--entrypoint",
        "/usr/local/bin/provider",
        "--cmd",
        "a&&b",
        "--workdir",
        "/",
        "--env",
        "PATH=/usr/local/bin",
        "--exposed-ports",
        "8080/tcp",
        "--label",
        "org.example.url=https://example.org/?a=<b>&c",
    ];
    peer(scratch, "crane", mutate).ok();
    let archive = format!("{architecture}.tar");
    program(
        scratch,
        "skopeo",
        [
            "copy",
            "--insecure-policy",
            "--src-tls-verify=false",
            &format!("docker://{there}"),
            &format!("docker-archive:{archive}:example.org/r:v1"),
        ],
    )
    .ok();
    archive
}

#[test]
fn a_package_with_a_runtime_has_the_digest_that_upstream_gives_it() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    for architecture in ["amd64", "arm64"] {
        let archive = real_runtime(&scratch, &registry, architecture);
        let flags = ["--embed-runtime-image-tarball", &archive, "-o"];
        let (ours, theirs) = (format!("{architecture}.xpkg"), format!("up-{architecture}.xpkg"));
        apron(&scratch, ["build", "provider-nop"].iter().chain(&flags).chain(&[&*ours])).ok();
        let words = ["xpkg", "build", "-f", "provider-nop"];
        peer(&scratch, "crossplane", words.iter().chain(&flags).chain(&[&*theirs])).ok();
        // Digests of layers differ by the compressor; not a letter of the rest does.
        let config = |file: &str| {
            let words = ["inspect", "--raw", "--config", &format!("docker-archive:{file}")];
            let text = program(&scratch, "skopeo", words).ok().stdout;
            let mut pieces: Vec<&str> = text.split("sha256:").collect();
            for piece in pieces.iter_mut().skip(1) {
                *piece = &piece[64..];
            }
            pieces.join("sha256:")
        };
        assert_eq!(config(&ours), config(&theirs));
    }
    let digest = |reference: &str| peer(&scratch, "crane", ["digest", reference]).ok().stdout;
    for files in
        ["amd64.xpkg", "up-amd64.xpkg", "amd64.xpkg,arm64.xpkg", "arm64.xpkg,up-amd64.xpkg"]
    {
        let ours = registry.reference("ours/nop:v1");
        let theirs = registry.reference("theirs/nop:v1");
        let flags = ["-f", files, "-a", "org.example.url=https://example.org/?a&b"];
        apron(&scratch, ["push", &ours].iter().chain(&flags)).ok();
        peer(&scratch, "crossplane", ["xpkg", "push", &theirs].iter().chain(&flags)).ok();
        assert_eq!(digest(&ours), digest(&theirs), "{files}");
    }
}

#[test]
fn several_files_become_one_package_for_several_platforms() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    scratch.write("root/bin/provider", "x");
    program(&scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    for architecture in ["amd64", "arm64"] {
        let append =
            ["append", "-f", "root.tar", "-t", "example.org/team/runtime:v1", "-o", "plain.tar"];
        peer(&scratch, "crane", append).ok();
        let platform = format!("linux/{architecture}");
        let runtime = format!("{architecture}.tar");
        let there = registry.reference(&format!("r/{architecture}:v1"));
        peer(&scratch, "crane", ["push", "plain.tar", &there]).ok();
        peer(&scratch, "crane", ["mutate", "--set-platform", &platform, "-t", &there, &there]).ok();
        peer(&scratch, "crane", ["pull", &there, &runtime]).ok();
        let file = format!("{architecture}.xpkg");
        let flags = ["--embed-runtime-image-tarball", &runtime, "-o", &file];
        apron(&scratch, ["build", "provider-nop"].iter().chain(&flags)).ok();
    }
    let there = registry.reference("p/nop:v1");
    let pushed = apron(
        &scratch,
        ["push", &there, "-f", "amd64.xpkg,arm64.xpkg", "-a", "org.example.a=b", "-o", "json"],
    );
    assert_eq!(json(&pushed.ok())["platforms"], serde_json::json!(["linux/amd64", "linux/arm64"]));
    let index: Value =
        serde_json::from_str(&registry.get("/v2/p/nop/manifests/v1", MANIFEST_TYPES)).unwrap();
    assert_eq!(index["mediaType"], "application/vnd.oci.image.index.v1+json");
    assert_eq!(index["annotations"]["org.example.a"], "b");
    assert_eq!(index["manifests"][1]["platform"]["architecture"], "arm64");
    peer(&scratch, "crane", ["validate", "--remote", &there]).ok();
    peer(&scratch, "crossplane", ["xpkg", "extract", &there, "-o", "up.gz"]).ok();
    let shown = json(&apron(&scratch, ["inspect", &there, "-o", "json"]).ok());
    assert_eq!(shown["image"]["imageDigest"], index["manifests"][0]["digest"]);
    let arm = ["inspect", &there, "--platform", "linux/arm64", "-o", "json"];
    let shown = json(&apron(&scratch, arm).ok());
    assert_eq!(shown["image"]["imageDigest"], index["manifests"][1]["digest"]);
    // One of them can be taken out, as an image of its own.
    let only = registry.reference("p/arm:v1");
    apron(&scratch, ["copy", &there, &only, "--platform", "linux/arm64"]).ok();
    let untagged = ["copy", &there, "oci:arm", "--platform", "linux/arm64", "-o", "json"];
    let digests = [
        json(&apron(&scratch, untagged).ok())["digest"].clone(),
        peer(&scratch, "crane", ["digest", &only]).ok().stdout.trim().into(),
    ];
    assert_eq!(digests, [(); 2].map(|()| index["manifests"][1]["digest"].clone()));
    let none = apron(&scratch, ["copy", &there, &only, "--platform", "windows/amd64"]);
    assert!(none.all().contains("it has linux/amd64, linux/arm64"), "{}", none.all());
    // An archive of the layout keeps them all.
    apron(&scratch, ["copy", &there, "oci-archive:all.tar"]).ok();
    let back = registry.reference("p/back:v1");
    apron(&scratch, ["copy", "oci-archive:all.tar", &back]).ok();
    let digest = |reference: &str| peer(&scratch, "crane", ["digest", reference]).ok().stdout;
    assert_eq!(digest(&back), digest(&there));
}

#[test]
fn layers_and_extensions_for_other_readers_travel_with_a_package() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    // Beside the package's own files, and none of its objects.
    scratch.write("provider-nop/icons/deep/icon.svg", "<svg/>");
    scratch.write("provider-nop/icons/list.yaml", "icons: [deep/icon.svg]\n");
    scratch.write("docs/readme.md", "# words\n");
    let layer = ["--layer", "example.icons=provider-nop/icons"];
    apron(&scratch, ["build", "provider-nop", "-o", "p.xpkg"].iter().chain(&layer)).ok();
    apron(&scratch, ["build", "provider-nop", "-o", "q.xpkg"].iter().chain(&layer)).ok();
    assert!(
        fs_err::read(scratch.join("p.xpkg")).unwrap()
            == fs_err::read(scratch.join("q.xpkg")).unwrap()
    );
    upstream_extracts(&scratch, "p.xpkg");
    let (ours, theirs) = (registry.reference("ours/nop:v1"), registry.reference("theirs/nop:v1"));
    apron(&scratch, ["push", &ours, "-f", "p.xpkg"]).ok();
    peer(&scratch, "crossplane", ["xpkg", "push", "-f", "p.xpkg", &theirs]).ok();
    let digest = |reference: &str| peer(&scratch, "crane", ["digest", reference]).ok().stdout;
    assert_eq!(digest(&ours), digest(&theirs));
    let roles = |layers: &Value| {
        let layers = layers.as_array().unwrap().iter();
        layers.map(|layer| layer["role"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    let shown = json(&apron(&scratch, ["inspect", &theirs, "-o", "json"]).ok());
    assert_eq!(roles(&shown["image"]["layers"]), ["base", "example.icons"]);
    // The content for other readers is beside the image, which upstream still finds.
    let there = registry.reference("extended/nop:v1");
    apron(&scratch, ["push", &there, "-f", "p.xpkg", "--extensions", "docs"]).ok();
    peer(&scratch, "crane", ["validate", "--remote", &there]).ok();
    peer(&scratch, "crossplane", ["xpkg", "extract", &there, "-o", "up.gz"]).ok();
    apron(&scratch, ["extract", &there, "-o", "our.gz"]).ok();
    assert_eq!(gunzip(&scratch.join("our.gz")), gunzip(&scratch.join("up.gz")));
    let index: Value =
        serde_json::from_str(&registry.get("/v2/extended/nop/manifests/v1", MANIFEST_TYPES))
            .unwrap();
    let child = &index["manifests"][1];
    assert_eq!(child["annotations"]["io.crossplane.xpkg"], "xpkg-extensions");
    assert_eq!(child["platform"], Value::Null);
    apron(&scratch, ["copy", &there, "oci-archive:all.tar"]).ok();
    let back = registry.reference("back/nop:v1");
    apron(&scratch, ["copy", "oci-archive:all.tar", &back]).ok();
    assert_eq!(digest(&back), digest(&there));
    let shown = json(&apron(&scratch, ["inspect", &back, "-o", "json"]).ok());
    let extensions = &shown["image"]["extensions"];
    assert_eq!(extensions["digest"], child["digest"]);
    assert_eq!(roles(&extensions["layers"]), ["xpkg-extensions"]);
    let words = apron(&scratch, ["inspect", &back]).ok().stdout;
    assert!(words.contains("extensions, for other readers (1)"), "{words}");
    assert!(words.contains("example.icons"), "{words}");
    // Its files are there for those who ask for them.
    let image = format!("{}@{}", registry.reference("back/nop"), child["digest"].as_str().unwrap());
    peer(&scratch, "crane", ["export", &image, "flat.tar"]).ok();
    let listed = program(&scratch, "tar", ["-xOf", "flat.tar", "readme.md"]).ok().stdout;
    assert_eq!(listed, "# words\n");
}

#[test]
fn layers_that_cannot_be_packed_are_refused() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    scratch.write("links/file", "x");
    fs_err::os::unix::fs::symlink("file", scratch.join("links/link")).unwrap();
    scratch.write("hides/package.yaml", "x");
    fs_err::create_dir(scratch.join("empty")).unwrap();
    for (layer, why) in [
        ("a=links", "links/link cannot be packed"),
        ("a=hides", "would hide that of the package"),
        ("a=empty", "there are no files in empty"),
        ("a=missing", "there is no directory missing"),
    ] {
        let said = apron(&scratch, ["build", "provider-nop", "--layer", layer]).failed();
        assert!(said.contains(why) && said.contains("hint: "), "{layer}: {said}");
    }
    for layer in ["base=links", "upbound=links", "=links", "links", "a="] {
        assert_eq!(apron(&scratch, ["build", "provider-nop", "--layer", layer]).code, Some(2));
    }
}

#[test]
fn pulling_says_which_platform_was_taken_and_takes_what_is_asked_for() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    for architecture in ["amd64", "arm64"] {
        let archive = real_runtime(&scratch, &registry, architecture);
        let file = format!("{architecture}.xpkg");
        let flags = ["--embed-runtime-image-tarball", &archive, "-o", &file];
        apron(&scratch, ["build", "provider-nop"].iter().chain(&flags)).ok();
    }
    let there = registry.reference("p/nop:v1");
    apron(&scratch, ["push", &there, "-f", "amd64.xpkg,arm64.xpkg"]).ok();
    let says = |words: &[&str], taken: &str| {
        let pulled = apron(&scratch, ["pull", &there].iter().chain(words)).ok().stdout;
        assert!(pulled.contains(&format!("  platform {taken}\n")), "{pulled}");
    };
    says(&["-o", "one.xpkg"], "linux/amd64 of linux/amd64, linux/arm64");
    let same = |one: &str, other: &str| {
        fs_err::read(scratch.join(one)).unwrap() == fs_err::read(scratch.join(other)).unwrap()
    };
    assert!(same("one.xpkg", "amd64.xpkg"));
    let arm = ["-f", "arm.xpkg", "--platform", "linux/arm64"];
    says(&arm, "linux/arm64 of linux/amd64, linux/arm64");
    assert!(same("arm.xpkg", "arm64.xpkg"));
    says(&["--all-platforms"], "linux/amd64, linux/arm64");
    let back = registry.reference("p/back:v1");
    apron(&scratch, ["copy", "oci-archive:nop-v1.tar", &back]).ok();
    let digest = |reference: &str| peer(&scratch, "crane", ["digest", reference]).ok().stdout;
    assert_eq!(digest(&back), digest(&there));
    let shown = json(&apron(&scratch, ["pull", &there, "--output", "json"]).ok());
    assert_eq!(shown["platform"], "linux/amd64 of linux/amd64, linux/arm64");
    // `-o` is a file here; who means something else is told.
    assert_eq!(apron(&scratch, ["pull", &there, "-o", "json"]).code, Some(2));
    apron(&scratch, ["lint", &there, "--platform", "linux/arm64"]).ok();
    let none = apron(&scratch, ["lint", &there, "--platform", "windows/amd64"]).failed();
    assert!(none.contains("it has linux/amd64, linux/arm64"), "{none}");
}

#[test]
fn a_copy_to_a_bare_name_says_where_it_would_go() {
    let scratch = Scratch::new();
    scratch.copy_package("provider-nop");
    apron(&scratch, ["build", "provider-nop", "-o", "p.xpkg"]).ok();
    let said = apron(&scratch, ["copy", "p.xpkg", "nop"]).failed();
    let why = "`nop` names no registry; it would go to index.docker.io, as index.docker.io/library/nop:latest";
    assert!(said.contains(why), "{said}");
    let said = apron(&scratch, ["copy", "p.xpkg", "team/nop:v1"]).failed();
    assert!(said.contains("as index.docker.io/team/nop:v1"), "{said}");
    // Whoever chose a registry for bare names means it.
    let registry = Registry::start();
    let chosen = ["--default-registry", &registry.address];
    apron(&scratch, ["copy", "p.xpkg", "team/nop:v1"].iter().chain(&chosen)).ok();
}

#[test]
fn keys_that_stand_twice_in_a_built_package_are_found() {
    let scratch = Scratch::new();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: one\n  name: two\n";
    scratch.write("root/package.yaml", meta);
    program(&scratch, "tar", ["-C", "root", "-cf", "root.tar", "package.yaml"]).ok();
    let append = ["append", "-f", "root.tar", "-t", "example.org/team/p:v1", "-o", "p.tar"];
    peer(&scratch, "crane", append).ok();
    let checked = apron(&scratch, ["lint", "p.tar"]).ok().stdout;
    assert!(checked.contains("p.tar!package.yaml:5:3: warning: "), "{checked}");
    assert!(checked.contains("[duplicate-key]"), "{checked}");
    assert!(checked.ends_with("0 errors, 1 warning\n"), "{checked}");
}

#[test]
fn an_old_package_without_annotations_is_read_from_its_file_system() {
    let scratch = Scratch::new();
    let registry = Registry::start();
    scratch.copy_package("provider-nop");
    apron(&scratch, ["build", "provider-nop", "-o", "nop.xpkg"]).ok();
    apron(&scratch, ["extract", "nop.xpkg", "-o", "nop.gz"]).ok();
    scratch.write("fs/package.yaml", gunzip(&scratch.join("nop.gz")));
    scratch.write("fs/other", "unrelated");
    program(&scratch, "tar", ["-C", "fs", "-cf", "fs.tar", "."]).ok();
    let there = registry.reference("old/nop:v1");
    let append = ["append", "-f", "fs.tar", "-t", &there];
    peer(&scratch, "crane", append).ok();
    assert_eq!(objects(&scratch, &there), objects(&scratch, "provider-nop"));
}

/// Objects, and what is put where in them: some of it can be decoded, some cannot.
const VALUES: [(&str, &str, &str); 44] = [
    (CRD, "/spec/names/shortNames", r#""o""#),
    (CRD, "/spec/names/shortNames", r#"["o", null]"#),
    (CRD, "/spec/names/categories", "[1]"),
    (CRD, "/spec/preserveUnknownFields", r#""false""#),
    (CRD, "/spec/unknown", "1"),
    (CRD, "/spec/conversion", "[]"),
    (CRD, "/spec/conversion", r#"{"strategy": "None", "webhookClientConfig": 1}"#),
    (CRD, "/metadata/finalizers", r#""x""#),
    (CRD, "/metadata/generation", r#""1""#),
    (CRD, "/metadata/generation", "1.0"),
    (CRD, "/metadata/generation", "9223372036854775808"),
    (CRD, "/metadata/ownerReferences", "{}"),
    (CRD, "/metadata/creationTimestamp", "null"),
    (CRD, "/metadata/annotations", r#"{"a": true}"#),
    (CRD, "/spec/versions/0/served", r#""yes""#),
    (CRD, "/spec/versions/0/deprecationWarning", "1"),
    (CRD, "/spec/versions/0/selectableFields", r#""x""#),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/description", "1"),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/required", r#""spec""#),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/nullable", r#""true""#),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/minimum", r#""1""#),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/minimum", "1"),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/maxLength", "1.5"),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/enum", r#""x""#),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/default", "[1, {}]"),
    (CRD, "/spec/versions/0/schema/openAPIV3Schema/properties/a/externalDocs", "[]"),
    (WEBHOOK, "/webhooks/0/clientConfig/service/name", "false"),
    (WEBHOOK, "/webhooks/0/clientConfig/service/port", "3000000000"),
    (WEBHOOK, "/webhooks/0/clientConfig/caBundle", r#""Cg==""#),
    (WEBHOOK, "/webhooks/0/clientConfig/caBundle", r#""Cg=""#),
    (WEBHOOK, "/webhooks/0/timeoutSeconds", r#""3""#),
    (WEBHOOK, "/webhooks/0/reinvocationPolicy", "1"),
    (WEBHOOK, "/webhooks/0/objectSelector", r#"{"matchLabels": {"a": 1}}"#),
    (XRD, "/spec/connectionSecretKeys", r#""x""#),
    (XRD, "/spec/metadata", "1"),
    (XRD, "/spec/versions/0/schema", "3"),
    (XRD, "/spec/versions/0/subresources", r#"{"status": 1}"#),
    (COMPOSITION, "/spec/pipeline/0/step", "3"),
    (COMPOSITION, "/spec/pipeline/0/input", r#""anything""#),
    (COMPOSITION, "/spec/pipeline/0/functionRef", r#""fn""#),
    (COMPOSITION, "/spec/pipeline/0/credentials", r#"[{"name": 1}]"#),
    (COMPOSITION, "/spec/resources", "3"),
    (META, "/metadata/finalizers", r#""x""#),
    (META, "/metadata/generation", r#""x""#),
];
const META: &str = "crossplane.yaml";
const CRD: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "ones.example.org"}, "spec": {"group": "example.org", "scope": "Cluster",
    "names": {"kind": "One", "plural": "ones"}, "versions": [{"name": "v1", "served": true,
    "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a":
    {"type": "string"}}}}}]}}"#;
const WEBHOOK: &str = r#"{"apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": [{"name":
    "w.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig":
    {"service": {"name": "w", "namespace": "w"}}}]}"#;
const XRD: &str = r#"{"apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "CompositeResourceDefinition", "metadata": {"name": "xones.example.org"}, "spec":
    {"group": "example.org", "names": {"kind": "XOne", "plural": "xones"}, "versions": [{"name":
    "v1", "served": true, "referenceable": true}]}}"#;
const COMPOSITION: &str = r#"{"apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "Composition", "metadata": {"name": "c"}, "spec": {"compositeTypeRef": {"apiVersion":
    "example.org/v1", "kind": "XOne"}, "mode": "Pipeline", "pipeline": [{"step": "s",
    "functionRef": {"name": "fn"}}]}}"#;

/// A document with a value put somewhere; what is missing on the way is made.
fn with(document: &str, pointer: &str, value: &str) -> String {
    let mut document: Value = serde_json::from_str(document).unwrap();
    let mut place = &mut document;
    for step in pointer.split('/').skip(1) {
        place = match step.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[step],
        };
    }
    // Numbers stay as they are written.
    *place = Value::String("PLACE".to_owned());
    document.to_string().replacen(r#""PLACE""#, value, 1)
}

#[test]
fn values_that_upstream_cannot_decode_are_refused_alike() {
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (object, pointer, value) in VALUES {
        let scratch = Scratch::new();
        let kind =
            if [CRD, WEBHOOK, META].contains(&object) { "Provider" } else { "Configuration" };
        let meta = format!(
            r#"{{"apiVersion": "meta.pkg.crossplane.io/v1", "kind": "{kind}", "metadata": {{"name": "p"}}}}"#
        );
        if object == META {
            scratch.write("p/crossplane.yaml", with(&meta, pointer, value));
        } else {
            scratch.write("p/crossplane.yaml", meta);
            scratch.write("p/object.yaml", with(object, pointer, value));
        }
        let theirs = peer(&scratch, "crossplane", ["xpkg", "build", "-f", "p", "-o", "up.xpkg"]);
        let ours = apron(&scratch, ["build", "p", "-o", "our.xpkg"]);
        refused += usize::from(theirs.code != Some(0));
        // What upstream decodes and an API server refuses is refused here already.
        let is_for_server = ours.code != Some(0) && ours.all().contains(" [crd-");
        if (theirs.code == Some(0)) != (ours.code == Some(0)) && !is_for_server {
            wrong.push(format!("{pointer} {value}\n{}{}", theirs.all(), ours.all()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 25 && refused < VALUES.len(), "{refused} are refused");
}
