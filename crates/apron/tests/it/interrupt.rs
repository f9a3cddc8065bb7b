//! Commands that are killed, and places that run full: a result is there whole or not at all, and
//! a second run ends as an uninterrupted one would.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking, their helpers too")]

use crate::support::{Ran, Registry, Scratch, apron, command, generated_corpus, program};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How many moments of a run are tried.
const MOMENTS: u32 = 25;
const CRDS: usize = 100;

/// A package of some size, in `package`.
fn package(scratch: &Scratch) -> PathBuf {
    let root = scratch.join("package");
    fs_err::create_dir_all(root.join("crds")).unwrap();
    fs_err::create_dir_all(root.join("examples")).unwrap();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: medium\nspec:\n  controller:\n    image: example.org/medium:v1\n";
    fs_err::write(root.join("crossplane.yaml"), meta).unwrap();
    fs_err::write(
        root.join("examples/one.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n",
    )
    .unwrap();
    let mut names: Vec<_> = files_below(&generated_corpus());
    names.retain(|path| path.extension().is_some_and(|it| it == "yaml"));
    for path in names.iter().take(CRDS) {
        fs_err::copy(path, root.join("crds").join(path.file_name().unwrap())).unwrap();
    }
    root
}

/// All files below a directory, sorted.
fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Starts apron with nobody listening but a file.
fn start(scratch: &Scratch, words: &[&str]) -> Child {
    let mut command = command(scratch);
    // What is killed leaves its scratch files behind; they go with the test's own.
    command.env("TMPDIR", scratch.path()).args(words);
    let said = fs_err::File::create(scratch.join("said")).unwrap();
    command.stdout(Stdio::null()).stderr(said.into_file()).spawn().unwrap()
}

/// How long the command takes when nobody interrupts it; `fresh` makes room before.
fn duration(scratch: &Scratch, words: &[&str], fresh: impl Fn()) -> Duration {
    fresh();
    let start = Instant::now();
    apron(scratch, words).ok();
    start.elapsed()
}

/// Runs the command again and again and stops it ever later, until it is too late. `fresh` goes
/// before each run, `check` after it: with the moment, and with whether the command ended by itself
/// or said that it was interrupted. Where it takes longer than it may (a disk can), it is ended
/// where it is, without a word.
fn interrupted(
    scratch: &Scratch,
    words: &[&str],
    signal: &str,
    moments: u32,
    fresh: impl Fn(),
    check: impl Fn(&str, bool),
) {
    let whole = duration(scratch, words, &fresh) + Duration::from_millis(10);
    for moment in 0..=moments {
        fresh();
        let mut child = start(scratch, words);
        std::thread::sleep(whole * moment / moments);
        let stopped = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(stopped.unwrap().success());
        let ended = child.wait().unwrap();
        let said = fs_err::read_to_string(scratch.join("said")).unwrap();
        let is_clean = ended.success() || said.contains("interrupted");
        check(&format!("{} stopped by {signal} at {moment} of {moments}", words[0]), is_clean);
    }
}

/// What lies in a directory: names and, for files that are no leftovers, bytes.
fn visible(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let visible = entries.filter(|entry| !is_leftover(&entry.file_name().to_string_lossy()));
    visible
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), fs_err::read(entry.path()).unwrap())
        })
        .collect()
}

fn is_leftover(name: &str) -> bool {
    name.starts_with(".apron-")
}

fn leftovers(directory: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| is_leftover(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}

fn remove_all(paths: &[PathBuf]) {
    for path in paths {
        if path.is_dir() {
            fs_err::remove_dir_all(path).unwrap();
        } else {
            fs_err::remove_file(path).unwrap();
        }
    }
}

/// The file must be absent or whole; nothing else may have appeared but leftovers.
#[track_caller]
fn assert_whole_or_absent(directory: &Path, file: &str, whole: &[u8], moment: &str) {
    for (name, bytes) in visible(directory) {
        if name == file {
            assert!(
                bytes == whole,
                "{moment}: {name} has {} of {} bytes",
                bytes.len(),
                whole.len()
            );
        }
    }
    for leftover in leftovers(directory) {
        if leftover.is_dir() {
            let yaml = files_below(&leftover).into_iter().find(|path| {
                path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "xpkg")
            });
            assert_eq!(yaml, None, "{moment}");
        }
    }
}

#[test]
fn a_build_that_is_killed_leaves_a_whole_package_or_none() {
    let scratch = Scratch::new();
    let root = package(&scratch);
    // In the package's own directory, where leftovers could be taken for content.
    let words = ["build", "package", "-o", "package/out.xpkg"];
    apron(&scratch, words).ok();
    let whole = fs_err::read(root.join("out.xpkg")).unwrap();
    let fresh = || {
        let _ = fs_err::remove_file(root.join("out.xpkg"));
    };
    interrupted(&scratch, &words, "KILL", MOMENTS, fresh, |moment, _| {
        assert_whole_or_absent(&root, "out.xpkg", &whole, moment);
    });
    // All the leftovers are still there.
    apron(&scratch, words).ok();
    assert!(fs_err::read(root.join("out.xpkg")).unwrap() == whole);
    // A package that was there before stays until the new one is whole.
    fs_err::write(root.join("out.xpkg"), "old").unwrap();
    let mut child = start(&scratch, &words);
    child.kill().unwrap();
    child.wait().unwrap();
    let now = fs_err::read(root.join("out.xpkg")).unwrap();
    assert!(now == b"old" || now == whole);
}

