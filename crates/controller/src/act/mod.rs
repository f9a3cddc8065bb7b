//! Carries out what `plan` decided, in order, and says what the API server thought of it.
//!
//! | action    | request                                                                      |
//! |-----------|------------------------------------------------------------------------------|
//! | Apply     | server-side apply as `apron`; naming the state it was decided on, with force; |
//! |           | where nothing was seen, without force, so that nobody's object is overwritten |
//! | Delete    | with the uid and resource version as preconditions                           |
//! | Establish | POST of what was absent, PUT of what was seen ([`establish`])                |
//! | Issue     | POST or PUT of a Secret with what is made here ([`issue`])                    |
//! | Merge     | a merge patch that names the state                                           |
//! | Finalizer | the same, made from the list the server has                                  |
//! | Status    | PUT of the status that names the state                                       |
//! | Event     | an event of `events.k8s.io`, counted up if it happens again ([`event`])      |
//!
//! An action decided on an old state is refused by the server with 409, and the world is looked
//! at again; so are 429 and 5xx, after a while. Everything else the server says is for the step to
//! put into a condition.

pub(crate) mod establish;
mod event;
mod issue;

use crate::Hands;
use crate::cluster::{Error, Force, Mode};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use kube::api::Preconditions;
use plan::step::{Action, Expect, Refusal, Target, Write};
use serde_json::{Value as Json, json};

/// Objects of packages that are sent at once.
const TOGETHER: usize = 10;

/// Why a plan was not carried out to its end.
#[derive(Debug)]
pub enum Trouble {
    /// The world must be looked at again, now or later.
    Again(Error),
    /// The API server will not have this.
    Refused(Vec<Refusal>),
}

/// Carries out a plan up to the first action that fails; neighbours that may be carried out at
/// once are all tried. Events come last, so that none tells of what was not done.
pub async fn carry_out(hands: &Hands, actions: &[Action]) -> Result<(), Trouble> {
    let (events, deeds): (Vec<&Action>, Vec<&Action>) =
        actions.iter().partition(|one| matches!(one, Action::Event { .. }));
    let deeds = [deeds, events].concat();
    let mut rest = deeds.as_slice();
    while !rest.is_empty() {
        let together = rest.iter().take_while(|one| matches!(one, Action::Establish(_)));
        let (now, later) = rest.split_at(together.count().max(1));
        let failed = all(now.len(), |at| one(hands, now[at]).boxed()).await;
        judge(failed.into_iter().map(|(at, error)| (target_of(now[at]), error)))?;
        rest = later;
    }
    Ok(())
}

/// Asks the API server whether it would write all of this, each by itself, and changes nothing.
/// What it would refuse is the answer.
pub async fn try_out(hands: &Hands, writes: &[Write]) -> Result<Vec<Refusal>, Error> {
    let tried = |at| establish::establish(hands, &writes[at], Mode::DryRun).boxed();
    let failed = all(writes.len(), tried).await;
    match judge(failed.into_iter().map(|(at, error)| (writes[at].target.clone(), error))) {
        Ok(()) => Ok(Vec::new()),
        Err(Trouble::Refused(refusals)) => Ok(refusals),
        Err(Trouble::Again(error)) => Err(error),
    }
}

/// Tries so many, a few at once: one that takes long does not hold up the others. Which of them
/// failed, in order.
async fn all<'a>(
    count: usize,
    one: impl Fn(usize) -> BoxFuture<'a, Result<(), Error>>,
) -> Vec<(usize, Error)> {
    let tries = futures::stream::iter(0..count).map(|at| one(at).map(move |done| (at, done)));
    let tries = tries.buffer_unordered(TOGETHER);
    let failed = tries.filter_map(|(at, done)| async move { Some((at, done.err()?)) });
    let mut failed: Vec<_> = failed.collect().await;
    failed.sort_unstable_by_key(|(at, _)| *at);
    failed
}

/// Refusals count before everything else: looking again would lead to them again.
fn judge(failed: impl Iterator<Item = (Target, Error)>) -> Result<(), Trouble> {
    let mut refusals = Vec::new();
    let mut again = None;
    for (target, error) in failed {
        match error {
            Error::Refused(message) => refusals.push(Refusal { target, message }),
            other => again = again.or(Some(other)),
        }
    }
    match again {
        _ if !refusals.is_empty() => Err(Trouble::Refused(refusals)),
        Some(error) => Err(Trouble::Again(error)),
        None => Ok(()),
    }
}

