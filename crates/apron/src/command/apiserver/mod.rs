//! `apiserver`: the Kubernetes API from this process.

pub(crate) mod export;
mod listen;

use crate::cluster::kubeconfig::OwnRegistry;
use crate::failure::{Failure, Outcome};
use crate::listen::stop;
use crate::output;
use crate::panics::contain;
use apiserver::log::{Damage, DiskError, Limits, Log, Sqlite};
use apiserver::runtime::{Hosting, PodLogs, UsageMeter};
use axum::Router;
use edge::accept::serve;
use embed::{Caller, Credentials, FindService, now, tokens};
use listen::Door;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt as _;

/// How often it is looked whether a certificate ends before long.
const LOOK_INTERVAL: Duration = Duration::from_secs(3600);

/// What to serve, and where.
pub(crate) struct Request {
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) in_memory: bool,
    pub(crate) token_auth_file: Option<PathBuf>,
    pub(crate) keep_events: usize,
}

/// What becomes of pods.
pub(crate) struct PodHosting {
    pub(crate) hosting: Hosting,
    /// What has the output of their programs.
    pub(crate) logs: Option<Arc<dyn PodLogs>>,
    /// What counts how much they use.
    pub(crate) usage: Option<Arc<dyn UsageMeter>>,
    /// Finds the way to Services that pods serve.
    pub(crate) find: Option<FindService>,
}

impl PodHosting {
    /// Nothing runs, and Deployments say so.
    pub(crate) fn simulated() -> Self {
        Self { hosting: Hosting::simulated(), logs: None, usage: None, find: None }
    }
}

/// A server that only lacks a socket.
pub(crate) struct Prepared {
    router: Router,
    credentials: Arc<Credentials>,
    log: Log,
}

/// Serves until told to stop.
pub(crate) async fn run(request: &Request) -> Outcome {
    let prepared = prepare(request, PodHosting::simulated()).await?;
    let listener = listen::bind(request.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::file(&error))?;
    let path = request.kubeconfig.clone().unwrap_or_else(|| request.data_dir.join("kubeconfig"));
    prepared.write_kubeconfig(&path, address, None)?;
    let ((door, limits), stop) = (prepared.door(), stop()?);
    announce(request, address, &path);
    serve(listener, prepared.router(), door, limits, stop).await;
    close(&prepared.log).await;
    Ok(())
}

/// Opens the data, and makes what every cluster has.
pub(crate) async fn prepare(request: &Request, pods: PodHosting) -> Outcome<Prepared> {
    let log = open(request)?;
    let pki = request.data_dir.join("pki");
    let credentials = Arc::new(Credentials::open(&pki, now())?);
    let identity = credentials.identity();
    let mut tokens = vec![identity.admin_token()];
    if let Some(file) = &request.token_auth_file {
        tokens.extend(tokens::read(file)?);
    }
    let options = apiserver::Options {
        name: "apron".to_owned(),
        authenticate: true,
        tokens,
        signer: Some(identity.signer()?),
        runtime: pods.hosting,
        logs: pods.logs,
        usage: pods.usage,
        root_ca: Some(identity.authority().to_owned()),
        ..apiserver::Options::default()
    };
    let caller = pods.find.map_or_else(Caller::default, Caller::finding);
    let world = apiserver::world::SystemWorld::with(Arc::new(caller));
    let router = apiserver::router_in(log.clone(), options, Arc::new(world))
        .await
        .map_err(|error| Failure::new("cannot write the first objects", CHECK).because(&error))?;
    tokio::spawn(keep_fresh(Arc::clone(&credentials)));
    tokio::spawn(tell_trouble(log.trouble()));
    Ok(Prepared { router, credentials, log })
}

/// Looks again and again whether a certificate ends before long.
async fn keep_fresh(credentials: Arc<Credentials>) {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        match contain(async { credentials.renew(now()) }).await {
            Some(Ok(true)) => output::say("certificates were about to end and were renewed"),
            Some(Err(failure)) => output::fail(&failure),
            Some(Ok(false)) | None => {}
        }
    }
}

