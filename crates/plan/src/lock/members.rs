//! Who is there: packages with what they ask for, what is active of them, and what was before.

use super::contents::Contents;
use super::keepers::holder_of;
use super::succession::{self, Predecessor};
use super::{Counts, Verdict, Whose, World};
use crate::image_config::{Name, Names};
use crate::package::pull::Policy;
use crate::revision::is_made_for;
use api::pkg::lock::{Lock, LockPackage};
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{LABEL_PACKAGE, Package};
use oci::{Digest, Identifier, Reference};
use solver::{Conflict, Dependencies, Movement, Pin, Root, Source, Want};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// All packages that name an image, sorted by label.
pub(super) struct Members<'a> {
    pub(super) all: Vec<Member<'a>>,
}

/// A package.
pub(super) struct Member<'a> {
    pub(super) package: &'a Package,
    /// What people call it; with its kind if another kind has one of that name.
    pub(super) label: String,
    /// Of what it asks for, or of what is active and stays until somebody acts.
    pub(super) name: Name,
    /// What it asks for.
    pub(super) asked: Pin,
    /// Whether it asks for that by its digest.
    is_exact: bool,
    /// A tag that somebody wrote beside a digest.
    pub(super) remark: Option<(String, Digest)>,
    pub(super) active: Option<Active<'a>>,
    /// What was granted before to a revision that is still there, but no longer active.
    pub(super) previous: Option<(&'a LockPackage, Pin, Contents)>,
    /// Why what is active of it can never be established here.
    pub(super) unfit: Option<String>,
    /// Whether it asks for another package than the active one, which stays until somebody acts.
    is_elsewhere: bool,
    /// The label of the package that it gives way to, if it was installed automatically.
    pub(super) successor: Option<String>,
    /// The automatic package that gives way to it.
    pub(super) predecessor: Option<Predecessor<'a>>,
}

/// An active revision.
pub(super) struct Active<'a> {
    pub(super) revision: &'a Revision,
    pub(super) reference: Reference,
    pub(super) pin: Pin,
    pub(super) contents: Option<Cow<'a, Contents>>,
    /// Whether the lock has it.
    pub(super) is_listed: bool,
    /// Whether it was granted before, and so counts as installed.
    pub(super) is_admitted: bool,
}

impl Active<'_> {
    pub(super) fn digest(&self) -> Option<&Digest> {
        self.contents.as_ref()?.digest.as_ref()
    }

    /// Whether its objects are there. That it was well while it was inactive says nothing.
    pub(super) fn is_established(&self) -> bool {
        self.revision.is_established()
    }
}

impl<'a> Members<'a> {
    pub(super) fn new(world: &'a World) -> Self {
        let configs = &world.image_configs;
        let names = Names { configs, default_registry: &world.settings.default_registry };
        let living = world.packages.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
        let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
        for package in living.clone() {
            *shared.entry(&package.metadata.name).or_default() += 1;
        }
        let member = |package: &'a Package| {
            let name = &package.metadata.name;
            let is_shared = shared.get(name.as_str()).is_some_and(|count| *count > 1);
            let label = if is_shared { format!("{} {name}", package.kind) } else { name.clone() };
            Member::new(world, &names, package, label)
        };
        let mut all: Vec<Member<'a>> = living.filter_map(member).collect();
        all.sort_by(|one, two| one.label.cmp(&two.label));
        give_way(&mut all, &world.known.failing);
        succession::pair_members(world, &mut all);
        Self { all }
    }

    pub(super) fn by_label(&self, label: &str) -> Option<&Member<'a>> {
        self.all.iter().find(|member| member.label == label)
    }

    /// Those that count: of several for one source, one that can never be installed does not, nor one
    /// that gives way to another.
    pub(super) fn counting(&self) -> impl Iterator<Item = &Member<'a>> {
        let is_better = |one: &Member<'_>, than: &Member<'_>| {
            one.unfit.is_none() && one.name.source == than.name.source
        };
        self.all.iter().filter(move |member| {
            let is_useful =
                member.unfit.is_none() || !self.all.iter().any(|one| is_better(one, member));
            is_useful && member.successor.is_none()
        })
    }

    /// Those that give way to others, and could be installed.
    pub(super) fn giving_way(&self) -> impl Iterator<Item = &Member<'a>> {
        self.all.iter().filter(|member| member.successor.is_some() && member.unfit.is_none())
    }

    /// The package of a source: of several, the one that the solver goes by.
    pub(super) fn by_source(&self, source: &Source) -> Option<&Member<'a>> {
        let of_source = self.all.iter().filter(|member| member.name.source == *source);
        of_source.min_by_key(|member| {
            let gives_way = member.successor.is_some();
            (member.installed().is_none(), member.unfit.is_some(), gives_way, &member.label)
        })
    }
}

