//! `logs --follow`: the logs of a package's pods as they are written. Pods come and go, containers are
//! started again, connections break and revisions follow each other; the lines go on, each of them once.
//!
//! ```text
//!   pods, looked for every second ──► runs of containers ──► a stream for each ──► lines
//!                  ▲                       │ new, broken off, over
//!                  └── active revision ◄───┘ when none has pods any more
//! ```

use super::{Request, describe_pod, find_absence};
use crate::cluster::Cluster;
use crate::cluster::pods::find_pods;
use crate::failure::{Failure, Outcome};
use crate::output;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use inventory::{Installed, Inventory, LogLines, LoggedContainer, ReadPosition, split_time};
use k8s_openapi::jiff::SignedDuration;
use kube::api::LogParams;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

/// The pause between two looks for pods.
const PAUSE: Duration = Duration::from_secs(1);

/// How far the log of a container was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Its stream is open.
    Open,
    /// The stream has ended that was opened when this run was present: after these lines, and whether that was the end
    /// of the run's log.
    Ended { run: i64, seen: Option<ReadPosition>, is_whole: bool },
}

/// What a stream is to print.
struct StreamWish {
    one: LoggedContainer,
    parameters: LogParams,
    /// What is printed already.
    seen: Option<ReadPosition>,
}

/// How a stream ended.
struct StreamEnd {
    identity: String,
    run: i64,
    seen: Option<ReadPosition>,
    is_whole: bool,
    /// Nothing reads what is printed any more.
    is_unread: bool,
    /// The reason, if there never was a stream.
    refusal: Option<Failure>,
}

/// What a look for pods found.
struct Sight {
    revision: String,
    containers: Vec<LoggedContainer>,
    /// Why there are no pods, in a sentence, if none had any the last time either.
    absence: Option<String>,
}

/// What is followed, and how far.
struct Follower<'a> {
    request: &'a Request,
    /// By container, and not by run: which run a stream is of is decided when the API server opens it.
    progress: BTreeMap<String, Progress>,
    /// What was told of pods that have no log yet, and of failures.
    told: BTreeSet<String>,
}

/// Follows the pods of a revision, and of those after it unless a revision was named. Ends when the package is gone, or
/// nothing reads what is printed.
pub(super) async fn follow_pods(
    request: &Request,
    cluster: &Cluster,
    mut revision: String,
    mut containers: Vec<LoggedContainer>,
) -> Outcome {
    // Once several pods were printed, each line names its own.
    let is_prefixed = Cell::new(containers.len() > 1);
    let mut follower = Follower { request, progress: BTreeMap::new(), told: BTreeSet::new() };
    let mut streams = FuturesUnordered::new();
    let mut is_first = true;
    loop {
        for wish in follower.choose_streams(&containers, is_first) {
            streams.push(print_stream(cluster, request, wish, &is_prefixed));
        }
        is_prefixed.set(is_prefixed.get() || streams.len() > 1);
        let is_idle = containers.is_empty() && streams.is_empty();
        let mut look = pin!(look_again(request, cluster, revision.clone(), is_idle));
        let found = loop {
            tokio::select! {
                found = &mut look => break found,
                Some(ended) = streams.next() => {
                    if follower.note_end(ended, is_first)? {
                        return Ok(());
                    }
                }
            }
        };
        is_first = is_first && containers.is_empty();
        match found {
            Ok(Some(sight)) => {
                sight.absence.into_iter().for_each(|why| follower.tell_once(why));
                (revision, containers) = (sight.revision, sight.containers);
            }
            Ok(None) => {
                output::say(format_args!("{} is not installed any more", request.which.name));
                return Ok(());
            }
            Err(failure) => follower.warn_once(failure),
        }
    }
}

