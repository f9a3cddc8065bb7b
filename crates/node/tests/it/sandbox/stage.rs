//! A directory with an image and a program that is a node, for root or for a user.

use fs_err as fs;
use node::protocol::{
    ContainerLimits, ContainerMount, ContainerName, ContainerProcess, ContainerStart, Message,
    MountSource, NodeConfig, PodSandbox, ProcessUser, VolumeFile,
};
use node::sandbox::{FIRST_SHIFTED_ID, NodeHandle, NodeMessages, NodeSpawn};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a user is on this machine who is not root.
const USER: u32 = 65_534;

const TOOLS: [&str; 22] = [
    "sh", "cat", "chmod", "chroot", "echo", "env", "grep", "hostname", "id", "ls", "ln", "mkdir",
    "mknod", "mount", "nc", "pwd", "readlink", "sleep", "touch", "umount", "unshare", "dd",
];

/// Longer than anything takes on two cores that other tests use, too, with a program that is not optimised.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Who runs the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

/// All that can be tried by whoever runs the tests.
pub(crate) fn everybody() -> Vec<Who> {
    if nix::unistd::geteuid().is_root() { vec![Who::Root, Who::User] } else { vec![Who::User] }
}

/// A directory, removed in the end by the process that made it.
pub(crate) enum StageDirectory {
    Own(TempDir),
    Adopted(PathBuf),
}

impl StageDirectory {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Own(directory) => directory.path(),
            Self::Adopted(path) => path,
        }
    }
}

impl Drop for StageDirectory {
    fn drop(&mut self) {
        if let Self::Adopted(path) = self {
            let _ = fs::remove_dir_all(path);
        }
    }
}

pub(crate) struct Stage {
    pub(crate) directory: StageDirectory,
    pub(crate) program: PathBuf,
}

impl Stage {
    pub(crate) fn new(who: Who) -> Self {
        // Elsewhere other users may not be let in, for instance where a user's own directory for such files is.
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let path = directory.path();
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        let node = path.join("apron-node");
        copy_program(Path::new(env!("CARGO_BIN_EXE_apron-node")), &node);
        fs::create_dir(path.join("state")).unwrap();
        fs::set_permissions(path.join("state"), PermissionsExt::from_mode(0o700)).unwrap();
        lay_image(&path.join("image"));
        let is_root = nix::unistd::geteuid().is_root();
        let program = if is_root && who == Who::User {
            let wrapper = path.join("as-user");
            let text = format!(
                "#!/bin/sh\nexec /usr/bin/setpriv --reuid {USER} --regid {USER} --clear-groups {} \"$@\"\n",
                node.display()
            );
            write_script(&wrapper, &text);
            own_tree(&path.join("state"), USER);
            own_tree(&path.join("image"), USER);
            wrapper
        } else {
            if is_root {
                own_tree(&path.join("image"), FIRST_SHIFTED_ID);
            }
            node
        };
        Self { directory: StageDirectory::Own(directory), program }
    }

    /// A stage whose process was killed.
    pub(crate) fn adopt(path: &Path, who: Who) -> Self {
        let is_wrapped = nix::unistd::geteuid().is_root() && who == Who::User;
        let program = path.join(if is_wrapped { "as-user" } else { "apron-node" });
        Self { directory: StageDirectory::Adopted(path.to_owned()), program }
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(crate) async fn spawn(&self) -> Running<'_> {
        let config = NodeConfig {
            state: self.state(),
            gateway: Ipv4Addr::new(10, 244, 0, 1),
            services: (Ipv4Addr::new(10, 96, 0, 0), 12),
            api: "10.96.0.1:443".parse().unwrap(),
            dns: Ipv4Addr::new(10, 96, 0, 10),
            domain: "cluster.local".to_owned(),
        };
        let (handle, messages) =
            NodeHandle::spawn(&self.program, NodeSpawn { config }).await.unwrap();
        Running {
            stage: self,
            handle,
            messages,
            exits: Vec::new(),
            notices: Vec::new(),
            last_words: Vec::new(),
        }
    }
}

