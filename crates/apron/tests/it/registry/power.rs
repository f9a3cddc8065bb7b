//! The power fails, or the process is killed, at every step there is.
//!
//! A run is recorded call by call, with every byte. From the record a model keeps two pictures of
//! the data directory: as a process sees it, and as the disk has it, which learns of a file's
//! bytes when the file is flushed and of a name when its directory is. At every flush and every
//! answer the disk's picture is written out, opened, and held against what had been answered; and
//! after every other call the process's.

use super::crash::{KIND, send};
use super::{Served, ask};
use crate::support::{Scratch, command_at};
use registry::{Name, OpenError, Registry, Selector, Settings, Tag, rebuild};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A file's bytes, as processes see them and as the disk has them.
#[derive(Clone, Default)]
struct File {
    seen: Vec<u8>,
    kept: Vec<u8>,
}

/// What a name stands for.
#[derive(Clone, PartialEq, Eq)]
enum Entry {
    File(usize),
    Directory,
    Link(String),
}

/// A data directory and its disk. Names are paths below the directory.
#[derive(Clone, Default)]
struct Disk {
    files: Vec<File>,
    seen: BTreeMap<String, Entry>,
    kept: BTreeMap<String, Entry>,
}

/// How a disk loses what it was not asked to keep.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// Everything: names and bytes.
    All,
    /// Bytes only; names are all as processes saw them, so that files are empty or old.
    Bytes,
    /// Nothing: only the process is gone.
    Nothing,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Disk {
    /// A disk that has what a directory holds.
    fn of(root: &Path) -> Self {
        let mut disk = Self::default();
        disk.add(root, "");
        disk.kept.clone_from(&disk.seen);
        disk
    }

    fn add(&mut self, directory: &Path, prefix: &str) {
        for entry in fs_err::read_dir(directory).unwrap() {
            let (kind, entry) = entry.map(|it| (it.file_type().unwrap(), it)).unwrap();
            let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            if kind.is_symlink() {
                let target = fs_err::read_link(entry.path()).unwrap();
                self.seen.insert(name, Entry::Link(target.into_os_string().into_string().unwrap()));
            } else if kind.is_dir() {
                self.seen.insert(name.clone(), Entry::Directory);
                self.add(&entry.path(), &format!("{name}/"));
            } else {
                let bytes = fs_err::read(entry.path()).unwrap();
                *self.file(&name) = File { seen: bytes.clone(), kept: bytes };
            }
        }
    }

    fn file(&mut self, path: &str) -> &mut File {
        let next = self.files.len();
        let entry = self.seen.entry(path.to_owned()).or_insert(Entry::File(next));
        let Entry::File(number) = *entry else { panic!("{path} is no file") };
        if number == next {
            self.files.push(File::default());
        }
        &mut self.files[number]
    }

    fn write(&mut self, path: &str, offset: usize, bytes: &[u8]) {
        let seen = &mut self.file(path).seen;
        let end = seen.len().max(offset + bytes.len());
        seen.resize(end, 0);
        seen[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn flush(&mut self, path: &str) {
        match self.seen.get(path) {
            Some(Entry::File(number)) => {
                let file = &mut self.files[*number];
                file.kept.clone_from(&file.seen);
            }
            _ if path.is_empty() || self.seen.get(path) == Some(&Entry::Directory) => {
                self.kept.retain(|name, _| parent(name) != path);
                let here = self.seen.iter().filter(|(name, _)| parent(name) == path);
                self.kept.extend(here.map(|(name, entry)| (name.clone(), entry.clone())));
            }
            _ => {}
        }
    }

    /// Writes out what is there after the power failed.
    fn materialise(&self, root: &Path, loss: Loss) {
        let names = match loss {
            Loss::All => &self.kept,
            Loss::Bytes | Loss::Nothing => &self.seen,
        };
        let bytes = |number: usize| match loss {
            Loss::Nothing => &self.files[number].seen,
            Loss::All | Loss::Bytes => &self.files[number].kept,
        };
        fs_err::create_dir_all(root).unwrap();
        for (name, entry) in names {
            let path = root.join(name);
            // A name in a directory that is not there is not there.
            if !path.parent().unwrap().is_dir() {
                continue;
            }
            match entry {
                Entry::Directory => fs_err::create_dir(path).unwrap(),
                Entry::Link(target) => fs_err::os::unix::fs::symlink(target, path).unwrap(),
                Entry::File(number) => fs_err::write(path, bytes(*number)).unwrap(),
            }
        }
    }
}

/// One call of the record.
struct Call<'line> {
    name: &'line str,
    arguments: &'line str,
    result: i64,
}

/// Lines of a record with the halves of interrupted calls joined.
fn joined(record: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut lines = Vec::new();
    for line in record.lines() {
        let Some((process, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(process, start);
        } else if let Some((_, end)) = call.split_once(" resumed>") {
            lines.push(format!("{}{end}", begun.remove(process).unwrap_or_default()));
        } else {
            lines.push(call.to_owned());
        }
    }
    lines
}

fn read_call(line: &str) -> Option<Call<'_>> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let result = result.split(['<', ' ']).next()?.parse().ok()?;
    Some(Call { name, arguments, result })
}

/// The path of a descriptor (`12</data/x>`), if it is below the data directory.
fn below(text: &str, root: &str) -> Option<String> {
    let path = text.split_once('<')?.1.split('>').next()?;
    let path = String::from_utf8(unescape(path)).ok()?;
    Some(path.strip_prefix(root)?.trim_start_matches('/').to_owned())
}

/// Every quoted string, with its bytes.
fn strings(text: &str) -> Vec<Vec<u8>> {
    text.split('"').skip(1).step_by(2).map(unescape).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect()
}

fn names(arguments: &str, root: &str) -> Vec<Option<String>> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let strip =
        |path: String| path.strip_prefix(root).map(|it| it.trim_start_matches('/').to_owned());
    strings(arguments).into_iter().map(|bytes| strip(text(bytes))).collect()
}