impl<'a> Member<'a> {
    fn new(
        world: &'a World,
        names: &Names<'_>,
        package: &'a Package,
        label: String,
    ) -> Option<Self> {
        let (name, reference) = names.image(&package.spec.package).ok()?;
        let is_exact = reference.identifier().as_digest().is_some();
        let revisions: Vec<&Revision> =
            world.revisions.iter().filter(|one| is_of(one, package)).collect();
        let entry = |revision: &Revision| entry(world.lock.as_ref(), revision);
        let mut actives: Vec<&&Revision> =
            revisions.iter().filter(|one| one.spec.desired_state == ACTIVE).collect();
        actives.sort_by_key(|one| (one.spec.revision, &one.metadata.name));
        let active =
            actives.last().and_then(|revision| Active::new(world, names, package, revision));
        let is_active = |one: &Revision| {
            active.as_ref().is_some_and(|active| active.revision.metadata.name == one.metadata.name)
        };
        // Who was tried in vain has nothing that could go on.
        let had_something = |one: &Revision| !world.known.failing.contains(&Whose::of(one));
        let before = revisions.iter().filter(|one| !is_active(one) && had_something(one));
        let before = before.filter_map(|one| entry(one));
        let previous = before.max_by(|one, two| one.name.cmp(&two.name)).map(|entry| {
            let lock = world.lock.as_ref();
            let owners = succession::recorded_owners(world, package);
            let remember = |lock: &Lock| Contents::remembered(lock, entry, &owners);
            let contents = world.known.revisions.get(&entry.name).cloned();
            let contents = contents.or_else(|| lock.map(remember)).unwrap_or_default();
            (entry, Pin::parse(&entry.version), contents)
        });
        // Whoever is held is what is active of it, even if it asks for another package by now.
        let held = active.as_ref().filter(|_| is_held(package)).and_then(|active| {
            let image = &active.revision.spec.image;
            let (held, reference) = names.image(image).ok()?;
            (held.source != name.source).then_some((image, held, reference))
        });
        let is_elsewhere = held.is_some();
        let (image, name, reference) = held.unwrap_or((&package.spec.package, name, reference));
        let asked = match &active {
            Some(active) if active.revision.spec.image == *image => active.pin.clone(),
            _ => {
                let known = world.known.contents.get(&reference.name());
                let known = known.and_then(|known| known.as_ref().ok());
                pin(&reference, known.and_then(|known| known.digest.as_ref()))
            }
        };
        let remark = remark(image, &reference);
        let unfit = active.as_ref().and_then(|active| active.unfit(world, package));
        Some(Self {
            package,
            label,
            name,
            asked,
            is_exact,
            remark,
            active,
            previous,
            unfit,
            is_elsewhere,
            successor: None,
            predecessor: None,
        })
    }

    /// What it should be if nobody objects: under Manual, and while it is paused, that is decided
    /// by what is active.
    pub(super) fn wish(&self) -> &Pin {
        match &self.active {
            Some(active) if is_held(self.package) => &active.pin,
            _ => &self.asked,
        }
    }

    /// What counts as installed.
    pub(super) fn installed(&self) -> Option<&Pin> {
        match (&self.active, &self.previous) {
            (Some(active), _) if active.is_admitted => Some(&active.pin),
            // Other bytes under the same tag: what is there cannot be told from what is wished for.
            (_, Some((_, pin, _))) if pin != self.wish() => Some(pin),
            _ => None,
        }
    }

    /// The tag that its bytes were asked for by, if that is no version.
    pub(super) fn tags(&self) -> BTreeMap<Pin, String> {
        let active = self.active.as_ref();
        let tag = active.and_then(|active| active.reference.identifier().as_tag());
        let tag = tag.filter(|tag| Pin::parse(tag).version().is_none());
        active
            .zip(tag)
            .map(|(active, tag)| (active.pin.clone(), tag.to_owned()))
            .into_iter()
            .collect()
    }

    /// Whether what it needs does not matter, as what is active of it says.
    pub(super) fn is_skipped(&self) -> bool {
        let package = self.package.spec.skip_dependency_resolution;
        let active = self.active.as_ref();
        let skip = active.map_or(package, |it| it.revision.spec.skip_dependency_resolution);
        skip == Some(true)
    }

