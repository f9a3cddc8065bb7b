//! What the asker may read, asked inside of the query.
//!
//! Every statement of a question says `readable(repository.name)`, so that what the asker may not
//! read is neither counted nor compared, and does not take a place on a page.

use super::IndexError;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Predicate = dyn Fn(&str) -> bool + Send + Sync;

/// The repositories that an asker may read.
#[derive(Clone)]
pub struct Rights(Arc<Predicate>);

impl Rights {
    /// All of them.
    pub fn all() -> Self {
        Self::when(|_| true)
    }

    /// Those of which a predicate holds.
    pub fn when(may: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may))
    }

    /// Whether the asker may read a repository.
    pub fn allow(&self, repository: &str) -> bool {
        (self.0)(repository)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Rights")
    }
}

/// The asker whose question is being answered; without one nothing is let through.
#[derive(Default)]
struct Asker {
    rights: Option<Rights>,
    /// Rules are asked once for each repository.
    known: HashMap<String, bool>,
}

/// A connection that answers questions.
pub(super) struct Reader {
    connection: Connection,
    asker: Arc<Mutex<Asker>>,
}

impl Reader {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        let asker = Arc::<Mutex<Asker>>::default();
        let shared = asker.clone();
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
        connection.create_scalar_function("readable", 1, flags, move |call| {
            let name = call.get_raw(0).as_str().unwrap_or_default();
            Ok(lock(&shared).may_read(name))
        })?;
        Ok(Self { connection, asker })
    }

    /// Answers a question in one transaction.
    pub(super) fn answer<T>(
        &mut self,
        rights: &Rights,
        question: impl FnOnce(&Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        *lock(&self.asker) = Asker { rights: Some(rights.clone()), known: HashMap::new() };
        let transaction = self.connection.transaction()?;
        let answer = question(&transaction);
        drop(transaction);
        *lock(&self.asker) = Asker::default();
        answer
    }
}

impl Asker {
    fn may_read(&mut self, name: &str) -> bool {
        let Some(rights) = &self.rights else { return false };
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let may = rights.allow(name);
        self.known.insert(name.to_owned(), may);
        may
    }
}

fn lock(asker: &Mutex<Asker>) -> MutexGuard<'_, Asker> {
    asker.lock().unwrap_or_else(PoisonError::into_inner)
}
