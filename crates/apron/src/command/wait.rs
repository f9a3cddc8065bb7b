//! `wait`: until packages are as they should be.

use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::wait::{self, Goal};
use crate::failure::Outcome;
use crate::output;
use crate::settings::Settings;
use inventory::{InstallObject, Installed, Inventory, Which};
use std::time::Duration;

/// For what, and for how long.
pub(crate) struct Request {
    /// All that are installed, if none is named.
    pub(crate) which: Vec<Which>,
    pub(crate) goal: Goal,
    pub(crate) timeout: Duration,
    pub(crate) cluster: ClusterArguments,
}

/// Waits.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    let which = if request.which.is_empty() {
        let inventory = Inventory::gather(&cluster).await?;
        let installs = inventory.installs.iter().map(InstallObject::which);
        inventory.packages.iter().map(Installed::which).chain(installs).collect()
    } else {
        request.which.clone()
    };
    let inventory = wait::until(&cluster, &which, request.goal, request.timeout).await?;
    for one in &which {
        match inventory.find_object(one) {
            Ok(one) => {
                output::print(format_args!("{} {}", one.id(), one.state(&inventory).word()));
            }
            Err(_) => output::print(format_args!("{} gone", one.name)),
        }
    }
    Ok(())
}
