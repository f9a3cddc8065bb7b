//! What apron and its node tell each other: one JSON object a line, requests on the node's standard input,
//! messages on its standard output. The node ends when its standard input does, and everything in it with it.
//!
//! Two Unix sockets in the state directory lead through the wall between the networks, so that neither side
//! needs an address of the other:
//!
//! - `host.sock`, where apron listens: a line `api`, `dns` or `tcp ADDRESS:PORT`, then bytes. The gateway asks
//!   there for the API server, for names outside of the cluster (messages as over TCP, each after its length in two
//!   bytes) and for connections to the outside, which apron makes if its [`Egress`] allows them.
//! - `node.sock`, where the node listens: a line `tcp ADDRESS:PORT`, then bytes. apron reaches pods there.
//!
//! Each side answers with a line `ok` or `error MESSAGE` before bytes are passed on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// A request, and the number its answer carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Unique among requests in flight.
    pub id: u64,
    /// What is asked for.
    pub order: Order,
}

/// What the node is asked to do. Names of pods are their uids.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Order {
    /// The first request, and the only one of its kind.
    Configure(NodeConfig),
    /// Makes a pod's namespaces and its address. Nothing runs in it yet.
    CreatePod(PodSandbox),
    /// Kills what is left in a pod, and removes its namespaces, mounts and writable files. One that is not there is removed.
    RemovePod {
        /// The pod's uid.
        pod: String,
    },
    /// Makes a volume of a pod be these files, in one step for readers. Kept in memory only.
    WriteVolume {
        /// The pod's uid.
        pod: String,
        /// The volume's name.
        volume: String,
        /// Group that owns the files, if the pod asks for one (`fsGroup`).
        group: Option<u32>,
        /// All files of the volume.
        files: Vec<VolumeFile>,
    },
    /// Starts a container in a pod that was created. Answered when its program was executed, or could not be.
    StartContainer(Box<ContainerStart>),
    /// Sends a signal to the first process of a container.
    Signal {
        /// Which container.
        container: ContainerName,
        /// The signal's number.
        signal: i32,
    },
    /// Runs a program in a container and answers with an [`ExecResult`].
    Exec {
        /// Which container.
        container: ContainerName,
        /// Program and arguments.
        arguments: Vec<String>,
        /// Killed after this time.
        timeout_ms: u64,
    },
    /// Tries a network probe from the gateway; answered with a [`ProbeResult`].
    Probe {
        /// What is tried.
        target: ProbeTarget,
        /// Failed after this time.
        timeout_ms: u64,
    },
    /// Replaces what Services and names lead to.
    SetServices(Vec<ServiceEntry>),
    /// Counts what containers and the machine used so far; answered with a [`UsageSample`].
    CountUsage,
}

/// Where the node is, and what its networks are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeConfig {
    /// A directory of this node alone: sockets, and the writable files of containers.
    pub state: PathBuf,
    /// The gateway's address in the pods' network, which has 24 bits (`10.244.0.1`).
    pub gateway: Ipv4Addr,
    /// The network of Services, and its bits (`10.96.0.0/12`).
    pub services: (Ipv4Addr, u8),
    /// Where pods find the API server (`10.96.0.1:443`).
    pub api: SocketAddrV4,
    /// Where pods ask for names (`10.96.0.10`).
    pub dns: Ipv4Addr,
    /// The domain of the cluster (`cluster.local`).
    pub domain: String,
}

/// Where pods may connect to, beside pods, Services and the API server. apron holds to it (`host.sock`), not the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Egress {
    /// Nowhere.
    None,
    /// Public addresses: not loopback, private, link-local (metadata) or multicast ones.
    Public,
    /// Whatever this machine reaches.
    Host,
}

/// A pod before anything runs in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSandbox {
    /// The pod's uid, which names it in all requests.
    pub pod: String,
    /// Its namespace, for names that are looked up without one.
    pub namespace: String,
    /// What its programs call the machine.
    pub hostname: String,
    /// Its address in the pods' network.
    pub address: Ipv4Addr,
    /// More lines of `/etc/hosts`.
    pub hosts: Vec<String>,
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeFile {
    /// Below the volume, without `..`.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Base64.
    pub contents: String,
}

/// One run of a container of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerName {
    /// The pod's uid.
    pub pod: String,
    /// The container's name in the pod.
    pub name: String,
    /// How often it was started before.
    pub attempt: u32,
}

/// A container to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStart {
    /// Which one.
    pub container: ContainerName,
    /// The image's file system, which is never written to.
    pub rootfs: PathBuf,
    /// What is executed in it.
    pub process: ContainerProcess,
    /// What is mounted into it, in this order.
    pub mounts: Vec<ContainerMount>,
    /// Whether the rest of its file system can only be read.
    pub read_only_root: bool,
    /// The directory for its output, in files as the kubelet writes them (`logs`).
    pub logs: PathBuf,
    /// What it may use, as far as this machine can hold it to that.
    pub limits: ContainerLimits,
    /// Where it may say why it ends, if anywhere.
    pub last_words: Option<LastWords>,
}

