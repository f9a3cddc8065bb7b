//! How the Deployment of one revision takes over from that of the revision before.
//!
//! What works is not torn down before what follows is available. The pods of two functions may run
//! side by side, so a function's next Deployment is started at once, and the Service leads to the
//! old one until the new one is available. Two revisions of a provider must not run at once, because
//! most providers elect no leader:
//!
//! ```text
//!   next Deployment               Deployment before
//!   made without pods, waiting
//!                                 scaled to zero; notes its pods, and for which turn it stands back
//!   gets its pods, started
//!   available                     goes, with its account and roles
//!   or: not within its deadline,
//!   gives its pods up             gets its pods back
//! ```
//!
//! Both sides decide on their own, on what they read of the other. So a turn has a name: the
//! Deployment's uid, the generation of its revision and what it is to be. The next one starts only
//! when the one before stands back for exactly that turn, and the one before comes back only when
//! exactly that turn was given up. A change of the revision or of its configuration is another turn,
//! which is how a failed upgrade is tried again.

use super::World;
use super::run::Work;
use super::tell::Trouble;
use crate::control::{is_controlled_by, is_meant};
use crate::step::{Action, Expect, Plan, Target, Wake, seconds, timestamp};
use api::condition::{self, types};
use api::pkg::revision::Revision;
use api::pkg::{ANNOTATION_BROUGHT_BY, ANNOTATION_HANDOVER, ANNOTATION_STANDBY};
use oci::Digest;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// How long Kubernetes gives a Deployment to become available, if it says nothing.
const PROGRESS_DEADLINE: i64 = 600;
/// How long in seconds the pods of a Deployment that takes over have to stay ready, if its configuration does not say: a
/// program that ends at once is ready for a moment, and what works would go for it.
const SETTLE_SECONDS: i64 = 10;
/// How many digits of a digest tell one state of a Deployment from another.
const PRINT_SIZE: usize = 16;

/// How far a provider's Deployment has come in taking over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Without pods, until the Deployment before has none.
    Waiting,
    /// With pods, since this moment.
    Started(i64),
    /// Without pods again: it was not available in time.
    GivenUp,
}

/// A Deployment's attempt to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turn {
    phase: Phase,
    /// The generation of the revision, and what the Deployment is to be.
    print: String,
}

impl Turn {
    fn of(deployment: &Json) -> Option<Self> {
        let text = deployment["metadata"]["annotations"][ANNOTATION_HANDOVER].as_str()?;
        let mut words = text.split(' ');
        let phase = match words.next()? {
            "waiting" => Phase::Waiting,
            "given-up" => Phase::GivenUp,
            "started" => Phase::Started(seconds(words.next()?)?),
            _ => return None,
        };
        Some(Self { phase, print: words.next()?.to_owned() })
    }

    fn to_text(&self) -> String {
        let print = &self.print;
        match self.phase {
            Phase::Waiting => format!("waiting {print}"),
            Phase::Started(since) => format!("started {} {print}", timestamp(since)),
            Phase::GivenUp => format!("given-up {print}"),
        }
    }
}

/// For which turn a Deployment stands back, and how many pods it gets back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standby {
    replicas: i64,
    turn: String,
}

impl Standby {
    fn of(deployment: &Json) -> Option<Self> {
        let text = deployment["metadata"]["annotations"][ANNOTATION_STANDBY].as_str()?;
        let (replicas, turn) = text.split_once(' ')?;
        Some(Self { replicas: replicas.parse().ok()?, turn: turn.to_owned() })
    }

    fn to_text(&self) -> String {
        format!("{} {}", self.replicas, self.turn)
    }
}

/// The name of a Deployment's turn, by which the Deployment before refers to it.
fn turn_name(deployment: &Json, turn: Option<&Turn>) -> String {
    let uid = deployment["metadata"]["uid"].as_str().unwrap_or_default();
    format!("{uid} {}", turn.map_or("", |turn| turn.print.as_str()))
}

fn wished_pods(deployment: &Json) -> i64 {
    deployment["spec"]["replicas"].as_i64().unwrap_or(1)
}

fn is_going(object: &Json) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether the status is of what the Deployment says now.
fn is_observed(deployment: &Json) -> bool {
    let observed = deployment["status"]["observedGeneration"].as_i64();
    observed.is_none_or(|seen| Some(seen) >= deployment["metadata"]["generation"].as_i64())
}

/// Whether a Deployment has no pods, and gets none. A pod that is deleted is not among its replicas any
/// more, and its program runs until the pod's time to end is over: servers since Kubernetes 1.35 count
/// these pods apart, older ones do not tell.
fn is_stopped(deployment: &Json) -> bool {
    let count = |field: &str| deployment["status"][field].as_i64().unwrap_or_default();
    let has_pods = count("replicas") > 0 || count("terminatingReplicas") > 0;
    wished_pods(deployment) == 0 && !has_pods && is_observed(deployment) && !is_going(deployment)
}

