//! How many connections one address has. What counts as one address is the caller's choice: a
//! network of the sixth version, say.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The connections of all addresses.
pub struct Seats {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_client: usize,
}

/// One connection of an address; it counts until it is dropped.
pub struct Seat {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    peer: IpAddr,
}

impl Seats {
    /// So many for each address.
    pub fn new(per_client: usize) -> Self {
        Self { taken: Arc::default(), per_client }
    }

    /// A seat, unless too many from there have one; an exempt address is counted, and let in.
    pub fn take(&self, peer: IpAddr, is_exempt: bool) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(peer).or_default();
        if *count >= self.per_client && !is_exempt {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Seat { taken: Arc::clone(&self.taken), peer })
    }

    /// Whether no address has a seat.
    pub fn are_free(&self) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}
