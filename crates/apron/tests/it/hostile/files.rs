//! Package files and layouts made to do harm.

use super::craft::{GOOD, Image, Tar, gz, gz_mebibytes, gz_repeated, layout, package_layer};
use super::{bounded, refused};
use crate::support::{Scratch, until};
use crate::up::Up;
use oci::{Descriptor, Digest, Index, MediaType, Raw};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// A package file of this image must be refused with these words.
#[track_caller]
fn refused_image(image: &Image, words: &[&str]) {
    let scratch = Scratch::new();
    let path = image.xpkg(&scratch, "bad.xpkg");
    refused(&scratch, ["inspect".as_ref(), path.as_os_str()], words);
}

/// A package file with this layer must be refused, whether the layer is the package or one of
/// two that have to be flattened.
#[track_caller]
fn refused_layer(layer: &[u8], words: &[&str]) {
    refused_image(&Image::base(layer.to_vec()), words);
    let other = gz(Tar::new().file("other", "x").end());
    refused_image(&Image::plain([other, layer.to_vec()]), words);
}

/// A layer that begins with these blocks and goes on with a stream that is compressed already.
fn bomb(head: Tar, rest: Vec<u8>) -> Vec<u8> {
    [gz(head.open()), rest].concat()
}

#[test]
fn a_package_that_inflates_to_ten_gibibytes_is_refused_by_name_of_the_limit() {
    let zeros = gz_mebibytes(0, 10 << 10);
    let package = bomb(Tar::new().header(b'0', "package.yaml", "", 10 << 30), zeros.clone());
    // One document of nothing but zeros meets the limit of documents first.
    refused_image(&Image::base(package), &["document_bytes_max", "cannot be read as a package"]);
    let other = bomb(Tar::new().header(b'0', "other", "", 10 << 30), zeros.clone());
    refused_image(&Image::base(other.clone()), &["expanded_bytes_max"]);
    refused_image(&Image::plain([other, package_layer(GOOD)]), &["expanded_bytes_max"]);
    // What follows the end of an archive is read too, to check the stream.
    let behind = bomb(Tar::new().file("package.yaml", GOOD).file("x", [0; 1024]), zeros);
    refused_image(&Image::plain([behind, gz(Tar::new().end())]), &["expanded_bytes_max"]);
}

#[test]
fn layers_that_inflate_share_one_limit() {
    // Each stays below the limit, and behind its end at that; together they are 12 GiB.
    let one = bomb(Tar::new().file("x", "x"), gz_mebibytes(0, 3 << 10));
    let mut layers = vec![one; 4];
    layers.push(package_layer(GOOD));
    refused_image(&Image::plain(layers), &["expanded_bytes_max"]);
}

#[test]
fn a_package_of_many_documents_or_one_huge_one_is_refused() {
    let huge = bomb(
        Tar::new().header(b'0', "package.yaml", "", (1 << 30) + 4),
        [gz("a: \""), gz_mebibytes(b'x', 1 << 10)].concat(),
    );
    refused_image(&Image::base(huge.clone()), &["document_bytes_max"]);
    refused_image(&Image::plain([huge, gz(Tar::new().end())]), &["document_bytes_max"]);
    let document = format!("---\n# {}\na: b\n", "x".repeat(1 << 20));
    let times = 210;
    let size = (document.len() * times) as u64;
    let many = bomb(
        Tar::new().header(b'0', "package.yaml", "", size),
        gz_repeated(document.as_bytes(), times),
    );
    refused_image(&Image::base(many), &["package_bytes_max"]);
    let document = "---\na: b\n".repeat(20_001);
    refused_image(&Image::base(package_layer(document)), &["documents_max"]);
}

#[test]
fn an_archive_of_a_million_entries_is_refused() {
    let thousand = |tar: Tar| tar.open().repeat(1000);
    let files = gz_repeated(&thousand(Tar::new().file("x", "")), 1000);
    refused_layer(&files, &["250000 entries", "entries_max"]);
    let headers = gz_repeated(&thousand(Tar::new().pax(&[("path", "y")])), 1000);
    refused_image(&Image::base(headers), &["entries_max"]);
}

