//! `__supervise`: PID 1 of the node. It does what it is asked, and ends with its standard input.

use super::children::Children;
use super::enter;
use super::groups::{ContainerGroup, ControlGroups};
use super::ids::{ContainerIds, is_initial_user_namespace};
use super::mounts::{TAME, mount_bind, mount_new, restrict_mount};
use super::pod::{self, PodRecord};
use super::usage::count_usage;
use super::{because, stage_of};
use crate::gateway::Gateway;
use crate::protocol::{
    ContainerLimits, ContainerName, Message, NodeConfig, Order, PodSandbox, Request,
};
use fs_err as fs;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, watch};

/// How long the end waits for what was killed.
const END_WAIT: Duration = Duration::from_secs(10);

/// Everything there is in a node.
pub(super) struct Supervisor {
    pub(super) config: NodeConfig,
    pub(super) children: Children,
    pub(super) groups: ControlGroups,
    pub(super) gateway: Gateway,
    pub(super) ids: ContainerIds,
    pub(super) overlay_of_user: bool,
    tell: mpsc::UnboundedSender<Message>,
    network: tokio::sync::Mutex<()>,
    noticed: Mutex<HashSet<String>>,
    pods: Mutex<HashMap<String, PodEntry>>,
}

enum PodEntry {
    /// It is being made; the channel is closed when it is, or could not be.
    Begins(watch::Receiver<()>),
    Exists(Arc<PodRecord>),
}

/// Runs until standard input ends, or the process that waits for this one.
pub(super) fn run_supervisor(
    state: Option<&OsString>,
    group: Option<&OsString>,
) -> Result<ExitCode, String> {
    // Its end kills all it can see, which has to be the node's alone.
    if nix::unistd::getpid() != Pid::from_raw(1) {
        return Err("this verb is for the first process of a node".to_owned());
    }
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(because("end with the node"))?;
    let state = Path::new(state.ok_or("the node has no directory")?);
    let group = group.and_then(|told| serde_json::from_str(told.to_str()?).ok());
    let groups = ControlGroups::take_over(group.ok_or("the node has no word on its group")?);
    let lock = Flock::lock(enter::open_lock(state)?, FlockArg::LockSharedNonblock)
        .map_err(|(_, error)| format!("cannot lock {}: {error}", state.display()))?;
    mount_proc()?;
    let _ = nix::unistd::sethostname("apron");
    let children = Children::watch().map_err(because("watch processes"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(because("start the node"))?;
    let outcome = runtime.block_on(serve(children, groups));
    runtime.shutdown_background();
    end_everything(state);
    drop(lock);
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The processes of this PID namespace, and no others.
pub(super) fn mount_proc() -> Result<(), String> {
    let flags = TAME | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).map_err(|error| match error {
        Errno::EPERM => "a new /proc cannot be mounted, because parts of this machine's are hidden, as container engines \
                         do it; run the container with '--security-opt systempaths=unconfined' or '--privileged'"
            .to_owned(),
        other => format!("cannot mount /proc: {other}"),
    })
}

async fn serve(children: Children, groups: ControlGroups) -> Result<(), String> {
    let (tell, mut messages) = mpsc::unbounded_channel::<Message>();
    let (input, mut output) = open_pipes().map_err(because("talk to apron"))?;
    let mut requests = BufReader::new(input).lines();
    let writer = tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            let Ok(mut line) = serde_json::to_vec(&message) else { continue };
            line.push(b'\n');
            if output.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let Some(Request { id, order: Order::Configure(config) }) = next_request(&mut requests).await?
    else {
        return Ok(());
    };
    let supervisor = match Supervisor::configure(config, (children, groups), tell.clone()).await {
        Ok(supervisor) => Arc::new(supervisor),
        Err(why) => {
            let _ = tell.send(Message::Answer { id, result: Err(why) });
            drop(tell);
            let _ = writer.await;
            return Ok(());
        }
    };
    supervisor.tell(Message::Answer { id, result: Ok(Value::Null) });
    while let Some(Request { id, order }) = next_request(&mut requests).await? {
        let supervisor = supervisor.clone();
        tokio::spawn(async move {
            let result = supervisor.carry_out(order).await;
            supervisor.tell(Message::Answer { id, result });
        });
    }
    Ok(())
}

/// Standard input and output, which apron made pipes. Unlike `dup`, cloning keeps them from the programs that are executed:
/// a program with a pipe of apron could read secrets of all pods, and speak for them.
fn open_pipes() -> std::io::Result<(Receiver, Sender)> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok((Receiver::from_owned_fd(input)?, Sender::from_owned_fd(output)?))
}

async fn next_request(
    requests: &mut Lines<BufReader<Receiver>>,
) -> Result<Option<Request>, String> {
    match requests.next_line().await {
        Ok(Some(line)) => serde_json::from_str(&line).map(Some).map_err(because("read a request")),
        // apron has gone, in order or not.
        Ok(None) | Err(_) => Ok(None),
    }
}

/// Kills everything, and removes what it wrote. What is left after a sudden end is removed by the next start.
fn end_everything(state: &Path) {
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    let deadline = Instant::now().checked_add(END_WAIT);
    while has_other_processes() && deadline.is_some_and(|deadline| Instant::now() < deadline) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = pod::remove_directory(&state.join("pods"));
}

fn has_other_processes() -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let mut processes =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.any(|pid| pid != 1)
}