/// Whether a Deployment says of what it is now that it is available.
fn is_available(deployment: &Json) -> bool {
    let conditions = deployment["status"]["conditions"].as_array().into_iter().flatten();
    let mut said = conditions.filter(|one| one["type"] == "Available");
    is_observed(deployment) && said.any(|one| one["status"] == "True")
}

fn name_of(deployment: &Json) -> &str {
    deployment["metadata"]["name"].as_str().unwrap_or_default()
}

impl World {
    /// Whether this revision's Deployment may be called instead of the one before.
    pub(super) fn takes_calls(&self, live: Option<&Json>) -> bool {
        let is_on = |turn: Turn| matches!(turn.phase, Phase::Started(_));
        self.deployments.is_empty()
            || live.is_some_and(|live| {
                is_controlled_by(live, &self.revision)
                    && is_available(live)
                    && Turn::of(live).is_none_or(is_on)
            })
    }

    /// Has a Deployment called available only once its pods have stayed ready for a while, as long as
    /// there are Deployments of other revisions that would go for it.
    pub(super) fn settle_first(&self, wanted: &mut Json) {
        let name = name_of(wanted).to_owned();
        let is_first = self.deployments.iter().all(|one| name_of(one) == name);
        if is_first || wanted["spec"]["minReadySeconds"].as_i64().is_some() {
            return;
        }
        // API servers refuse a deadline that is not longer.
        let deadline = wanted["spec"]["progressDeadlineSeconds"].as_i64();
        let most = deadline.unwrap_or(PROGRESS_DEADLINE).saturating_sub(1);
        let seconds = SETTLE_SECONDS.min(most);
        if seconds > 0 {
            wanted["spec"]["minReadySeconds"] = json!(seconds);
        }
    }

    /// A revision before this one whose Deployment has pods, and the Deployment.
    pub(super) fn running_sibling(&self) -> Option<(&Revision, &Json)> {
        let mut running =
            self.deployments.iter().filter(|one| wished_pods(one) > 0 && !is_going(one));
        running.find_map(|one| {
            let sibling = self.siblings.iter().find(|it| is_controlled_by(one, it))?;
            Some((sibling, one))
        })
    }

    /// Makes of the Deployment that is wanted what it may be now, while there are Deployments of
    /// other revisions. Says what it waits for, if it does.
    pub(super) fn take_turn(
        &self,
        wanted: &mut Json,
        live: Option<&Json>,
        work: &mut Work,
    ) -> Result<(), Trouble> {
        let name = name_of(wanted).to_owned();
        let others: Vec<&Json> =
            self.deployments.iter().filter(|one| name_of(one) != name).collect();
        let live = live.filter(|live| is_controlled_by(live, &self.revision));
        if self.is_function() || others.is_empty() {
            return Ok(());
        }
        if let Some(noted) = live.and_then(Standby::of) {
            wanted["metadata"]["annotations"][ANNOTATION_STANDBY] = json!(noted.to_text());
        }
        let deadline = wanted["spec"]["progressDeadlineSeconds"].as_i64();
        let deadline = deadline.unwrap_or(PROGRESS_DEADLINE);
        let print = self.print_of(wanted);
        let phase = self.next_phase(&print, wished_pods(wanted), live, &others, deadline);
        let Some(phase) = phase else { return Ok(()) };
        let turn = Turn { phase, print };
        let outcome = match turn.phase {
            Phase::Started(since) => {
                let left = since.saturating_add(deadline).saturating_sub(self.now);
                let is_told =
                    |live: &&Json| is_observed(live) && Turn::of(live).as_ref() == Some(&turn);
                let outcome = self.availability(live.filter(is_told));
                if outcome.is_err() {
                    // After the deadline, too: that the one before stood back may have been read late,
                    // and nothing tells of it again.
                    let left = u64::try_from(left).ok().filter(|left| *left > 0);
                    work.look_after(left.map_or(super::RETRY, Duration::from_secs));
                }
                outcome
            }
            Phase::Waiting => Err(Trouble::Waits(self.waits_for(&name, &others))),
            Phase::GivenUp => Err(Trouble::Fails(self.given_up(&name, &others, deadline))),
        };
        if !matches!(turn.phase, Phase::Started(_)) {
            wanted["spec"]["replicas"] = json!(0);
        }
        wanted["metadata"]["annotations"][ANNOTATION_HANDOVER] = json!(turn.to_text());
        outcome
    }

