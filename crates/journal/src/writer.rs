//! The one writer: checks each write against what came before it, gives it a version,
//! makes the batch durable, and only then shows it and answers.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::{Disk, DiskError, Expect, Record, Shared, State, Write, WriteError};

/// The most writes that share one sync.
const BATCH_MAX: usize = 256;
/// The most writes that wait for the writer; more wait in their own tasks.
const QUEUE_MAX: usize = 4096;
/// How many versions pass between two compactions of the disk.
const COMPACT_EVERY: u64 = 8192;

pub(crate) enum Writer {
    Inline(Mutex<Core>),
    Thread(mpsc::SyncSender<Job>),
}

pub(crate) enum Job {
    Write(Write, oneshot::Sender<Result<u64, WriteError>>),
    Probe(oneshot::Sender<()>),
    Close(oneshot::Sender<Result<(), WriteError>>),
}

pub(crate) struct Core {
    disk: Box<dyn Disk>,
    shared: Arc<Shared>,
    /// Why the last commit failed.
    broken: Option<Arc<str>>,
    closed: bool,
    compacted: u64,
}

impl Writer {
    pub(crate) fn inline(disk: Box<dyn Disk>, shared: Arc<Shared>) -> Self {
        Self::Inline(Mutex::new(Core::new(disk, shared)))
    }

    pub(crate) fn thread(disk: Box<dyn Disk>, shared: Arc<Shared>) -> Result<Self, DiskError> {
        let (sender, receiver) = mpsc::sync_channel(QUEUE_MAX);
        let mut core = Core::new(disk, shared);
        std::thread::Builder::new()
            .name("log-writer".to_owned())
            .spawn(move || core.serve(&receiver))
            .map_err(DiskError::Thread)?;
        Ok(Self::Thread(sender))
    }

    pub(crate) async fn write(&self, write: Write) -> Result<u64, WriteError> {
        match self {
            Self::Inline(core) => {
                let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
                core.commit(vec![write]).pop().unwrap_or_else(|| Err(writer_gone()))
            }
            Self::Thread(sender) => {
                let (reply, answer) = oneshot::channel();
                Self::enqueue(sender, Job::Write(write, reply)).await?;
                answer.await.map_err(|_| writer_gone())?
            }
        }
    }

    /// Finds out whether trouble is over.
    pub(crate) async fn probe(&self) {
        match self {
            Self::Inline(core) => core.lock().unwrap_or_else(PoisonError::into_inner).probe(),
            Self::Thread(sender) => {
                let (reply, answer) = oneshot::channel();
                if Self::enqueue(sender, Job::Probe(reply)).await.is_ok() {
                    // A writer that has ended is in trouble still.
                    let _ = answer.await;
                }
            }
        }
    }

    /// Commits what waits, then ends.
    pub(crate) async fn close(&self) -> Result<(), WriteError> {
        match self {
            Self::Inline(core) => core.lock().unwrap_or_else(PoisonError::into_inner).close(),
            Self::Thread(sender) => {
                let (reply, answer) = oneshot::channel();
                Self::enqueue(sender, Job::Close(reply)).await?;
                answer.await.map_err(|_| writer_gone())?
            }
        }
    }

