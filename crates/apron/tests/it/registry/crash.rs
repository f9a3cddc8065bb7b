//! Killed at every step, and opened again: what was acknowledged is there, and whole.

use super::{Served, ask, json};
use crate::support::{Scratch, apron, command_at};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(super) const KIND: &str = "application/vnd.oci.image.manifest.v1+json";

/// Pushes blobs and manifests until nobody answers; gives what was acknowledged.
fn push_until_killed(address: &str, seed: usize, count: &AtomicUsize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let content =
            format!("{{\"seed\":{seed},\"number\":{number}}}").repeat(1 + number % 7 * 400);
        let digest = oci::Digest::of(content.as_bytes());
        let name = format!("team{}/p", number % 3);
        let post = |path: &str, kind: &str, verb: &str, body: &str| {
            let head = format!(
                "{verb} {path} HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            ask(address, &head, body.as_bytes()).map(|(status, _)| status)
        };
        let upload = format!("/v2/{name}/blobs/uploads/?digest={digest}");
        let Some(status) = post(&upload, "application/octet-stream", "POST", &content) else {
            break;
        };
        assert_eq!(status, 201);
        acknowledged.push(format!("/v2/{name}/blobs/{digest}"));
        count.fetch_add(1, Ordering::Relaxed);
        let kind = KIND;
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{"mediaType":"application/json","size":{},"digest":"{digest}"}},"layers":[]}}"#,
            content.len()
        );
        let path = format!("/v2/{name}/manifests/t{number}");
        let Some(status) = post(&path, kind, "PUT", &manifest) else { break };
        assert_eq!(status, 201);
        acknowledged.push(path);
        count.fetch_add(1, Ordering::Relaxed);
    }
    acknowledged
}

#[test]
fn nothing_acknowledged_is_lost_when_the_registry_is_killed() {
    let scratch = Scratch::new();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..12 {
        let served = Served::start(&scratch);
        for path in &acknowledged {
            let (status, _) = served.get(path);
            assert_eq!(status, 200, "round {round}: {path} was acknowledged and is gone");
        }
        let count = Arc::new(AtomicUsize::new(0));
        let pushers: Vec<_> = (0..3)
            .map(|pusher| {
                let (address, count) = (served.address.clone(), count.clone());
                let seed = round * 10 + pusher;
                std::thread::spawn(move || push_until_killed(&address, seed, &count))
            })
            .collect();
        // Another moment each time, from the first request to the middle of many.
        let deadline = Instant::now() + Duration::from_secs(300);
        while count.load(Ordering::Relaxed) < round * 7 {
            assert!(Instant::now() < deadline, "round {round}: pushes come to a halt");
            std::thread::sleep(Duration::from_micros(300));
        }
        served.kill();
        for pusher in pushers {
            acknowledged.extend(pusher.join().unwrap());
        }
        // Old ones were looked at often enough.
        let skip = acknowledged.len().saturating_sub(300);
        acknowledged.drain(..skip);
    }
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let data = scratch.join("data").display().to_string();
    let scrubbed = apron(&scratch, ["registry", "scrub", "--data-dir", &data, "-o", "json"]).ok();
    assert_eq!(json(&scrubbed.stdout)["damaged"], serde_json::json!([]));
    assert!(Path::new(&data).join("blobs/sha256").exists());
}

/// What a client knows after some requests.
#[derive(Default)]
pub(super) struct Known {
    /// Must be there.
    pub(super) acknowledged: Vec<String>,
    /// Must not be there.
    deleted: Vec<String>,
}

pub(super) fn send(address: &str, verb: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let length = body.len();
    let head = format!(
        "{verb} {path} HTTP/1.0\r\nContent-Type: {KIND}\r\nContent-Length: {length}\r\n\r\n"
    );
    ask(address, &head, body.as_bytes())
}

fn image(address: &str, number: usize) -> Option<(String, String)> {
    let content = format!("config {number}").repeat(1000);
    let digest = oci::Digest::of(content.as_bytes());
    let (_, begun) = send(address, "POST", "/v2/team/p/blobs/uploads/", "")?;
    let location =
        begun.lines().find_map(|line| line.strip_prefix("location: "))?.trim().to_owned();
    let (first, second) = content.split_at(content.len() / 2);
    assert_eq!(send(address, "PATCH", &location, first)?.0, 202);
    assert_eq!(send(address, "PATCH", &location, second)?.0, 202);
    assert_eq!(send(address, "PUT", &format!("{location}?digest={digest}"), "")?.0, 201);
    let size = content.len();
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{KIND}","config":{{"mediaType":"application/json","size":{size},"digest":"{digest}"}},"layers":[]}}"#
    );
    Some((manifest, format!("/v2/team/p/blobs/{digest}")))
}