#[test]
fn an_archive_of_long_names_is_refused() {
    let long = "d/".repeat(2500);
    refused_layer(
        &gz(Tar::new().entry(b'L', "n", "", &long).file("x", "").end()),
        &["path_bytes_max"],
    );
    refused_layer(&gz(Tar::new().pax(&[("path", &long)]).file("x", "").end()), &["path_bytes_max"]);
    let bomb =
        [gz(Tar::new().header(b'x', "pax", "", 1 << 30).open()), gz_mebibytes(b'1', 1 << 10)];
    refused_layer(&bomb.concat(), &["path_bytes_max"]);
    // Each name is within the limit, and there are many.
    let (path, link) = ("d/".repeat(2040), "l".repeat(4090));
    let symlink = Tar::new().pax(&[("path", &path), ("linkpath", &link)]).entry(b'2', "x", "y", "");
    let many = gz_repeated(&symlink.open().repeat(500), 240);
    refused_layer(&many, &["names_bytes_max"]);
}

#[test]
fn entries_that_leave_the_archive_are_refused() {
    for name in ["../../etc/passwd", "a/../../package.yaml", "/../x"] {
        let layer = gz(Tar::new().file(name, "x").file("package.yaml", GOOD).end());
        refused_layer(&layer, &[name, "points outside"]);
    }
    let layer = gz(Tar::new().entry(b'1', "package.yaml", "../../etc/passwd", "").end());
    refused_layer(&layer, &["`package.yaml` is a link to `../../etc/passwd`", "outside"]);
    let layer = gz(Tar::new().entry(b'1', "package.yaml", "not/there", "").end());
    refused_layer(&layer, &["`not/there`", "does not exist"]);
    let layer = gz(Tar::new().entry(b'1', "package.yaml", "package.yaml", "").end());
    refused_layer(&layer, &["does not exist"]);
}

#[test]
fn a_package_that_is_no_regular_file_is_refused() {
    for (kind, link, what) in [
        (b'2', "/etc/passwd", "symbolic link"),
        (b'5', "", "directory"),
        (b'6', "", "special file"),
        (b'3', "", "special file"),
    ] {
        let layer = gz(Tar::new().entry(kind, "package.yaml", link, "").end());
        refused_layer(&layer, &["`package.yaml` is a", what]);
    }
}

#[test]
fn a_package_that_two_readers_would_read_differently_is_refused() {
    let twice = Tar::new().file("package.yaml", GOOD).file("./package.yaml", "a: b\n");
    refused_image(&Image::base(gz(twice.end())), &["two entries named `package.yaml`"]);
    let sized = Tar::new().pax(&[("size", "3")]).file("package.yaml", GOOD);
    refused_layer(&gz(sized.end()), &["the pax size differs"]);
    for sparse in [
        Tar::new().pax(&[("GNU.sparse.major", "1")]).file("package.yaml", GOOD),
        Tar::new().entry(b'S', "package.yaml", "", GOOD),
    ] {
        refused_layer(&gz(sparse.end()), &["sparse"]);
    }
    let base = package_layer(GOOD);
    let two = Image {
        layers: vec![(base.clone(), Some("base")), (package_layer("a: b\n"), Some("base"))],
    };
    refused_image(&two, &["is not a package", "2"]);
    let none = Image { layers: Vec::new() };
    refused_image(&none, &["is not a package"]);
}

#[test]
fn a_layer_that_breaks_off_is_refused() {
    let whole = package_layer(GOOD.repeat(50));
    for cut in [1, 9, 10, 20, whole.len() / 2, whole.len() - 5] {
        refused_image(&Image::base(whole[..cut].to_vec()), &["cannot be read as a package"]);
    }
    let tar = Tar::new().file("package.yaml", GOOD).end();
    for cut in [100, 512, 600] {
        refused_layer(&gz(&tar[..cut]), &["truncated"]);
        refused_layer(&tar[..cut], &["truncated"]);
    }
    let mut garbage = tar;
    garbage[3] ^= 1;
    refused_layer(&gz(garbage), &["checksum"]);
    let mut damaged = whole;
    let last = damaged.len() - 8;
    damaged[last] ^= 1;
    refused_layer(&damaged, &["cannot be read as a package"]);
}

/// Keys without values, each so far to the right.
fn indented(columns: impl Iterator<Item = usize>) -> String {
    columns.map(|column| [&" ".repeat(column), "a:\n"].concat()).collect()
}

