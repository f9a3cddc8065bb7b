//! Addresses of pods.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

/// Addresses that no pod has.
pub(crate) struct AddressPool {
    gateway: Ipv4Addr,
    given: Mutex<(u8, BTreeSet<u8>)>,
}

impl AddressPool {
    /// The addresses of a network of 24 bits, but the gateway's.
    pub(crate) fn new(gateway: Ipv4Addr) -> Self {
        Self { gateway, given: Mutex::default() }
    }

    /// An address that no pod has; the one that was given back last comes last.
    pub(crate) fn take_address(&self) -> Option<Ipv4Addr> {
        let [a, b, c, own] = self.gateway.octets();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, taken) = &mut *given;
        for _ in 0..=u8::MAX {
            *last = last.wrapping_add(1);
            let is_host = *last != own && *last != 0 && *last != u8::MAX;
            if is_host && taken.insert(*last) {
                return Some(Ipv4Addr::new(a, b, c, *last));
            }
        }
        None
    }

    /// Takes an address back.
    pub(crate) fn give_back(&self, address: Ipv4Addr) {
        let [_, _, _, host] = address.octets();
        self.given.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pods_have_one_address() {
        let pool = AddressPool::new(Ipv4Addr::new(10, 244, 0, 1));
        let all: BTreeSet<_> = std::iter::from_fn(|| pool.take_address()).collect();
        assert_eq!(all.len(), 253);
        assert!(!all.contains(&Ipv4Addr::new(10, 244, 0, 1)));
        pool.give_back(Ipv4Addr::new(10, 244, 0, 77));
        assert_eq!(pool.take_address(), Some(Ipv4Addr::new(10, 244, 0, 77)));
        assert_eq!(pool.take_address(), None);
    }
}
