//! The gate: every call the manager makes to the API server passes it, is counted and written
//! down, and may meet a fault. A node that runs pods has a gate, too.
//!
//! Calls, and what watches tell, pass one at a time ([`crate::turnstile`]).
//! So it does not matter which thread was faster: the same scenario makes the same calls in the
//! same order, and a fault is told by the number of the call it happens to.
//!
//! One gate is one life of a manager, or of a node. When a life ends, the gate is shut: what its tasks
//! still ask for is neither heard nor answered, as with a process that is gone.

use crate::fault::{At, Fault, Schedule};
use crate::stream;
use crate::turnstile::Turnstile;
use axum::Router;
use axum::body::Body as Answer;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

/// How long a node cannot be reached, nor reach anybody.
const UNREACHABLE: Duration = Duration::from_secs(300);
/// What is said of a connection that is gone.
const LOST: &str = "the connection was lost";

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// How.
    pub method: Method,
    /// About what.
    pub path: String,
    /// What was asked besides.
    pub query: String,
    /// When.
    pub time: Instant,
    /// What there was then.
    pub moment: Moment,
}

/// What a manager that is started would find: the version of the cluster, and files in its cache.
/// Who dies twice at the same moment has died once.
pub type Moment = (u64, usize);

/// Says what there is now.
pub type Probe = Arc<dyn Fn() -> Moment + Send + Sync>;

impl Call {
    fn of(request: &Request<Body>) -> Self {
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            time: Instant::now(),
            moment: Moment::default(),
        }
    }

    /// Whether it asks to be told of changes.
    pub fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// Whether it may change something.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.query.contains("dryRun=")
    }

    /// Whether it may change something besides what is told about it.
    pub fn is_change(&self) -> bool {
        self.is_write() && !self.path.contains("/events")
    }

    /// Whether it only asks how things are.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET && !self.is_watch()
    }

    /// Whether two calls ask for the same. What pods are called depends on keys that are new each time.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.method, self.plain_path()) == (&other.method, other.plain_path())
    }

    /// The path without the names of pods.
    pub fn plain_path(&self) -> String {
        let parts: Vec<&str> = self.path.split('/').collect();
        let is_name = |at: usize| at > 0 && parts[at - 1] == "pods";
        let parts = (0..parts.len()).map(|at| if is_name(at) { "POD" } else { parts[at] });
        parts.collect::<Vec<_>>().join("/")
    }

    /// Whether a node only says that it is there.
    pub fn is_heartbeat(&self) -> bool {
        self.path.contains("/leases")
    }
}

/// Something that is done to a call before it is made: a bug that the manager does not have.
pub type Bend = Arc<dyn Fn(&Call, Vec<u8>) -> Bent + Send + Sync>;

/// What becomes of a call that was bent.
#[derive(Debug)]
pub enum Bent {
    /// It is made, with this body.
    Send(Vec<u8>),
    /// It is made to another path, with this body.
    Redirect(String, Vec<u8>),
    /// It is not made, and the manager believes that it was answered like this.
    Pretend(u16, serde_json::Value),
    /// It is made, with this body, and something else is heard than what was answered.
    Mishear(Vec<u8>, fn(&mut serde_json::Value)),
}

/// There is nobody any more who could make a call.
struct Gone;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    watches: Vec<Call>,
    schedule: Option<Schedule>,
    /// From which call on numbers count; nothing while they do not.
    armed: Option<usize>,
    frozen: Option<Router>,
    met: Option<Call>,
    is_shut: bool,
    unreachable_until: Option<Instant>,
}

/// Does to a machine what a fault says.
pub(crate) type Harm = Arc<dyn Fn(Fault) + Send + Sync>;

/// One life's way to the API server.
#[derive(Clone)]
pub struct Gate {
    server: Router,
    state: Arc<Mutex<State>>,
    turnstile: Turnstile,
    member: u64,
    ended: Arc<Notify>,
    bend: Option<Bend>,
    harm: Option<Harm>,
    probe: Probe,
}

