//! Watching: what is, then what happens, in order and without gaps.
//!
//! A watch is a cursor into the log. It never has a queue of its own: when its client is
//! slow it reads later, and when it reads so late that the log has forgotten, it is told
//! so (410) and starts over. No event is dropped in silence.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Selection, read_version};
use super::splice::Reader;
use super::{Answer, Request, present, store};
use crate::Server;
use crate::crd::convert::Held;
use crate::http::negotiate::Form;
use crate::http::query::Query;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::log::{Entry, Event};
use schema::object::field_error::FieldError;

/// How long a watch without a timeout lasts.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// The longest a watch lasts, whatever its client says; a client watches again where it ended.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long a watch may have nothing to say before it says where it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// The most events read from the log at once. A watch that nobody reads keeps them alive.
const CHUNK: usize = 32;
/// How many events are kept in words that other watches may want to use, too.
const LINES_MAX: usize = 64;
/// The biggest object kept so: big ones are few, and many of them would be much.
const KEPT_BYTES_MAX: usize = 1 << 16;

/// What a watch has yet to say. Objects are turned into text one by one, when there is
/// somebody to read it.
enum Pending {
    /// An object that is there.
    Present(Entry),
    /// Something that happened.
    Event(Arc<Event>),
    /// Anything else.
    Line(Value),
}

impl Pending {
    /// What is shown of it, from the log.
    fn entries(&self) -> Vec<Entry> {
        match self {
            Self::Present(entry) => vec![entry.clone()],
            Self::Event(event) => {
                let value = event.value.clone();
                let now = value.map(|value| Entry { version: event.version, value });
                now.into_iter().chain(event.previous.clone()).collect()
            }
            Self::Line(_) => Vec::new(),
        }
    }
}

/// Events that many watches tell of: by version of the log and of the API, newest last. What
/// each client selected decides whether it hears of an event and as what; the words are the same.
#[derive(Default)]
pub(crate) struct Lines(Mutex<VecDeque<(u64, String, Arc<Told>)>>);

/// An event as objects, and in words once somebody needs them.
struct Told {
    before: Option<Value>,
    now: Option<Value>,
    added: OnceLock<Bytes>,
    modified: OnceLock<Bytes>,
    deleted: OnceLock<Bytes>,
}

impl Lines {
    /// An event as objects of a kind.
    fn told(&self, kind: &Kind, event: &Event) -> Arc<Told> {
        let api_version = kind.api_version();
        if let Some(told) = self.find(event.version, &api_version) {
            return told;
        }
        let told = Arc::new(Told::new(event, |entry| store::open(kind, entry).ok()));
        let size = event.value.as_ref().map_or(0, Bytes::len);
        let size = size.max(event.previous.as_ref().map_or(0, |entry| entry.value.len()));
        if size <= KEPT_BYTES_MAX {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() >= LINES_MAX {
                lines.pop_front();
            }
            lines.push_back((event.version, api_version, Arc::clone(&told)));
        }
        told
    }

    fn find(&self, version: u64, api_version: &str) -> Option<Arc<Told>> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = lines.iter().rev();
        let found = newest.find(|line| line.0 == version && line.1 == api_version);
        found.map(|line| Arc::clone(&line.2))
    }
}

impl Told {
    fn new(event: &Event, open: impl Fn(&Entry) -> Option<Value>) -> Self {
        let now = event.value.clone().map(|value| Entry { version: event.version, value });
        let mut before = event.previous.as_ref().and_then(&open);
        if let Some(object) = &mut before {
            // Who sees it go sees when.
            store::set_version(object, event.version);
        }
        Self {
            before,
            now: now.as_ref().and_then(&open),
            added: OnceLock::new(),
            modified: OnceLock::new(),
            deleted: OnceLock::new(),
        }
    }

    /// What the event is for those who see only what they selected: its name, the object, and
    /// its words.
    fn seen(&self, selection: &Selection) -> Option<(&'static str, &Value, &OnceLock<Bytes>)> {
        let wanted = |object: &&Value| selection.wants(object);
        let before = self.before.as_ref().filter(wanted);
        let now = self.now.as_ref().filter(wanted);
        match (before, now) {
            (None, Some(object)) => Some(("ADDED", object, &self.added)),
            (Some(_), Some(object)) => Some(("MODIFIED", object, &self.modified)),
            (Some(object), None) => Some(("DELETED", object, &self.deleted)),
            (None, None) => None,
        }
    }
}

