//! A node that is only played: a machine with programs that run for as long as they say, and a kubelet
//! that is an ordinary client of the API server.
//!
//! ```text
//!   API server ◄── gate ◄── kubelet ──► machine: which programs run, which are ready, which end
//!      Pods        faults    may die      goes on, and says when two run that must not
//! ```
//!
//! The kubelet may die at every call; the machine goes on, as programs do whose kubelet is gone, unless
//! it loses power. Whatever Pods say, the machine knows what runs: laws are about that
//! ([`machine::NodeMachine`]).

mod kubelet;
pub mod machine;
mod status;

use crate::fault::{Fault, Schedule};
use crate::gate::{Gate, Probe};
use crate::place::Place;
use crate::turnstile::Turnstile;
use kubelet::PlayedKubelet;
use machine::SharedMachine;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// What the node is called.
pub(crate) const NODE: &str = "apron";
/// A kubelet that died is started again after this long.
const REVIVAL: Duration = Duration::from_secs(5);
/// A machine that lost its power takes longer.
const BOOT: Duration = Duration::from_secs(60);

/// A kubelet at work on a machine.
pub(crate) struct NodeLife {
    gate: Gate,
    /// The gate of the first life, which faults happen at.
    first: Gate,
    task: JoinHandle<()>,
    machine: SharedMachine,
    turnstile: Turnstile,
}

impl NodeLife {
    /// Starts a kubelet.
    pub(crate) fn begin(
        place: &Place,
        turnstile: &Turnstile,
        machine: SharedMachine,
        schedule: Option<Schedule>,
    ) -> Self {
        let gate = open_gate(place, turnstile, &machine, schedule);
        let task = tokio::spawn(begin_kubelet(&gate, &machine, Duration::ZERO));
        let first = gate.clone();
        Self { gate, first, task, machine, turnstile: turnstile.clone() }
    }

    /// The way of this life to the API server.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The way of the first life.
    pub(crate) fn first_gate(&self) -> &Gate {
        &self.first
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// Ends the kubelet, if it has not ended, and starts another that meets no faults.
    pub(crate) fn restart_kubelet(&mut self, place: &Place) {
        self.end();
        let pause = if self.machine.is_off() { BOOT } else { REVIVAL };
        self.gate = open_gate(place, &self.turnstile, &self.machine, None);
        self.task = tokio::spawn(begin_kubelet(&self.gate, &self.machine, pause));
    }

    /// Ends the kubelet as a kill does; programs go on.
    pub(crate) fn end(&self) {
        self.gate.shut();
        self.task.abort();
    }
}

fn open_gate(
    place: &Place,
    turnstile: &Turnstile,
    machine: &SharedMachine,
    schedule: Option<Schedule>,
) -> Gate {
    let log = place.log.clone();
    let probe: Probe = Arc::new(move || (log.version(), 0));
    let harmed = machine.clone();
    Gate::new(place.server.clone(), turnstile, schedule, None, probe).of_node(Arc::new(
        move |fault| match fault {
            Fault::PowerLoss => harmed.lose_power(),
            Fault::Exit => harmed.crash_program(),
            _ => {}
        },
    ))
}

fn begin_kubelet(
    gate: &Gate,
    machine: &SharedMachine,
    pause: Duration,
) -> impl Future<Output = ()> + use<> {
    let client = kube::Client::new(gate.clone(), "default");
    let kubelet = PlayedKubelet::new(client, machine.clone());
    async move {
        tokio::time::sleep(pause).await;
        kubelet.run_pods().await;
    }
}
