//! `manager`: the package manager, beside a cluster or in it.

use crate::cluster::kubeconfig::{self, Choice};
use crate::failure::{Failure, Outcome};
use crate::git::{AllowedPlace, GitPackages, GitSettings};
use crate::listen::{Plain, stop};
use crate::output;
use crate::settings::Settings;
use api::meta::PermissionRequest;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use controller::cache::Cache;
use controller::fetch::Fetcher;
use controller::metrics::Metrics;
use controller::{Entry, Hands, Manager, Voice};
use edge::accept;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::auth::Keychain;
use store::remote::{HttpSettings, Transport, http_client};
use tokio::net::TcpListener;
use tokio::sync::watch::Receiver;

/// Those who ask how the manager is are few.
const PROBES: accept::Limits =
    accept::Limits { connections: 256, streams: 16, hands: 0, drain: Duration::from_secs(2) };
const PROBES_PER_CLIENT: usize = 64;

/// What to manage, and how.
pub(crate) struct Request {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) cache_dir: PathBuf,
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Where packages may be built from.
    pub(crate) git_sources: Vec<AllowedPlace>,
    pub(crate) allowed_permissions: Option<PathBuf>,
    pub(crate) listen: Option<std::net::SocketAddr>,
    pub(crate) settings: controller::Settings,
}

/// Manages packages until told to stop.
pub(crate) async fn run(request: &Request, environment: &Settings) -> Outcome {
    // Before anything else: whoever ends it at once ends it cleanly.
    let stop = stop()?;
    api::crd::definitions(&request.settings.group_suffix).map_err(|error| {
        let hint = "give a --group-suffix such as crossplane.io or ibm.crossplane.io";
        Failure::new("cannot manage packages of that group", hint).because(&error)
    })?;
    elect(&request.settings)?;
    let (kubeconfig, context) = (request.kubeconfig.as_deref(), request.context.as_deref());
    let choice = Choice { kubeconfig, context, impersonation: None };
    let client = kubeconfig::for_watches(choice, environment).await?;
    let hands = hands(request, environment, client).await?;
    let (tell, told) = tokio::sync::watch::channel(false);
    output::say(format_args!(
        "managing packages of {} (cache: {})",
        request.settings.group(),
        request.cache_dir.display()
    ));
    if let Some(address) = request.listen {
        serve(address, Arc::clone(&hands.metrics), told.clone()).await?;
    }
    let mut manager = std::pin::pin!(Manager::new(hands).run(told));
    let ended = tokio::select! {
        ended = &mut manager => ended,
        () = stop => {
            let _ = tell.send(true);
            manager.await
        }
    };
    ended.map_err(|error| {
        let hint = "the manager needs the rights of `apron manager install`, or those of an \
                    administrator; with --leader-election it ends when another one works";
        Failure::new("cannot manage packages", hint).because(&error)
    })?;
    output::say("stopped");
    Ok(())
}

/// A manager that cannot renew its lease must have stopped before another may take it.
fn elect(settings: &controller::Settings) -> Outcome {
    let controller::lease::Timing { duration, deadline, retry } = settings.lease;
    let is_whole = duration.as_secs() > 0 && duration.subsec_nanos() == 0;
    if is_whole && deadline < duration && !deadline.is_zero() && !retry.is_zero() {
        return Ok(());
    }
    let what = "cannot elect a leader with these times";
    let hint = "give whole seconds as --leader-election-lease-duration, a shorter \
                --leader-election-renew-deadline, and a --leader-election-retry-period above 0";
    Err(Failure::new(what, hint))
}

