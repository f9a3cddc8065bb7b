//! A control plane that runs programs, and the images they come in.

use crate::support::{Ran, Scratch, command, command_at, patiently, peer_path, program, until};
use crate::up::Up;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(super) const SYSTEM: &str = "crossplane-system";
/// A program that does not answer within this time is asked again.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// An image with one program.
pub(super) struct Image<'a> {
    pub(super) name: &'a str,
    pub(super) program: &'a Path,
    /// Where the program lies in the image, without the slash.
    pub(super) at: &'a str,
    /// Directories of this machine that the image has at its root.
    pub(super) directories: &'a [PathBuf],
    /// The image's configuration.
    pub(super) config: Value,
}

impl Image<'_> {
    /// The image in an archive as `docker save` makes it.
    pub(super) fn write_archive(&self, scratch: &Scratch) -> PathBuf {
        let Self { name, program: source, at, directories, config } = self;
        let root = format!("{name}-root");
        fs_err::create_dir_all(scratch.join(&root).join("tmp")).unwrap();
        scratch.write(&format!("{root}/etc/passwd"), "root:x:0:0::/:\nnonroot:x:65532:65532::/:\n");
        let target = scratch.join(&root).join(at);
        fs_err::create_dir_all(target.parent().unwrap()).unwrap();
        fs_err::copy(source, target).unwrap();
        for directory in *directories {
            let target = format!("{root}/{}", directory.file_name().unwrap().display());
            scratch.copy_package_from(directory, &target);
        }
        let words = ["--owner=0", "--group=0", "--mode=a+rX", "-C", &root, "-cf", "layer.tar", "."];
        program(scratch, "tar", words).ok();
        let sum = program(scratch, "sha256sum", ["layer.tar"]).ok().stdout;
        let digest = sum.split(' ').next().unwrap();
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let config = json!({
            "architecture": machine, "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        });
        scratch.write("config.json", config.to_string());
        let tag = format!("{name}:v1");
        let manifest =
            json!([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]);
        scratch.write("manifest.json", manifest.to_string());
        let archive = format!("{name}.tar");
        let words = ["-cf", &archive, "manifest.json", "config.json", "layer.tar"];
        program(scratch, "tar", words).ok();
        scratch.join(archive)
    }
}

/// How a control plane is started here.
const ALWAYS: [&str; 2] = ["--runtime", "process"];
/// A user of this machine who is not root.
const USER: u32 = 65_534;

/// Who runs a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever runs the tests, which in CI is root.
    Own,
    /// A user without any rights.
    User,
}

impl Who {
    /// What becomes apron in this user's hands.
    fn command(self, scratch: &Scratch) -> Command {
        let temporary = scratch.join("temporary");
        fs_err::create_dir_all(&temporary).unwrap();
        fs_err::set_permissions(&temporary, PermissionsExt::from_mode(0o1777)).unwrap();
        let mut command = match self {
            Self::Own => command(scratch),
            Self::User => {
                let own = scratch.join("apron");
                if !own.exists() {
                    fs_err::copy(env!("CARGO_BIN_EXE_apron"), &own).unwrap();
                }
                let ids = ["--reuid", "--regid"].map(|word| format!("{word}={USER}"));
                let mut command = command_at(scratch, Path::new("/usr/bin/setpriv"));
                command.args(ids).arg("--clear-groups").arg(own);
                command
            }
        };
        command.env("TMPDIR", temporary);
        command
    }

    /// The directory of a control plane, which its user may change.
    fn data(self, scratch: &Scratch) -> PathBuf {
        let data = scratch.join("data");
        fs_err::create_dir_all(&data).unwrap();
        if self == Self::User {
            fs_err::os::unix::fs::chown(&data, Some(USER), Some(USER)).unwrap();
        }
        data
    }

    /// Why this user cannot run pods here, if that is so.
    pub(super) fn refusal(self, scratch: &Scratch) -> Option<String> {
        if self == Self::User && fs_err::metadata("/proc/self").unwrap().uid() != 0 {
            return Some("only root becomes another user".to_owned());
        }
        let mut probe = self.command(scratch);
        // As apron itself asks.
        probe.env("_RJEM_MALLOC_CONF", "background_thread:false").args(["__node", "--probe"]);
        let probed = probe.output().unwrap();
        (!probed.status.success()).then(|| Ran::from(probed).all().trim().to_owned())
    }
}

/// A control plane whose packages run.
pub(super) struct Running<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) data: PathBuf,
    pub(super) up: Up<'a>,
}

