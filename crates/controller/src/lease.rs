//! Which of several managers works: the one that holds the Lease.
//!
//! Whoever holds it renews it, and stops working if it could not for [`Timing::deadline`]. Others
//! take it only after it did not change for as long as it says it is good for, by their own clocks, which
//! need not agree with anybody's. One that stops cleanly gives it up, so that the next need not
//! wait. If somebody deletes it, whoever held it makes it again when it would have renewed it, and
//! those who saw it held wait as if it were still there.

use crate::Hands;
use crate::cluster::{Error, Mode};
use crate::{Entry, queue};
use plan::step::Target;
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How long work under way may take to end.
const END: Duration = Duration::from_secs(5);

/// How often it is tried to give the lease up.
const RELEASES: usize = 3;

/// How long things take. Who cannot renew must have stopped before others may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease is good for, in whole seconds. It is renewed three times meanwhile.
    pub duration: Duration,
    /// How long it may take to renew it.
    pub deadline: Duration,
    /// How often those look at it who do not hold it.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let [duration, deadline, retry] = [60, 50, 5].map(Duration::from_secs);
        Self { duration, deadline, retry }
    }
}

/// What the lease was when another held it and it last changed, and when that was seen.
#[derive(Default)]
struct Watched {
    version: Option<(String, Instant)>,
    good_for: Duration,
}

/// Works while this manager holds the lease, until told to stop. That the lease was lost is an error:
/// whoever started this manager starts it again.
pub(crate) async fn lead<W: Future<Output = ()>>(
    hands: &Hands,
    mut stop: Receiver<bool>,
    work: impl FnOnce(Receiver<bool>) -> W,
) -> Result<(), Error> {
    let acquired = tokio::select! {
        acquired = acquire(hands) => acquired,
        () = asked_to_stop(&mut stop) => return Ok(()),
    };
    hands.say(Entry::news("lease", &hands.settings.identity, "this manager works now"));
    let (tell, told) = tokio::sync::watch::channel(false);
    let mut work = Box::pin(work(told));
    let lost = tokio::select! {
        why = hold(hands, acquired) => Some(why),
        () = asked_to_stop(&mut stop) => None,
        () = &mut work => {
            release(hands).await;
            return Ok(());
        }
    };
    let _ = tell.send(true);
    let Timing { duration, deadline, .. } = hands.settings.lease;
    let end = if lost.is_some() { END.min(duration.saturating_sub(deadline)) } else { END };
    let _ = tokio::time::timeout(end, &mut work).await;
    // Whatever has not ended by now ends here, before others may begin.
    drop(work);
    if let Some(why) = lost {
        return Err(Error::Deposed(why));
    }
    release(hands).await;
    Ok(())
}