/// YAML that is refused by `lint`, and survived by `inspect`.
#[test]
fn yaml_that_inflates_or_nests_without_end_is_refused() {
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..30 {
            let alias = format!("*a{},", level - 1).repeat(10);
            text = format!("{text}a{level}: &a{level} [{alias}]\n");
        }
        text
    };
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a,".repeat(5000));
    let many = format!("a: &a x\nb: [{}]\n", "*a,".repeat(10_001));
    let merged = format!("a: &a {{x: y}}\n{}", "b:\n  <<: *a\n".repeat(10_001));
    let nodes = format!("a: [{}]\n", "1,".repeat(500_001));
    let block: String = indented((0..4000).map(|depth| depth % 1000));
    let block = block + "x\n";
    let nested: String = indented(0..2000);
    let dashes = format!("a: {}\n", "- ".repeat(1000));
    let cases: &[(&str, String, &str)] = &[
        ("aliases of aliases", bomb, "_max"),
        ("a long text, often", long, "alias_bytes_max"),
        ("many aliases", many, "aliases_max"),
        ("many merges", merged, "lint"),
        ("many nodes", nodes, "nodes_max"),
        ("flow sequences", format!("a: {}\n", "[".repeat(100_000)), "depth_max"),
        ("flow mappings", format!("a: {}\n", "{a: ".repeat(100_000)), "depth_max"),
        ("closed flow", format!("a: {}{}\n", "[".repeat(5000), "]".repeat(5000)), "depth_max"),
        ("block mappings", nested, "depth_max"),
        ("ragged block mappings", block, "error"),
        ("dashes", dashes, "error"),
        ("bare dashes", format!("{}\n", "- ".repeat(100_000)), "depth_max"),
        ("questions", format!("{}\n", "? ".repeat(100_000)), "cannot be a mapping key"),
        ("anchors", format!("a: {} x\n", "&a ".repeat(100_000)), "error"),
        ("tags", format!("a: {} x\n", "!a ".repeat(100_000)), "error"),
        ("directives", format!("{}---\na: b\n", "%A b\n".repeat(100_000)), "error"),
        ("a key without end", format!("{}: x\n", "k".repeat(1 << 20)), "error"),
        ("quotes without end", format!("a: \"{}", "\\".repeat(100_001)), "error"),
        ("NUL bytes", "a: \0\0\0\n".to_owned(), "error"),
    ];
    for (name, text, word) in cases {
        let scratch = Scratch::new();
        let path = Image::base(package_layer(text)).xpkg(&scratch, "bad.xpkg");
        let said = refused(&scratch, ["lint".as_ref(), path.as_os_str()], &[]);
        assert!(*word == "lint" || said.contains(word), "{name}: {said}");
        let shown = bounded(&scratch, ["inspect".as_ref(), path.as_os_str()]);
        assert!(matches!(shown.code, Some(0 | 1)), "{name}: {shown:?}");
        scratch.write("package/crossplane.yaml", text);
        let said = refused(&scratch, ["build", "package"], &["nothing was written"]);
        assert!(*word == "lint" || said.contains(word), "{name}: {said}");
    }
}

/// A small document with aliases. What it expands to would be fine by itself.
fn alias_document() -> String {
    let list = |of: &str, times: usize| vec![of; times].join(",");
    format!("a: &a [{}]\nb: [{}]\n---\n", list("1", 9), list("*a", 80))
}

/// C1: work on a package holds up neither another package nor a signal.
#[test]
fn c1_a_package_of_aliases_holds_up_nobody_else() {
    let scratch = Scratch::new();
    let text = format!("{GOOD}\n---\n{}", alias_document().repeat(2000));
    let bad = Image::base(package_layer(&text)).xpkg(&scratch, "bad.xpkg");
    assert!(fs_err::metadata(&bad).unwrap().len() < 32 << 10, "it is small");
    let good = Image::good().xpkg(&scratch, "good.xpkg");
    let data = scratch.join("data").display().to_string();
    let mut up = Up::start(&scratch, &["--data-dir", &data]);
    let registry = up.told("  registry  http://");
    for (name, file) in [("bad", &bad), ("good", &good)] {
        let there = format!("{registry}/t/{name}:v1.0.0");
        up.say(&["push", "-f", file.to_str().unwrap(), &there]).ok();
        up.say(&["install", "configuration", &there, name]).ok();
    }
    up.say(&["wait", "good", "--timeout", "2m"]).ok();
    until("the other says what is wrong with it", || {
        up.say(&["status", "bad"]).all().contains("alias").then_some(())
    });
    let asked = Instant::now();
    up.stop();
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
}

