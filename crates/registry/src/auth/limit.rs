//! Failures are rationed: a few at once, then one every few seconds, for each address and for
//! each name tried from it. Keys and tokens are too long to be guessed: what is wrong about them is
//! rationed apart, so that it keeps nobody else at that address from signing in.

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

type Key = (Option<IpAddr>, What);

/// What failures are counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    /// Passwords, whatever the name.
    Passwords,
    /// Passwords for one name.
    Name(String),
    /// Keys and tokens.
    Keys,
}

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
    /// Takes one attempt with a password, before it is known how it ends; the wait in seconds if
    /// there is none.
    pub(super) fn take(&self, peer: Option<IpAddr>, name: &str, now: Instant) -> Result<(), u64> {
        let peer = peer.map(network);
        self.take_all(
            [
                ((peer, What::Passwords), ADDRESS_BURST, ADDRESS_PAUSE),
                ((peer, What::Name(name.to_owned())), NAME_BURST, NAME_PAUSE),
            ],
            now,
        )
    }

    /// Counts a key or a token that was wrong; the wait in seconds if there were too many.
    pub(super) fn count_wrong_key(&self, peer: Option<IpAddr>, now: Instant) -> Result<(), u64> {
        let key = (peer.map(network), What::Keys);
        self.take_all([(key, ADDRESS_BURST, ADDRESS_PAUSE)], now)
    }

    fn take_all<const N: usize>(
        &self,
        plan: [(Key, u32, Duration); N],
        now: Instant,
    ) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| bucket.full_at > now);
        }
        if buckets.len() >= BUCKETS_MAX {
            buckets.clear();
        }
        let mut next = Vec::new();
        for (key, burst, pause) in plan {
            let full_at = buckets.get(&key).map_or(now, |bucket| bucket.full_at.max(now));
            let Some(full_at) = full_at.checked_add(pause) else { return Err(u64::MAX) };
            let over =
                full_at.saturating_duration_since(now).saturating_sub(pause.saturating_mul(burst));
            if !over.is_zero() {
                return Err(over.as_secs().saturating_add(1));
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
        let name = What::Name(name.to_owned());
        for (key, pause) in [((peer, What::Passwords), ADDRESS_PAUSE), ((peer, name), NAME_PAUSE)] {
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
    fn l3_wrong_keys_use_up_nothing_but_their_own_ration() {
        let limiter = Limiter::default();
        let now = Instant::now();
        let counted = (0..1000).filter(|_| limiter.count_wrong_key(None, now).is_ok()).count();
        assert_eq!(counted, ADDRESS_BURST as usize);
        limiter.take(None, "alice", now).unwrap();
        limiter.take(None, "", now).unwrap();
    }

    #[test]
    fn one_address_cannot_try_every_name() {
        let limiter = Limiter::default();
        let now = Instant::now();
        let tried = (0..1000).filter(|name| limiter.take(None, &name.to_string(), now).is_ok());
        assert_eq!(tried.count(), ADDRESS_BURST as usize);
    }
}
