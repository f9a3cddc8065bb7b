//! The lock: all packages together, and what they need of each other.
//!
//! There is one lock and one turn at a time. Whatever happens to a package, a revision or an image
//! configuration concerns it, and one look takes in everything that happened since the last.
//!
//! So nobody may hold it up. A registry that does not answer soon is waited for beside the lock,
//! which goes on without that answer and is called when it has come.

use crate::access::access;
use crate::fetch::{FetchError, Fetcher};
use crate::heard::{Answer, Asked, Heard, Memory, put, unanswered};
use crate::held::held;
use crate::kind::{Kind, Learnt, Meta, Wakes, Watch};
use crate::package::{provided, pull_secrets, typed};
use crate::{Hands, cluster, kinds, secrets};
use api::kind_reference::KindReference;
use api::meta::PackageKind;
use api::pkg::Package;
use api::pkg::lock::{Lock, NAME};
use api::pkg::revision::{ACTIVE, Revision};
use cluster::Which;
use futures::future::{BoxFuture, FutureExt as _};
use oci::{Digest, Identifier, Reference, Repository, Rules};
use plan::image_config::{Treatment, treat};
use plan::lock::{Contents, KindPins, KindSources, Report, Settings, World, decide};
use plan::package::pull::Policy;
use plan::revision;
use plan::step::{Need, Refusal, Step, Target, Wake};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::auth::Keychain;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The lock.
pub struct Locks {
    verdicts: Arc<crate::verdicts::Verdicts>,
    memory: Arc<Mutex<Memory>>,
    /// Questions that nobody waits for.
    errands: Mutex<JoinSet<()>>,
    /// Tells that something was heard.
    heard: broadcast::Sender<String>,
}

/// How old an answer may be on which somebody is refused: what they lack may have been pushed since.
const FRESH: Duration = Duration::from_secs(5);

/// A question to a registry, under way.
type Question = BoxFuture<'static, Result<Answer, String>>;

impl Locks {
    /// The lock, which tells its verdicts to these.
    pub fn new(hands: &Hands) -> Self {
        let (heard, _) = broadcast::channel(1);
        let (memory, errands) = (Arc::default(), Mutex::default());
        Self { verdicts: Arc::clone(&hands.verdicts), memory, errands, heard }
    }

    /// Asks a registry, and waits for as long as the lock can; then the question goes on by itself.
    async fn ask(&self, asked: Asked, registry: &str, mut question: Question) -> (Learnt, Heard) {
        let (then, patience) = (Instant::now(), self.memory().patience(registry));
        if let Ok(answer) = tokio::time::timeout(patience, &mut question).await {
            let mut memory = self.memory();
            memory.away.remove(registry);
            return (memory.hear(asked, then, &answer), answer);
        }
        let away = registry.to_owned();
        let mut memory = self.memory();
        memory.open.insert(asked.clone(), (then, away.clone()));
        memory.away.insert(away.clone());
        drop(memory);
        let (memory, heard) = (Arc::clone(&self.memory), self.heard.clone());
        let errand = async move {
            // A question that panics is answered, too: it must not stay open for ever.
            let answer = AssertUnwindSafe(question).catch_unwind().await;
            let answer = answer.unwrap_or_else(|_| Err("asking panicked".to_owned()));
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have been asked again, of somebody else.
            if memory.open.get(&asked).is_some_and(|(since, _)| *since == then) {
                if answer.is_ok() {
                    memory.away.remove(&away);
                }
                memory.hear(asked, then, &answer);
                let _ = heard.send(NAME.to_owned());
            }
        };
        let mut errands = self.errands.lock().unwrap_or_else(PoisonError::into_inner);
        while errands.try_join_next().is_some() {}
        errands.spawn(errand);
        (Learnt::Unknown, Err(unanswered(registry)))
    }