    /// How far it may be moved for the sake of others. A digest is what somebody checked and stays,
    /// unless others name another; what must not be fetched cannot be moved anywhere, and what is
    /// kept elsewhere is moved there.
    fn movement(&self, world: &World) -> Movement {
        let policy = Policy::parse(self.package.spec.package_pull_policy.as_deref());
        let is_fixed = self.package.metadata.is_paused() || self.is_elsewhere;
        match world.settings.movement {
            _ if is_fixed || policy == Policy::Never => Movement::Held,
            _ if holder_of(self.package, &world.settings).is_some() => Movement::Held,
            Movement::Upgrades | Movement::Any if self.is_exact => Movement::Named,
            movement => movement,
        }
    }

    pub(super) fn root(&self, world: &World) -> Root {
        let skipped = self.is_skipped();
        let before = self.predecessor.as_ref().and_then(|one| one.pin.as_ref());
        // What a package is to be that waits to be activated is not known yet.
        let is_undecided = self.active.is_none() && is_held(self.package);
        let want = before.filter(|_| is_undecided).unwrap_or_else(|| self.wish());
        Root {
            name: self.label.clone(),
            source: self.name.source.clone(),
            want: Some(Want::Pin(want.clone())),
            installed: self.installed().or(before).cloned(),
            tags: self.tags(),
            movement: self.movement(world),
            dependencies: if skipped { Dependencies::Skipped } else { Dependencies::Resolved },
        }
    }

    /// Whether what is active of it may not be. Who does not want to know what it needs is refused
    /// for nothing that it needs, or others do.
    pub(super) fn is_refused(&self, conflicts: &[Conflict]) -> bool {
        let is_refused = !self.is_skipped() && self.refusal(conflicts).is_some();
        self.unfit.is_some() || self.is_passed_over() || is_refused
    }

    /// Whether it waits for the revisions of an automatic package, which it takes over first.
    pub(super) fn awaits_handover(&self) -> bool {
        let is_admitted = self.active.as_ref().is_some_and(|active| active.is_admitted);
        !is_admitted && self.predecessor.as_ref().is_some_and(|one| one.has_revisions)
    }

    /// Whether what is active was not granted before, and is not what the package asks for any
    /// more: nobody decides about it, and the next revision is on its way.
    pub(super) fn is_passed_over(&self) -> bool {
        self.active.as_ref().is_some_and(|it| !it.is_admitted && it.pin != *self.wish())
    }

    /// The conflict that keeps the active revision from being what it is. One about what is only
    /// asked for is no business of a revision that was granted before.
    pub(super) fn refusal<'c>(&self, conflicts: &'c [Conflict]) -> Option<&'c Conflict> {
        let active = self.active.as_ref()?;
        let about_other = active.is_admitted && *self.wish() != active.pin;
        let mut own = conflicts.iter().filter(|one| one.name == self.label);
        own.next().filter(|_| !about_other)
    }
}

impl<'a> Active<'a> {
    fn new(
        world: &'a World,
        names: &Names<'_>,
        package: &Package,
        revision: &'a Revision,
    ) -> Option<Self> {
        let (_, reference) = names.image(&revision.spec.image).ok()?;
        let lock = world.lock.as_ref();
        let entry = entry(lock, revision);
        let fetched = || {
            let contents = world.known.contents.get(&reference.name())?;
            contents.as_ref().ok().map(Cow::Borrowed)
        };
        let remembered = || {
            let (lock, entry) = (lock?, entry?);
            // Without a record of who owns what, a lock does not remember enough.
            lock.custom_resource_definitions.as_ref()?;
            let owners = succession::recorded_owners(world, package);
            Some(Cow::Owned(Contents::remembered(lock, entry, &owners)))
        };
        let contents = world.known.revisions.get(&revision.metadata.name).map(Cow::Borrowed);
        let contents = contents.or_else(remembered).or_else(fetched);
        let pin = pin(&reference, contents.as_ref().and_then(|it| it.digest.as_ref()));
        let is_listed = entry.is_some();
        let is_sound = contents.as_ref().is_none_or(|it| it.fault.is_none());
        let is_admitted = is_listed && is_sound || revision.is_established();
        Some(Self { revision, reference, pin, contents, is_listed, is_admitted })
    }

