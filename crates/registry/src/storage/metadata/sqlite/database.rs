//! One connection that writes, a few that read.
//!
//! Changes are closures. Whoever finds the writing connection free leads: it takes every change
//! that waits into one transaction, commits once, and only then tells each of them; the others
//! sleep until told. Many pushes share one flush of the disk, nobody hears "done" before it is,
//! and a push that is alone commits on the thread it is on. Readers see the last commit and
//! never wait for a writer (WAL).
//!
//! A commit that fails may have happened: its frames can be in the log, to be found there by
//! whoever opens the database after a crash. Until something else has been written over them it
//! is in doubt, so that comes first before any other change, and changes that have run know what
//! is so for good.

use super::schema;
use crate::error::{Error, OpenError};
use crate::limits::{GROUP_COMMIT_MAX, READERS_MAX};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{TryRecvError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::vec::IntoIter;

/// A change that ran and waits for the commit.
type Ran = Box<dyn FnOnce(Result<(), Error>) + Send>;
/// A change that waits for its turn, or to hear why it gets none; it says what becomes of the
/// transaction.
type Work = Box<dyn FnOnce(Result<Turn<'_, '_>, Error>) -> (Ran, End) + Send>;
type Turn<'a, 'connection> = (&'a Transaction<'connection>, Company);

/// Whether a change has its transaction for itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Others,
}

/// What becomes of a transaction after a change.
enum End {
    Commit,
    Undo,
    Broken(rusqlite::Error),
}

/// The metadata of all repositories.
pub(super) struct Database {
    writer: Mutex<Writer>,
    readers: Readers,
}

struct Writer {
    /// Not here while somebody leads.
    pen: Option<Pen>,
    waiting: VecDeque<(Thread, Work)>,
}

/// The connection that writes.
struct Pen {
    connection: Connection,
    /// Whether a commit failed, and may be found in the log after a crash.
    doubt: bool,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// Opens the database.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let pen = Pen { connection: schema::open_writer(path)?, doubt: false };
        let writer = Writer { pen: Some(pen), waiting: VecDeque::new() };
        let readers = Readers { path: path.to_owned(), idle: Mutex::default() };
        Ok(Self { writer: Mutex::new(writer), readers })
    }

    /// Closes it, with everything in the one file.
    pub(super) fn close(self) -> Result<(), OpenError> {
        drop(self.readers);
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(Pen { connection, .. }) = writer.pen else { return Ok(()) };
        connection.pragma_update(None, "journal_mode", "DELETE")?;
        Ok(connection.close().map_err(|(_, error)| error)?)
    }

    /// Runs a change; when this returns `Ok`, it is on the disk.
    pub(super) fn write<T, F>(&self, change: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (answer, answered) = sync_channel(1);
        let work: Work = Box::new(move |turn| {
            let (result, end) = match turn {
                Ok((transaction, Company::Alone)) => alone(transaction, change),
                Ok((transaction, Company::Others)) => behind_savepoint(transaction, change),
                Err(error) => (Err(error), End::Undo),
            };
            let tell = move |committed: Result<(), Error>| {
                let _ = answer.send(result.and_then(|value| committed.map(|()| value)));
            };
            (Box::new(tell), end)
        });
        self.writer().waiting.push_back((thread::current(), work));
        loop {
            match answered.try_recv() {
                Ok(result) => return result,
                Err(TryRecvError::Disconnected) => return Err(Error::Closed),
                Err(TryRecvError::Empty) if self.lead() => {}
                Err(TryRecvError::Empty) => thread::park(),
            }
        }
    }

    /// Commits what waits, if nobody else does.
    fn lead(&self) -> bool {
        let (mut pen, group) = {
            let mut writer = self.writer();
            let Some(pen) = writer.pen.take() else { return false };
            let count = writer.waiting.len().min(GROUP_COMMIT_MAX);
            let group: Vec<_> = writer.waiting.drain(..count).collect();
            (pen, group)
        };
        let (threads, works): (Vec<Thread>, Vec<Work>) = group.into_iter().unzip();
        // Whatever happens, the pen comes back: without it nothing would ever be written again.
        let wrote = catch_unwind(AssertUnwindSafe(|| pen.write(works)));
        pen.doubt |= wrote.is_err();
        let mut writer = self.writer();
        writer.pen = Some(pen);
        let next = writer.waiting.front().map(|(thread, _)| thread.clone());
        drop(writer);
        threads.iter().chain(&next).for_each(Thread::unpark);
        true
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a question on a connection of its own.
    pub(super) fn read<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.readers.ask(question)
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
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_MAX {
            idle.push(connection);
        }
        answer
    }
}

