//! The control plane itself: three servers' worth of work in one process.

use super::Request;
use super::crossplane;
use super::door::{self, Images};
use super::home::Home;
use super::manager;
use super::packages::Packages;
use super::pods::PodRuntime;
use crate::cluster::Cluster;
use crate::cluster::kubeconfig::OwnRegistry;
use crate::command::apiserver;
use crate::command::deploy;
use crate::command::explorer::ClusterSource;
use crate::command::permissions;
use crate::command::registry::{self as own_registry, catalog, serve};
use crate::failure::{Failure, Outcome};
use crate::nearby::nearby;
use crate::output;
use crate::settings::Settings;
use ::apiserver::log::Log;
use ::registry::Registry;
use edge::accept;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::{Client, HttpSettings, Transport, http_client, transport};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Where things listen if nobody says otherwise, and it is free.
const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6443);
const REGISTRY: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5000);
/// Past events that are kept for watches that come back.
const EVENTS_KEPT: usize = 100_000;
/// The pause between two garbage collections of the registry.
const COLLECT_INTERVAL: Duration = Duration::from_secs(3600);

/// A control plane that runs.
pub(super) struct Plane {
    api: SocketAddr,
    registry: SocketAddr,
    /// The address that opens the explorer.
    explorer: String,
    kubeconfig: PathBuf,
    /// How pods run, in words.
    runtime: String,
    /// Where data are kept, in words.
    kept: String,
    /// The cluster, without a socket.
    pub(super) cluster: Cluster,
    /// The registry, without a socket.
    pub(super) packages: Packages,
    images: Registry,
    objects: Log,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Plane {
    /// Starts everything; whoever asks from now on is answered.
    pub(super) async fn start(
        request: &Request,
        home: &Home,
        settings: &Settings,
    ) -> Outcome<Self> {
        let pods = PodRuntime::choose(request, home).await?;
        crossplane::check_request(request, &pods)?;
        let (stop, told) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let listener = bind(request.registry_listen, REGISTRY, "--registry-listen").await?;
        let registry = address(&listener)?;
        let source = Arc::new(ClusterSource::new(told.clone()));
        let Images { registry: images, index, outer, inner, vouched, explorer, own } =
            door::images(request, home, registry, source.clone())?;
        let (doors, limits) = own_registry::doors();
        tasks.spawn(accept::serve(listener, outer, doors, limits, done(&told)));
        tasks.spawn(serve::collect_regularly(images.clone(), COLLECT_INTERVAL, done(&told)));
        let temporary = settings.temporary.clone();
        tasks.spawn(catalog::follow(images.clone(), index, temporary, done(&told)));

        let prepared = apiserver::prepare(&api_request(request, home), pods.hosting()).await?;
        let listener = bind(request.listen, API, "--listen").await?;
        let api = address(&listener)?;
        let kubeconfig = home.join("kubeconfig");
        prepared.write_kubeconfig(&kubeconfig, api, Some(&own))?;
        let (door, limits) = prepared.door();
        tasks.spawn(accept::serve(listener, prepared.router(), door, limits, done(&told)));

        let of_client =
            || Cluster::of(prepared.client(), format!("https://{api}"), ::api::crd::SUFFIX);
        let cluster = of_client();
        source.set_cluster(of_client());
        permissions::ensure_gathered(&cluster).await?;
        deploy::ensure_people(&cluster).await?;
        let packages = Client::new(
            transport(inner.clone()),
            Keychain::anonymous(),
            store::remote::Settings::default(),
        );
        // In this process nobody asks for the credential.
        let near = OwnRegistry { address: registry, credential: None };
        let world = nearby(transport(inner), &near, world(request, settings)?);
        let places = (api, world.clone());
        tasks.spawn(pods.start(request, prepared.client(), places, settings, told.clone()).await?);
        let manager =
            manager::manager(request, home, prepared.client(), (registry, world), settings).await?;
        tasks.spawn(manager::run(manager, told));
        let kept = if request.in_memory {
            "memory only".to_owned()
        } else {
            home.path().display().to_string()
        };
        let packages = Packages { client: packages, vouched };
        let objects = prepared.log();
        Ok(Self {
            api,
            registry,
            explorer,
            kubeconfig,
            runtime: pods.describe(),
            kept,
            cluster,
            packages,
            images,
            objects,
            tasks,
            stop,
        })
    }

    /// Says where everything is.
    pub(super) fn introduce(&self) {
        let heading = output::bold("a control plane is up");
        output::print(format_args!("{heading} (data: {})", self.kept));
        let path = self.kubeconfig.display();
        output::print(format_args!("  kubectl   export KUBECONFIG={path}"));
        output::print(format_args!("  API       https://{}", self.api));
        let registry = self.registry;
        output::print(format_args!("  registry  http://{registry}"));
        output::print(format_args!("  explorer  {}", self.explorer));
        output::print(format_args!(
            "  log in    apron registry password | \
             docker login --username apron --password-stdin {registry}"
        ));
        output::print(format_args!("  runtime   {}", self.runtime));
        let next = "apron status; kubectl get crds; apron init configuration my-platform";
        output::print(format_args!("  next      {next}"));
    }

    /// Lets everybody finish what they do.
    pub(super) async fn stop(mut self) {
        let _ = self.stop.send(true);
        while self.tasks.join_next().await.is_some() {}
        self.images.flush_views().await;
        apiserver::close(&self.objects).await;
    }
}

/// Done when the plane is to stop.
fn done(told: &watch::Receiver<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut told = told.clone();
    async move {
        let _ = told.wait_for(|stop| *stop).await;
    }
}

fn api_request(request: &Request, home: &Home) -> apiserver::Request {
    apiserver::Request {
        data_dir: home.join("api"),
        listen: API,
        kubeconfig: None,
        in_memory: request.in_memory,
        token_auth_file: None,
        keep_events: EVENTS_KEPT,
    }
}

/// Opens a socket: where somebody said, or at the usual place, or anywhere.
async fn bind(said: Option<SocketAddr>, usual: SocketAddr, flag: &str) -> Outcome<TcpListener> {
    let wanted = said.unwrap_or(usual);
    let bound = match TcpListener::bind(wanted).await {
        Err(_) if said.is_none() => TcpListener::bind(SocketAddr::new(usual.ip(), 0)).await,
        bound => bound,
    };
    bound.map_err(|error| {
        let hint = format!("choose another address with {flag}, or port 0 for a free one");
        Failure::new(format!("cannot listen on {wanted}"), hint).because(&error)
    })
}

fn address(listener: &TcpListener) -> Outcome<SocketAddr> {
    listener.local_addr().map_err(|error| Failure::file(&error))
}

/// The way to all other registries.
fn world(request: &Request, settings: &Settings) -> Outcome<Transport> {
    let read = |path: &PathBuf| fs_err::read(path).map_err(|error| Failure::file(&error));
    let http = HttpSettings {
        ca_bundle: request.ca_bundle.as_ref().map(read).transpose()?,
        proxies: settings.proxies.clone(),
        ..HttpSettings::default()
    };
    http_client(&http).map_err(|error| {
        let hint = "check --ca-bundle-path and the proxy settings";
        Failure::new("cannot set up the connection to registries", hint).because(&error)
    })
}
