//! What the lock says about each active revision.
//!
//! A revision may be established when everything it needs is there, in a version it accepts, and
//! its objects are, and it runs where that is waited for: what is needed comes first. Revisions that
//! were established before are not held up by what has become of others since, so that nothing waits
//! for itself: who is in a circle is refused, and whoever waits says for whom and why.

use super::contents::Contents;
use super::kinds;
use super::members::{Active, Member, Members, unread};
use super::question::Question;
use super::{Counts, Verdict, Whose, World, words};
use api::condition::{self, types};
use api::meta::PackageKind;
use solver::{Bringer, Pin, Range, Requirement, Settlement, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Missing things that are written out in one message; more are counted.
const TOLD_MAX: usize = 3;

pub(super) fn of(
    world: &World,
    members: &Members<'_>,
    question: &Question<'_>,
    settlement: &Settlement,
) -> BTreeMap<Whose, Verdict> {
    let mut verdicts = BTreeMap::new();
    for member in &members.all {
        let Some(active) = &member.active else { continue };
        let judge = Judge { members, question, settlement, awaited: &world.settings.awaited };
        let conflict = member.refusal(&settlement.conflicts).filter(|_| !member.is_skipped());
        let verdict = match conflict {
            // What is said of what comes after it is no news to it.
            None if member.is_passed_over() => continue,
            _ if member.is_skipped() && active.contents.is_some() => Verdict::Skipped,
            _ if member.is_skipped() => unread(),
            Some(conflict) => {
                let needs = active.contents.as_deref().map(|contents| judge.needs(contents));
                Verdict::Conflict(needs.unwrap_or_default().counts, words(conflict))
            }
            None => match (&member.unfit, &member.predecessor) {
                (Some(why), _) => Verdict::Conflict(Counts::default(), why.clone()),
                (None, Some(before)) if member.awaits_handover() => {
                    Verdict::Waiting(Counts::default(), before.handover_message())
                }
                (None, _) => judge.judge(active),
            },
        };
        verdicts.insert(Whose::of(active.revision), verdict);
    }
    verdicts
}

/// Says nothing yet, or why, to those who may be established but are not in the lock.
pub(super) fn withhold(
    verdicts: &mut BTreeMap<Whose, Verdict>,
    members: &Members<'_>,
    why: Option<&str>,
) {
    let active = members.all.iter().filter_map(|member| member.active.as_ref());
    // Who was established before is not held up.
    let is_old = |one: &Active<'_>| one.is_listed || why.is_some() && one.is_established();
    for whose in active.filter(|one| !is_old(one)).map(|one| Whose::of(one.revision)) {
        let counts = match verdicts.get(&whose) {
            Some(Verdict::Resolved(counts)) => *counts,
            Some(Verdict::Skipped) => Counts::default(),
            _ => continue,
        };
        match why {
            Some(why) => verdicts.insert(whose, Verdict::Waiting(counts, why.to_owned())),
            None => verdicts.remove(&whose),
        };
    }
}

/// What a package needs, and what there is of it.
#[derive(Default)]
struct Needs {
    missing: BTreeSet<String>,
    /// There, and not well yet.
    late: BTreeSet<String>,
    counts: Counts,
}

/// A package that has something.
struct Granted<'m> {
    member: &'m Member<'m>,
    pin: &'m Pin,
    contents: Option<&'m Contents>,
    is_established: bool,
    /// Why it does not run, where that is waited for.
    standstill: Option<String>,
}

struct Judge<'a> {
    members: &'a Members<'a>,
    question: &'a Question<'a>,
    settlement: &'a Settlement,
    awaited: &'a [PackageKind],
}