/// Runs a change that is the whole transaction.
fn alone<T>(
    transaction: &Transaction<'_>,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> (Result<T, Error>, End) {
    let result = run(transaction, change);
    let end = if result.is_ok() { End::Commit } else { End::Undo };
    (result, end)
}

/// Runs a change so that its failure undoes nothing but itself.
fn behind_savepoint<T>(
    transaction: &Transaction<'_>,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> (Result<T, Error>, End) {
    if let Err(error) = transaction.execute_batch("SAVEPOINT change") {
        return (Err(Error::Closed), End::Broken(error));
    }
    let result = run(transaction, change);
    let end = if result.is_ok() { "RELEASE change" } else { "ROLLBACK TO change; RELEASE change" };
    let end = transaction.execute_batch(end).map_or_else(End::Broken, |()| End::Commit);
    (result, end)
}

/// Runs a change; one that panics has failed, and is undone like any other.
fn run<T>(
    transaction: &Transaction<'_>,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(|| change(transaction)))
        .unwrap_or_else(|_| Err(Error::Io(std::io::Error::other("a change panicked"))))
}

impl Pen {
    /// Runs a group of changes in one transaction. If the database itself fails, all of them
    /// hear of it.
    fn write(&mut self, group: Vec<Work>) {
        let (mut waiting, mut ran) = (group.into_iter(), Vec::new());
        let outcome = self.settle().and_then(|()| self.commit(&mut waiting, &mut ran));
        self.doubt |= outcome.is_err();
        let failure = outcome.err();
        let told = || failure.as_ref().map_or(Ok(()), |error| Err(shared(error)));
        for answer in ran {
            answer(told());
        }
        for work in waiting {
            let (answer, _) = work(told().and(Err(Error::Closed)));
            answer(Ok(()));
        }
    }

    /// Writes over a commit that failed, if there was one.
    fn settle(&mut self) -> rusqlite::Result<()> {
        if self.doubt {
            schema::write_something(&self.connection)?;
            self.doubt = false;
        }
        Ok(())
    }

    fn commit(&mut self, group: &mut IntoIter<Work>, ran: &mut Vec<Ran>) -> rusqlite::Result<()> {
        let company = if group.len() == 1 { Company::Alone } else { Company::Others };
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate)?;
        for work in group {
            let (answer, end) = work(Ok((&transaction, company)));
            ran.push(answer);
            match end {
                End::Commit => {}
                End::Undo => return transaction.rollback(),
                End::Broken(error) => return Err(error),
            }
        }
        transaction.commit()
    }
}

/// The same error for one of many senders.
fn shared(error: &rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone()).into()
        }
        other => Error::Io(std::io::Error::other(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(database: &Database) -> i64 {
        let count = |connection: &Connection| {
            Ok(connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
        };
        database.read(count).unwrap()
    }

    /// H2, the second half: without the pen nobody could write, and everybody would wait.
    #[test]
    fn h2_a_change_that_panics_is_undone_and_others_are_made() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(&directory.path().join("meta.db")).unwrap();
        let execute = |text: &'static str| {
            database.write(move |transaction| Ok(transaction.execute_batch(text)?))
        };
        execute("CREATE TABLE t (a INTEGER)").unwrap();
        let panics = || {
            database.write(|transaction| {
                transaction.execute_batch("INSERT INTO t VALUES (1)")?;
                assert_eq!(transaction.changes(), 7, "it cannot be");
                Ok(())
            })
        };
        for alone in 1..=3 {
            assert!(panics().is_err());
            execute("INSERT INTO t VALUES (2)").unwrap();
            assert_eq!(count(&database), alone);
        }
        std::thread::scope(|scope| {
            for number in 0..32 {
                let (panics, execute) = (&panics, &execute);
                scope.spawn(move || match number % 4 {
                    0 => assert!(panics().is_err()),
                    _ => execute("INSERT INTO t VALUES (3)").unwrap(),
                });
            }
        });
        assert_eq!(count(&database), 3 + 24);
    }
}