/// M7: so many small documents with aliases that they would fill any memory together.
#[test]
fn m7_many_alias_documents_are_refused_together() {
    let one = alias_document();
    let text = format!("{GOOD}\n---\n{}", one.repeat(2000));
    let scratch = Scratch::new();
    let path = Image::base(package_layer(&text)).xpkg(&scratch, "bad.xpkg");
    refused(&scratch, ["lint".as_ref(), path.as_os_str()], &["alias_share_max"]);
    for at in 0..200 {
        scratch.write(&format!("package/{at}.yaml"), one.repeat(10));
    }
    scratch.write("package/crossplane.yaml", GOOD);
    let said = bounded(&scratch, ["build", "package"]).failed();
    assert!(said.contains("alias_share_max") && said.contains("nothing was written"), "{said}");
}

#[test]
fn a_package_that_is_not_text_is_refused() {
    for bytes in [&b"a: \xff\xfe\n"[..], b"\xff\xfea\0:\0 \0b\0", b"\0\0\0\0", b"a: \xed\xa0\x80\n"]
    {
        let scratch = Scratch::new();
        let path = Image::base(package_layer(bytes)).xpkg(&scratch, "bad.xpkg");
        refused(&scratch, ["lint".as_ref(), path.as_os_str()], &[]);
        scratch.write("package/crossplane.yaml", bytes);
        refused(&scratch, ["build", "package"], &["crossplane.yaml"]);
    }
}

#[test]
fn files_that_are_no_archives_are_refused_with_the_reason() {
    let good = Image::good().tar().end();
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("empty.xpkg", Vec::new(), "neither manifest.json nor index.json"),
        ("zeros.xpkg", vec![0; 10_240], "neither manifest.json nor index.json"),
        ("text.xpkg", b"this is not a package\n".repeat(100), "is not a package file"),
        ("short.xpkg", b"hello".to_vec(), "is not a package file"),
        ("gzip.xpkg", gz(&good), "compressed with gzip"),
        ("zstd.xpkg", b"\x28\xb5\x2f\xfd\x00\x00\x00".to_vec(), "compressed with zstd"),
        ("other.tar", Tar::new().file("hello", "x").end(), "neither manifest.json nor index.json"),
    ];
    for (name, bytes, word) in cases {
        let scratch = Scratch::new();
        scratch.write(name, bytes);
        for verb in
            [&["inspect", name][..], &["lint", name], &["extract", name], &["copy", name, "x.xpkg"]]
        {
            refused(&scratch, verb, &[word]);
        }
        refused(&scratch, ["push", "127.0.0.1:1/a:v1", "-f", name], &[word]);
        assert!(!scratch.join("x.xpkg").exists() && !scratch.join("out.gz").exists());
    }
}

