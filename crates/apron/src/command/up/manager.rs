//! The package manager of a control plane that was brought up here: the one that `apron manager`
//! runs, with hands that need no sockets.

use super::Request;
use super::home::Home;
use crate::args::cluster::NAMESPACE;
use crate::command::manager::{assemble, say};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use api::meta::{PackageKind, PermissionRequest};
use controller::cache::Cache;
use controller::{Entry, Manager, Movement, Voice};
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::Transport;
use tokio::sync::watch::Receiver;

/// Objects of one kind that are looked at at once.
const CONCURRENCY_MAX: usize = 10;
/// How often everything is looked at though nothing happened.
const SYNC_INTERVAL: Duration = Duration::from_secs(3600);

/// A manager for that API server, who fetches packages that way.
pub(super) async fn manager(
    request: &Request,
    home: &Home,
    client: kube::Client,
    transport: Transport,
    environment: &Settings,
) -> Outcome<Manager> {
    let cache = Cache::open(home.join("packages")).map_err(|error| {
        let hint = "name another directory with --data-dir, or make this one writable";
        Failure::new("cannot keep packages", hint).because(&error)
    })?;
    let keychain = Keychain::from_files(&environment.auth_files).await.map_err(|error| {
        let hint = "repair or remove the file of credentials";
        Failure::new("cannot read the stored credentials", hint).because(&error)
    })?;
    let silent = |_: &Entry<'_>| {};
    let voice: Voice = if request.verbose { Arc::new(say) } else { Arc::new(silent) };
    Ok(Manager::new(assemble(client, transport, keychain, cache, settings(), voice)))
}

/// How a manager is set up if nobody says otherwise.
pub(crate) fn settings() -> controller::Settings {
    controller::Settings {
        identity: format!("apron-up-{}", std::process::id()),
        namespace: NAMESPACE.to_owned(),
        service_account: "crossplane".to_owned(),
        group_suffix: api::crd::SUFFIX.to_owned(),
        default_registry: oci::reference::DOCKER_HUB.to_owned(),
        movement: Movement::Upgrades,
        runs: vec![PackageKind::Provider, PackageKind::Function],
        authority: controller::AUTHORITY.to_owned(),
        lifetimes: controller::Lifetimes::default(),
        allowed: vec![PermissionRequest::everything()],
        allowed_role: None,
        manages_roles: true,
        concurrency_max: CONCURRENCY_MAX,
        sync_interval: SYNC_INTERVAL,
        crossplane_version: controller::CROSSPLANE_VERSION.to_owned(),
        defers_definitions: false,
        elects_leader: false,
        lease: controller::lease::Timing::default(),
        installs_definitions: true,
    }
}

/// Manages packages until told to stop.
pub(super) async fn run(manager: Manager, stop: Receiver<bool>) {
    if let Err(error) = manager.run(stop).await {
        let hint = "stop it and start it again; if that does not help, use another --data-dir";
        output::fail(&Failure::new("packages are not managed", hint).because(&error));
    }
}