impl<'a> Running<'a> {
    pub(super) fn start(scratch: &'a Scratch, words: &[&str]) -> Self {
        Self::start_as(Who::Own, scratch, words)
    }

    pub(super) fn start_as(who: Who, scratch: &'a Scratch, words: &[&str]) -> Self {
        let data = who.data(scratch);
        let words = [&ALWAYS, &["--data-dir", data.to_str().unwrap()], words].concat();
        let mut up = Up::start_by(who.command(scratch), scratch, &words);
        let told = up.told("  runtime   ");
        assert!(told.starts_with("process: "), "{told}");
        Self { scratch, data, up }
    }

    /// Starts one, and kills it a while later, however far it has come.
    pub(super) fn start_and_kill(who: Who, scratch: &'a Scratch, after: Duration) {
        let data = who.data(scratch);
        let words = [&ALWAYS[..], &["--data-dir", data.to_str().unwrap()]].concat();
        let up = Up::begin(who.command(scratch), scratch, &words);
        std::thread::sleep(after);
        drop(up);
    }

    /// Builds a package of this directory with its program, pushes it, and installs it.
    pub(super) fn install(&self, kind: &str, source: &Path, image: &Image<'_>, reference: &str) {
        self.push(source, image, reference);
        self.up.say(&["install", kind, reference, image.name, "--wait", "10m"]).ok();
    }

    /// Builds a package of this directory with its program, and pushes it.
    pub(super) fn push(&self, source: &Path, image: &Image<'_>, reference: &str) {
        let archive = image.write_archive(self.scratch).display().to_string();
        self.scratch.copy_package_from(source, image.name);
        let file = format!("{}.xpkg", image.name);
        let words = ["build", image.name, "-o", &file, "--embed-runtime-image-tarball", &archive];
        self.up.say(&words).ok();
        let there = format!("{}/{reference}", self.up.registry);
        self.up.say(&["push", "-f", &file, &there]).ok();
    }

    pub(super) fn kubectl(&self, words: &[&str]) -> Ran {
        let mut command = command_at(self.scratch, &peer_path("kubectl"));
        command.env("KUBECONFIG", &self.up.kubeconfig).args(words).output().unwrap().into()
    }

    pub(super) fn apply(&self, object: &Value) {
        let path = self.scratch.write("object.json", object.to_string());
        self.kubectl(&["apply", "-f", path.to_str().unwrap()]).ok();
    }

    pub(super) fn get(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = ["get", "-o", "json"].iter().chain(words).copied().collect();
        serde_json::from_str(&self.kubectl(&words).ok().stdout).unwrap()
    }

    /// The provider's pods that are not about to go.
    pub(super) fn pods(&self) -> Vec<Value> {
        let listed = self.get(&["pods", "-n", SYSTEM]);
        let all = listed["items"].as_array().unwrap().iter();
        all.filter(|one| one["metadata"]["deletionTimestamp"].is_null()).cloned().collect()
    }

    /// The provider's pod, once there is one that is ready and none that is not `not`.
    pub(super) fn ready_pod(&self, not: &str) -> Value {
        patiently(|| {
            let pods = self.pods();
            let [pod] = pods.as_slice() else {
                return Err(format!("there are {} pods: {pods:#?}", pods.len()));
            };
            let is_other = pod["metadata"]["name"] != not;
            if is_ready(pod) && is_other { Ok(pod.clone()) } else { Err(format!("{pod:#}")) }
        })
    }

    /// What a program in a pod answers.
    pub(super) fn ask(&self, pod: &Value, path: &str) -> String {
        until(&format!("an answer to {path}"), || self.try_asking(pod, path))
    }

    /// The same, if it answers now.
    pub(super) fn try_asking(&self, pod: &Value, path: &str) -> Option<String> {
        let address = pod["status"]["podIP"].as_str()?;
        let mut stream = UnixStream::connect(self.data.join("node/state/node.sock")).ok()?;
        stream.set_read_timeout(Some(ANSWER_WAIT)).ok()?;
        stream.set_write_timeout(Some(ANSWER_WAIT)).ok()?;
        stream.write_all(format!("tcp {address}:8080\n").as_bytes()).ok()?;
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line != "ok\n" {
            return None;
        }
        let head = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut told = String::new();
        reader.read_to_string(&mut told).ok()?;
        told.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(super) fn restarts(pod: &Value) -> i64 {
    pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap()
}