/// Says once that nothing can be written, and once that this is over.
async fn tell_trouble(mut trouble: tokio::sync::watch::Receiver<Option<Arc<str>>>) {
    while trouble.changed().await.is_ok() {
        match trouble.borrow_and_update().as_ref() {
            Some(why) => output::warn(format_args!(
                "the API server cannot write: {why}; reads go on, and writes as soon as it can: \
                 make room on the disk, or delete objects"
            )),
            None => output::warn("the API server can write again"),
        }
    }
}

/// Brings the data into one file, so that a copy of that is a whole copy. What was acknowledged is
/// safe without.
pub(crate) async fn close(log: &Log) {
    if let Err(error) = log.close().await {
        output::warn(format_args!("the data was not brought into one file: {error}"));
    }
}

impl Prepared {
    /// The service, for whoever shows who they are.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// A client in this process, who may do everything.
    pub(crate) fn client(&self) -> kube::Client {
        let administrator = self.credentials.identity().administrator();
        let service = self.router.clone().map_request(
            move |mut request: axum::http::Request<kube::client::Body>| {
                request.extensions_mut().insert(administrator.clone());
                request
            },
        );
        kube::Client::new(service, "default")
    }

    /// The objects, to be closed when everybody has gone.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Who stands at the door, and how much they let in.
    pub(crate) fn door(&self) -> (Door, edge::accept::Limits) {
        (Door::new(Arc::clone(&self.credentials)), listen::LIMITS)
    }

    /// Writes a kubeconfig for the administrator, which names the registry that the cluster looks
    /// into first, if there is one.
    pub(crate) fn write_kubeconfig(
        &self,
        path: &std::path::Path,
        address: SocketAddr,
        registry: Option<&OwnRegistry>,
    ) -> Outcome {
        let extensions = registry.map(OwnRegistry::as_extension).unwrap_or_default();
        self.credentials.write_kubeconfig(path, address, &extensions)
    }
}

const CHECK: &str = "check the disk and the directory, then start again";

fn open(request: &Request) -> Outcome<Log> {
    if request.in_memory {
        return Ok(Log::in_memory());
    }
    let disk =
        Sqlite::open(&request.data_dir).map_err(|error| cannot_open(&request.data_dir, &error))?;
    let limits = Limits { events_max: request.keep_events, ..Limits::default() };
    Log::open(Box::new(disk), limits).map_err(|error| cannot_open(&request.data_dir, &error))
}

fn cannot_open(data_dir: &std::path::Path, error: &DiskError) -> Failure {
    let hint = match error {
        DiskError::InUse(_) => "stop the other server, or give this one its own --data-dir",
        DiskError::Damaged(Damage::Emptied(_)) => {
            "restore the directory from a copy; to begin anew, remove log.sqlite, log.sqlite-wal \
             and log.acknowledged from it; nothing was changed"
        }
        DiskError::Damaged(Damage::Lost { .. } | Damage::Rows(_) | Damage::Acknowledged) => {
            "restore the directory from a copy; to go on with what is left, remove \
             log.acknowledged from it; nothing was changed"
        }
        DiskError::Damaged(Damage::Format(_)) => {
            "use the version of apron that wrote it, or a later one; nothing was changed"
        }
        DiskError::Damaged(_) => "restore the directory from a copy; nothing was changed",
        _ => CHECK,
    };
    let message = format!("cannot open the data in {}", data_dir.display());
    Failure::new(message, hint).because(error)
}

fn announce(request: &Request, address: SocketAddr, path: &std::path::Path) {
    let kept = if request.in_memory {
        "memory only".to_owned()
    } else {
        request.data_dir.display().to_string()
    };
    output::print(format_args!("Serving the Kubernetes API on https://{address} (data: {kept})"));
    output::print(format_args!("Use it:  export KUBECONFIG={}", path.display()));
    output::print("         kubectl api-resources");
    output::print("Runtime: simulated: Deployments are called available, and nothing of them runs");
}
