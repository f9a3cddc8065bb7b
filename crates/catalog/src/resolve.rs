//! From a constraint on a kind to the packages that satisfy it.
//!
//! ```text
//!   buckets.s3.example.org/v1     the one package whose versions install and serve it
//!   *.s3.example.org/v1           every kind of the group: one package each, or several that share none
//! ```
//!
//! A version counts if it has a tag that is a version, can be installed, and serves the kind in the
//! version that was asked for; pre-releases only on request. If several packages bring the same kind, a
//! person has to choose: never age, downloads or names. Any user who may push can define any kind.

use crate::answer::{Candidate, CandidateVersion, RejectedVersion, Resolution, ResolutionVerdict};
use crate::grammar::KindReference;
use crate::record::{Definition, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xpkg::constraint::Constraint;
use xpkg::version::Version;

/// Versions that are told not to have been considered.
const REJECTED_MAX: usize = 20;

/// Which packages and versions are considered.
#[derive(Clone, Debug, Default)]
pub struct ResolveTerms {
    /// Only packages of this type.
    pub kind: Option<String>,
    /// Only this package: the repository that a person chose.
    pub repository: Option<String>,
    /// Only versions within these bounds.
    pub constraint: Option<Constraint>,
    /// Pre-releases, too.
    pub has_prereleases: bool,
}

/// A definition in a version of a package.
#[derive(Clone, Debug)]
pub struct KindOffer {
    /// The repository.
    pub repository: String,
    /// The address of the version.
    pub digest: String,
    /// Its tags, newest version first.
    pub tags: Vec<String>,
    /// What the package says.
    pub package: Arc<Package>,
    /// The kind it defines.
    pub definition: Arc<Definition>,
}

impl KindOffer {
    /// Whether the kind has to be activated after the installation.
    pub(crate) fn needs_activation(&self) -> bool {
        use crate::record::Origin;
        use api::meta::capability::{SAFE_START, matches};
        let origin = self.definition.origin;
        let starts_safely = self.package.capabilities.iter().any(|it| matches(it, SAFE_START));
        origin.needs_activation() || (origin == Origin::Crd && starts_safely)
    }
}

/// Chooses among everything that defines a kind, or kinds of a group.
pub fn resolve_kind(
    kind: &KindReference,
    offers: Vec<KindOffer>,
    terms: &ResolveTerms,
) -> Resolution {
    let is_defined = !offers.is_empty();
    let (mut rejected, mut repositories) = (BTreeSet::new(), BTreeMap::<_, OfferedVersions>::new());
    for offer in offers {
        match accept_tags(kind, &offer, terms) {
            Ok(tags) => repositories.entry(offer.repository.clone()).or_default().add(&offer, tags),
            Err(reason) => {
                rejected.insert(reject_offer(&offer, reason));
            }
        }
    }
    let candidates: Vec<Candidate> = repositories
        .into_iter()
        .filter_map(|(repository, versions)| versions.into_candidate(repository, kind))
        .collect();
    let mut kinds = BTreeMap::<String, usize>::new();
    for name in candidates.iter().flat_map(|candidate| &candidate.kinds) {
        *kinds.entry(name.clone()).or_default() += 1;
    }
    let contested: Vec<String> =
        kinds.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.clone()).collect();
    let verdict = match () {
        () if !is_defined => ResolutionVerdict::Undefined,
        () if candidates.is_empty() => ResolutionVerdict::Unserved,
        () if !contested.is_empty() => ResolutionVerdict::Ambiguous,
        () => ResolutionVerdict::Resolved,
    };
    Resolution {
        crd: kind.to_string(),
        verdict,
        kinds: kinds.into_keys().collect(),
        candidates,
        contested,
        rejected: rejected.into_iter().take(REJECTED_MAX).collect(),
        suggestions: Vec::new(),
    }
}

fn reject_offer(offer: &KindOffer, reason: String) -> RejectedVersion {
    let version = offer.tags.first().unwrap_or(&offer.digest).clone();
    RejectedVersion { repository: offer.repository.clone(), version, reason }
}