    /// Waits without blocking the runtime while the queue is full.
    async fn enqueue(sender: &mpsc::SyncSender<Job>, mut job: Job) -> Result<(), WriteError> {
        loop {
            match sender.try_send(job) {
                Ok(()) => return Ok(()),
                Err(mpsc::TrySendError::Full(back)) => job = back,
                Err(mpsc::TrySendError::Disconnected(_)) => {
                    return Err(writer_gone());
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

impl Core {
    fn new(disk: Box<dyn Disk>, shared: Arc<Shared>) -> Self {
        let compacted = shared.with(|state| state.oldest());
        Self { disk, shared, broken: None, closed: false, compacted }
    }

    /// The writer's life: take what is waiting, commit it together, answer.
    fn serve(&mut self, jobs: &mpsc::Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut next = Some(first);
            let (mut writes, mut replies) = (Vec::new(), Vec::new());
            while let Some(Job::Write(write, reply)) = next {
                writes.push(write);
                replies.push(reply);
                next = if writes.len() < BATCH_MAX { jobs.try_recv().ok() } else { None };
            }
            for (reply, answer) in replies.into_iter().zip(self.commit(writes)) {
                // A client that went away does not need its answer.
                let _ = reply.send(answer);
            }
            match next {
                Some(Job::Close(reply)) => _ = reply.send(self.close()),
                Some(Job::Probe(reply)) => {
                    self.probe();
                    let _ = reply.send(());
                }
                Some(Job::Write(..)) | None => {}
            }
        }
    }

    /// Tries to write, if that failed the last time.
    fn probe(&mut self) {
        if self.broken.is_none() || self.closed {
            return;
        }
        let probed = catch_unwind(AssertUnwindSafe(|| {
            self.mend()?;
            self.disk.probe()
        }));
        match probed {
            Ok(Ok(())) => {
                let version = self.shared.with(|state| state.version());
                self.recover_from_failure(version);
            }
            Ok(Err(error)) => _ = self.fail(&error),
            Err(_) => {}
        }
    }

    /// Leaves the disk in good order. Later writes are refused.
    fn close(&mut self) -> Result<(), WriteError> {
        let closed = self.disk.close().map_err(|error| WriteError::Broken(describe(&error)));
        self.closed = true;
        closed
    }

    /// Commits a batch; the answers are in the order of the writes. A panic costs the batch: what
    /// the disk has of it is what happened.
    fn commit(&mut self, writes: Vec<Write>) -> Vec<Result<u64, WriteError>> {
        let count = writes.len();
        let committed = catch_unwind(AssertUnwindSafe(|| self.commit_batch(writes)));
        committed.unwrap_or_else(|_| {
            if let Err(error) = self.read_again() {
                self.fail(&error);
            }
            let why: Arc<str> = "the writer panicked".into();
            (0..count).map(|_| Err(WriteError::Broken(Arc::clone(&why)))).collect()
        })
    }

    /// Makes the state that of the disk. A disk that keeps nothing has nothing to say.
    fn read_again(&mut self) -> Result<(), DiskError> {
        let limits = self.shared.with(|state| state.limits());
        let found = State::recover(self.disk.recover()?, limits)?;
        let version = found.version();
        if version >= self.shared.with(|state| state.version()) {
            self.shared.with(|state| *state = found);
            self.shared.announce(version);
        }
        Ok(())
    }

    /// Tries to go on after a failure: whatever the disk has of the batch that failed is what
    /// happened, and what takes space without need is given back.
    fn mend(&mut self) -> Result<(), DiskError> {
        self.disk.make_room();
        let version = self.shared.with(|state| state.version());
        if self.disk.holds(version)? { Ok(()) } else { self.read_again() }
    }

    /// Everything works again. History is given up for space: what was deleted on a full disk is
    /// to make room on it.
    fn recover_from_failure(&mut self, version: u64) {
        self.broken = None;
        self.shared.report(None);
        self.compacted = version;
        if self.disk.compact(version).is_ok() {
            self.disk.make_room();
        }
    }

    fn commit_batch(&mut self, writes: Vec<Write>) -> Vec<Result<u64, WriteError>> {
        if self.closed {
            let why = || WriteError::Broken("the server is stopping".into());
            return writes.iter().map(|_| Err(why())).collect();
        }
        if self.broken.is_some()
            && let Err(error) = self.mend()
        {
            let why = self.fail(&error);
            return writes.iter().map(|_| Err(WriteError::Broken(Arc::clone(&why)))).collect();
        }
        let (batch, mut answers) = self.plan(writes);
        if batch.is_empty() {
            return answers;
        }
        if let Err(error) = self.disk.commit(&batch) {
            let why = self.fail(&error);
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(WriteError::Broken(Arc::clone(&why)));
            }
            return answers;
        }
        let (version, oldest) = self.shared.with(|state| {
            for record in batch {
                state.apply(record);
            }
            (state.version(), state.oldest())
        });
        self.shared.announce(version);
        if self.broken.is_some() {
            self.recover_from_failure(version);
        } else {
            self.compact(oldest);
        }
        answers
    }

    /// Checks each write against the state and the writes before it in the same batch.
    fn plan(&self, writes: Vec<Write>) -> (Vec<Record>, Vec<Result<u64, WriteError>>) {
        let mut version = self.shared.with(|state| state.version());
        let mut batch: Vec<Record> = Vec::with_capacity(writes.len());
        let mut pending: HashMap<String, usize> = HashMap::new();
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let found = match pending.get(&write.key) {
                Some(&at) => batch[at]
                    .value
                    .clone()
                    .map(|value| super::Entry { version: batch[at].version, value }),
                None => self.shared.with(|state| state.get(&write.key)),
            };
            let previous = found.as_ref().map_or(0, |entry| entry.version);
            let fits = match write.expect {
                Expect::Absent => found.is_none(),
                Expect::Version(wanted) => previous == wanted && found.is_some(),
            };
            if !fits || (found.is_none() && write.value.is_none()) {
                answers.push(Err(WriteError::Conflict(found)));
                continue;
            }
            version = version.saturating_add(1);
            pending.insert(write.key.clone(), batch.len());
            batch.push(Record { version, key: write.key, value: write.value, previous });
            answers.push(Ok(version));
        }
        (batch, answers)
    }

    fn compact(&mut self, oldest: u64) {
        if oldest < self.compacted.saturating_add(COMPACT_EVERY) {
            return;
        }
        self.compacted = oldest;
        if let Err(error) = self.disk.compact(oldest) {
            self.fail(&error);
        }
    }

    /// After a failed write nobody knows what the disk holds; the next write asks it first.
    fn fail(&mut self, error: &DiskError) -> Arc<str> {
        let why = describe(error);
        self.broken = Some(Arc::clone(&why));
        self.shared.report(Some(&why));
        why
    }
}

fn describe(error: &DiskError) -> Arc<str> {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}").into(),
        None => error.to_string().into(),
    }
}

fn writer_gone() -> WriteError {
    WriteError::Broken("the writer has ended".into())
}