/// What a call was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Changed,
    Flushed,
    Answered,
}

/// Lets the disk see a call.
fn apply(disk: &mut Disk, call: &Call<'_>, root: &str) -> Effect {
    if call.result < 0 {
        return Effect::None;
    }
    let here = below(call.arguments, root);
    match (call.name, here.as_deref()) {
        ("pwrite64" | "write", Some(path)) => {
            let bytes = &strings(call.arguments)[0];
            let count = usize::try_from(call.result).unwrap();
            let offset = call.arguments.rsplit(", ").next().unwrap();
            let offset = match call.name {
                "pwrite64" => offset.parse().unwrap(),
                _ => disk.file(path).seen.len(),
            };
            disk.write(path, offset, &bytes[..count]);
        }
        ("ftruncate", Some(path)) => {
            let length = call.arguments.rsplit(", ").next().unwrap().parse().unwrap();
            disk.file(path).seen.resize(length, 0);
        }
        ("fsync" | "fdatasync", Some(path)) => {
            disk.flush(path);
            return Effect::Flushed;
        }
        ("openat", _) if call.arguments.contains("O_CREAT") => {
            if let Some(Some(path)) = names(call.arguments, root).first() {
                let truncate = call.arguments.contains("O_TRUNC");
                let file = disk.file(path);
                if truncate {
                    file.seen.clear();
                }
            }
        }
        ("rename", _) => {
            if let [Some(from), Some(to)] = &names(call.arguments, root)[..] {
                let entry = disk.seen.remove(from).unwrap_or_else(|| panic!("no {from}"));
                disk.seen.insert(to.clone(), entry);
            }
        }
        ("unlink", _) => {
            if let Some(Some(path)) = names(call.arguments, root).first() {
                disk.seen.remove(path);
            }
        }
        ("mkdir", _) => {
            let made = names(call.arguments, root).into_iter().next().flatten();
            // The data directory itself is there.
            if let Some(path) = made.filter(|path| !path.is_empty()) {
                disk.seen.insert(path, Entry::Directory);
            }
        }
        ("symlink", _) => {
            let both = strings(call.arguments);
            if let Some(Some(path)) = names(call.arguments, root).last() {
                let target = String::from_utf8(both[0].clone()).unwrap();
                disk.seen.insert(path.clone(), Entry::Link(target));
            }
        }
        // An answer leaves: `HTTP/1.` at the start of what is sent.
        ("write" | "writev" | "sendto", None) => {
            let sent = strings(call.arguments);
            let answer = sent.first().is_some_and(|sent| sent.starts_with(b"HTTP/1."));
            return if answer { Effect::Answered } else { Effect::None };
        }
        _ => return Effect::None,
    }
    Effect::Changed
}