impl Follower<'_> {
    /// The streams that are to be opened: of runs that have none, of those whose stream broke off, and of those that go
    /// on although their stream said that it was over.
    fn choose_streams(
        &mut self,
        containers: &[LoggedContainer],
        is_first: bool,
    ) -> Vec<StreamWish> {
        let mut wishes = Vec::new();
        for one in containers {
            let before = self.progress.get(&one.identity).copied();
            let (is_over, seen) = match before {
                Some(Progress::Open) => continue,
                Some(Progress::Ended { run, seen, is_whole }) => {
                    (is_whole && run == one.run && !one.is_running, seen)
                }
                None => (!one.has_log(), None),
            };
            if is_over {
                one.describe_trouble().into_iter().for_each(|why| self.tell_once(why));
                continue;
            }
            let parameters = self.choose_parameters(one, seen, is_first && before.is_none());
            self.progress.insert(one.identity.clone(), Progress::Open);
            wishes.push(StreamWish { one: one.clone(), parameters, seen });
        }
        wishes
    }

    /// What the user asked for goes for what is there at first; runs that begin later are printed whole.
    fn choose_parameters(
        &self,
        one: &LoggedContainer,
        seen: Option<ReadPosition>,
        is_wished_part: bool,
    ) -> LogParams {
        let wished = self.request.parameters(&one.container);
        // API servers count whole seconds, and the client rounds to them.
        let a_moment_before = |seen: ReadPosition| {
            seen.time.checked_sub(SignedDuration::from_secs(2)).unwrap_or(seen.time)
        };
        let (tail_lines, since_seconds) =
            if is_wished_part { (wished.tail_lines, wished.since_seconds) } else { (None, None) };
        let since_time = seen.map(a_moment_before);
        LogParams {
            follow: true,
            timestamps: true,
            tail_lines,
            since_seconds,
            since_time,
            ..wished
        }
    }

    /// Notes how a stream ended; true if there is no use in going on.
    fn note_end(&mut self, ended: StreamEnd, is_first: bool) -> Outcome<bool> {
        let StreamEnd { identity, run, seen, is_whole, is_unread, refusal } = ended;
        self.progress.insert(identity, Progress::Ended { run, seen, is_whole });
        match refusal {
            Some(failure) if is_first => return Err(failure),
            Some(failure) => self.warn_once(failure),
            None => {}
        }
        Ok(is_unread)
    }

    fn tell_once(&mut self, sentence: String) {
        if self.told.insert(sentence.clone()) {
            output::say(sentence);
        }
    }

    fn warn_once(&mut self, failure: Failure) {
        let Failure { message, causes, .. } = failure;
        let sentence = [vec![message], causes].concat().join(": ");
        if self.told.insert(sentence.clone()) {
            output::warn(sentence);
        }
    }
}

/// Prints a log until it ends, without what is printed already.
async fn print_stream(
    cluster: &Cluster,
    request: &Request,
    wish: StreamWish,
    is_prefixed: &Cell<bool>,
) -> StreamEnd {
    let StreamWish { one, parameters, seen: printed } = wish;
    let mut end = StreamEnd {
        identity: one.identity.clone(),
        run: one.run,
        seen: printed,
        is_whole: true,
        is_unread: false,
        refusal: None,
    };
    let log = match cluster.open_log(&cluster.namespace, &one.pod, &parameters).await {
        Ok(Some(log)) => log,
        Ok(None) => return end,
        Err(failure) => return StreamEnd { is_whole: false, refusal: Some(failure), ..end },
    };
    let (mut lines, mut repeated) = (LogLines::new(log), 0);
    loop {
        let line = match lines.read_line().await {
            Ok(Some(line)) => line,
            Ok(None) => return end,
            Err(_) => return StreamEnd { is_whole: false, ..end },
        };
        let timed = split_time(line);
        if let Some((time, _)) = timed {
            if printed.is_some_and(|printed| printed.has(time, &mut repeated)) {
                continue;
            }
            end.seen = Some(ReadPosition::and(end.seen, time));
        }
        let text = timed.filter(|_| !request.timestamps).map_or(line, |(_, text)| text);
        let prefix = if is_prefixed.get() { describe_pod(&one) } else { String::new() };
        if !output::print_log_line(&prefix, text) {
            return StreamEnd { is_unread: true, ..end };
        }
    }
}

/// Looks for pods after a pause; nothing if the package is gone. Where there were none and nothing is printed, it is the
/// revision that is active by now whose pods count.
async fn look_again(
    request: &Request,
    cluster: &Cluster,
    revision: String,
    is_idle: bool,
) -> Outcome<Option<Sight>> {
    tokio::time::sleep(PAUSE).await;
    let found = find_pods(cluster, &revision).await?;
    if !found.is_empty() || !is_idle {
        let containers = request.choose_containers(&found)?;
        return Ok(Some(Sight { revision, containers, absence: None }));
    }
    let inventory = Inventory::gather(cluster).await?;
    if inventory.is_gone(&request.which) {
        return Ok(None);
    }
    // Where it is being uninstalled, its pods may still come to write something.
    let Ok(one) = inventory.find(&request.which) else {
        return Ok(Some(Sight { revision, containers: Vec::new(), absence: None }));
    };
    look_at_package(request, cluster, one, &revision).await.map(Some)
}

