//! The node of this machine: started, listened to, and started again if it ends.

use super::worker::PodNotice;
use super::{NodeVoice, Station};
use crate::protocol::Message;
use crate::sandbox::{NodeError, NodeHandle, NodeMessages};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The pause before a node that ended is started again; twice as long each time, up to the longest. Until then nothing
/// runs, so that the first is a moment.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long the end of all waits for the node: it gives its programs ten seconds to go when they were killed.
const END_PATIENCE: Duration = Duration::from_secs(15);
/// A node that ran for so long starts again with the shortest pause.
const LONG: Duration = PAUSE_MAX;

/// The present node, and which one it is.
#[derive(Default)]
pub(crate) struct Machine {
    present: Mutex<(u64, Option<NodeHandle>)>,
    /// The node whose process was started last: it writes before it is the present one.
    started: Mutex<Option<NodeHandle>>,
}

impl Machine {
    /// The present node and its number, which no other node has.
    pub(crate) fn present(&self) -> Option<(u64, NodeHandle)> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.1.clone().map(|node| (present.0, node))
    }

    /// Lets go of the node, which thereby ends.
    pub(crate) fn end(&self) {
        drop(self.take_node());
    }

    /// Ends the node, and waits until nothing of it runs or writes any more.
    pub(crate) async fn end_and_wait(&self) {
        let present = self.take_node();
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        for node in present.into_iter().chain(started) {
            node.end_and_wait(END_PATIENCE).await;
        }
    }

    fn note_started(&self, node: Option<NodeHandle>) {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = node;
    }

    fn take_node(&self) -> Option<NodeHandle> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }

    fn set_node(&self, node: NodeHandle) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        *present = (present.0.wrapping_add(1), Some(node));
    }
}

/// Starts the node whenever there is none.
pub(crate) async fn keep_node(station: &Arc<Station>, voice: &NodeVoice) {
    let mut pause = PAUSE;
    loop {
        let began = tokio::time::Instant::now();
        match start_node(station).await {
            Ok((node, messages)) => {
                station.machine.set_node(node);
                station.machine.note_started(None);
                station.services.note_change();
                station.wake_all();
                pass_messages(station, messages, voice).await;
                station.machine.end();
                voice("the node ended: it is started again, and all pods in it");
                station.wake_all();
            }
            Err(error) => voice(&error.to_string()),
        }
        if began.elapsed() > LONG {
            pause = PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_MAX);
    }
}

/// Starts the node's process and configures it; if that is given up on the way, its end can be waited for.
async fn start_node(station: &Station) -> Result<(NodeHandle, NodeMessages), NodeError> {
    let config = station.settings.config.clone();
    let (node, messages) = NodeHandle::start_process(&station.settings.program, &config.state)?;
    station.machine.note_started(Some(node.clone()));
    let messages = node.configure(config, messages).await?;
    Ok((node, messages))
}

/// Passes on what a node tells, until it ends.
async fn pass_messages(station: &Station, mut messages: NodeMessages, voice: &NodeVoice) {
    while let Some(message) = messages.recv().await {
        match message {
            Message::Exited { container, code, signal, out_of_memory, message } => {
                let uid = container.pod.clone();
                let notice = PodNotice::Exited { container, code, signal, out_of_memory, message };
                station.notify_pod(&uid, notice);
            }
            Message::Notice { text } => voice(&text),
            Message::Answer { .. } => {}
        }
    }
}
