//! What a rehearsal says would happen, and what happens.

use super::{Step, arrive, dice};
use crate::explore::on_a_clock;
use crate::life::{Diary, hands, settings};
use crate::pack::Failure;
use crate::picture::{self, Picture, TRANSIENT, name, text};
use crate::stage::{Setting, Snapshot, Stage};
use controller::Settings;
use controller::rehearsal::{Checks, Imagined, rehearse};
use http::{Method, Request};
use kube::client::Body;
use plan::same::holds;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

/// What was said of what a user would do, and what came of it.
#[derive(Debug, Default)]
pub struct Foretold {
    /// Objects that were said to be made, changed or gone.
    pub said: usize,
    /// What came otherwise.
    pub otherwise: Vec<String>,
}

/// Takes a walk, rehearses what a user does next, and lets the user do it.
pub fn foretell(ground: &Snapshot, seed: u64) -> Foretold {
    let setting = Setting { pushes: true, ..Setting::default() };
    let told = on_a_clock(async {
        let mut stage = Stage::open(ground, setting).await?;
        stage.wake().await?;
        arrive(&mut stage, &dice::steps(seed)).await?;
        let next = dice::next(seed);
        let told = compare(&mut stage, &next).await;
        let _ = stage.close();
        told
    });
    told.unwrap_or_else(|failure| Foretold { said: 0, otherwise: vec![failure.to_string()] })
}

async fn compare(stage: &mut Stage, next: &Step) -> Result<Foretold, Failure> {
    let Step::Ask(method, path, body) = next else { return Ok(Foretold::default()) };
    let Some(said) = rehearsed(stage, method, path, body).await? else {
        return Ok(Foretold::default());
    };
    let before = picture::take(&stage.place().log);
    stage.ask(method.clone(), path, body).await?;
    stage.settle().await?;
    let seen = Told::between(&before, &picture::take(&stage.place().log));
    let mut otherwise = Vec::new();
    differ(&mut otherwise, "made", &said.made, &seen.made);
    differ(&mut otherwise, "gone", &said.gone, &seen.gone);
    differ(&mut otherwise, "changed", &said.changed, &seen.changed);
    if !otherwise.is_empty() {
        otherwise.push(format!("after {next}"));
    }
    Ok(Foretold { said: said.made.len() + said.gone.len() + said.changed.len(), otherwise })
}

fn differ(told: &mut Vec<String>, what: &str, said: &BTreeSet<String>, seen: &BTreeSet<String>) {
    told.extend(said.difference(seen).map(|one| format!("{one} is not {what}, as was said")));
    told.extend(seen.difference(said).map(|one| format!("{one} is {what}, and nobody said so")));
}

/// What becomes of objects, by name.
#[derive(Debug, Default)]
struct Told {
    made: BTreeSet<String>,
    gone: BTreeSet<String>,
    changed: BTreeSet<String>,
}

impl Told {
    fn between(before: &Picture, after: &Picture) -> Self {
        let mut told = Self::default();
        for (name, object) in after {
            match before.get(name) {
                None => told.made.insert(name.clone()),
                Some(was) if content(was) != content(object) => told.changed.insert(name.clone()),
                _ => false,
            };
        }
        told.gone.extend(before.keys().filter(|name| !after.contains_key(*name)).cloned());
        told
    }
}

/// What an object asks for. What is in Secrets is nobody's business, and what is in the Lock is told
/// by packages.
fn content(object: &Json) -> Json {
    if ["Secret", "Lock"].contains(&text(object, "kind")) {
        return Json::Null;
    }
    json!({"spec": object["spec"], "rules": object["rules"], "subjects": object["subjects"]})
}

/// What would become of objects. Nothing if what the user asks for is refused.
async fn rehearsed(
    stage: &Stage,
    method: &Method,
    path: &str,
    body: &Json,
) -> Result<Option<Told>, Failure> {
    let place = stage.place();
    let client = kube::Client::new(place.server.clone(), "default");
    let imagined = Imagined::new(client, Checks::Server, place.clock.text());
    let asked = Request::builder().method(method.clone()).uri(path);
    let asked = asked.header("content-type", Stage::media_type(method));
    let asked = asked.body(Body::from(body.to_string().into_bytes()))?;
    if !imagined.client().send(asked).await?.status().is_success() {
        return Ok(None);
    }
    let cache = tempfile::tempdir()?;
    // Nothing runs on a cluster that is only imagined.
    let awaits = controller::Awaits::Installed;
    let settings = Settings { installs_definitions: false, awaits, ..settings() };
    let hands =
        hands(place, imagined.client(), cache.path().to_owned(), settings, &Diary::default())?;
    let rehearsed = rehearse(&hands, &imagined).await?;
    let mut told = Told::default();
    for change in &rehearsed.changes {
        match (&change.before, &change.after) {
            (None, Some(one)) if !TRANSIENT.contains(&text(one, "kind")) => {
                told.made.insert(name(one))
            }
            (Some(one), None) => told.gone.insert(name(one)),
            (Some(was), Some(one)) if !holds(&content(one), &content(was)) => {
                told.changed.insert(name(one))
            }
            _ => false,
        };
    }
    Ok(Some(told))
}
