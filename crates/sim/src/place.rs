//! The place: an API server and a registry in this process, on a clock that stands still until
//! everybody waits.

use apiserver::Server;
use apiserver::auth::Signer;
use apiserver::log::Log;
use apiserver::runtime::Hosting;
use apiserver::world::World;
use axum::Router;
use registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// When the first simulation begins.
pub(crate) const BEGINNING: u64 = 1_700_000_000;

/// A clock that goes with the runtime's, from a beginning that is given.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    beginning: u64,
    started: Instant,
}

impl Clock {
    /// A clock that begins now, and says that it is this many seconds after 1970.
    pub fn start(beginning: u64) -> Self {
        Self { beginning, started: Instant::now() }
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.beginning + self.started.elapsed().as_secs()
    }

    /// The same as conditions write it.
    pub fn text(&self) -> String {
        plan::step::timestamp(i64::try_from(self.seconds()).unwrap_or_default())
    }
}

/// The API server's world: this clock, and dice that fall the same way each time.
struct Still {
    clock: Clock,
    thrown: AtomicU64,
}

impl World for Still {
    fn now(&self) -> u64 {
        self.clock.seconds()
    }

    /// Numbers far apart from each other, in an order that is always the same.
    fn random(&self) -> u64 {
        let number = self.thrown.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }
}

/// An API server and a registry.
pub struct Place {
    /// The objects.
    pub log: Log,
    /// The API server.
    pub server: Router,
    /// The registry.
    pub registry: Router,
    /// The time.
    pub clock: Clock,
    hosting: Hosting,
}

impl Place {
    /// A cluster that begins with what a log has.
    pub async fn new(
        log: Log,
        registry: Router,
        clock: Clock,
        hosting: Hosting,
    ) -> Result<Self, apiserver::log::WriteError> {
        let server = serve(&log, clock, &hosting);
        // A cluster that was there before has what clusters have.
        if log.version() == 1 {
            server.furnish().await?;
        }
        server.attend();
        Ok(Self { log, server: server.router(), registry, clock, hosting })
    }

    /// The cluster as it is now, for those who are not told what happens from now on.
    pub fn frozen(&self) -> Router {
        serve(&self.log.fork(), self.clock, &self.hosting).router()
    }
}

/// An empty registry, whose time stands still.
pub(crate) fn empty_registry() -> Router {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(BEGINNING);
    let kept = Registry::in_memory(registry::Settings::default(), move || now);
    registry::router(kept, registry::Options::open())
}

fn serve(log: &Log, clock: Clock, hosting: &Hosting) -> Arc<Server> {
    // Nobody gets an identity that somebody had in what came before.
    let world = Arc::new(Still { clock, thrown: AtomicU64::new(log.version() << 20) });
    let runtime = hosting.clone();
    let options = apiserver::Options { runtime, signer: signer(), ..Default::default() };
    Server::new(log.clone(), options, world)
}

/// Keys take long to make, and nobody looks at this one.
fn signer() -> Option<Arc<Signer>> {
    static SIGNER: OnceLock<Option<Arc<Signer>>> = OnceLock::new();
    SIGNER.get_or_init(|| Signer::generate().ok().map(Arc::new)).clone()
}
