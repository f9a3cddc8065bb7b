//! Work that takes long enough for others to notice.
//!
//! Requests are answered on few threads that all connections share. Most take microseconds; one
//! with a long body may take a second, and who shares its thread would wait so long. Such work
//! gives its thread's other tasks away first. For short work that would cost more than it saves.

use std::future::Future;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Bytes from which on work is worth stepping aside for.
const HEAVY_FROM: usize = 32 << 10;

/// Does something with so many bytes, aside if they are many.
pub(crate) fn do_aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if is_aside(bytes) { block_in_place(work) } else { work() }
}

/// Awaits something that works on so many bytes, aside if they are many.
pub(crate) async fn wait_aside<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    if is_aside(bytes) { block_in_place(|| Handle::current().block_on(work)) } else { work.await }
}

/// A runtime of one thread has nobody to give tasks to; there, everything is done in turn.
fn is_aside(bytes: usize) -> bool {
    let shares = || Handle::try_current().is_ok_and(|runtime| is_shared(&runtime));
    bytes >= HEAVY_FROM && shares()
}

fn is_shared(runtime: &Handle) -> bool {
    runtime.runtime_flavor() == RuntimeFlavor::MultiThread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_thread_does_everything_in_turn() {
        assert_eq!(do_aside(usize::MAX, || 1), 1);
        assert_eq!(wait_aside(usize::MAX, async { 2 }).await, 2);
    }

    /// H5: one long body held up everybody on its thread. Here there is one thread, it is busy
    /// until another task says so, and that task is on it, too.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn h5_heavy_work_leaves_its_thread_to_others() {
        let busy = |bytes: usize| async move {
            let (done, wait) = std::sync::mpsc::channel();
            let other = tokio::spawn(async move { done.send(7) });
            let said = do_aside(bytes, || wait.recv());
            assert!(other.await.unwrap().is_ok());
            said
        };
        let heavy = tokio::spawn(async move {
            let first = busy(HEAVY_FROM).await;
            let second = wait_aside(HEAVY_FROM, busy(HEAVY_FROM)).await;
            (first, second)
        });
        assert_eq!(heavy.await.unwrap(), (Ok(7), Ok(7)));
    }
}
