//! The explorer of a registry: pages made of its catalog, for those who may pull.

use super::gate::Rules;
use ::catalog::Index;
use ::explorer::http::{Explorer, router};
use ::explorer::pass::{Pass, router_with_pass};
use ::registry::Options;
use axum::Router;
use std::sync::Arc;

/// The explorer of a registry with these options.
pub(crate) fn explorer_pages(index: Arc<Index>, options: Options) -> Router {
    let gate = Arc::new(Rules(options));
    router(Explorer { index, gate, host: None, stands_in: false })
}

/// The explorer of a control plane, for those who have the pass or the key.
pub(crate) fn control_plane_pages(index: Arc<Index>, options: Options, pass: &Pass) -> Router {
    let gate = Arc::new(Rules(options));
    router_with_pass(Explorer { index, gate, host: None, stands_in: true }, pass)
}