    /// Finds out which packages bring a kind. What was heard is not kept for the next look: who
    /// lacks something waits for a package that comes, or for a pin.
    async fn learn_kind(
        &self,
        hands: &Hands,
        world: &mut World,
        kind: KindReference,
    ) -> Result<Learnt, cluster::Error> {
        world.pins = kinds::read_pins(hands).await?;
        let served = kinds::served_kinds(hands, &kind).await?;
        let is_there = kind.name.is_some() && served.values().any(|one| one.is_served);
        let catalogs = hands.settings.catalogs.clone();
        let Some(first) = catalogs.first().filter(|_| !is_there) else {
            let sources = KindSources { kinds: served, ..KindSources::default() };
            world.known.kinds.insert(kind, Ok(sources));
            return Ok(Learnt::Known);
        };
        let (registry, asked) = (first.registry.clone(), Asked::Kind(kind.clone()));
        let names = catalogs.iter().map(|one| one.registry.clone()).collect();
        let known = served.clone();
        let unheard = self.memory().unheard(&asked);
        let (learnt, heard) = if let Some(why) = unheard {
            (Learnt::Unknown, Err(why))
        } else {
            let access = access(hands, &[]).await?;
            let (fetch, keychain, kind) = (hands.fetch.clone(), access.keychain, kind.clone());
            let question = async move {
                let found = kinds::ask_catalogs(&fetch, &keychain, &catalogs, &kind, known);
                Ok(Answer::Kind(Box::new(found.await)))
            };
            self.ask(asked, &registry, question.boxed()).await
        };
        let sources = match heard {
            Ok(Answer::Kind(sources)) => *sources,
            Ok(_) => KindSources { kinds: served, catalogs: names, ..KindSources::default() },
            Err(why) => {
                let silent = Some(why);
                KindSources { kinds: served, catalogs: names, silent, ..KindSources::default() }
            }
        };
        world.known.kinds.insert(kind, Ok(sources));
        Ok(learnt)
    }

