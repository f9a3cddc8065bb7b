//! The node as apron sees it: a process that is asked, and tells.

use crate::protocol::{
    ContainerName, ContainerStart, ExecResult, Message, NodeConfig, Order, PodSandbox, ProbeResult,
    ProbeTarget, Request, ServiceEntry, UsageSample, VolumeFile,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Exits and notices, in the order they happened. It ends when the node does.
pub type NodeMessages = mpsc::UnboundedReceiver<Message>;

/// What a node is started with.
#[derive(Clone, Debug)]
pub struct NodeSpawn {
    /// Its first order.
    pub config: NodeConfig,
}

/// Why the node did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// It could not be started.
    #[error("the node cannot be started: {0}")]
    Start(String),
    /// It tried, or refused to.
    #[error("{0}")]
    Refused(String),
    /// It has ended, and so has everything in it.
    #[error("the node has ended{0}")]
    Ended(String),
}

/// A running node. The last clone that is dropped ends it.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    shared: Arc<NodeLink>,
}

#[derive(Debug)]
struct NodeLink {
    requests: mpsc::UnboundedSender<Request>,
    waiting: Mutex<PendingAnswers>,
    pid: u32,
    /// The task that has the node's standard input.
    writer: AbortHandle,
    /// Closed when the process is gone.
    lives: watch::Receiver<()>,
}

#[derive(Debug, Default)]
struct PendingAnswers {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    ended: Option<String>,
}

impl NodeLink {
    fn waiting(&self) -> MutexGuard<'_, PendingAnswers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeHandle {
    /// Starts `program`, which must call [`super::run_hidden_verb`] first, as a node, and configures it.
    pub async fn spawn(
        program: &Path,
        start: NodeSpawn,
    ) -> Result<(Self, NodeMessages), NodeError> {
        let (handle, messages) = Self::start_process(program, &start.config.state)?;
        let messages = handle.configure(start.config, messages).await?;
        Ok((handle, messages))
    }

    /// Starts the process of a node, which does nothing before it is configured.
    pub fn start_process(program: &Path, state: &Path) -> Result<(Self, NodeMessages), NodeError> {
        let mut child =
            spawn_process(program, state).map_err(|error| NodeError::Start(error.to_string()))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(NodeError::Start("it has no pipes".to_owned()));
        };
        let (requests, to_send) = mpsc::unbounded_channel();
        let (tell, messages) = mpsc::unbounded_channel();
        let (life, lives) = watch::channel(());
        let shared = Arc::new(NodeLink {
            requests,
            waiting: Mutex::new(PendingAnswers::default()),
            pid: child.id().unwrap_or_default(),
            writer: tokio::spawn(write_requests(to_send, input)).abort_handle(),
            lives,
        });
        let complaints = tokio::spawn(pass_complaints(errors, tell.clone()));
        let reader = read_messages(output, tell, Arc::downgrade(&shared), child, complaints);
        tokio::spawn(async move {
            reader.await;
            drop(life);
        });
        Ok((Self { shared }, messages))
    }

    /// Tells a node that was started what it is; it runs pods from then on.
    pub async fn configure(
        &self,
        config: NodeConfig,
        messages: NodeMessages,
    ) -> Result<NodeMessages, NodeError> {
        match self.ask(Order::Configure(config)).await {
            Ok(_) => Ok(messages),
            Err(error) => Err(NodeError::Start(first_complaint(messages, error).await)),
        }
    }

    /// The process that apron spawned.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Ends the node, whatever else has a handle of it, and waits for the end of its process, so long at most. Says
    /// whether it ended.
    pub async fn end_and_wait(&self, patience: Duration) -> bool {
        // Its standard input is closed thereby.
        self.shared.writer.abort();
        let mut lives = self.shared.lives.clone();
        let ended = async { while lives.changed().await.is_ok() {} };
        tokio::time::timeout(patience, ended).await.is_ok()
    }

    /// Asks for something, and waits for the answer.
    pub async fn ask(&self, order: Order) -> Result<Value, NodeError> {
        let answer = {
            let mut waiting = self.shared.waiting();
            if let Some(why) = &waiting.ended {
                return Err(NodeError::Ended(why.clone()));
            }
            waiting.last = waiting.last.wrapping_add(1);
            let id = waiting.last;
            let (tell, answer) = oneshot::channel();
            waiting.answers.insert(id, tell);
            // A node that has ended is noticed by its reader, which ends all waiting.
            let _ = self.shared.requests.send(Request { id, order });
            answer
        };
        match answer.await {
            Ok(result) => result.map_err(NodeError::Refused),
            Err(_) => {
                Err(NodeError::Ended(self.shared.waiting().ended.clone().unwrap_or_default()))
            }
        }
    }

    /// Makes a pod's namespaces and its address.
    pub async fn create_pod(&self, pod: PodSandbox) -> Result<(), NodeError> {
        self.ask(Order::CreatePod(pod)).await.map(drop)
    }

    /// Kills what is left in a pod and removes it.
    pub async fn remove_pod(&self, pod: &str) -> Result<(), NodeError> {
        self.ask(Order::RemovePod { pod: pod.to_owned() }).await.map(drop)
    }

    /// Makes a volume be these files.
    pub async fn write_volume(
        &self,
        pod: &str,
        volume: &str,
        group: Option<u32>,
        files: Vec<VolumeFile>,
    ) -> Result<(), NodeError> {
        let (pod, volume) = (pod.to_owned(), volume.to_owned());
        self.ask(Order::WriteVolume { pod, volume, group, files }).await.map(drop)
    }

    /// Starts a container. What is refused is said as container runtimes say it.
    pub async fn start_container(&self, start: ContainerStart) -> Result<(), NodeError> {
        self.ask(Order::StartContainer(Box::new(start))).await.map(drop)
    }

    /// Sends a signal to the first process of a container; one that has ended takes none, which is no error.
    pub async fn send_signal(
        &self,
        container: &ContainerName,
        signal: i32,
    ) -> Result<(), NodeError> {
        self.ask(Order::Signal { container: container.clone(), signal }).await.map(drop)
    }

    /// Runs a program in a container.
    pub async fn exec(
        &self,
        container: &ContainerName,
        arguments: Vec<String>,
        timeout: Duration,
    ) -> Result<ExecResult, NodeError> {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let order = Order::Exec { container: container.clone(), arguments, timeout_ms };
        read_answer(self.ask(order).await?)
    }

    /// Tries a network probe.
    pub async fn probe(
        &self,
        target: ProbeTarget,
        timeout: Duration,
    ) -> Result<ProbeResult, NodeError> {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        read_answer(self.ask(Order::Probe { target, timeout_ms }).await?)
    }

    /// Replaces what Services and names lead to.
    pub async fn set_services(&self, services: Vec<ServiceEntry>) -> Result<(), NodeError> {
        self.ask(Order::SetServices(services)).await.map(drop)
    }

    /// Counts what was used so far.
    pub async fn count_usage(&self) -> Result<UsageSample, NodeError> {
        read_answer(self.ask(Order::CountUsage).await?)
    }
}

