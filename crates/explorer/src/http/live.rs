//! News of a control plane, as server-sent events.
//!
//! A browser is told that something changed, not what: it loads the page again, which has one way to
//! be made. However many pages are open, the control plane is looked at once per interval.

use super::shield;
use crate::plane::{PlaneProblem, PlaneReport, PlaneSource};
use ::http::HeaderValue;
use ::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::body::Body;
use axum::response::Response;
use oci::Digest;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// The pause between two looks while a page waits for news.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How old a report may be that a page is made of.
const PAGE_AGE_MAX: Duration = Duration::from_millis(200);
/// Looks without news after which a browser is told that the server is still there.
const QUIET_LOOKS_MAX: usize = 15;
/// Pages that wait for news at once.
const LISTENERS_MAX: usize = 32;

type Look = Result<PlaneReport, PlaneProblem>;

/// A control plane, and the last look at it.
pub(super) struct PlaneWatch {
    source: Arc<dyn PlaneSource>,
    last: Mutex<Option<(Instant, Arc<Look>)>>,
    seats: Arc<Semaphore>,
}

impl PlaneWatch {
    pub(super) fn new(source: Arc<dyn PlaneSource>) -> Self {
        Self { source, last: Mutex::new(None), seats: Arc::new(Semaphore::new(LISTENERS_MAX)) }
    }

    /// What a page is made of.
    pub(super) async fn look_now(&self) -> Arc<Look> {
        self.look(PAGE_AGE_MAX).await
    }

    /// The last look if it is young enough, else another one; one at a time.
    async fn look(&self, age_max: Duration) -> Arc<Look> {
        let mut last = self.last.lock().await;
        if let Some((time, look)) = last.as_ref()
            && time.elapsed() < age_max
        {
            return look.clone();
        }
        let look = Arc::new(self.source.read_report().await);
        *last = Some((Instant::now(), look.clone()));
        look
    }

    /// Tells of changes until the control plane stops or the browser leaves; nothing if too many listen.
    pub(super) fn stream_news(self: Arc<Self>) -> Option<Response> {
        let seat = self.seats.clone().try_acquire_owned().ok()?;
        let listener = NewsListener { watch: self, known: None, _seat: seat };
        let stream = futures::stream::unfold(listener, |mut listener| async move {
            let told = listener.wait_for_news().await?;
            Some((Ok::<_, Infallible>(told), listener))
        });
        let mut response = Response::new(Body::from_stream(stream));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        shield::hold_page(headers);
        Some(response)
    }
}

/// A page that waits for news, and what it knows.
struct NewsListener {
    watch: Arc<PlaneWatch>,
    known: Option<String>,
    _seat: OwnedSemaphorePermit,
}

impl NewsListener {
    /// The next thing to say; nothing if there is nothing more to come.
    async fn wait_for_news(&mut self) -> Option<String> {
        for _ in 0..QUIET_LOOKS_MAX {
            if self.known.is_some() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                    () = self.watch.source.until_stopped() => return None,
                }
            }
            let look = tokio::select! {
                look = self.watch.look(LOOK_INTERVAL / 2) => look,
                () = self.watch.source.until_stopped() => return None,
            };
            let state = Digest::of(format!("{look:?}").as_bytes()).hex().to_owned();
            if self.known.as_ref() != Some(&state) {
                let told = format!("retry: 2000\nevent: changed\ndata: {state}\n\n");
                self.known = Some(state);
                return Some(told);
            }
        }
        Some(": nothing new\n\n".to_owned())
    }
}
