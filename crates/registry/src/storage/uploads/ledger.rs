//! Who has how many uploads under way, and how many bytes each repository is about to get.
//!
//! No holder can take all places there are: each has a share, and mirrors have places of their
//! own that nobody else can take. Bytes on their way count against a repository's quota from the
//! moment they arrive.

use crate::budget::network;
use crate::limits::{UPLOADS_MAX, UPLOADS_PER_HOLDER_MAX, UPLOADS_RESERVED};
use crate::name::Name;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The principal of uploads that mirrors begin; no user can be called like this.
const MIRROR: &str = "mirror:";

/// The account that an upload is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A mirror, which fetches for everybody.
    Mirror,
    /// A user, wherever they are.
    User(String),
    /// Everybody without a name at an address; none if it is not known.
    Address(Option<IpAddr>),
}

impl Holder {
    /// Whoever makes a request, by name or by address.
    pub(crate) fn new(principal: &str, peer: Option<IpAddr>) -> Self {
        match principal {
            "" => Self::Address(peer.map(network)),
            MIRROR => Self::Mirror,
            name => Self::User(name.to_owned()),
        }
    }

    /// The name an upload is continued by.
    pub(crate) fn principal(&self) -> &str {
        match self {
            Self::Mirror => MIRROR,
            Self::User(name) => name,
            Self::Address(_) => "",
        }
    }
}

/// All uploads under way, counted.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    places: HashMap<Holder, usize>,
    staged: HashMap<Name, u64>,
}

impl Books {
    /// Whether a holder may begin one more upload.
    fn has_place(&self, holder: &Holder) -> bool {
        let all: usize = self.places.values().sum();
        let mirrors = self.places.get(&Holder::Mirror).copied().unwrap_or_default();
        if *holder == Holder::Mirror {
            return all < UPLOADS_MAX;
        }
        let own = self.places.get(holder).copied().unwrap_or_default();
        let others = all.saturating_sub(mirrors);
        own < UPLOADS_PER_HOLDER_MAX && others < UPLOADS_MAX.saturating_sub(UPLOADS_RESERVED)
    }
}

impl Ledger {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for an upload; `None` if the holder has too many, or everybody together.
    pub(super) fn enter(&self, holder: &Holder, repository: &Name) -> Option<Stake> {
        let mut books = self.books();
        if !books.has_place(holder) {
            return None;
        }
        let places = books.places.entry(holder.clone()).or_default();
        *places = places.saturating_add(1);
        drop(books);
        Some(Stake {
            ledger: self.clone(),
            holder: holder.clone(),
            repository: repository.clone(),
            staged: 0,
        })
    }

    /// The place of an upload that was there before, whatever there is by now.
    pub(super) fn reenter(&self, holder: &Holder, repository: &Name, staged: u64) -> Stake {
        let mut books = self.books();
        let places = books.places.entry(holder.clone()).or_default();
        *places = places.saturating_add(1);
        drop(books);
        let (ledger, holder, repository) = (self.clone(), holder.clone(), repository.clone());
        let mut stake = Stake { ledger, holder, repository, staged: 0 };
        stake.set(staged);
        stake
    }

    /// Bytes on their way to a repository.
    pub(super) fn staged(&self, repository: &Name) -> u64 {
        self.books().staged.get(repository).copied().unwrap_or_default()
    }
}

/// What one upload counts for, until it is dropped.
pub(super) struct Stake {
    ledger: Ledger,
    holder: Holder,
    repository: Name,
    staged: u64,
}

impl Stake {
    /// Lets it count for so many bytes.
    pub(super) fn set(&mut self, staged: u64) {
        let mut books = self.ledger.books();
        let sum = books.staged.entry(self.repository.clone()).or_default();
        *sum = sum.saturating_sub(self.staged).saturating_add(staged);
        if *sum == 0 {
            books.staged.remove(&self.repository);
        }
        self.staged = staged;
    }

    /// Lets it count for more bytes, unless its repository then has more on their way than it may.
    pub(super) fn grow(&mut self, more: u64, most: u64) -> bool {
        let mut books = self.ledger.books();
        let sum = books.staged.entry(self.repository.clone()).or_default();
        if sum.saturating_add(more) > most {
            return false;
        }
        *sum = sum.saturating_add(more);
        self.staged = self.staged.saturating_add(more);
        true
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        self.set(0);
        let mut books = self.ledger.books();
        if let Some(count) = books.places.get_mut(&self.holder) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                books.places.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::parse("team/p").unwrap()
    }

    fn fill(ledger: &Ledger, holder: &Holder) -> Vec<Stake> {
        std::iter::from_fn(|| ledger.enter(holder, &name())).collect()
    }

    #[test]
    fn m4_no_holder_takes_the_places_of_others() {
        let ledger = Ledger::default();
        let address = |last: u8| Holder::new("", Some(IpAddr::from([192, 0, 2, last])));
        let mallory = fill(&ledger, &Holder::new("mallory", None));
        assert_eq!(mallory.len(), UPLOADS_PER_HOLDER_MAX);
        assert!(ledger.enter(&Holder::new("alice", None), &name()).is_some());
        assert_eq!(fill(&ledger, &address(1)).len(), UPLOADS_PER_HOLDER_MAX);
        assert!(ledger.enter(&address(2), &name()).is_some());
        // Wherever they come from: one user is one, and one network is one.
        let elsewhere = Holder::new("mallory", Some(IpAddr::from([192, 0, 2, 9])));
        assert!(ledger.enter(&elsewhere, &name()).is_none());
        let six = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        assert_eq!(Holder::new("", Some(six(1))), Holder::new("", Some(six(2))));
        drop(mallory);
        assert!(ledger.enter(&elsewhere, &name()).is_some());
        assert!(ledger.books().places.is_empty());
    }

    #[test]
    fn m4_uploads_of_before_a_restart_have_places() {
        let (ledger, holder) = (Ledger::default(), Holder::new("mallory", None));
        let kept: Vec<Stake> =
            (0..UPLOADS_PER_HOLDER_MAX).map(|_| ledger.reenter(&holder, &name(), 1)).collect();
        assert!(ledger.enter(&holder, &name()).is_none());
        drop(kept);
        assert!(ledger.enter(&holder, &name()).is_some());
    }

    #[test]
    fn m4_mirrors_have_places_that_all_users_together_cannot_take() {
        let ledger = Ledger::default();
        let users: Vec<Vec<Stake>> =
            (0..100).map(|number| fill(&ledger, &Holder::User(format!("user-{number}")))).collect();
        let taken: usize = users.iter().map(Vec::len).sum();
        assert_eq!(taken, UPLOADS_MAX - UPLOADS_RESERVED);
        assert_eq!(fill(&ledger, &Holder::Mirror).len(), UPLOADS_RESERVED);
    }

    #[test]
    fn m9_bytes_count_while_their_upload_lasts() {
        let ledger = Ledger::default();
        let (one, two) = (Holder::new("one", None), Holder::new("two", None));
        let mut first = ledger.enter(&one, &name()).unwrap();
        let mut second = ledger.reenter(&two, &name(), 400);
        assert!(first.grow(600, 1000) && !first.grow(1, 1000) && !second.grow(1, 1000));
        first.set(100);
        assert_eq!(ledger.staged(&name()), 500);
        assert!(second.grow(u64::MAX - 500, u64::MAX));
        drop(second);
        assert_eq!(ledger.staged(&name()), 100);
        drop(first);
        assert!(ledger.books().staged.is_empty());
    }
}