/// Copies a program that is executed soon. While a process has a file open to write it, nothing can execute that file: a
/// process of its own does so here, because what another test starts meanwhile has the descriptors of this one for a moment.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let done = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// Writes a script that is executed soon, in the same way.
fn write_script(to: &Path, text: &str) {
    let words = ["-c", "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"", "sh", text];
    let done = Command::new("sh").args(words).arg(to).status().unwrap();
    assert!(done.success());
}

fn lay_image(image: &Path) {
    for directory in ["bin", "etc", "home", "tmp"] {
        fs::create_dir_all(image.join(directory)).unwrap();
    }
    fs::set_permissions(image.join("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
    assert!(
        Path::new("/bin/busybox").exists(),
        "busybox-static is missing: run scripts/setup test"
    );
    copy_program(Path::new("/bin/busybox"), &image.join("bin/busybox"));
    for tool in TOOLS {
        symlink("busybox", image.join("bin").join(tool)).unwrap();
    }
    fs::write(image.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    fs::write(image.join("etc/text"), "no program\n").unwrap();
    fs::write(image.join("bin/foreign"), b"\x7fELF of another machine").unwrap();
    fs::set_permissions(image.join("bin/foreign"), PermissionsExt::from_mode(0o755)).unwrap();
}

fn own_tree(path: &Path, owner: u32) {
    lchown(path, Some(owner), Some(owner)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own_tree(&entry.unwrap().path(), owner);
        }
    }
}

/// Polls until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How a container ended: its code, or the signal.
pub(crate) type Exit = (Option<i32>, Option<i32>);

pub(crate) struct Running<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) handle: NodeHandle,
    pub(crate) messages: NodeMessages,
    exits: Vec<(ContainerName, Exit)>,
    pub(crate) notices: Vec<String>,
    /// What containers said of their ends.
    pub(crate) last_words: Vec<String>,
}

impl Running<'_> {
    pub(crate) async fn create_pod(&self, pod: &str, number: u8) {
        self.handle.create_pod(pod_sandbox(pod, number)).await.unwrap();
    }

    pub(crate) fn container(&self, pod: &str, name: &str, arguments: &[&str]) -> ContainerStart {
        let environment = [("PATH", "/usr/bin:/bin"), ("COLOUR", "blue and $green")];
        ContainerStart {
            container: ContainerName { pod: pod.to_owned(), name: name.to_owned(), attempt: 0 },
            rootfs: self.stage.image(),
            process: ContainerProcess {
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                environment: environment
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                directory: "/".to_owned(),
                user: ProcessUser { uid: 2000, gid: 2000, groups: Vec::new() },
            },
            mounts: Vec::new(),
            read_only_root: false,
            logs: self.logs(pod, name),
            limits: ContainerLimits::default(),
            last_words: None,
        }
    }

    pub(crate) fn logs(&self, pod: &str, name: &str) -> PathBuf {
        self.stage.state().join("logs").join(pod).join(name)
    }

    /// What a container printed, on both streams.
    pub(crate) fn printed(&self, pod: &str, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.logs(pod, name).join("0.log")).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_once(" F ").map(|(_, text)| text.to_owned()))
            .collect()
    }

    pub(crate) async fn exit_of(&mut self, pod: &str, name: &str) -> Exit {
        loop {
            let place = self
                .exits
                .iter()
                .position(|(container, _)| container.pod == pod && container.name == name);
            if let Some(place) = place {
                return self.exits.remove(place).1;
            }
            let message = tokio::time::timeout(PATIENCE, self.messages.recv()).await;
            match message.expect("no message for five minutes").expect("the node has ended") {
                Message::Exited { container, code, signal, message, .. } => {
                    self.last_words.extend(message);
                    self.exits.push((container, (code, signal)));
                }
                Message::Notice { text } => self.notices.push(text),
                Message::Answer { .. } => {}
            }
        }
    }

    /// Runs a shell script to its end, and answers with what it printed.
    pub(crate) async fn run_script(&mut self, pod: &str, name: &str, script: &str) -> Vec<String> {
        let start = self.container(pod, name, &["sh", "-c", script]);
        self.run(start).await
    }

    pub(crate) async fn run(&mut self, start: ContainerStart) -> Vec<String> {
        let ContainerName { pod, name, .. } = start.container.clone();
        self.handle.start_container(start).await.unwrap();
        let exit = self.exit_of(&pod, &name).await;
        let printed = self.printed(&pod, &name);
        assert_eq!(
            exit,
            (Some(0), None),
            "{name} printed {printed:#?}, notices {:?}",
            self.notices
        );
        printed
    }

    pub(crate) async fn wait_for_line(&self, pod: &str, name: &str, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.printed(pod, name).iter().any(|printed| printed == line) {
            assert!(
                Instant::now() < deadline,
                "{name} did not print {line}: {:?}",
                self.printed(pod, name)
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub(crate) fn pod_sandbox(pod: &str, number: u8) -> PodSandbox {
    PodSandbox {
        pod: pod.to_owned(),
        namespace: "default".to_owned(),
        hostname: format!("host-of-{pod}"),
        address: Ipv4Addr::new(10, 244, 0, number),
        hosts: vec!["10.0.0.7\tbrother".to_owned()],
    }
}

pub(crate) fn volume_file(path: &str, text: &str) -> VolumeFile {
    use base64::Engine;
    let contents = base64::engine::general_purpose::STANDARD.encode(text);
    VolumeFile { path: path.to_owned(), mode: 0o444, contents }
}

pub(crate) fn mount_of(source: MountSource, target: &str) -> ContainerMount {
    ContainerMount { source, target: target.to_owned(), sub_path: None, read_only: false }
}

pub(crate) fn files(volume: &str) -> MountSource {
    MountSource::Files { volume: volume.to_owned() }
}

pub(crate) fn empty(volume: &str, in_memory: bool) -> MountSource {
    MountSource::Empty { volume: volume.to_owned(), in_memory, size_max: None, group: None }
}

/// Sizes, modes and times of everything below, by path.
pub(crate) fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let mode = metadata.permissions().mode();
        all.insert(path, format!("{} {mode:o} {:?}", metadata.len(), metadata.modified().unwrap()));
    }
    all
}