/// An event in words.
fn words(kind: &str, object: &Value) -> Bytes {
    let mut text = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    text.extend(schema::object::text(object));
    text.extend(b"}\n");
    Bytes::from(text)
}

struct Watch {
    server: Arc<Server>,
    request: Request,
    selection: Selection,
    prefix: String,
    version: u64,
    pending: VecDeque<Pending>,
    committed: tokio::sync::watch::Receiver<u64>,
    deadline: Instant,
    bookmark_at: Option<Instant>,
    first: bool,
    over: bool,
    /// How many of those that wait have been converted, and what came of it.
    converted: usize,
    held: Held,
}

/// GET with `watch=1`.
pub(crate) fn watch(server: &Arc<Server>, request: &Request) -> Result<Answer, Failure> {
    let wrong = check_options(request);
    if !wrong.is_empty() {
        return Err(Failure::invalid_options("ListOptions", &wrong));
    }
    let selection = Selection::parse(request)?;
    let query = &request.query;
    let asked = query.get("resourceVersion");
    let version = match asked {
        "" => 0,
        _ => read_version(asked)?,
    };
    let deadline = after(patience(query)?);
    let bookmarks = query.flag("allowWatchBookmarks");
    let mut watch = Watch {
        server: Arc::clone(server),
        prefix: request.kind.prefix(request.namespace()),
        request: request.clone(),
        selection,
        version,
        pending: VecDeque::new(),
        committed: server.log.committed(),
        deadline,
        bookmark_at: bookmarks.then(|| after(BOOKMARK_EVERY)),
        first: true,
        over: false,
        converted: 0,
        held: Held::new(),
    };
    let streaming = query.flag("sendInitialEvents");
    let without = query.all("sendInitialEvents").next().is_some() && !streaming;
    if streaming || (version == 0 && !without) {
        watch.begin(streaming)?;
    } else if version == 0 {
        watch.version = server.log.version();
    }
    let stream = futures::stream::unfold(watch, |mut watch| async move {
        watch.next().await.map(|line| (Ok::<_, std::convert::Infallible>(line), watch))
    });
    Ok(Answer::Stream(Body::from_stream(stream)))
}

/// How long a client wants to watch. A time that has passed already ends the watch at once, as
/// upstream's does; nobody watches longer than [`TIMEOUT_MAX`].
fn patience(query: &Query) -> Result<Duration, Failure> {
    Ok(match query.number("timeoutSeconds")? {
        None | Some(0) => TIMEOUT,
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(TIMEOUT_MAX),
    })
}

/// The moment in so much time; now, if there is none so late.
fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

impl Watch {
    /// Starts with the present: every object as ADDED, then, for a streaming list, a
    /// bookmark that says these were all.
    fn begin(&mut self, streaming: bool) -> Result<(), Failure> {
        let snapshot = self
            .server
            .log
            .list(&self.prefix, None)
            .map_err(|expired| Failure::expired(expired.to_string()))?;
        self.pending.extend(snapshot.entries.into_iter().map(|(_, entry)| Pending::Present(entry)));
        self.version = snapshot.version;
        if streaming && self.request.query.flag("allowWatchBookmarks") {
            let mut bookmark = self.bookmark();
            bookmark["object"]["metadata"]["annotations"] =
                json!({"k8s.io/initial-events-end": "true"});
            self.pending.push_back(Pending::Line(bookmark));
        }
        Ok(())
    }