impl Supervisor {
    async fn configure(
        config: NodeConfig,
        (children, groups): (Children, ControlGroups),
        tell: mpsc::UnboundedSender<Message>,
    ) -> Result<Self, String> {
        pod::remove_directory(&config.state.join("pods"))?;
        let memory = config.state.join("memory");
        fs::create_dir_all(&memory).map_err(|error| error.to_string())?;
        mount_new("tmpfs", &memory, TAME, "mode=0711")?;
        protect_program(&memory)?;
        let gateway = Gateway::start(&config).await.map_err(|error| error.to_string())?;
        let ids = ContainerIds::detect().map_err(|error| error.to_string())?;
        let overlay_of_user = !is_initial_user_namespace().map_err(|error| error.to_string())?;
        let (network, noticed, pods) =
            (tokio::sync::Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self {
            config,
            children,
            groups,
            gateway,
            ids,
            overlay_of_user,
            tell,
            network,
            noticed,
            pods,
        })
    }

    /// One pod at a time: the kernel lists links for one caller only.
    pub(super) async fn attach_pod(&self, sandbox: &PodSandbox, holder: i32) -> Result<(), String> {
        let _turn = self.network.lock().await;
        self.gateway.attach_pod(sandbox, holder).await.map_err(|error| error.to_string())
    }

    pub(super) async fn detach_pod(&self, pod: &str) -> Result<(), String> {
        let _turn = self.network.lock().await;
        self.gateway.detach_pod(pod).await.map_err(|error| error.to_string())
    }

    /// A step of a pod, from a file that cannot be written to.
    pub(super) fn stage(&self, verb: &str) -> Command {
        stage_of(&self.config.state.join("memory").join(PROGRAM), verb)
    }

    /// Passes a message on to apron.
    pub(super) fn tell(&self, message: Message) {
        let _ = self.tell.send(message);
    }

