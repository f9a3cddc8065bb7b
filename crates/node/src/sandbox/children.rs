//! Processes below the supervisor, which is PID 1: its own children, and those it adopts as they lose their parent.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, WaitStatus, wait};
use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Code(i32),
    Signal(i32),
}

/// Told once, when the process was reaped: then its number may stand for another.
pub(super) type EndingReceiver = oneshot::Receiver<Ending>;

/// Everything that is spawned and reaped. Reaping, spawning and signalling exclude each other, so that a number
/// always means the process that it was learned from.
#[derive(Clone, Debug)]
pub(super) struct Children {
    shared: Arc<(Mutex<ChildTable>, Condvar)>,
}

#[derive(Debug, Default)]
struct ChildTable {
    spawned: u64,
    waiting: HashMap<i32, oneshot::Sender<Ending>>,
}

impl Children {
    /// Begins to reap, on a thread of its own.
    pub(super) fn watch() -> io::Result<Self> {
        let children = Self { shared: Arc::default() };
        let reaper = children.clone();
        std::thread::Builder::new().name("reaper".to_owned()).spawn(move || reaper.reap_all())?;
        Ok(children)
    }

    fn table(&self) -> MutexGuard<'_, ChildTable> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<(Child, i32, EndingReceiver)> {
        let mut table = self.table();
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let (tell, ending) = oneshot::channel();
        table.waiting.insert(pid, tell);
        table.spawned = table.spawned.wrapping_add(1);
        self.shared.1.notify_all();
        Ok((child, pid, ending))
    }

    /// Takes on a process that a child has spawned, which ends when it has told of it.
    pub(super) fn adopt(&self, pid: i32) -> io::Result<EndingReceiver> {
        let mut table = self.table();
        // A process that has ended is there until it is reaped, which this lock prevents.
        nix::sys::signal::kill(Pid::from_raw(pid), None)?;
        let (tell, ending) = oneshot::channel();
        table.waiting.insert(pid, tell);
        Ok(ending)
    }

    /// Sends a signal to a process that was not reaped yet; otherwise there is nothing to signal.
    pub(super) fn signal(&self, pid: i32, signal: i32) -> Result<(), String> {
        let signal = rustix::process::Signal::from_named_raw(signal)
            .ok_or_else(|| format!("{signal} is no signal that can be sent"))?;
        let table = self.table();
        let Some(target) =
            rustix::process::Pid::from_raw(pid).filter(|_| table.waiting.contains_key(&pid))
        else {
            return Ok(());
        };
        rustix::process::kill_process(target, signal)
            .map_err(|error| format!("cannot signal it: {error}"))
    }

    /// Kills a process that may have ended.
    pub(super) fn kill(&self, pid: i32) {
        let _ = self.signal(pid, nix::libc::SIGKILL);
    }

    /// Kills a process and the others of its group, which it leads.
    pub(super) fn kill_group(&self, pid: i32) {
        let table = self.table();
        if table.waiting.contains_key(&pid) {
            let _ = nix::sys::signal::killpg(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
            let _ = nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }

    fn reap_all(&self) {
        loop {
            let spawned = self.table().spawned;
            match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
                Err(Errno::ECHILD) => {
                    let mut table = self.table();
                    while table.spawned == spawned {
                        table = self.shared.1.wait(table).unwrap_or_else(PoisonError::into_inner);
                    }
                }
                // Other errors are signals that have no name there; the child is to be reaped all the same.
                _ => self.reap_ended(),
            }
        }
    }

    fn reap_ended(&self) {
        let mut table = self.table();
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if let (Some(tell), Some(ending)) =
                (table.waiting.remove(&pid.as_raw_nonzero().get()), read_ending(status))
            {
                let _ = tell.send(ending);
            }
        }
    }
}

fn read_ending(status: WaitStatus) -> Option<Ending> {
    status
        .exit_status()
        .map(Ending::Code)
        .or_else(|| status.terminating_signal().map(Ending::Signal))
}
