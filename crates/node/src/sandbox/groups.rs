//! Control groups (version 2), which hold containers to their limits where this node can have them.
//!
//! ```text
//!   PARENT/apron-NAME/                    made by `__node` before it takes namespaces, and removed by it
//!                    POD.CONTAINER.3/     a run of a container: memory.max, cpu.max, pids.max
//! ```
//!
//! Root's node has its group at the top of the hierarchy, where groups may stand beside processes. That of a user is below
//! the group that apron runs in, if the user was given that one. A group with processes cannot share anything out, so apron
//! moves into one below first, but only if nothing else is in there. What cannot be had is said, and containers run
//! without it.

use super::ids::is_initial_user_namespace;
use crate::protocol::{ContainerLimits, ContainerName};
use fs_err as fs;
use nix::unistd::{geteuid, getpid, getppid};
use oci::Digest;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is shared out to containers, as far as the machine has it.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];
/// What the group ends with that apron moves into.
const OWN_SUFFIX: &str = ".apron";
/// The time that a share of processors is a share of, in microseconds.
const CPU_PERIOD: u64 = 100_000;
/// The least that the kernel takes as a share.
const CPU_QUOTA_MIN: u64 = 1_000;
/// The most processes and threads of a container, of all its users.
const PROCESSES_MAX: u64 = 4_096;
/// How often the removal of a group is tried whose processes are about to end, and the pause between.
const REMOVALS_MAX: u32 = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// Where control groups are.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    mounted_at: PathBuf,
    /// What of the hierarchy is seen there.
    root: PathBuf,
}

impl Hierarchy {
    /// The first one among the mounts of a process.
    fn find_mount(mounts: &str) -> Option<Self> {
        mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut words = place.split(' ').skip(3);
            let (root, mounted_at) = (words.next()?, words.next()?);
            let is_ours = kind.split(' ').next() == Some("cgroup2");
            is_ours.then(|| Self { mounted_at: mounted_at.into(), root: root.into() })
        })
    }

    /// The directory of the group that a process is in.
    fn locate_own(&self, groups: &str) -> Option<PathBuf> {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(self.mounted_at.join(Path::new(own).strip_prefix(&self.root).ok()?))
    }
}

/// Makes the group of the node with this state, or says why there is none. It is called by a process that sees all others
/// of the machine. What a node that was killed left there is removed.
pub(super) fn make_node_group(state: &Path) -> Result<PathBuf, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| error.to_string());
    let hierarchy = Hierarchy::find_mount(&read("/proc/self/mountinfo")?)
        .ok_or("this machine has no control groups (cgroup v2)")?;
    let is_root = geteuid().is_root() && is_initial_user_namespace().unwrap_or(false);
    let parent = if is_root {
        hierarchy.mounted_at.clone()
    } else {
        let own = hierarchy.locate_own(&read("/proc/self/cgroup")?);
        leave_own_suffix(own.ok_or("the control group of apron is not to be seen here")?)
    };
    let short: String =
        Digest::of(state.as_os_str().as_encoded_bytes()).hex().chars().take(12).collect();
    let group = parent.join(format!("apron-{short}"));
    remove_groups(&group);
    share_controllers(&parent, &parent.join(format!("apron-{short}{OWN_SUFFIX}")))?;
    fs::create_dir(&group).map_err(|error| error.to_string())?;
    share_controllers(&group, &group).inspect_err(|_| remove_groups(&group))?;
    Ok(group)
}

/// An apron that moved into a group of its own before has its node's group beside that.
fn leave_own_suffix(own: PathBuf) -> PathBuf {
    let is_moved = own.to_str().is_some_and(|path| path.ends_with(OWN_SUFFIX));
    match own.parent() {
        Some(parent) if is_moved => parent.to_owned(),
        _ => own,
    }
}

/// Lets groups below this one have limits. If processes are in the way, those of apron move to `aside`.
fn share_controllers(group: &Path, aside: &Path) -> Result<(), String> {
    let list = |name: &str| fs::read_to_string(group.join(name)).map_err(|error| error.to_string());
    let has = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    let there = list("cgroup.controllers")?;
    let wanted: Vec<&str> = CONTROLLERS.into_iter().filter(|name| has(&there, name)).collect();
    if wanted.is_empty() {
        return Err(
            "the control groups of this machine (cgroup v2) limit neither memory nor processors"
                .to_owned(),
        );
    }
    let mut moved = false;
    let mut failure = None;
    for name in wanted {
        if has(&list("cgroup.subtree_control")?, name) {
            continue;
        }
        let share = || fs::write(group.join("cgroup.subtree_control"), format!("+{name}"));
        let mut shared = share();
        let is_busy = |it: &io::Result<()>| {
            it.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        };
        if is_busy(&shared) && !moved {
            move_apron(group, aside)?;
            moved = true;
            shared = share();
        }
        failure = failure.or(shared.err());
    }
    // One that is not to be had is missed by the limits it would hold.
    let is_any = list("cgroup.subtree_control")
        .is_ok_and(|shared| CONTROLLERS.into_iter().any(|name| has(&shared, name)));
    match failure {
        Some(error) if !is_any => Err(format!(
            "control groups cannot be had ({error}); 'systemd-run --user --scope -p Delegate=yes' gives a program some"
        )),
        _ => Ok(()),
    }
}

