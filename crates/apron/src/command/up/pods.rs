//! What becomes of the pods of a control plane that was brought up here: programs of this machine, or objects
//! that are only simulated.

use super::Request;
use super::home::Home;
use crate::command::apiserver::PodHosting;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::registry::auth_files;
use crate::settings::Settings;
use ::apiserver::runtime::{
    Hosting, LogOutput, LogPieces, LogQuery, LogStart, MeasuredUsage, PodLogs, UsageMeter,
    UsageReading,
};
use clap::ValueEnum;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use node::gateway::{HostDoor, HostDoorOptions, parse_nameservers};
use node::image::{FileOwners, ImageCache, ImageLimits, ImageOptions, machine_platform};
use node::kubelet::{
    Kubelet, KubeletSettings, LiveServices, LiveUsage, ServiceForwards, locate_log,
};
use node::logs::{LogOptions, LogSource, has_log, read_log};
use node::pod::identity::Allowances;
use node::pod::status::SIMULATED;
use node::pod::usage::UsageRates;
use node::protocol::{Egress, NodeConfig};
use node::sandbox::{FIRST_SHIFTED_ID, has_shifted_ids, probe_support};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use store::auth::Keychain;
use store::remote::Transport;
use tokio::sync::watch::Receiver;

/// The name of this machine's node.
const NODE: &str = "apron";
/// The program that runs, whatever its file is now: an upgrade on the disk would give a node that is started again another
/// version than this one, or none. A process that is spawned is this program until it has executed this path.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The networks of pods and Services, and the addresses in them that are given.
const PODS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 244, 0, 0), 24);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
const SERVICES: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 96, 0, 0), 12);
const API: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 96, 0, 1), 443);
const DNS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// Layers that hold a package, not a part of a program's file system.
const PACKAGE_LAYER: &str = "io.crossplane.xpkg";

/// How pods are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeChoice {
    /// As programs of this machine if it allows that, else simulated; packages without a program are simulated
    Auto,
    /// As programs of this machine, in namespaces of their own
    Process,
    /// Not at all: Deployments are called available at once
    Simulated,
}

/// Where pods may connect to, beside the control plane and each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EgressChoice {
    /// Nowhere
    None,
    /// Public addresses
    Public,
    /// Whatever this machine reaches
    Host,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodRequest {
    pub(crate) runtime: RuntimeChoice,
    pub(crate) egress: EgressChoice,
    pub(crate) allow_host_path: bool,
}

/// What it came to.
pub(super) enum PodRuntime {
    /// Nothing runs; and why, if that was not asked for.
    Simulated(Option<String>),
    /// Pods run.
    Process(Box<PodStation>),
}

/// What runs pods, before it does.
pub(super) struct PodStation {
    program: PathBuf,
    directory: PathBuf,
    services: LiveServices,
    usage: LiveUsage,
    forwards: ServiceForwards,
    request: PodRequest,
}

impl PodRuntime {
    /// What was asked for, as far as this machine allows it.
    pub(super) async fn choose(request: &Request, home: &Home) -> Outcome<Self> {
        if request.pods.runtime == RuntimeChoice::Simulated {
            return Ok(Self::Simulated(None));
        }
        let program = PathBuf::from(OWN_PROGRAM);
        match (probe_support(&program).await, request.pods.runtime) {
            (Err(why), RuntimeChoice::Process) => Err(Failure::new(
                format!("pods cannot be run on this machine: {why}"),
                "use --runtime simulated to try packages without running them (`apron help runtime`)",
            )),
            (Err(why), _) => Ok(Self::Simulated(Some(why))),
            (Ok(()), _) => {
                // The node's processes have directories of their own.
                let directory =
                    std::path::absolute(home.join("node")).map_err(|error| cannot_run(&error))?;
                crate::private::make_directory(&directory)?;
                let services = LiveServices::default();
                let forwards = ServiceForwards::new(services.clone(), directory.join("state"));
                let request = request.pods;
                let usage = LiveUsage::default();
                let station = PodStation { program, directory, services, usage, forwards, request };
                Ok(Self::Process(Box::new(station)))
            }
        }
    }

