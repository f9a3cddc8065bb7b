//! One errand for everybody who wants the same.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Errand<T> = Shared<BoxFuture<'static, Option<T>>>;

/// Errands under way, by what they are for.
pub(super) struct Flights<T> {
    under_way: Mutex<HashMap<String, Errand<T>>>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { under_way: Mutex::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    /// Waits for the errand of this key, beginning it if nobody has. It goes on if everybody who
    /// waits goes away. `None` if it broke down.
    pub(super) async fn join<F>(
        self: &Arc<Self>,
        key: String,
        begin: impl FnOnce() -> F,
    ) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let depart = || {
            let (end, work) = (End { flights: self.clone(), key: key.clone() }, begin());
            let task = tokio::spawn(async move {
                let result = work.await;
                drop(end);
                result
            });
            task.map(Result::ok).boxed().shared()
        };
        let errand = self.lock().entry(key.clone()).or_insert_with(depart).clone();
        errand.await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Errand<T>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes an errand off the list, however it ends.
struct End<T: Clone + Send + Sync + 'static> {
    flights: Arc<Flights<T>>,
    key: String,
}

impl<T: Clone + Send + Sync + 'static> Drop for End<T> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn many_wait_for_one_errand_and_the_next_is_a_new_one() {
        let (flights, count) = (Arc::new(Flights::default()), Arc::new(AtomicUsize::new(0)));
        let errand = || {
            let count = count.clone();
            async move {
                tokio::task::yield_now().await;
                count.fetch_add(1, Ordering::SeqCst)
            }
        };
        let both = futures::future::join_all((0..10).map(|_| flights.join("a".to_owned(), errand)));
        assert_eq!(both.await, vec![Some(0); 10]);
        assert_eq!(flights.join("a".to_owned(), errand).await, Some(1));
        let broken = flights.join("b".to_owned(), || async { panic!("broken") });
        let none: Option<usize> = broken.await;
        assert_eq!(none, None);
        assert!(flights.lock().is_empty(), "nothing stays on the list");
    }
}