#[test]
fn places_that_are_no_files_are_refused_and_not_waited_for() {
    let scratch = Scratch::new();
    make_fifo(&scratch.join("fifo.xpkg"));
    for place in ["./fifo.xpkg", "/dev/zero", "/dev/null", "/dev/full"] {
        refused(&scratch, ["inspect", place], &["is not a package file"]);
    }
    let layout = Image::good().layout(&scratch, "layout");
    let blob = layout.join(format!("blobs/sha256/{}", Digest::of(&Image::good().raw()).hex()));
    fs_err::remove_file(&blob).unwrap();
    make_fifo(&blob);
    refused(&scratch, ["inspect", "layout"], &["not a regular file"]);
    let layer = layout.join(format!("blobs/sha256/{}", Digest::of(&package_layer(GOOD)).hex()));
    fs_err::remove_file(&blob).unwrap();
    fs_err::write(&blob, Image::good().raw()).unwrap();
    fs_err::remove_file(&layer).unwrap();
    make_fifo(&layer);
    refused(&scratch, ["inspect", "layout"], &["not a regular file"]);
    fs_err::remove_file(&layer).unwrap();
    fs_err::os::unix::fs::symlink("/dev/zero", &layer).unwrap();
    refused(&scratch, ["inspect", "layout"], &["layout"]);
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_manifest_json_that_points_elsewhere_is_refused() {
    let good = Image::good();
    let config = good.config();
    let file = |line: serde_json::Value| {
        let tar = Tar::new().file("config.json", &config).file("0.tar.gz", &good.layers[0].0);
        tar.file("manifest.json", line.to_string()).end()
    };
    let line = |config: &str, layer: &str| json!([{ "Config": config, "Layers": [layer] }]);
    let secret = Tar::new().entry(b'2', "config.json", "/etc/passwd", "");
    let round = Tar::new().entry(b'2', "a", "b", "").entry(b'2', "b", "a", "");
    let linked = |tar: Tar| tar.file("manifest.json", line("config.json", "a").to_string()).end();
    let cases: &[(Vec<u8>, &str)] = &[
        (file(line("../../etc/passwd", "0.tar.gz")), "../../etc/passwd"),
        (file(line("/etc/passwd", "0.tar.gz")), "/etc/passwd"),
        (file(line("config.json", "../../etc/passwd")), "../../etc/passwd"),
        (file(line("config.json", "missing")), "missing"),
        (file(line("manifest.json", "0.tar.gz")), "config"),
        (file(json!([])), "no image"),
        (file(json!({})), "manifest.json is not valid JSON"),
        (
            file(json!([{ "Config": "config.json", "Layers": [] }])),
            "describes 1 layers but it has 0",
        ),
        (linked(secret), "config.json"),
        (linked(Tar::new().file("config.json", &config)), "a"),
        (linked(round.file("config.json", &config)), "`a`"),
        (Tar::new().file("manifest.json", "[".repeat(1 << 20)).end(), "manifest.json"),
        (Tar::new().header(b'0', "manifest.json", "", 17 << 20).open(), "manifest.json"),
    ];
    for (bytes, word) in cases {
        let scratch = Scratch::new();
        scratch.write("bad.xpkg", bytes);
        let said = refused(&scratch, ["inspect", "bad.xpkg"], &[word]);
        assert!(!said.contains("root:"), "{said}");
    }
}

#[test]
fn names_in_an_archive_cannot_fill_the_memory() {
    // A hole in the file is a name of zeros, and costs the sender nothing.
    let scratch = Scratch::new();
    let path = scratch.join("holes.xpkg");
    let mut file = fs_err::File::create(&path).unwrap();
    let mut offset = 0;
    for number in 0..40_000_u64 {
        use std::io::{Seek, SeekFrom, Write};
        let size = 60 << 10;
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(&Tar::new().header(b'L', "long", "", size).open()).unwrap();
        write!(file, "{number}").unwrap();
        file.seek(SeekFrom::Start(offset + 512 + size)).unwrap();
        file.write_all(&Tar::new().file("x", "").open()).unwrap();
        offset += 512 + size + 512;
    }
    drop(file);
    refused(&scratch, ["inspect", "holes.xpkg"], &["holes.xpkg"]);
}

#[test]
fn an_archive_that_names_one_layer_many_times_is_read_once() {
    // 1,000 lines of 100 layers, each of which is the same 20 MB.
    let scratch = Scratch::new();
    let layer = vec![7; 20 << 20];
    let digests = vec![Digest::of(&layer).to_string(); 100];
    let config = json!({ "rootfs": { "type": "layers", "diff_ids": digests } }).to_string();
    let line = json!({ "Config": "config.json", "RepoTags": null, "Layers": vec!["layer"; 100] });
    let lines = vec![line; 1000];
    let tar = Tar::new().file("config.json", config).file("layer", layer);
    scratch.write("many.xpkg", tar.file("manifest.json", json!(lines).to_string()).end());
    refused(&scratch, ["inspect", "many.xpkg"], &["many.xpkg"]);
}

#[test]
fn an_image_of_a_thousand_layers_is_refused() {
    let layers = (0..1000).map(|number| gz(Tar::new().file(&format!("f{number}"), "x").end()));
    let image = Image::plain(layers.chain([package_layer(GOOD)]));
    refused_image(&image, &["layers_max"]);
    let scratch = Scratch::new();
    let path = image.layout(&scratch, "layout");
    refused(&scratch, ["inspect".as_ref(), path.as_os_str()], &["layers_max"]);
}

/// A layout whose manifest was changed must be refused with these words.
#[track_caller]
fn refused_manifest(change: impl Fn(&mut oci::Manifest), words: &[&str]) {
    let scratch = Scratch::new();
    let image = Image::good();
    let mut manifest = image.manifest();
    change(&mut manifest);
    let raw = Raw::from_manifest(&manifest).unwrap();
    let blobs = image.blobs();
    let path = layout(&scratch, "layout", &raw.bytes, MediaType::DOCKER_MANIFEST, &blobs);
    refused(&scratch, ["inspect".as_ref(), path.as_os_str()], words);
    let copy = ["copy".as_ref(), path.as_os_str(), "copy.xpkg".as_ref()];
    refused(&scratch, copy, &[]);
    assert!(!scratch.join("copy.xpkg").exists());
}

#[test]
fn a_manifest_that_lies_about_a_layer_is_refused() {
    refused_manifest(|manifest| manifest.layers[0].size += 1, &["bytes"]);
    refused_manifest(|manifest| manifest.layers[0].size -= 1, &["bytes"]);
    refused_manifest(|manifest| manifest.layers[0].size = 0, &["bytes"]);
    refused_manifest(|manifest| manifest.layers[0].size = u64::MAX, &["1073741824 bytes allowed"]);
    refused_manifest(|manifest| manifest.layers[0].digest = Digest::of(b"other"), &["is not in"]);
}

#[test]
fn a_config_that_lies_is_not_copied() {
    let scratch = Scratch::new();
    let image = Image::good();
    for change in [
        (|config: &mut Descriptor| config.size += 1) as fn(&mut Descriptor),
        |config| config.digest = Digest::of(b"other"),
        |config| config.size = u64::MAX,
    ] {
        let mut manifest = image.manifest();
        change(&mut manifest.config);
        let raw = Raw::from_manifest(&manifest).unwrap();
        let path =
            layout(&scratch, "layout", &raw.bytes, MediaType::DOCKER_MANIFEST, &image.blobs());
        refused(&scratch, ["copy".as_ref(), path.as_os_str(), "x.xpkg".as_ref()], &["cannot"]);
        refused(&scratch, ["copy".as_ref(), path.as_os_str(), "oci:to:v1".as_ref()], &["cannot"]);
        assert!(!scratch.join("x.xpkg").exists());
    }
}

#[test]
fn blobs_of_a_layout_that_were_changed_are_refused() {
    let image = Image::good();
    let layer = &image.layers[0].0;
    let raw = image.raw();
    for (blob, word) in [(layer, "cannot read"), (&raw, "cannot read")] {
        for change in [
            (|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2)) as fn(&mut Vec<u8>),
            Vec::clear,
            |bytes| bytes.push(0),
            |bytes| bytes[20] ^= 1,
        ] {
            let scratch = Scratch::new();
            let path = image.layout(&scratch, "layout");
            let mut bytes = blob.clone();
            change(&mut bytes);
            let name = format!("layout/blobs/sha256/{}", Digest::of(blob).hex());
            scratch.write(&name, bytes);
            refused(&scratch, ["inspect".as_ref(), path.as_os_str()], &[word]);
            refused(&scratch, ["copy".as_ref(), path.as_os_str(), "x.xpkg".as_ref()], &["cannot"]);
        }
    }
}