    /// What the API server makes of it.
    pub(super) fn hosting(&self) -> PodHosting {
        match self {
            Self::Simulated(_) => PodHosting::simulated(),
            Self::Process(station) => {
                let forwards = station.forwards.clone();
                PodHosting {
                    hosting: Hosting::Pods,
                    logs: Some(Arc::new(NodeLogs { logs: station.logs() })),
                    usage: Some(Arc::new(NodeMeter { usage: station.usage.clone() })),
                    find: Some(Arc::new(move |namespace: &str, name: &str, port: u16| {
                        forwards.find_service(namespace, name, port)
                    })),
                }
            }
        }
    }

    /// Runs pods until told to stop, if there is anything to run them.
    pub(super) async fn start(
        &self,
        request: &Request,
        client: kube::Client,
        places: (SocketAddr, Transport),
        environment: &Settings,
        told: Receiver<bool>,
    ) -> Outcome<BoxFuture<'static, ()>> {
        match self {
            Self::Simulated(_) => Ok(std::future::ready(()).boxed()),
            Self::Process(station) => station.run(request, client, places, environment, told).await,
        }
    }

    /// What is said of it when everything is up.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Simulated(None) => {
                "simulated: providers and functions do not run, their objects are kept (apron up --help)".to_owned()
            }
            Self::Simulated(Some(why)) => {
                format!("simulated: providers and functions do not run, because {why}")
            }
            Self::Process(_) => {
                "process: providers and functions run on this machine (kubectl get pods -A)".to_owned()
            }
        }
    }
}

impl PodStation {
    fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    async fn run(
        &self,
        request: &Request,
        client: kube::Client,
        (api, transport): (SocketAddr, Transport),
        environment: &Settings,
        told: Receiver<bool>,
    ) -> Outcome<BoxFuture<'static, ()>> {
        let state = self.directory.join("state");
        crate::private::make_directory(&state)?;
        crate::private::make_directory(&self.logs())?;
        let nameservers = fs_err::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let egress = match self.request.egress {
            EgressChoice::None => Egress::None,
            EgressChoice::Public => Egress::Public,
            EgressChoice::Host => Egress::Host,
        };
        let options = HostDoorOptions {
            api,
            egress,
            nameservers: parse_nameservers(&nameservers),
            own: vec![PODS, SERVICES],
        };
        let door = HostDoor::open(&state, options).map_err(|error| cannot_run(&error))?;
        let files = auth_files(request.auth_file.as_deref(), environment);
        let keychain = Keychain::from_files(&files).await.map_err(|error| cannot_run(&error))?;
        let images = ImageCache::open(&self.directory.join("images"), image_options())
            .map_err(|error| cannot_run(&error))?;
        let kubelet = Kubelet {
            settings: self.settings(state),
            client,
            images,
            transport,
            keychain,
            services: self.services.clone(),
            usage: self.usage.clone(),
            voice: Arc::new(|said: &str| output::say(format_args!("pods: {said}"))),
        };
        let hands = async move {
            Box::pin(kubelet.run(told)).await;
            drop(door);
        };
        Ok(hands.boxed())
    }

    fn settings(&self, state: PathBuf) -> KubeletSettings {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        KubeletSettings {
            node_name: NODE.to_owned(),
            program: self.program.clone(),
            config: NodeConfig {
                state,
                gateway: GATEWAY,
                services: SERVICES,
                api: API,
                dns: DNS,
                domain: "cluster.local".to_owned(),
            },
            host_address: GATEWAY,
            logs: self.logs(),
            allowances: Allowances { host_path: self.request.allow_host_path },
            cpu_milli: u64::try_from(cores).unwrap_or(1).saturating_mul(1_000),
            memory: memory_bytes(),
            default_registry: super::manager::settings().default_registry,
            version: format!("v{}", env!("CARGO_PKG_VERSION")),
            simulates_programless: self.request.runtime == RuntimeChoice::Auto,
        }
    }
}

