//! What there is of a control plane on this machine, counted from outside. At rest there is as much as before,
//! whatever happened; what leaks is one more of something.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Namespaces that processes are told apart by.
const NAMESPACES: [&str; 6] = ["net", "mnt", "pid", "uts", "ipc", "user"];
/// A listening socket, as `/proc/net/unix` says it.
const LISTENING: &str = "00010000 0001 01";

/// How many there are of each thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Census(BTreeMap<String, usize>);

/// A process of the control plane.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: String,
    /// The verb of one of apron's steps, or the name of a program.
    pub(super) name: String,
}

impl Census {
    /// Counts what belongs to the control plane with this data directory.
    pub(super) fn take(data: &Path) -> Self {
        let mut census = Self::default();
        let members = find_members(data);
        census.count_processes(&members);
        census.count_host(data);
        census.count_files(&data.join("node"));
        census.add_all("temporary file", entries(&data.with_file_name("temporary")).len());
        census
    }

    fn add(&mut self, what: impl Into<String>) {
        self.add_all(what, 1);
    }

    fn add_all(&mut self, what: impl Into<String>, count: usize) {
        *self.0.entry(what.into()).or_default() += count;
    }

    fn count_processes(&mut self, members: &[Member]) {
        let own = namespaces_of("self");
        let mut foreign = BTreeSet::new();
        let home = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for Member { id, name } in members {
            self.add(format!("process {name}"));
            foreign.extend(namespaces_of(id).difference(&own).cloned());
            let group = fs_err::read_to_string(format!("/proc/{id}/cgroup"));
            if group.is_ok_and(|group| group != home) {
                self.add(format!("{name} in a control group of its own"));
            }
            match name.as_str() {
                "__node" => self.count_descriptors(id, name),
                "__supervise" => {
                    self.count_descriptors(id, name);
                    self.count_network(id);
                }
                _ => {}
            }
        }
        for namespace in foreign {
            self.add(format!("namespace {}", namespace.split(':').next().unwrap()));
        }
    }

    fn count_descriptors(&mut self, id: &str, name: &str) {
        for entry in entries(Path::new(&format!("/proc/{id}/fd"))) {
            let Ok(target) = fs_err::read_link(entry) else { continue };
            let target = target.to_string_lossy();
            let kind = target.split(':').next().unwrap_or_default();
            let kind = if kind.starts_with('/') { "file" } else { kind };
            self.add(format!("descriptor of {name}: {kind}"));
        }
    }

    /// The network that the node's gateway is in.
    fn count_network(&mut self, id: &str) {
        let links = fs_err::read_to_string(format!("/proc/{id}/net/dev")).unwrap_or_default();
        self.add_all("link of the node", links.lines().filter(|line| line.contains(':')).count());
        let sockets = fs_err::read_to_string(format!("/proc/{id}/net/unix")).unwrap_or_default();
        let listening = sockets.lines().filter(|line| line.contains(LISTENING)).count();
        self.add_all("listening socket of the node", listening);
    }

    /// What would be in the way of the rest of the machine.
    fn count_host(&mut self, data: &Path) {
        let data = data.display().to_string();
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        self.add_all("mount", mounts.lines().filter(|line| line.contains(&data)).count());
        let sockets = fs_err::read_to_string("/proc/net/unix").unwrap();
        for line in sockets.lines().filter(|line| line.contains(&data)) {
            let is_listening = line.contains(LISTENING);
            self.add(if is_listening { "listening socket" } else { "connected socket" });
        }
        for link in entries(Path::new("/sys/class/net")) {
            let name = link.file_name().unwrap().to_string_lossy().into_owned();
            let is_pod = name.strip_prefix("pod").is_some_and(|rest| rest.parse::<u8>().is_ok());
            if is_pod || name == "pods" {
                self.add("link of the host");
            }
        }
    }

    /// Files of the node: images are counted, not looked into, and neither are the layers of containers.
    fn count_files(&mut self, node: &Path) {
        for part in ["images/rootfs", "images/images", "images/names", "images/tmp"] {
            self.add_all(part, entries(&node.join(part)).len());
        }
        for entry in entries(&node.join("state")) {
            self.add(format!("state/{}", entry.file_name().unwrap().display()));
        }
        // What is there belongs to the node's own mount.
        self.add_all("state/memory/…", entries(&node.join("state/memory")).len());
        for pod in entries(&node.join("state/pods")) {
            self.add("state/pods/…");
            self.add_all("layer", entries(&pod.join("containers")).len());
        }
        for pod in entries(&node.join("logs")) {
            self.add("logs/…");
            self.add_all("logs/…/…", entries(&pod).len());
        }
    }

    /// What there is more of than there was, in lines.
    pub(super) fn find_growth(&self, later: &Self) -> String {
        let mut told = String::new();
        for (name, is) in &later.0 {
            let was = self.count(name);
            if *is > was {
                let _ = writeln!(told, "{name}: {was} became {is}");
            }
        }
        told
    }

    /// How many there are of a thing.
    pub(super) fn count(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// The processes that belong to a control plane: whoever is told of its directory, or has it among its mounts,
/// and what those have started.
pub(super) fn find_members(data: &Path) -> Vec<Member> {
    let data = data.display().to_string();
    let all: Vec<String> = fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    let mut members = Vec::new();
    let mut parents = BTreeMap::new();
    for id in all {
        let words = fs_err::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let mounts = fs_err::read_to_string(format!("/proc/{id}/mountinfo")).unwrap_or_default();
        if words.contains(&data) || mounts.contains(&data) {
            members.push(Member { name: name_of(&words), id });
        } else if let Some(parent) = super::parent(&id) {
            parents.insert(id, parent);
        }
    }
    // Whoever has ended and was not waited for has neither words nor mounts, and nobody else's child is one of these.
    let is_member = |id: &String| members.iter().any(|one: &Member| one.id == *id);
    let left = parents.iter().filter(|(_, parent)| is_member(parent));
    let left: Vec<Member> =
        left.map(|(id, _)| Member { id: id.clone(), name: "of another kind".to_owned() }).collect();
    members.extend(left);
    members
}

fn name_of(words: &str) -> String {
    let mut words = words.split('\0');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if second.starts_with("__") || second == "up" {
        return second.to_owned();
    }
    first.rsplit('/').next().unwrap_or_default().to_owned()
}

fn namespaces_of(id: &str) -> BTreeSet<String> {
    let links = NAMESPACES.map(|kind| fs_err::read_link(format!("/proc/{id}/ns/{kind}")));
    links.into_iter().flatten().map(|link| link.to_string_lossy().into_owned()).collect()
}

/// What is in a directory, if it is there.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).collect()
}

/// Descriptors that a process has open.
pub(super) fn open_files(id: &str) -> usize {
    entries(Path::new(&format!("/proc/{id}/fd"))).len()
}
