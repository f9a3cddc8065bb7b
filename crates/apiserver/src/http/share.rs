//! Fair shares: nobody takes all of the server's work.
//!
//! A *flow* is a user, or an address of those who did not say who they are. Each may have so many
//! requests at work at once, and all together so many; the others wait, each flow in its own line,
//! and are let in one of each flow in turn. A line that is full refuses with 429 and a time to come
//! back after, as API Priority and Fairness does. Requests are at work until their answer begins, so a
//! watch counts while it is set up and not while it lasts. Logs have seats besides, which they keep for
//! as long as they are read. Administrators (`system:masters`), the
//! manager in the same process among them, are exempt: they must be able to help.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;

use super::status::Failure;
use crate::auth::policy::MASTERS;
use crate::auth::{ANONYMOUS, User};

/// Where a request came from; whoever accepts connections puts it among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// How many requests, of whom.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// At work, of one flow.
    flow: usize,
    /// At work, of all flows.
    all: usize,
    /// In one flow's line.
    line: usize,
    /// How long a request may wait.
    wait: Duration,
}

const LIMITS: Limits = Limits { flow: 32, all: 256, line: 128, wait: Duration::from_secs(15) };

/// Logs that are open at the same time. Each keeps a file open, and one that is followed asks it for
/// news again and again, as long as its client stays; so none waits in line for another to end.
const LOGS: Limits = Limits { flow: 32, all: 256, line: 0, wait: Duration::ZERO };

/// What is at work and what waits.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    limits: Limits,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    at_work: usize,
    flows: HashMap<Arc<str>, Flow>,
    /// Flows with a line, in the order in which they are served; each is here once. While there
    /// is room for all, each of them has as many at work as it may.
    turns: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Flow {
    at_work: usize,
    line: VecDeque<oneshot::Sender<Share>>,
}

/// A request's place at work, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    flow: Arc<str>,
}

impl Default for Shares {
    fn default() -> Self {
        Self { limits: LIMITS, state: Arc::default() }
    }
}

impl Shares {
    /// The seats of open logs.
    pub(crate) fn for_logs() -> Self {
        Self { limits: LOGS, state: Arc::default() }
    }