#[test]
fn manifests_and_indexes_beyond_reason_are_refused() {
    let check = |bytes: &[u8], media_type: MediaType, words: &[&str]| {
        let scratch = Scratch::new();
        let path = layout(&scratch, "layout", bytes, media_type, &Image::good().blobs());
        refused(&scratch, ["inspect".as_ref(), path.as_os_str()], words);
    };
    let index = |children: Vec<Descriptor>| Raw::from_index(&Index::oci(children)).unwrap().bytes;
    check(&index(Vec::new()), MediaType::OCI_INDEX, &["lists no manifests"]);
    let padded = |size: usize| {
        let mut bytes = Image::good().raw();
        bytes.resize(size, b' ');
        bytes
    };
    check(&padded((4 << 20) + 1), MediaType::DOCKER_MANIFEST, &["4194304"]);
    // As much memory as 4 MiB of JSON can ask for.
    for (open, close) in [("[", "]"), ("{\"a\":", "1}")] {
        let pair = format!("{}1{}", open, close.trim_start_matches('1'));
        let list = vec![pair; 500_000].join(",");
        let text =
            format!(r#"{{"schemaVersion":2,"x":[{}"#, &list[..list.len().min(4 << 20) - 100]);
        check(text.as_bytes(), MediaType::DOCKER_MANIFEST, &["not valid JSON"]);
    }
    let empty =
        format!(r#"{{"schemaVersion":2,"layers":[],"x":[{}{{}}]}}"#, "{},".repeat(1_390_000));
    check(empty.as_bytes(), MediaType::DOCKER_MANIFEST, &["not valid JSON"]);
    check(b"[[[[[", MediaType::OCI_MANIFEST, &["not valid JSON"]);
    check("[".repeat(1 << 20).as_bytes(), MediaType::OCI_MANIFEST, &["not valid JSON"]);
    check(br#"{"schemaVersion":1}"#, MediaType::OCI_MANIFEST, &["schema version 1"]);
}

#[test]
fn an_index_json_beyond_reason_is_refused() {
    let maps =
        format!(r#"{{"schemaVersion":2,"manifests":[],"x":[{}{{}}]}}"#, "{},".repeat(20 << 20));
    let cases: &[(String, &str)] = &[
        (maps, "index.json"),
        (" ".repeat(70 << 20), "index.json"),
        ("[".repeat(1 << 20), "index.json is not valid JSON"),
        (r#"{"schemaVersion":2,"manifests":[]}"#.to_owned(), "is empty"),
        (
            r#"{"schemaVersion":2,"manifests":[{"mediaType":"a","size":1,"digest":"sha256:../../../../etc/passwd"}]}"#
                .to_owned(),
            "digest",
        ),
        (
            r#"{"schemaVersion":2,"manifests":[{"mediaType":"a","size":1,"digest":"../../x:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}"#
                .to_owned(),
            "digest",
        ),
    ];
    for (text, word) in cases {
        let scratch = Scratch::new();
        Image::good().layout(&scratch, "layout");
        scratch.write("layout/index.json", text);
        refused(&scratch, ["inspect", "layout"], &[word]);
    }
}

#[test]
fn indexes_in_indexes_come_to_an_end() {
    let scratch = Scratch::new();
    let image = Image::good();
    let mut blobs = image.blobs();
    let mut child = Descriptor::of(MediaType::DOCKER_MANIFEST, &image.raw());
    blobs.push(image.raw());
    let mut raw = Vec::new();
    for _ in 0..8 {
        child.platform = "linux/amd64".parse().ok();
        raw = Raw::from_index(&Index::oci(vec![child])).unwrap().bytes;
        child = Descriptor::of(MediaType::OCI_INDEX, &raw);
        blobs.push(raw.clone());
    }
    let path = layout(&scratch, "layout", &raw, MediaType::OCI_INDEX, &blobs);
    refused(&scratch, ["inspect".as_ref(), path.as_os_str()], &["nested too deeply"]);
    refused(&scratch, ["copy".as_ref(), path.as_os_str(), "oci:to:v1".as_ref()], &["nested"]);
    let platform = ["copy", "--platform", "linux/amd64", "layout", "oci:to:v1"];
    refused(&scratch, platform, &["nested"]);
    // Many children are many manifests to read, but not without end.
    let child = Descriptor::of(MediaType::DOCKER_MANIFEST, &image.raw());
    let raw = Raw::from_index(&Index::oci(vec![child; 2000])).unwrap().bytes;
    let blobs = [image.blobs(), vec![image.raw()]].concat();
    let path = layout(&scratch, "wide", &raw, MediaType::OCI_INDEX, &blobs);
    refused(&scratch, ["copy".as_ref(), path.as_os_str(), "oci:wide-to:v1".as_ref()], &["1000"]);
}

/// Every cut of a small package file: refused, or read as what it is.
#[test]
fn a_package_file_that_breaks_off_anywhere_is_refused_or_read_right() {
    let scratch = Scratch::new();
    let whole = Image::good().tar().end();
    scratch.write("whole.xpkg", &whole);
    let right = bounded(&scratch, ["inspect", "-o", "json", "whole.xpkg"]).ok();
    let right = right.stdout.replace("whole.xpkg", "cut.xpkg");
    let mut read = 0;
    for length in (0..whole.len()).step_by(256).chain([whole.len() - 1]) {
        scratch.write("cut.xpkg", &whole[..length]);
        let ran = bounded(&scratch, ["inspect", "-o", "json", "cut.xpkg"]);
        if ran.code == Some(0) {
            assert_eq!(ran.stdout, right, "cut at {length}");
            read += 1;
        } else {
            refused(&scratch, ["inspect", "cut.xpkg"], &[]);
        }
    }
    // Only what is cut within the zeros at the end may be read.
    assert!(read <= 7, "{read} cuts were read");
}
