//! Budgets: how often one client may do something, and how much at once.
//!
//! A budget belongs to somebody at an address: who signs in from two machines has two, and two
//! who share an address do not use up each other's. A bucket is full at first, loses one with
//! every request and gains some every second. Nobody on this machine is counted; a registry
//! behind a proxy has to be told of it, or it takes all clients for the proxy.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most buckets that are remembered.
const BUCKETS_MAX: usize = 50_000;

/// What is counted, and what was refused for its sake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Requests that read.
    Pull,
    /// Requests that write or delete.
    Push,
    /// Requests for tokens.
    Token,
    /// Failed attempts to sign in; their ration is kept by [`crate::auth`].
    SignIn,
    /// Uploads at once.
    Uploads,
    /// Connections at once; their number is kept by whoever accepts them.
    Connections,
    /// Bytes of one blob.
    BlobSize,
    /// Bytes of one repository.
    Quota,
    /// Room on the disk.
    Space,
}

const WORDS: [(&str, Kind); 9] = [
    ("pull", Kind::Pull),
    ("push", Kind::Push),
    ("token", Kind::Token),
    ("sign-in", Kind::SignIn),
    ("uploads", Kind::Uploads),
    ("connections", Kind::Connections),
    ("blob-size", Kind::BlobSize),
    ("quota", Kind::Quota),
    ("space", Kind::Space),
];

/// How fast something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once, after a while of nothing.
    pub burst: u32,
    /// How many each second in the long run; none means that nobody counts.
    pub per_second: u32,
}

/// How much one client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Requests that read.
    pub pulls: Rate,
    /// Requests that write or delete.
    pub pushes: Rate,
    /// Requests for tokens.
    pub tokens: Rate,
    /// Uploads whose bytes arrive at the same time; none means that nobody counts.
    pub uploads_at_once: usize,
    /// Bytes a second that an upload must bring in the long run.
    pub upload_rate_min: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pulls: Rate { burst: 5000, per_second: 500 },
            pushes: Rate { burst: 1000, per_second: 100 },
            tokens: Rate { burst: 200, per_second: 20 },
            uploads_at_once: 64,
            upload_rate_min: crate::limits::UPLOAD_RATE_MIN,
        }
    }
}

impl Rate {
    /// So many a second, and ten seconds' worth at once.
    pub fn per_second(per_second: u32) -> Self {
        Self { burst: per_second.saturating_mul(10), per_second }
    }
}

