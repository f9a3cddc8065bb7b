//! Mirrors of real registries, pulled from with everybody's clients; cut off, killed, started
//! again.

use super::{Served, package};
use crate::support::{
    Registry as Debian, Scratch, apron, command, free_port, peer, program, wait_for,
};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A relay in front of a registry: it writes down what is asked, and can be cut.
struct Relay {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
    /// Bytes that may still come back; then every connection is cut.
    left: Arc<AtomicUsize>,
}

impl Relay {
    fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, left) = (Arc::default(), Arc::new(AtomicUsize::new(usize::MAX)));
        let relay = Self { address, asked, left };
        let (asked, left, target) = (relay.asked.clone(), relay.left.clone(), target.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(there) = TcpStream::connect(&target) else { continue };
                let (here, back) = (stream.try_clone().unwrap(), there.try_clone().unwrap());
                let (asked, left) = (asked.clone(), left.clone());
                std::thread::spawn(move || {
                    forward(stream, there, |bytes| {
                        let text = String::from_utf8_lossy(bytes);
                        let lines = text.lines().filter(|line| line.ends_with("HTTP/1.1"));
                        asked
                            .lock()
                            .unwrap()
                            .extend(lines.map(|line| line.replace(" HTTP/1.1", "")));
                        true
                    });
                });
                std::thread::spawn(move || {
                    forward(back, here, |bytes| {
                        let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                            if left == usize::MAX {
                                Some(left)
                            } else {
                                left.checked_sub(bytes.len())
                            }
                        });
                        taken.is_ok()
                    });
                });
            }
        });
        relay
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Copies bytes until one side ends, or `may` says no.
fn forward(mut from: TcpStream, mut to: TcpStream, mut may: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || !may(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// distribution 3.1.1 with storage of its own.
struct Distribution {
    child: Child,
    address: String,
}

impl Distribution {
    fn start(scratch: &Scratch) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/peers");
        let found = Command::new(script).args(["path", "registry"]).output().unwrap();
        assert!(found.status.success(), "peer registry is not built: run scripts/peers");
        let address = format!("127.0.0.1:{}", free_port());
        let place = scratch.join("distribution");
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n",
            place.display()
        );
        let config = scratch.write("distribution.yml", config);
        let child = Command::new(String::from_utf8(found.stdout).unwrap().trim())
            .arg("serve")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&address);
        Self { child, address }
    }
}

impl Drop for Distribution {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An image with one large layer, made and pushed by crane; gives its digest.
fn push_image(scratch: &Scratch, reference: &str, megabytes: usize) -> String {
    // Noise, so that compression does not make it small.
    let mut state = 1_u64;
    let words = (0..megabytes << 17).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.rotate_right(23).wrapping_mul(state).to_be_bytes()
    });
    let noise: Vec<u8> = words.collect();
    scratch.write("root/noise", noise);
    program(scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    peer(scratch, "crane", ["append", "-f", "root.tar", "-t", reference]).ok();
    peer(scratch, "crane", ["digest", reference]).ok().stdout.trim().to_owned()
}

#[test]
fn crane_and_skopeo_pull_through_and_then_without_the_other_registry() {
    let scratch = Scratch::new();
    let there = Distribution::start(&scratch);
    let digest = push_image(&scratch, &format!("{}/team/image:v1", there.address), 3);
    let relay = Relay::to(&there.address);
    let mirror = format!("up=http://{}", relay.address);
    let served = Served::start_with(&scratch, &["--mirror", &mirror]);
    let here = served.reference("up/team/image:v1");
    relay.take();
    // Many at once ask for everything once.
    let pulls: Vec<Child> = (0..6)
        .map(|number| {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/peers");
            let found = Command::new(script).args(["path", "crane"]).output().unwrap();
            let crane = String::from_utf8(found.stdout).unwrap();
            let file = scratch.join(format!("{number}.tar"));
            Command::new(crane.trim()).args(["pull", &here]).arg(file).spawn().unwrap()
        })
        .collect();
    for mut pull in pulls {
        assert!(pull.wait().unwrap().success());
    }
    let asked = relay.take();
    let mut once = asked.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(asked.len(), once.len(), "something was asked for twice: {asked:?}");
    assert_eq!(asked.iter().filter(|it| it.starts_with("GET")).count(), 3, "{asked:?}");
    // The same digest, whole, with the other registry gone.
    drop(there);
    assert_eq!(peer(&scratch, "crane", ["digest", &here]).ok().stdout.trim(), digest);
    peer(&scratch, "crane", ["validate", "--remote", &here]).ok();
    let flags = ["--insecure-policy", "--src-tls-verify=false"];
    let docker = format!("docker://{here}");
    program(&scratch, "skopeo", ["copy", &docker, "oci:out:v1"].iter().chain(&flags)).ok();
    // Also after a restart; nobody answers there, and the client is told.
    served.kill();
    let served = Served::start_with(&scratch, &["--mirror", &mirror]);
    peer(&scratch, "crane", ["validate", "--remote", &served.reference("up/team/image:v1")]).ok();
    let (status, text) = served.get("/v2/up/team/image/manifests/v1");
    assert_eq!(status, 200);
    assert!(text.to_lowercase().contains("\r\nwarning: 299 - "), "{text}");
    let refused = peer(&scratch, "crane", ["copy", &here, &served.reference("up/other:v1")]);
    assert_ne!(refused.code, Some(0));
}

