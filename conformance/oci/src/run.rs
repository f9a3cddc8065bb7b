//! Running checks: which, how many at a time, and for how long.

use crate::check::{Check, Entry, Level, Needs, Outcome};
use crate::client::{Client, Scheme};
use crate::context::Context;
use crate::report::{Finding, Report};
use crate::target::Target;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

/// Which checks to run.
#[derive(Debug, Clone)]
pub struct Selection {
    /// This level and those before it.
    pub level: Level,
    /// Only checks whose id contains this.
    pub filter: Option<String>,
}

impl Default for Selection {
    fn default() -> Self {
        Self { level: Level::Dev, filter: None }
    }
}

impl Selection {
    fn includes(&self, check: &Check) -> bool {
        check.level <= self.level
            && self.filter.as_ref().is_none_or(|filter| check.id.contains(filter.as_str()))
    }
}

/// Runs the selected checks against the registry.
///
/// The error is a sentence about why not a single check could be made: the URL is malformed, or
/// nobody answers.
pub async fn run(target: &Target, selection: &Selection) -> Result<Report, String> {
    let client = Arc::new(Client::new(target).await?);
    let applies = |entry: &Entry| match entry.needs {
        Needs::Nothing => true,
        Needs::Credentials => client.credentials.is_some(),
        Needs::Tokens => matches!(client.scheme, Scheme::Bearer(_)),
    };
    let selected = crate::checks::all().into_iter().filter(|e| selection.includes(&e.check));
    let (entries, others): (Vec<Entry>, Vec<Entry>) = selected.partition(applies);

    let mut waiting = entries.iter().copied().enumerate();
    let mut running = JoinSet::new();
    let mut done: Vec<(usize, Finding)> = Vec::with_capacity(entries.len());
    loop {
        while running.len() < target.jobs.max(1) {
            let Some((position, entry)) = waiting.next() else { break };
            let (client, target) = (Arc::clone(&client), target.clone());
            running.spawn(async move { (position, make(client, &target, entry).await) });
        }
        match running.join_next().await {
            Some(Ok(finding)) => done.push(finding),
            Some(Err(_)) => {} // it panicked: noticed below
            None => break,
        }
    }
    for (position, entry) in entries.iter().enumerate() {
        if done.iter().all(|(other, _)| *other != position) {
            done.push((position, broken(entry.check)));
        }
    }
    done.sort_by_key(|(position, _)| *position);
    Ok(Report {
        base_url: target.base_url.clone(),
        seed: target.seed,
        findings: done.into_iter().map(|(_, finding)| finding).collect(),
        not_applicable: others.iter().map(|entry| entry.check).collect(),
    })
}

async fn make(client: Arc<Client>, target: &Target, entry: Entry) -> Finding {
    let started = Instant::now();
    let context = Context::new(client, &target.repository_prefix, target.seed, entry.check.id);
    let outcome = match tokio::time::timeout(target.timeout, (entry.run)(&context)).await {
        Ok(Ok(())) => Outcome::Pass,
        Ok(Err(failure)) => {
            Outcome::Fail { request: failure.request, expected: failure.expected, got: failure.got }
        }
        Err(_) => Outcome::Fail {
            request: "(the whole check)".to_owned(),
            expected: format!("an end within {:?}", target.timeout),
            got: "it was still under way".to_owned(),
        },
    };
    Finding { check: entry.check, outcome, elapsed: started.elapsed() }
}

/// The finding of a check that did not come to an end of its own.
fn broken(check: Check) -> Finding {
    let outcome = Outcome::Fail {
        request: "(the whole check)".to_owned(),
        expected: "an end".to_owned(),
        got: "the check itself panicked; this is a fault of the suite".to_owned(),
    };
    Finding { check, outcome, elapsed: std::time::Duration::ZERO }
}
