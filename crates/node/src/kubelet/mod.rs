//! An ordinary client of the API that makes what runs on this machine what the Pods say.
//!
//! ```text
//!   watch of Pods ──► worker (one for each pod) ──► NodeHandle, ImageCache ──► programs
//!                        │    ▲ exits, answers of probes, pulled images
//!                        └──► status, events                          Services ──► names and addresses
//! ```
//!
//! A worker does everything for its pod, one thing after the other, so that no pod is ever started
//! twice and a bad one holds up no other. What it decides is in room `pod`'s folder; here are hands only.
//! If the node ends, it is started again, and each worker starts its pod anew in it.

mod address;
mod ending;
mod event;
mod forward;
mod machine;
mod probe;
mod pull;
mod registration;
mod running;
mod services;
mod source;
mod upkeep;
mod usage;
mod worker;

pub use forward::ServiceForwards;
pub use services::LiveServices;
pub use usage::LiveUsage;
pub use worker::locate_log;

use crate::image::ImageCache;
use crate::pod::identity::Allowances;
use crate::protocol::NodeConfig;
use address::AddressPool;
use event::EventRecorder;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client};
use machine::Machine;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::auth::Keychain;
use store::remote::Transport;
use tokio::sync::{mpsc, watch};
use upkeep::{collect_images, image_names, sweep_logs};
use worker::{PodNotice, PodWorker};

/// How a kubelet is set up.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// The node's name.
    pub node_name: String,
    /// The program whose hidden verbs are the node.
    pub program: PathBuf,
    /// Where the node is, and its networks.
    pub config: NodeConfig,
    /// The node's address, as pods are told.
    pub host_address: Ipv4Addr,
    /// Below it each container has a directory for its output.
    pub logs: PathBuf,
    /// What pods may have beyond their own files.
    pub allowances: Allowances,
    /// Thousandths of cores of the machine.
    pub cpu_milli: u64,
    /// Bytes of memory of the machine.
    pub memory: u64,
    /// The registry of images that name none.
    pub default_registry: String,
    /// What the node says of its version.
    pub version: String,
    /// Whether a container is called running whose image has no program; else that is an error.
    pub simulates_programless: bool,
}

/// Told what an administrator of this machine should know.
pub type NodeVoice = Arc<dyn Fn(&str) + Send + Sync>;

/// Makes what runs here what the Pods of a node say.
pub struct Kubelet {
    /// How it is set up.
    pub settings: KubeletSettings,
    /// The API server.
    pub client: Client,
    /// Where images are kept.
    pub images: ImageCache,
    /// The way to registries.
    pub transport: Transport,
    /// Credentials, after those that pods name.
    pub keychain: Keychain,
    /// What Services lead to, for others in this process.
    pub services: LiveServices,
    /// What pods use, for others in this process.
    pub usage: LiveUsage,
    /// Hears what the node has to say.
    pub voice: NodeVoice,
}

/// What all workers share.
pub(crate) struct Station {
    pub(crate) settings: KubeletSettings,
    pub(crate) client: Client,
    pub(crate) images: ImageCache,
    pub(crate) transport: Transport,
    pub(crate) keychain: Keychain,
    pub(crate) machine: Machine,
    pub(crate) addresses: AddressPool,
    pub(crate) events: EventRecorder,
    pub(crate) service_objects: Store<Service>,
    pub(crate) services: LiveServices,
    pub(crate) usage: LiveUsage,
    workers: Mutex<HashMap<String, WorkerSeat>>,
    stop: watch::Receiver<bool>,
}

/// A worker as others know it.
struct WorkerSeat {
    mailbox: mpsc::UnboundedSender<PodNotice>,
    /// The images that its pod names.
    images: BTreeSet<String>,
}

impl Station {
    fn workers(&self) -> MutexGuard<'_, HashMap<String, WorkerSeat>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the worker of a pod, if there is one.
    pub(crate) fn notify_pod(&self, uid: &str, notice: PodNotice) {
        if let Some(worker) = self.workers().get(uid) {
            let _ = worker.mailbox.send(notice);
        }
    }

    /// Has all workers look again.
    pub(crate) fn wake_all(&self) {
        for worker in self.workers().values() {
            let _ = worker.mailbox.send(PodNotice::Look);
        }
    }

