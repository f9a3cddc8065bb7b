//! The step into namespaces: `__node STATE`.

use super::groups::{make_node_group, remove_groups};
use super::{SUPERVISE, because, next_stage};
use fs_err as fs;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid, setsid};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a start waits for the end of the last node in the same directory.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(30);

/// Takes namespaces, and waits for the supervisor in them. The lock on the state is held by whoever waits, and by the
/// supervisor, so that the next node begins after the last program of this one ended.
pub(super) fn run_node(state: Option<&OsString>) -> Result<ExitCode, String> {
    let state = Path::new(state.ok_or("the node has no directory")?);
    close_inherited().map_err(because("close what was inherited"))?;
    // A terminal's Ctrl-C is for apron, which ends the node in order.
    let _ = setsid();
    // Programs that are no root have to find their way through what is made for them.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let lock = take_lock(state)?;
    let group = make_node_group(state);
    let told = serde_json::to_string(&group).map_err(|error| error.to_string())?;
    enter_namespaces()?;
    // The supervisor takes its share of the lock while this process holds one.
    lock.relock(FlockArg::LockShared).map_err(because("keep the lock"))?;
    let mut supervisor = next_stage(SUPERVISE)
        .arg(state)
        .arg(told)
        .spawn()
        .map_err(because("start the supervisor"))?;
    let status = supervisor.wait().map_err(because("wait for the supervisor"))?;
    if let Ok(group) = group {
        remove_groups(&group);
    }
    drop(lock);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Closes every descriptor but the standard ones. Whatever started apron may have left files open in it, which every
/// program of a pod would have as well.
fn close_inherited() -> std::io::Result<()> {
    let numbers = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?.flatten().filter_map(numbers).collect();
    for descriptor in open.into_iter().filter(|number| *number > 2) {
        // That of the directory itself is closed by now.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

pub(super) fn open_lock(state: &Path) -> Result<File, String> {
    let path = state.join("node.lock");
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path);
    file.map(fs::File::into_file).map_err(|error| error.to_string())
}

fn take_lock(state: &Path) -> Result<Flock<File>, String> {
    let mut file = open_lock(state)?;
    let deadline = Instant::now().checked_add(PREDECESSOR_WAIT);
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, Errno::EWOULDBLOCK)) => file = again,
            Err((_, error)) => return Err(format!("cannot lock {}: {error}", state.display())),
        }
        if deadline.is_none_or(|deadline| Instant::now() > deadline) {
            return Err(format!("another node still runs in {}", state.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Takes all namespaces a node has, with a user namespace first unless root asks.
pub(super) fn enter_namespaces() -> Result<(), String> {
    let (uid, gid) = (geteuid(), getegid());
    if !uid.is_root() {
        refuse_threads()?;
        unshare(CloneFlags::CLONE_NEWUSER).map_err(explain_user_namespace)?;
        write_map("/proc/self/setgroups", "deny")?;
        write_map("/proc/self/uid_map", &format!("0 {uid} 1\n"))?;
        write_map("/proc/self/gid_map", &format!("0 {gid} 1\n"))?;
    }
    let kinds = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    unshare(kinds).map_err(explain_namespaces)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(because("keep mounts to the node"))
}

/// User namespaces are for processes of one thread.
pub(super) fn refuse_threads() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).map(str::trim);
    match threads {
        Some("1") => Ok(()),
        other => Err(format!(
            "this step of the node has {} threads and must have one; this is a defect of apron",
            other.unwrap_or("an unknown number of")
        )),
    }
}

fn write_map(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => user_namespace_advice("their ids cannot be mapped"),
        _ => error.to_string(),
    })
}

fn explain_user_namespace(error: Errno) -> String {
    match error {
        Errno::EPERM | Errno::EACCES => user_namespace_advice("the kernel does not permit them"),
        Errno::ENOSPC | Errno::EUSERS => {
            "user namespaces are switched off (user.max_user_namespaces is 0); set that sysctl to 10000, or run apron as root"
                .to_owned()
        }
        Errno::EINVAL | Errno::ENOSYS => "this kernel has no user namespaces; run apron as root".to_owned(),
        other => format!("cannot take a user namespace: {other}"),
    }
}

/// What forbids user namespaces to users can be told from the sysctl that would allow them.
fn user_namespace_advice(why: &str) -> String {
    let is = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .is_ok_and(|text| text.trim() == value)
    };
    let change = if is("apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor restricts them; run 'sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0', or run apron as root"
    } else if is("unprivileged_userns_clone", "0") {
        "run 'sudo sysctl kernel.unprivileged_userns_clone=1', or run apron as root"
    } else {
        "in a container, its seccomp profile has to permit unshare and mount ('--security-opt seccomp=unconfined'); \
         otherwise run apron as root"
    };
    format!("this user cannot have user namespaces, because {why}: {change}")
}

fn explain_namespaces(error: Errno) -> String {
    match error {
        Errno::EPERM => "root may not take namespaces here; in a container, run it with '--privileged', \
                         or with '--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined'"
            .to_owned(),
        Errno::ENOSPC => "there are too many namespaces on this machine (user.max_*_namespaces)".to_owned(),
        other => format!("cannot take namespaces: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_two_threads_does_not_go_on() {
        let (stay, stays) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stays.recv());
        let refusal = refuse_threads().unwrap_err();
        assert!(refusal.contains("threads and must have one"), "{refusal}");
        drop(stay);
        assert!(thread.join().unwrap().is_err());
    }
}