impl Gate {
    /// A gate before a server.
    pub fn new(
        server: Router,
        turnstile: &Turnstile,
        schedule: Option<Schedule>,
        bend: Option<Bend>,
        probe: Probe,
    ) -> Self {
        let state = Arc::new(Mutex::new(State { schedule, ..State::default() }));
        let (turnstile, ended) = (turnstile.clone(), Arc::new(Notify::new()));
        let member = turnstile.add_member();
        Self { server, state, turnstile, member, ended, bend, harm: None, probe }
    }

    /// The gate of a node, whose machine comes to harm by some faults.
    pub(crate) fn of_node(self, harm: Harm) -> Self {
        Self { harm: Some(harm), ..self }
    }

    /// From now on calls are numbered, and may meet faults. Who is told of the past instead of the
    /// present is told by the server that is given.
    pub fn arm(&self, frozen: Option<Router>) {
        self.with(|state| (state.armed, state.frozen) = (Some(state.calls.len()), frozen));
    }

    /// From now on calls are numbered, and one of them meets this.
    pub fn expect(&self, schedule: Schedule) {
        self.with(|state| {
            (state.armed, state.schedule) = (Some(state.calls.len()), Some(schedule));
        });
    }

    /// All calls since it was armed.
    pub fn calls(&self) -> Vec<Call> {
        self.with(|state| state.calls[state.armed.unwrap_or(state.calls.len())..].to_vec())
    }

    /// All calls there were.
    pub fn count(&self) -> usize {
        self.with(|state| state.calls.len())
    }

    /// All watches there were.
    pub fn watches(&self) -> Vec<Call> {
        self.with(|state| state.watches.clone())
    }

    /// How many calls so far may have changed something, but for events.
    pub fn writes(&self) -> usize {
        self.with(|state| state.calls.iter().filter(|call| call.is_change()).count())
    }

    /// What may have been changed so far.
    pub fn written(&self) -> Vec<String> {
        let told = |call: &Call| format!("{} {}", call.method, call.path);
        self.with(|state| state.calls.iter().filter(|call| call.is_change()).map(told).collect())
    }

    /// The call that met its fault.
    pub fn met(&self) -> Option<Call> {
        self.with(|state| state.met.clone())
    }

    /// Waits until a fault ended this life.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Ends this life.
    pub fn shut(&self) {
        self.with(|state| state.is_shut = true);
        self.turnstile.dismiss_member(self.member);
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_node(&self) -> bool {
        self.harm.is_some()
    }

    /// For a while nobody is reached through here.
    pub(crate) fn lose_reach(&self, time: Duration) {
        self.with(|state| state.unreachable_until = Some(Instant::now() + time));
    }

    /// Why nothing passes, if nothing does.
    pub(crate) fn unreachable(&self) -> Option<&'static str> {
        let until = self.with(|state| state.unreachable_until);
        until.is_some_and(|until| Instant::now() < until).then_some(LOST)
    }

    /// Whether faults may happen.
    pub(crate) fn is_armed(&self) -> bool {
        self.with(|state| state.armed.is_some())
    }

    /// Waits for the turn of a call, or of what a watch tells; nothing if there is nobody any more.
    pub(crate) async fn turn(&self, what: String, body: Vec<u8>) -> Option<()> {
        if self.with(|state| state.is_shut) {
            return futures::future::pending().await;
        }
        let what = if self.is_node() { format!("node {what}") } else { what };
        self.turnstile.await_turn(self.member, what, body).await
    }

    /// Writes a call down; says which fault it meets, or that there is nobody any more to make it.
    fn admit(&self, call: &Call) -> Result<Option<Fault>, Gone> {
        self.with(|state| {
            if state.is_shut {
                return Err(Gone);
            }
            let number = state.armed.map(|armed| state.calls.len() - armed);
            let watch = call.is_watch().then_some(state.watches.len());
            let moment = (self.probe)();
            state.calls.push(Call { time: Instant::now(), moment, ..call.clone() });
            if call.is_watch() {
                state.watches.push(call.clone());
            }
            let meets = |schedule: &Schedule| match schedule.at {
                At::Call(at) | At::Node(at) => number == Some(at),
                At::Watch(at) | At::News(at) => watch == Some(at),
            };
            let fault = state.schedule.filter(meets).map(|schedule| schedule.fault);
            if fault.is_some() {
                state.met = Some(call.clone());
            }
            Ok(fault)
        })
    }

