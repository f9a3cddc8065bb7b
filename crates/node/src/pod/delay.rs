//! How long is waited before something is tried again: 10 s, twice as long each time, 5 min at
//! most, and from the beginning after 10 min of quiet.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
const QUIET: SignedDuration = SignedDuration::from_secs(600);

/// The pause before the next try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPause {
    /// The pause, and when it was set.
    set: Option<(SignedDuration, Timestamp)>,
}

impl RetryPause {
    /// The pause that what ended then has to wait; none the first time.
    pub fn pause_after(&self, ended: Timestamp) -> SignedDuration {
        match self.set {
            Some((pause, at)) if ended.duration_since(at) <= QUIET => pause,
            _ => SignedDuration::ZERO,
        }
    }

    /// When what ended then may be tried again.
    pub fn retry_at(&self, ended: Timestamp) -> Timestamp {
        ended.saturating_add(self.pause_after(ended)).unwrap_or(ended)
    }

    /// Notes that what ended then is tried again now: the pause after it is twice as long.
    pub fn note_retry(&mut self, ended: Timestamp, now: Timestamp) {
        let pause = match self.pause_after(ended) {
            SignedDuration::ZERO => FIRST,
            pause => pause.saturating_mul(2).min(LONGEST),
        };
        self.set = Some((pause, now));
    }

    /// Notes a failure now, and says when the next try may be.
    pub fn note_failure(&mut self, now: Timestamp) -> Timestamp {
        self.note_retry(now, now);
        self.retry_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_container_that_always_fails_at_once_waits_longer_and_longer() {
        let mut pause = RetryPause::default();
        let mut now = at(1_000);
        let mut waited = Vec::new();
        for _ in 0..8 {
            let next = pause.retry_at(now);
            waited.push(next.duration_since(now).as_secs());
            pause.note_retry(now, next);
            now = next;
        }
        assert_eq!(waited, [0, 10, 20, 40, 80, 160, 300, 300]);
        // It ran for more than ten minutes.
        assert_eq!(pause.retry_at(at(now.as_second() + 601)), at(now.as_second() + 601));
    }

    #[test]
    fn images_are_asked_for_again_after_ten_seconds() {
        let mut pause = RetryPause::default();
        assert_eq!(pause.note_failure(at(0)), at(10));
        assert_eq!(pause.note_failure(at(10)), at(30));
    }

    proptest! {
        #[test]
        fn no_pause_is_longer_than_five_minutes(runs in proptest::collection::vec(0_i64..2_000, 1..50)) {
            let mut pause = RetryPause::default();
            let mut now = at(0);
            for run in runs {
                let ended = at(now.as_second() + run);
                let next = pause.retry_at(ended);
                let waited = next.duration_since(ended);
                prop_assert!(waited <= LONGEST && waited >= SignedDuration::ZERO);
                pause.note_retry(ended, next);
                now = next;
            }
        }
    }
}