/// What a client was told, after so many answers.
#[derive(Clone, Default)]
struct Told {
    /// Tags, with the digest each must have; `None` once its deletion or move was asked for.
    tags: BTreeMap<String, Option<oci::Digest>>,
    gone: Vec<String>,
    blobs: Vec<oci::Digest>,
    /// A blob mounted into another repository.
    mounted: Option<oci::Digest>,
    /// A blob that was deleted.
    dropped: Option<oci::Digest>,
    /// An upload under way: its address and how much of it was acknowledged.
    upload: Option<(String, u64)>,
}

/// A client that remembers what it was told after each answer.
struct Client {
    address: String,
    told: Told,
    history: Vec<Told>,
}

impl Client {
    /// Asks for something, and gets this status.
    fn ask(&mut self, verb: &str, path: &str, body: &str, status: u16) -> String {
        let (found, answer) = send(&self.address, verb, path, body).expect("it answers");
        assert_eq!(found, status, "{verb} {path}: {answer}");
        answer
    }

    /// The last answer is in: from the next on, this is known.
    fn heard(&mut self) {
        self.history.push(self.told.clone());
    }

    fn blob(&mut self, content: &str) -> oci::Digest {
        let digest = oci::Digest::of(content.as_bytes());
        self.ask("POST", &format!("/v2/team/p/blobs/uploads/?digest={digest}"), content, 201);
        self.told.blobs.push(digest.clone());
        self.heard();
        digest
    }

    fn chunked(&mut self, content: &str) -> oci::Digest {
        let digest = oci::Digest::of(content.as_bytes());
        let begun = self.ask("POST", "/v2/team/p/blobs/uploads/", "", 202);
        let location = begun.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        let location = location.trim().to_owned();
        self.heard();
        let (first, second) = content.split_at(content.len() / 3);
        let mut offset = 0;
        for chunk in [first, second] {
            self.ask("PATCH", &location, chunk, 202);
            offset += chunk.len() as u64;
            self.told.upload = Some((location.clone(), offset));
            self.heard();
        }
        // While it is being finished it may be an upload or a blob.
        self.told.upload = None;
        if let Some(last) = self.history.last_mut() {
            last.upload = None;
        }
        self.ask("PUT", &format!("{location}?digest={digest}"), "", 201);
        self.told.blobs.push(digest.clone());
        self.heard();
        digest
    }

    fn uncertain(&mut self, tag: &str) {
        self.told.tags.insert(tag.to_owned(), None);
        if let Some(last) = self.history.last_mut() {
            last.tags.insert(tag.to_owned(), None);
            last.gone.retain(|it| it != tag);
        }
    }

    fn tag(&mut self, tag: &str, config: &oci::Digest, size: usize) -> oci::Digest {
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{KIND}","config":{{"mediaType":"application/json","size":{size},"digest":"{config}"}},"layers":[]}}"#
        );
        let digest = oci::Digest::of(manifest.as_bytes());
        self.uncertain(tag);
        self.ask("PUT", &format!("/v2/team/p/manifests/{tag}"), &manifest, 201);
        self.told.tags.insert(tag.to_owned(), Some(digest.clone()));
        self.told.gone.retain(|it| it != tag);
        self.heard();
        digest
    }

    fn delete(&mut self, reference: &str, tags: &[&str]) {
        for tag in tags {
            self.uncertain(tag);
        }
        self.ask("DELETE", &format!("/v2/team/p/manifests/{reference}"), "", 202);
        for tag in tags {
            self.told.tags.remove(*tag);
            self.told.gone.push((*tag).to_owned());
        }
        self.heard();
    }
}

/// What a client does that is not a push.
impl Client {
    fn mount(&mut self, digest: &oci::Digest) {
        self.ask(
            "POST",
            &format!("/v2/other/q/blobs/uploads/?mount={digest}&from=team/p"),
            "",
            201,
        );
        self.told.mounted = Some(digest.clone());
        self.heard();
    }

    fn drop_blob(&mut self, content: &str) {
        let digest = self.blob(content);
        self.told.blobs.retain(|it| *it != digest);
        if let Some(last) = self.history.last_mut() {
            last.blobs.retain(|it| *it != digest);
        }
        self.ask("DELETE", &format!("/v2/team/p/blobs/{digest}"), "", 202);
        self.told.dropped = Some(digest);
        self.heard();
    }