    async fn end<T>(&self) -> T {
        self.shut();
        self.ended.notify_one();
        futures::future::pending().await
    }

    /// Does what a fault does to more than one call.
    fn do_harm(&self, fault: Option<Fault>) {
        if fault == Some(Fault::Unreachable) {
            self.lose_reach(UNREACHABLE);
        }
        if let (Some(harm), Some(fault)) = (&self.harm, fault) {
            harm(fault);
        }
    }

    async fn pass(self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let call = Call::of(&request);
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        let what = format!("{} {}?{}", call.method, call.path, call.query);
        let passed = self.turn(what, body.clone()).await;
        if let Some(why) = self.unreachable() {
            return Err(why.into());
        }
        let Ok(fault) = passed.ok_or(Gone).and_then(|()| self.admit(&call)) else {
            return futures::future::pending().await;
        };
        let mut server = self.server.clone();
        // A bug is the manager's: it comes before what happens on the way.
        let mut misheard = None;
        let body = match self.bend.as_ref().map(|bend| bend(&call, body.clone())) {
            Some(Bent::Mishear(bent, change)) => {
                misheard = Some(change);
                bent
            }
            Some(Bent::Pretend(code, answer)) => return Ok(answer_with(code, &answer)),
            Some(Bent::Send(bent)) => bent,
            Some(Bent::Redirect(path, bent)) => {
                head.uri = path.parse()?;
                head.headers.remove(http::header::CONTENT_LENGTH);
                bent
            }
            None => body,
        };
        match fault {
            Some(Fault::CrashBefore) => return self.end().await,
            Some(Fault::Answer(code)) => return Ok(refusal(code)),
            Some(Fault::Past) => {
                server = self.with(|state| state.frozen.clone()).unwrap_or(server);
            }
            _ => {}
        }
        let answer = server.oneshot(Request::from_parts(head, Answer::from(body))).await?;
        let answer = match misheard {
            Some(change) => mishear(answer, change).await?,
            None => answer,
        };
        self.do_harm(fault);
        match fault {
            Some(Fault::CrashAfter | Fault::PowerLoss) => self.end().await,
            Some(Fault::LostReply | Fault::Unreachable) => Err(LOST.into()),
            fault if call.is_watch() => {
                let number = self.with(|state| state.watches.len());
                Ok(answer.map(|body| stream::relay(body, self, number, fault)))
            }
            _ => Ok(answer),
        }
    }
}

impl Service<Request<Body>> for Gate {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}

/// An answer that is heard as another.
async fn mishear(
    answer: Response<Answer>,
    change: fn(&mut serde_json::Value),
) -> Result<Response<Answer>, BoxError> {
    let (mut head, body) = answer.into_parts();
    let bytes = body.collect().await?.to_bytes();
    head.headers.remove(http::header::CONTENT_LENGTH);
    let changed = serde_json::from_slice::<serde_json::Value>(&bytes).map(|mut object| {
        change(&mut object);
        Bytes::from(object.to_string())
    });
    Ok(Response::from_parts(head, Answer::from(changed.unwrap_or(bytes))))
}

/// An answer as an API server gives it that will not do something.
fn refusal(code: u16) -> Response<Answer> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": format!("a fault was asked for: {code}"), "reason": reason, "code": code,
    });
    answer_with(code, &status)
}

fn answer_with(code: u16, body: &serde_json::Value) -> Response<Answer> {
    let mut answer = Response::new(Answer::from(Bytes::from(body.to_string())));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    let json = http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
    if code == 429 {
        answer.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
    }
    answer
}
