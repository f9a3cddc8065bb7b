//! What programs print.

use crate::logs::{LogSource, LogWriter};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

/// How much of an exec's output is kept.
const EXEC_OUTPUT_MAX: usize = 10 << 10;

/// How long output is waited for after the end of a container. All its processes are gone then, so the pipe has an end,
/// unless one of them gave it to another container: a machine that is busy is waited for.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// How long output of an exec is waited for, whose program may have left others running.
const EXEC_LAST_WORDS: Duration = Duration::from_secs(2);

/// The pipes of a container, being written to its log.
pub(super) struct LoggedOutput {
    pumps: [JoinHandle<()>; 2],
}

impl LoggedOutput {
    /// Opens the log, and begins to read.
    pub(super) fn begin(
        directory: &Path,
        attempt: u32,
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> Result<Self, String> {
        let log = LogWriter::open(directory, attempt).map_err(|error| error.to_string())?;
        let log = Arc::new(Mutex::new(log));
        let stdout = Receiver::from_owned_fd(stdout).map_err(|error| error.to_string())?;
        let stderr = Receiver::from_owned_fd(stderr).map_err(|error| error.to_string())?;
        let pumps = [
            tokio::spawn(pump(stdout, log.clone(), || LogSource::Stdout)),
            tokio::spawn(pump(stderr, log, || LogSource::Stderr)),
        ];
        Ok(Self { pumps })
    }

    /// Waits for what is still in the pipes. The log is closed then.
    pub(super) async fn finish(self) {
        let deadline = tokio::time::Instant::now() + LAST_WORDS;
        for mut pump in self.pumps {
            if tokio::time::timeout_at(deadline, &mut pump).await.is_err() {
                pump.abort();
                let _ = pump.await;
            }
        }
    }
}

/// What cannot be written, because the disk is full for instance, is lost: the program goes on.
async fn pump(mut pipe: Receiver, log: Arc<Mutex<LogWriter>>, source: fn() -> LogSource) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write(source(), bytes);
    }
}

/// The output of an exec, being read.
pub(super) struct CapturedOutput {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl CapturedOutput {
    /// Begins to read.
    pub(super) fn begin(pipe: OwnedFd) -> Result<Self, String> {
        let mut pipe = Receiver::from_owned_fd(pipe).map_err(|error| error.to_string())?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = kept.clone();
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                let mut keep = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let room = EXEC_OUTPUT_MAX.saturating_sub(keep.len());
                keep.extend(buffer.iter().take(count.min(room)));
            }
        });
        Ok(Self { kept, reader })
    }

    /// What was printed, after the end of the program. What it left running may still hold the pipe.
    pub(super) async fn finish(mut self) -> String {
        if tokio::time::timeout(EXEC_LAST_WORDS, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned()
    }
}
