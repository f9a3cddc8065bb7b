//! The registry of a control plane, and who may use it: whoever has the credential that its
//! kubeconfig tells.

use super::Request;
use super::home::Home;
use super::vouched::Vouched;
use crate::cluster::kubeconfig::{self, OwnRegistry};
use crate::command::registry::{self as own_registry, catalog};
use crate::failure::{Failure, Outcome};
use crate::output;
use ::catalog::Index;
use ::explorer::pass::Pass;
use ::explorer::plane::PlaneSource;
use ::registry::auth::{Auth, Mode, Users};
use ::registry::hosts::Hosts;
use ::registry::{Options, Registry};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The user whose key is in the kubeconfig.
const USER: &str = "apron";
/// The label of that key; a new one takes the place of the old.
const LABEL: &str = "up";

/// A registry and the ways into it.
pub(super) struct Images {
    pub(super) registry: Registry,
    /// What is in its packages.
    pub(super) index: Arc<Index>,
    /// For whoever has the credential.
    pub(super) outer: axum::Router,
    /// For this process.
    pub(super) inner: axum::Router,
    pub(super) vouched: Vouched,
    /// The address that opens the explorer.
    pub(super) explorer: String,
    /// What the kubeconfig says of it.
    pub(super) own: OwnRegistry,
}

/// Opens the registry of a control plane that listens there.
pub(super) fn images(
    request: &Request,
    home: &Home,
    address: SocketAddr,
    source: Arc<dyn PlaneSource>,
) -> Outcome<Images> {
    let directory = home.join("registry");
    let settings = ::registry::Settings::default();
    let registry = if request.in_memory {
        Registry::in_memory(settings, SystemTime::now)
    } else {
        own_registry::open_alone(&directory, settings, || is_up_already(home))?
    };
    check_address(&directory, address)?;
    let password = credential(&directory, &home.join("kubeconfig"))?;
    let kept = (!request.in_memory).then(|| directory.join("vouched.json"));
    let vouched = Vouched::open(kept)?;
    let settings = ::registry::auth::Settings {
        mode: Mode::Private,
        ..::registry::auth::Settings::new(&directory)
    };
    let auth = Auth::open(settings).map_err(|error| cannot_guard(&error))?;
    let (hosts, extensions) = (Hosts::of(address, &[]).always(), vec![catalog::EXTENSION]);
    let options = Options { hosts, extensions, ..Options::guarded(auth) };
    let index = open_catalog(request, home)?;
    let pass = Pass::from_key(&password, address);
    let outer = ::registry::router(registry.clone(), options.clone()).merge(catalog::routes(
        index.clone(),
        options,
        Some(catalog::ShownPlane { pass: pass.clone(), source }),
    ));
    let inner = ::registry::router(registry.clone(), Options::open()).merge(catalog::routes(
        index.clone(),
        Options::open(),
        None,
    ));
    Ok(Images {
        outer: vouched.within(outer, Some(&password)),
        inner: vouched.within(inner, None),
        registry,
        index,
        vouched,
        explorer: pass.address(address),
        own: OwnRegistry { address, credential: Some((USER.to_owned(), password)) },
    })
}

fn is_up_already(home: &Home) -> Failure {
    let kubeconfig = home.join("kubeconfig");
    Failure::new(
        format!("a control plane is up already with the data in {}", home.path().display()),
        format!(
            "use it: `export KUBECONFIG={}`; or bring up another one beside it with --data-dir or \
             --in-memory",
            kubeconfig.display()
        ),
    )
}

/// The catalog of the registry, beside it; one that is kept in memory is new each time.
fn open_catalog(request: &Request, home: &Home) -> Outcome<Arc<Index>> {
    if request.in_memory {
        return catalog::opened(Index::create(&home.join(catalog::FILE)));
    }
    catalog::opened(Index::open(&home.join("registry").join(catalog::FILE)))
}

/// Other machines may come only if somebody said who.
fn check_address(directory: &Path, address: SocketAddr) -> Outcome {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let users = Users::read(directory).map_err(|error| cannot_guard(&error))?;
    if users.users.keys().any(|name| name != USER) {
        output::say("passwords travel unprotected without TLS");
        return Ok(());
    }
    Err(Failure::new(
        format!("{address} can be reached from other machines, and this registry has no users"),
        format!(
            "listen on 127.0.0.1, or add one with `apron registry user add NAME --data-dir {}`",
            directory.display()
        ),
    ))
}

/// The key that the last kubeconfig has, if it is still good, or a new one.
fn credential(directory: &Path, kubeconfig: &Path) -> Outcome<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let before = kubeconfig::registry_of_file(kubeconfig).and_then(|own| own.credential);
    let users = Users::read(directory).map_err(|error| cannot_guard(&error))?;
    let good = |key: &String| users.owner_of_key(key, now) == Some(USER);
    if let Some((_, key)) = before.filter(|(_, key)| good(key)) {
        return Ok(key);
    }
    let made = Users::change(directory, |users| users.add_key(USER, LABEL));
    made.map_err(|error| cannot_guard(&error))
}

fn cannot_guard(error: &dyn std::error::Error) -> Failure {
    let hint = "check the data directory and its permissions, or use another --data-dir";
    Failure::new("cannot tell who may use the registry", hint).because(error)
}
