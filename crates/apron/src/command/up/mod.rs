//! `up`: a control plane in this process: API server, registry and package manager, with one
//! data directory. With a directory of packages, those are built, kept in the registry and
//! installed. Crossplane's core can run beside them.
//!
//! ```text
//!   kubectl ──TLS──► API server ◄── manager ──► registry ◄──HTTP── apron push (with its key)
//!                        │           (no sockets in between)  │
//!                        └───────────── data directory ───────┘
//! ```

mod crossplane;
mod door;
mod home;
mod install;
pub(super) mod manager;
mod packages;
mod plane;
mod pods;
mod vouched;

use crate::args::authority::OpenArguments;
use crate::failure::Outcome;
use crate::listen;
use crate::output;
use crate::settings::Settings;
use home::Home;
use plane::Plane;
pub(crate) use pods::{EgressChoice, PodRequest, RuntimeChoice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to bring up, and where.
pub(crate) struct Request {
    /// Packages to build and install.
    pub(crate) packages: Option<PathBuf>,
    /// One of the user's own, if it is not said.
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) in_memory: bool,
    /// The usual port, or any that is free, if it is not said.
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) registry_listen: Option<SocketAddr>,
    /// Certificate authorities of other registries, besides the system's.
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Catalogs to ask after the own registry's.
    pub(crate) catalogs: Vec<controller::CatalogAddress>,
    /// Credentials for other registries, before the user's own.
    pub(crate) auth_file: Option<PathBuf>,
    /// How pods run, and what they may reach.
    pub(crate) pods: PodRequest,
    /// The image of Crossplane's core, if it is to run.
    pub(crate) crossplane: Option<String>,
    pub(crate) exit_when_ready: bool,
    /// How long packages may take to become healthy.
    pub(crate) timeout: Duration,
    /// What packages may bring and ask for without a word in the cluster.
    pub(crate) open: OpenArguments,
    /// Tell what the package manager does.
    pub(crate) verbose: bool,
}

/// Serves until told to stop, or until everything is healthy.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let start = Instant::now();
    // Before anybody is told that it serves: whoever ends it at once ends it cleanly.
    let mut stop = std::pin::pin!(listen::stop()?);
    // A directory that cannot be meant is told before anything is there to be stopped.
    if let Some(directory) = &request.packages {
        packages::find(directory)?;
    }
    let home = Home::open(request, settings)?;
    let plane = Plane::start(request, &home, settings).await?;
    // Whoever is told of the plane finds the kinds of packages there.
    tokio::select! {
        served = install::kinds_served(&plane, request.timeout) => drop(served?),
        () = &mut stop => {
            plane.stop().await;
            return Ok(());
        }
    }
    plane.introduce();
    let work = async {
        if let Some(image) = &request.crossplane {
            crossplane::install_core(&plane.cluster, image, request.timeout).await?;
        }
        if let Some(directory) = &request.packages {
            install::install(directory, &plane, request.timeout, settings).await?;
        }
        // The core starts while packages are installed.
        if request.crossplane.is_some() {
            crossplane::await_core(&plane.cluster, request.timeout).await?;
        }
        if request.packages.is_some() || request.crossplane.is_some() {
            output::print(format_args!("ready after {}", seconds(start.elapsed())));
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = work => Some(outcome),
        () = &mut stop => None,
    };
    // A package that does not become healthy is looked into with the plane still there.
    let outcome = match outcome {
        Some(outcome) if !request.exit_when_ready => {
            if let Err(failure) = &outcome {
                output::fail(failure);
            }
            output::say("stop with Ctrl-C");
            stop.await;
            Ok(())
        }
        Some(outcome) => outcome,
        None => Ok(()),
    };
    plane.stop().await;
    output::say("stopped");
    outcome
}

fn seconds(span: Duration) -> String {
    let tenths = span.as_millis() / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}
