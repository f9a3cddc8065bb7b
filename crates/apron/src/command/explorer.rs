//! `explorer`: the packages of a cluster as pages, on this machine, with the rights of a kubeconfig.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::command::registry::catalog;
use crate::command::status;
use crate::failure::{Failure, Outcome};
use crate::listen::{self, Plain};
use crate::output;
use crate::settings::Settings;
use ::explorer::pass::Pass;
use ::explorer::plane::{PlaneEvent, PlaneProblem, PlaneReport, PlaneSource};
use async_trait::async_trait;
use edge::accept;
use inventory::Inventory;
use inventory::Resource;
use serde_json::Value as Json;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The namespace that events about objects of the whole cluster are in.
const EVENTS_NAMESPACE: &str = "default";
/// Connections at once, also from one address.
const CONNECTIONS_MAX: usize = 256;
/// An answer may take as long as the cluster does, so threads share the connections.
const LIMITS: accept::Limits = accept::Limits {
    connections: CONNECTIONS_MAX,
    streams: 32,
    hands: 0,
    drain: Duration::from_secs(5),
};

/// Which cluster, and where to show it.
pub(crate) struct Request {
    pub(crate) listen: SocketAddr,
    pub(crate) without_pass: bool,
    pub(crate) cluster: ClusterArguments,
}

/// Serves pages about a cluster until a signal ends it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    if request.without_pass && !request.listen.ip().is_loopback() {
        return Err(Failure::new(
            format!("{} can be reached from other machines", request.listen),
            "listen on 127.0.0.1, or leave out --without-pass",
        ));
    }
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    // A cluster that does not answer is told at once, and not on a page.
    Inventory::gather(&cluster).await?;
    let cannot_listen = |error: std::io::Error| {
        let hint = "choose another address with --listen, or port 0 for a free one";
        Failure::new(format!("cannot listen on {}", request.listen), hint).because(&error)
    };
    let stop = listen::stop()?;
    let listener = TcpListener::bind(request.listen).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let pass =
        if request.without_pass { None } else { Some(Pass::from_key(&random_key()?, address)) };
    let (tell, told) = watch::channel(false);
    let source = ClusterSource::new(told);
    source.set_cluster(cluster);
    let router = catalog::plane_pages(Arc::new(source), address, pass.clone());
    let opened = pass.map_or_else(|| format!("http://{address}/"), |pass| pass.address(address));
    output::print(format_args!("{} {opened}", output::bold("explorer")));
    output::say("stop with Ctrl-C");
    let stop = async move {
        stop.await;
        let _ = tell.send(true);
    };
    accept::serve(listener, router, Plain::new(CONNECTIONS_MAX), LIMITS, stop).await;
    output::say("stopped");
    Ok(())
}

/// A key that is as hard to guess as one of a certificate, because it is one.
fn random_key() -> Outcome<String> {
    let key = rcgen::KeyPair::generate().map_err(|error| {
        let hint = "check that the system has random numbers";
        Failure::new("cannot make a pass", hint).because(&error)
    })?;
    Ok(key.serialize_pem())
}

/// A cluster that may come up after its pages do.
pub(crate) struct ClusterSource {
    cluster: OnceLock<Cluster>,
    stop: watch::Receiver<bool>,
}

impl ClusterSource {
    /// A source without a cluster yet, until it is told to stop.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        Self { cluster: OnceLock::new(), stop }
    }

    /// Shows this cluster from now on.
    pub(crate) fn set_cluster(&self, cluster: Cluster) {
        let _ = self.cluster.set(cluster);
    }
}

#[async_trait]
impl PlaneSource for ClusterSource {
    async fn read_report(&self) -> Result<PlaneReport, PlaneProblem> {
        let starting = || PlaneProblem {
            message: "the API server is not up yet".to_owned(),
            hint: "load the page again in a moment".to_owned(),
        };
        let cluster = self.cluster.get().ok_or_else(starting)?;
        let failed = |Failure { message, causes, hint }: Failure| {
            let message = [vec![message], causes].concat().join(": ");
            PlaneProblem { message, hint }
        };
        let inventory = Inventory::gather(cluster).await.map_err(failed)?;
        // A kubeconfig that may not read events shows the rest.
        let events = Resource::core(EVENTS_NAMESPACE, "events");
        let events = cluster.list::<Json>(&events).await.ok().flatten().unwrap_or_default();
        let tell = |one| status::report_package(one, &inventory);
        Ok(PlaneReport {
            place: cluster.place().to_owned(),
            packages: inventory.packages.iter().map(tell).collect(),
            unresolved: inventory.unresolved().map(str::to_owned),
            events: PlaneEvent::of_group(&events, &cluster.group),
        })
    }

    async fn until_stopped(&self) {
        let _ = self.stop.clone().wait_for(|stop| *stop).await;
    }
}
