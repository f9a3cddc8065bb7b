//! From what is seen to what the solver is asked, and back to what is to be found out.

use super::World;
use super::contents::Contents;
use super::kinds::{self, KindChoice};
use super::members::{Member, Members, unusable};
use super::sources::{Sources, digest_of};
use crate::image_config::Name;
use crate::step::Need;
use api::kind_reference::KindReference;
use oci::{Digest, Identifier, Reference};
use solver::{Listing, Movement, Pin, Problem, Range, Requirement, Source, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// Tags that are looked at to find the version of what is installed by digest.
const TAGS_ASKED_MAX: usize = 50;

/// What the solver is asked.
pub(super) struct Question<'a> {
    pub(super) problem: Problem,
    pub(super) known: solver::Known,
    pub(super) sources: Sources<'a>,
    /// Where kinds may come from that packages need and no package here brings.
    pub(super) choices: BTreeMap<String, KindChoice>,
    /// The names by which packages need kinds.
    kinds: BTreeSet<String>,
    /// What each source is called by those who have or need it.
    pub(super) directory: BTreeMap<Source, Name>,
    references: BTreeMap<(Source, Pin), Reference>,
}

impl<'a> Question<'a> {
    /// The question, unless it takes more to know what is what.
    pub(super) fn new(world: &'a World, members: &Members<'_>) -> Result<Self, Vec<Need>> {
        let mut sources = Sources::new(world);
        let kinds = kinds::needed_kinds(world, members);
        let mut choices = kinds::choose_packages(world, &kinds, &sources);
        let mut needed = needed(world, members, &sources);
        for name in choices.values().filter_map(|choice| choice.name.clone()) {
            needed.entry(name.source.clone()).or_insert(name);
        }
        let needs = sources.find_copies(world, members, &needed);
        if !needs.is_empty() {
            return Err(needs);
        }
        // Names are read once more, now that it is known which repositories are copies.
        choices.extend(kinds::choose_packages(world, &kinds, &sources));
        let mut question = Self {
            problem: Problem::default(),
            known: solver::Known::default(),
            sources,
            choices,
            kinds,
            directory: BTreeMap::new(),
            references: BTreeMap::new(),
        };
        question.ask(world, members, &needed);
        question.name(members, needed);
        question.read(world, members);
        question.offer_bringers();
        question.list(world, members);
        let needs = question.unnamed(world, members);
        if needs.is_empty() { Ok(question) } else { Err(needs) }
    }