    /// Says something that is true for many containers once.
    pub(super) fn notice_once(&self, text: String) {
        if self.noticed.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
            self.tell(Message::Notice { text });
        }
    }

    /// The group that holds a run of a container to its limits. What no group holds it to is said once.
    pub(super) fn make_group(
        &self,
        container: &ContainerName,
        limits: &ContainerLimits,
    ) -> Option<ContainerGroup> {
        if let Some(lack) = self.groups.explain_lack(limits) {
            self.notice_once(lack);
        }
        let made = self.groups.make_group(container, limits);
        made.unwrap_or_else(|why| {
            self.notice_once(format!(
                "limits are not enforced: a control group cannot be made: {why}"
            ));
            None
        })
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<String, PodEntry>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pod(&self, pod: &str) -> Result<Arc<PodRecord>, String> {
        match self.pods().get(pod) {
            Some(PodEntry::Exists(record)) => Ok(record.clone()),
            Some(PodEntry::Begins(_)) | None => Err(format!("there is no pod {pod}")),
        }
    }

    /// All containers that run, and their first processes.
    fn list_running(&self) -> Vec<(ContainerName, i32)> {
        let pods = self.pods();
        let existing = pods.values().filter_map(|entry| match entry {
            PodEntry::Exists(record) => Some(record.list_running()),
            PodEntry::Begins(_) => None,
        });
        existing.flatten().collect()
    }

    async fn carry_out(self: &Arc<Self>, order: Order) -> Result<Value, String> {
        match order {
            Order::Configure(_) => return Err("the node is configured already".to_owned()),
            Order::CreatePod(sandbox) => {
                // Closed at the end of this, when the table says what became of it.
                let _begins = self.claim_pod(&sandbox.pod)?;
                let created = PodRecord::create(self, &sandbox).await;
                match created {
                    Ok(record) => {
                        drop(self.pods().insert(sandbox.pod, PodEntry::Exists(Arc::new(record))));
                    }
                    Err(why) => {
                        self.pods().remove(&sandbox.pod);
                        return Err(why);
                    }
                }
            }
            Order::RemovePod { pod } => self.remove_pod(&pod).await?,
            Order::WriteVolume { pod, volume, group, files } => {
                self.pod(&pod)?.write_volume(self, &volume, group, files).await?;
            }
            Order::StartContainer(start) => {
                self.pod(&start.container.pod)?.start(self, *start).await?;
            }
            Order::Signal { container, signal } => {
                if let Ok(record) = self.pod(&container.pod) {
                    record.signal(self, &container, signal)?;
                }
            }
            Order::Exec { container, arguments, timeout_ms } => {
                let limit = Duration::from_millis(timeout_ms.min(MAX_WAIT_MS));
                let result =
                    self.pod(&container.pod)?.exec(self, &container, arguments, limit).await?;
                return Ok(json!(result));
            }
            Order::Probe { target, timeout_ms } => {
                let limit = Duration::from_millis(timeout_ms.min(MAX_WAIT_MS));
                return Ok(json!(self.gateway.probe(&target, limit).await));
            }
            Order::SetServices(services) => {
                for text in self.gateway.set_services(services).await {
                    self.tell(Message::Notice { text });
                }
            }
            Order::CountUsage => {
                let running = self.list_running();
                let sample = pod::run_blocking(move || count_usage(running)).await?;
                return Ok(json!(sample));
            }
        }
        Ok(Value::Null)
    }

    /// Removes a pod, one that is being made as soon as it is.
    async fn remove_pod(&self, pod: &str) -> Result<(), String> {
        loop {
            let begins = match self.pods().get(pod) {
                // A creation that died of a defect is not waited for.
                Some(PodEntry::Begins(begins)) if begins.has_changed().is_ok() => {
                    Some(begins.clone())
                }
                _ => None,
            };
            let Some(mut begins) = begins else { break };
            while begins.changed().await.is_ok() {}
        }
        let Ok(record) = self.pod(pod) else { return Ok(()) };
        record.remove(self, pod).await?;
        let mut pods = self.pods();
        // Another removal may have been first, and the pod may be there anew.
        let is_same =
            |entry: &PodEntry| matches!(entry, PodEntry::Exists(now) if Arc::ptr_eq(now, &record));
        if pods.get(pod).is_some_and(is_same) {
            pods.remove(pod);
        }
        Ok(())
    }

    fn claim_pod(&self, pod: &str) -> Result<watch::Sender<()>, String> {
        let mut pods = self.pods();
        if pods.contains_key(pod) {
            return Err(format!("there is a pod {pod} already"));
        }
        let (claim, begins) = watch::channel(());
        pods.insert(pod.to_owned(), PodEntry::Begins(begins));
        Ok(claim)
    }
}

/// The name of this program in the node's memory.
const PROGRAM: &str = "program";

/// Shows the program that all steps are at a place where it can only be read. Without root, containers are the user
/// whose file it is, and a process of theirs could reach it through `/proc/self/exe` before it becomes another.
fn protect_program(memory: &Path) -> Result<(), String> {
    let (running, place) = (Path::new("/proc/self/exe"), memory.join(PROGRAM));
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    // The link leads to a mount of another namespace, its text to the same file, unless that was replaced meanwhile.
    let source = fs::read_link(running).map_err(|error| error.to_string())?;
    let source = if identity(&source) == identity(running) {
        fs::write(&place, "").map_err(|error| error.to_string())?;
        source
    } else {
        fs::copy(running, &place).map_err(|error| error.to_string())?;
        place.clone()
    };
    mount_bind(&source, &place, MsFlags::empty()).map_err(because("protect this program"))?;
    restrict_mount(&place, TAME | MsFlags::MS_RDONLY).map_err(because("protect this program"))
}

/// The longest that anything is waited for: a day.
const MAX_WAIT_MS: u64 = 86_400_000;
