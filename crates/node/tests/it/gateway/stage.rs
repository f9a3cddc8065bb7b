//! Network namespaces for tests: a node with its gateway, pods, apron's side, and a world outside.
//!
//! ```text
//!   pod ── veth ── node (the gateway) ── host.sock ── apron's side ── veth ── world: 93.184.216.34, 192.168.7.7
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails its test, as it should"
)]

use crate::sandbox::stage::copy_program;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Not the first one on the path, which may be in a directory that another user is not let into.
const PYTHON: &str = "/usr/bin/python3";
const NOBODY: u32 = 65_534;
const PATIENCE: Duration = Duration::from_secs(90);
/// What the world outside is reached by.
pub(super) const PUBLIC: &str = "93.184.216.34";
/// The same, by an address that is not public.
pub(super) const PRIVATE: &str = "192.168.7.7";

/// Whom the node runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeUser {
    Root,
    /// An unprivileged user, which root becomes for it.
    Nobody,
    /// The unprivileged user that runs the tests.
    Own,
}

/// Everybody that a node can be tried as.
pub(super) fn node_users() -> Vec<NodeUser> {
    if rustix::process::geteuid().is_root() {
        vec![NodeUser::Root, NodeUser::Nobody]
    } else {
        vec![NodeUser::Own]
    }
}

impl NodeUser {
    /// Words before a program that has it run as this user.
    fn become_user(self) -> Vec<String> {
        match self {
            Self::Root | Self::Own => Vec::new(),
            Self::Nobody => split("setpriv --reuid=65534 --regid=65534 --clear-groups --"),
        }
    }

    fn unshare(self) -> Vec<String> {
        match self {
            Self::Root => split("unshare -n --"),
            Self::Nobody | Self::Own => split("unshare -Urn --"),
        }
    }

    /// Words before a program that has it run in a namespace as this user.
    fn enter(self, process: u32) -> Vec<String> {
        let mut words = self.become_user();
        words.extend(match self {
            Self::Root => split(&format!("nsenter --net=/proc/{process}/ns/net --")),
            Self::Nobody | Self::Own => {
                split(&format!("nsenter -t {process} -U -n --preserve-credentials --"))
            }
        });
        words
    }
}

fn split(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}

/// A process that is ended with the test.
pub(super) struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Actor {
    fn start(words: &[String]) -> Self {
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot run {words:?}: {error}"));
        let input = child.stdin.take();
        let lines = read_lines(child.stdout.take().unwrap());
        Self { child, input, lines }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn next_line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a program did not say what it was to say")
    }

    pub(super) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn await_namespace(self) -> Self {
        let own = fs_err::read_link("/proc/self/ns/net").unwrap();
        let path = format!("/proc/{}/ns/net", self.id());
        await_condition("a program is in a namespace of its own", || {
            // The program behind `unshare` shows that its user namespace is ready, too.
            let name =
                fs_err::read_to_string(format!("/proc/{}/comm", self.id())).unwrap_or_default();
            fs_err::read_link(&path).is_ok_and(|theirs| theirs != own) && name.trim() == "cat"
        });
        self
    }
}

fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Waits for a condition, and fails the test if it does not come.
pub(super) fn await_condition(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A node's gateway, and what it needs around it.
pub(super) struct NetworkStage {
    user: NodeUser,
    program: PathBuf,
    pub(super) state: PathBuf,
    node: Actor,
    /// apron's side, in a namespace of its own, so that the machine's addresses do not matter.
    host: Actor,
    world: Actor,
    _door: Actor,
    _directory: TempDir,
}

impl NetworkStage {
    pub(super) fn open(user: NodeUser, egress: &str) -> Self {
        // Elsewhere other users may not be let in, for instance where a user's own directory for such files is.
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        fs_err::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // Longer than a socket's address can be.
        let state = directory.path().join("x".repeat(60)).join("y".repeat(60));
        fs_err::create_dir_all(&state).unwrap();
        if user == NodeUser::Nobody {
            chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // Where the program is built, another user may not be let in.
        let program = directory.path().join("apron-node");
        copy_program(Path::new(env!("CARGO_BIN_EXE_apron-node")), &program);

        let host = Actor::start(&[user.become_user(), user.unshare(), split("cat")].concat())
            .await_namespace();
        let world = [user.enter(host.id()), split("unshare -n -- cat")].concat();
        let world = Actor::start(&world).await_namespace();
        let shell = |process: &Actor, script: &str| {
            let words = [
                user.enter(process.id()),
                vec!["sh".to_owned(), "-ec".to_owned(), script.to_owned()],
            ]
            .concat();
            let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
            assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        };
        await_condition("the world is not the host", || {
            let read = |process: &Actor| {
                fs_err::read_link(format!("/proc/{}/ns/net", process.id())).unwrap()
            };
            read(&world) != read(&host)
        });
        shell(
            &host,
            &format!(
                "ip link set lo up; ip link add w0 type veth peer name w1 netns {}; ip addr add 93.184.216.1/24 dev w0; \
             ip addr add 192.168.7.1/24 dev w0; ip link set w0 up",
                world.id()
            ),
        );
        shell(
            &world,
            &format!(
                "ip link set lo up; ip addr add {PUBLIC}/24 dev w1; ip addr add {PRIVATE}/24 dev w1; ip link set w1 up"
            ),
        );

        let tool = program.to_str().unwrap().to_owned();
        let door =
            ["__host-door", state.to_str().unwrap(), "127.0.0.1:6443", egress, "93.184.216.34:53"];
        let door = door.into_iter().map(str::to_owned).collect();
        let door = Actor::start(&[user.enter(host.id()), vec![tool.clone()], door].concat());
        assert_eq!(door.next_line(), "\"ready\"");
        let config = json!({
            "state": state, "gateway": "10.244.0.1", "services": ["10.96.0.0", 12], "api": "10.96.0.1:443",
            "dns": "10.96.0.10", "domain": "cluster.local",
        });
        let words = vec![tool, "__gateway".to_owned(), config.to_string()];
        let node = Actor::start(&[user.become_user(), user.unshare(), words].concat());
        assert_eq!(node.next_line(), "\"ready\"", "as {user:?}");
        Self { user, program, state, node, host, world, _door: door, _directory: directory }
    }

    /// Tells the gateway to do something, and has its answer.
    pub(super) fn order(&mut self, step: &Value) -> Value {
        self.node.say(&step.to_string());
        serde_json::from_str(&self.node.next_line()).unwrap()
    }

    /// A pod that is attached and has its network.
    pub(super) fn add_pod(&mut self, address: &str) -> Actor {
        let words = [self.user.enter(self.node.id()), split("unshare -n -- cat")].concat();
        let pod = Actor::start(&words).await_namespace();
        let node = fs_err::read_link(format!("/proc/{}/ns/net", self.node.id())).unwrap();
        await_condition("the pod is not in the node's namespace", || {
            fs_err::read_link(format!("/proc/{}/ns/net", pod.id())).unwrap() != node
        });
        let sandbox = json!({ "pod": address, "namespace": "default", "hostname": "pod", "address": address, "hosts": [] });
        assert_eq!(self.order(&json!({ "attach": [sandbox, pod.id()] })), Value::Null);
        let words =
            [self.user.enter(pod.id()), vec![self.program.to_str().unwrap().to_owned()]].concat();
        let done = Command::new(&words[0])
            .args(&words[1..])
            .args(["__pod-network", address, "10.244.0.1"])
            .output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        pod
    }

    /// Runs a script of Python in a namespace until it is at its end.
    pub(super) fn run_python(&self, place: &Actor, script: &str, arguments: &[&str]) -> String {
        let words = self.python(place, script, arguments);
        let done: Output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            done.status.success(),
            "as {:?}: {}",
            self.user,
            String::from_utf8_lossy(&done.stderr)
        );
        output.trim_end().to_owned()
    }

    /// Starts a script of Python in a namespace, and waits for its first line.
    pub(super) fn start_python(&self, place: &Actor, script: &str, arguments: &[&str]) -> Actor {
        let actor = Actor::start(&self.python(place, script, arguments));
        assert_eq!(actor.next_line(), "ready");
        actor
    }

    /// Starts a server of this room's tests in a namespace, and waits until it is ready.
    pub(super) fn start_scenario(&self, place: &Actor, words: &[&str]) -> Actor {
        let mut command = self.user.enter(place.id());
        command.push(self.program.to_str().unwrap().to_owned());
        command.extend(words.iter().map(ToString::to_string));
        let actor = Actor::start(&command);
        assert_eq!(actor.next_line(), "\"ready\"");
        actor
    }

    fn python(&self, place: &Actor, script: &str, arguments: &[&str]) -> Vec<String> {
        let mut words = self.user.enter(place.id());
        words.extend([PYTHON, "-u", "-c", script].map(str::to_owned));
        words.extend(arguments.iter().map(ToString::to_string));
        words
    }

    /// Asks for a name in a pod, as `dig` does.
    pub(super) fn dig(&self, pod: &Actor, question: &str) -> String {
        let words = [
            self.user.enter(pod.id()),
            split("dig @10.96.0.10 +tries=1 +time=30"),
            split(question),
        ]
        .concat();
        let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert!(done.status.success(), "{question}: {}", String::from_utf8_lossy(&done.stdout));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    pub(super) fn host(&self) -> &Actor {
        &self.host
    }

    pub(super) fn world(&self) -> &Actor {
        &self.world
    }

    pub(super) fn user(&self) -> NodeUser {
        self.user
    }
}

/// A Service with an address and one port.
pub(super) fn service(name: &str, address: &str, port: u16, targets: &[&str]) -> Value {
    let pods: Vec<&str> =
        targets.iter().filter_map(|target| Some(target.split_once(':')?.0)).collect();
    json!({
        "namespace": "default", "name": name, "address": address, "pods": pods,
        "ports": [{ "name": null, "port": port, "targets": targets }],
        "hosts": [], "isSticky": false,
    })
}

/// Whether a path can be a socket's address.
pub(super) fn fits_socket_address(path: &Path) -> bool {
    path.as_os_str().len() <= 107
}

/// The permission bits of a file.
pub(super) fn mode_of(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}