fn image_options() -> ImageOptions {
    // Where the map of ids cannot be read, the modest way is right, too.
    let is_shifted = has_shifted_ids().unwrap_or(false);
    ImageOptions {
        machine: machine_platform(),
        owners: if is_shifted {
            FileOwners::Shifted { base: FIRST_SHIFTED_ID }
        } else {
            FileOwners::Ignored
        },
        limits: ImageLimits::default(),
        skipped_annotations: vec![PACKAGE_LAYER.to_owned()],
    }
}

/// What this machine has, as it says itself.
fn memory_bytes() -> u64 {
    let text = fs_err::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default().saturating_mul(1_024)
}

fn cannot_run(error: &dyn std::error::Error) -> Failure {
    let hint = "check the data directory and its permissions, or use --runtime simulated";
    Failure::new("cannot run pods", hint).because(error)
}

/// What the programs of pods printed.
#[derive(Debug)]
struct NodeLogs {
    logs: PathBuf,
}

impl PodLogs for NodeLogs {
    fn open_log(&self, pod: &Value, query: LogQuery) -> BoxFuture<'_, Result<LogPieces, String>> {
        let is_simulated = has_no_program(pod);
        let pod: Result<Pod, _> = serde_json::from_value(pod.clone());
        async move {
            let pod = pod.map_err(|error| error.to_string())?;
            let missing = || {
                let name = &query.container;
                if is_simulated {
                    return format!("container {name:?} has no log: its image has no program");
                }
                format!("the log of container {name:?} is not here")
            };
            let (directory, attempt) =
                locate_log(&self.logs, &pod, &query.container, query.previous)
                    .ok_or_else(missing)?;
            if !has_log(&directory, attempt).map_err(|error| error.to_string())? {
                return Err(missing());
            }
            let since = query.start.and_then(|start| match start {
                LogStart::SecondsAgo(seconds) => {
                    let span = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
                    Timestamp::now().checked_sub(span).ok()
                }
                LogStart::At(second) => Timestamp::from_second(i64::try_from(second).ok()?).ok(),
            });
            let options = LogOptions {
                follow: query.follow,
                timestamps: query.timestamps,
                since,
                tail_lines: query.tail_lines,
                limit_bytes: query.limit_bytes,
                source: match query.output {
                    LogOutput::All => None,
                    LogOutput::Stdout => Some(LogSource::Stdout),
                    LogOutput::Stderr => Some(LogSource::Stderr),
                },
            };
            Ok(read_log(&directory, attempt, options))
        }
        .boxed()
    }
}

/// Whether containers of a pod are called running although they have no program.
fn has_no_program(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|one| one["type"] == SIMULATED && one["status"] == "True")
}

/// What the programs of pods use.
#[derive(Debug)]
struct NodeMeter {
    usage: LiveUsage,
}

impl UsageMeter for NodeMeter {
    fn read_pod(&self, uid: &str) -> Option<UsageReading> {
        self.usage.of_pod(uid).map(usage_reading)
    }

    fn read_node(&self, name: &str) -> Option<UsageReading> {
        self.usage.of_machine().filter(|_| name == NODE).map(usage_reading)
    }
}

fn usage_reading(rates: UsageRates) -> UsageReading {
    let part = |(name, used): (String, node::pod::usage::UsageRate)| {
        (name, MeasuredUsage { cpu_nano: used.cpu_nano, memory: used.memory })
    };
    UsageReading {
        at: u64::try_from(rates.at.as_second()).unwrap_or_default(),
        window: rates.window,
        parts: rates.parts.into_iter().map(part).collect(),
    }
}
