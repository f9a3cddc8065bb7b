//! The one loop: key → gather → step → find out → act → when to look again.

use crate::Hands;
use crate::act::{self, Trouble};
use crate::kind::{Kind, Learnt};
use crate::queue::{BACKOFF, BACKOFF_MAX, Ended, Queue};
use crate::watch::Watches;
use crate::{Entry, cluster, forbidden};
use futures::FutureExt as _;
use plan::step::{Action, Plan, Refusal, Step, Wake};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often a step may ask for more, or be told of a refusal, before it is a bug.
pub const ROUNDS_MAX: usize = 64;

/// Says what a kind wants to know about, and looks after it until told to stop; then it finishes
/// what is under way.
pub(crate) fn run<K: Kind>(
    kind: K,
    hands: &Arc<Hands>,
    watches: &mut Watches,
    stop: &Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<K> {
    let queue = Arc::new(Queue::default());
    for one in kind.watches(hands) {
        watches.add(one, &queue);
    }
    let (kind, hands, stop) = (Arc::new(kind), Arc::clone(hands), stop.clone());
    async move {
        let begin = || work(&kind, &queue, &hands, stop.clone());
        again_after_panic(&hands, &kind.name(), begin).await;
    }
}

async fn work<K: Kind>(
    kind: &Arc<K>,
    queue: &Arc<Queue>,
    hands: &Arc<Hands>,
    mut stop: Receiver<bool>,
) {
    let mut wakers = JoinSet::new();
    if let Some(calls) = kind.calls(hands) {
        wakers.spawn(hear(Arc::clone(queue), calls));
    }
    wakers.spawn(resync(Arc::clone(queue), hands.settings.sync_interval));
    let mut work = JoinSet::new();
    loop {
        hands.metrics.waiting(&kind.name(), queue.depth());
        let may_begin = work.len() < hands.settings.concurrency_max;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = work.join_next(), if !work.is_empty() => {}
            key = queue.next(), if may_begin => {
                let (kind, hands) = (Arc::clone(kind), Arc::clone(hands));
                let look = Look { queue: Arc::clone(queue), key, ended: BADLY };
                work.spawn(async move {
                    let ended = contained_turn(&*kind, &hands, &look.key).await;
                    look.end(ended);
                });
            }
        }
    }
    drop(wakers);
    while work.join_next().await.is_some() {}
}

/// How a turn went that did not come to its end.
const BADLY: Ended = Ended::Badly { at_most: None, rests: true };

/// A key that is being looked at, until this is dropped: however a turn ends, its key is free.
struct Look {
    queue: Arc<Queue>,
    key: String,
    ended: Ended,
}

impl Look {
    fn end(mut self, how: Ended) {
        self.ended = how;
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.queue.ended(&self.key, self.ended);
    }
}

