//! `registry serve`: the registry on an address, until it is told to stop.

use super::listen::{Doors, limits};
use super::mirror;
use super::tls::{self, Tls};
use super::{catalog, control, keep, open};
use crate::args::limit::Limits;
use crate::failure::{Failure, Outcome};
use crate::listen;
use crate::output;
use crate::panics::contain;
use crate::settings as environment;
use ::catalog::Index;
use ::registry::auth::oidc::{Config, Oidc};
use ::registry::auth::{Auth, Mode, Users};
use ::registry::forwarded::serve_behind_proxies;
use ::registry::hosts::Hosts;
use ::registry::limits::BLOB_SIZE_MAX;
use ::registry::{Collect, Missing, Options, Registry, Settings, Versions};
use edge::network::Network;
use futures::FutureExt as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How to serve.
pub(crate) struct Request {
    pub(crate) directory: PathBuf,
    pub(crate) listen: String,
    pub(crate) insecure_open: bool,
    /// Names it answers to while it asks nobody.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) htpasswd: Option<PathBuf>,
    pub(crate) public_url: Option<String>,
    pub(crate) tls: Option<tls::Files>,
    pub(crate) mutable_versions: bool,
    pub(crate) allow_missing: bool,
    pub(crate) space_reserve: u64,
    pub(crate) lease: Duration,
    /// Zero means never.
    pub(crate) gc_interval: Duration,
    pub(crate) mirror: mirror::Request,
    pub(crate) limits: Limits,
    /// Whom to trust for robots' tokens, in a file, and the authorities behind that.
    pub(crate) oidc: Option<PathBuf>,
    pub(crate) oidc_ca_file: Option<PathBuf>,
    pub(crate) audit_size_max: u64,
    pub(crate) trusted_proxies: Vec<String>,
}