impl Judge<'_> {
    fn judge(&self, active: &Active<'_>) -> Verdict {
        let Some(contents) = active.contents.as_deref() else { return unread() };
        let Needs { missing, late, counts } = self.needs(contents);
        if !missing.is_empty() {
            return Verdict::Waiting(counts, format!("missing dependencies: {}", some(&missing)));
        }
        if !late.is_empty() && !active.is_established() {
            return Verdict::Waiting(counts, format!("waiting for dependencies: {}", some(&late)));
        }
        Verdict::Resolved(counts)
    }

    fn needs(&self, contents: &Contents) -> Needs {
        let Needs { mut missing, mut late, mut counts } = Needs::default();
        for requirement in self.requirements(contents) {
            match self.state(&requirement) {
                State::There => {}
                State::Missing(what) => drop(missing.insert(what)),
                State::Invalid(what) => {
                    counts.invalid += 1;
                    missing.insert(what);
                }
                State::Late(what) => drop(late.insert(what)),
            }
        }
        let reachable = self.reachable(contents);
        let there = reachable.iter().filter(|source| self.active(source).is_some()).count();
        (counts.found, counts.installed) = (reachable.len(), there);
        Needs { missing, late, counts }
    }

    fn requirements(&self, contents: &Contents) -> Vec<Requirement> {
        let dependencies = contents.dependencies.iter();
        dependencies.flat_map(|one| self.question.sources.requirements(one)).collect()
    }

    fn active(&self, source: &Source) -> Option<(&Member<'_>, &Active<'_>)> {
        let member = self.members.by_source(source)?;
        Some((member, member.active.as_ref()?))
    }

    /// What a package has: what is active of it, or if that is refused, what was there before,
    /// which goes on, or what comes next.
    fn granted<'m>(&self, member: &'m Member<'_>) -> Option<Granted<'m>> {
        let conflicts = &self.settlement.conflicts;
        let is_refused = member.is_refused(conflicts);
        match (&member.active, &member.previous) {
            (Some(active), Some((_, pin, contents))) if is_refused && !active.is_admitted => {
                Some(Granted {
                    member,
                    pin,
                    contents: Some(contents),
                    is_established: true,
                    standstill: None,
                })
            }
            (Some(active), None) if is_refused && !active.is_admitted => {
                let comes = member.is_passed_over() && member.refusal(conflicts).is_none();
                let next = Granted {
                    member,
                    pin: member.wish(),
                    contents: None,
                    is_established: false,
                    standstill: None,
                };
                comes.then_some(next)
            }
            (Some(active), _) => Some(Granted {
                member,
                pin: &active.pin,
                contents: active.contents.as_deref(),
                is_established: active.is_established(),
                standstill: self.standstill(member, active),
            }),
            (None, _) => None,
        }
    }

    /// Why what a package has does not run, where that is waited for.
    fn standstill(&self, member: &Member<'_>, active: &Active<'_>) -> Option<String> {
        let is_awaited = self.awaited.iter().any(|kind| kind.as_str() == member.package.kind);
        let revision = active.revision;
        let said = condition::find(revision.conditions(), types::RUNTIME_HEALTHY);
        let said = said.filter(|one| !one.is_past(revision.metadata.generation));
        let runs = said.is_some_and(|one| one.status == "True");
        let why = said.and_then(|one| one.message.as_deref()).filter(|why| !why.is_empty());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        (is_awaited && !runs).then(|| format!("it does not run yet{why}"))
    }

    /// Who brings a CRD, of those that are granted.
    fn owner(&self, crd: &str) -> Option<Granted<'_>> {
        let mut granted = self.members.all.iter().filter_map(|member| self.granted(member));
        granted.find(|one| one.contents.is_some_and(|inside| kinds::is_brought(crd, inside)))
    }

    /// Whether a CRD is there without a package.
    fn is_external(&self, crd: &str) -> bool {
        let choice = self.question.choices.get(crd);
        choice.is_some_and(|choice| choice.bringer == Bringer::There)
    }

    fn state(&self, requirement: &Requirement) -> State {
        let (found, what) = match requirement {
            Requirement::Package { source, range, .. } => {
                let what = format!("{source:?} ({range})", source = source.as_str());
                let member = self.members.by_source(source);
                match member.and_then(|member| self.granted(member)) {
                    Some(Granted { member, pin, .. }) if !self.accepts(source, range, pin) => {
                        return State::Invalid(format!(
                            "{what}, of which {} is {pin}",
                            member.label
                        ));
                    }
                    found => (found, what),
                }
            }
            Requirement::Crd(crd) => {
                let found = self.owner(crd);
                if found.is_none() && self.is_external(crd) {
                    return State::There;
                }
                (found, format!("a package with the CRD {crd}"))
            }
            Requirement::Invalid(why) => return State::Missing(why.clone()),
        };
        match found {
            Some(Granted { is_established: true, standstill: None, .. }) => State::There,
            Some(Granted { is_established: true, standstill: Some(why), member, .. }) => {
                State::Late(format!("{} ({why})", member.label))
            }
            Some(found) => State::Late(found.member.label.clone()),
            None => State::Missing(format!("{what}{}", self.waits(requirement))),
        }
    }

    /// Why a package that is there has nothing active.
    fn waits(&self, requirement: &Requirement) -> String {
        let Requirement::Package { source, .. } = requirement else { return String::new() };
        match self.members.by_source(source) {
            Some(member) if member.package.is_manual() => {
                format!(", of which {} waits for somebody to activate it", member.label)
            }
            _ => String::new(),
        }
    }

    /// Whether what is installed satisfies a range, by any name it has.
    fn accepts(&self, source: &Source, range: &Range, pin: &Pin) -> bool {
        let digest = match self.question.known.contents.get(&(source.clone(), pin.clone())) {
            Some(solver::Contents::Package(package)) => package.digest.clone(),
            _ => None,
        };
        let digest = digest.or_else(|| match pin {
            Pin::Digest(digest) => Some(digest.clone()),
            Pin::Version(_) | Pin::Channel(_) => None,
        });
        let tags = match self.question.known.listings.get(source) {
            Some(solver::Listing::Tags(tags)) => tags.as_slice(),
            _ => &[],
        };
        // The version of what is there by version is what it says, whatever else has its bytes.
        let is_unnamed = pin.version().is_none();
        let same =
            tags.iter().filter(|tag| is_unnamed && tag.digest.is_some() && tag.digest == digest);
        let mut pins: Vec<Pin> = same.map(|tag| Pin::parse(&tag.name)).collect();
        let asked = self.members.by_source(source).and_then(|member| member.tags().remove(pin));
        pins.extend(asked.map(Pin::Channel));
        pins.push(pin.clone());
        pins.extend(digest.map(Pin::Digest));
        pins.iter().any(|pin| range.accepts(pin))
    }

    /// Everything that is needed, directly or not, as far as that is known.
    fn reachable(&self, contents: &Contents) -> BTreeSet<Source> {
        let mut reached = BTreeSet::new();
        let mut queue = self.requirements(contents);
        while let Some(requirement) = queue.pop() {
            let source = match &requirement {
                Requirement::Package { source, .. } => Some(source.clone()),
                Requirement::Crd(crd) => {
                    self.owner(crd).map(|found| found.member.name.source.clone())
                }
                Requirement::Invalid(_) => None,
            };
            let Some(source) = source else { continue };
            let inside = self.active(&source).and_then(|(_, one)| one.contents.as_deref());
            if reached.insert(source) {
                queue.extend(inside.map(|inside| self.requirements(inside)).unwrap_or_default());
            }
        }
        reached
    }
}

enum State {
    There,
    /// It is there, and its objects are not yet, or it does not run yet.
    Late(String),
    Missing(String),
    /// It is there in a version that is not accepted.
    Invalid(String),
}

fn some(all: &BTreeSet<String>) -> String {
    let told: Vec<&str> = all.iter().take(TOLD_MAX).map(String::as_str).collect();
    match all.len().saturating_sub(TOLD_MAX) {
        0 => told.join(", "),
        more => format!("{}, and {more} more", told.join(", ")),
    }
}