#[test]
fn a_command_that_is_asked_to_stop_cleans_up() {
    let scratch = Scratch::new();
    let root = package(&scratch);
    let words = ["build", "package", "-o", "package/out.xpkg"];
    apron(&scratch, words).ok();
    let whole = fs_err::read(root.join("out.xpkg")).unwrap();
    let registry = Registry::start();
    let reference = registry.reference("team/medium:v1");
    apron(&scratch, ["push", &reference, "-f", "package/out.xpkg"]).ok();
    let fresh = || {
        let _ = fs_err::remove_file(root.join("out.xpkg"));
        let _ = fs_err::remove_dir_all(scratch.join("to"));
        fs_err::create_dir(scratch.join("to")).unwrap();
    };
    let pull = ["pull", &reference, "-f", "to/out.xpkg"];
    let extract = ["extract", &reference, "-o", "to/out.gz"];
    let clean = std::cell::Cell::new(0);
    for signal in ["INT", "TERM"] {
        for words in [&words[..], &pull, &extract] {
            interrupted(&scratch, words, signal, 6, fresh, |moment, is_clean| {
                assert_whole_or_absent(&root, "out.xpkg", &whole, moment);
                clean.set(clean.get() + usize::from(is_clean));
                for place in [&root, &scratch.join("to")].into_iter().filter(|_| is_clean) {
                    assert_eq!(leftovers(place), Vec::<PathBuf>::new(), "{moment}");
                }
            });
        }
    }
    assert!(clean.get() > 6, "{} of 42 ended as they should", clean.get());
}

#[test]
fn a_command_that_is_asked_to_stop_says_so_by_its_exit_code() {
    let scratch = Scratch::new();
    // A registry that never answers gives time to ask.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = format!("{}/a:v1", listener.local_addr().unwrap());
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let words = ["pull", "--plain-http", &reference, "-f", "x.xpkg"];
        let mut command = command(&scratch);
        let child =
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It is connected, so it waits.
        let connection = listener.accept().unwrap();
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains("interrupted") && ran.stderr.contains("hint: "), "{ran:?}");
        assert_eq!(fs_err::read_dir(scratch.path()).unwrap().count(), 0);
        drop(connection);
    }
}

#[test]
fn pull_copy_and_extract_that_are_killed_leave_whole_files_or_none() {
    let scratch = Scratch::new();
    package(&scratch);
    apron(&scratch, ["build", "package", "-o", "medium.xpkg"]).ok();
    let registry = Registry::start();
    let reference = registry.reference("team/medium:v1");
    apron(&scratch, ["push", &reference, "-f", "medium.xpkg"]).ok();
    let to = scratch.join("to");
    fs_err::create_dir(&to).unwrap();
    for (words, file) in [
        (["pull", &reference, "-f", "to/out.xpkg"], "out.xpkg"),
        (["copy", &reference, "to/copy.xpkg", "--output=text"], "copy.xpkg"),
        (["extract", "medium.xpkg", "-o", "to/out.gz"], "out.gz"),
    ] {
        apron(&scratch, words).ok();
        let whole = fs_err::read(to.join(file)).unwrap();
        let fresh = || {
            let _ = fs_err::remove_file(to.join(file));
        };
        interrupted(&scratch, &words, "KILL", MOMENTS, fresh, |moment, _| {
            assert_whole_or_absent(&to, file, &whole, moment);
        });
        apron(&scratch, words).ok();
        assert!(fs_err::read(to.join(file)).unwrap() == whole, "{file}");
        remove_all(&leftovers(&to));
    }
}

#[test]
fn a_copy_to_a_layout_that_is_killed_leaves_a_sound_layout() {
    let scratch = Scratch::new();
    package(&scratch);
    apron(&scratch, ["build", "package", "-o", "medium.xpkg"]).ok();
    let words = ["copy", "medium.xpkg", "oci:layout:v1"];
    let fresh = || {
        let _ = fs_err::remove_dir_all(scratch.join("layout"));
    };
    apron(&scratch, words).ok();
    let digest = inspect_digest(&scratch, "oci:layout:v1").unwrap();
    interrupted(&scratch, &words, "KILL", MOMENTS, fresh, |moment, _| {
        // Read as it is, if anything can be read: every file but the last may be there already.
        let layout = scratch.join("layout");
        if layout.join("oci-layout").exists() {
            let found = inspect_digest(&scratch, "oci:layout:v1");
            assert!(found.is_none_or(|found| found == digest), "{moment}");
        }
        // Over what is there: the same as if nothing had happened.
        apron(&scratch, words).ok();
    });
    assert_eq!(inspect_digest(&scratch, "oci:layout:v1"), Some(digest));
    apron(&scratch, ["copy", "oci:layout:v1", "back.xpkg"]).ok();
    let bytes = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(bytes("back.xpkg") == bytes("medium.xpkg"));
}