    /// A Deployment without pods says that it is available; what it waits for is known from its
    /// annotations.
    pub(super) fn held_back(&self, live: Option<&Json>) -> Result<(), Trouble> {
        let is_held = |live: &Json| {
            let has_pods =
                |turn: Turn| matches!(turn.phase, Phase::Started(_)) && wished_pods(live) > 0;
            !Turn::of(live).is_none_or(has_pods) || Standby::of(live).is_some()
        };
        match live.filter(|live| !self.is_function() && is_held(live)) {
            Some(live) => Err(Trouble::Waits(format!(
                "{} package deployment {} has no pods yet",
                self.what(),
                name_of(live)
            ))),
            None => Ok(()),
        }
    }

    /// The phase that a Deployment should be in. None if it has its pods already, and never asked.
    fn next_phase(
        &self,
        print: &str,
        wished: i64,
        live: Option<&Json>,
        others: &[&Json],
        deadline: i64,
    ) -> Option<Phase> {
        let Some(live) = live else { return Some(Phase::Waiting) };
        let has_pods = wished_pods(live) > 0 || wished == 0;
        match Turn::of(live) {
            None if wished_pods(live) > 0 => None,
            Some(Turn { phase: Phase::Started(_), print: was }) if has_pods && was != print => {
                Some(Phase::Started(self.now))
            }
            Some(Turn { phase: Phase::Started(since), print: was }) if has_pods && was == print => {
                let is_late = self.now >= since.saturating_add(deadline);
                let turn = turn_name(live, Turn::of(live).as_ref());
                let stands_back = |one: &&Json| Standby::of(one).is_some_and(|it| it.turn == turn);
                let gives_up = is_late && !is_available(live) && others.iter().any(stands_back);
                Some(if gives_up { Phase::GivenUp } else { Phase::Started(since) })
            }
            Some(Turn { phase: Phase::GivenUp, print: was }) if was == print => {
                Some(Phase::GivenUp)
            }
            Some(turn @ Turn { phase: Phase::Waiting, .. }) if turn.print == print => {
                let name = turn_name(live, Some(&turn));
                let stands_back = |one: &&Json| {
                    is_stopped(one) && Standby::of(one).is_none_or(|it| it.turn == name)
                };
                let may_start = others.iter().all(stands_back);
                Some(if may_start { Phase::Started(self.now) } else { Phase::Waiting })
            }
            _ => Some(Phase::Waiting),
        }
    }

    /// Tells one state of what a Deployment is to be from another.
    fn print_of(&self, wanted: &Json) -> String {
        let generation = self.revision.metadata.generation.unwrap_or_default();
        let digest = Digest::of(wanted.to_string().as_bytes());
        let digits = digest.hex().get(..PRINT_SIZE).unwrap_or_default();
        format!("{generation}-{digits}")
    }

    fn waits_for(&self, name: &str, others: &[&Json]) -> String {
        let running = others.iter().filter(|one| !is_stopped(one)).map(|one| name_of(one));
        let running = running.chain(others.iter().map(|one| name_of(one))).next();
        format!(
            "{} package deployment {name} starts once {} has stopped, because two would disturb \
             each other",
            self.what(),
            running.unwrap_or_default()
        )
    }

    fn given_up(&self, name: &str, others: &[&Json], deadline: i64) -> String {
        let is_back = |one: &&&Json| wished_pods(one) > 0 || Standby::of(one).is_some();
        let before = others.iter().find(is_back).map(|one| name_of(one)).unwrap_or_default();
        format!(
            "{} package deployment {name} was not available within {deadline} s, so {before} runs \
             again; another version, or a change of the package's spec or of its runtime \
             configuration, is tried again; to stay with what runs: apron rollback {}",
            self.what(),
            super::package_name(&self.revision)
        )
    }

    /// Takes away what a Deployment noted while its revision was not active, once it runs again. Until
    /// then the note says that it ran well, should its revision have to stand back once more.
    pub(super) fn forget_standby(&self, live: Option<&Json>) -> Option<Action> {
        let live = live.filter(|live| is_controlled_by(live, &self.revision) && !is_going(live))?;
        let runs = wished_pods(live) > 0 && is_available(live);
        (runs && Standby::of(live).is_some()).then(|| {
            let change = json!({"metadata": {"annotations": {ANNOTATION_STANDBY: null}}});
            Action::Merge { target: Target::of(live), change, expect: Expect::as_found(Some(live)) }
        })
    }

    /// What there is to do while the next revision is not available yet: what runs goes on, or, of a
    /// provider, stands back for it.
    pub(super) fn stand_by(&self, successor: &Revision) -> Plan {
        let name = &successor.metadata.name;
        let mut work = Work::default();
        work.report.push(format!("what runs goes on until {name} is established and available"));
        if !self.is_function() {
            let is_next = |one: &&Json| is_controlled_by(one, successor) && !is_going(one);
            let next = self.deployments.iter().find(is_next);
            let is_own = |one: &&Json| one["kind"] == "Deployment" && !is_going(one);
            for own in self.owned.iter().filter(is_own) {
                match self.rename_package(own) {
                    Some(renamed) => work.actions.push(renamed),
                    None => self.give_way(own, next, successor, &mut work),
                }
            }
        }
        Plan { actions: work.actions, report: work.report, wake: Wake::After(super::RETRY) }
    }

