//! What the server needs from outside itself: the time, some chance, and a hand that calls
//! others. All are parameters, so that a simulation can hold them still.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::outbound::Outbound;

/// The time and the dice.
pub trait World: Send + Sync {
    /// Seconds since 1970.
    fn now(&self) -> u64;
    /// Any number.
    fn random(&self) -> u64;
    /// A hand that calls others, if there is one.
    fn outbound(&self) -> Option<&dyn Outbound> {
        None
    }
}

/// The real world.
#[derive(Default)]
pub struct SystemWorld {
    seed: RandomState,
    count: AtomicU64,
    hand: Option<Arc<dyn Outbound>>,
}

impl SystemWorld {
    /// The real world, with a hand that calls others.
    pub fn with(hand: Arc<dyn Outbound>) -> Self {
        Self { hand: Some(hand), ..Self::default() }
    }
}

impl World for SystemWorld {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn random(&self) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.count.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
    }

    fn outbound(&self) -> Option<&dyn Outbound> {
        self.hand.as_deref()
    }
}

/// A new object's identity, in the form of a random UUID.
pub fn uid(world: &dyn World) -> String {
    let (high, low) = (world.random(), world.random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        ((low >> 48) & 0x3fff) | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// Five characters that make a generated name unlike others.
pub fn suffix(world: &dyn World) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = world.random();
    let mut text = String::with_capacity(5);
    for _ in 0..5 {
        let at = usize::try_from(rest % ALPHABET.len() as u64).unwrap_or_default();
        text.push(char::from(ALPHABET[at]));
        rest /= ALPHABET.len() as u64;
    }
    text
}