/// Pushes two images, moves a tag, deletes a tag and a manifest; stops when nobody answers.
pub(super) fn scenario(address: &str, known: &mut Known) -> Option<()> {
    for number in 0..2 {
        let (manifest, blob) = image(address, number)?;
        known.acknowledged.push(blob);
        for tag in [format!("t{number}"), "moving".to_owned()] {
            let path = format!("/v2/team/p/manifests/{tag}");
            assert_eq!(send(address, "PUT", &path, &manifest)?.0, 201);
            known.acknowledged.push(path);
        }
    }
    // Once a deletion is asked for, what it deletes may or may not be there.
    let forget = |known: &mut Known, path: &str| known.acknowledged.retain(|it| it != path);
    forget(known, "/v2/team/p/manifests/t1");
    assert_eq!(send(address, "DELETE", "/v2/team/p/manifests/t1", "")?.0, 202);
    known.deleted.push("/v2/team/p/manifests/t1".to_owned());
    let (manifest, _) = image(address, 0)?;
    let digest = oci::Digest::of(manifest.as_bytes());
    forget(known, "/v2/team/p/manifests/t0");
    assert_eq!(send(address, "DELETE", &format!("/v2/team/p/manifests/{digest}"), "")?.0, 202);
    known.deleted.push("/v2/team/p/manifests/t0".to_owned());
    Some(())
}

/// Everything a client knows is so, every tag leads to whole manifests and blobs.
pub(super) fn check(served: &Served, known: &Known, when: &str) {
    for path in &known.acknowledged {
        assert_eq!(served.get(path).0, 200, "{when}: {path} was acknowledged and is gone");
    }
    for path in &known.deleted {
        assert_eq!(served.get(path).0, 404, "{when}: {path} was deleted and is there");
    }
    let (status, answer) = served.get("/v2/team/p/tags/list");
    if status == 404 {
        return;
    }
    assert_eq!(status, 200, "{when}: {answer}");
    let tags = json(answer.split_once("\r\n\r\n").unwrap().1);
    for tag in tags["tags"].as_array().unwrap() {
        let (status, answer) =
            served.get(&format!("/v2/team/p/manifests/{}", tag.as_str().unwrap()));
        assert_eq!(status, 200, "{when}: {tag} leads nowhere: {answer}");
        let manifest = json(answer.split_once("\r\n\r\n").unwrap().1);
        let config = manifest["config"]["digest"].as_str().unwrap();
        let (status, _) = served.get(&format!("/v2/team/p/blobs/{config}"));
        assert_eq!(status, 200, "{when}: {tag} names a blob that is gone");
    }
}

/// apron, killed when a thread of it makes this system call for the nth time.
fn killed_at(scratch: &Scratch, call: &str, nth: usize) -> Command {
    let mut command = command_at(scratch, Path::new("strace"));
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    command.args(["-e", &inject, env!("CARGO_BIN_EXE_apron")]);
    command
}

/// The system calls after which the disk differs.
const CALLS: [&str; 6] = ["fdatasync", "fsync", "rename", "pwrite64", "unlink", "ftruncate"];

#[test]
fn killed_at_any_step_of_a_push_or_deletion_it_opens_again() {
    let mut kills = BTreeMap::new();
    for call in CALLS {
        for nth in 1..12 {
            let scratch = Scratch::new();
            let mut known = Known::default();
            let when = format!("{call} {nth}");
            let started = Served::try_start(killed_at(&scratch, call, nth), &scratch, &[]);
            if let Some(served) = started {
                let finished = scenario(&served.address, &mut known).is_some();
                served.end_tree();
                if finished {
                    break;
                }
            }
            *kills.entry(call).or_insert(0) += 1;
            let served = Served::start(&scratch);
            check(&served, &known, &when);
            let mut again = Known::default();
            scenario(&served.address, &mut again).expect("it serves as if nothing had been");
            check(&served, &again, &when);
        }
    }
    println!("killed at {kills:?}");
    // How often each is made on one thread is a matter of scheduling; that it is made is not.
    for call in ["fdatasync", "fsync", "rename", "pwrite64"] {
        assert!(kills.contains_key(call), "never killed at {call}: {kills:?}");
    }
}