/// Looks at whom somebody calls; who missed a call looks at everyone.
async fn hear(queue: Arc<Queue>, mut calls: broadcast::Receiver<String>) {
    loop {
        match calls.recv().await {
            Ok(key) => queue.wake(&key),
            Err(RecvError::Lagged(_)) => queue.wake_everyone(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Looks at everyone from time to time, in case something was missed.
async fn resync(queue: Arc<Queue>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        queue.wake_everyone();
    }
}

/// A turn; one that panics has gone badly, like any other that failed. Its key is free again, and
/// the next look begins with nothing of this one.
async fn contained_turn<K: Kind>(kind: &K, hands: &Hands, key: &str) -> Ended {
    let start = Instant::now();
    let Ok(ended) = AssertUnwindSafe(turn(kind, hands, key)).catch_unwind().await else {
        let name = kind.name();
        hands.say(Entry::trouble(&name, key, "looking at it panicked; it is looked at again"));
        hands.metrics.looked(&name, "panicked", start.elapsed());
        return BADLY;
    };
    ended
}

/// Runs something that goes on for ever, again after a while if it panics.
pub(crate) async fn again_after_panic<F: Future<Output = ()>>(
    hands: &Hands,
    name: &str,
    mut begin: impl FnMut() -> F,
) {
    let mut pause = BACKOFF;
    while AssertUnwindSafe(begin()).catch_unwind().await.is_err() {
        hands.say(Entry::trouble(name, "", "it panicked, and begins again after a while"));
        hands.metrics.looked(name, "panicked", Duration::ZERO);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(BACKOFF_MAX);
    }
}

/// Looks at one object once, and says how it went.
async fn turn<K: Kind>(kind: &K, hands: &Hands, key: &str) -> Ended {
    let (start, name) = (Instant::now(), kind.name());
    let (ended, outcome) = match look(kind, hands, key).await {
        Ok(Looked { wake, learnt: Learnt::Known, .. }) => (Ended::Well(after(wake)), "done"),
        Ok(Looked { wake, is_told, .. }) => {
            (Ended::Badly { at_most: after(wake), rests: is_told }, "waiting")
        }
        Err(cluster::Error::Stale(_)) => (Ended::Badly { at_most: None, rests: false }, "stale"),
        Err(error) => {
            hands.say(Entry::trouble(&name, key, &error.to_string()));
            if let (cluster::Error::Refused(why), Some(subject)) =
                (&error, kind.subject(hands, key))
            {
                forbidden::tell(hands, &subject, why).await;
            }
            (Ended::Badly { at_most: None, rests: true }, "failed")
        }
    };
    hands.metrics.looked(&name, outcome, start.elapsed());
    ended
}

fn after(wake: Wake) -> Option<Duration> {
    match wake {
        Wake::OnChange => None,
        Wake::After(time) => Some(time),
    }
}

/// How a look went.
pub(crate) struct Looked {
    /// When to look again.
    pub(crate) wake: Wake,
    learnt: Learnt,
    /// Whether the object says something else than before, which is news of it.
    is_told: bool,
}

impl Default for Looked {
    fn default() -> Self {
        Self { wake: Wake::OnChange, learnt: Learnt::Known, is_told: false }
    }
}

/// Looks at one object until there is nothing more to do to it now. What the API server refuses
/// is told to the step, on a world gathered anew, because some of the plan may have been done.
pub(crate) async fn look<K: Kind>(
    kind: &K,
    hands: &Hands,
    key: &str,
) -> Result<Looked, cluster::Error> {
    let (mut refusals, mut learnt): (Vec<Refusal>, _) = (Vec::new(), Learnt::Known);
    let mut rounds = 0;
    'gather: loop {
        let Some(mut world) = kind.gather(hands, key).await? else {
            return Ok(Looked::default());
        };
        if !refusals.is_empty() {
            kind.refuse(&mut world, refusals.clone());
            learnt = Learnt::Unknown;
        }
        loop {
            rounds += 1;
            if rounds > ROUNDS_MAX {
                let why = format!("no decision after {ROUNDS_MAX} rounds");
                return Err(cluster::Error::Refused(why));
            }
            match kind.step(&world) {
                Step::Need(needs) => {
                    for need in needs {
                        if kind.learn(hands, &mut world, need).await? == Learnt::Unknown {
                            learnt = Learnt::Unknown;
                        }
                    }
                }
                Step::Do(plan) => match carry_out(&kind.name(), hands, key, &plan).await {
                    Ok(()) => {
                        let tells = |one: &Action| matches!(one, Action::Status { .. });
                        let is_told = plan.actions.iter().any(tells);
                        return Ok(Looked { wake: plan.wake, learnt, is_told });
                    }
                    Err(Trouble::Refused(new)) if new.iter().all(|one| refusals.contains(one)) => {
                        return Err(cluster::Error::Refused(new[0].message.clone()));
                    }
                    Err(Trouble::Refused(new)) => {
                        refusals.extend(new);
                        continue 'gather;
                    }
                    Err(Trouble::Again(error)) => return Err(error),
                },
            }
        }
    }
}

async fn carry_out(name: &str, hands: &Hands, key: &str, plan: &Plan) -> Result<(), Trouble> {
    if plan.actions.is_empty() {
        return Ok(());
    }
    for reason in &plan.report {
        hands.say(Entry::news(name, key, reason));
    }
    act::carry_out(hands, &plan.actions).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::cache::Cache;
    use crate::fetch::Fetcher;
    use crate::kind::Watch;
    use plan::step::Need;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};
    use store::auth::Keychain;

    /// Hands that reach nobody, and what they said.
    fn hands(directory: &std::path::Path) -> (Arc<Hands>, Arc<Mutex<Vec<String>>>) {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<std::io::Result<http::Response<kube::client::Body>>>()
        });
        let nowhere = tower::service_fn(|_: http::Request<store::remote::Body>| {
            std::future::pending::<std::io::Result<http::Response<store::remote::Body>>>()
        });
        let (cache, said) = (Cache::open(directory).unwrap(), Arc::new(Mutex::default()));
        let spoken = store::remote::Settings::default();
        let transport = store::remote::transport(nowhere);
        let fetch = Fetcher::new(transport, spoken, Keychain::anonymous(), cache.clone());
        let heard: Arc<Mutex<Vec<String>>> = Arc::clone(&said);
        let voice = move |entry: &Entry<'_>| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(format!("{} {}: {}", entry.controller, entry.object, entry.message));
        };
        let client = kube::Client::new(silent, "default");
        let settings = Settings::alone("test");
        let now = Arc::new(|| "2026-01-01T00:00:00Z".to_owned());
        (Arc::new(Hands::new(client, fetch, cache, settings, now, Arc::new(voice))), said)
    }

    /// A kind whose object `brittle` breaks whoever looks at it the first three times, under a
    /// lock; it counts how often each is looked at.
    #[derive(Default)]
    struct Brittle {
        looks: Arc<Mutex<BTreeMap<String, usize>>>,
    }

    impl Kind for Brittle {
        type World = ();

        fn name(&self) -> String {
            "brittle".to_owned()
        }

        fn watches(&self, _: &Hands) -> Vec<Watch> {
            Vec::new()
        }

        async fn gather(&self, _: &Hands, key: &str) -> Result<Option<()>, cluster::Error> {
            let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
            let count = looks.entry(key.to_owned()).or_default();
            *count += 1;
            assert!(key != "brittle" || *count > 3, "it broke");
            Ok(None)
        }

        fn step(&self, (): &()) -> Step {
            Step::Do(Plan::default())
        }

        async fn learn(&self, _: &Hands, (): &mut (), _: Need) -> Result<Learnt, cluster::Error> {
            Ok(Learnt::Known)
        }

        fn refuse(&self, (): &mut (), _: Vec<Refusal>) {}
    }

    /// H2, the second half: a key that was being looked at stayed so for ever.
    #[tokio::test(start_paused = true)]
    async fn h2_a_turn_that_panics_is_told_and_its_key_is_looked_at_again() {
        let directory = tempfile::tempdir().unwrap();
        let (hands, said) = hands(directory.path());
        let (queue, kind) = (Arc::new(Queue::default()), Arc::new(Brittle::default()));
        let looks = Arc::clone(&kind.looks);
        let (stop, told) = tokio::sync::watch::channel(false);
        for key in ["brittle", "sound"] {
            queue.wake(key);
        }
        let start = Instant::now();
        let (ours, theirs) = (Arc::clone(&hands), Arc::clone(&queue));
        let working = tokio::spawn(async move { work(&kind, &theirs, &ours, told).await });
        let count = |key: &str| {
            let looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
            looks.get(key).copied().unwrap_or_default()
        };
        let looked_at = async |times: usize| {
            for _ in 0..1000 {
                if count("brittle") >= times {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("its key is stuck");
        };
        looked_at(4).await;
        let waited = start.elapsed().as_secs();
        assert_eq!(waited, 1 + 2 + 4, "twice as long each time");
        assert_eq!(count("sound"), 1, "others have had their turn");
        queue.wake("brittle");
        looked_at(5).await;
        let _ = stop.send(true);
        working.await.unwrap();
        let told = "brittle brittle: looking at it panicked; it is looked at again";
        assert_eq!(*said.lock().unwrap(), [told; 3]);
        let counted = hands.metrics.render();
        let line = "apron_reconciles_total{controller=\"brittle\",result=\"panicked\"} 3";
        assert!(counted.contains(line), "{counted}");
    }

    /// H2, the second half: a watch that ends tells nobody anything any more.
    #[tokio::test(start_paused = true)]
    async fn h2_what_goes_on_for_ever_begins_again_after_a_panic() {
        let directory = tempfile::tempdir().unwrap();
        let (hands, said) = hands(directory.path());
        let (mut rounds, start) = (0, Instant::now());
        let begin = || {
            rounds += 1;
            let round = rounds;
            async move { assert!(round > 2, "it broke") }
        };
        again_after_panic(&hands, "watch", begin).await;
        assert_eq!((start.elapsed().as_secs(), said.lock().unwrap().len()), (3, 2));
    }
}
