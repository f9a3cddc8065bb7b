//! Waiting before another try, and telling of it.

use super::Client;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Another try that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The registry.
    pub registry: String,
    /// What went wrong.
    pub why: String,
    /// How long it is waited for.
    pub pause: Duration,
    /// Tries that were made.
    pub tries: u32,
    /// Tries that will be made at most.
    pub tries_max: u32,
}

type Tell = dyn Fn(&Retry) + Send + Sync;

/// Told of retries.
#[derive(Clone, Default)]
pub struct RetryWatch(Option<Arc<Tell>>);

impl RetryWatch {
    /// Tells this function.
    pub fn new(tell: impl Fn(&Retry) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }
}

impl fmt::Debug for RetryWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RetryWatch").field(&self.0.is_some()).finish()
    }
}

impl Client {
    /// Tells that there will be another try, and waits for the time to make it.
    pub(super) async fn wait_to_retry(
        &self,
        registry: &str,
        tries: u32,
        asked: Option<Duration>,
        why: &str,
    ) {
        let (pause, tries_max) = (self.pause(tries, asked), self.inner.settings.tries);
        if let RetryWatch(Some(tell)) = &self.inner.settings.retries {
            let (registry, why) = (registry.to_owned(), why.to_owned());
            tell(&Retry { registry, why, pause, tries, tries_max });
        }
        sleep(pause).await;
    }
}