#[test]
fn a_private_registry_is_mirrored_with_credentials_from_a_file() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let there = Debian::with_password();
    let login = ["login", &there.address, "-u", "ada", "--password-stdin"];
    let mut words = command(&scratch);
    words.args(login).env("REGISTRY_AUTH_FILE", scratch.join("auth.json"));
    let mut child = words.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret").unwrap();
    assert!(child.wait().unwrap().success());
    let original = there.reference("team/nop:v1.0.0");
    apron(&scratch, ["push", "-f", file, &original, "--auth-file", "auth.json"]).ok();
    let mirror = format!("up=http://{}", there.address);
    // Without credentials it is refused, and the client is told by whom.
    {
        let served = Served::start_with(&scratch, &["--mirror", &mirror]);
        let (status, text) = served.get("/v2/up/team/nop/manifests/v1.0.0");
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("DENIED") && text.contains(&there.address), "{text}");
        assert!(!text.to_lowercase().contains("www-authenticate"), "{text}");
    }
    let flags = ["--mirror", &mirror, "--mirror-auth-file", "auth.json"];
    let served = Served::start_with(&scratch, &flags);
    apron(&scratch, ["pull", &served.reference("up/team/nop:v1.0.0"), "-f", "back.xpkg"]).ok();
    let read = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(read(file) == read("back.xpkg"), "the file differs");
    let tags = peer(&scratch, "crane", ["ls", &served.reference("up/team/nop")]).ok().stdout;
    assert_eq!(tags, "v1.0.0\n");
    let (status, _) = served.get("/v2/up/team/none/manifests/v1");
    assert_eq!(status, 404);
}

#[test]
fn a_registry_that_dies_in_the_middle_leaves_nothing_half() {
    let scratch = Scratch::new();
    let there = Distribution::start(&scratch);
    let digest = push_image(&scratch, &format!("{}/image:v1", there.address), 8);
    let relay = Relay::to(&there.address);
    let mirror = format!("up=http://{}", relay.address);
    let served = Served::start_with(&scratch, &["--mirror", &mirror]);
    let here = served.reference("up/image:v1");
    peer(&scratch, "crane", ["manifest", &here]).ok();
    relay.left.store(1 << 20, Ordering::SeqCst);
    let broken = peer(&scratch, "crane", ["pull", &here, "broken.tar"]);
    assert_ne!(broken.code, Some(0), "{}", broken.all());
    let names = |directory: &str| {
        let entries = fs_err::read_dir(scratch.join("data").join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let whole = names("blobs/sha256").iter().all(|name| {
        let path = scratch.join("data/blobs/sha256").join(name);
        let sum = program(&scratch, "sha256sum", [&path]).ok().stdout;
        sum.starts_with(name.to_str().unwrap())
    });
    assert!(whole, "a file is not what its name says");
    // Killed in the middle of it, too: what was on its way is gone after a start.
    served.kill();
    let served = Served::start_with(&scratch, &["--mirror", &mirror]);
    assert_eq!(names("uploads").len(), 0);
    relay.left.store(usize::MAX, Ordering::SeqCst);
    let here = served.reference("up/image:v1");
    assert_eq!(peer(&scratch, "crane", ["digest", &here]).ok().stdout.trim(), digest);
    peer(&scratch, "crane", ["validate", "--remote", &here]).ok();
}

#[test]
fn mirrors_that_cannot_be_are_refused_with_advice() {
    let scratch = Scratch::new();
    let serve = |flags: &[&str]| {
        let words = ["registry", "serve", "--listen", "127.0.0.1:0"];
        apron(&scratch, words.iter().chain(flags)).failed()
    };
    let text = serve(&["--mirror", "docker.io"]);
    assert!(text.contains("hint: --mirror takes a prefix and an address"), "{text}");
    let text = serve(&["--mirror", "a=https://ada:s3cret@r.example.org"]);
    assert!(text.contains("--mirror-auth-file") && !text.contains("s3cret"), "{text}");
    let text = serve(&["--mirror", "a=https://r.io", "--mirror", "a=https://q.io"]);
    assert!(text.contains("twice"), "{text}");
    let text = serve(&["--mirror", "a=https://r.io", "--mirror-auth-file", "none.json"]);
    assert!(text.contains("none.json"), "{text}");
}