    /// Says of which package a Deployment is now, if that got the revision from another: it is how news
    /// of the Deployment reaches the other revisions.
    fn rename_package(&self, own: &Json) -> Option<Action> {
        let mark = self.mark();
        let marked = own["metadata"]["annotations"][ANNOTATION_BROUGHT_BY].as_str();
        marked.is_some_and(|it| it != mark).then(|| {
            let change = json!({"metadata": {"annotations": {ANNOTATION_BROUGHT_BY: mark}}});
            Action::Merge { target: Target::of(own), change, expect: Expect::as_found(Some(own)) }
        })
    }

    /// Scales a Deployment of this revision down for the next one's, or up again.
    fn give_way(&self, own: &Json, next: Option<&Json>, successor: &Revision, work: &mut Work) {
        let turn = next.and_then(Turn::of);
        let noted = Standby::of(own);
        let ran_well = condition::find(self.revision.conditions(), types::RUNTIME_HEALTHY)
            .is_some_and(|one| one.status == "True");
        let is_given_up = turn.as_ref().is_some_and(|turn| turn.phase == Phase::GivenUp);
        let others = || self.deployments.iter().filter(|one| !is_going(one));
        if let Some(next) = next.filter(|_| !is_given_up) {
            let is_due = successor.is_established() || !is_stopped(next);
            let turn = turn_name(next, turn.as_ref());
            let is_noted = noted.as_ref().is_some_and(|it| it.turn == turn);
            if wished_pods(own) > 0 && is_due {
                let is_only = !others().any(|one| Standby::of(one).is_some());
                let comes_back = ran_well || noted.is_some() || is_only;
                let noted = Standby { replicas: wished_pods(own), turn };
                let why = format!("so that {} can start", name_of(next));
                scale_deployment(own, 0, comes_back.then_some(noted), &why, work);
            } else if let Some(noted) = noted.filter(|_| is_due && !is_noted) {
                let noted = Standby { turn, ..noted };
                scale_deployment(own, 0, Some(noted), "it stands back", work);
            }
            return;
        }
        if let Some(noted) = noted {
            let turn = next.map(|next| turn_name(next, turn.as_ref()));
            let was_for = turn.is_none_or(|turn| turn == noted.turn);
            // The successor may have a note of its own, of the time before it was wanted again.
            let mut rest = others().filter(|one| !is_controlled_by(one, successor));
            let is_last = rest.all(|one| !self.is_later_standby(one));
            if was_for && is_last && self.deployments.iter().all(is_stopped) {
                let why = format!("{} is not available", successor.metadata.name);
                scale_deployment(own, noted.replicas, None, &why, work);
            }
        } else if !ran_well
            && wished_pods(own) > 0
            && others().any(|one| Standby::of(one).is_some())
        {
            scale_deployment(
                own,
                0,
                None,
                "it never was available, and what was can run again",
                work,
            );
        }
    }

    /// Whether a Deployment stands back for a revision that was active after this one.
    fn is_later_standby(&self, deployment: &Json) -> bool {
        let Some(owner) = crate::control::controller_of(deployment) else { return false };
        let number = |one: &Revision| (one.spec.revision, one.metadata.name.clone());
        let mut owners = self.siblings.iter().filter(|one| is_meant(owner, one));
        Standby::of(deployment).is_some() && owners.any(|one| number(one) > number(&self.revision))
    }
}

/// Whether a revision does all that the one before did, so that what ran that one may go.
pub(super) fn relieves(successor: &Revision) -> bool {
    let runtime = condition::find(successor.conditions(), types::RUNTIME_HEALTHY);
    let generation = successor.metadata.generation;
    successor.is_established()
        && runtime.is_some_and(|one| one.status == "True" && !one.is_past(generation))
}

/// Gives a Deployment so many pods, and notes for what.
fn scale_deployment(own: &Json, replicas: i64, noted: Option<Standby>, why: &str, work: &mut Work) {
    let noted = noted.map(|noted| noted.to_text());
    let change = json!({
        "metadata": {"annotations": {ANNOTATION_STANDBY: noted}},
        "spec": {"replicas": replicas},
    });
    work.report.push(format!("Deployment {} gets {replicas} pods: {why}", name_of(own)));
    let (target, expect) = (Target::of(own), Expect::as_found(Some(own)));
    work.actions.push(Action::Merge { target, change, expect });
}
