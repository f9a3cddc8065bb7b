//! Whether pods can be run here: it is tried.

use super::{INIT, PROBE, because, enter, next_stage};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use tokio::process::Command;

/// Whether pods can be run here by this user; if not, why, and what would change it, in one sentence.
/// `program` must call [`super::run_hidden_verb`] first.
pub async fn probe_support(program: &Path) -> Result<(), String> {
    let output = Command::new(program)
        .args([super::NODE, PROBE])
        .env_clear()
        .env(super::ALLOCATOR.0, super::ALLOCATOR.1)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(because(format!("run {}", program.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    match said.lines().next() {
        Some(sentence) => Err(sentence.to_owned()),
        None => Err(format!("the node ended with {}", output.status)),
    }
}

/// `__node --probe`: namespaces, then a process in them that mounts what containers need.
pub(super) fn run_probe() -> Result<ExitCode, String> {
    enter::enter_namespaces()?;
    let status =
        next_stage(INIT).arg(PROBE).status().map_err(because("start a process in namespaces"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// In there.
pub(super) fn probe_mounts() -> Result<ExitCode, String> {
    super::supervisor::mount_proc()?;
    unshare(CloneFlags::CLONE_NEWUSER).map_err(because("take a user namespace for a program"))?;
    Ok(ExitCode::SUCCESS)
}
