//! A disk that fails: full or broken, from one moment on, and perhaps well again later.
//!
//! The moment is between two requests, and from then on a call fails on whatever thread it is
//! made: strace comes to a registry that runs already. (It counts calls by thread, so "from the
//! nth call on" would mean something else on every run.)

use super::Served;
use super::crash::{KIND, Known, check, scenario, send};
use crate::support::{Scratch, children, command_at, wait_for_end};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

/// A call that fails, for every file or for one.
#[derive(Clone, Copy, Debug)]
struct Fault {
    call: &'static str,
    error: &'static str,
    file: Option<&'static str>,
}

/// A registry whose disk can be made to fail.
struct Fragile {
    /// A shell that becomes strace: whoever traces must be an ancestor, on some systems.
    served: Served,
    /// The registry itself.
    process: String,
    /// What strace says; it must have somebody to say it to.
    says: BufReader<ChildStderr>,
}

const SHELL: &str = r#""$@" 2>/dev/null & read -r words; exec strace $words -p $!"#;

impl Fragile {
    fn start(scratch: &Scratch) -> Self {
        let mut shell = command_at(scratch, Path::new("sh"));
        shell.args(["-c", SHELL, "sh", env!("CARGO_BIN_EXE_apron")]);
        shell.stdin(Stdio::piped()).stderr(Stdio::piped());
        let flags = ["--gc-interval", "0"];
        let mut served = Served::try_start_saying(shell, scratch, &flags).unwrap();
        let says = BufReader::new(served.child.stderr.take().unwrap());
        let [process] = &children(&served.child)[..] else { panic!("a shell with one child") };
        Self { process: process.clone(), served, says }
    }

    /// From now on this fails.
    fn fail(&mut self, scratch: &Scratch, fault: Fault, when: &str) {
        let Fault { call, error, file } = fault;
        let path = file.map(|file| format!(" -P {}", scratch.join(file).display()));
        let path = path.unwrap_or_default();
        let inject = format!("inject={call}:error={error}:when={when}");
        let words = format!("-f -o /dev/null -e trace={call} -e {inject}{path}\n");
        self.served.child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "strace does not come");
        }
    }

    /// From now on nothing fails.
    fn heal(&mut self) {
        let strace = self.served.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &strace]).status().unwrap().success());
        self.served.child.wait().unwrap();
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.process]).status();
        // Whoever opens the directory next waits for nobody.
        wait_for_end(&self.process);
    }
}

/// An image of one blob.
struct Image {
    content: String,
    digest: oci::Digest,
    manifest: String,
    tag: String,
}

impl Image {
    fn new(number: usize) -> Self {
        let content = format!("content {number}").repeat(100_000);
        let (digest, size) = (oci::Digest::of(content.as_bytes()), content.len());
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{KIND}","config":{{"mediaType":"application/json","size":{size},"digest":"{digest}"}},"layers":[]}}"#
        );
        Self { content, digest, manifest, tag: format!("/v2/team/p/manifests/t{number}") }
    }

    fn blob(&self) -> String {
        format!("/v2/team/p/blobs/{}", self.digest)
    }

    fn push_blob(&self, address: &str) -> (u16, String) {
        let path = format!("/v2/team/p/blobs/uploads/?digest={}", self.digest);
        send(address, "POST", &path, &self.content).expect("it answers")
    }

    fn push_manifest(&self, address: &str) -> (u16, String) {
        send(address, "PUT", &self.tag, &self.manifest).expect("it answers")
    }

    /// Pushes all of it.
    fn push(&self, address: &str, known: &mut Known, when: &str) {
        let (status, answer) = self.push_blob(address);
        assert_eq!(status, 201, "{when}: {answer}");
        let (status, answer) = self.push_manifest(address);
        assert_eq!(status, 201, "{when}: {answer}");
        known.acknowledged.extend([self.blob(), self.tag.clone()]);
    }
}

/// What is refused last, and so is what the database's log ends with.
#[derive(Clone, Copy, Debug)]
enum Last {
    Blob,
    Manifest,
}

/// What happens after the disk failed.
#[derive(Clone, Copy, Debug)]
enum Then {
    Heal,
    Kill,
}

