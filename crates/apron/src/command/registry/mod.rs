//! `registry`: serve packages from a directory, and look after that directory.

pub(crate) mod catalog;
mod control;
pub(crate) mod exchange;
pub(crate) mod keep;
mod listen;
pub(crate) mod mirror;
pub(crate) mod password;
pub(crate) mod serve;
pub(crate) mod tls;
pub(crate) mod user;

use crate::failure::{Failure, Outcome};
use crate::settings as environment;
use ::registry::{Error, OpenError, Registry, Settings};
use listen::Doors;
use std::path::Path;

/// What to do with a registry.
pub(crate) enum Request {
    Serve(Box<serve::Request>),
    Collect(keep::Collect),
    Scrub(keep::Scrub),
    Rebuild(keep::Rebuild),
    Import(exchange::Import),
    Export(exchange::Export),
    User(user::Request),
    Password(password::Request),
}

/// Does it.
pub(crate) async fn run(request: &Request, environment: &environment::Settings) -> Outcome {
    match request {
        Request::Serve(request) => serve::run(request, environment).await,
        Request::Collect(request) => keep::collect(request).await,
        Request::Scrub(request) => keep::scrub(request).await,
        Request::Rebuild(request) => keep::rebuild(request).await,
        Request::Import(request) => exchange::import(request).await,
        Request::Export(request) => exchange::export(request).await,
        Request::User(request) => user::run(request),
        Request::Password(request) => password::run(request, environment),
    }
}

/// Opens a data directory that nobody else uses.
pub(crate) fn open(directory: &Path, settings: Settings) -> Outcome<Registry> {
    Registry::open(directory, settings).map_err(|error| cannot_open(directory, &error))
}

/// The same; what it means that another process uses the directory is for the caller to say.
pub(crate) fn open_alone(
    directory: &Path,
    settings: Settings,
    in_use: impl FnOnce() -> Failure,
) -> Outcome<Registry> {
    Registry::open(directory, settings).map_err(|error| match error {
        OpenError::InUse(_) => in_use(),
        other => cannot_open(directory, &other),
    })
}

/// Opens a data directory that is there already: looking after nothing is a mistake.
fn open_existing(directory: &Path) -> Outcome<Registry> {
    if directory.join("oci-layout").exists() {
        return open(directory, Settings::default());
    }
    Err(Failure::new(
        format!("{} is not the data directory of a registry", directory.display()),
        "say which it is with --data-dir; `apron registry serve` makes one",
    ))
}

/// Who stands at the door of a registry for this machine, and how much they let in.
pub(crate) fn doors() -> (Doors, edge::accept::Limits) {
    let limits = crate::args::limit::Limits::local();
    (Doors::new(&limits, None, Vec::new()), listen::limits(&limits))
}

fn cannot_open(directory: &Path, error: &OpenError) -> Failure {
    let hint = match error {
        OpenError::InUse(_) => {
            "stop the registry that uses it first; `apron registry gc` works while it runs"
        }
        OpenError::DatabaseMissing(_) => {
            "make the database again with `apron registry rebuild`, or choose another --data-dir"
        }
        OpenError::Format { .. } => "use the version of apron that wrote it, or a later one",
        _ => "check the directory, its permissions and the disk",
    };
    Failure::new(format!("cannot open the registry in {}", directory.display()), hint)
        .because(error)
}

fn failed(what: &str, error: &Error) -> Failure {
    let hint = match error {
        Error::SpaceLow => "free some space on the disk, or run `apron registry gc`",
        _ => "check the disk and the data directory, then try again",
    };
    Failure::new(what, hint).because(error)
}