    /// Waits for a place at work; those who are exempt need none.
    pub(crate) async fn take(
        &self,
        user: &User,
        peer: Option<&Peer>,
    ) -> Result<Option<Share>, Failure> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(None);
        }
        let share = match peer {
            Some(Peer(peer)) if user.name == ANONYMOUS => {
                self.enter(&format!("{ANONYMOUS} {peer}")).await
            }
            _ => self.enter(&user.name).await,
        };
        share.map(Some).ok_or_else(too_many)
    }

    async fn enter(&self, flow: &str) -> Option<Share> {
        match self.join(flow)? {
            Joined::Work(share) => Some(share),
            Joined::Line(turn) => tokio::time::timeout(self.limits.wait, turn).await.ok()?.ok(),
        }
    }

    /// A place at work, or one in line; none if the line is full.
    fn join(&self, name: &str) -> Option<Joined> {
        let mut state = self.lock();
        let known = state.flows.get_key_value(name).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| name.into());
        let has_room = state.at_work < self.limits.all;
        let flow = state.flows.entry(Arc::clone(&name)).or_default();
        if has_room && flow.at_work < self.limits.flow {
            flow.at_work = flow.at_work.saturating_add(1);
            state.at_work = state.at_work.saturating_add(1);
            return Some(Joined::Work(Share { shares: self.clone(), flow: name }));
        }
        // Those who went away while they waited take no room.
        flow.line.retain(|one| !one.is_closed());
        if flow.line.len() >= self.limits.line {
            state.forget(&name);
            return None;
        }
        let (enter, turn) = oneshot::channel();
        flow.line.push_back(enter);
        if !state.turns.contains(&name) {
            state.turns.push_back(name);
        }
        Some(Joined::Line(turn))
    }

    /// Lets in those whose turn it is.
    fn let_in(&self) {
        loop {
            let next = self.lock().next(self.limits);
            let Some((enter, flow)) = next else { return };
            // If its client has gone this very moment, the place is given back by being dropped.
            let _ = enter.send(Share { shares: self.clone(), flow });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a request that wants to work.
enum Joined {
    Work(Share),
    Line(oneshot::Receiver<Share>),
}

impl State {
    /// The next in line of the flow whose turn it is, counted as being at work.
    fn next(&mut self, limits: Limits) -> Option<(oneshot::Sender<Share>, Arc<str>)> {
        for _ in 0..self.turns.len() {
            if self.at_work >= limits.all {
                return None;
            }
            let name = self.turns.pop_front()?;
            let Some(flow) = self.flows.get_mut(&name) else { continue };
            if flow.at_work >= limits.flow {
                self.turns.push_back(name);
                continue;
            }
            let next = std::iter::from_fn(|| flow.line.pop_front()).find(|one| !one.is_closed());
            if !flow.line.is_empty() {
                self.turns.push_back(Arc::clone(&name));
            }
            let Some(next) = next else {
                self.forget(&name);
                continue;
            };
            flow.at_work = flow.at_work.saturating_add(1);
            self.at_work = self.at_work.saturating_add(1);
            return Some((next, name));
        }
        None
    }

    /// Forgets a flow of which nothing is at work and nothing waits.
    fn forget(&mut self, name: &str) {
        let is_empty = |flow: &Flow| flow.at_work == 0 && flow.line.is_empty();
        if self.flows.get(name).is_some_and(is_empty) {
            self.flows.remove(name);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.shares.lock();
        state.at_work = state.at_work.saturating_sub(1);
        if let Some(flow) = state.flows.get_mut(&self.flow) {
            flow.at_work = flow.at_work.saturating_sub(1);
        }
        state.forget(&self.flow);
        let is_awaited = !state.turns.is_empty();
        drop(state);
        if is_awaited {
            self.shares.let_in();
        }
    }
}

/// In upstream's words.
fn too_many() -> Failure {
    let message = "Too many requests, please try again later.";
    Failure::new(429, "TooManyRequests", message).with(json!({"retryAfterSeconds": 1}))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const FEW: Limits = Limits { flow: 4, all: 10, line: 1000, wait: Duration::from_secs(60) };

    fn shares(limits: Limits) -> Shares {
        Shares { limits, ..Shares::default() }
    }

    fn user(name: &str, group: &str) -> User {
        User { name: name.to_owned(), groups: vec![group.to_owned()], ..User::default() }
    }

    /// How many of each flow are at work, and the most there were.
    #[derive(Default)]
    struct Tally {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Tally {
        fn begin(&self) {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
        }

        fn end(&self) {
            self.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn m2_many_requests_of_many_users_keep_to_their_shares_and_all_are_served() {
        let (shares, all) = (shares(FEW), Arc::new(Tally::default()));
        let mut tasks = tokio::task::JoinSet::new();
        for name in ["ann", "bob", "cid", "dee"] {
            let tally = Arc::new(Tally::default());
            for _ in 0..500 {
                let (shares, all, tally) = (shares.clone(), Arc::clone(&all), Arc::clone(&tally));
                tasks.spawn(async move {
                    let share = shares.enter(name).await;
                    assert!(share.is_some());
                    all.begin();
                    tally.begin();
                    tokio::task::yield_now().await;
                    tally.end();
                    all.end();
                    drop(share);
                    tally.most.load(Ordering::SeqCst)
                });
            }
        }
        while let Some(most) = tasks.join_next().await {
            assert!(most.unwrap() <= FEW.flow);
        }
        assert!(all.most.load(Ordering::SeqCst) <= FEW.all);
        assert!(shares.lock().flows.is_empty() && shares.lock().turns.is_empty());
        assert_eq!(shares.lock().at_work, 0);
    }

    #[tokio::test]
    async fn m2_one_user_cannot_keep_another_from_working() {
        let shares = shares(FEW);
        let mut greedy = Vec::new();
        // Not until it is refused: where nobody is, that is never.
        for _ in 0..FEW.all {
            if let Some(Joined::Work(share)) = shares.join("greedy") {
                greedy.push(share);
            }
        }
        assert_eq!(greedy.len(), FEW.flow);
        let (_first, _second) = (shares.join("greedy"), shares.join("greedy"));
        assert!(matches!(shares.join("modest"), Some(Joined::Work(_))));
    }

    #[tokio::test]
    async fn m2_who_waits_is_let_in_one_of_each_user_in_turn() {
        let shares = shares(Limits { flow: 10, ..FEW });
        let working: Vec<_> = (0..10).map(|_| shares.join("first").unwrap()).collect();
        let names = ["a", "a", "a", "b", "b", "c"];
        let mut lines: Vec<_> = names
            .map(|name| match shares.join(name) {
                Some(Joined::Line(turn)) => turn,
                _ => panic!("there is no room"),
            })
            .into();
        let (mut order, mut kept) = (Vec::new(), Vec::new());
        for one in working {
            drop(one);
            for (name, line) in names.iter().zip(&mut lines) {
                if let Ok(share) = line.try_recv() {
                    order.push(*name);
                    kept.push(share);
                }
            }
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
    }

    #[tokio::test]
    async fn m2_a_full_line_is_refused_and_who_goes_away_leaves_no_trace() {
        let shares = shares(Limits { flow: 1, line: 2, ..FEW });
        let working = shares.join("a").unwrap();
        let waiting = (shares.join("a").unwrap(), shares.join("a").unwrap());
        assert!(shares.join("a").is_none());
        let refused = shares.take(&user("a", "g"), None).await.unwrap_err();
        assert_eq!((refused.code, refused.retry_after()), (429, Some(1)));
        assert!(shares.take(&user("a", MASTERS), None).await.unwrap().is_none(), "exempt");
        drop(waiting);
        let again = shares.join("a").unwrap();
        assert!(matches!(again, Joined::Line(_)), "there is room in the line again");
        drop((again, working));
        assert!(shares.lock().flows.is_empty() && shares.lock().turns.is_empty());
    }

    #[tokio::test]
    async fn m2_who_does_not_say_who_they_are_is_known_by_their_address() {
        let shares = shares(Limits { flow: 1, line: 0, ..FEW });
        let nobody = user(ANONYMOUS, "system:unauthenticated");
        let [here, there] = [1, 2].map(|last| Peer(IpAddr::from([192, 0, 2, last])));
        let first = shares.take(&nobody, Some(&here)).await;
        assert!(first.is_ok() && shares.take(&nobody, Some(&here)).await.is_err());
        assert!(shares.take(&nobody, Some(&there)).await.is_ok());
    }

    /// M2: a request whose body never comes gives its share back.
    #[tokio::test(start_paused = true)]
    async fn m2_a_body_that_does_not_come_is_not_waited_for() {
        use axum::body::Body;
        use futures::StreamExt as _;
        let server = crate::testing::server(crate::log::Log::in_memory()).await;
        let half = || futures::stream::iter([Ok::<_, std::convert::Infallible>("{")]);
        let started = tokio::time::Instant::now();
        let asked = (0..LIMITS.flow).map(|_| {
            let groups = vec!["system:authenticated".to_owned()];
            let identity = crate::Identity { user: "slow".to_owned(), groups, credential: None };
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let request = http::Request::post(path).header("content-type", "application/json");
            let body = Body::from_stream(half().chain(futures::stream::pending()));
            let request = request.extension(identity).body(body).unwrap();
            tower::ServiceExt::oneshot(server.router(), request)
        });
        let answers = futures::future::join_all(asked);
        let answers = tokio::time::timeout(Duration::from_secs(3600), answers).await;
        for answer in answers.expect("an answer comes without the body") {
            assert_eq!(answer.unwrap().status(), 504);
        }
        assert_eq!(started.elapsed().as_secs(), 60);
        assert!(server.shares.lock().flows.is_empty());
    }

    /// M2: the router lets nobody in beyond their share.
    #[tokio::test]
    async fn m2_the_router_refuses_whoever_has_more_than_a_share() {
        let server = crate::testing::server(crate::log::Log::in_memory()).await;
        let tries = 2 * LIMITS.all;
        let held: Vec<_> = (0..tries).map_while(|_| server.shares.join("greedy")).collect();
        assert_eq!(held.len(), LIMITS.flow + LIMITS.line);
        let ask = async |name: &str| {
            let groups = vec!["devs".to_owned()];
            let identity = crate::Identity { user: name.to_owned(), groups, credential: None };
            let request = http::Request::get("/api").extension(identity);
            let request = request.body(axum::body::Body::empty()).unwrap();
            tower::ServiceExt::oneshot(server.router(), request).await.unwrap().status()
        };
        assert_eq!(ask("greedy").await, 429);
        assert_eq!(ask("modest").await, 200);
        drop(held);
        assert_eq!(ask("greedy").await, 200);
    }
}