/// Moves apron, which is the parent of this process, and this process.
fn move_apron(from: &Path, aside: &Path) -> Result<(), String> {
    let own = [getpid(), getppid()].map(|pid| pid.to_string());
    let inside =
        fs::read_to_string(from.join("cgroup.procs")).map_err(|error| error.to_string())?;
    if inside.lines().any(|pid| !own.iter().any(|one| one == pid)) {
        return Err(format!(
            "apron shares its control group ({}) with other processes; 'systemd-run --user --scope -p Delegate=yes' \
             gives it one",
            from.display()
        ));
    }
    fs::create_dir_all(aside).map_err(|error| error.to_string())?;
    for pid in inside.lines() {
        fs::write(aside.join("cgroup.procs"), pid).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Removes a group and those directly below it, with the processes that still run there.
pub(super) fn remove_groups(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    remove_group(group);
}

/// Removes a group. A process that was killed is in it for a moment longer.
fn remove_group(group: &Path) {
    for _ in 0..REMOVALS_MAX {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let _ = fs::write(group.join("cgroup.kill"), "1");
                std::thread::sleep(REMOVAL_PAUSE);
            }
            // What cannot be removed now is removed by the next start.
            _ => return,
        }
    }
}

/// The groups of containers, as the supervisor has them.
#[derive(Debug)]
pub(super) struct ControlGroups {
    /// The node's group, or why there is none.
    node: Result<PathBuf, String>,
    /// What can be limited.
    controllers: Vec<String>,
}

impl ControlGroups {
    /// Takes over the node's group.
    pub(super) fn take_over(node: Result<PathBuf, String>) -> Self {
        let shared = match &node {
            Ok(group) => fs::read_to_string(group.join("cgroup.subtree_control")),
            Err(_) => Ok(String::new()),
        };
        let controllers =
            shared.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        Self { node, controllers }
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|one| one == controller)
    }

    /// Which of these limits nothing holds a container to, and why.
    pub(super) fn explain_lack(&self, limits: &ContainerLimits) -> Option<String> {
        let asked = [
            (limits.memory_max.is_some(), "memory", "memory"),
            (limits.cpu_milli_max.is_some(), "cpu", "processors"),
        ];
        let lacking = asked.iter().filter(|(is_asked, name, _)| *is_asked && !self.has(name));
        let lacking: Vec<&str> = lacking.map(|(_, _, what)| *what).collect();
        if lacking.is_empty() {
            return None;
        }
        let why = match &self.node {
            Err(why) => why.as_str(),
            Ok(_) => "control groups have no limit of this kind here",
        };
        Some(format!("limits of {} are not enforced: {why}", lacking.join(" and ")))
    }

    /// Makes the group of a run of a container; nothing, if there are no groups here. Its names were checked.
    pub(super) fn make_group(
        &self,
        container: &ContainerName,
        limits: &ContainerLimits,
    ) -> Result<Option<ContainerGroup>, String> {
        let Ok(node) = &self.node else { return Ok(None) };
        let ContainerName { pod, name, attempt } = container;
        let path = node.join(format!("{pod}.{name}.{attempt}"));
        remove_group(&path);
        fs::create_dir(&path).map_err(|error| error.to_string())?;
        let group = ContainerGroup { path };
        let write = |name: &str, text: String| {
            fs::write(group.path.join(name), text).map_err(|error| error.to_string())
        };
        if self.has("pids") {
            write("pids.max", PROCESSES_MAX.to_string())?;
        }
        if let Some(bytes) = limits.memory_max.filter(|_| self.has("memory")) {
            write("memory.max", bytes.to_string())?;
            // A container ends as a whole, as kubelets have it. A machine without swap has no such limit.
            write("memory.oom.group", "1".to_owned())?;
            let _ = write("memory.swap.max", "0".to_owned());
        }
        if let Some(milli) = limits.cpu_milli_max.filter(|_| self.has("cpu")) {
            write("cpu.max", describe_share(milli))?;
        }
        Ok(Some(group))
    }
}

/// Thousandths of a core, as `cpu.max` has them.
fn describe_share(milli: u64) -> String {
    let quota = milli.saturating_mul(CPU_PERIOD / 1_000).max(CPU_QUOTA_MIN);
    format!("{quota} {CPU_PERIOD}")
}

