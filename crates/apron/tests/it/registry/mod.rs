//! apron's own registry, met by everybody's clients; killed, and opened again.

use crate::support::{Registry as Debian, Scratch, apron, children, command, peer, program};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

mod attack;
mod conformance;
mod crash;
mod faults;
mod mirror;
mod power;

/// `apron registry serve` on a port of its own.
pub(crate) struct Served {
    child: Child,
    address: String,
    data: PathBuf,
}

impl Served {
    pub(crate) fn start(scratch: &Scratch) -> Self {
        Self::start_with(scratch, &[])
    }

    /// Serves another directory than `data`.
    pub(crate) fn start_in(scratch: &Scratch, directory: &str) -> Self {
        Self::start_with(scratch, &["--data-dir", directory])
    }

    pub(crate) fn start_with(scratch: &Scratch, flags: &[&str]) -> Self {
        let mut said = tempfile::tempfile().unwrap();
        let mut program = command(scratch);
        program.stderr(said.try_clone().unwrap());
        Self::try_start_saying(program, scratch, flags).unwrap_or_else(|| {
            let mut why = String::new();
            said.rewind().and_then(|()| said.read_to_string(&mut why)).unwrap();
            panic!("the registry does not start: {why}")
        })
    }

    /// Starts it by way of another program; `None` if it died before it could serve.
    fn try_start(mut program: Command, scratch: &Scratch, flags: &[&str]) -> Option<Self> {
        program.stderr(Stdio::null());
        Self::try_start_saying(program, scratch, flags)
    }

