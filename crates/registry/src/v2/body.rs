//! Bodies on their way in: a client may be slow, but not for ever, and not without end.

use crate::error::Error;
use crate::limits::{BODY_RATE_WINDOW, BODY_SILENCE_MAX};
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// What a body is held to.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Bytes a second that must come in the long run.
    pub(super) rate_min: u64,
    /// Bytes that may come.
    pub(super) size_max: u64,
    /// The limit that is told if there are more, and the error that tells it.
    pub(super) limit: u64,
    pub(super) too_large: fn(u64) -> Error,
}

/// A body, piece by piece.
pub(super) struct Incoming {
    body: Body,
    terms: Terms,
    left: u64,
    /// How long we waited for the client (and not it for us), and what came meanwhile.
    waited: Duration,
    came: u64,
}

impl Incoming {
    pub(super) fn new(body: Body, terms: Terms) -> Self {
        Self { body, terms, left: terms.size_max, waited: Duration::ZERO, came: 0 }
    }

    /// The next piece; `None` at the end. A body that falls silent, trickles or grows too large
    /// ends in an error.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let since = Instant::now();
            let frame = timeout(BODY_SILENCE_MAX, self.body.frame()).await;
            self.waited = self.waited.saturating_add(since.elapsed());
            let Some(frame) = frame.map_err(|_| Error::BodyBroken)? else { return Ok(None) };
            let Ok(piece) = frame.map_err(|_| Error::BodyBroken)?.into_data() else { continue };
            self.judge(piece.len() as u64)?;
            return Ok(Some(piece));
        }
    }

    fn judge(&mut self, count: u64) -> Result<(), Error> {
        let too_large = || (self.terms.too_large)(self.terms.limit);
        self.left = self.left.checked_sub(count).ok_or_else(too_large)?;
        self.came = self.came.saturating_add(count);
        if self.waited < BODY_RATE_WINDOW {
            return Ok(());
        }
        if self.came < self.terms.rate_min.saturating_mul(self.waited.as_secs()) {
            return Err(Error::BodyBroken);
        }
        self.waited = Duration::ZERO;
        self.came = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    const TERMS: Terms = Terms {
        rate_min: 100,
        size_max: 10_000,
        limit: 10_000,
        too_large: |limit| Error::BlobTooLarge { limit },
    };

    /// A body of pieces of this size with a pause before each.
    fn drip(count: usize, size: usize, pause: Duration) -> Body {
        Body::from_stream(stream::unfold(0, move |sent| async move {
            tokio::time::sleep(pause).await;
            (sent < count).then(|| (Ok::<_, Error>(Bytes::from(vec![0; size])), sent + 1))
        }))
    }

    async fn read(body: Body) -> Result<usize, Error> {
        let (mut incoming, mut size) = (Incoming::new(body, TERMS), 0);
        while let Some(piece) = incoming.next().await? {
            size += piece.len();
        }
        Ok(size)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_be_slow_but_not_trickle() {
        let second = Duration::from_secs(1);
        assert_eq!(read(drip(90, 110, second)).await.unwrap(), 9900);
        let trickle = read(drip(90, 50, second)).await;
        assert!(matches!(trickle, Err(Error::BodyBroken)), "{trickle:?}");
        let silent = read(drip(2, 5000, BODY_SILENCE_MAX * 2)).await;
        assert!(matches!(silent, Err(Error::BodyBroken)), "{silent:?}");
        // A short one may take its time.
        assert_eq!(read(drip(2, 1, second * 10)).await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_not_go_on_for_ever() {
        let endless = read(drip(usize::MAX, 1000, Duration::ZERO)).await;
        assert!(matches!(endless, Err(Error::BlobTooLarge { limit: 10_000 })), "{endless:?}");
    }
}