    /// One root for each package. Only what others need is ever moved for their sake: a package
    /// that nobody needs is what somebody wants it to be.
    fn ask(&mut self, world: &World, members: &Members<'_>, needed: &BTreeMap<Source, Name>) {
        let names = needed.values().filter_map(|it| self.sources.repository(&it.written).ok());
        let needed: BTreeSet<Source> = names.map(|name| name.source).collect();
        let root = |member: &Member<'_>| {
            let mut root = member.root(world);
            if !needed.contains(&root.source) {
                root.movement = Movement::Held;
            }
            root
        };
        self.problem.roots = members.counting().map(root).collect();
    }

    fn name(&mut self, members: &Members<'_>, needed: BTreeMap<Source, Name>) {
        for member in &members.all {
            let name = member.name.clone();
            self.directory.entry(name.source.clone()).or_insert(name);
        }
        for name in needed.into_values() {
            // Read once more, now that it is known who is a copy of whom.
            let name = self.sources.repository(&name.written).unwrap_or(name);
            self.directory.entry(name.source.clone()).or_insert(name);
        }
    }

    /// What is inside everything that was looked at. What a revision holds counts for more than
    /// what its tag means now.
    fn read(&mut self, world: &World, members: &Members<'_>) {
        for (reference, inside) in &world.known.contents {
            let Ok(reference) = Reference::try_from(reference.clone()) else { continue };
            let Ok(name) = self.sources.repository(&reference.repository().to_string()) else {
                continue;
            };
            let pin = match reference.identifier() {
                Identifier::Tag(tag) => Pin::parse(tag),
                Identifier::Digest(digest) => Pin::Digest(digest.clone()),
            };
            let package = members.by_source(&name.source).map(|member| member.package);
            match inside {
                Ok(contents) => match unusable(world, package, contents) {
                    Some(why) => self.dismiss(&name.source, &pin, &why),
                    None => self.insert(&name.source, pin, contents),
                },
                Err(why) => self.dismiss(&name.source, &pin, why),
            }
        }
        for member in members.giving_way().chain(members.counting()) {
            let source = &member.name.source;
            if let Some((_, pin, contents)) = &member.previous {
                self.insert(source, pin.clone(), contents);
            }
            if let Some(active) = &member.active {
                let key = (source.clone(), active.pin.clone());
                self.references.insert(key, active.reference.clone());
                match (&active.contents, &member.unfit) {
                    (Some(contents), None) => self.insert(source, active.pin.clone(), contents),
                    (_, Some(why)) => {
                        self.dismiss(source, &active.pin, why);
                        if let Some(digest) = active.digest() {
                            self.dismiss(source, &Pin::Digest(digest.clone()), why);
                        }
                    }
                    (None, None) => {}
                }
            }
        }
    }

    fn offer_bringers(&mut self) {
        let bringers = self.choices.iter();
        self.known.bringers =
            bringers.map(|(crd, choice)| (crd.clone(), choice.bringer.clone())).collect();
    }

    /// This cannot be had, or not used here.
    fn dismiss(&mut self, source: &Source, pin: &Pin, why: &str) {
        let unusable = solver::Contents::Unusable(why.to_owned());
        self.known.contents.insert((source.clone(), pin.clone()), unusable);
    }

    fn insert(&mut self, source: &Source, pin: Pin, contents: &Contents) {
        let requires = contents.dependencies.iter();
        let requires = requires.flat_map(|one| self.sources.requirements(one));
        let package = solver::Package {
            kind: contents.kind.clone(),
            requires: requires.collect(),
            crds: contents.crds.clone(),
            answers_to: kinds::names_answered(self.sources.world(), &self.kinds, contents),
            digest: contents.digest.clone(),
        };
        let pins = [Some(pin), contents.digest.clone().map(Pin::Digest)];
        for pin in pins.into_iter().flatten() {
            let package = solver::Contents::Package(package.clone());
            self.known.contents.insert((source.clone(), pin), package);
        }
    }

    fn list(&mut self, world: &World, members: &Members<'_>) {
        for (repository, answer) in &world.known.tags {
            let Ok(name) = self.sources.repository(&repository.to_string()) else { continue };
            let member = members.by_source(&name.source);
            let digest = |tag: &str| -> Option<Digest> {
                let remark = member.and_then(|member| member.remark.as_ref());
                let remark = remark.filter(|(remark, _)| remark == tag);
                remark
                    .map(|(_, digest)| digest.clone())
                    .or_else(|| digest_of(world, repository, tag).and_then(Result::ok))
            };
            let listing = match answer {
                Ok(tags) => Listing::Tags(
                    tags.iter().map(|tag| Tag { name: tag.clone(), digest: digest(tag) }).collect(),
                ),
                Err(reason) => Listing::Unavailable(reason.clone()),
            };
            self.known.listings.insert(name.source, listing);
        }
    }

    /// What somebody says about the versions of a source.
    fn ranges(&self, source: &Source) -> Vec<&Range> {
        let packages = self.known.contents.values().filter_map(|inside| match inside {
            solver::Contents::Package(package) => Some(package),
            solver::Contents::Unusable(_) => None,
        });
        let requires = packages.flat_map(|package| &package.requires);
        let ranges = requires.filter_map(|one| match one {
            Requirement::Package { source: target, range, .. } if target == source => Some(range),
            _ => None,
        });
        ranges.collect()
    }

    /// What to find out about packages that are there by digest while others speak of versions.
    fn unnamed(&self, world: &World, members: &Members<'_>) -> Vec<Need> {
        let mut needs = Vec::new();
        for member in &members.all {
            let pin = member.installed().unwrap_or_else(|| member.wish());
            let Pin::Digest(digest) = pin else { continue };
            let ranges = self.ranges(&member.name.source);
            if ranges.iter().any(|range| matches!(range, Range::Constraint(_))) {
                needs.extend(self.versions_of(world, member, digest, &ranges));
            }
        }
        needs
    }

    fn versions_of(
        &self,
        world: &World,
        member: &Member<'_>,
        digest: &Digest,
        ranges: &[&Range],
    ) -> Vec<Need> {
        let tags = match self.known.listings.get(&member.name.source) {
            None => return vec![Need::Tags(member.name.repository.clone())],
            Some(Listing::Unavailable(_)) => return Vec::new(),
            Some(Listing::Tags(tags)) => tags,
        };
        if tags.iter().any(|tag| tag.digest.as_ref() == Some(digest)) {
            return Vec::new();
        }
        let mut pins: Vec<Pin> = tags.iter().map(|tag| Pin::parse(&tag.name)).collect();
        pins.retain(|pin| ranges.iter().any(|range| range.accepts(pin)));
        pins.sort();
        let repository = &member.name.repository;
        let highest = pins.iter().rev().take(TAGS_ASKED_MAX).map(ToString::to_string);
        let unasked = highest.filter(|tag| digest_of(world, repository, tag).is_none());
        unasked.filter_map(|tag| repository.tag(&tag).ok()).map(Need::Digest).collect()
    }

    /// What the solver needs to know, as others find it out.
    pub(super) fn needs(&self, needs: &BTreeSet<solver::Need>) -> Vec<Need> {
        needs.iter().filter_map(|need| self.need(need)).collect()
    }

    fn need(&self, need: &solver::Need) -> Option<Need> {
        match need {
            solver::Need::Listing(source) => {
                Some(Need::Tags(self.directory.get(source)?.repository.clone()))
            }
            solver::Need::Bringer(crd) => KindReference::parse(crd).ok().map(Need::Kind),
            solver::Need::Contents(source, pin) => {
                let seen = self.references.get(&(source.clone(), pin.clone())).cloned();
                seen.or_else(|| self.reference(source, pin)).map(Need::Contents)
            }
        }
    }

    fn reference(&self, source: &Source, pin: &Pin) -> Option<Reference> {
        let repository = &self.directory.get(source)?.repository;
        match pin {
            Pin::Digest(digest) => Some(repository.digest(digest.clone())),
            Pin::Version(_) | Pin::Channel(_) => repository.tag(&pin.to_string()).ok(),
        }
    }
}

/// Every repository that something known needs, by source.
fn needed(world: &World, members: &Members<'_>, sources: &Sources<'_>) -> BTreeMap<Source, Name> {
    let mut needed: BTreeMap<Source, Name> = BTreeMap::new();
    for contents in kinds::known_contents(world, members) {
        for dependency in &contents.dependencies {
            let Some(target) = &dependency.target else { continue };
            if target.crd().is_some() {
                continue;
            }
            let Ok(name) = sources.repository(&target.package) else { continue };
            let first = needed.entry(name.source.clone()).or_insert_with(|| name.clone());
            // Of several spellings the first in order counts, whoever was read first.
            if name.written < first.written {
                *first = name;
            }
        }
    }
    needed
}
