//! Packages of registries that are not ours, read into a catalog.
//!
//! A source is a repository with all of its tags that are versions, or one reference. What was read
//! before is not read again, so that what was interrupted goes on where it was; what cannot be asked for
//! at the moment stays as it is known. Few questions are asked at the same time, and the client waits
//! as long as a registry wants it to.

use crate::index::{Head, Index, IndexError, Rights};
use crate::read::{Incomplete, chain, read};
use crate::record::Outcome;
use futures::{Stream, StreamExt as _, stream};
use oci::{Digest, Identifier, Reference, ReferenceError, Repository, Rules};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use store::remote::Client;
use xpkg::version::Version;

/// Sources that are looked at together.
const SOURCES_MAX: usize = 4;
/// Questions about tags of one source at the same time.
const QUESTIONS_MAX: usize = 4;
/// Packages of one source that are read at the same time.
const READS_MAX: usize = 2;

/// Where packages come from.
#[derive(Clone, Debug)]
pub struct GatherSource {
    repository: Repository,
    /// The one version that is meant; all of them without it.
    only: Option<Identifier>,
}

impl GatherSource {
    /// Reads a repository or a reference.
    pub fn parse(text: &str, rules: &Rules) -> Result<Self, ReferenceError> {
        if let Ok(repository) = Repository::parse(text, rules) {
            return Ok(Self { repository, only: None });
        }
        let reference = Reference::parse(text, rules)?;
        let only = Some(reference.identifier().clone());
        Ok(Self { repository: reference.repository().clone(), only })
    }
}

