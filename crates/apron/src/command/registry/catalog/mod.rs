//! The catalog of a registry: what is in its packages, kept true while it is served.

mod follow;
mod gate;

pub(crate) use follow::follow;

use crate::failure::{Failure, Outcome};
use ::catalog::{Index, IndexError};
use ::registry::Options;
use std::path::Path;
use std::sync::Arc;

/// The catalog's file, beside the registry's.
pub(crate) const FILE: &str = "catalog.db";

/// Opens the catalog in a file; what cannot be used of an old one is read again.
pub(crate) fn open(path: &Path) -> Outcome<Arc<Index>> {
    opened(Index::open(path))
}

/// Opens the catalog of a registry that ends with the process.
pub(crate) fn open_passing(path: &Path) -> Outcome<Arc<Index>> {
    opened(Index::create(path))
}

fn opened(index: Result<Index, IndexError>) -> Outcome<Arc<Index>> {
    index.map(Arc::new).map_err(|error| failed("cannot open the catalog", &error))
}

/// The catalog as a service, for those whom a registry with these options admits.
pub(crate) fn routes(index: Arc<Index>, options: Options) -> axum::Router {
    ::catalog::http::router(index, Arc::new(gate::Rules(options)))
}

fn failed(what: &str, error: &IndexError) -> Failure {
    let hint = "check the disk and the data directory; catalog.db may be removed at any time, and \
                is made again";
    Failure::new(what, hint).because(error)
}