    /// Everything that decides about the lock, with packages that are only wished for; nothing while
    /// there are neither packages nor a lock.
    pub(crate) async fn observe(
        &self,
        hands: &Hands,
        wished: Vec<Package>,
    ) -> Result<Option<World>, cluster::Error> {
        let group = hands.settings.group();
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let (mut packages, mut revisions): (Vec<Package>, Vec<Revision>) = Default::default();
        for kind in PackageKind::ALL {
            let all = hands.cluster.list(&stable, kind.as_str(), Which::default()).await?;
            let all = readable::<Package>(all, hands).into_iter();
            packages.extend(all.map(Package::with_chosen_image));
            let all = hands.cluster.list(&stable, &revision_of(kind), Which::default()).await?;
            revisions.extend(readable(all, hands));
        }
        for wish in wished {
            packages
                .retain(|one| (&one.kind, &one.metadata.name) != (&wish.kind, &wish.metadata.name));
            packages.push(wish);
        }
        let lock = current(hands).await?;
        if lock.is_none() && packages.is_empty() {
            return Ok(None);
        }
        let image_configs = hands.cluster.list(&beta, "ImageConfig", Which::default()).await?;
        let mut known = self.memory().fresh();
        known.revisions = cached(hands, &revisions).await;
        known.failing = hands.verdicts.failing(&revisions);
        Ok(Some(World {
            lock,
            packages,
            revisions,
            image_configs: readable(image_configs, hands),
            pins: KindPins::default(),
            known,
            refused: Vec::new(),
            settings: Settings {
                crossplane_version: hands.settings.crossplane_version.clone(),
                default_registry: hands.settings.default_registry.clone(),
                group,
                movement: hands.settings.movement,
                moves_kept: hands.settings.moves_kept,
                awaited: hands.settings.awaited(),
            },
            now: hands.now(),
        }))
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind for Locks {
    type World = World;

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let group = hands.settings.group();
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let all = |_: &Meta| Wakes::These(vec![NAME.to_owned()]);
        let memory = Arc::clone(&self.memory);
        let mut watches = vec![
            // There is one; its conditions, and those of packages, are no news.
            Watch::new(&beta, "Lock", |meta| match meta.metadata.name.as_deref() {
                Some(NAME) => Wakes::Itself,
                _ => Wakes::These(Vec::new()),
            })
            .for_content(),
            // They may send whoever did not answer somewhere else.
            Watch::new(&beta, "ImageConfig", move |_| {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.silent.clear();
                memory.open.clear();
                memory.away.clear();
                Wakes::These(vec![NAME.to_owned()])
            }),
            secrets::watch(hands, Wakes::These(vec![NAME.to_owned()])),
        ];
        for kind in PackageKind::ALL {
            watches.push(Watch::new(&stable, kind.as_str(), all).for_content());
            watches.push(Watch::new(&stable, &revision_of(kind), all));
        }
        watches
    }

    fn calls(&self, _: &Hands) -> Option<broadcast::Receiver<String>> {
        Some(self.heard.subscribe())
    }

    async fn gather(&self, hands: &Hands, _: &str) -> Result<Option<World>, cluster::Error> {
        self.observe(hands, Vec::new()).await
    }

    /// What is decided about revisions is told at once; what waits for the lock to be written is
    /// not among it.
    fn step(&self, world: &World) -> Step {
        match decide(world) {
            Err(needs) => Step::Need(needs),
            Ok(mut decided) => {
                let (old, age) = self.memory().before();
                if !decided.report.conflicts.is_empty() && !old.is_empty() {
                    if age >= FRESH {
                        return Step::Need(old.into_iter().map(Need::Tags).collect());
                    }
                    decided.plan.wake = Wake::After(FRESH);
                }
                if let (Some(left), wake) = (self.memory().silence(), &mut decided.plan.wake) {
                    let left = if let Wake::After(time) = *wake { left.min(time) } else { left };
                    *wake = Wake::After(left);
                }
                // A package that brings what somebody lacks may be pushed, or pinned, without a sign.
                if !decided.report.conflicts.is_empty() && !world.known.kinds.is_empty() {
                    let wake = &mut decided.plan.wake;
                    *wake = Wake::After(if let Wake::After(time) = *wake {
                        time.min(FRESH)
                    } else {
                        FRESH
                    });
                }
                self.verdicts.publish(decided.verdicts);
                Step::Do(decided.plan)
            }
        }
    }

    async fn learn(
        &self,
        hands: &Hands,
        world: &mut World,
        need: Need,
    ) -> Result<Learnt, cluster::Error> {
        let (asked, question) = match need {
            Need::Kind(kind) => return self.learn_kind(hands, world, kind).await,
            Need::Tags(repository) => {
                (Asked::Tags(repository.clone()), tags(hands, world, &repository).await?)
            }
            Need::Digest(reference) => {
                (Asked::Digest(reference.name()), digest(hands, world, &reference).await?)
            }
            Need::Contents(reference) => {
                (Asked::Contents(reference.name()), contents(hands, world, &reference).await?)
            }
            Need::Object(target) => {
                world.known.definition = Some(hands.cluster.get(&target).await?);
                return Ok(Learnt::Known);
            }
            other => return Err(cluster::Error::Refused(format!("the lock asks for {other:?}"))),
        };
        let (learnt, answer) = match question {
            Ok((registry, question)) => self.ask(asked.clone(), &registry, question).await,
            Err(why) => (Learnt::Unknown, Err(why)),
        };
        put(&mut world.known, asked, answer);
        Ok(learnt)
    }

    fn refuse(&self, world: &mut World, refusals: Vec<Refusal>) {
        world.refused = refusals;
    }
}

/// Where the Lock is.
pub(crate) fn target(hands: &Hands) -> Target {
    Target {
        api_version: format!("{}/v1beta1", hands.settings.group()),
        kind: "Lock".to_owned(),
        namespace: None,
        name: NAME.to_owned(),
    }
}

/// The Lock, as it is now.
pub(crate) async fn current(hands: &Hands) -> Result<Option<Lock>, cluster::Error> {
    hands.cluster.get(&target(hands)).await?.map(typed).transpose()
}

/// Why packages are what they are, or cannot be what they should.
pub(crate) async fn report(locks: &Locks, hands: &Hands) -> Result<Report, cluster::Error> {
    let Some(mut world) = locks.gather(hands, NAME).await? else { return Ok(Report::default()) };
    for _ in 0..crate::run::ROUNDS_MAX {
        match decide(&world) {
            Ok(decided) => return Ok(decided.report),
            Err(needs) => {
                for need in needs {
                    locks.learn(hands, &mut world, need).await?;
                }
            }
        }
    }
    Err(cluster::Error::Refused("the lock does not come to a decision".to_owned()))
}

fn revision_of(kind: PackageKind) -> String {
    format!("{}Revision", kind.as_str())
}

/// Those that can be read: one that cannot must not keep the others from being looked at.
fn readable<T: serde::de::DeserializeOwned>(all: Vec<serde_json::Value>, hands: &Hands) -> Vec<T> {
    let read = all.into_iter().filter_map(|one| match typed(one) {
        Ok(one) => Some(one),
        Err(error) => {
            hands.say(crate::Entry::trouble(NAME, "", &error.to_string()));
            None
        }
    });
    read.collect()
}

/// What is inside active revisions that are in the cache.
async fn cached(hands: &Hands, revisions: &[Revision]) -> BTreeMap<String, Contents> {
    let mut known = BTreeMap::new();
    for revision in revisions.iter().filter(|one| one.spec.desired_state == ACTIVE) {
        let Some(found) = held(hands, revision).await else { continue };
        let found =
            revision::Contents::of(found.digest.clone(), &found.opened, hands.settings.unsupported);
        let name = revision.metadata.name.clone();
        known.extend(Contents::of(&found).ok().map(|found| (name, found)));
    }
    known
}

/// With whose credentials a registry is asked.
struct NamedKeychain {
    keychain: Keychain,
    /// The Secrets that they are from.
    secrets: Vec<String>,
}

/// Where an image really is, and credentials for it; or why that cannot be said.
async fn place(
    hands: &Hands,
    world: &World,
    image: &str,
) -> Result<Result<(String, NamedKeychain), String>, cluster::Error> {
    let treatment = match treat(&world.image_configs, image, &hands.settings.default_registry) {
        Ok(treatment) => treatment,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let secrets = secrets_for(hands, world, image, &treatment);
    let access = access(hands, &secrets).await?;
    Ok(Ok((treatment.resolved, NamedKeychain { keychain: access.keychain, secrets })))
}

/// The Secrets to ask about an image with: those of the packages from the same repository, then the
/// one that an image configuration names.
fn secrets_for(hands: &Hands, world: &World, image: &str, treatment: &Treatment) -> Vec<String> {
    let rules = rules(hands);
    let repository = |name: &str| Some(Reference::parse(name, &rules).ok()?.repository().clone());
    let wanted = repository(image);
    let neighbours = world.packages.iter().filter(|_| wanted.is_some());
    let neighbours = neighbours.filter(|one| repository(&one.spec.package) == wanted);
    let named: Vec<_> = neighbours
        .flat_map(|one| one.spec.package_pull_secrets.clone().unwrap_or_default())
        .collect();
    pull_secrets(Some(&named), treatment)
}

fn rules(hands: &Hands) -> Rules {
    Rules::weak().any_digest().default_registry(&hands.settings.default_registry).git_sources()
}

/// A question, and the registry that it goes to; or why there is none.
type Asking = Result<Result<(String, Question), String>, cluster::Error>;

/// Which tags a repository has.
async fn tags(hands: &Hands, world: &World, repository: &Repository) -> Asking {
    let (name, NamedKeychain { keychain, .. }) =
        match place(hands, world, &repository.to_string()).await? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
    let repository = match Repository::parse(&name, &rules(hands)) {
        Ok(repository) => repository,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let (registry, fetch) = (repository.registry().to_owned(), hands.fetch.clone());
    let question = async move {
        let tags = fetch.tags(&repository, keychain).await.map_err(|error| error.text())?;
        Ok(Answer::Tags(tags))
    };
    Ok(Ok((registry, question.boxed())))
}

async fn located(
    hands: &Hands,
    world: &World,
    reference: &Reference,
) -> Result<Result<(Reference, NamedKeychain), String>, cluster::Error> {
    Ok(match place(hands, world, &reference.name()).await? {
        Ok((name, asker)) => Reference::parse(&name, &rules(hands))
            .map(|reference| (reference, asker))
            .map_err(|error| error.to_string()),
        Err(why) => Err(why),
    })
}

/// What a tag means.
async fn digest(hands: &Hands, world: &World, reference: &Reference) -> Asking {
    let (reference, NamedKeychain { keychain, .. }) = match located(hands, world, reference).await?
    {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let fetch = hands.fetch.clone();
    let registry = reference.repository().registry().to_owned();
    let question = async move {
        let digest = fetch.head(&reference, keychain).await.map_err(|error| error.text())?;
        Ok(Answer::Digest(digest))
    };
    Ok(Ok((registry, question.boxed())))
}

/// What is inside a package.
async fn contents(hands: &Hands, world: &World, reference: &Reference) -> Asking {
    if let Some(image) = unfetched(hands, world, reference) {
        let kept = kept(hands, image, reference).await.map(|one| Answer::Contents(Box::new(one)));
        return Ok(Ok((String::new(), async move { kept }.boxed())));
    }
    let (reference, asker) = match located(hands, world, reference).await? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let (fetch, unsupported) = (hands.fetch.clone(), hands.settings.unsupported);
    let registry = reference.repository().registry().to_owned();
    let question = async move {
        let found = fetched(&fetch, &reference, asker).await;
        let (digest, found) = found.map_err(|error| error.text())?;
        let found = Contents::of(&revision::Contents::of(digest, &found.opened, unsupported))?;
        Ok(Answer::Contents(Box::new(found)))
    };
    Ok(Ok((registry, question.boxed())))
}

/// The image as packages call it that may only have it from the cache, if nobody may fetch it.
fn unfetched<'w>(hands: &Hands, world: &'w World, reference: &Reference) -> Option<&'w str> {
    let is_asked_for = |one: &&Package| {
        let asked = Reference::parse(&one.spec.package, &rules(hands));
        asked.is_ok_and(|asked| asked.name() == reference.name())
    };
    let mut asking = world.packages.iter().filter(is_asked_for).peekable();
    let image = &asking.peek()?.spec.package;
    let is_never =
        |one: &Package| Policy::parse(one.spec.package_pull_policy.as_deref()) == Policy::Never;
    asking.all(is_never).then_some(image)
}

/// What is inside a package in the cache.
async fn kept(hands: &Hands, image: &str, reference: &Reference) -> Result<Contents, String> {
    let cached = match reference.identifier() {
        Identifier::Digest(digest) => Some(digest.clone()).filter(|one| hands.cache.has(one)),
        Identifier::Tag(_) => hands.cache.tag(&reference.name()),
    };
    let cached = match cached {
        Some(cached) => Some(cached),
        None => provided(hands, image).await.map_err(|error| error.text())?,
    };
    let absent = || format!("{image} is not in the package cache, and its pull policy is Never");
    let digest = cached.ok_or_else(absent)?;
    let found = hands.cache.contents(&digest).await.map_err(|error| cluster::chain(&error))?;
    Contents::of(&revision::Contents::of(digest, &found.opened, hands.settings.unsupported))
}

async fn fetched(
    fetch: &Fetcher,
    reference: &Reference,
    NamedKeychain { keychain, secrets }: NamedKeychain,
) -> Result<(Digest, Arc<crate::cache::Contents>), FetchError> {
    let digest = match (reference.identifier(), fetch.remembered(reference, &secrets)) {
        (Identifier::Digest(digest), _) => digest.clone(),
        (Identifier::Tag(_), Some(digest)) => digest,
        (Identifier::Tag(_), None) => fetch.digest(reference, keychain.clone(), &secrets).await?,
    };
    let found = fetch.contents(reference.repository(), &digest, keychain).await?;
    Ok((digest, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::{PATIENCE, PATIENCE_LEFT};

    #[tokio::test(start_paused = true)]
    async fn who_takes_long_to_answer_nothing_is_not_asked_again_at_once() {
        let mut memory = Memory::default();
        let asked = || Asked::Digest("r.io/a:v1".to_owned());
        let away: Heard = Err("nobody answers".to_owned());
        let then = Instant::now();
        memory.hear(asked(), then, &away);
        assert!(memory.fresh().digests.is_empty(), "who answers at once is asked at once");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(memory.hear(asked(), then, &away), Learnt::Unknown);
        assert_eq!(memory.fresh().digests["r.io/a:v1"], Err("nobody answers".to_owned()));
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(!memory.fresh().digests.is_empty());
        assert_eq!(memory.silence(), Some(Duration::from_secs(1)));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(memory.silence(), None);
        assert!(memory.fresh().digests.is_empty(), "it may be there by now");
        memory.hear(asked(), then, &away);
        let digest = Digest::of(b"a");
        let heard = Ok(Answer::Digest(digest.clone()));
        assert_eq!(memory.hear(asked(), then, &heard), Learnt::Known);
        assert_eq!(memory.fresh().digests["r.io/a:v1"], Ok(digest));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_soon_is_waited_for_beside_the_lock() {
        let (heard, mut news) = broadcast::channel(1);
        let (memory, errands) = (Arc::default(), Mutex::default());
        let locks = Locks { verdicts: Arc::default(), memory, errands, heard };
        let (one, two) = (Asked::Digest("r.io/a:v1".into()), Asked::Digest("r.io/b:v1".into()));
        let digest = Digest::of(b"a");
        let answer = Ok(Answer::Digest(digest.clone()));
        let late = async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            answer
        };
        let start = Instant::now();
        let (learnt, told) = locks.ask(one.clone(), "r.io", late.boxed()).await;
        assert_eq!((learnt, start.elapsed()), (Learnt::Unknown, PATIENCE));
        assert_eq!(told, Err(unanswered("r.io")));
        let never = std::future::pending().boxed();
        let _ = locks.ask(two, "r.io", never).await;
        assert_eq!(start.elapsed(), PATIENCE, "one wait for one registry");
        let known = locks.memory().fresh();
        assert_eq!(known.digests["r.io/a:v1"], Err(unanswered("r.io")), "it is not asked again");
        assert_eq!(news.recv().await.as_deref(), Ok(NAME), "the lock is called");
        assert_eq!(start.elapsed(), Duration::from_secs(50));
        assert_eq!(locks.memory().fresh().digests["r.io/a:v1"], Ok(digest));
        // The other one never comes.
        locks.memory().open.clear();
        assert_eq!(locks.memory().patience("r.io"), PATIENCE, "it answers again");
        locks.memory().away.insert("r.io".to_owned());
        assert_eq!(locks.memory().patience("r.io"), PATIENCE_LEFT, "it did not, the last time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_after_it_was_asked_elsewhere_does_not_count() {
        let (heard, _) = broadcast::channel(1);
        let (memory, errands) = (Arc::default(), Mutex::default());
        let locks = Locks { verdicts: Arc::default(), memory, errands, heard };
        let asked = Asked::Digest("r.io/a:v1".into());
        let late = async {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Err("r.io is away".to_owned())
        };
        let _ = locks.ask(asked, "r.io", late.boxed()).await;
        locks.memory().open.clear();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(locks.memory().fresh().digests.is_empty());
    }
}
