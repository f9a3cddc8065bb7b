//! The catalog of a registry: what is in its packages, kept true while it is served.

use crate::failure::{Failure, Outcome};
use crate::output;
use ::catalog::{Index, IndexError};
use ::explorer::http::Exhibition;
use ::explorer::pass::Pass;
use ::explorer::plane::PlaneSource;
use ::follow::{RegistryGate, Trouble};
use ::registry::hosts::Hosts;
use ::registry::{Options, Registry, ServedExtension};
use axum::Router;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The catalog's file, beside the registry's.
pub(crate) const FILE: &str = "catalog.db";

/// The catalog as registries tell of it.
pub(crate) const EXTENSION: ServedExtension = ServedExtension {
    name: "_xpkg",
    description: "which packages bring which kinds",
    url: "/api/v1/openapi.json",
    endpoints: &["/api/v1"],
};

/// Keeps the catalog true to the registry until there is a reason to stop.
pub(crate) async fn follow(
    registry: Registry,
    index: Arc<Index>,
    temporary: PathBuf,
    stop: impl Future<Output = ()>,
) {
    let tell = |trouble: &Trouble| {
        let what = "the catalog falls behind";
        output::fail(&match trouble {
            Trouble::Registry(error) => super::failed(what, error),
            error => failed(what, error),
        });
    };
    ::follow::follow(registry, index, temporary, stop, tell).await;
}

/// A catalog that was opened; what cannot be used of an old one is read again.
pub(crate) fn opened(index: Result<Index, IndexError>) -> Outcome<Arc<Index>> {
    index.map(Arc::new).map_err(|error| failed("cannot open the catalog", &error))
}

/// The catalog and its pages, for those whom a registry with these options admits.
pub(crate) fn routes(index: Arc<Index>, options: Options, plane: Option<ShownPlane>) -> Router {
    let gate = Arc::new(RegistryGate(options));
    let (pass, plane) = plane.map_or((None, None), |it| (Some(it.pass), Some(it.source)));
    let shown = Exhibition { index: Some(index.clone()), gate: gate.clone(), pass, plane };
    ::catalog::http::router(index, gate).merge(::explorer::http::router(shown))
}

/// A control plane beside a catalog, and what opens its pages.
pub(crate) struct ShownPlane {
    pub(crate) pass: Pass,
    pub(crate) source: Arc<dyn PlaneSource>,
}

/// Pages about a control plane alone, for those who call this address by its names.
pub(crate) fn plane_pages(
    source: Arc<dyn PlaneSource>,
    address: SocketAddr,
    pass: Option<Pass>,
) -> Router {
    let options = Options { hosts: Hosts::of(address, &[]).always(), ..Options::open() };
    let gate = Arc::new(RegistryGate(options));
    ::explorer::http::router(Exhibition { index: None, gate, pass, plane: Some(source) })
}

fn failed(what: &str, error: &dyn std::error::Error) -> Failure {
    let hint = "check the disk and the data directory; catalog.db may be removed at any time, and \
                is made again";
    Failure::new(what, hint).because(error)
}