/// The tags by which a version may be chosen, newest first; or why it may not be.
fn accept_tags(
    kind: &KindReference,
    offer: &KindOffer,
    terms: &ResolveTerms,
) -> Result<Vec<Version>, String> {
    let KindOffer { repository, package, definition, .. } = offer;
    let wanted = kind.version.as_deref();
    if terms.repository.as_ref().is_some_and(|wanted| wanted != repository) {
        return Err("another package was asked for".to_owned());
    }
    if terms.kind.as_ref().is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&package.kind)) {
        return Err(format!("it is a {}", package.kind));
    }
    if !definition.origin.installs() {
        return Err("it is the input of a function, which is never installed".to_owned());
    }
    if !definition.serves(wanted) {
        let version = wanted.map_or_else(|| "any version".to_owned(), str::to_owned);
        return Err(format!("it does not serve {} in {version}", definition.name));
    }
    if let Some(problem) = &package.problem {
        return Err(format!("it cannot be installed: {problem}"));
    }
    accept_versions(&offer.tags, terms)
}

fn accept_versions(tags: &[String], terms: &ResolveTerms) -> Result<Vec<Version>, String> {
    let all: Vec<Version> = tags.iter().filter_map(|tag| Version::parse(tag).ok()).collect();
    if all.is_empty() {
        return Err("it has no tag that is a version".to_owned());
    }
    let fits = |version: &Version| terms.constraint.as_ref().is_none_or(|it| it.matches(version));
    let within: Vec<Version> = all.into_iter().filter(fits).collect();
    if within.is_empty() {
        let bounds = terms.constraint.as_ref().map(Constraint::original).unwrap_or_default();
        return Err(format!("it is not within {bounds}"));
    }
    let is_allowed = |version: &Version| terms.has_prereleases || !version.is_prerelease();
    let allowed: Vec<Version> = within.into_iter().filter(is_allowed).collect();
    if allowed.is_empty() { Err("it is a pre-release".to_owned()) } else { Ok(allowed) }
}

/// The versions of one package that may be chosen.
#[derive(Default)]
struct OfferedVersions {
    kind: String,
    /// By tag: what it means, and the kinds it brings.
    by_tag: BTreeMap<String, (Version, Vec<KindOffer>)>,
}

impl OfferedVersions {
    fn add(&mut self, offer: &KindOffer, tags: Vec<Version>) {
        self.kind.clone_from(&offer.package.kind);
        for version in tags {
            let tag = version.original().to_owned();
            self.by_tag.entry(tag).or_insert((version, Vec::new())).1.push(offer.clone());
        }
    }

    /// The package by its newest version: older ones that bring less are no choice.
    fn into_candidate(self, repository: String, kind: &KindReference) -> Option<Candidate> {
        let mut versions: Vec<(String, (Version, Vec<KindOffer>))> =
            self.by_tag.into_iter().collect();
        versions.sort_by(|(one, (a, _)), (other, (b, _))| {
            let is_newer = a.is_prerelease().cmp(&b.is_prerelease()).then_with(|| b.cmp(a));
            is_newer.then_with(|| one.cmp(other))
        });
        let kinds = brought_kinds(&versions.first()?.1.1);
        let has_all = |offers: &[KindOffer]| brought_kinds(offers).is_superset(&kinds);
        let versions = versions.into_iter().filter(|(_, (_, offers))| has_all(offers));
        let versions = versions
            .filter_map(|(tag, (_, offers))| describe_version(tag, &offers, kind))
            .collect();
        let kinds = kinds.into_iter().collect();
        Some(Candidate { repository, kind: self.kind, kinds, versions })
    }
}

fn brought_kinds(offers: &[KindOffer]) -> BTreeSet<String> {
    offers.iter().map(|offer| offer.definition.name.clone()).collect()
}

fn describe_version(
    tag: String,
    offers: &[KindOffer],
    kind: &KindReference,
) -> Option<CandidateVersion> {
    let first = offers.first()?;
    let schema = |offer: &KindOffer| {
        let version = offer.definition.version(kind.version.as_deref()?)?;
        Some((offer.definition.name.clone(), version.schema.clone()?))
    };
    Some(CandidateVersion {
        tag,
        digest: first.digest.clone(),
        crossplane: first.package.crossplane.clone(),
        needs_activation: offers.iter().any(KindOffer::needs_activation),
        schemas: offers.iter().filter_map(schema).collect(),
    })
}