/// Serves what can be asked of a manager, until it stops.
async fn serve(address: SocketAddr, metrics: Arc<Metrics>, mut stop: Receiver<bool>) -> Outcome {
    let failed = |error: std::io::Error| {
        let hint = "give another --listen address; port 0 takes a free one";
        Failure::new(format!("cannot listen on {address}"), hint).because(&error)
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let ready = Arc::clone(&metrics);
    let router = Router::new()
        .route("/metrics", get(async move || metrics.render()))
        .route("/healthz", get(async || "ok"))
        .route(
            "/readyz",
            get(async move || {
                if ready.is_ready() {
                    return (StatusCode::OK, "ok");
                }
                (StatusCode::SERVICE_UNAVAILABLE, "the API server was not reached yet")
            }),
        );
    output::say(format_args!("serving http://{address}/metrics, /healthz and /readyz"));
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    tokio::spawn(accept::serve(listener, router, Plain::new(PROBES_PER_CLIENT), PROBES, stopped));
    Ok(())
}

async fn hands(request: &Request, environment: &Settings, client: Client) -> Outcome<Hands> {
    let cache = Cache::open(&request.cache_dir).map_err(|error| {
        let hint = "name another directory with --cache-dir, or make this one writable";
        Failure::new("cannot keep packages", hint).because(&error)
    })?;
    let keychain = Keychain::from_files(&environment.auth_files).await.map_err(|error| {
        let hint = "repair or remove the file of credentials";
        Failure::new("cannot read the stored credentials", hint).because(&error)
    })?;
    let transport = http_client(&http_settings(request, environment)?).map_err(|error| {
        let hint = "check --ca-bundle-path and the proxy settings";
        Failure::new("cannot set up the connection to registries", hint).because(&error)
    })?;
    let mut settings = request.settings.clone();
    settings.allowed.extend(allowed(request)?);
    let mut hands = assemble(client, transport, keychain, cache, settings, Arc::new(say));
    if !request.git_sources.is_empty() {
        let reaching = GitSettings {
            environment: Settings { temporary: request.cache_dir.clone(), ..environment.clone() },
            ca_file: request.ca_bundle.clone(),
        };
        let git = GitPackages::new(reaching, request.git_sources.clone());
        hands.fetch = hands.fetch.with_git(Arc::new(git));
    }
    Ok(hands)
}

/// Hands for that API server, who fetch packages that way.
pub(super) fn assemble(
    client: Client,
    transport: Transport,
    keychain: Keychain,
    cache: Cache,
    settings: controller::Settings,
    voice: Voice,
) -> Hands {
    let remote = store::remote::Settings {
        user_agent: format!("apron/{}", env!("CARGO_PKG_VERSION")),
        // The manager comes back by itself, and says before long what is in the way.
        tries: 2,
        idle_timeout: Duration::from_secs(30),
        ..store::remote::Settings::default()
    };
    let fetch = Fetcher::new(transport, remote, keychain, cache.clone());
    Hands::new(client, fetch, cache, settings, Arc::new(now), voice)
}

/// What packages may ask for besides what is allowed elsewhere: the rules of the role in a file.
fn allowed(request: &Request) -> Outcome<Vec<PermissionRequest>> {
    let Some(path) = &request.allowed_permissions else { return Ok(Vec::new()) };
    let hint = "write a ClusterRole with rules there, in YAML or JSON";
    let what = || format!("cannot use the permissions in {}", path.display());
    let text = fs_err::read_to_string(path).map_err(|error| Failure::file(&error))?;
    let role: serde_json::Value = serde_saphyr::from_str(&text)
        .map_err(|error| Failure::new(what(), hint).because(&error))?;
    let rules = role["rules"].as_array().ok_or_else(|| Failure::new(what(), hint))?;
    let read = rules.iter().map(PermissionRequest::from_json).collect::<Result<_, _>>();
    read.map_err(|error| Failure::new(what(), hint).because(&error))
}

fn http_settings(request: &Request, environment: &Settings) -> Outcome<HttpSettings> {
    let read = |path: &PathBuf| fs_err::read(path).map_err(|error| Failure::file(&error));
    Ok(HttpSettings {
        ca_bundle: request.ca_bundle.as_ref().map(read).transpose()?,
        proxies: environment.proxies.clone(),
        ..HttpSettings::default()
    })
}

pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// One line of JSON for each thing there is to say.
pub(super) fn say(entry: &Entry<'_>) {
    let mut line = serde_json::json!({
        "time": now(),
        "level": if entry.is_trouble { "warning" } else { "info" },
        "controller": entry.controller,
    });
    if !entry.object.is_empty() {
        line["object"] = entry.object.into();
    }
    line["message"] = entry.message.into();
    if entry.is_trouble {
        output::say_always(line);
    } else {
        output::say(line);
    }
}
