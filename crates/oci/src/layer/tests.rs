use super::*;
use crate::Digest;
use proptest::prelude::*;
use std::io::{self, Read, Write};

/// A layer as a list of lines: `path=content`, `path/` (directory), `path->target` (symbolic
/// link), `path=>target` (hard link).
fn tar(lines: &[&str]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for line in lines {
        let mut header = ::tar::Header::new_gnu();
        header.set_mode(0o644);
        let (path, kind, target, content) = match *line {
            line if line.contains("=>") => {
                let (path, target) = line.split_once("=>").unwrap();
                (path, ::tar::EntryType::Link, target, "")
            }
            line if line.contains("->") => {
                let (path, target) = line.split_once("->").unwrap();
                (path, ::tar::EntryType::Symlink, target, "")
            }
            line if line.ends_with('/') => (line, ::tar::EntryType::Directory, "", ""),
            line => {
                let (path, content) = line.split_once('=').unwrap();
                (path, ::tar::EntryType::Regular, "", content)
            }
        };
        // Written past the library's own checks: hostile names are the point.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Layers(Vec<Vec<u8>>);

impl LayerSource for Layers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].as_slice()))
    }
}

fn read(layers: &[&[&str]], path: &str) -> Result<Option<String>, String> {
    let layers = Layers(layers.iter().map(|lines| gzip(&tar(lines))).collect());
    read_layers(&layers, path, &Limits::default())
}

fn read_layers(layers: &Layers, path: &str, limits: &Limits) -> Result<Option<String>, String> {
    let open = open_file(layers, path, limits).map_err(|error| error.to_string())?;
    let Some(mut reader) = open else {
        return Ok(None);
    };
    let mut text = String::new();
    let result = reader.read_to_string(&mut text);
    result.map_err(|error| LayerError::from_io(error).to_string())?;
    Ok(Some(text))
}

#[test]
fn a_file_is_found_however_its_name_is_spelled() {
    for name in ["package.yaml", "./package.yaml", "/package.yaml", "a/../package.yaml"] {
        let line = format!("{name}=x");
        assert_eq!(read(&[&[&line]], "package.yaml"), Ok(Some("x".into())), "{name}");
    }
    assert_eq!(read(&[&["a/package.yaml=x"]], "package.yaml"), Ok(None));
}

#[test]
fn layers_apply_in_order() {
    let check = |layers: &[&[&str]], expected: Option<&str>| {
        assert_eq!(read(layers, "d/f"), Ok(expected.map(str::to_owned)), "{layers:?}");
    };
    check(&[&["d/f=1"], &["d/f=2"]], Some("2"));
    check(&[&["d/f=1"], &["d/.wh.f="]], None);
    check(&[&["d/f=1"], &[".wh.d="]], None);
    check(&[&["d/f=1"], &["d/.wh..wh..opq="]], None);
    check(&[&["d/f=1"], &["d/.wh..wh..opq=", "d/f=2"]], Some("2"));
    check(&[&["d/f=1"], &["d/f=2", "d/.wh.f="]], Some("2"));
    check(&[&["d/f=1"], &["d/.wh.f="], &["d/f=3"]], Some("3"));
    check(&[&["d/f=1"], &["d=now a file"]], None);
    check(&[&["d=a file"], &["d/f=1"]], Some("1"));
    check(&[&["d/f=1"], &["d/"]], Some("1"));
    check(&[&["dd/f=1", "d/f=2"], &[".wh.d="], &["x=1"]], None);
}

#[test]
fn hard_links_lead_to_their_content() {
    assert_eq!(read(&[&["a=x", "b=>a"]], "b"), Ok(Some("x".into())));
    assert_eq!(read(&[&["a=x"], &["b=>a"]], "b"), Ok(Some("x".into())));
    assert_eq!(read(&[&["a=x"], &["b=>./a", ".wh.c="]], "b"), Ok(Some("x".into())));
    assert_eq!(read(&[&["a=x", "b=>a"], &["a=y"]], "b"), Ok(Some("x".into())));
}

#[test]
fn hostile_entries_are_refused_with_the_reason() {
    let check = |layers: &[&[&str]], expected: &str| {
        assert_eq!(read(layers, "package.yaml").unwrap_err(), expected);
    };
    check(&[&["../x=1"]], "the layer has an entry named `../x`, which points outside of it");
    check(
        &[&["package.yaml=>../../etc/passwd"]],
        "the layer's entry `package.yaml` is a link to `../../etc/passwd`, outside of it",
    );
    check(
        &[&["package.yaml=>missing"]],
        "the layer's entry `package.yaml` is a link to `missing`, which does not exist",
    );
    check(
        &[&["package.yaml->/etc/passwd"]],
        "`package.yaml` is a symbolic link, not a regular file",
    );
    check(
        &[&["x=1"], &["package.yaml->/etc/passwd"]],
        "`package.yaml` is a symbolic link, not a regular file",
    );
    check(
        &[&["package.yaml=1", "package.yaml=2"]],
        "the layer has two entries named `package.yaml`",
    );
}

