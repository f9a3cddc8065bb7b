//! `registry password`: what the registry of a control plane that was brought up here asks for.

use crate::cluster::kubeconfig::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use std::path::PathBuf;

/// Whose.
pub(crate) struct Request {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
}

/// Prints it, for another program to read.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let Request { kubeconfig, context } = request;
    let (kubeconfig, context) = (kubeconfig.as_deref(), context.as_deref());
    let choice = Choice { kubeconfig, context, impersonation: None };
    let own = kubeconfig::own_registry(choice, settings)?;
    let (_, password) = own.and_then(|own| own.credential).ok_or_else(|| {
        Failure::new(
            "the kubeconfig names no registry with a password",
            "use the kubeconfig that `apron up` prints: with KUBECONFIG, or --kubeconfig",
        )
    })?;
    output::print(password);
    Ok(())
}
