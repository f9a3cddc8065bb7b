//! Containers asked how they are, each probe in a task of its own, and hooks, which are asked once.

use super::Station;
use super::worker::PodNotice;
use crate::pod::probing::{ProbeAction, ProbeKind, ProbeSchedule, plan_probe};
use crate::protocol::ContainerName;
use crate::sandbox::NodeHandle;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Probe};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A probe of one run of a container.
pub(crate) struct ProbeTask {
    pub(crate) station: Arc<Station>,
    pub(crate) name: ContainerName,
    pub(crate) container: Container,
    pub(crate) address: Ipv4Addr,
    pub(crate) kind: ProbeKind,
    pub(crate) probe: Probe,
    /// When the container was started.
    pub(crate) since: Instant,
    pub(crate) tell: mpsc::UnboundedSender<PodNotice>,
}

impl ProbeTask {
    /// Asks until the task is ended.
    pub(crate) async fn run(self) {
        let schedule = ProbeSchedule::of_probe(&self.probe);
        tokio::time::sleep_until(self.since + schedule.initial_delay).await;
        loop {
            let next = Instant::now() + schedule.period;
            if let Some((_, node)) = self.station.machine.present() {
                let failure = self.ask_once(&node, schedule.timeout).await;
                let container = self.name.clone();
                let notice = PodNotice::Probed { container, kind: self.kind, failure };
                if self.tell.send(notice).is_err() {
                    return;
                }
            }
            tokio::time::sleep_until(next).await;
        }
    }

    async fn ask_once(&self, node: &NodeHandle, timeout: Duration) -> Option<String> {
        match plan_probe(&self.probe, &self.container, self.address) {
            Ok(action) => perform(node, &self.name, action, timeout).await.err(),
            Err(why) => Some(why),
        }
    }
}

async fn perform(
    node: &NodeHandle,
    name: &ContainerName,
    action: ProbeAction,
    timeout: Duration,
) -> Result<(), String> {
    match action {
        ProbeAction::Network(target) => {
            let told = node.probe(target, timeout).await.map_err(|error| error.to_string())?;
            told.failure.map_or(Ok(()), Err)
        }
        ProbeAction::Program(arguments) => {
            let told = node.exec(name, arguments, timeout).await;
            let told = told.map_err(|error| error.to_string())?;
            match told.code {
                Some(0) => Ok(()),
                Some(_) => Err(told.output),
                None => Err(format!("command timed out after {}s", timeout.as_secs())),
            }
        }
    }
}

/// Does what a hook says, within this time; the error is why it failed.
pub(crate) async fn perform_hook(
    node: &NodeHandle,
    name: &ContainerName,
    container: &Container,
    address: Ipv4Addr,
    hook: &LifecycleHandler,
    timeout: Duration,
) -> Result<(), String> {
    if let Some(sleep) = &hook.sleep {
        let wished = Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or_default());
        tokio::time::sleep(wished.min(timeout)).await;
        return Ok(());
    }
    let probe = Probe {
        exec: hook.exec.clone(),
        http_get: hook.http_get.clone(),
        tcp_socket: hook.tcp_socket.clone(),
        ..Probe::default()
    };
    perform(node, name, plan_probe(&probe, container, address)?, timeout).await
}