    fn cancel(&mut self) {
        let begun = self.ask("POST", "/v2/team/p/blobs/uploads/", "", 202);
        let location = begun.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        let location = location.trim().to_owned();
        self.heard();
        self.ask("PATCH", &location, "some bytes", 202);
        self.heard();
        self.ask("DELETE", &location, "", 204);
        self.heard();
    }
}

/// Small and large blobs, whole and in chunks, tags that move, deletions of both kinds.
fn scenario(address: &str) -> Vec<Told> {
    let mut client =
        Client { address: address.to_owned(), told: Told::default(), history: Vec::new() };
    client.heard();
    let (small, large) = ("{\"a\":1}", "large ".repeat(30_000));
    let first = client.blob(small);
    client.tag("t0", &first, small.len());
    let second = client.blob(&large);
    let other = client.tag("t1", &second, large.len());
    let third = client.chunked(&"chunked ".repeat(20_000));
    client.tag("moving", &first, small.len());
    client.tag("moving", &third, 160_000);
    client.delete("t0", &["t0"]);
    client.mount(&second);
    client.drop_blob("a blob to delete");
    client.cancel();
    client.delete(&other.to_string(), &["t1"]);
    client.tag("t1", &second, large.len());
    client.history
}

/// Opens what is left, and holds it against what was told.
async fn check(root: &Path, told: &Told, when: &str) {
    let settings = Settings { space_reserve: 0, ..Settings::default() };
    let registry = match Registry::open(root, settings.clone()) {
        // Somebody who was making the database anew has to begin again.
        Err(OpenError::DatabaseMissing(_)) => {
            assert_eq!(rebuild(root).unwrap().problems, Vec::<String>::new(), "{when}");
            Registry::open(root, settings)
        }
        other => other,
    };
    let registry = registry.unwrap_or_else(|error| {
        panic!("{when}: it does not open: {error}: {:?}", std::error::Error::source(&error))
    });
    let name = Name::parse("team/p").unwrap();
    for (tag, digest) in &told.tags {
        let Some(digest) = digest else { continue };
        let selector = Selector::Tag(Tag::parse(tag).unwrap());
        let found = registry.manifest(&name, &selector).await;
        let found = found.unwrap_or_else(|error| panic!("{when}: {tag}: {error}"));
        assert_eq!(found.digest, *digest, "{when}: {tag}");
    }
    for tag in &told.gone {
        let selector = Selector::Tag(Tag::parse(tag).unwrap());
        assert!(registry.manifest(&name, &selector).await.is_err(), "{when}: {tag} is back");
    }
    for blob in &told.blobs {
        let found = registry.blob_size(&name, blob).await;
        assert!(found.is_ok(), "{when}: {blob} was acknowledged: {found:?}");
    }
    if let Some(blob) = &told.mounted {
        let found = registry.blob_size(&Name::parse("other/q").unwrap(), blob).await;
        assert!(found.is_ok(), "{when}: {blob} was mounted: {found:?}");
    }
    if let Some(blob) = &told.dropped {
        let found = registry.blob_size(&name, blob).await;
        assert!(found.is_err(), "{when}: {blob} was deleted: {found:?}");
    }
    if let Some((location, offset)) = &told.upload {
        let id = location.rsplit('/').next().unwrap();
        let length = fs_err::metadata(root.join("uploads").join(id)).map_or(0, |it| it.len());
        assert!(length >= *offset, "{when}: an upload has {length} of {offset} bytes");
    }
    let mark = fs_err::read_to_string(root.join("oci-layout")).unwrap();
    assert!(mark.contains("imageLayoutVersion"), "{when}: `{mark}`");
    // Everything there is a row for is whole.
    assert_eq!(registry.scrub().await.unwrap().damaged, [], "{when}");
    registry.flush_views().await;
    let Ok(tags) = registry.tags(&name, "", 1000).await else { return };
    let view = fs_err::read_to_string(root.join("repos/team/p/_layout/index.json"));
    let view = view.unwrap_or_default();
    for tag in &tags.items {
        assert!(view.contains(&format!("\"{tag}\"")), "{when}: {tag} is not in {view}");
    }
}

/// The system calls that change files or answer.
const CALLS: &str = "trace=openat,pwrite64,write,writev,sendto,ftruncate,fsync,fdatasync,rename,unlink,mkdir,symlink";