#[test]
fn limits_are_errors_that_name_themselves() {
    let many: Vec<String> = (0..100).map(|index| format!("f{index}=x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let layers = Layers(vec![gzip(&tar(&many))]);
    let check = |layers: &Layers, limits: &Limits, expected: &str| {
        assert_eq!(read_layers(layers, "package.yaml", limits).unwrap_err(), expected);
    };
    let few = Limits { entries_max: 50, ..Limits::default() };
    check(&layers, &few, "the layer exceeds the limit of 50 entries (entries_max)");
    let bomb = Layers(vec![gzip(&tar(&[&format!("package.yaml={}", "0".repeat(1 << 20))]))]);
    let small = Limits { expanded_bytes_max: 1 << 16, ..Limits::default() };
    check(&bomb, &small, "the layer exceeds the limit of 65536 bytes (expanded_bytes_max)");
    let tiny = Limits { compressed_bytes_max: 10, ..Limits::default() };
    check(&bomb, &tiny, "the layer exceeds the limit of 10 bytes (compressed_bytes_max)");
}

#[test]
fn limits_hold_for_all_layers_together() {
    let layer: Vec<String> = (0..30).map(|index| format!("f{index}=x")).collect();
    let layer: Vec<&str> = layer.iter().map(String::as_str).collect();
    let layers = Layers(vec![gzip(&tar(&layer)), gzip(&tar(&layer))]);
    let limits = Limits { entries_max: 50, ..Limits::default() };
    assert!(read_layers(&layers, "package.yaml", &limits).unwrap_err().contains("entries_max"));
}

#[test]
fn a_truncated_layer_never_ends_cleanly() {
    let whole = gzip(&tar(&["package.yaml=some content", "other=more"]));
    for length in 0..whole.len() {
        let layers = Layers(vec![whole[..length].to_vec()]);
        let result = read_layers(&layers, "package.yaml", &Limits::default());
        assert!(!matches!(result, Ok(Some(_))), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn a_size_beyond_what_can_be_counted_is_refused() {
    let mut header = ::tar::Header::new_gnu();
    header.set_entry_type(::tar::EntryType::Regular);
    header.set_size(u64::MAX);
    header.set_cksum();
    let layers = Layers(vec![header.as_bytes().to_vec()]);
    let error = read_layers(&layers, "package.yaml", &Limits::default()).unwrap_err();
    assert_eq!(error, "the layer is not a tar archive: bad entry size");
}

#[test]
fn plain_and_zstd_layers_are_read_too() {
    let plain = tar(&["package.yaml=x"]);
    let zstd = ruzstd::encoding::compress_to_vec(
        plain.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let (first, second) = plain.split_at(700);
    let frame = |bytes: &[u8]| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let frames = [frame(first), frame(second)].concat();
    let members = [gzip(first), gzip(second)].concat();
    for bytes in [plain, zstd, frames, members] {
        let layers = Layers(vec![bytes]);
        assert_eq!(read_layers(&layers, "package.yaml", &Limits::default()), Ok(Some("x".into())));
    }
}

#[test]
fn long_names_are_read_within_the_limit() {
    let mut builder = ::tar::Builder::new(Vec::new());
    let name = "d/".repeat(100) + "f";
    let mut header = ::tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    builder.append_data(&mut header, &name, b"x".as_slice()).unwrap();
    let layers = Layers(vec![builder.into_inner().unwrap()]);
    assert_eq!(read_layers(&layers, &name, &Limits::default()), Ok(Some("x".into())));
    let limits = Limits { path_bytes_max: 50, names_bytes_max: 1000, ..Limits::default() };
    assert!(read_layers(&layers, &name, &limits).unwrap_err().contains("path_bytes_max"));
}

fn write(content: &[u8]) -> (Vec<u8>, WrittenLayer) {
    let mut writer = LayerWriter::new(Vec::new()).unwrap();
    writer.start_file("package.yaml", content.len() as u64).unwrap();
    for chunk in content.chunks(7919) {
        writer.write_all(chunk).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn what_is_written_is_one_gzip_stream_with_the_digests_promised() {
    for size in [0, 1, 511, 512, (1 << 19) - 512, 1 << 19, (9 << 20) + 17] {
        let content: Vec<u8> = (0..size).map(|index: u32| (index % 251) as u8).collect();
        let (bytes, layer) = write(&content);
        assert_eq!(layer.descriptor.digest, Digest::of(&bytes));
        assert_eq!(layer.descriptor.size, bytes.len() as u64);
        let mut archive = Vec::new();
        let mut single = flate2::read::GzDecoder::new(bytes.as_slice());
        single.read_to_end(&mut archive).unwrap();
        assert_eq!(layer.diff_id, Digest::of(&archive), "{size}");
        let read = read_layers(&Layers(vec![bytes]), "package.yaml", &Limits::default());
        if let Ok(text) = String::from_utf8(content) {
            assert_eq!(read, Ok(Some(text)), "{size}");
        }
    }
}

/// If this digest moves, so does the digest of every package anyone builds: the compressor, its
/// level or the header changed. Only ever do that on purpose.
#[test]
fn the_bytes_of_a_layer_are_pinned() {
    let check = |content: &[u8], digest: &str| {
        assert_eq!(write(content).1.descriptor.digest.to_string(), digest);
    };
    check(
        b"apiVersion: v1\n",
        "sha256:5921afa285f480aa17b01271883d167fa3f343a0790b17d495342b6e5d98cf23",
    );
    check(
        &b"apron ".repeat(1 << 19),
        "sha256:fbbfa6dfeaeab896083a86932cab64f269a0c151280f47037d4911b59b3a8f63",
    );
}

#[test]
fn a_file_must_be_written_as_announced() {
    let mut writer = LayerWriter::new(Vec::new()).unwrap();
    writer.start_file("f", 2).unwrap();
    assert!(writer.write_all(b"abc").is_err());
    writer.write_all(b"a").unwrap();
    assert!(writer.finish().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read_layers(&Layers(vec![bytes]), "package.yaml", &Limits::default());
    }
}
