//! Failures are rationed: a few at once, then one every few seconds, for each address and for
//! each name tried from it.

use crate::budget::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures at once for one name from one address.
const NAME_BURST: u32 = 10;
/// The pause after which that name has one more.
const NAME_PAUSE: Duration = Duration::from_secs(6);
/// Failures at once from one address, whatever the names.
const ADDRESS_BURST: u32 = 100;
/// The pause after which that address has one more.
const ADDRESS_PAUSE: Duration = Duration::from_secs(1);
/// The most addresses and names that are remembered.
const BUCKETS_MAX: usize = 20_000;

type Key = (Option<IpAddr>, Option<String>);

/// What is left of everybody's ration.
#[derive(Default)]
pub(super) struct Limiter {
    buckets: Mutex<HashMap<Key, Bucket>>,
}

/// A bucket is the moment at which it is full again; that is all there is to know.
#[derive(Clone, Copy)]
struct Bucket {
    full_at: Instant,
}

impl Limiter {
    /// Takes one attempt, before it is known how it ends; the wait in seconds if there is none.
    pub(super) fn take(&self, peer: Option<IpAddr>, name: &str, now: Instant) -> Result<(), u64> {
        let peer = peer.map(network);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| bucket.full_at > now);
        }
        if buckets.len() >= BUCKETS_MAX {
            buckets.clear();
        }
        let plan = [
            ((peer, None), ADDRESS_BURST, ADDRESS_PAUSE),
            ((peer, Some(name.to_owned())), NAME_BURST, NAME_PAUSE),
        ];
        let mut next = Vec::new();
        for (key, burst, pause) in plan {
            let full_at = buckets.get(&key).map_or(now, |bucket| bucket.full_at.max(now));
            let full_at = full_at + pause;
            let over = full_at.saturating_duration_since(now).saturating_sub(pause * burst);
            if !over.is_zero() {
                return Err(over.as_secs() + 1);
            }
            next.push((key, Bucket { full_at }));
        }
        buckets.extend(next);
        Ok(())
    }

    /// Gives an attempt back: it was no failure.
    pub(super) fn give_back(&self, peer: Option<IpAddr>, name: &str) {
        let peer = peer.map(network);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, pause) in
            [((peer, None), ADDRESS_PAUSE), ((peer, Some(name.to_owned())), NAME_PAUSE)]
        {
            if let Some(bucket) = buckets.get_mut(&key)
                && let Some(earlier) = bucket.full_at.checked_sub(pause)
            {
                bucket.full_at = earlier;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_run_out_and_come_back() {
        let limiter = Limiter::default();
        let now = Instant::now();
        for _ in 0..NAME_BURST {
            limiter.take(None, "alice", now).unwrap();
        }
        assert_eq!(limiter.take(None, "alice", now), Err(7));
        limiter.take(None, "bob", now).unwrap();
        let elsewhere = Some(IpAddr::from([10, 0, 0, 1]));
        limiter.take(elsewhere, "alice", now).unwrap();
        limiter.take(None, "alice", now + NAME_PAUSE).unwrap();
        assert!(limiter.take(None, "alice", now + NAME_PAUSE).is_err());
        limiter.give_back(None, "alice");
        limiter.take(None, "alice", now + NAME_PAUSE).unwrap();
    }

    #[test]
    fn one_address_cannot_try_every_name() {
        let limiter = Limiter::default();
        let now = Instant::now();
        let tried = (0..1000).filter(|name| limiter.take(None, &name.to_string(), now).is_ok());
        assert_eq!(tried.count(), ADDRESS_BURST as usize);
    }
}
