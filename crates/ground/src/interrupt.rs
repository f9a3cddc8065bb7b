//! What happens when somebody asks a command to stop: it ends soon and cleans up after itself.
//!
//! A command that waits is dropped where it waits, and its temporary files with it. One that
//! works notices between two files or pieces. One that does neither in time, or is asked twice,
//! is ended where it is; what it was writing has no name yet.

use crate::failure::{Failure, Outcome};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// How long a command may take to clean up.
const GRACE: Duration = Duration::from_secs(2);

/// How long a step that touches files may go on once nobody waits for it.
const SETTLE: Duration = Duration::from_millis(250);

/// The signal that came, or 0.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
static ARRIVED: Notify = Notify::const_new();

/// Listens for requests to stop from now on. Where that is not possible they end the process at
/// once, as they would without us.
pub fn watch() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let signals = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    };
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return };
    let wait = async move {
        let number = tokio::select! {
            _ = interrupt.recv() => 2,
            _ = terminate.recv() => 15,
        };
        SIGNAL.store(number, Ordering::SeqCst);
        ARRIVED.notify_waiters();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
        end(number);
    };
    // Without the thread nobody listens, and the signals are lost: better to do without them.
    let listening = std::thread::Builder::new().name("signals".to_owned());
    let _ = listening.spawn(move || runtime.block_on(wait));
}

#[expect(clippy::exit, reason = "the command did not end by itself when it was asked to")]
fn end(signal: u8) {
    std::process::exit(128 + i32::from(signal));
}

fn is_requested() -> bool {
    SIGNAL.load(Ordering::SeqCst) != 0
}

/// Waits for a command, or until somebody asks it to stop.
pub async fn or_interrupted<T>(command: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let mut command = Box::pin(command);
    tokio::select! {
        biased;
        outcome = &mut command => return outcome,
        () = requested() => {}
    }
    // Nobody polls it, so nothing new begins; a file that another thread is just making must be
    // there before its directory is taken away with the command.
    tokio::time::sleep(SETTLE).await;
    drop(command);
    Err(failure())
}

async fn requested() {
    let arrived = ARRIVED.notified();
    if !is_requested() {
        arrived.await;
    }
}

/// How the command ends because somebody asked, if somebody did: what to say, and the code.
pub fn outcome() -> Option<(Failure, u8)> {
    let signal = SIGNAL.load(Ordering::SeqCst);
    (signal != 0).then(|| (failure(), 128 + signal))
}

/// A command that stopped because it was asked to.
fn failure() -> Failure {
    Failure::new("interrupted", "nothing was left half done; run the command again")
}

/// An error if somebody asked the command to stop; for work that goes on for long.
pub fn check() -> io::Result<()> {
    if is_requested() { Err(io::Error::other("interrupted")) } else { Ok(()) }
}

/// A reader that ends in an error when the command is asked to stop.
pub struct Interruptible<R>(pub R);

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check()?;
        self.0.read(buffer)
    }
}