    /// The same, with its standard error where the program was told to put it.
    fn try_start_saying(mut program: Command, scratch: &Scratch, flags: &[&str]) -> Option<Self> {
        let named = flags.iter().skip_while(|flag| **flag != "--data-dir").nth(1);
        let data = scratch.join(named.unwrap_or(&"data"));
        program.args(["registry", "serve", "--listen", "127.0.0.1:0"]).args(flags);
        if named.is_none() {
            program.arg("--data-dir").arg(&data);
        }
        let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // "serving http://127.0.0.1:41234 from …"
        let address = line.split_once("://").and_then(|(_, rest)| rest.split(' ').next());
        let address = address.unwrap_or_default().trim().to_owned();
        let served = Self { child, address, data };
        (!served.address.is_empty()).then_some(served)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn reference(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        ask(&self.address, &format!("GET {path} HTTP/1.0\r\n\r\n"), b"").unwrap()
    }

    /// Ends it as the system would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends what another program started for us, and waits for that.
    fn end_tree(self) {
        self.signal_tree("-KILL");
    }

    /// Asks what another program started for us to end, and waits for that.
    fn stop_tree(self) {
        self.signal_tree("-TERM");
    }

    fn signal_tree(mut self, signal: &str) {
        for child in children(&self.child) {
            let _ = Command::new("kill").args([signal, &child]).status();
        }
        self.child.wait().unwrap();
    }

    /// Asks it to end.
    pub(crate) fn stop(mut self) -> std::process::ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request, past all clients; gives status and everything else. `None` if nobody answered.
pub(crate) fn ask(address: &str, head: &str, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    // An answer that breaks off is none.
    answer.contains("\r\n\r\n").then_some((status, answer))
}

pub(crate) fn package(scratch: &Scratch) -> &'static str {
    scratch.copy_package("provider-nop");
    apron(scratch, ["build", "provider-nop", "-o", "nop.xpkg"]).ok();
    "nop.xpkg"
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_client_pushes_and_pulls_the_same_digest() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let served = Served::start(&scratch);
    let ours = served.reference("ours/nop:v1.0.0");
    let pushed = json(&apron(&scratch, ["push", "-f", file, &ours, "-o", "json"]).ok().stdout);
    let digest = pushed["digest"].as_str().unwrap();
    // Upstream's CLI, to the same digest.
    let theirs = served.reference("theirs/nop:v1.0.0");
    peer(&scratch, "crossplane", ["xpkg", "push", "-f", file, &theirs]).ok();
    for reference in [&ours, &theirs] {
        assert_eq!(peer(&scratch, "crane", ["digest", reference]).ok().stdout.trim(), digest);
        peer(&scratch, "crane", ["validate", "--remote", reference]).ok();
    }
    peer(&scratch, "crossplane", ["xpkg", "extract", &ours, "-o", "up.gz"]).ok();
    // crane: copy between repositories (mounting), list, catalog, delete.
    let copied = served.reference("crane/nop");
    peer(&scratch, "crane", ["copy", &ours, &format!("{copied}:v1")]).ok();
    peer(&scratch, "crane", ["tag", &format!("{copied}:v1"), "latest"]).ok();
    assert_eq!(peer(&scratch, "crane", ["ls", &copied]).ok().stdout, "latest\nv1\n");
    let catalog = peer(&scratch, "crane", ["catalog", &served.address]).ok().stdout;
    assert_eq!(catalog, "crane/nop\nours/nop\ntheirs/nop\n");
    peer(&scratch, "crane", ["delete", &format!("{copied}:latest")]).ok();
    assert_eq!(peer(&scratch, "crane", ["ls", &copied]).ok().stdout, "v1\n");
    // skopeo: in from an archive, out to another, without TLS.
    let skopeo = served.reference("skopeo/nop:v1");
    let flags = ["--insecure-policy", "--dest-tls-verify=false", "--src-tls-verify=false"];
    let docker = format!("docker://{skopeo}");
    let archive = format!("docker-archive:{file}");
    program(&scratch, "skopeo", ["copy", &archive, &docker].iter().chain(&flags)).ok();
    program(&scratch, "skopeo", ["copy", &docker, "oci:out:v1"].iter().chain(&flags)).ok();
    peer(&scratch, "crane", ["validate", "--remote", &skopeo]).ok();
    // Docker archives: out of the registry, and into it again, to the same image.
    let archive = "docker-archive:out.tar:skopeo/nop:v1";
    program(&scratch, "skopeo", ["copy", &docker, archive].iter().chain(&flags)).ok();
    let again = served.reference("skopeo/again:v1");
    let there = format!("docker://{again}");
    program(&scratch, "skopeo", ["copy", "docker-archive:out.tar", &there].iter().chain(&flags))
        .ok();
    let config = |reference: &str| {
        let manifest = peer(&scratch, "crane", ["manifest", reference]).ok().stdout;
        json(&manifest)["config"]["digest"].clone()
    };
    assert_eq!(config(&again), config(&skopeo));
    apron(&scratch, ["copy", "out.tar", &served.reference("ours/again:v1")]).ok();
    assert_eq!(config(&served.reference("ours/again:v1")), config(&skopeo));
    // And back as it went.
    apron(&scratch, ["pull", &theirs, "-f", "back.xpkg"]).ok();
    let read = |name: &str| fs_err::read(scratch.join(name)).unwrap();
    assert!(read(file) == read("back.xpkg"), "the file differs");
}

#[test]
fn podman_pulls_and_pushes_images() {
    let scratch = Scratch::new();
    let served = Served::start(&scratch);
    scratch.write("root/etc/hello", "hello");
    program(&scratch, "tar", ["-C", "root", "-cf", "root.tar", "."]).ok();
    let there = served.reference("images/hello:v1");
    peer(&scratch, "crane", ["append", "-f", "root.tar", "-t", &there]).ok();
    let root = ["--root", "pod/root", "--runroot", "pod/run", "--storage-driver", "vfs"];
    let podman = |words: &[&str]| program(&scratch, "podman", root.iter().chain(words)).ok();
    podman(&["pull", "--tls-verify=false", &there]);
    let again = served.reference("images/again:v1");
    podman(&["tag", &there, &again]);
    podman(&["push", "--tls-verify=false", &again]);
    peer(&scratch, "crane", ["validate", "--remote", &again]).ok();
}

#[test]
fn packages_travel_to_another_registry_and_back_unchanged() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let (served, debian) = (Served::start(&scratch), Debian::start());
    let places = [
        file,
        &served.reference("a/nop:v1"),
        &debian.reference("b/nop:v1"),
        &served.reference("c/nop:v1"),
    ]
    .map(str::to_owned);
    let mut digests = Vec::new();
    for pair in places.windows(2) {
        let copied = apron(&scratch, ["copy", &pair[0], &pair[1], "-o", "json"]).ok();
        digests.push(json(&copied.stdout)["digest"].clone());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

#[test]
fn a_repository_on_the_disk_is_read_by_other_tools() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let served = Served::start(&scratch);
    apron(&scratch, ["push", "-f", file, &served.reference("team/nop:v1.0.0")]).ok();
    // skopeo reads only OCI manifests in layouts, so it gets one.
    let there = format!("docker://{}", served.reference("team/deep/oci:v1.0.0"));
    let flags = ["--insecure-policy", "--dest-tls-verify=false", "--format", "oci"];
    let archive = format!("docker-archive:{file}");
    program(&scratch, "skopeo", ["copy", &archive, &there].iter().chain(&flags)).ok();
    let view =
        |name: &str| served.data.join("repos").join(name).join("_layout").display().to_string();
    let (docker, oci) = (view("team/nop"), view("team/deep/oci"));
    assert!(served.stop().success());
    let source = format!("oci:{oci}:v1.0.0");
    program(&scratch, "skopeo", ["inspect", &source]).ok();
    program(&scratch, "skopeo", ["copy", "--insecure-policy", &source, "dir:out"]).ok();
    // crane reads both.
    let debian = Debian::start();
    for (number, view) in [docker, oci].iter().enumerate() {
        let there = debian.reference(&format!("from/view{number}:v1"));
        peer(&scratch, "crane", ["push", view, &there]).ok();
        apron(&scratch, ["inspect", &there]).ok();
    }
}

#[test]
fn the_directory_is_looked_after_from_the_command_line() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let served = Served::start(&scratch);
    apron(&scratch, ["push", "-f", file, &served.reference("team/nop:v1.0.0")]).ok();
    let data = served.data.display().to_string();
    let busy = apron(&scratch, ["registry", "scrub", "--data-dir", &data]).failed();
    assert!(busy.contains("another process uses"), "{busy}");
    assert!(served.stop().success());
    let run = |words: &[&str]| {
        let flags = ["--data-dir", &data, "-o", "json"];
        json(&apron(&scratch, ["registry"].iter().chain(words).chain(&flags)).ok().stdout)
    };
    assert_eq!(run(&["gc", "--dry-run"])["blobs"], 0);
    assert_eq!(run(&["scrub"])["damaged"], serde_json::json!([]));
    fs_err::remove_file(scratch.join("data/meta.db")).unwrap();
    let lost = apron(&scratch, ["registry", "scrub", "--data-dir", &data]).failed();
    assert!(lost.contains("apron registry rebuild"), "{lost}");
    assert_eq!(run(&["rebuild"])["tags"], 1);
    assert_eq!(
        run(&["export", "team/nop", "exported"])["references"],
        serde_json::json!(["v1.0.0"])
    );
    assert_eq!(
        run(&["import", "exported", "copy/nop"])["references"],
        serde_json::json!(["v1.0.0"])
    );
    let served = Served::start(&scratch);
    let digest = |name: &str| {
        let reference = served.reference(&format!("{name}:v1.0.0"));
        peer(&scratch, "crane", ["digest", &reference]).ok().stdout
    };
    assert_eq!(digest("copy/nop"), digest("team/nop"));
}

