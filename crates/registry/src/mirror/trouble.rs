//! What can be wrong with another registry, as far as our own clients should know.
//!
//! The other registry's own words stay out of it: a redirect may have led anywhere, and what an
//! inner service says is nobody's business outside.

use http::StatusCode;
use std::time::Duration;
use store::remote::HttpError;
use store::{Cause, Error};

/// Why something could not be had from another registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// It is not there.
    #[error("does not have it")]
    Missing,
    /// Our credentials are not good enough, or it does not want to say that it is not there.
    #[error("does not let this registry have it")]
    Denied,
    /// We asked too often.
    #[error("is asked too often")]
    Busy(Option<Duration>),
    /// Nobody answers.
    #[error("cannot be reached")]
    Away,
    /// It answers with errors of its own.
    #[error("fails with status {0}")]
    Failing(u16),
    /// It sent something else than was asked for.
    #[error("sent something that is not what it should be")]
    Wrong,
    /// It has more bytes than this registry takes.
    #[error("has it, but larger than the limit of this registry")]
    TooLarge,
}

impl Trouble {
    /// How long it is not worth asking again.
    pub(super) fn pause(&self) -> Duration {
        match self {
            Self::Busy(asked) => {
                asked.unwrap_or(Duration::from_secs(10)).min(Duration::from_secs(60))
            }
            Self::Missing | Self::Denied => Duration::from_secs(15),
            Self::Away | Self::Failing(_) | Self::Wrong | Self::TooLarge => Duration::from_secs(5),
        }
    }

    /// What an error of the client means.
    pub(super) fn of(error: &Error) -> Self {
        match error.cause() {
            None => Self::Missing,
            Some(cause) => Self::of_cause(cause),
        }
    }

    fn of_cause(cause: &Cause) -> Self {
        match cause {
            Cause::Http(error) => Self::of_http(error),
            Cause::TooLarge { .. } => Self::TooLarge,
            // Sockets that break are told as errors of HTTP.
            _ => Self::Wrong,
        }
    }

    fn of_http(error: &HttpError) -> Self {
        match error {
            HttpError::Connection { .. } | HttpError::Timeout { .. } => Self::Away,
            HttpError::Unauthorized { .. }
            | HttpError::Challenge { .. }
            | HttpError::Realm { .. } => Self::Denied,
            HttpError::Status { status, retry_after, .. } => match *status {
                StatusCode::NOT_FOUND => Self::Missing,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Denied,
                StatusCode::TOO_MANY_REQUESTS => Self::Busy(*retry_after),
                other => Self::Failing(other.as_u16()),
            },
            _ => Self::Wrong,
        }
    }
}
