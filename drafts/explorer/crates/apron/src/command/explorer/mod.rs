//! `explorer`: the packages of a cluster as pages, on this machine, with the rights of a kubeconfig.

mod source;

pub(crate) use source::ClusterSource;

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::command::registry::catalog::{Pass, cluster_pages};
use crate::command::registry::doors;
use crate::failure::{Failure, Outcome};
use crate::listen;
use crate::output;
use crate::settings::Settings;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Which cluster, and where to show it.
pub(crate) struct Request {
    pub(crate) listen: SocketAddr,
    pub(crate) cluster: ClusterArguments,
}

/// Serves pages about a cluster until a signal ends it.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    if !request.listen.ip().is_loopback() {
        return Err(Failure::new(
            format!("{} can be reached from other machines", request.listen),
            "listen on 127.0.0.1: everything that your kubeconfig may read would be shown there",
        ));
    }
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let cannot_listen = |error: std::io::Error| {
        let hint = "choose another address with --listen, or port 0 for a free one";
        Failure::new(format!("cannot listen on {}", request.listen), hint).because(&error)
    };
    let stop = listen::stop()?;
    let listener = TcpListener::bind(request.listen).await.map_err(cannot_listen)?;
    let address = listener.local_addr().map_err(cannot_listen)?;
    let pass = Pass::from_key(&random_key()?, address);
    let (tell, told) = watch::channel(false);
    let source = ClusterSource::new(told);
    source.set_cluster(cluster);
    let router = cluster_pages(Arc::new(source), address, &pass, settings)?;
    output::print(format_args!("{} {}", output::bold("explorer"), pass.address(address)));
    output::say("stop with Ctrl-C");
    let stop = async move {
        stop.await;
        let _ = tell.send(true);
    };
    let (doors, limits) = doors();
    listen::serve(listener, router, doors, limits, stop).await;
    output::say("stopped");
    Ok(())
}

/// A key that is as hard to guess as one of a certificate, because it is one.
fn random_key() -> Outcome<String> {
    let key = rcgen::KeyPair::generate().map_err(|error| {
        Failure::new("cannot make a pass", "check that the system has random numbers").because(&error)
    })?;
    Ok(key.serialize_pem())
}
