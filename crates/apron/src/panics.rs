//! What becomes of a panic: it is told once, in one place, with where it happened; and what goes on
//! for ever goes on.

use crate::failure::Failure;
use crate::output;
use futures::FutureExt as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo};

/// Characters of a panic's message that are told: it may quote what a stranger sent.
const MESSAGE_MAX: usize = 300;

/// Tells of every panic, wherever it is caught.
pub(crate) fn tell_of_each() {
    std::panic::set_hook(Box::new(|panic| output::fail(&failure(panic))));
}

fn failure(panic: &PanicHookInfo<'_>) -> Failure {
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let payload = panic.payload();
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let message = owned.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let message: String = message.chars().take(MESSAGE_MAX).collect();
    let hint = "only what was asked for at that moment was not done; please report this";
    Failure::new(format!("apron broke at {place}: {message}"), hint)
}

/// Does one piece of work that is done again and again; none if it panicked, which was told.
pub(crate) async fn contain<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H2, the second half: tasks of the shell outlive what breaks them.
    #[tokio::test]
    async fn h2_work_that_panics_costs_its_round() {
        let mut rounds = Vec::new();
        for round in 0..4 {
            let work = async {
                assert_ne!(round, 1, "it broke");
                round
            };
            rounds.push(contain(work).await);
        }
        assert_eq!(rounds, [Some(0), None, Some(2), Some(3)]);
    }
}
