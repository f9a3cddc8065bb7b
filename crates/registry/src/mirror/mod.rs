//! Repositories of other registries, fetched when somebody first pulls them and kept.
//!
//! ```text
//!   pull docker.io/library/alpine:3
//!     │ here, and looked at lately ─────────────────────────────► served
//!     │ here, but not looked at lately ─► HEAD there ─ the same ─► served
//!     │                                    │  another ─► fetched, tag moved, served
//!     │                                    └ nobody answers ────► served, with a warning
//!     └ not here ─► fetched once for all who ask; blobs are served while they arrive
//! ```
//!
//! Which registries are asked is decided by whoever starts this one ([`Source`]); a request can
//! only choose among them. What arrives is verified before its last bytes go on to anybody, and
//! it is recorded like anything pushed: durable, collected by the same rules, served without the
//! other registry from then on. A crash in the middle leaves an upload nobody continues, which
//! the next start removes. Access is decided before any of this, by the names used here.

mod blobs;
mod flight;
mod manifests;
mod memory;
mod source;
mod trouble;

pub(crate) use blobs::{Coming, Found};
pub(crate) use manifests::Stated;
pub use source::{Source, SourceError};
pub use trouble::Trouble;

use crate::error::Error;
use crate::limits::MIRROR_FETCHES_MAX;
use crate::name::Name;
use crate::storage::{Manifest, Registry};
use flight::Flights;
use memory::Memory;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Remote;
use store::remote::Client;
use tokio::sync::Semaphore;

/// A registry to mirror.
#[derive(Clone)]
pub struct Upstream {
    /// Where it is, and what its repositories are called here.
    pub source: Source,
    /// The way there, with credentials for it and nobody else.
    pub client: Client,
    /// How long a tag is served before the registry is asked again.
    pub fresh: Duration,
}

/// All registries that are mirrored; none, mostly.
#[derive(Clone, Default)]
pub struct Mirrors(Vec<Arc<Mirror>>);

/// One of them.
pub(crate) struct Mirror {
    upstream: Upstream,
    /// Mirrors whose names begin with this one's, and whose repositories are theirs.
    inner: Vec<Source>,
    registry: Registry,
    memory: Memory,
    manifests: Arc<Flights<Result<Arc<Manifest>, Halt>>>,
    lists: Arc<Flights<Result<Arc<Vec<String>>, Halt>>>,
    openings: Arc<Flights<Result<Found, Halt>>>,
    coming: Mutex<HashMap<String, Arc<Coming>>>,
    permits: Arc<Semaphore>,
    counters: Counters,
}

/// What was done since the start.
#[derive(Default)]
struct Counters {
    manifests: AtomicU64,
    blobs: AtomicU64,
    bytes: AtomicU64,
    stale: AtomicU64,
    failures: AtomicU64,
}

/// Why an errand for many came to nothing.
#[derive(Clone, Debug)]
pub(crate) enum Halt {
    /// The other registry.
    Trouble(Trouble),
    /// Our own storage.
    Here(Arc<Error>),
}

