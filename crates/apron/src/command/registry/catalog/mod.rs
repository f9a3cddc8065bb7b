//! The catalog of a registry: what is in its packages, kept true while it is served.

mod follow;
mod gate;

pub(crate) use follow::follow;

use crate::failure::{Failure, Outcome};
use ::catalog::{Index, IndexError};
use ::explorer::pass::Pass;
use ::registry::Options;
use std::sync::Arc;

/// The catalog's file, beside the registry's.
pub(crate) const FILE: &str = "catalog.db";

/// A catalog that was opened; what cannot be used of an old one is read again.
pub(crate) fn opened(index: Result<Index, IndexError>) -> Outcome<Arc<Index>> {
    index.map(Arc::new).map_err(|error| failed("cannot open the catalog", &error))
}

/// The catalog and its pages, for those whom a registry with these options admits.
pub(crate) fn routes(index: Arc<Index>, options: Options, pass: Option<Pass>) -> axum::Router {
    let gate = Arc::new(gate::Rules(options));
    let pages = ::explorer::http::router(index.clone(), gate.clone(), pass);
    ::catalog::http::router(index, gate).merge(pages)
}

fn failed(what: &str, error: &IndexError) -> Failure {
    let hint = "check the disk and the data directory; catalog.db may be removed at any time, and \
                is made again";
    Failure::new(what, hint).because(error)
}
