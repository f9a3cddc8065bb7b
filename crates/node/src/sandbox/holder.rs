//! `__pod`: holds the namespaces that the containers of a pod share, until its supervisor lets go.

use super::because;
use super::blueprint::{HolderOrder, StepLine, StepReport};
use crate::gateway;
use fs_err as fs;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;
use std::process::ExitCode;

/// Takes the namespaces, configures the network when it is attached, and stays.
pub(super) fn run_pod_holder() -> Result<ExitCode, String> {
    StepLine::from_standard_input()?.run_step(|line| {
        while let Some(order) = line.read_order()? {
            match order {
                HolderOrder::Hold { hostname } => hold_namespaces(&hostname)?,
                HolderOrder::Connect { address, gateway } => {
                    gateway::configure_pod_network(address, gateway)
                        .map_err(|error| error.to_string())?;
                }
            }
            line.report(&StepReport::Waits)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn hold_namespaces(hostname: &str) -> Result<(), String> {
    let kinds = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC;
    unshare(kinds).map_err(because("take a pod's namespaces"))?;
    sethostname(hostname).map_err(because(format!("name the pod {hostname}")))?;
    // Programs have no capabilities, and may serve on any port of their own network.
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        .map_err(because("open low ports to the pod"))
}
