//! How fast a body comes: a server that sends a byte now and then is never silent, and still would
//! take for ever.

use super::HttpError;
use std::time::Duration;

/// Bytes that come in a second at least, on average; slower lines carry no packages.
const RATE_MIN: u64 = 1 << 10;

/// The time that was spent on waiting for a body, and what came of it.
#[derive(Debug)]
pub(crate) struct Pace {
    grace: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// A body that may take that long beyond the time that its bytes should take.
    pub(crate) fn new(grace: Duration) -> Self {
        Self { grace, waited: Duration::ZERO, bytes: 0 }
    }

    /// Counts bytes that came after a wait, and says whether they came in time.
    pub(crate) fn advance(
        &mut self,
        host: &str,
        bytes: usize,
        waited: Duration,
    ) -> Result<(), HttpError> {
        self.bytes += bytes as u64;
        self.waited += waited;
        if self.waited <= self.grace + Duration::from_secs(self.bytes / RATE_MIN) {
            return Ok(());
        }
        Err(HttpError::Slow { host: host.to_owned(), after: self.grace, rate: RATE_MIN })
    }
}