fn read_answer<T: DeserializeOwned>(answer: Value) -> Result<T, NodeError> {
    serde_json::from_value(answer)
        .map_err(|error| NodeError::Refused(format!("the node's answer is odd: {error}")))
}

/// Nothing of apron's environment is a node's business, but for the allocator: a thread of its own would be in the
/// way of a user namespace.
fn spawn_process(program: &Path, state: &Path) -> std::io::Result<Child> {
    Command::new(program)
        .arg(super::NODE)
        .arg(state)
        .env_clear()
        .env(super::ALLOCATOR.0, super::ALLOCATOR.1)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Ends when the last handle is dropped; its end closes the node's standard input, and thereby ends the node.
async fn write_requests(mut requests: mpsc::UnboundedReceiver<Request>, mut input: ChildStdin) {
    while let Some(request) = requests.recv().await {
        let Ok(mut line) = serde_json::to_vec(&request) else { continue };
        line.push(b'\n');
        if input.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn pass_complaints(errors: impl AsyncRead + Unpin, tell: mpsc::UnboundedSender<Message>) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let _ = tell.send(Message::Notice { text });
    }
}

async fn read_messages(
    output: impl AsyncRead + Unpin,
    tell: mpsc::UnboundedSender<Message>,
    shared: std::sync::Weak<NodeLink>,
    mut child: Child,
    complaints: tokio::task::JoinHandle<()>,
) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(Message::Answer { id, result }) => {
                let answer =
                    shared.upgrade().and_then(|shared| shared.waiting().answers.remove(&id));
                if let Some(answer) = answer {
                    let _ = answer.send(result);
                }
            }
            Ok(message) => drop(tell.send(message)),
            Err(error) => {
                let _ = tell.send(Message::Notice {
                    text: format!("the node says something odd: {error}"),
                });
            }
        }
    }
    let how = child.wait().await.map(|status| format!(" ({status})")).unwrap_or_default();
    let _ = complaints.await;
    if let Some(shared) = shared.upgrade() {
        let mut waiting = shared.waiting();
        waiting.ended = Some(how);
        waiting.answers.clear();
    }
}

/// What the node said before it ended, which explains more than that it did.
async fn first_complaint(mut messages: NodeMessages, error: NodeError) -> String {
    match error {
        NodeError::Ended(how) => match messages.recv().await {
            Some(Message::Notice { text }) => text,
            _ => format!("it ended{how}"),
        },
        NodeError::Refused(why) | NodeError::Start(why) => why,
    }
}
