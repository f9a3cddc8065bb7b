//! One thread that writes, a few connections that read.
//!
//! Changes are closures sent to the writer. It gathers those that wait into one transaction,
//! each behind a savepoint of its own, commits once, and only then tells each sender: many
//! pushes share one flush of the disk, and nobody hears "done" before it is. Readers see the
//! last commit and never wait for the writer (WAL).

use super::schema;
use crate::error::{Error, OpenError};
use crate::limits::{GROUP_COMMIT_MAX, READERS_MAX, WRITES_WAITING_MAX};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// A change that ran and waits for the commit.
type Ran = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// A change that waits for the writer; it says whether the transaction is still usable.
type Work = Box<dyn FnOnce(&Transaction<'_>) -> (Ran, rusqlite::Result<()>) + Send>;

/// The metadata of all repositories.
#[derive(Clone)]
pub(super) struct Database {
    writer: mpsc::Sender<Work>,
    readers: Arc<Readers>,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Database {
    /// Opens the database and starts its writer, which ends when the last handle is gone.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let connection = schema::open_writer(path)?;
        let (writer, queue) = mpsc::channel(WRITES_WAITING_MAX);
        std::thread::Builder::new()
            .name("registry-writer".to_owned())
            .spawn(move || write_all(connection, queue))?;
        let readers = Readers {
            path: path.to_owned(),
            idle: Mutex::default(),
            permits: Semaphore::new(READERS_MAX),
        };
        Ok(Self { writer, readers: Arc::new(readers) })
    }

    /// Runs a change; when this returns `Ok`, it is on the disk.
    pub(super) async fn write<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |transaction| {
            let (result, usable) = behind_savepoint(transaction, change);
            let tell = move |committed: Result<(), Error>| {
                let _ = answer.send(result.and_then(|value| committed.map(|()| value)));
            };
            (Box::new(tell), usable)
        });
        self.writer.send(work).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Runs a question on a connection of its own, off the async threads.
    pub(super) async fn read<T, F>(&self, question: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let readers = self.readers.clone();
        let _permit = self.readers.permits.acquire().await.map_err(|_| Error::Closed)?;
        blocking(move || readers.ask(question)).await
    }
}

impl Readers {
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        let answer = question(&connection);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        answer
    }
}

/// Runs blocking work off the async threads.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Io(std::io::Error::other(error))),
    }
}

/// Runs a change so that its failure undoes nothing but itself.
fn behind_savepoint<T>(
    transaction: &Transaction<'_>,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> (Result<T, Error>, rusqlite::Result<()>) {
    if let Err(error) = transaction.execute_batch("SAVEPOINT change") {
        return (Err(Error::Closed), Err(error));
    }
    let result = change(transaction);
    let end = if result.is_ok() { "RELEASE change" } else { "ROLLBACK TO change; RELEASE change" };
    (result, transaction.execute_batch(end))
}

fn write_all(mut connection: Connection, mut queue: mpsc::Receiver<Work>) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_COMMIT_MAX
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        commit(&mut connection, group);
    }
}

/// Runs a group of changes in one transaction. If the database itself fails, all of them hear of
/// it, and those that did not run are told to try again.
fn commit(connection: &mut Connection, group: Vec<Work>) {
    let mut ran = Vec::with_capacity(group.len());
    let outcome = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for work in group {
            let (answer, usable) = work(&transaction);
            ran.push(answer);
            usable?;
        }
        transaction.commit()
    })();
    let failure = outcome.err().map(Arc::new);
    for answer in ran {
        answer(match &failure {
            None => Ok(()),
            Some(error) => Err(shared(error)),
        });
    }
}

/// The same error for one of many senders.
fn shared(error: &Arc<rusqlite::Error>) -> Error {
    match error.as_ref() {
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone()).into()
        }
        other => Error::Io(std::io::Error::other(other.to_string())),
    }
}
