//! The last step of a process: another user, no rights, and then it is the program.

use super::because;
use super::ids::ContainerIds;
use crate::protocol::ContainerProcess;
use caps::CapSet;
use fs_err as fs;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, Gid, Uid, access, chdir, execve, setgroups, setresgid, setresuid};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked for if their environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The most processes and threads that one user has in a container. The kernel counts them for each user namespace (since
/// Linux 5.14; before, all processes of the machine that have this id count).
const PROCESSES_MAX: u64 = 4_096;

/// Lets no program of the user namespace this process is in take further ones, in which it could mount.
pub(super) fn forbid_user_namespaces(kernel: &OwnedFd) -> Result<(), String> {
    let setting = "sys/user/max_user_namespaces";
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(kernel, setting, flags, Mode::empty())
        .map_err(because(format!("open {setting}")))?;
    nix::unistd::write(file, b"0").map(drop).map_err(because(format!("write {setting}")))
}

/// Becomes the program, or says why it cannot.
pub(super) fn become_program(process: &ContainerProcess, ids: ContainerIds) -> String {
    match try_become(process, ids) {
        Ok(never) => match never {},
        Err(why) => why,
    }
}

fn try_become(process: &ContainerProcess, ids: ContainerIds) -> Result<Infallible, String> {
    limit_processes()?;
    take_user(process, ids)?;
    drop_rights()?;
    super::calls::refuse_calls()?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let directory = if process.directory.is_empty() { "/" } else { process.directory.as_str() };
    chdir(directory)
        .map_err(|error| format!("chdir to cwd ({directory:?}) failed: {}", describe(error)))?;
    let name =
        process.arguments.first().filter(|name| !name.is_empty()).ok_or("no command specified")?;
    let program = find_program(name, process.environment.get("PATH").map(String::as_str))?;
    let arguments = to_c_strings(process.arguments.iter().cloned())?;
    let environment =
        to_c_strings(process.environment.iter().map(|(name, value)| format!("{name}={value}")))?;
    let path =
        CString::new(program.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    reset_signals();
    let null = fs::File::open("/dev/null").map_err(|error| error.to_string())?;
    nix::unistd::dup2_stdin(null.file().as_fd())
        .map_err(because("give the program an empty input"))?;
    execve(&path, &arguments, &environment)
        .map_err(|error| format!("exec {}: {}", program.display(), describe(error)))
}

/// A program that spawns without end is to fail, and not the machine. The limit has to be there before the user is
/// another, or the kernel would count against the old one.
fn limit_processes() -> Result<(), String> {
    let allowed = getrlimit(Resource::Nproc).maximum;
    let most = Some(allowed.map_or(PROCESSES_MAX, |allowed| allowed.min(PROCESSES_MAX)));
    setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most })
        .map_err(because("limit the number of processes"))
}

fn take_user(process: &ContainerProcess, ids: ContainerIds) -> Result<(), String> {
    let user = &process.user;
    if ids == ContainerIds::Shifted {
        let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        setgroups(&groups).map_err(because(format!("take groups {:?}", user.groups)))?;
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    setresgid(gid, gid, gid).map_err(because(format!("become group {gid}")))?;
    setresuid(uid, uid, uid).map_err(because(format!("become user {uid}")))
}

/// Root in a container has no capabilities either, nor gets any by executing a program.
fn drop_rights() -> Result<(), String> {
    for capability in caps::runtime::thread_all_supported() {
        caps::drop(None, CapSet::Bounding, capability).map_err(because("drop capabilities"))?;
    }
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(because("drop capabilities"))?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(because("forbid new privileges"))
}

/// Rust ignores SIGPIPE, and what is ignored stays so in the next program. `exec` of the standard library is the one
/// way without unsafe code to give the signal back its meaning; it does so before it finds that nothing is there.
fn reset_signals() {
    let _ = Command::new("/dev/null/nothing").exec();
}

/// As runc finds programs: with a `/` where it says, otherwise on the `PATH`.
fn find_program(name: &str, path: Option<&str>) -> Result<PathBuf, String> {
    if name.contains('/') {
        let program = PathBuf::from(name);
        return match check_program(&program) {
            Ok(()) => Ok(program),
            Err(Errno::ENOENT) => {
                Err(format!("exec: {name:?}: stat {name}: no such file or directory"))
            }
            Err(error) => Err(format!("exec: {name:?}: {}", describe(error))),
        };
    }
    let mut refused = None;
    for directory in path.unwrap_or(DEFAULT_PATH).split(':') {
        let program = Path::new(if directory.is_empty() { "." } else { directory }).join(name);
        match check_program(&program) {
            Ok(()) => return Ok(program),
            Err(Errno::EACCES) => refused = Some(format!("exec: {name:?}: permission denied")),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| format!("exec: {name:?}: executable file not found in $PATH")))
}

fn check_program(program: &Path) -> Result<(), Errno> {
    let mode =
        rustix::fs::stat(program).map_err(|error| Errno::from_raw(error.raw_os_error()))?.st_mode;
    if rustix::fs::FileType::from_raw_mode(mode).is_dir() {
        return Err(Errno::EISDIR);
    }
    access(program, AccessFlags::X_OK)
}

/// An error as other programs say it: `permission denied`.
fn describe(error: Errno) -> String {
    error.desc().to_lowercase()
}

fn to_c_strings(texts: impl Iterator<Item = String>) -> Result<Vec<CString>, String> {
    texts
        .map(|text| {
            CString::new(text).map_err(|_| "an argument or variable contains a NUL byte".to_owned())
        })
        .collect()
}