/// The sources in a text: one in each line; what follows a `#` is for people.
pub fn list_sources(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The file beside a catalog that says what it was made of.
pub fn sources_path(catalog: &Path) -> PathBuf {
    let mut name = catalog.as_os_str().to_owned();
    name.push(".sources");
    PathBuf::from(name)
}

/// What became of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatheredSource {
    /// The repository, with its registry.
    pub repository: String,
    /// How many versions are known.
    pub versions: usize,
    /// How many of them were read now.
    pub read: usize,
    /// Versions that are no packages that can be installed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// Versions that could not be read at the moment, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// Why a source cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// Its registry does not answer.
    #[error("cannot look at {0}")]
    Store(String, #[source] Box<store::Error>),
    /// The catalog failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Reads packages into a catalog.
pub struct Gatherer {
    /// The catalog.
    pub index: Arc<Index>,
    /// The way to registries.
    pub packages: Client,
    /// Where layers are spooled.
    pub temporary: PathBuf,
}

impl Gatherer {
    /// Looks at sources, some at the same time, and tells of each in the order given.
    pub fn gather_all<'all>(
        &'all self,
        sources: &'all [GatherSource],
    ) -> impl Stream<Item = Result<GatheredSource, GatherError>> + 'all {
        stream::iter(sources).map(|source| self.gather_source(source)).buffered(SOURCES_MAX)
    }

    async fn gather_source(&self, source: &GatherSource) -> Result<GatheredSource, GatherError> {
        let name = source.repository.to_string();
        let remote = self.packages.repository(source.repository.clone());
        let mut done = GatheredSource {
            repository: name.clone(),
            versions: 0,
            read: 0,
            broken: Vec::new(),
            unread: Vec::new(),
        };
        let heads = self.find_heads(&remote, source, &mut done).await?;
        done.versions = heads.len();
        let repository = name.clone();
        let unread = self.change(move |index| index.settle(&repository, &heads)).await?;
        let mut readings = stream::iter(unread)
            .map(|digest| self.read_version(&remote, &name, digest))
            .buffer_unordered(READS_MAX);
        while let Some(reading) = readings.next().await {
            match reading? {
                GatherReading::Package => done.read += 1,
                GatherReading::Broken(reason) => done.broken.push(reason),
                GatherReading::Unread(reason) => done.unread.push(reason),
            }
        }
        drop(readings);
        done.broken.sort();
        done.unread.sort();
        Ok(done)
    }

    /// What a source has: all tags that are versions, or what is known with one more.
    async fn find_heads(
        &self,
        remote: &impl Store,
        source: &GatherSource,
        done: &mut GatheredSource,
    ) -> Result<Vec<Head>, GatherError> {
        let repository = done.repository.clone();
        let known = self.change(move |index| index.versions(&repository, &Rights::all())).await?;
        let known: BTreeMap<String, Vec<String>> =
            known.into_iter().flatten().map(|it| (it.digest, it.tags)).collect();
        let mut heads = BTreeMap::new();
        let wanted: Vec<Identifier> = if let Some(only) = &source.only {
            heads.clone_from(&known);
            vec![only.clone()]
        } else {
            let cannot = |error| GatherError::Store(done.repository.clone(), Box::new(error));
            let tags = remote.tags().await.map_err(cannot)?;
            let is_version = |tag: &String| Version::parse(tag).is_ok();
            tags.into_iter().filter(is_version).map(Identifier::Tag).collect()
        };
        let mut answers = stream::iter(wanted)
            .map(|id| async move { (remote.head(&id).await, id) })
            .buffer_unordered(QUESTIONS_MAX);
        while let Some((answer, id)) = answers.next().await {
            let digest = match answer {
                Ok(found) => found.map(|it| it.digest.to_string()),
                Err(error) => {
                    done.unread.push(format!(
                        "{}: {}",
                        name_version(&done.repository, &id),
                        chain(&error)
                    ));
                    known_digest(&known, &id)
                }
            };
            add_head(&mut heads, digest, &id);
        }
        Ok(heads
            .into_iter()
            .map(|(digest, tags)| Head { digest, tags, is_damaged: false })
            .collect())
    }

    /// Reads a package into the catalog; what cannot be read is tried again another time.
    async fn read_version(
        &self,
        remote: &impl Store,
        name: &str,
        digest: String,
    ) -> Result<GatherReading, GatherError> {
        let version = format!("{name}@{digest}");
        let Ok(parsed) = digest.parse::<Digest>() else {
            return Ok(GatherReading::Unread(format!(
                "{version} has no digest that is known here"
            )));
        };
        match read(remote, &parsed, &self.temporary).await {
            Ok(outcome) => {
                let reading = match &outcome {
                    Outcome::Package(_) => GatherReading::Package,
                    Outcome::Broken(reason) => {
                        GatherReading::Broken(format!("{version}: {reason}"))
                    }
                    Outcome::Other => GatherReading::Broken(format!("{version}: it is no package")),
                };
                self.change(move |index| index.learn(&digest, &outcome)).await?;
                Ok(reading)
            }
            Err(incomplete) => {
                let reason = match &incomplete {
                    Incomplete::Missing(_) | Incomplete::DigestMismatch(_) => {
                        incomplete.to_string()
                    }
                    Incomplete::Store(cause) => chain(&**cause),
                };
                let (repository, told) = (name.to_owned(), reason.clone());
                self.change(move |index| index.postpone(&repository, &digest, &told)).await?;
                Ok(GatherReading::Unread(format!("{version}: {reason}")))
            }
        }
    }

    /// Uses the catalog off the threads that wait for registries.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Index) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, IndexError> {
        let index = self.index.clone();
        let done = tokio::task::spawn_blocking(move || change(&index)).await;
        done.map_err(|error| IndexError::Io(std::io::Error::other(error)))?
    }
}

/// What became of a version.
enum GatherReading {
    Package,
    Broken(String),
    Unread(String),
}

fn name_version(repository: &str, id: &Identifier) -> String {
    match id {
        Identifier::Tag(tag) => format!("{repository}:{tag}"),
        Identifier::Digest(digest) => format!("{repository}@{digest}"),
    }
}

/// What something meant when it was looked at last.
fn known_digest(known: &BTreeMap<String, Vec<String>>, id: &Identifier) -> Option<String> {
    let digest = match id {
        Identifier::Tag(tag) => known.iter().find(|(_, tags)| tags.contains(tag)).map(|it| it.0),
        Identifier::Digest(digest) => known.get_key_value(&digest.to_string()).map(|it| it.0),
    };
    digest.cloned()
}

/// Lets a tag mean this, and nothing else any more.
fn add_head(heads: &mut BTreeMap<String, Vec<String>>, digest: Option<String>, id: &Identifier) {
    let tag = match id {
        Identifier::Tag(tag) => Some(tag.clone()),
        Identifier::Digest(_) => None,
    };
    if let Some(tag) = &tag {
        for tags in heads.values_mut() {
            tags.retain(|it| it != tag);
        }
    }
    if let Some(digest) = digest {
        heads.entry(digest).or_default().extend(tag);
    }
}