/// Everybody's budgets, cheap to clone.
#[derive(Clone)]
pub struct Budgets(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// Keys mean nothing outside of this process; two that are the same share a bucket.
    hasher: RandomState,
    /// When each bucket is full again, which is all there is to know.
    buckets: Mutex<HashMap<u64, Instant>>,
    active: Mutex<HashMap<u64, usize>>,
    refused: [AtomicU64; WORDS.len()],
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Budgets {
    /// Budgets of this size.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner {
            settings,
            hasher: RandomState::new(),
            buckets: Mutex::default(),
            active: Mutex::default(),
            refused: Default::default(),
        }))
    }

    /// Takes one from somebody's budget; the seconds to wait if it is used up.
    pub(crate) fn take(&self, kind: Kind, who: &str, peer: Option<IpAddr>) -> Result<(), u64> {
        self.take_then(kind, who, peer, Instant::now())
    }

    fn take_then(
        &self,
        kind: Kind,
        who: &str,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), u64> {
        let Some(peer) = stranger(peer) else { return Ok(()) };
        let settings = &self.0.settings;
        let rate = match kind {
            Kind::Token => settings.tokens,
            Kind::Push => settings.pushes,
            _ => settings.pulls,
        };
        let taken = self.take_at(self.key(kind, who, peer), rate, now);
        taken.inspect_err(|_| self.refused(kind))
    }

    fn take_at(&self, key: u64, rate: Rate, now: Instant) -> Result<(), u64> {
        if rate.per_second == 0 {
            return Ok(());
        }
        let pause = Duration::from_secs(1) / rate.per_second;
        let mut buckets = lock(&self.0.buckets);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, full_at| *full_at > now);
        }
        if buckets.len() >= BUCKETS_MAX {
            buckets.clear();
        }
        let bucket = buckets.entry(key).or_insert(now);
        let full_at = (*bucket).max(now) + pause;
        let over = full_at.saturating_duration_since(now).saturating_sub(pause * rate.burst.max(1));
        if over.is_zero() {
            *bucket = full_at;
            return Ok(());
        }
        Err(over.as_secs() + 1)
    }

    /// A place among somebody's uploads, until it is dropped; `None` if they have too many.
    pub(crate) fn upload(&self, who: &str, peer: Option<IpAddr>) -> Option<Place> {
        let limit = self.0.settings.uploads_at_once;
        let Some(peer) = stranger(peer).filter(|_| limit > 0) else {
            return Some(Place { budgets: None });
        };
        let key = self.key(Kind::Uploads, who, peer);
        let mut active = lock(&self.0.active);
        let count = active.entry(key).or_default();
        if *count >= limit {
            self.refused(Kind::Uploads);
            return None;
        }
        *count += 1;
        Some(Place { budgets: Some((self.clone(), key)) })
    }

    pub(crate) fn upload_rate_min(&self) -> u64 {
        self.0.settings.upload_rate_min
    }

    /// Counts something that was refused.
    pub fn refused(&self, kind: Kind) {
        let found = WORDS.iter().zip(&self.0.refused).find(|((_, it), _)| *it == kind);
        if let Some((_, counter)) = found {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counters, as Prometheus reads them.
    pub(crate) fn metrics(&self, text: &mut String) {
        text.push_str("# TYPE apron_registry_refusals_total counter\n");
        for ((word, _), counter) in WORDS.iter().zip(&self.0.refused) {
            let value = counter.load(Ordering::Relaxed);
            let _ = writeln!(text, "apron_registry_refusals_total{{limit=\"{word}\"}} {value}");
        }
    }

    fn key(&self, kind: Kind, who: &str, peer: IpAddr) -> u64 {
        self.0.hasher.hash_one((kind, who, peer))
    }
}

/// A place among somebody's uploads.
pub(crate) struct Place {
    budgets: Option<(Budgets, u64)>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((budgets, key)) = &self.budgets else { return };
        let mut active = lock(&budgets.0.active);
        if let Some(count) = active.get_mut(key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                active.remove(key);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network of somebody who is not on this machine.
fn stranger(peer: Option<IpAddr>) -> Option<IpAddr> {
    peer.map(|peer| network(peer.to_canonical())).filter(|_| peer.is_some_and(|it| !is_here(it)))
}

fn is_here(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

/// Whoever has one IPv6 address has all of its network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        it @ IpAddr::V4(_) => it,
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const THERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));

    #[test]
    fn a_budget_runs_out_and_comes_back() {
        let budgets = Budgets::default();
        let rate = Rate { burst: 5, per_second: 2 };
        let now = Instant::now();
        let taken = (0..10).filter(|_| budgets.take_at(1, rate, now).is_ok()).count();
        assert_eq!(taken, 5);
        assert_eq!(budgets.take_at(1, rate, now), Err(1));
        assert_eq!(budgets.take_at(2, rate, now), Ok(()), "others have their own");
        let later = now + Duration::from_secs(1);
        let taken = (0..10).filter(|_| budgets.take_at(1, rate, later).is_ok()).count();
        assert_eq!(taken, 2);
        let unlimited = Rate { burst: 0, per_second: 0 };
        assert!((0..1000).all(|_| budgets.take_at(3, unlimited, now).is_ok()));
    }

    #[test]
    fn budgets_are_for_somebody_at_an_address_and_for_strangers_only() {
        let pulls = Rate { burst: 1, per_second: 1 };
        let budgets = Budgets::new(Settings { pulls, ..Settings::default() });
        let now = Instant::now();
        let take = |who: &str, peer| budgets.take_then(Kind::Pull, who, peer, now).is_ok();
        assert!(take("ada", THERE) && !take("ada", THERE));
        assert!(take("bob", THERE), "another name");
        assert!(take("ada", Some(IpAddr::from([192, 0, 2, 2]))), "another address");
        let near = Some(IpAddr::from([127, 0, 0, 1]));
        assert!((0..10).all(|_| take("ada", near) && take("ada", None)));
        let six = |last: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]));
        assert!(take("ada", six(1)) && !take("ada", six(2)), "one network, one budget");
        let mut text = String::new();
        budgets.metrics(&mut text);
        assert!(text.contains("refusals_total{limit=\"pull\"} 2\n"), "{text}");
    }

    #[test]
    fn places_are_given_back() {
        let budgets = Budgets::new(Settings { uploads_at_once: 2, ..Settings::default() });
        let first = budgets.upload("ada", THERE);
        let second = budgets.upload("ada", THERE);
        assert!(first.is_some() && second.is_some());
        assert!(budgets.upload("ada", THERE).is_none());
        assert!(budgets.upload("bob", THERE).is_some());
        drop(first);
        assert!(budgets.upload("ada", THERE).is_some());
        drop(second);
        assert!(lock(&budgets.0.active).is_empty());
    }
}
