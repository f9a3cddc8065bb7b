//! What the containers of a pod share: `__pod` takes the namespaces, and the supervisor keeps them open when that has
//! ended. So a pod costs no process besides its programs.

use super::because;
use super::blueprint::{PodOrder, StepLine, StepReport};
use crate::gateway;
use fs_err as fs;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::sethostname;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;

/// What a pod's containers share, by the names that `/proc` has for it.
const SHARED: [(&str, CloneFlags); 3] = [
    ("net", CloneFlags::CLONE_NEWNET),
    ("uts", CloneFlags::CLONE_NEWUTS),
    ("ipc", CloneFlags::CLONE_NEWIPC),
];

/// The namespaces of a pod, which last as long as these files are open or a process is in them.
pub(super) struct PodNamespaces {
    files: [fs::File; 3],
}

impl PodNamespaces {
    /// Takes hold of those that a process is in.
    pub(super) fn open(pid: i32) -> Result<Self, String> {
        let open = |at: usize| {
            let path = Path::new("/proc").join(pid.to_string()).join("ns").join(SHARED[at].0);
            fs::File::open(path).map_err(|error| error.to_string())
        };
        Ok(Self { files: [open(0)?, open(1)?, open(2)?] })
    }

    /// What a step of the node that is to join them is told: the files' numbers in the supervisor.
    pub(super) fn describe(&self) -> String {
        self.files.each_ref().map(|file| file.as_raw_fd().to_string()).join(",")
    }
}

/// Joins the namespaces that the supervisor described. It is the first process of the node.
pub(super) fn join_pod(description: &str) -> Result<(), String> {
    let numbers: Vec<u32> = description.split(',').filter_map(|one| one.parse().ok()).collect();
    if numbers.len() != SHARED.len() {
        return Err(format!("{description:?} describes no pod"));
    }
    for ((name, kind), number) in SHARED.into_iter().zip(numbers) {
        let namespace = fs::File::open(format!("/proc/1/fd/{number}"));
        let namespace = namespace.map_err(|error| error.to_string())?;
        setns(namespace.file(), kind)
            .map_err(because(format!("join the pod's {name} namespace")))?;
    }
    Ok(())
}

/// Takes the namespaces, configures the network when it is attached, and stays until its supervisor has them.
pub(super) fn run_pod_stage() -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        while let Some(order) = line.read_order()? {
            match order {
                PodOrder::Take { hostname } => take_namespaces(&hostname)?,
                PodOrder::Connect { address, gateway } => {
                    gateway::configure_pod_network(address, gateway)
                        .map_err(|error| error.to_string())?;
                }
            }
            line.report(&StepReport::Waits)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn take_namespaces(hostname: &str) -> Result<(), String> {
    let kinds = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC;
    unshare(kinds).map_err(because("take a pod's namespaces"))?;
    sethostname(hostname).map_err(because(format!("name the pod {hostname}")))?;
    // Programs have no capabilities, and may serve on any port of their own network.
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        .map_err(because("open low ports to the pod"))
}
