//! What registries and catalogs said to the lock lately, and what they were asked and have not
//! answered yet.

use crate::kind::Learnt;
use api::kind_reference::KindReference;
use oci::{Digest, Repository};
use plan::lock::{Contents, KindSources, Known, RECHECK};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

/// How long the lock waits for an answer. Nobody is decided on meanwhile; but whoever is decided on
/// without it is decided on as if the registry were away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The same, of a registry that was not heard of when it was last asked.
pub(crate) const PATIENCE_LEFT: Duration = Duration::from_secs(1);

/// Who takes long to answer nothing is not asked again for this many times as long: one registry
/// that is away must not keep everybody waiting at every look.
const SILENCE_FACTOR: u32 = 3;
/// What takes less than this is not long.
const LONG: Duration = Duration::from_secs(1);

/// What registries said lately.
#[derive(Default)]
pub(crate) struct Memory {
    /// When the lock was last looked at.
    pub(crate) began: Option<Instant>,
    pub(crate) tags: HashMap<Repository, (Instant, Vec<String>)>,
    pub(crate) digests: HashMap<String, (Instant, Digest)>,
    /// What was asked in vain, why, and until when it is not asked again.
    pub(crate) silent: HashMap<Asked, (Instant, String)>,
    /// What was asked and is not answered yet, since when, and of which registry.
    pub(crate) open: HashMap<Asked, (Instant, String)>,
    /// Registries that were not heard of when they were last asked.
    pub(crate) away: HashSet<String>,
}

/// What a registry is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Tags(Repository),
    Digest(String),
    Contents(String),
    Kind(KindReference),
}

/// What a registry answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Tags(Vec<String>),
    Digest(Digest),
    Contents(Box<Contents>),
    Kind(Box<KindSources>),
}

impl Memory {
    /// Lists that are older than this look at the lock, and how old the oldest is.
    pub(crate) fn before(&self) -> (Vec<Repository>, Duration) {
        let before = self.tags.iter().filter(|(_, (then, _))| Some(*then) < self.began);
        let age = before.clone().map(|(_, (then, _))| then.elapsed()).max();
        (before.map(|(key, _)| key.clone()).collect(), age.unwrap_or_default())
    }

    /// What is still believed.
    pub(crate) fn fresh(&mut self) -> Known {
        self.began = Some(Instant::now());
        self.tags.retain(|_, (then, _)| then.elapsed() < RECHECK);
        self.digests.retain(|_, (then, _)| then.elapsed() < RECHECK);
        let tags = self.tags.iter().map(|(key, (_, tags))| (key.clone(), Ok(tags.clone())));
        let digests = self.digests.iter().map(|(key, (_, one))| (key.clone(), Ok(one.clone())));
        let mut known =
            Known { tags: tags.collect(), digests: digests.collect(), ..Known::default() };
        self.silent.retain(|_, (until, _)| *until > Instant::now());
        let silent = self.silent.iter().map(|(asked, (_, why))| (asked.clone(), why.clone()));
        let open = self.open.iter();
        let open = open.map(|(asked, (_, registry))| (asked.clone(), unanswered(registry)));
        for (asked, why) in silent.chain(open) {
            put(&mut known, asked, Err(why));
        }
        known
    }

    /// How long an answer of a registry is waited for: not at all, where another one is.
    pub(crate) fn patience(&self, registry: &str) -> Duration {
        if self.open.values().any(|(_, one)| one == registry) {
            return Duration::ZERO;
        }
        if self.away.contains(registry) { PATIENCE_LEFT } else { PATIENCE }
    }

    /// How long until somebody may be asked again who took long to answer nothing.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let now = Instant::now();
        let left = self.silent.values().map(|(until, _)| until.saturating_duration_since(now));
        left.filter(|left| !left.is_zero()).min()
    }

    /// Why a question is not asked now: it was in vain not long ago, or is not answered yet.
    pub(crate) fn unheard(&self, asked: &Asked) -> Option<String> {
        let silent = self.silent.get(asked).map(|(_, why)| why.clone());
        silent.or_else(|| self.open.get(asked).map(|(_, registry)| unanswered(registry)))
    }

    /// Something was asked at this time, and this is what came of it; says whether it is known.
    pub(crate) fn hear(
        &mut self,
        asked: Asked,
        then: Instant,
        answer: &Result<Answer, String>,
    ) -> Learnt {
        self.open.remove(&asked);
        self.silent.remove(&asked);
        let now = Instant::now();
        match (asked, answer) {
            (Asked::Tags(repository), Ok(Answer::Tags(tags))) => {
                self.tags.insert(repository, (now, tags.clone()));
            }
            (Asked::Digest(name), Ok(Answer::Digest(digest))) => {
                self.digests.insert(name, (now, digest.clone()));
            }
            // The cache has them.
            (_, Ok(_)) => {}
            (asked, Err(why)) => {
                if let Asked::Tags(repository) = &asked {
                    self.tags.remove(repository);
                }
                if then.elapsed() >= LONG {
                    let silence = then.elapsed().saturating_mul(SILENCE_FACTOR).min(RECHECK);
                    self.silent.insert(asked, (now + silence, why.clone()));
                }
                return Learnt::Unknown;
            }
        }
        Learnt::Known
    }
}

/// What came of a question.
pub(crate) type Heard = Result<Answer, String>;

pub(crate) fn unanswered(registry: &str) -> String {
    format!(
        "{registry} has not answered yet; check that it is spelled right and can be reached from \
         the manager, which waits for it"
    )
}

/// Lets it be known what came of a question.
pub(crate) fn put(known: &mut Known, asked: Asked, answer: Heard) {
    match (asked, answer) {
        (Asked::Tags(repository), Ok(Answer::Tags(tags))) => {
            known.tags.insert(repository, Ok(tags));
        }
        (Asked::Tags(repository), Err(why)) => {
            known.tags.insert(repository, Err(why));
        }
        (Asked::Digest(name), Ok(Answer::Digest(digest))) => {
            known.digests.insert(name, Ok(digest));
        }
        (Asked::Digest(name), Err(why)) => {
            known.digests.insert(name, Err(why));
        }
        (Asked::Contents(name), Ok(Answer::Contents(found))) => {
            known.contents.insert(name, Ok(*found));
        }
        (Asked::Contents(name), Err(why)) => {
            known.contents.insert(name, Err(why));
        }
        // What was not heard of a kind is told when it is asked for: the rest may be known. And no
        // registry answers what was not asked.
        (Asked::Kind(_), Err(_)) | (_, Ok(_)) => {}
    }
}
