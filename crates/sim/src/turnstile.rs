//! The turnstile: calls, and what watches tell, pass one at a time, a millisecond apart, and only when
//! everybody waits. Of those that wait, the one that came first passes first, and of those that came
//! together the first by name.
//!
//! All lives of one stage share it, the manager's and the node's: a call has the same number each
//! time, whichever thread was faster.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// The time between two calls.
const PACE: Duration = Duration::from_millis(1);

/// Whoever waits to pass.
struct Waiting {
    member: u64,
    order: (u64, String, Vec<u8>),
    pass: oneshot::Sender<()>,
}

/// Those that wait.
#[derive(Default)]
struct WaitingLine {
    waiting: Vec<Waiting>,
    passed: u64,
    members: u64,
}

/// The one way through.
#[derive(Clone, Default)]
pub struct Turnstile {
    line: Arc<Mutex<WaitingLine>>,
    came: Arc<Notify>,
}

impl Turnstile {
    /// Lets calls pass, for ever.
    pub async fn keep_passing(self) {
        loop {
            self.came.notified().await;
            loop {
                tokio::time::sleep(PACE).await;
                let next = self.with(|line| {
                    line.passed += 1;
                    let first = (0..line.waiting.len())
                        .min_by(|a, b| line.waiting[*a].order.cmp(&line.waiting[*b].order));
                    first.map(|at| line.waiting.remove(at))
                });
                let Some(next) = next else { break };
                let _ = next.pass.send(());
            }
        }
    }

    /// A number for a life whose calls will pass.
    pub(crate) fn add_member(&self) -> u64 {
        self.with(|line| {
            line.members += 1;
            line.members
        })
    }

    /// Waits for the turn of a call, or of what a watch tells; nothing if its life has ended.
    pub(crate) async fn await_turn(&self, member: u64, what: String, body: Vec<u8>) -> Option<()> {
        let (pass, passed) = oneshot::channel();
        self.with(|line| {
            let order = (line.passed, what, body);
            line.waiting.push(Waiting { member, order, pass });
        });
        self.came.notify_one();
        passed.await.ok()
    }

    /// Lets nothing of a life pass that waits still.
    pub(crate) fn dismiss_member(&self, member: u64) {
        self.with(|line| line.waiting.retain(|one| one.member != member));
    }

    fn with<T>(&self, look: impl FnOnce(&mut WaitingLine) -> T) -> T {
        look(&mut self.line.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