/// Serves until a signal ends it.
pub(crate) async fn run(request: &Request, environment: &environment::Settings) -> Outcome {
    let listener = TcpListener::bind(&request.listen).await;
    let listener = listener.map_err(|error| cannot_listen(request, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(request, &error))?;
    let proxies: Outcome<Vec<Network>> =
        request.trusted_proxies.iter().map(|it| parse_network(it)).collect();
    let proxies = proxies?;
    let auth = guard(request, address, environment)?;
    let tls = request.tls.as_ref().map(Tls::load).transpose()?;
    let settings = Settings {
        lease: request.lease,
        space_reserve: request.space_reserve,
        versions: if request.mutable_versions { Versions::Move } else { Versions::Stay },
        missing: if request.allow_missing { Missing::Accept } else { Missing::Refuse },
        blob_size_max: request.limits.blob_size_max.unwrap_or(BLOB_SIZE_MAX),
        quota: request.limits.quota,
    };
    let registry = open(&request.directory, settings)?;
    let mut options = Options::guarded(auth.clone());
    options.hosts = hosts(request, address);
    options.budgets = request.limits.budgets.clone();
    options.extensions.push(catalog::EXTENSION);
    options.mirrors =
        mirror::mirrors(&request.mirror, environment, &registry, &*options.access).await?;
    let index = catalog::opened(Index::open(&request.directory.join(catalog::FILE)))?;
    let router = ::registry::router(registry.clone(), options.clone())
        .merge(auth.routes())
        .merge(catalog::routes(index.clone(), options, None));
    tokio::spawn(auth.clone().keep_fresh());
    if let Some(tls) = &tls {
        tokio::spawn(tls.clone().keep_fresh());
    }
    // Before anybody is told that it serves: whoever ends it at once ends it cleanly.
    let stop = listen::stop()?.shared();
    if !request.gc_interval.is_zero() {
        tokio::spawn(collect_regularly(registry.clone(), request.gc_interval, stop.clone()));
    }
    let temporary = environment.temporary.clone();
    tokio::spawn(catalog::follow(registry.clone(), index, temporary, stop.clone()));
    control::listen(&request.directory, registry.clone());
    introduce(request, address);
    let router = behind_proxies(router, proxies.clone(), is_secure(request));
    let doors = Doors::new(&request.limits, tls, proxies);
    edge::accept::serve(listener, router, doors, limits(&request.limits), stop).await;
    registry.flush_views().await;
    output::say("stopped");
    Ok(())
}

/// The service as its proxies and TLS have it; as it is if there is neither.
fn behind_proxies(router: axum::Router, proxies: Vec<Network>, is_secure: bool) -> axum::Router {
    if proxies.is_empty() && !is_secure {
        return router;
    }
    let is_proxy = move |address| proxies.iter().any(|network| network.holds(address));
    serve_behind_proxies(router, is_proxy, is_secure)
}

fn parse_network(text: &str) -> Outcome<Network> {
    Network::parse(text).ok_or_else(|| {
        Failure::new(
            format!("`{text}` is not an address or a network"),
            "--trusted-proxy takes 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32",
        )
    })
}

/// Names that it answers to while it asks nobody who they are.
fn hosts(request: &Request, address: SocketAddr) -> Hosts {
    let public = request.public_url.as_deref().and_then(|url| url.parse::<axum::http::Uri>().ok());
    let public = public.and_then(|url| url.host().map(str::to_owned));
    let names: Vec<String> = request.allowed_hosts.iter().cloned().chain(public).collect();
    Hosts::of(address, &names)
}

/// Who may do what; nobody is asked as long as there are no users, and then the address must be
/// one that only this machine can reach.
fn guard(
    request: &Request,
    address: SocketAddr,
    environment: &environment::Settings,
) -> Outcome<Arc<Auth>> {
    let local = address.ip().is_loopback();
    let scheme = if request.tls.is_some() { "https" } else { "http" };
    let known = || (!address.ip().is_unspecified()).then(|| format!("{scheme}://{address}"));
    let users = Users::exist(&request.directory);
    let oidc = trust(request, environment)?;
    let asks =
        users || request.htpasswd.is_some() || request.mode == Mode::Private || oidc.is_some();
    if asks || local || request.insecure_open {
        let settings = ::registry::auth::Settings {
            htpasswd: request.htpasswd.clone(),
            mode: request.mode,
            address: public(request)?.or_else(known),
            names: request.public_url.is_none().then(|| hosts(request, address)),
            open_without_users: !asks,
            budgets: request.limits.budgets.clone(),
            audit_size_max: request.audit_size_max,
            oidc,
            ..::registry::auth::Settings::new(&request.directory)
        };
        let auth = Auth::open(settings).map_err(|error| cannot_guard(&error))?;
        if asks {
            warn(request, &auth, local);
        }
        return Ok(auth);
    }
    Err(Failure::new(
        format!("{address} can be reached from other machines, and this registry has no users"),
        "add one with `apron registry user add`, listen on 127.0.0.1, or let anybody push and \
         delete with --insecure-open",
    ))
}

/// Says what whoever serves with users should know.
fn warn(request: &Request, auth: &Auth, local: bool) {
    if !local && request.tls.is_none() {
        output::say("passwords travel unprotected without TLS: use --tls-cert, or a proxy");
    }
    if !auth.has_users() && request.oidc.is_none() {
        output::say("nobody can sign in yet: add somebody with `apron registry user add`");
    }
}

/// Whose tokens count, beside our own.
fn trust(request: &Request, environment: &environment::Settings) -> Outcome<Option<Arc<Oidc>>> {
    let Some(path) = &request.oidc else { return Ok(None) };
    let bytes = fs_err::read(path).map_err(|error| Failure::file(&error))?;
    let config = Config::parse(&bytes).map_err(|error| {
        Failure::new(
            format!("cannot tell from {} whose tokens to trust", path.display()),
            "it holds {\"issuers\": [{\"issuer\", \"audience\", \"mappings\": [{\"claims\", \"user\", \
             \"repositories\", \"actions\"}]}]}",
        )
        .because(&error)
    })?;
    let transport = mirror::transport(request.oidc_ca_file.as_ref(), environment)?;
    Ok(Some(Oidc::new(config, &transport)))
}

/// Whether clients come over TLS, to us or to a proxy before us.
fn is_secure(request: &Request) -> bool {
    let public = request.public_url.as_deref();
    request.tls.is_some() || public.is_some_and(|url| url.starts_with("https://"))
}

/// The address clients were told, if it is one.
fn public(request: &Request) -> Outcome<Option<String>> {
    let Some(url) = &request.public_url else { return Ok(None) };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".:/-_[]".contains(&byte);
    let bare = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match bare {
        Some(bare) if !bare.is_empty() && bare.bytes().all(fits) => Ok(Some(url.clone())),
        _ => Err(Failure::new(
            format!("`{url}` is not an address of a registry"),
            "--public-url takes a scheme and a host, such as https://registry.example.org",
        )),
    }
}

fn cannot_guard(error: &dyn std::error::Error) -> Failure {
    let hint = "check the data directory and --htpasswd, and their permissions";
    Failure::new("cannot tell who may use this registry", hint).because(error)
}

fn cannot_listen(request: &Request, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => "another program listens there; choose another --listen",
        std::io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose another",
        _ => "--listen takes an address and a port, such as 127.0.0.1:5000",
    };
    Failure::new(format!("cannot listen on {}", request.listen), hint).because(error)
}

fn introduce(request: &Request, address: SocketAddr) {
    let scheme = if request.tls.is_some() { "https" } else { "http" };
    let place = request.directory.display();
    output::print(format_args!(
        "serving {} from {place}",
        output::bold(format_args!("{scheme}://{address}"))
    ));
    output::print(format_args!("  look  {scheme}://{address}/ (what is in its packages)"));
    output::print(format_args!("  push  apron push -f package.xpkg {address}/team/package:v1.0.0"));
    output::print(format_args!("  pull  apron pull {address}/team/package:v1.0.0"));
    output::print("  stop  Ctrl-C");
}

/// Collects garbage again and again, until there is a reason to stop.
pub(crate) async fn collect_regularly(
    registry: Registry,
    interval: Duration,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = &mut stop => return,
        }
        let Some(done) = contain(registry.collect(&Collect::default())).await else { continue };
        match done {
            Ok(done) if done == ::registry::Collected::default() => {}
            Ok(done) => output::say(format_args!("collected {}", keep::summary(&done))),
            Err(error) => output::fail(&super::failed("cannot collect garbage", &error)),
        }
    }
}