    /// The next line, or the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while !self.pending.is_empty() {
                self.convert_in_time().await?;
                let Some(pending) = self.pending.pop_front() else { break };
                if let Some(line) = self.line(&pending) {
                    return Some(line);
                }
            }
            if self.over || Instant::now() >= self.deadline {
                return None;
            }
            if self.read() {
                continue;
            }
            let wake = self.bookmark_at.map_or(self.deadline, |at| at.min(self.deadline));
            tokio::select! {
                changed = self.committed.changed() => self.over |= changed.is_err(),
                () = tokio::time::sleep_until(wake) => self.rest(),
            }
        }
    }

    /// Nothing was said for a while: say where we are. A bookmark promises that everything up to
    /// it was told, so whatever has happened meanwhile is told before it.
    fn rest(&mut self) {
        let now = Instant::now();
        if self.bookmark_at.is_some_and(|at| at <= now) && now < self.deadline {
            self.bookmark_at = Some(after(BOOKMARK_EVERY));
            self.read();
            if !self.over {
                let bookmark = self.bookmark();
                self.pending.push_back(Pending::Line(bookmark));
            }
        }
    }

    /// Has the next few converted before the watch is to end. A webhook that fails is told of, and
    /// is the end.
    async fn convert_in_time(&mut self) -> Option<()> {
        if self.request.kind.conversion.is_none() {
            return Some(());
        }
        let converted = tokio::time::timeout_at(self.deadline, self.convert()).await.ok()?;
        if let Err(failure) = converted {
            let line = json!({"type": "ERROR", "object": failure.status()});
            self.pending = VecDeque::from([Pending::Line(line)]);
            self.over = true;
        }
        Some(())
    }

    /// Has the next few converted that are to be shown, if the first of them is not yet. The
    /// answers are held for as long as these wait.
    async fn convert(&mut self) -> Result<(), Failure> {
        if self.converted > 0 {
            self.converted = self.converted.saturating_sub(1);
            return Ok(());
        }
        let next = self.pending.iter().take(CHUNK);
        let count = next.len();
        let entries: Vec<Entry> = next.flat_map(Pending::entries).collect();
        self.held = store::convert(&self.server, &self.request.kind, entries).await?;
        self.converted = count.saturating_sub(1);
        Ok(())
    }

    /// Reads on in the log; says whether there was anything to read.
    fn read(&mut self) -> bool {
        match self.server.log.after(self.version, &self.prefix, CHUNK) {
            Ok((events, upto)) => {
                let moved = upto > self.version;
                self.version = upto;
                self.pending.extend(events.into_iter().map(Pending::Event));
                moved
            }
            Err(expired) => {
                let message =
                    format!("too old resource version: {} ({})", expired.asked, expired.oldest);
                let status = Failure::expired(message).status();
                let line = json!({"type": "ERROR", "object": status});
                self.pending.push_back(Pending::Line(line));
                self.over = true;
                true
            }
        }
    }

    /// A line, unless it is about something that is not wanted.
    fn line(&mut self, pending: &Pending) -> Option<Bytes> {
        let reader = Reader::new(&self.request, &self.selection);
        match pending {
            Pending::Line(line) => Some(Bytes::from(format!("{line}\n"))),
            Pending::Present(entry) => {
                let object = reader.open(entry).ok()?;
                self.selection.wants(&object).then(|| self.say("ADDED", object))
            }
            Pending::Event(event) if reader.is_brief() => {
                let told = Told::new(event, |entry| reader.open(entry).ok());
                let (kind, object, _) = told.seen(&self.selection)?;
                Some(self.say(kind, object.clone()))
            }
            Pending::Event(event) => {
                let told = self.server.lines.told(&self.request.kind, event);
                let (kind, object, line) = told.seen(&self.selection)?;
                Some(match self.request.form {
                    Form::Object => line.get_or_init(|| words(kind, object)).clone(),
                    _ => self.say(kind, object.clone()),
                })
            }
        }
    }

    fn say(&mut self, kind: &str, object: Value) -> Bytes {
        let object = present::event(&self.server, &self.request, object, self.first);
        self.first = false;
        words(kind, &object)
    }

    fn bookmark(&self) -> Value {
        json!({"type": "BOOKMARK", "object": present::bookmark(&self.request, self.version)})
    }
}