#[test]
fn killed_at_any_step_of_a_collection_it_loses_nothing_in_use() {
    let prepared = Scratch::new();
    let served = Served::start_with(&prepared, &["--lease", "0"]);
    let mut known = Known::default();
    scenario(&served.address, &mut known).unwrap();
    for number in 10..14 {
        image(&served.address, number).unwrap();
    }
    // The blobs of the deleted manifest have no claim any more.
    known.acknowledged.retain(|path| path.ends_with("/moving"));
    assert!(served.stop().success());
    let mut kills = BTreeMap::new();
    for call in CALLS {
        for nth in 1..12 {
            let scratch = Scratch::new();
            let (from, to) = (prepared.join("data"), scratch.join("data"));
            assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
            let mut collect = killed_at(&scratch, call, nth);
            collect.args(["registry", "gc", "--data-dir"]).arg(&to).stdout(Stdio::null());
            let finished = collect.stderr(Stdio::null()).status().unwrap().success();
            let served = Served::start(&scratch);
            check(&served, &known, &format!("{call} {nth}"));
            assert!(served.stop().success());
            let data = to.display().to_string();
            apron(&scratch, ["registry", "gc", "--data-dir", &data]).ok();
            let left = to.join("blobs/sha256").read_dir().unwrap().count();
            assert_eq!(left, 2, "{call} {nth}: the manifest in use and its blob");
            if finished {
                break;
            }
            *kills.entry(call).or_insert(0) += 1;
        }
    }
    println!("killed at {kills:?}");
    for call in ["fdatasync", "pwrite64", "unlink"] {
        assert!(kills.contains_key(call), "never killed at {call}: {kills:?}");
    }
}

/// The first of some steps that a log does not have, each a line with all its words, in order.
fn missing_step<'steps>(
    log: &str,
    steps: &[&'steps [&'steps str]],
) -> Option<&'steps [&'steps str]> {
    let mut lines = log.lines();
    let holds = |line: &str, words: &[&str]| words.iter().all(|word| line.contains(word));
    steps.iter().find(|words| !lines.any(|line| holds(line, words))).copied()
}

/// Waits until a log has all steps in order: a call is logged a moment after it was made.
fn in_order(log: &dyn Fn() -> String, steps: &[&[&str]]) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while let Some(missing) = missing_step(&log(), steps) {
        assert!(Instant::now() < deadline, "no {missing:?} in order in\n{}", log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_is_acknowledged_before_it_is_on_the_disk() {
    let scratch = Scratch::new();
    let log = scratch.join("calls");
    let mut traced = command_at(&scratch, Path::new("strace"));
    let calls = "trace=fdatasync,fsync,rename,write,writev,sendto,sendmsg";
    traced.args(["-f", "-qq", "-y", "-e", calls, "-o"]).arg(&log).arg(env!("CARGO_BIN_EXE_apron"));
    let served = Served::try_start(traced, &scratch, &["--gc-interval", "0"]).unwrap();
    let mark = || fs_err::read_to_string(&log).unwrap().len();
    let since = |start: usize| fs_err::read_to_string(&log).unwrap()[start..].to_owned();
    let content = "content";
    let digest = oci::Digest::of(content.as_bytes());
    // A whole blob: flushed, named, its name flushed, known, acknowledged.
    let start = mark();
    let path = format!("/v2/a/blobs/uploads/?digest={digest}");
    assert_eq!(send(&served.address, "POST", &path, content).unwrap().0, 201);
    let named: &[&[&str]] = &[
        &["fdatasync(", "/uploads/"],
        &["rename(", "/uploads/", "/blobs/sha256/"],
        &["fsync(", "/blobs/sha256>"],
        &["fdatasync(", "meta.db-wal>"],
        &["HTTP/1.0 201"],
    ];
    in_order(&|| since(start), named);
    // A manifest goes the same way.
    let start = mark();
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{KIND}","config":{{"mediaType":"application/json","size":7,"digest":"{digest}"}},"layers":[]}}"#
    );
    assert_eq!(send(&served.address, "PUT", "/v2/a/manifests/v1", &manifest).unwrap().0, 201);
    in_order(&|| since(start), named);
    // A chunk: flushed, its file's name flushed, offset and hash known, acknowledged.
    let (_, begun) = send(&served.address, "POST", "/v2/a/blobs/uploads/", "").unwrap();
    let location = begun.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().trim();
    let start = mark();
    assert_eq!(send(&served.address, "PATCH", location, content).unwrap().0, 202);
    let kept: &[&[&str]] = &[
        &["fdatasync(", "/uploads/"],
        &["fsync(", "/uploads>"],
        &["sync(", "meta.db-wal>"],
        &["HTTP/1.0 202"],
    ];
    in_order(&|| since(start), kept);
    // A deletion.
    let start = mark();
    assert_eq!(send(&served.address, "DELETE", "/v2/a/manifests/v1", "").unwrap().0, 202);
    in_order(&|| since(start), &[&["sync(", "meta.db-wal>"], &["HTTP/1.0 202"]]);
    served.end_tree();
}
