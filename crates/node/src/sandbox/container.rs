//! `__container` and `__init`: from the supervisor to a container's first process.

use super::blueprint::{Blueprint, StepLine, StepReport};
use super::namespaces::join_pod;
use super::{INIT, because, next_stage, program, root};
use nix::sched::{CloneFlags, unshare};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// `__container NAMESPACES [GROUP]`: enters a control group, joins the namespaces of a pod, spawns the first process of a
/// PID namespace, and ends.
pub(super) fn run_container_stage(
    pod: Option<&OsString>,
    group: Option<&OsString>,
) -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        // Before there is a namespace of groups, at whose top the container's is to be.
        let entered = group.map_or(Ok(()), |entrance| fs_err::write(Path::new(entrance), "0"));
        join_pod(pod.and_then(|pod| pod.to_str()).ok_or("a container needs a pod")?)?;
        let kinds =
            CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWCGROUP;
        unshare(kinds).map_err(because("take a container's namespaces"))?;
        // The next step has the same standard input; this one says no more on it.
        let init =
            next_stage(INIT).spawn().map_err(because("start a container's first process"))?;
        line.report(&StepReport::Spawned(
            i32::try_from(init.id()).map_err(|error| error.to_string())?,
        ))?;
        if let Err(error) = entered {
            let said =
                format!("limits are not enforced: a control group cannot be entered: {error}");
            line.report(&StepReport::Remark(said))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// `__init`: builds the root, takes a user namespace, and becomes the program.
pub(super) fn run_container_init() -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        let blueprint: Blueprint = line.expect_order()?;
        let _ = nix::unistd::setsid();
        // The node's own /proc, from before the root is another: the kernel's settings of a user namespace are
        // written there, and the container's /proc has them for reading only.
        let kernel = root::open_directory(Path::new("/proc"))?;
        root::build_root(&blueprint, line)?;
        unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(because("take a user namespace for the program"))?;
        line.report(&StepReport::Waits)?;
        line.expect_order::<()>()?;
        program::forbid_user_namespaces(&kernel)?;
        drop(kernel);
        Err(program::become_program(&blueprint.process, blueprint.ids))
    })
}