    /// Why it can never be established, if it was not before: whoever can have nothing must not
    /// keep anything from others.
    fn unfit(&self, world: &World, package: &Package) -> Option<String> {
        let contents = self.contents.as_deref().filter(|_| !self.is_admitted)?;
        if !contents.kind.is_empty() && contents.kind != package.kind {
            return Some(format!("it is a {}, not a {}", contents.kind, package.kind));
        }
        unusable(world, Some(package), contents)
    }

    /// Something that both of two bring and only one can have, in words.
    fn shares(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (self.contents.as_deref()?, other.contents.as_deref()?);
        let crd = ours.crds.intersection(&theirs.crds).next();
        let composition = ours.compositions.intersection(&theirs.compositions).next();
        let crd = crd.map(|name| format!("the CRD {name}"));
        crd.or_else(|| composition.map(|name| format!("the composition {name}")))
    }
}

/// Lets those that have nothing, and whose objects the API server refuses or an administrator has
/// not given them, give way to others that
/// want the same: otherwise nobody would have it. Who failed stays known as such, so that two who
/// fail do not take turns, and what is established is nobody else's.
fn give_way(all: &mut [Member<'_>], failing: &BTreeSet<Whose>) {
    let has_failed = |active: &Active<'_>| {
        !active.is_established() && failing.contains(&Whose::of(active.revision))
    };
    let rival = |active: &Active<'_>| {
        let rivals = all.iter().filter(|one| one.unfit.is_none());
        let mut rivals = rivals.filter_map(|one| Some((one, one.active.as_ref()?)));
        rivals.find_map(|(one, rival)| {
            let shared = active.shares(rival).filter(|_| !has_failed(rival))?;
            Some(format!("what it brings is refused, so {} has {shared}", one.label))
        })
    };
    let reasons: Vec<Option<String>> = all
        .iter()
        .map(|one| one.active.as_ref().filter(|active| has_failed(active)).and_then(rival))
        .collect();
    for (member, why) in all.iter_mut().zip(reasons) {
        let (Some(why), Some(active)) = (why, &mut member.active) else { continue };
        active.is_admitted = false;
        member.unfit = Some(why);
    }
}

/// Whether what is active stays until somebody acts, whatever the package asks for.
fn is_held(package: &Package) -> bool {
    package.is_manual() || package.metadata.is_paused()
}

/// Why a package cannot be installed here, by whatever name: because of what is in it, or because
/// this Crossplane is not one that it is made for, unless that does not matter.
pub(super) fn unusable(
    world: &World,
    package: Option<&Package>,
    contents: &Contents,
) -> Option<String> {
    if let Some(fault) = &contents.fault {
        return Some(fault.clone());
    }
    let ignored = package.and_then(|one| one.spec.ignore_crossplane_constraints) == Some(true);
    let asked = contents.crossplane.as_deref().filter(|_| !ignored)?;
    let have = &world.settings.crossplane_version;
    let why = || format!("it is made for Crossplane {asked}, and this is {have}");
    (!is_made_for(asked, have)).then(why)
}

/// What a reference pins: a channel is the bytes behind it, where those are known.
fn pin(reference: &Reference, digest: Option<&Digest>) -> Pin {
    match reference.identifier() {
        Identifier::Digest(digest) => Pin::Digest(digest.clone()),
        Identifier::Tag(tag) => match (Pin::parse(tag), digest) {
            (Pin::Channel(_), Some(digest)) => Pin::Digest(digest.clone()),
            (pin, _) => pin,
        },
    }
}

fn remark(image: &str, reference: &Reference) -> Option<(String, Digest)> {
    let digest = reference.identifier().as_digest()?;
    let (name, _) = image.split_once('@')?;
    let (_, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    Some((tag.to_owned(), digest.clone()))
}

fn entry<'a>(lock: Option<&'a Lock>, revision: &Revision) -> Option<&'a LockPackage> {
    let entries = lock?.packages.iter().flatten();
    entries.into_iter().find(|entry| {
        let kind = entry.kind.as_deref().or(entry.package_type.as_deref());
        let same_kind = kind.is_none_or(|kind| revision.kind == format!("{kind}Revision"));
        entry.name == revision.metadata.name && same_kind
    })
}

/// Whether a revision is one of a package.
fn is_of(revision: &Revision, package: &Package) -> bool {
    revision.kind == format!("{}Revision", package.kind)
        && revision.metadata.labels.get(LABEL_PACKAGE) == Some(&package.metadata.name)
        && revision.metadata.deletion_timestamp.is_none()
}

/// What to say of a revision while nobody knows what is inside it.
pub(super) fn unread() -> Verdict {
    Verdict::Waiting(Counts::default(), "its contents are not known yet".to_owned())
}