async fn one(hands: &Hands, action: &Action) -> Result<(), Error> {
    match action {
        Action::Apply { object, expect } => apply(hands, object, expect).await,
        Action::Establish(write) => establish::establish(hands, write, Mode::Real).await,
        Action::Delete { target, expect } => {
            let (uid, resource_version) = state(expect);
            hands.cluster.delete(target, Preconditions { resource_version, uid }).await
        }
        Action::Merge { target, change, expect } => {
            let mut change = change.clone();
            require(&mut change, expect);
            hands.cluster.merge(target, &change).await.map(|_| ())
        }
        Action::Issue { secret, keep, make, expect } => {
            issue::issue(hands, secret, keep, make.as_ref(), expect).await
        }
        Action::Finalizer { target, finalizer, is_wanted, expect } => {
            set_finalizer(hands, target, finalizer, *is_wanted, expect).await
        }
        Action::Status { target, status, expect } => {
            let mut object = named(target);
            require(&mut object, expect);
            object["status"] = status.clone();
            hands.cluster.replace_status(target, &object).await.map(|_| ())
        }
        Action::Event { target, is_warning, reason, message } => {
            event::tell(hands, target, *is_warning, reason, message).await;
            Ok(())
        }
    }
}

async fn apply(hands: &Hands, object: &Json, expect: &Expect) -> Result<(), Error> {
    let mut object = object.clone();
    require(&mut object, expect);
    let force = if *expect == Expect::Absent { Force::Yield } else { Force::Overrule };
    hands.cluster.apply(&target_in(&object), &object, force, Mode::Real).await.map(|_| ())
}

/// The list is replaced as a whole, so the patch is made from the one the server has now, and
/// names that state.
async fn set_finalizer(
    hands: &Hands,
    target: &Target,
    finalizer: &str,
    is_wanted: bool,
    expect: &Expect,
) -> Result<(), Error> {
    let Some(live) = hands.cluster.get_metadata(target).await? else {
        let gone = Error::Stale(format!("{} {} is gone", target.kind, target.name));
        return if is_wanted { Err(gone) } else { Ok(()) };
    };
    let (uid, resource_version) = state(expect);
    let seen = |field: &str| live["metadata"][field].as_str().map(str::to_owned);
    let same = (uid.is_none() || uid == seen("uid"))
        && (resource_version.is_none() || resource_version == seen("resourceVersion"));
    if !same {
        return Err(Error::Stale(format!("{} {} is not as it was", target.kind, target.name)));
    }
    let all = live["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let mut wanted: Vec<Json> = all.iter().filter(|one| *one != finalizer).cloned().collect();
    if is_wanted {
        wanted.push(Json::from(finalizer));
    }
    if wanted.len() == all.len() {
        return Ok(());
    }
    let patch = json!({"metadata": {
        "uid": seen("uid"), "resourceVersion": seen("resourceVersion"), "finalizers": wanted,
    }});
    hands.cluster.merge(target, &patch).await.map(|_| ())
}

/// Puts the state an action was decided on into what is sent.
fn require(object: &mut Json, expect: &Expect) {
    let (uid, resource_version) = state(expect);
    for (field, value) in [("uid", uid), ("resourceVersion", resource_version)] {
        if let Some(value) = value {
            object["metadata"][field] = Json::from(value);
        }
    }
}

fn state(expect: &Expect) -> (Option<String>, Option<String>) {
    match expect {
        Expect::Unchanged { uid, resource_version } => (uid.clone(), resource_version.clone()),
        Expect::Anything | Expect::Absent => (None, None),
    }
}

fn named(target: &Target) -> Json {
    let mut object = json!({
        "apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": target.name},
    });
    if let Some(namespace) = &target.namespace {
        object["metadata"]["namespace"] = Json::from(namespace.as_str());
    }
    object
}

/// Which object a text is about.
fn target_in(object: &Json) -> Target {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    Target {
        api_version: text(&object["apiVersion"]).unwrap_or_default(),
        kind: text(&object["kind"]).unwrap_or_default(),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]).unwrap_or_default(),
    }
}

/// What an action is about.
fn target_of(action: &Action) -> Target {
    match action {
        Action::Apply { object, .. } | Action::Issue { secret: object, .. } => target_in(object),
        Action::Establish(write) => write.target.clone(),
        Action::Delete { target, .. }
        | Action::Merge { target, .. }
        | Action::Finalizer { target, .. }
        | Action::Status { target, .. }
        | Action::Event { target, .. } => target.clone(),
    }
}
