//! Watching: what is, then what happens, in order and without gaps.
//!
//! A watch is a cursor into the log. It never has a queue of its own: when its client is
//! slow it reads later, and when it reads so late that the log has forgotten, it is told
//! so (410) and starts over. No event is dropped in silence.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Selection, invalid_version};
use super::{Answer, Request, present, store};
use crate::Server;
use crate::http::negotiate::Form;
use crate::http::status::Failure;
use crate::log::{Entry, Event};
use crate::object::field_error::FieldError;

/// How long a watch without a timeout lasts.
const TIMEOUT_SECONDS: u64 = 1800;
/// How long a watch may have nothing to say before it says where it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// The most events read from the log at once. A watch that nobody reads keeps them alive.
const CHUNK: usize = 32;
/// How many lines are kept that other watches may want to say, too.
const LINES_MAX: usize = 64;

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

/// Lines that many watches say alike: by version of the log and of the API, newest last.
#[derive(Default)]
pub(crate) struct Lines(Mutex<VecDeque<(u64, String, Bytes)>>);

impl Lines {
    fn find(&self, version: u64, api_version: &str) -> Option<Bytes> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = lines.iter().rev();
        let found = newest.find(|line| line.0 == version && line.1 == api_version);
        found.map(|line| line.2.clone())
    }

    fn keep(&self, version: u64, api_version: &str, line: &Bytes) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        // Big ones are few, and would make the rest go.
        if line.len() < 1 << 16 {
            lines.push_back((version, api_version.to_owned(), line.clone()));
        }
    }
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
        _ => asked.parse::<u64>().map_err(|_| invalid_version(asked))?,
    };
    let seconds = query.get("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
    let deadline = Instant::now() + Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS));
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
        bookmark_at: bookmarks.then(|| Instant::now() + BOOKMARK_EVERY),
        first: true,
        over: false,
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
            while let Some(pending) = self.pending.pop_front() {
                if let Err(failure) = self.convert(&pending).await {
                    let line = json!({"type": "ERROR", "object": failure.status()});
                    self.pending = VecDeque::from([Pending::Line(line)]);
                    self.over = true;
                    continue;
                }
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

    /// Nothing happened for a while: say where we are.
    fn rest(&mut self) {
        let now = Instant::now();
        if self.bookmark_at.is_some_and(|at| at <= now) && now < self.deadline {
            self.bookmark_at = Some(now + BOOKMARK_EVERY);
            self.version = self.version.max(self.server.log.version());
            let bookmark = self.bookmark();
            self.pending.push_back(Pending::Line(bookmark));
        }
    }

    /// Has converted what is to be shown; mostly that has been done with many others.
    async fn convert(&self, pending: &Pending) -> Result<(), Failure> {
        if self.request.kind.conversion.is_none() {
            return Ok(());
        }
        let entries: Vec<Entry> = match pending {
            Pending::Present(entry) => vec![entry.clone()],
            Pending::Event(event) => {
                let value = event.value.clone();
                let now = value.map(|value| Entry { version: event.version, value });
                now.into_iter().chain(event.previous.clone()).collect()
            }
            Pending::Line(_) => return Ok(()),
        };
        store::convert(&self.server, &self.request.kind, entries).await
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
        match pending {
            Pending::Line(line) => Some(Bytes::from(format!("{line}\n"))),
            Pending::Present(entry) => {
                let object = store::open(&self.request.kind, entry).ok()?;
                self.selection.wants(&object).then(|| self.say("ADDED", object))
            }
            Pending::Event(event) => {
                // Those who want everything, whole, all hear the same.
                let common = self.selection.is_all() && self.request.form == Form::Object;
                let api_version = common.then(|| self.request.kind.api_version());
                let known = api_version
                    .as_ref()
                    .and_then(|api_version| self.server.lines.find(event.version, api_version));
                if known.is_some() {
                    return known;
                }
                let line = self.translate(event)?;
                if let Some(api_version) = api_version {
                    self.server.lines.keep(event.version, &api_version, &line);
                }
                Some(line)
            }
        }
    }

    /// What an event is for those who see only what they selected.
    fn translate(&mut self, event: &Event) -> Option<Bytes> {
        let kind = Arc::clone(&self.request.kind);
        let open = |entry: &Entry| store::open(&kind, entry).ok();
        let now = event.value.clone().map(|value| Entry { version: event.version, value });
        let now = now.as_ref().and_then(open).filter(|object| self.selection.wants(object));
        let before = event.previous.as_ref().and_then(open);
        let before = before.filter(|object| self.selection.wants(object));
        match (before, now) {
            (None, Some(object)) => Some(self.say("ADDED", object)),
            (Some(_), Some(object)) => Some(self.say("MODIFIED", object)),
            (Some(mut object), None) => {
                store::set_version(&mut object, event.version);
                Some(self.say("DELETED", object))
            }
            (None, None) => None,
        }
    }

    fn say(&mut self, kind: &str, object: Value) -> Bytes {
        let object = present::event(&self.server, &self.request, object, self.first);
        self.first = false;
        let mut line = json!({"type": kind});
        line["object"] = object;
        let mut text = crate::object::text(&line);
        text.push(b'\n');
        Bytes::from(text)
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