impl Mirrors {
    /// Mirrors of some registries, kept in this one.
    pub fn new(registry: &Registry, upstreams: Vec<Upstream>) -> Self {
        let sources: Vec<Source> = upstreams.iter().map(|it| it.source.clone()).collect();
        let mirror = |upstream: Upstream| {
            let inner = sources.iter().filter(|it| it.is_within(&upstream.source)).cloned();
            Arc::new(Mirror::new(registry.clone(), inner.collect(), upstream))
        };
        let mut all: Vec<_> = upstreams.into_iter().map(mirror).collect();
        // The longest prefix that fits counts.
        all.sort_by_key(|it| std::cmp::Reverse(it.upstream.source.prefix().as_str().len()));
        Self(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mirror a repository belongs to.
    pub(crate) fn of(&self, name: &Name) -> Option<&Arc<Mirror>> {
        self.0.iter().find(|mirror| mirror.upstream.source.covers(name))
    }

    /// What a repository of the registry `namespace` is called here.
    pub(crate) fn within(&self, namespace: &str, name: &Name) -> Option<Name> {
        let mirror = self.0.iter().find(|it| it.upstream.source.prefix().as_str() == namespace)?;
        Name::parse(&format!("{}/{name}", mirror.upstream.source.prefix()))
    }

    /// The counters, as Prometheus reads them.
    pub(crate) fn metrics(&self, text: &mut String) {
        type Pick = fn(&Counters) -> &AtomicU64;
        let series: [(&str, Pick); 5] = [
            ("manifests_fetched", |it| &it.manifests),
            ("blobs_fetched", |it| &it.blobs),
            ("bytes_fetched", |it| &it.bytes),
            ("stale_answers", |it| &it.stale),
            ("failures", |it| &it.failures),
        ];
        for (name, counter) in series.into_iter().filter(|_| !self.is_empty()) {
            let _ = writeln!(text, "# TYPE apron_registry_mirror_{name}_total counter");
            for mirror in &self.0 {
                let value = counter(&mirror.counters).load(Ordering::Relaxed);
                let prefix = mirror.upstream.source.prefix();
                let _ = writeln!(
                    text,
                    "apron_registry_mirror_{name}_total{{prefix=\"{prefix}\"}} {value}"
                );
            }
        }
    }
}

impl Mirror {
    fn new(registry: Registry, inner: Vec<Source>, upstream: Upstream) -> Self {
        Self {
            upstream,
            inner,
            registry,
            memory: Memory::default(),
            manifests: Arc::default(),
            lists: Arc::default(),
            openings: Arc::default(),
            coming: Mutex::default(),
            permits: Arc::new(Semaphore::new(MIRROR_FETCHES_MAX)),
            counters: Counters::default(),
        }
    }

    /// Where things come from, for messages.
    pub(crate) fn source(&self) -> &Source {
        &self.upstream.source
    }

    /// Whether a repository comes from here, and not from another mirror or from a push.
    fn owns(&self, name: &Name) -> bool {
        self.upstream.source.covers(name) && !self.inner.iter().any(|it| it.covers(name))
    }

    fn remote(&self, name: &Name) -> Result<Remote, Halt> {
        let repository = self.upstream.source.repository(name);
        let repository = repository.ok_or(Halt::Trouble(Trouble::Missing))?;
        Ok(self.upstream.client.repository(repository))
    }

    /// What is known to be wrong already is not asked for again.
    fn check(&self, name: &Name, reference: &str) -> Result<(), Halt> {
        self.memory.trouble(name, reference).map_or(Ok(()), |it| Err(Halt::Trouble(it)))
    }

    /// Takes note of what went wrong.
    fn halt(&self, name: &Name, reference: &str, error: &store::Error) -> Halt {
        self.note(name, reference, Trouble::of(error))
    }

    fn note(&self, name: &Name, reference: &str, trouble: Trouble) -> Halt {
        self.memory.note(name, reference, &trouble);
        if trouble != Trouble::Missing {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        Halt::Trouble(trouble)
    }

    /// The error a client is told, where nothing is here to be served instead.
    fn error(&self, halt: Halt, missing: Error) -> Error {
        match halt {
            Halt::Trouble(Trouble::Missing) => missing,
            Halt::Trouble(trouble) => {
                Error::Upstream { host: self.upstream.source.host().to_owned(), trouble }
            }
            Halt::Here(error) => Error::Shared(error),
        }
    }

    /// What a client is told beside an answer that may be old.
    fn warning(&self, trouble: &Trouble) -> String {
        self.counters.stale.fetch_add(1, Ordering::Relaxed);
        format!("299 - \"kept from earlier: {} {trouble}\"", self.upstream.source.host())
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Here(Arc::new(error))
    }
}

/// An errand that broke down.
fn landed<T>(result: Option<Result<T, Halt>>) -> Result<T, Halt> {
    let broken = || Error::Io(std::io::Error::other("an errand to another registry broke down"));
    result.unwrap_or_else(|| Err(broken().into()))
}