    /// Whether all of it is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// The images that pods which are there name.
    pub(crate) fn named_images(&self) -> BTreeSet<String> {
        self.workers().values().flat_map(|worker| worker.images.clone()).collect()
    }

    /// Forgets the worker of a pod that is gone.
    pub(crate) fn forget_pod(&self, uid: &str) {
        self.workers().remove(uid);
    }
}

impl Kubelet {
    /// Runs pods until told to stop. Their programs are asked to end then, and end with the node.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let (service_objects, writer) = reflector::store();
        let events = EventRecorder::start(self.client.clone(), &self.settings.node_name);
        let station = Arc::new(Station {
            addresses: AddressPool::new(self.settings.config.gateway),
            settings: self.settings,
            client: self.client,
            images: self.images,
            transport: self.transport,
            keychain: self.keychain,
            machine: Machine::default(),
            events,
            service_objects,
            services: self.services,
            usage: self.usage,
            workers: Mutex::default(),
            stop: stop.clone(),
        });
        let all_services = Api::<Service>::all(station.client.clone());
        let stream = watcher(all_services, Config::default()).default_backoff();
        let told = station.services.clone();
        let follow_services = reflector(writer, stream).for_each(move |_| {
            told.note_change();
            futures::future::ready(())
        });
        let hands = async {
            futures::join!(
                machine::keep_node(&station, &self.voice),
                registration::keep_registered(&station),
                services::keep_services(&station),
                follow_services,
                follow_pods(&station),
                collect_images(&station),
                usage::keep_counting(&station),
            );
        };
        // Exits are still heard of while programs end.
        let end = async {
            stopped(stop).await;
            station.wake_all();
            ending::let_all_end(&station).await;
        };
        tokio::select! {
            () = hands => {}
            () = end => {}
        }
        station.machine.end_and_wait().await;
    }
}

/// Done when told to stop.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    // A sender that is gone will not tell any more.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Gives each pod of the node a worker, and tells it what becomes of its object.
async fn follow_pods(station: &Arc<Station>) {
    station.service_objects.wait_until_ready().await.ok();
    let pods = Api::<Pod>::all(station.client.clone());
    let field = format!("spec.nodeName={}", station.settings.node_name);
    let mut news = watcher(pods, Config::default().fields(&field)).default_backoff().boxed();
    let mut listed = HashSet::new();
    let mut is_swept = false;
    while let Some(one) = news.next().await {
        match one {
            Ok(Event::Apply(pod)) => tell_worker(station, pod),
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                listed.extend(pod.metadata.uid.clone());
                tell_worker(station, pod);
            }
            Ok(Event::InitDone) => {
                if !is_swept {
                    // No pod begins before this is done, because its worker is made here.
                    sweep_logs(&station.settings.logs, &listed).await;
                    is_swept = true;
                }
                let known: Vec<String> = station.workers().keys().cloned().collect();
                for uid in known.iter().filter(|uid| !listed.contains(*uid)) {
                    station.notify_pod(uid, PodNotice::Gone);
                }
            }
            Ok(Event::Delete(pod)) => {
                station.notify_pod(&pod.metadata.uid.unwrap_or_default(), PodNotice::Gone);
            }
            // The watcher tries again by itself.
            Err(_) => {}
        }
    }
}

fn tell_worker(station: &Arc<Station>, pod: Pod) {
    let Some(uid) = pod.metadata.uid.clone() else { return };
    let spec = pod.spec.as_ref();
    if spec.and_then(|spec| spec.node_name.as_ref()) != Some(&station.settings.node_name) {
        return;
    }
    let images = image_names(&pod);
    let mut workers = station.workers();
    if let Some(worker) = workers.get_mut(&uid) {
        worker.images = images;
        let _ = worker.mailbox.send(PodNotice::Changed(Box::new(pod)));
        return;
    }
    let (mailbox, notices) = mpsc::unbounded_channel();
    workers.insert(uid, WorkerSeat { mailbox: mailbox.clone(), images });
    tokio::spawn(PodWorker::new(Arc::clone(station), pod, mailbox, notices).run());
}
