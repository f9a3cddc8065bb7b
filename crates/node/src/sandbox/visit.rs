//! `__exec` and `__enter`: from the supervisor to one more program in a container.

use super::blueprint::{StepLine, StepReport, Visit};
use super::{ENTER, because, enter, next_stage, program};
use fs_err as fs;
use nix::sched::{CloneFlags, setns};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `__exec PID`: spawns a process in the PID namespace of a container, given by its first process, and ends.
pub(super) fn run_exec_stage(container: Option<&OsString>) -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        let container = container.ok_or("an exec needs a container")?;
        join(&namespaces(container), "pid", CloneFlags::CLONE_NEWPID)?;
        let next = next_stage(ENTER)
            .arg(container)
            .spawn()
            .map_err(because("start a process in the container"))?;
        line.report(&StepReport::Spawned(
            i32::try_from(next.id()).map_err(|error| error.to_string())?,
        ))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// `__enter PID`: joins its other namespaces, and becomes the program.
pub(super) fn run_exec_in_container(container: Option<&OsString>) -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        let visit: Visit = line.expect_order()?;
        // Programs of the container see this process from now on, and shall not look into it.
        nix::sys::prctl::set_dumpable(false).map_err(because("hide from the container"))?;
        nix::unistd::setsid().map_err(because("lead a group of processes"))?;
        enter::refuse_threads()?;
        let directory = namespaces(container.ok_or("an exec needs a container")?);
        // All are opened while this is the node's /proc.
        let files = [
            ("cgroup", CloneFlags::CLONE_NEWCGROUP),
            ("ipc", CloneFlags::CLONE_NEWIPC),
            ("uts", CloneFlags::CLONE_NEWUTS),
            ("net", CloneFlags::CLONE_NEWNET),
            ("mnt", CloneFlags::CLONE_NEWNS),
            ("user", CloneFlags::CLONE_NEWUSER),
        ]
        .map(|(name, kind)| (name, kind, fs::File::open(directory.join(name))));
        for (name, kind, file) in files {
            let file = file.map_err(|error| error.to_string())?;
            setns(file.file(), kind)
                .map_err(because(format!("join the container's {name} namespace")))?;
        }
        Err(program::become_program(&visit.process, visit.ids))
    })
}

fn namespaces(process: &OsString) -> PathBuf {
    Path::new("/proc").join(process).join("ns")
}

fn join(directory: &Path, name: &str, kind: CloneFlags) -> Result<(), String> {
    let file = fs::File::open(directory.join(name)).map_err(|error| error.to_string())?;
    setns(file.file(), kind).map_err(because(format!("join the container's {name} namespace")))
}