async fn look_at_package(
    request: &Request,
    cluster: &Cluster,
    one: &Installed,
    before: &str,
) -> Outcome<Sight> {
    let revision = request.choose_revision(one)?;
    let name = revision.metadata.name.clone();
    let pods = if name == before { Vec::new() } else { find_pods(cluster, &name).await? };
    let absence = if pods.is_empty() {
        let absence = find_absence(cluster, revision).await;
        Some(absence.explain(one, revision, &cluster.namespace).message)
    } else {
        None
    };
    let containers = request.choose_containers(&pods)?;
    Ok(Sight { revision: name, containers, absence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use serde_json::{Value as Json, json};

    fn container(restarts: i64, state: &Json) -> LoggedContainer {
        let pod = json!({
            "metadata": {"name": "p-1", "uid": "u"},
            "spec": {"containers": [{"name": "package-runtime"}]},
            "status": {"containerStatuses": [
                {"name": "package-runtime", "restartCount": restarts, "state": state}]},
        });
        LoggedContainer::choose(&pod, None).unwrap()
    }

    fn request(words: &[&str]) -> Request {
        args::logs_request(words)
    }

    fn follow(request: &Request) -> Follower<'_> {
        Follower { request, progress: BTreeMap::new(), told: BTreeSet::new() }
    }

    fn end_of(one: &LoggedContainer, seen: Option<ReadPosition>, is_whole: bool) -> StreamEnd {
        let (identity, run) = (one.identity.clone(), one.run);
        StreamEnd { identity, run, seen, is_whole, is_unread: false, refusal: None }
    }

    #[test]
    fn what_was_asked_for_goes_for_the_first_logs_and_later_ones_are_whole() {
        let request = request(&["p", "--follow", "--tail", "3"]);
        let mut follower = follow(&request);
        let running = json!({"running": {}});
        let first = follower.choose_streams(&[container(0, &running)], true);
        assert_eq!(first[0].parameters.tail_lines, Some(3));
        assert!(follower.choose_streams(&[container(0, &running)], false).is_empty());
        // The stream that is open may be of either run, until it ends.
        assert!(follower.choose_streams(&[container(1, &running)], false).is_empty());
        follower.note_end(end_of(&first[0].one, None, true), false).unwrap();
        let second = follower.choose_streams(&[container(1, &running)], false);
        assert_eq!(second[0].parameters.tail_lines, None);
    }

    #[test]
    fn a_log_that_broke_off_goes_on_from_a_little_before_its_last_line() {
        let request = request(&["p", "--follow", "--tail", "3"]);
        let mut follower = follow(&request);
        let running = container(0, &json!({"running": {}}));
        follower.choose_streams(std::slice::from_ref(&running), true);
        let seen = ReadPosition::and(None, "2026-01-31T12:00:00.5Z".parse().unwrap());
        let end = |is_whole| end_of(&running, Some(seen), is_whole);
        for is_whole in [false, true] {
            assert!(!follower.note_end(end(is_whole), false).unwrap());
            let again = follower.choose_streams(std::slice::from_ref(&running), false);
            assert_eq!(again[0].seen, Some(seen));
            assert_eq!(again[0].parameters.tail_lines, None);
            let since = again[0].parameters.since_time.unwrap().to_string();
            assert_eq!(since, "2026-01-31T11:59:58.5Z");
        }
        follower.note_end(end(true), false).unwrap();
        let ended = container(0, &json!({"terminated": {"exitCode": 0}}));
        assert!(follower.choose_streams(&[ended], false).is_empty());
    }

    #[test]
    fn a_refusal_counts_when_it_is_the_first_answer() {
        let request = request(&["p", "--follow"]);
        let mut follower = follow(&request);
        let refused = || StreamEnd {
            refusal: Some(Failure::new("cannot read", "mend it")),
            ..end_of(&container(0, &json!({"running": {}})), None, false)
        };
        assert!(follower.note_end(refused(), true).is_err());
        assert!(!follower.note_end(refused(), false).unwrap());
        assert_eq!(follower.told.len(), 1);
    }
}