fn check_options(request: &Request) -> Vec<FieldError> {
    let query = &request.query;
    let mut wrong = Vec::new();
    let field = "resourceVersionMatch";
    let matching = query.get(field);
    let initial = query.all("sendInitialEvents").next().is_some();
    if initial && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        wrong.push(FieldError::forbidden(field, why));
    }
    if !matching.is_empty() {
        if !initial {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            wrong.push(FieldError::forbidden(field, why));
        }
        if matching != "NotOlderThan" {
            wrong.push(FieldError::not_supported(field, matching, &["NotOlderThan"]));
        }
        if !query.get("continue").is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            wrong.push(FieldError::forbidden(field, why));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::StreamExt as _;

    use super::*;
    use crate::log::Log;
    use crate::testing::{ask, send, server};

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn version(object: &Value) -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    /// H2: one GET with a timeout at the limit of its type ended the process.
    #[tokio::test(start_paused = true)]
    async fn h2_a_watch_survives_every_timeout() {
        let server = server(Log::in_memory()).await;
        for seconds in ["18446744073709551615", "9223372036854775808", "x", "-9223372036854775809"]
        {
            let path = format!("{MAPS}?watch=1&timeoutSeconds={seconds}");
            let answer = ask(&server, "GET", &path, Value::Null).await;
            assert_eq!(answer["code"], 400, "{seconds}: {answer}");
        }
        let start = server.log.version();
        for (seconds, lasts) in [
            ("9223372036854775807", TIMEOUT_MAX),
            ("", TIMEOUT),
            ("0", TIMEOUT),
            ("7", Duration::from_secs(7)),
            ("-9223372036854775808", Duration::ZERO),
        ] {
            let path = format!("{MAPS}?watch=1&timeoutSeconds={seconds}&resourceVersion={start}");
            let began = Instant::now();
            let mut lines = send(&server, "GET", &path, Value::Null).await.into_data_stream();
            assert!(lines.next().await.is_none(), "{seconds}");
            // The clock stands still while anybody works, and its ticks are milliseconds.
            let late = began.elapsed().checked_sub(lasts).unwrap_or(Duration::MAX);
            assert!(late < Duration::from_secs(1), "{seconds}: {:?}", began.elapsed());
        }
    }

    /// H2: other numbers that strangers write.
    #[tokio::test]
    async fn h2_numbers_at_the_limits_of_their_types_are_answered() {
        let server = server(Log::in_memory()).await;
        let (big, bigger) = (i64::MAX.to_string(), u64::MAX.to_string());
        for (query, code) in [
            (format!("limit={big}"), Value::Null),
            (format!("limit={}", i64::MIN), Value::Null),
            (format!("limit={bigger}"), json!(400)),
            (format!("timeoutSeconds={bigger}"), json!(400)),
            (format!("resourceVersion={bigger}"), json!(504)),
            (format!("resourceVersion={bigger}0"), json!(400)),
            (format!("watch=1&resourceVersion={bigger}0"), json!(500)),
            (format!("continue={bigger}"), json!(400)),
        ] {
            let path = format!("/api/v1/namespaces?{query}");
            let answer = ask(&server, "GET", &path, Value::Null).await;
            assert_eq!(answer["code"], code, "{query}: {answer}");
        }
    }

    /// Something happens at the very moment a bookmark is due, and both are found at once: which
    /// is looked at first is a matter of luck, so there are many rounds.
    #[tokio::test(start_paused = true)]
    async fn a_bookmark_comes_after_everything_that_it_promises() {
        let server = server(Log::in_memory()).await;
        let start = server.log.version();
        let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={start}");
        let mut lines = send(&server, "GET", &path, Value::Null).await.into_data_stream();
        for round in 0..64 {
            // Whatever is left of the round before, until it waits.
            while let Poll::Ready(line) = futures::poll!(lines.next()) {
                let line: Value = serde_json::from_slice(&line.unwrap().unwrap()).unwrap();
                assert_eq!(line["type"], "BOOKMARK");
            }
            let object = json!({"metadata": {"name": format!("map-{round}")}});
            let made = ask(&server, "POST", MAPS, object).await;
            tokio::time::advance(BOOKMARK_EVERY).await;
            let line = lines.next().await.unwrap().unwrap();
            let line: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(line["type"], "ADDED", "round {round}: {line}");
            assert_eq!(version(&line["object"]), version(&made));
        }
    }
}
