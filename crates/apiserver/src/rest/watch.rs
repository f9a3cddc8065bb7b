//! Watching: what is, then what happens, in order and without gaps.
//!
//! A watch is a cursor into the log. It never has a queue of its own: when its client is
//! slow it reads later, and when it reads so late that the log has forgotten, it is told
//! so (410) and starts over. No event is dropped in silence.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Selection, invalid_version};
use super::{Answer, Request, present, store};
use crate::Server;
use crate::http::status::Failure;
use crate::log::{Entry, Event};
use crate::object::field_error::FieldError;

/// How long a watch without a timeout lasts.
const TIMEOUT_SECONDS: u64 = 1800;
/// How long a watch may have nothing to say before it says where it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(10);
/// The most events read from the log at once.
const CHUNK: usize = 256;

struct Watch {
    server: Arc<Server>,
    request: Request,
    selection: Selection,
    prefix: String,
    version: u64,
    pending: VecDeque<Value>,
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
        for (_, entry) in &snapshot.entries {
            let object = store::open(&self.request.kind, entry)?;
            if self.selection.wants(&object) {
                self.push("ADDED", object);
            }
        }
        self.version = snapshot.version;
        if streaming && self.request.query.flag("allowWatchBookmarks") {
            let mut bookmark = self.bookmark();
            bookmark["object"]["metadata"]["annotations"] =
                json!({"k8s.io/initial-events-end": "true"});
            self.pending.push_back(bookmark);
        }
        Ok(())
    }

    /// The next line, or the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(Bytes::from(format!("{event}\n")));
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
            self.pending.push_back(bookmark);
        }
    }

    /// Reads on in the log; says whether there was anything to read.
    fn read(&mut self) -> bool {
        match self.server.log.after(self.version, &self.prefix, CHUNK) {
            Ok((events, upto)) => {
                let moved = upto > self.version;
                self.version = upto;
                for event in events {
                    self.translate(&event);
                }
                moved
            }
            Err(expired) => {
                let message =
                    format!("too old resource version: {} ({})", expired.asked, expired.oldest);
                let status = Failure::expired(message).status();
                self.pending.push_back(json!({"type": "ERROR", "object": status}));
                self.over = true;
                true
            }
        }
    }

    /// What an event is for those who see only what they selected.
    fn translate(&mut self, event: &Event) {
        let kind = Arc::clone(&self.request.kind);
        let open = |entry: &Entry| store::open(&kind, entry).ok();
        let now = event.value.clone().map(|value| Entry { version: event.version, value });
        let now = now.as_ref().and_then(open).filter(|object| self.selection.wants(object));
        let before = event.previous.as_ref().and_then(open);
        let before = before.filter(|object| self.selection.wants(object));
        match (before, now) {
            (None, Some(object)) => self.push("ADDED", object),
            (Some(_), Some(object)) => self.push("MODIFIED", object),
            (Some(mut object), None) => {
                store::set_version(&mut object, event.version);
                self.push("DELETED", object);
            }
            (None, None) => {}
        }
    }

    fn push(&mut self, kind: &str, object: Value) {
        let object = present::event(&self.server, &self.request, object, self.first);
        self.first = false;
        self.pending.push_back(json!({"type": kind, "object": object}));
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
