//! `registry serve`: the registry on an address, until it is told to stop.

use super::listen;
use super::tls::{self, Tls};
use super::{keep, open};
use crate::failure::{Failure, Outcome};
use crate::output;
use ::registry::{Collect, Missing, Options, Registry, Settings, Versions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How to serve.
pub(crate) struct Request {
    pub(crate) directory: PathBuf,
    pub(crate) listen: String,
    pub(crate) insecure_open: bool,
    pub(crate) tls: Option<tls::Files>,
    pub(crate) mutable_versions: bool,
    pub(crate) allow_missing: bool,
    pub(crate) space_reserve: u64,
    pub(crate) lease: Duration,
    /// Zero means never.
    pub(crate) gc_interval: Duration,
}

/// Serves until a signal ends it.
pub(crate) async fn run(request: &Request) -> Outcome {
    let listener = bind(request).await?;
    let address = listener.local_addr().map_err(|error| cannot_listen(request, &error))?;
    let tls = request.tls.as_ref().map(Tls::load).transpose()?;
    let settings = Settings {
        lease: request.lease,
        space_reserve: request.space_reserve,
        versions: if request.mutable_versions { Versions::Move } else { Versions::Stay },
        missing: if request.allow_missing { Missing::Accept } else { Missing::Refuse },
    };
    let registry = open(&request.directory, settings)?;
    let router = ::registry::router(registry.clone(), Options::open());
    if let Some(tls) = &tls {
        tokio::spawn(tls.clone().keep_fresh());
    }
    if !request.gc_interval.is_zero() {
        tokio::spawn(collect_regularly(registry.clone(), request.gc_interval));
    }
    introduce(request, address);
    listen::serve(listener, router, tls, stop()?).await;
    registry.flush_views().await;
    output::say("stopped");
    Ok(())
}

/// Binds the address, if everybody who can reach it may use the registry.
async fn bind(request: &Request) -> Outcome<TcpListener> {
    let listener = TcpListener::bind(&request.listen).await;
    let listener = listener.map_err(|error| cannot_listen(request, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(request, &error))?;
    if address.ip().is_loopback() || request.insecure_open {
        return Ok(listener);
    }
    Err(Failure::new(
        format!("{address} can be reached from other machines, and this registry has no users"),
        "listen on 127.0.0.1, or let anybody push and delete with --insecure-open",
    ))
}

fn cannot_listen(request: &Request, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => "another program listens there; choose another --listen",
        std::io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose another",
        _ => "--listen takes an address and a port, such as 127.0.0.1:5000",
    };
    Failure::new(format!("cannot listen on {}", request.listen), hint).because(error)
}

fn introduce(request: &Request, address: SocketAddr) {
    let scheme = if request.tls.is_some() { "https" } else { "http" };
    let place = request.directory.display();
    output::print(format_args!(
        "serving {} from {place}",
        output::bold(format_args!("{scheme}://{address}"))
    ));
    output::print(format_args!("  push  apron push -f package.xpkg {address}/team/package:v1.0.0"));
    output::print(format_args!("  pull  apron pull {address}/team/package:v1.0.0"));
    output::print("  stop  Ctrl-C");
}

/// Done when somebody wants the registry to stop.
fn stop() -> Outcome<impl Future<Output = ()>> {
    let failed = |error| {
        Failure::new("cannot watch for signals", "check the limits on open files").because(&error)
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn collect_regularly(registry: Registry, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        match registry.collect(&Collect::default()).await {
            Ok(done) if done == ::registry::Collected::default() => {}
            Ok(done) => output::say(format_args!("collected {}", keep::summary(&done))),
            Err(error) => output::fail(&super::failed("cannot collect garbage", &error)),
        }
    }
}