/// Pushes to a registry whose disk fails: all of it is refused, for that reason.
fn refuse_all(address: &str, prepared: &Image, new: &Image, last: Last, status: u16, when: &str) {
    let manifest = || {
        let (found, answer) = prepared.push_manifest(address);
        assert_eq!(found, status, "{when}: {answer}");
    };
    let blob = || {
        let (found, answer) = new.push_blob(address);
        assert_eq!(found, status, "{when}: {answer}");
        // What was refused is missing.
        let (found, answer) = new.push_manifest(address);
        assert!(found == 404 || found == status, "{when}: {answer}");
    };
    match last {
        Last::Blob => [manifest(), blob()],
        Last::Manifest => [blob(), manifest()],
    };
}

/// What was refused is there entirely or not at all.
fn whole_or_nothing(served: &Served, images: &[&Image], when: &str) {
    let status = |verb: &str, path: &str| send(&served.address, verb, path, "").unwrap().0;
    for path in images.iter().flat_map(|image| [image.blob(), image.tag.clone()]) {
        let (head, get) = (status("HEAD", &path), status("GET", &path));
        assert!(head == get && [200, 404].contains(&get), "{when}: {path}: {head} and {get}");
    }
}

/// Lets the disk fail for a while.
fn fails_cleanly(fault: Fault, status: u16, last: Last, then: Then) {
    let when = format!("{fault:?} {last:?} {then:?}");
    let scratch = Scratch::new();
    let mut fragile = Fragile::start(&scratch);
    let (mut known, images) = (Known::default(), [0, 1, 2].map(Image::new));
    let [before, prepared, new] = &images;
    before.push(&fragile.served.address, &mut known, &when);
    assert_eq!(prepared.push_blob(&fragile.served.address).0, 201);
    known.acknowledged.push(prepared.blob());
    fragile.fail(&scratch, fault, "1+");
    for _ in 0..2 {
        refuse_all(&fragile.served.address, prepared, new, last, status, &when);
        check(&fragile.served, &known, &when);
        whole_or_nothing(&fragile.served, &[prepared, new], &when);
    }
    if let Then::Heal = then {
        fragile.heal();
        check(&fragile.served, &known, &when);
        for image in &images {
            image.push(&fragile.served.address, &mut known, &when);
        }
        check(&fragile.served, &known, &when);
    }
    drop(fragile);
    let served = Served::start(&scratch);
    check(&served, &known, &when);
    whole_or_nothing(&served, &[prepared, new], &when);
    for image in &images {
        image.push(&served.address, &mut known, &when);
    }
    check(&served, &known, &when);
}

const LOG: Option<&str> = Some("data/meta.db-wal");

fn all_fail_cleanly(
    error: &'static str,
    status: u16,
    calls: &[(&'static str, Option<&'static str>)],
) {
    for (call, file) in calls {
        let fault = Fault { call, error, file: *file };
        for last in [Last::Blob, Last::Manifest] {
            fails_cleanly(fault, status, last, Then::Heal);
            fails_cleanly(fault, status, last, Then::Kill);
        }
    }
}

#[test]
fn a_full_disk_is_refused_cleanly() {
    all_fail_cleanly("ENOSPC", 507, &[("pwrite64", None), ("pwrite64", LOG), ("rename", None)]);
}

#[test]
fn a_broken_disk_is_refused_cleanly() {
    let calls = [
        ("pwrite64", None),
        ("fdatasync", None),
        ("fsync", None),
        ("fsync,fdatasync", LOG),
        ("rename", None),
    ];
    all_fail_cleanly("EIO", 500, &calls);
}

#[test]
fn an_upload_whose_flush_failed_is_not_believed_the_next_time() {
    let scratch = Scratch::new();
    let mut fragile = Fragile::start(&scratch);
    let address = fragile.served.address.clone();
    let (_, begun) = send(&address, "POST", "/v2/team/p/blobs/uploads/", "").unwrap();
    let location = begun.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().trim();
    // Each thread fails once, and then says all is well.
    let fault = Fault { call: "fdatasync", error: "EIO", file: None };
    fragile.fail(&scratch, fault, "1");
    assert_eq!(send(&address, "PATCH", location, "content").unwrap().0, 500);
    fragile.heal();
    let digest = oci::Digest::of(b"content");
    let put = format!("{location}?digest={digest}");
    assert_eq!(send(&address, "PUT", &put, "").unwrap().0, 404);
    drop(fragile);
    let served = Served::start(&scratch);
    assert_eq!(served.get(location).0, 404);
    let mut known = Known::default();
    scenario(&served.address, &mut known).expect("it serves as if nothing had been");
    check(&served, &known, "after a flush failed");
}
