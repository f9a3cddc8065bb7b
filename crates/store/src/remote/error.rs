//! What goes wrong between us and a registry.

use super::BoxError;
use crate::error::Advice;
use http::StatusCode;
use std::time::Duration;

/// A registry, or the way to it, failed us.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No answer could be had.
    #[error("no connection to {host}: {reason}")]
    Connection {
        /// The host.
        host: String,
        /// Whether TLS (and not the network) is what failed.
        tls: bool,
        /// What is at the bottom of it. Transports wrap it five times over, and none of the
        /// wrappers says anything.
        reason: String,
    },
    /// The other side fell silent.
    #[error("{host} sent and took nothing for {}", seconds(*after))]
    Timeout {
        /// The host.
        host: String,
        /// For how long.
        after: Duration,
    },
    /// The other side sends so little that it would take for ever.
    #[error("{host} sent less than {rate} bytes a second, for longer than {}", seconds(*after))]
    Slow {
        /// The host.
        host: String,
        /// What was waited beyond the time that the bytes should have taken.
        after: Duration,
        /// How many bytes should come in a second.
        rate: u64,
    },
    /// Credentials are missing or not accepted.
    #[error("{registry} refuses access without valid credentials{}", suffix(message))]
    Unauthorized {
        /// The registry.
        registry: String,
        /// What it said.
        message: String,
    },
    /// An answer that is not what was asked for.
    #[error("{method} {url} was answered with {status}{}", suffix(message))]
    Status {
        /// The request's method.
        method: String,
        /// The request's address, without its query.
        url: String,
        /// The answer.
        status: StatusCode,
        /// The registry's own words.
        message: String,
        /// How long it asked us to wait.
        retry_after: Option<Duration>,
    },
    /// Redirected too often.
    #[error("{url} redirects more than {limit} times")]
    Redirects {
        /// Where it began.
        url: String,
        /// How often we follow.
        limit: usize,
    },
    /// Redirected from TLS to plain HTTP.
    #[error("{from} redirects to plain HTTP at {to}, which is not safe")]
    Downgrade {
        /// Where the request went.
        from: String,
        /// Where it was sent.
        to: String,
    },
    /// Sent to where a registry has no business.
    #[error("{from} leads to {to}, where no request is sent on its behalf")]
    Astray {
        /// Where the request went.
        from: String,
        /// Where it was sent.
        to: String,
    },
    /// Credentials were to be sent on to another host.
    #[error("{from} redirects to {to}, which the credentials are not for")]
    Leak {
        /// Where they went.
        from: String,
        /// Where they were to be sent.
        to: String,
    },
    /// A token server that is not asked.
    #[error(
        "{registry} names the token server `{realm}`, which cannot be asked safely: it is neither reached over https nor on the registry's own host"
    )]
    Realm {
        /// The registry.
        registry: String,
        /// The address it gave.
        realm: String,
    },
    /// The registry wants a kind of login we do not know.
    #[error("{registry} wants a kind of login we do not know: `{header}`")]
    Challenge {
        /// The registry.
        registry: String,
        /// Its words.
        header: String,
    },
    /// A list that does not end.
    #[error("{url} has more than {limit} pages, or its pages go in a circle")]
    Pages {
        /// The list.
        url: String,
        /// How many we read.
        limit: usize,
    },
    /// An answer lacks something, or it cannot be read.
    #[error("the answer of {url} has no usable {what}")]
    Answer {
        /// The request's address.
        url: String,
        /// What is missing.
        what: &'static str,
    },
    /// Not an address.
    #[error("`{0}` is not an address requests can be sent to")]
    Url(String),
    /// The client cannot be set up.
    #[error("{0} cannot be used")]
    Setting(&'static str, #[source] BoxError),
}

impl HttpError {
    /// What kind of trouble it is.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Connection { tls: true, .. } => Advice::Tls,
            Self::Connection { host, .. } => Advice::Unreachable { host: host.clone() },
            Self::Timeout { .. } | Self::Slow { .. } => Advice::Timeout,
            Self::Unauthorized { registry, .. } => {
                Advice::Unauthorized { registry: registry.clone() }
            }
            Self::Status { status, .. } => match *status {
                StatusCode::FORBIDDEN => Advice::Forbidden,
                StatusCode::NOT_FOUND => Advice::NotFound,
                StatusCode::TOO_MANY_REQUESTS => Advice::RateLimited,
                StatusCode::PAYLOAD_TOO_LARGE => Advice::TooLarge,
                StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Advice::Timeout,
                _ => Advice::Other,
            },
            _ => Advice::Other,
        }
    }

    /// How long the registry asked us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Connection { tls, .. } => !tls,
            Self::Timeout { .. } => true,
            Self::Status { status, .. } => is_transient(*status),
            _ => false,
        }
    }
}

/// Answers that say "not now" rather than "no".
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 499 | 500 | 502 | 503 | 504 | 522)
}

/// The last error of a chain; with the one before it where that one repeats it, or where it says
/// that a certificate is what it is about.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    let certificate = texts.iter().rfind(|text| text.to_lowercase().contains("certificate"));
    let last = texts.last().cloned().unwrap_or_default();
    match certificate {
        Some(text) if text.contains(&last) => text.clone(),
        Some(text) => format!("{text}: {last}"),
        None => last,
    }
}

fn seconds(time: Duration) -> String {
    let plural = if time == Duration::from_secs(1) { "" } else { "s" };
    format!("{} second{plural}", time.as_secs_f32())
}

fn suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}