/// Done when somebody wants this manager to stop.
async fn asked_to_stop(stop: &mut Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits until this manager holds the lease; says since when.
async fn acquire(hands: &Hands) -> Instant {
    let (mut watched, mut is_told) = (Watched::default(), false);
    loop {
        match attempt(hands, &mut watched).await {
            Ok(Some(since)) => {
                hands.metrics.leads(true);
                return since;
            }
            Ok(None) if !is_told => {
                is_told = true;
                let text = "another manager works; this one stands by";
                hands.say(Entry::news("lease", &hands.settings.identity, text));
            }
            Ok(None) | Err(Error::Stale(_)) => {}
            Err(error) => hands.say(Entry::trouble("lease", "", &error.to_string())),
        }
        sleep(hands.settings.lease.retry).await;
    }
}

/// Holds the lease; done when it is lost.
async fn hold(hands: &Hands, acquired: Instant) -> String {
    let lost = keep(hands.settings.lease, acquired, || renew(hands)).await;
    hands.metrics.leads(false);
    lost
}

/// Renews in time, for as long as that can be done; says why it cannot any more. A lease is good
/// from when it was asked for, not from when the answer came, which may never come.
async fn keep<R: Future<Output = Result<bool, Error>>>(
    timing: Timing,
    acquired: Instant,
    renew: impl Fn() -> R,
) -> String {
    let mut renewed = acquired;
    loop {
        let end = renewed + timing.deadline;
        sleep_until(end.min(renewed + timing.duration / 3)).await;
        let mut trouble = "it was not renewed in time".to_owned();
        renewed = loop {
            let asked = Instant::now();
            match timeout_at(end, renew()).await {
                Ok(Ok(true)) => break asked,
                Ok(Ok(false)) => return "somebody else holds it".to_owned(),
                Ok(Err(error)) => trouble = error.to_string(),
                Err(_) => return trouble,
            }
            if Instant::now() >= end {
                return trouble;
            }
            sleep_until(end.min(Instant::now() + queue::BACKOFF.min(timing.retry))).await;
        };
    }
}

/// Gives the lease up, if this manager holds it. A renewal may still be under way to the server, and
/// comes in between at most once.
async fn release(hands: &Hands) {
    for _ in 0..RELEASES {
        let given = async {
            let Some(mut live) = hands.cluster.get(&target(hands)).await? else { return Ok(()) };
            if live["spec"]["holderIdentity"] == hands.settings.identity {
                live["spec"]["holderIdentity"] = json!("");
                hands.cluster.replace(&target(hands), &live, Mode::Real).await?;
            }
            Ok::<_, Error>(())
        };
        match given.await {
            Ok(()) => break,
            Err(Error::Stale(_)) => {}
            Err(error) => {
                hands.say(Entry::trouble("lease", "", &error.to_string()));
                break;
            }
        }
    }
    hands.metrics.leads(false);
}

/// Takes the lease if it may be had; says since when.
async fn attempt(hands: &Hands, watched: &mut Watched) -> Result<Option<Instant>, Error> {
    let target = target(hands);
    let Some(mut live) = hands.cluster.get(&target).await? else {
        // Whoever held it works on until it would have been renewed, and makes it again then.
        if !watched.is_over() {
            return Ok(None);
        }
        let asked = Instant::now();
        make(hands).await?;
        return Ok(Some(asked));
    };
    let holder = live["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    if holder == hands.settings.identity {
        let asked = Instant::now();
        return Ok(renew(hands).await?.then_some(asked));
    }
    if !holder.is_empty() {
        watched.see(&live);
        if !watched.is_over() {
            return Ok(None);
        }
    }
    let before = live["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
    live["spec"] = held(hands, before.saturating_add(1));
    let asked = Instant::now();
    hands.cluster.replace(&target, &live, Mode::Real).await?;
    Ok(Some(asked))
}

/// Makes the lease, held by this manager. The API server makes it for one only: for others there
/// is one already.
async fn make(hands: &Hands) -> Result<(), Error> {
    let target = target(hands);
    let lease = json!({
        "apiVersion": target.api_version, "kind": target.kind,
        "metadata": {"name": target.name, "namespace": target.namespace},
        "spec": held(hands, 0),
    });
    hands.cluster.create(&target, &lease, Mode::Real).await.map(|_| ())
}

/// Renews the lease; false if somebody else holds it. One that somebody deleted is made again: it is
/// held only if that worked.
async fn renew(hands: &Hands) -> Result<bool, Error> {
    let Some(mut live) = hands.cluster.get(&target(hands)).await? else {
        make(hands).await?;
        hands.say(Entry::news(
            "lease",
            &hands.settings.identity,
            "somebody deleted it; it is made again",
        ));
        return Ok(true);
    };
    if live["spec"]["holderIdentity"] != hands.settings.identity {
        return Ok(false);
    }
    live["spec"]["renewTime"] = json!(hands.now_precisely());
    hands.cluster.replace(&target(hands), &live, Mode::Real).await?;
    Ok(true)
}

fn held(hands: &Hands, transitions: i64) -> Json {
    let now = hands.now_precisely();
    json!({
        "holderIdentity": hands.settings.identity,
        "leaseDurationSeconds": hands.settings.lease.duration.as_secs(),
        "acquireTime": now, "renewTime": now, "leaseTransitions": transitions,
    })
}

/// Managers of other groups work beside this one.
fn target(hands: &Hands) -> Target {
    Target {
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        namespace: Some(hands.settings.namespace.clone()),
        name: format!("apron-manager.{}", hands.settings.group()),
    }
}

impl Watched {
    /// Notes what the lease is, if it is not what it was.
    fn see(&mut self, live: &Json) {
        let version = live["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let good_for = live["spec"]["leaseDurationSeconds"].as_u64().map(Duration::from_secs);
        self.good_for = good_for.unwrap_or(Timing::default().duration);
        if self.version.as_ref().is_none_or(|(seen, _)| seen != version) {
            self.version = Some((version.to_owned(), Instant::now()));
        }
    }

    /// Whether the lease has not changed for as long as it is good for, or was never seen.
    fn is_over(&self) -> bool {
        self.version.as_ref().is_none_or(|(_, since)| since.elapsed() >= self.good_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn nobody_leads_for_longer_than_the_lease_however_long_answers_take() {
        let start = Instant::now();
        let silence = || std::future::pending();
        let why = keep(Timing::default(), start, silence).await;
        assert_eq!((&*why, start.elapsed().as_secs()), ("it was not renewed in time", 50));
        // The first renewal is asked for after 20 s, and answered 25 s later; then nobody answers.
        let start = Instant::now();
        let asked = AtomicUsize::new(0);
        let slow = || async {
            let seconds = if asked.fetch_add(1, Ordering::SeqCst) == 0 { 25 } else { 3600 };
            sleep(Duration::from_secs(seconds)).await;
            Ok(true)
        };
        keep(Timing::default(), start, slow).await;
        assert_eq!(start.elapsed().as_secs(), 20 + 50);
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_renew_tries_again_until_the_end_and_says_why() {
        let start = Instant::now();
        let asked = AtomicUsize::new(0);
        let busy = || async {
            asked.fetch_add(1, Ordering::SeqCst);
            Err(Error::Busy("it is away".to_owned()))
        };
        let why = keep(Timing::default(), start, busy).await;
        assert!(why.ends_with("it is away"), "{why}");
        assert_eq!((start.elapsed().as_secs(), asked.into_inner()), (50, 31));
        let why = keep(Timing::default(), Instant::now(), || async { Ok(false) }).await;
        assert_eq!(why, "somebody else holds it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_over_when_it_has_not_changed_for_long_enough() {
        let lease = |version: &str| {
            json!({
                "metadata": {"resourceVersion": version},
                "spec": {"leaseDurationSeconds": 60, "renewTime": "1999-01-01T00:00:00Z"},
            })
        };
        let mut watched = Watched::default();
        let mut is_over = |version: &str| {
            watched.see(&lease(version));
            watched.is_over()
        };
        assert!(!is_over("1"), "whatever times it has");
        sleep(Duration::from_secs(59)).await;
        assert!(!is_over("2"), "it was renewed");
        sleep(Duration::from_secs(59)).await;
        assert!(!is_over("2"));
        sleep(Duration::from_secs(1)).await;
        assert!(is_over("2"));
    }
}
