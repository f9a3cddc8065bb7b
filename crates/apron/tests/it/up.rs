//! `apron up`: a whole control plane in one process, as somebody at a terminal meets it.

use crate::support::{Ran, Scratch, command};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane that runs.
struct Up<'a> {
    scratch: &'a Scratch,
    child: Child,
    said: PathBuf,
    kubeconfig: PathBuf,
    registry: String,
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Up<'a> {
    /// Starts one, and waits until it says where it is.
    fn start(scratch: &'a Scratch, words: &[&str]) -> Self {
        let said = scratch.join("said");
        let file = fs_err::File::create(&said).unwrap();
        let mut command = command(scratch);
        command.args(["up", "--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
        command.args(words).stdout(Stdio::from(file.into_file())).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let (kubeconfig, registry) = (PathBuf::new(), String::new());
        let mut up = Self { scratch, child, said, kubeconfig, registry };
        up.registry = up.told("  registry  http://");
        up.kubeconfig = PathBuf::from(up.told("  kubectl   export KUBECONFIG="));
        up
    }

    /// The rest of the line that begins so, once it was said.
    fn told(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs_err::read_to_string(&self.said).unwrap();
            // A line is whole when its end is there.
            let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some(rest) = lines.find_map(|line| line.strip_prefix(start)) {
                return rest.trim_end().to_owned();
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?} after it said:\n{text}");
            assert!(Instant::now() < deadline, "it did not say `{start}` but:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Says something to apron about this plane.
    fn say(&self, words: &[&str]) -> Ran {
        let mut command = command(self.scratch);
        command.env("KUBECONFIG", &self.kubeconfig).args(words).output().unwrap().into()
    }

    /// The top package and everything it needs: none is left waiting.
    fn all_healthy(&self) {
        let listed = self.say(&["list", "-o", "json"]).ok().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let all = listed.as_array().unwrap();
        let kinds: Vec<&str> = all.iter().filter_map(|one| one["kind"].as_str()).collect();
        assert_eq!(kinds.len(), 3, "{listed:#}");
        assert!(all.iter().all(|one| one["state"] == "healthy"), "{listed:#}");
    }

    /// Asks it to stop, and waits until it has.
    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(&id).status().unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                assert!(ended.success(), "{ended:?}");
                return;
            }
            assert!(Instant::now() < deadline, "it did not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/platform");
    path.canonicalize().unwrap().display().to_string()
}

#[test]
fn a_control_plane_installs_the_packages_of_a_directory_and_keeps_them() {
    let scratch = Scratch::new();
    let data = scratch.join("data").display().to_string();
    let top = "registry.example.org/platform/platform:v0.1.0";
    {
        let mut up = Up::start(&scratch, &[&example(), "--data-dir", &data]);
        let ready = up.told("ready after ");
        assert!(ready.ends_with('s'), "{ready}");
        up.all_healthy();
        let listed = up.say(&["list", "configuration", "-o", "json"]).ok().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["package"], top);
        // What was built is in the registry, for everybody.
        let inside = format!("{}/{top}", up.registry);
        assert!(up.say(&["inspect", &inside]).ok().stdout.contains("platform"));
        // Whoever asks about the plane's packages finds them under their names, as the plane does.
        let next = inside.replace(":v0.1.0", ":v0.2.0");
        up.say(&["copy", &inside, &next]).ok();
        let planned = up.say(&["plan", "platform", "v0.2.0"]).ok().stdout;
        assert!(planned.contains("v0.2.0"), "{planned}");
        let again = up.say(&["install", top, "platform"]).ok().stderr;
        assert!(again.contains("configuration platform is installed already"), "{again}");
        up.stop();
    }
    // Without the directory: everything is still there.
    let up = Up::start(&scratch, &["--data-dir", &data]);
    let listed = up.say(&["list", "configuration", "-o", "name"]).ok().stdout;
    assert_eq!(listed, "configuration.pkg.crossplane.io/platform\n");
    let inside = format!("{}/{top}", up.registry);
    up.say(&["inspect", &inside]).ok();
    up.say(&["wait", "platform", "--timeout", "15m"]).ok();
    up.stop();
}

#[test]
fn a_control_plane_in_memory_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let temporary = scratch.join("tmp");
    fs_err::create_dir_all(&temporary).unwrap();
    let place = temporary.display().to_string();
    let said = scratch.join("said");
    let file = fs_err::File::create(&said).unwrap();
    let mut command = command(&scratch);
    command.args(["up", "--in-memory", "--exit-when-ready"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    command.env("TMPDIR", &place).stdout(Stdio::from(file.into_file()));
    assert!(command.status().unwrap().success());
    let said = fs_err::read_to_string(said).unwrap();
    assert!(said.contains("data: memory only"), "{said}");
    assert_eq!(fs_err::read_dir(temporary).unwrap().count(), 0);
    assert!(!scratch.join(".local").exists());
}

#[test]
fn mistake_a_directory_without_packages() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("empty")).unwrap();
    let mut command = command(&scratch);
    command.args(["up", "empty", "--in-memory", "--exit-when-ready"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(ran.stderr, @r"
    error: there is no package in empty
    hint: a package is a directory with a crossplane.yaml; `apron init` makes one
    ");
}

#[test]
fn mistake_a_directory_that_is_not_there() {
    let scratch = Scratch::new();
    let mut command = command(&scratch);
    // It would serve until it is stopped.
    command.args(["up", "missing", "--data-dir", "data"]);
    command.args(["--listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.ends_with("hint: check the path\n"), "{}", ran.stderr);
    assert!(!scratch.join("data").exists());
}
