//! What a check is, and how it ends.

use crate::context::Context;
use crate::exchange::Verdict;
use std::pin::Pin;

/// How binding a check is. Levels are ordered: a run at one level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The specification says MUST, or the protocol does not work without it.
    Must,
    /// The specification says SHOULD or MAY, or clients in wide use rely on it.
    Should,
    /// An addition after release 1.1.1 of the specification.
    Dev,
}

impl Level {
    /// `must`, `should` or `dev`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Dev => "dev",
        }
    }

    /// One step less binding: the image specification demands sha256 but not sha512, and the
    /// distribution specification a status but not an error code.
    pub(crate) const fn softened(self) -> Self {
        match self {
            Self::Must => Self::Should,
            other => other,
        }
    }
}

/// One thing that is demanded of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Never changes once published: lists of known failures are written in it.
    pub id: &'static str,
    /// The endpoint of the specification (`end-1` to `end-14`), or `ext`, `auth`, `names`.
    pub endpoint: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The sentence it stands on.
    pub spec: &'static str,
}

/// How a check ended. There are no skips: what cannot be shown has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The registry does what is demanded.
    Pass,
    /// It does not, or a step before the demand failed already.
    Fail {
        /// Request line and headers.
        request: String,
        /// What was demanded of the answer.
        expected: String,
        /// Status, headers and first bytes of the answer.
        got: String,
    },
}

/// On which registries a check can be asked at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// Credentials were given.
    Credentials,
    /// The registry asks for bearer tokens.
    Tokens,
}

/// A check under way.
pub(crate) type Running<'c> = Pin<Box<dyn Future<Output = Verdict> + Send + 'c>>;

/// A check and the code that makes it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) check: Check,
    pub(crate) needs: Needs,
    pub(crate) run: for<'c> fn(&'c Context) -> Running<'c>,
}

/// One check: endpoint, level, id, function, sentence.
macro_rules! one {
    ($endpoint:literal, $level:ident, $id:expr, $run:expr, $spec:expr) => {
        $crate::check::one!($endpoint, $level, $id, Nothing, $run, $spec)
    };
    ($endpoint:literal, $level:ident, $id:expr, $needs:ident, $run:expr, $spec:expr) => {
        vec![$crate::check::Entry {
            check: $crate::check::Check {
                id: $id,
                endpoint: $endpoint,
                level: $crate::check::Level::$level,
                spec: $spec,
            },
            needs: $crate::check::Needs::$needs,
            run: |context| Box::pin($run(context)),
        }]
    };
}

/// The same check with both digest algorithms.
macro_rules! both {
    ($endpoint:literal, $level:ident, $id:literal, $run:expr, $spec:expr) => {
        vec![
            $crate::check::Entry {
                check: $crate::check::Check {
                    id: concat!($id, ".sha256"),
                    endpoint: $endpoint,
                    level: $crate::check::Level::$level,
                    spec: $spec,
                },
                needs: $crate::check::Needs::Nothing,
                run: |context| Box::pin($run(context, $crate::digest::Algorithm::Sha256)),
            },
            $crate::check::Entry {
                check: $crate::check::Check {
                    id: concat!($id, ".sha512"),
                    endpoint: $endpoint,
                    level: $crate::check::Level::$level.softened(),
                    spec: $spec,
                },
                needs: $crate::check::Needs::Nothing,
                run: |context| Box::pin($run(context, $crate::digest::Algorithm::Sha512)),
            },
        ]
    };
}

/// A request that must be refused: one check of the status, one of the error code. The function
/// gives the exchange to be judged.
macro_rules! refusal {
    ($endpoint:literal, $level:ident, $id:literal, $statuses:expr, $codes:expr, $run:expr, $spec:expr) => {
        vec![
            $crate::check::Entry {
                check: $crate::check::Check {
                    id: concat!($id, ".status"),
                    endpoint: $endpoint,
                    level: $crate::check::Level::$level,
                    spec: $spec,
                },
                needs: $crate::check::Needs::Nothing,
                run: |context| {
                    Box::pin(async move { $run(context).await?.expect(&$statuses).map(drop) })
                },
            },
            $crate::check::Entry {
                check: $crate::check::Check {
                    id: concat!($id, ".code"),
                    endpoint: $endpoint,
                    level: $crate::check::Level::$level.softened(),
                    spec: "Error codes: an error body is {\"errors\":[{code,message,detail}]}, \
                           its code from the table of the specification",
                },
                needs: $crate::check::Needs::Nothing,
                run: |context| Box::pin(async move { $run(context).await?.need_code(&$codes) }),
            },
        ]
    };
}

/// A list of checks, each on two lines: how many there are of it, endpoint, level, id, what it
/// needs or how it is refused, function; then the sentence.
macro_rules! table {
    ($($kind:ident $endpoint:literal $level:ident $id:literal $(($needs:ident))?
        $([$($status:literal),+] [$($code:literal),+])? => $run:ident, $spec:literal;)+) => {
        [$($crate::check::$kind!(
            $endpoint, $level, $id, $($needs,)? $([$($status),+], [$($code),+],)? $run, $spec
        )),+]
        .concat()
    };
}

pub(crate) use {both, one, refusal, table};
