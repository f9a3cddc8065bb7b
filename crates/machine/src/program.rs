//! An image of this very program, made without another image, an engine or a network.
//!
//! A program that is linked to libraries of its machine runs nowhere else without them, so they come
//! along: those that this process has loaded, each under its own path, and the loader under the path
//! that the program names. A static program has none, and its image is that one file.

use ground::failure::{Failure, Outcome};
use oci::config::EPOCH;
use oci::layer::{LayerWriter, WrittenLayer};
use oci::{ImageConfig, Platform};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use store::tarball::{self, Layer, LayerContent};

const PROGRAM: &str = "usr/local/bin/apron";
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
/// Where systems keep the certificates they trust, in the order of their number.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The user that the chart runs it as, too.
const USER: &str = "65532:65532";
const ACCOUNTS: [(&str, &str); 2] = [
    ("etc/passwd", "root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/:/\n"),
    ("etc/group", "root:x:0:\nnonroot:x:65532:\n"),
];

/// An image that was written.
#[derive(Debug)]
pub struct OwnImage {
    /// What it runs on, as `OS/ARCH`.
    pub platform: String,
    /// The manifest's digest.
    pub digest: String,
    /// How large the archive is.
    pub size: u64,
    /// Paths of the files in it.
    pub files: Vec<String>,
}

impl OwnImage {
    /// Whether programs in it trust the authorities that this machine trusts.
    pub fn has_certificates(&self) -> bool {
        self.files.iter().any(|path| path == CERTIFICATES)
    }
}

/// Writes an image of this program as a docker-save archive.
pub fn write_own_image(file: &Path) -> Outcome<OwnImage> {
    let unreadable = |error: &io::Error| {
        let hint = "run it where /proc can be read and the program's file is still there";
        Failure::new("cannot find the files that this program is made of", hint).because(error)
    };
    let program = fs_err::read_link("/proc/self/exe").map_err(|error| unreadable(&error))?;
    let files = find_files(&program).map_err(|error| unreadable(&error))?;
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new("."));
    let unwritten = |error: &dyn std::error::Error| {
        let hint = "check that the directory exists, is writable and has room";
        Failure::new(format!("cannot write {}", file.display()), hint).because(error)
    };
    let work = tempfile::Builder::new()
        .prefix(".apron-")
        .tempdir_in(beside)
        .map_err(|error| unwritten(&store::nameless(&error, beside)))?;
    let path = work.path().join("layer");
    let layer = write_layer(&files, &path).map_err(|error| unwritten(&error))?;
    let platform = Platform::new("linux", architecture_name());
    let config = image_config(&platform, &layer).canonical().map_err(|error| {
        Failure::new("cannot write the image config", "please report this").because(&error)
    })?;
    let content = Layer { descriptor: layer.descriptor, content: LayerContent::File(path) };
    let raw = tarball::write(file, &config, &[content]).map_err(|error| unwritten(&error))?;
    Ok(OwnImage {
        platform: platform.to_string(),
        digest: raw.digest.to_string(),
        size: fs_err::metadata(file).map_err(|error| Failure::file(&error))?.len(),
        files: files.into_keys().collect(),
    })
}