#[test]
fn garbage_is_collected_while_the_registry_serves() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let served = Served::start(&scratch);
    let data = served.data.display().to_string();
    let (kept, dropped) =
        (served.reference("team/kept:v1.0.0"), served.reference("team/nop:v1.0.0"));
    apron(&scratch, ["push", "-f", file, &kept]).ok();
    apron(&scratch, ["push", "-f", file, &dropped, "-a", "org.example.a=b"]).ok();
    let digest = peer(&scratch, "crane", ["digest", &dropped]).ok().stdout;
    let name = format!("{}@{}", served.reference("team/nop"), digest.trim());
    peer(&scratch, "crane", ["delete", &name]).ok();
    let collect = |flags: &[&str]| {
        let words = ["registry", "gc", "--data-dir", &data, "-o", "json"];
        json(&apron(&scratch, words.iter().chain(flags)).ok().stdout)
    };
    // Clients may have seen the blobs a moment ago.
    assert_eq!(collect(&["--dry-run"])["links"], 0);
    assert_eq!(collect(&["--dry-run", "--ignore-lease"])["links"], 2);
    assert_eq!(collect(&["--ignore-lease"])["links"], 2);
    assert_eq!(collect(&["--ignore-lease"])["links"], 0);
    apron(&scratch, ["pull", &kept, "-o", "back.xpkg"]).ok();
    assert!(served.stop().success());
    assert_eq!(collect(&[])["links"], 0);
}

#[test]
fn only_loopback_is_open_without_being_told() {
    let scratch = Scratch::new();
    let refused = apron(&scratch, ["registry", "serve", "--listen", "0.0.0.0:0"]).failed();
    assert!(refused.contains("--insecure-open"), "{refused}");
    let nonsense = apron(&scratch, ["registry", "serve", "--listen", "nonsense"]).failed();
    assert!(nonsense.contains("127.0.0.1:5000"), "{nonsense}");
}

#[test]
fn tls_is_served_with_a_certificate() {
    let scratch = Scratch::new();
    let file = package(&scratch);
    let subject =
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let rest = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1"];
    let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"];
    program(&scratch, "openssl", subject.iter().chain(&rest).chain(&names)).ok();
    let served = Served::start_with(&scratch, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let there = served.reference("team/nop:v1");
    apron(&scratch, ["push", "-f", file, &there, "--ca-file", "cert.pem"]).ok();
    apron(&scratch, ["inspect", &there, "--ca-file", "cert.pem"]).ok();
}
