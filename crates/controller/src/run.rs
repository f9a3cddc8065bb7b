//! The one loop: key → gather → step → find out → act → when to look again.

use crate::Hands;
use crate::act::{self, Trouble};
use crate::kind::{Kind, Learnt};
use crate::queue::{Ended, Queue};
use crate::watch::Watches;
use crate::{Entry, cluster, forbidden};
use plan::step::{Action, Plan, Refusal, Step, Wake};
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
    work(kind, queue, Arc::clone(hands), stop.clone())
}

async fn work<K: Kind>(kind: K, queue: Arc<Queue>, hands: Arc<Hands>, mut stop: Receiver<bool>) {
    let kind = Arc::new(kind);
    let mut wakers = JoinSet::new();
    if let Some(calls) = kind.calls(&hands) {
        wakers.spawn(hear(Arc::clone(&queue), calls));
    }
    wakers.spawn(resync(Arc::clone(&queue), hands.settings.sync_interval));
    let mut work = JoinSet::new();
    loop {
        hands.metrics.waiting(&kind.name(), queue.depth());
        let may_begin = work.len() < hands.settings.concurrency_max;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = work.join_next(), if !work.is_empty() => {}
            key = queue.next(), if may_begin => {
                let (kind, hands, queue) = (Arc::clone(&kind), Arc::clone(&hands), Arc::clone(&queue));
                work.spawn(async move {
                    let ended = turn(&*kind, &hands, &key).await;
                    queue.ended(&key, ended);
                });
            }
        }
    }
    drop(wakers);
    while work.join_next().await.is_some() {}
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