/// The processor's name in images.
fn architecture_name() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The file of certificates that this machine trusts, if there is one.
pub(crate) fn trusted_bundle() -> Option<PathBuf> {
    BUNDLES.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Where the bytes of a file of the image are.
enum Content {
    Program(PathBuf),
    File(PathBuf),
    Text(&'static str),
}

/// The files of the image by their paths in it.
fn find_files(program: &Path) -> io::Result<BTreeMap<String, Content>> {
    let mut files = BTreeMap::new();
    for (path, text) in ACCOUNTS {
        files.insert(path.to_owned(), Content::Text(text));
    }
    if let Some(bundle) = trusted_bundle() {
        files.insert(CERTIFICATES.to_owned(), Content::File(bundle));
    }
    for library in loaded_libraries(&fs_err::read_to_string("/proc/self/maps")?) {
        files.insert(library.trim_start_matches('/').to_owned(), Content::Program(library.into()));
    }
    let head = read_head(program)?;
    if let Some(loader) = elf_interpreter(&head) {
        let path = loader.trim_start_matches('/').to_owned();
        files.insert(path, Content::Program(loader.into()));
    }
    files.insert(PROGRAM.to_owned(), Content::Program(program.to_owned()));
    Ok(files)
}

/// Shared libraries among the files that a process has mapped.
fn loaded_libraries(maps: &str) -> Vec<&str> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let is_library = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split('.').skip(1).any(|part| part == "so")
    };
    let mut all: Vec<&str> = paths.filter(is_library).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// As much of a program as its headers take.
fn read_head(program: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut head = Vec::new();
    fs_err::File::open(program)?.take(64 << 10).read_to_end(&mut head)?;
    Ok(head)
}

/// The loader that a 64-bit ELF program names; none if it is static.
fn elf_interpreter(head: &[u8]) -> Option<&str> {
    const PROGRAM_INTERPRETER: u64 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let is_known = head.starts_with(b"\x7fELF\x02\x01");
    let table = usize::try_from(is_known.then(|| number(0x20, 8))??).ok()?;
    let size = usize::try_from(number(0x36, 2)?).ok()?;
    let count = usize::try_from(number(0x38, 2)?).ok()?;
    let entries = (0..count).filter_map(|index| table.checked_add(index.checked_mul(size)?));
    let entry = entries.into_iter().find(|at| number(*at, 4) == Some(PROGRAM_INTERPRETER))?;
    let start = usize::try_from(number(entry.checked_add(0x08)?, 8)?).ok()?;
    let length = usize::try_from(number(entry.checked_add(0x20)?, 8)?).ok()?;
    let text = head.get(start..start.checked_add(length)?)?;
    std::str::from_utf8(text).ok().map(|text| text.trim_end_matches('\0'))
}

fn write_layer(files: &BTreeMap<String, Content>, to: &Path) -> io::Result<WrittenLayer> {
    let mut layer = LayerWriter::new(BufWriter::new(fs_err::File::create(to)?))?;
    for (path, content) in files {
        match content {
            Content::Text(text) => {
                layer.start_file(path, text.len() as u64)?;
                io::copy(&mut text.as_bytes(), &mut layer)?;
            }
            Content::File(source) | Content::Program(source) => {
                let mut file = fs_err::File::open(source)?;
                let size = file.metadata()?.len();
                match content {
                    Content::Program(_) => layer.start_program(path, size)?,
                    _ => layer.start_file(path, size)?,
                }
                io::copy(&mut file, &mut layer)?;
            }
        }
    }
    Ok(layer.finish()?.1)
}

fn image_config(platform: &Platform, layer: &WrittenLayer) -> ImageConfig {
    let mut config = ImageConfig {
        architecture: platform.architecture.clone(),
        os: platform.os.clone(),
        created: Some(EPOCH.to_owned()),
        ..ImageConfig::default()
    };
    config.rootfs.diff_ids.push(layer.diff_id.clone());
    let history = serde_json::Map::from_iter([("created".to_owned(), json!(EPOCH))]);
    config.history = Some(vec![history]);
    let run = &mut config.config;
    run.extra.insert("User".to_owned(), json!(USER));
    run.extra.insert("Entrypoint".to_owned(), json!([format!("/{PROGRAM}")]));
    run.extra.insert("Env".to_owned(), json!(["PATH=/usr/local/bin", "HOME=/tmp"]));
    run.labels.insert("org.opencontainers.image.title".to_owned(), "apron".to_owned());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    run.labels.insert("org.opencontainers.image.version".to_owned(), version);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_among_what_is_mapped() {
        let maps = "\
            7f00-7f01 r--p 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f01-7f02 r-xp 00001000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f02-7f03 r--p 00000000 08:01 2 /opt/apron\n\
            7f03-7f04 rw-p 00000000 00:00 0 [heap]\n\
            7f04-7f05 r--p 00000000 08:01 3 /usr/lib/libm.so\n";
        assert_eq!(
            loaded_libraries(maps),
            ["/usr/lib/libm.so", "/usr/lib/x86_64-linux-gnu/libc.so.6"]
        );
    }

    #[test]
    fn programs_name_their_loader_or_none() {
        let own = read_head(&std::env::current_exe().unwrap()).unwrap();
        let loader = elf_interpreter(&own).unwrap();
        assert!(Path::new(loader).is_file(), "{loader}");
        assert_eq!(elf_interpreter(b"#!/bin/sh"), None);
        // Headers that lie about where things are.
        for end in 0..own.len().min(600) {
            elf_interpreter(&own[..end]);
        }
        let mut lying = own.clone();
        lying[0x20..0x28].fill(0xff);
        assert_eq!(elf_interpreter(&lying), None);
    }
}