/// Where a container says why it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastWords {
    /// A file in the container, whose end is told.
    pub path: String,
    /// Whether the end of its log is told if it failed and wrote nothing there.
    pub or_log: bool,
}

/// A program, as it is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProcess {
    /// Program and arguments; a program without `/` is looked for on the `PATH` of `environment`, in the container.
    pub arguments: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Its working directory, made if it is not there.
    pub directory: String,
    /// The user it runs as.
    pub user: ProcessUser,
}

/// Whom a program runs as, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessUser {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its further groups.
    pub groups: Vec<u32>,
}

/// Something mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerMount {
    /// What is seen there.
    pub source: MountSource,
    /// Where, in the container.
    pub target: String,
    /// A path in the source instead of all of it.
    pub sub_path: Option<String>,
    /// Whether it can only be read.
    pub read_only: bool,
}

/// What can be mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MountSource {
    /// Files of [`Order::WriteVolume`].
    Files {
        /// The volume's name.
        volume: String,
    },
    /// A directory that lives as long as the pod.
    Empty {
        /// The volume's name.
        volume: String,
        /// Whether it is in memory.
        in_memory: bool,
        /// The most it holds, if in memory.
        size_max: Option<u64>,
        /// The group that owns what is made in there, if the pod asks for one (`fsGroup`).
        group: Option<u32>,
    },
    /// A path of this machine; apron asks for it only if a user allowed that.
    Host {
        /// The path.
        path: PathBuf,
    },
}

/// What a container may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLimits {
    /// Bytes of memory.
    pub memory_max: Option<u64>,
    /// Thousandths of a core.
    pub cpu_milli_max: Option<u64>,
}

/// What a network probe tries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ProbeTarget {
    /// A connection can be made.
    Tcp {
        /// Where.
        address: SocketAddrV4,
    },
    /// A GET is answered with 200 to 399. Certificates are not checked, as the kubelet does.
    Http {
        /// Where.
        address: SocketAddrV4,
        /// With TLS.
        tls: bool,
        /// Path and query.
        path: String,
        /// More headers, `Host` included.
        headers: Vec<(String, String)>,
    },
    /// gRPC's health check answers SERVING.
    Grpc {
        /// Where.
        address: SocketAddrV4,
        /// Which service is asked for.
        service: String,
    },
}

/// What became of a probe.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeResult {
    /// Why it failed, in the kubelet's words; nothing if it succeeded.
    pub failure: Option<String>,
}

/// What became of a program run in a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResult {
    /// Its exit code; nothing if it was killed.
    pub code: Option<i32>,
    /// The first 10 KiB of what it printed.
    pub output: String,
}

/// A Service as the network needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceEntry {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its address; nothing if it is headless.
    pub address: Option<Ipv4Addr>,
    /// Its ports.
    pub ports: Vec<ServicePortEntry>,
    /// Addresses of its ready pods, as a headless Service's name is answered.
    pub pods: Vec<Ipv4Addr>,
    /// Those of them that have a name of their own below that of the Service.
    pub hosts: Vec<(String, Ipv4Addr)>,
    /// Whether a client is led to the same pod each time, as long as the pods are the same (`sessionAffinity: ClientIP`).
    pub is_sticky: bool,
}

/// A port of a Service, and where it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePortEntry {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The port of the Service.
    pub port: u16,
    /// Ready pods' addresses and ports.
    pub targets: Vec<SocketAddrV4>,
}

/// What was used until a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSample {
    /// The moment, in milliseconds since the machine was started: a clock that nobody sets.
    pub uptime_ms: u64,
    /// What the whole machine used.
    pub machine: UsageCount,
    /// What was used by each container that runs.
    pub containers: Vec<ContainerUsage>,
}

/// What something used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageCount {
    /// Milliseconds of processors.
    pub cpu_ms: u64,
    /// Bytes of memory that are in use now.
    pub memory: u64,
}

/// What a container used since it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerUsage {
    /// Which run of it.
    pub container: ContainerName,
    /// When it began, in milliseconds since the machine was started.
    pub started_ms: u64,
    /// What it used.
    pub count: UsageCount,
}

/// What the node tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Message {
    /// The answer to a request.
    Answer {
        /// The request's number.
        id: u64,
        /// What came of it, or why nothing did, in one sentence.
        result: Result<serde_json::Value, String>,
    },
    /// A container's first process ended.
    Exited {
        /// Which one.
        container: ContainerName,
        /// Its exit code, if it ended by itself.
        code: Option<i32>,
        /// The signal that ended it, otherwise.
        signal: Option<i32>,
        /// Whether it was killed because it used too much memory.
        out_of_memory: bool,
        /// What it said of its end.
        message: Option<String>,
    },
    /// Something that an administrator of this machine should know, such as limits that are not enforced.
    Notice {
        /// One sentence.
        text: String,
    },
}
