//! The package manager of a control plane that was brought up here: the one that `apron manager`
//! runs, with hands that need no sockets.

use super::Request;
use super::home::Home;
use crate::command::manager::{assemble, say};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::registry::auth_files;
use crate::settings::Settings;
use controller::cache::Cache;
use controller::{CatalogAddress, Entry, Manager, Voice};
use std::net::SocketAddr;
use std::sync::Arc;
use store::auth::Keychain;
use store::remote::Transport;
use tokio::sync::watch::Receiver;

/// A manager for that API server, who fetches packages that way; the catalog of the own registry,
/// which listens there, is the first that it asks.
pub(super) async fn manager(
    request: &Request,
    home: &Home,
    client: kube::Client,
    (registry, transport): (SocketAddr, Transport),
    environment: &Settings,
) -> Outcome<Manager> {
    let cache = Cache::open(home.join("packages")).map_err(|error| {
        let hint = "name another directory with --data-dir, or make this one writable";
        Failure::new("cannot keep packages", hint).because(&error)
    })?;
    let files = auth_files(request.auth_file.as_deref(), environment);
    let keychain = Keychain::from_files(&files).await.map_err(|error| {
        let hint = "repair or remove the file of credentials";
        Failure::new("cannot read the stored credentials", hint).because(&error)
    })?;
    let silent = |_: &Entry<'_>| {};
    let voice: Voice = if request.verbose { Arc::new(say) } else { Arc::new(silent) };
    let own = CatalogAddress { registry: registry.to_string(), stands_in: true };
    let mut settings = request.open.clone().applied(settings());
    settings.catalogs = vec![own];
    settings.catalogs.extend(request.catalogs.iter().cloned());
    Ok(Manager::new(assemble(client, transport, keychain, cache, settings, voice)))
}

/// How a manager is set up if nobody says otherwise.
pub(crate) fn settings() -> controller::Settings {
    controller::Settings::alone(&format!("apron-up-{}", std::process::id()))
}

/// Manages packages until told to stop.
pub(super) async fn run(manager: Manager, stop: Receiver<bool>) {
    if let Err(error) = manager.run(stop).await {
        let hint = "stop it and start it again; if that does not help, use another --data-dir";
        output::fail(&Failure::new("packages are not managed", hint).because(&error));
    }
}