/// apron, recorded.
fn recorded(scratch: &Scratch) -> Command {
    let mut traced = command_at(scratch, Path::new("strace"));
    traced.args(["-f", "-qq", "-y", "-xx", "-s", "1000000", "-e", CALLS, "-o"]);
    traced.arg(scratch.join("record")).arg(env!("CARGO_BIN_EXE_apron"));
    traced
}

/// Of the many writes to the database only some are looked at one by one.
const DATABASE_WRITES_PER_LOOK: usize = 6;

/// Goes through a record and looks at what is left after each step. Gives the number of looks
/// and of answers.
fn replay(scratch: &Scratch, mut disk: Disk, history: &[Told]) -> (usize, usize) {
    let root = scratch.join("data").display().to_string();
    let record = fs_err::read_to_string(scratch.join("record")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut answers, mut looks, mut writes) = (0, 0, 0);
    for line in joined(&record) {
        let Some(call) = read_call(&line) else { continue };
        let effect = apply(&mut disk, &call, &root);
        let losses: &[Loss] = match effect {
            Effect::None => continue,
            Effect::Changed if call.name == "pwrite64" => {
                writes += 1;
                if writes % DATABASE_WRITES_PER_LOOK == 0 { &[Loss::Nothing] } else { &[] }
            }
            Effect::Changed => &[Loss::Nothing],
            Effect::Flushed | Effect::Answered => &[Loss::All, Loss::Bytes],
        };
        answers += usize::from(effect == Effect::Answered);
        let told = &history[answers.saturating_sub(1)];
        for loss in losses {
            let copy = Scratch::new();
            disk.materialise(&copy.join("data"), *loss);
            let when = format!("after {answers} answers and {} ({loss:?})", call.name);
            runtime.block_on(check(&copy.join("data"), told, &when));
            looks += 1;
        }
    }
    (looks, answers)
}

/// Serves under record while `client` asks; gives what it heard.
fn served(scratch: &Scratch, flags: &[&str], client: impl Fn(&str) -> Vec<Told>) -> Vec<Told> {
    let served = Served::try_start(recorded(scratch), scratch, flags).unwrap();
    // One answer, so that the record and the client count alike.
    assert!(ask(&served.address, "GET /v2/ HTTP/1.0\r\n\r\n", b"").is_some());
    let history = client(&served.address);
    // The views are drawn at the end.
    served.stop_tree();
    history
}

#[test]
fn no_step_of_a_push_or_deletion_loses_what_was_acknowledged() {
    let scratch = Scratch::new();
    let history = served(&scratch, &["--gc-interval", "0"], scenario);
    let (looks, answers) = replay(&scratch, Disk::default(), &history);
    assert_eq!(answers, history.len(), "every answer was seen");
    println!("{looks} looks, {answers} answers");
    assert!(looks > 100, "{looks}");
}

/// What must be there whatever a collection or a rebuild was doing: all tags, and nothing that is
/// deleted. Blobs alone have no claim, and mounts are in no view.
fn lasting(history: &[Told]) -> Vec<Told> {
    let last = history.last().unwrap().clone();
    vec![Told { blobs: Vec::new(), mounted: None, dropped: None, ..last }]
}

#[test]
fn no_step_of_a_collection_loses_what_is_in_use() {
    let scratch = Scratch::new();
    let history = served(&scratch, &["--gc-interval", "0", "--lease", "0"], scenario);
    let disk = Disk::of(&scratch.join("data"));
    let mut collect = recorded(&scratch);
    collect.args(["registry", "gc", "--untagged-after", "0", "-o", "json", "--data-dir"]);
    let done = collect.arg(scratch.join("data")).output().unwrap();
    let done: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(done["blobs"].as_u64().unwrap() > 1, "{done}");
    let (looks, _) = replay(&scratch, disk, &lasting(&history));
    println!("{looks} looks, {done}");
    assert!(looks > 10, "{looks}");
}

#[test]
fn no_step_of_a_rebuild_loses_what_the_views_show() {
    let scratch = Scratch::new();
    let history = served(&scratch, &["--gc-interval", "0"], scenario);
    let disk = Disk::of(&scratch.join("data"));
    let mut again = recorded(&scratch);
    let done = again.args(["registry", "rebuild", "--data-dir"]).arg(scratch.join("data"));
    assert!(done.output().unwrap().status.success());
    let (looks, _) = replay(&scratch, disk, &lasting(&history));
    println!("{looks} looks");
    assert!(looks > 10, "{looks}");
}