/// The digest of what lies there, read to the end; `None` if there is nothing.
fn inspect_digest(scratch: &Scratch, place: &str) -> Option<String> {
    let ran = apron(scratch, ["inspect", "-o", "json", place]);
    if ran.code != Some(0) {
        assert!(ran.all().contains("does not exist"), "{}", ran.all());
        return None;
    }
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    Some(shown["image"]["digest"].as_str().unwrap().to_owned())
}

#[test]
fn a_push_that_is_killed_leaves_a_whole_package_or_no_tag() {
    let scratch = Scratch::new();
    package(&scratch);
    apron(&scratch, ["build", "package", "-o", "medium.xpkg"]).ok();
    let registry = Registry::start();
    let whole = duration(
        &scratch,
        &["push", &registry.reference("timed/medium:v1"), "-f", "medium.xpkg"],
        || (),
    );
    for moment in 0..=MOMENTS {
        // A repository of its own each time, so that nothing is there before.
        let name = format!("killed-{moment}/medium");
        let reference = registry.reference(&format!("{name}:v1"));
        let words = ["push", &reference, "-f", "medium.xpkg"];
        let mut child = start(&scratch, &words);
        std::thread::sleep((whole + Duration::from_millis(10)) * moment / MOMENTS);
        child.kill().unwrap();
        child.wait().unwrap();
        let there = registry.get(&format!("/v2/{name}/tags/list"), "*/*").contains("\"v1\"");
        if there {
            assert_complete(&scratch, &reference);
        }
        apron(&scratch, words).ok();
        if !there {
            assert_complete(&scratch, &reference);
        }
    }
    // Another tool can fetch all of it, too.
    let from = format!("docker://{}", registry.reference("killed-5/medium:v1"));
    let words = ["copy", "--insecure-policy", "--src-tls-verify=false", &from, "dir:fetched"];
    program(&scratch, "skopeo", words).ok();
}

/// All of it can be fetched, and makes the same file.
#[track_caller]
fn assert_complete(scratch: &Scratch, reference: &str) {
    apron(scratch, ["pull", reference, "-f", "again.xpkg"]).ok();
    let bytes = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(bytes("again.xpkg") == bytes("medium.xpkg"), "{reference}");
}

/// A file system that is gone when the test is.
struct Mount(PathBuf);

impl Mount {
    fn new(scratch: &Scratch, name: &str, options: &str) -> Self {
        let path = scratch.join(name);
        fs_err::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(mounted.success(), "cannot mount a tmpfs: these tests run as root");
        Self(path)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_place_that_is_full_or_read_only_gets_no_part_of_a_file() {
    let scratch = Scratch::new();
    package(&scratch);
    apron(&scratch, ["build", "package", "-o", "medium.xpkg"]).ok();
    let registry = Registry::start();
    let reference = registry.reference("team/medium:v1");
    apron(&scratch, ["push", &reference, "-f", "medium.xpkg"]).ok();
    let full = Mount::new(&scratch, "full", "size=64k");
    let closed = Mount::new(&scratch, "closed", "ro");
    for (mount, place, reason) in
        [(&full, "full", "no space left"), (&closed, "closed", "read-only")]
    {
        let file = |name: &str| format!("{place}/{name}");
        for words in [
            vec!["build", "package", "-o", &file("out.xpkg")],
            vec!["pull", &reference, "-f", &file("out.xpkg")],
            vec!["copy", "medium.xpkg", &file("copy.xpkg")],
            vec!["copy", "medium.xpkg", &format!("oci:{place}/layout:v1")],
            vec!["extract", "medium.xpkg", "-o", &file("out.gz")],
        ] {
            let ran = apron(&scratch, &words);
            let said = ran.clone().failed();
            assert!(said.to_lowercase().contains(reason), "{words:?}: {said}");
            let last = ran.stderr.lines().last().unwrap_or_default();
            assert!(last.starts_with("hint: "), "{words:?}: {said}");
            assert!(visible(&mount.0).is_empty(), "{words:?}: {:?}", visible(&mount.0).keys());
            assert_eq!(leftovers(&mount.0), Vec::<PathBuf>::new(), "{words:?}");
        }
        let layout = mount.0.join("layout/index.json");
        assert!(!layout.exists() || !fs_err::read_to_string(layout).unwrap().contains("sha256"));
    }
    // Where temporary files go may be full too.
    let mut inspect = command(&scratch);
    inspect.env("TMPDIR", &full.0).args(["inspect", &reference]);
    let said = Ran::from(inspect.output().unwrap()).failed();
    assert!(said.contains("No space left") && said.contains("hint: "), "{said}");
    // A result nobody can take is not an error of ours, and no reason to panic.
    let mut show = command(&scratch);
    show.args(["inspect", "medium.xpkg"])
        .stdout(fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap().into_parts().0);
    let ran = Ran::from(show.output().unwrap());
    assert!(!ran.stderr.contains("panicked") && matches!(ran.code, Some(0 | 1)), "{ran:?}");
}
