//! The one writer: checks each write against what came before it, gives it a version,
//! makes the batch durable, and only then shows it and answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::{Disk, DiskError, Expect, Record, Shared, Write, WriteError};

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

pub(crate) struct Job {
    write: Write,
    reply: oneshot::Sender<Result<u64, WriteError>>,
}

pub(crate) struct Core {
    disk: Box<dyn Disk>,
    shared: Arc<Shared>,
    broken: Option<Arc<str>>,
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
        let gone = || WriteError::Broken("the writer has ended".into());
        match self {
            Self::Inline(core) => {
                let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
                core.commit(vec![write]).pop().unwrap_or_else(|| Err(gone()))
            }
            Self::Thread(sender) => {
                let (reply, answer) = oneshot::channel();
                Self::enqueue(sender, Job { write, reply }).await?;
                answer.await.map_err(|_| gone())?
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
                    return Err(WriteError::Broken("the writer has ended".into()));
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

impl Core {
    fn new(disk: Box<dyn Disk>, shared: Arc<Shared>) -> Self {
        let compacted = shared.with(|state| state.oldest());
        Self { disk, shared, broken: None, compacted }
    }

    /// The writer's life: take what is waiting, commit it together, answer.
    fn serve(&mut self, jobs: &mpsc::Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut writes = vec![first.write];
            let mut replies = vec![first.reply];
            while writes.len() < BATCH_MAX {
                let Ok(job) = jobs.try_recv() else { break };
                writes.push(job.write);
                replies.push(job.reply);
            }
            for (reply, answer) in replies.into_iter().zip(self.commit(writes)) {
                // A client that went away does not need its answer.
                let _ = reply.send(answer);
            }
        }
    }

    /// Commits a batch; the answers are in the order of the writes.
    fn commit(&mut self, writes: Vec<Write>) -> Vec<Result<u64, WriteError>> {
        if let Some(why) = &self.broken {
            return writes.iter().map(|_| Err(WriteError::Broken(Arc::clone(why)))).collect();
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
        self.compact(oldest);
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
            version += 1;
            pending.insert(write.key.clone(), batch.len());
            batch.push(Record { version, key: write.key, value: write.value, previous });
            answers.push(Ok(version));
        }
        (batch, answers)
    }

    fn compact(&mut self, oldest: u64) {
        if oldest < self.compacted + COMPACT_EVERY {
            return;
        }
        self.compacted = oldest;
        if let Err(error) = self.disk.compact(oldest) {
            self.fail(&error);
        }
    }

    /// After a failed write nobody knows what the disk holds: never write again.
    fn fail(&mut self, error: &DiskError) -> Arc<str> {
        let why: Arc<str> = match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}").into(),
            None => error.to_string().into(),
        };
        self.broken = Some(Arc::clone(&why));
        why
    }
}