/// The group of a run of a container. Dropped after its end, it is removed.
#[derive(Debug)]
pub(super) struct ContainerGroup {
    path: PathBuf,
}

impl ContainerGroup {
    /// What a process writes a 0 to that enters.
    pub(super) fn entrance(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Has a process enter. One that has ended need not.
    pub(super) fn add_process(&self, pid: i32) {
        let _ = fs::write(self.entrance(), pid.to_string());
    }

    /// Whether a process in there was killed because there was too little memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        counts_kills(&events)
    }
}

impl Drop for ContainerGroup {
    fn drop(&mut self) {
        remove_group(&self.path);
    }
}

fn counts_kills(events: &str) -> bool {
    let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.is_some_and(|count| count.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw
30 25 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:27 /docker/x /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup rw,nsdelegate
";

    #[test]
    fn the_group_of_a_process_is_found_below_what_is_mounted() {
        let hierarchy = Hierarchy::find_mount(MOUNTS).unwrap();
        assert_eq!(hierarchy.mounted_at, Path::new("/sys/fs/cgroup/unified"));
        let own = |groups: &str| hierarchy.locate_own(groups);
        let groups = "4:memory:/x\n0::/docker/x/user.slice/a.scope\n";
        let expected = PathBuf::from("/sys/fs/cgroup/unified/user.slice/a.scope");
        assert_eq!(own(groups), Some(expected));
        assert_eq!(own("0::/elsewhere\n"), None);
        assert_eq!(own("4:memory:/x\n"), None);
        assert_eq!(Hierarchy::find_mount("22 1 0:20 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn an_apron_that_moved_aside_finds_the_group_it_came_from() {
        let moved = leave_own_suffix(PathBuf::from("/sys/fs/cgroup/a.scope/apron-1.apron"));
        assert_eq!(moved, Path::new("/sys/fs/cgroup/a.scope"));
        let fresh = PathBuf::from("/sys/fs/cgroup/a.scope");
        assert_eq!(leave_own_suffix(fresh.clone()), fresh);
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let shares = [500, 1, 2_500, u64::MAX].map(describe_share);
        let most = format!("{} 100000", u64::MAX);
        assert_eq!(shares, ["50000 100000", "1000 100000", "250000 100000", &most]);
        assert!(counts_kills("low 0\noom 1\noom_kill 3\noom_group_kill 1\n"));
        assert!(!counts_kills("low 0\noom 1\noom_kill 0\n"));
        assert!(!counts_kills(""));
    }

    /// Groups are there without any controllers, which this machine may not have.
    #[test]
    fn a_group_has_the_process_that_entered_and_goes_with_it() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = Hierarchy::find_mount(&mounts)
            .map(|hierarchy| hierarchy.mounted_at.join(format!("apron-test-{}", getpid())));
        let Some(node) = place.filter(|place| fs::create_dir(place).is_ok()) else {
            println!("not tried: no control group can be made here");
            return;
        };
        let groups = ControlGroups::take_over(Ok(node.clone()));
        let container = ContainerName { pod: "p".to_owned(), name: "c".to_owned(), attempt: 3 };
        let group = groups.make_group(&container, &ContainerLimits::default()).unwrap().unwrap();
        let mut program = std::process::Command::new("sleep").arg("100000").spawn().unwrap();
        group.add_process(program.id().try_into().unwrap());
        let inside = fs::read_to_string(node.join("p.c.3/cgroup.procs")).unwrap();
        assert_eq!(inside.trim(), program.id().to_string());
        assert!(!group.ran_out_of_memory());
        // As after a node that was killed.
        std::mem::forget(group);
        let reaper = std::thread::spawn(move || program.wait().unwrap());
        remove_groups(&node);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&reaper.join().unwrap()), Some(9));
        assert!(!node.exists());
    }

    #[test]
    fn a_limit_that_nothing_holds_is_told_with_the_reason() {
        let groups = |node: Result<PathBuf, String>, controllers: &[&str]| ControlGroups {
            node,
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
        };
        let both = ContainerLimits { memory_max: Some(1), cpu_milli_max: Some(1) };
        let none = groups(Err("of this".to_owned()), &[]);
        let said = "limits of memory and processors are not enforced: of this";
        assert_eq!(none.explain_lack(&both).as_deref(), Some(said));
        assert_eq!(none.explain_lack(&ContainerLimits::default()), None);
        let some = groups(Ok(PathBuf::from("/x")), &["memory", "pids"]);
        assert!(some.explain_lack(&both).unwrap().starts_with("limits of processors are not"));
        assert_eq!(some.explain_lack(&ContainerLimits { cpu_milli_max: None, ..both }), None);
    }
}
