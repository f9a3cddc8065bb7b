//! Where CRDs come from: packages that bring one, may bring one, or are proposed for one.

use crate::discover::Found;
use crate::model::{Face, Knowledge, Model};
use crate::problem::{Bringer, Contents, Known, Package, Requirement};
use crate::quick::Map;
use crate::value::{Pin, Source};
use std::collections::{BTreeMap, BTreeSet};

/// A CRD that a package needs or several packages bring, and the ways to have it.
pub(crate) struct CrdCandidates<'a> {
    pub(crate) crd: &'a str,
    /// The best first: what is installed, what is known to bring it, what may.
    pub(crate) owners: Vec<PotentialOwner>,
    /// Whether it is there without a package.
    pub(crate) is_external: bool,
    /// Whether it is not known yet which package may be installed for it.
    pub(crate) is_unasked: bool,
    /// Why no package can be found for it, and what to do.
    pub(crate) refusal: Option<(String, String)>,
}

/// A package that brings a CRD, or may.
pub(crate) struct PotentialOwner {
    /// The package, by name.
    pub(crate) package: usize,
    pub(crate) is_installed: bool,
    /// Whether no other package may bring the CRD beside it.
    pub(crate) is_exclusive: bool,
    /// Its solvables that are known to bring the CRD.
    pub(crate) bringing: Vec<usize>,
    /// Those that may, as far as is known.
    pub(crate) supposed: Vec<usize>,
}

/// Every CRD that a package needs or several packages bring.
pub(crate) fn find_candidates<'a>(
    model: &Model,
    contents: &[Option<&'a Contents>],
    names: &Map<&'a Source, usize>,
    packages: &[(usize, Found<'a>)],
    known: &'a Known,
) -> Vec<CrdCandidates<'a>> {
    let installed = packages
        .iter()
        .filter(|(_, found)| found.root.is_some_and(|root| root.installed.is_some()));
    let installed: BTreeSet<usize> = installed.map(|(name, _)| *name).collect();
    let roots = packages.iter().filter(|(_, found)| found.root.is_some());
    let roots: BTreeSet<usize> = roots.map(|(name, _)| *name).collect();
    let search = BringerSearch { model, contents, names, known, installed, roots };
    search.list_candidates()
}

/// The solvables that bring a CRD, by package.
type Bringing = BTreeMap<usize, Vec<usize>>;

struct BringerSearch<'a, 's> {
    model: &'s Model,
    /// What is inside each solvable.
    contents: &'s [Option<&'a Contents>],
    names: &'s Map<&'a Source, usize>,
    known: &'a Known,
    installed: BTreeSet<usize>,
    /// Packages that are installed or asked for.
    roots: BTreeSet<usize>,
}

impl<'a> BringerSearch<'a, '_> {
    fn read_packages(&self) -> impl Iterator<Item = (usize, &'a Package)> {
        self.contents.iter().enumerate().filter_map(|(at, contents)| match contents {
            Some(Contents::Package(package)) => Some((at, package)),
            Some(Contents::Unusable(_)) | None => None,
        })
    }

    fn list_candidates(&self) -> Vec<CrdCandidates<'a>> {
        let mut owners: BTreeMap<&'a str, Bringing> = BTreeMap::new();
        let mut answering: BTreeMap<&'a str, Bringing> = BTreeMap::new();
        let mut needed: BTreeMap<&'a str, BTreeSet<usize>> = BTreeMap::new();
        for (at, package) in self.read_packages() {
            let name = self.model.solvables[at].name;
            for crd in &package.crds {
                owners.entry(crd).or_default().entry(name).or_default().push(at);
            }
            for crd in &package.answers_to {
                answering.entry(crd).or_default().entry(name).or_default().push(at);
            }
            for requirement in &package.requires {
                if let Requirement::Crd(crd) = requirement {
                    needed.entry(crd).or_default().insert(name);
                }
            }
        }
        let mut all = Vec::new();
        for (crd, needing) in needed {
            let exclusive = owners.remove(crd);
            let is_exclusive = exclusive.is_some();
            let bringing = exclusive.or_else(|| answering.remove(crd)).unwrap_or_default();
            all.push(self.candidates_for(crd, &needing, bringing, is_exclusive));
        }
        let shared = owners.into_iter().filter(|(_, bringing)| bringing.len() > 1);
        all.extend(shared.map(|(crd, bringing)| {
            let owners = self.potential_owners(bringing, BTreeMap::new(), true);
            CrdCandidates { crd, owners, is_external: false, is_unasked: false, refusal: None }
        }));
        all
    }

    /// The ways to have a CRD that packages need.
    fn candidates_for(
        &self,
        crd: &'a str,
        needing: &BTreeSet<usize>,
        bringing: Bringing,
        is_exclusive: bool,
    ) -> CrdCandidates<'a> {
        let bringer = self.known.bringers.get(crd);
        let mut supposed = self.unread_packages(needing);
        let refusal = match bringer {
            Some(Bringer::Package { source, tags }) => {
                let proposed = self.names.get(source).copied();
                let unread =
                    proposed.map(|name| self.proposed_solvables(name, tags)).unwrap_or_default();
                if let Some(name) = proposed.filter(|_| !unread.is_empty()) {
                    supposed.insert(name, unread);
                }
                let reason = format!(
                    "{source} is said to bring the CRD {crd}, and no version of it that can be \
                     read does"
                );
                let hint = "name the package that brings it as a dependency or in a pin, or have \
                            the catalog put right";
                Some((reason, hint.to_owned()))
            }
            Some(Bringer::Nowhere { reason, hint }) => Some((reason.clone(), hint.clone())),
            Some(Bringer::There) | None => None,
        };
        let owners = self.potential_owners(bringing, supposed, is_exclusive);
        let is_external = bringer == Some(&Bringer::There);
        CrdCandidates { crd, owners, is_external, is_unasked: bringer.is_none(), refusal }
    }

    fn potential_owners(
        &self,
        bringing: Bringing,
        mut supposed: Bringing,
        is_exclusive: bool,
    ) -> Vec<PotentialOwner> {
        let mut owners: Vec<PotentialOwner> = Vec::new();
        for (package, bringing) in bringing {
            let is_installed = self.installed.contains(&package);
            let supposed = supposed.remove(&package).unwrap_or_default();
            owners.push(PotentialOwner { package, is_installed, is_exclusive, bringing, supposed });
        }
        owners.extend(supposed.into_iter().map(|(package, supposed)| {
            let is_installed = self.installed.contains(&package);
            PotentialOwner { package, is_installed, is_exclusive, bringing: Vec::new(), supposed }
        }));
        owners.sort_by_key(|one| (!one.is_installed, one.bringing.is_empty(), one.package));
        owners
    }

    /// What is not known of a package that is proposed, and is said to bring the CRD.
    /// Where no tags are named, those are that are releases, if there are any.
    fn proposed_solvables(&self, name: usize, tags: &BTreeSet<String>) -> Vec<usize> {
        let solvables = &self.model.names[name].solvables;
        let is_release = |at: &usize| {
            let version = self.model.solvables[*at].pin().and_then(Pin::version);
            version.is_some_and(|version| !version.is_prerelease())
        };
        let has_releases = solvables.iter().any(is_release);
        let is_proposed = |at: &usize| {
            let solvable = &self.model.solvables[*at];
            let is_named = match &solvable.face {
                Face::Joker => true,
                Face::Pin(..) if tags.is_empty() => !has_releases || is_release(at),
                Face::Pin(pin, _) => tags.contains(&pin.to_string()),
                _ => false,
            };
            is_named && solvable.knowledge == Knowledge::Unknown
        };
        solvables.iter().copied().filter(is_proposed).collect()
    }

    /// Packages of which nothing was read yet, and that come in any case if those that need the CRD
    /// do: it is not asked where else the CRD comes from before one of their versions was read.
    fn unread_packages(&self, needing: &BTreeSet<usize>) -> Bringing {
        let is_unread = |name: &usize| {
            let solvables = &self.model.names[*name].solvables;
            let is_unknown = |at: &usize| self.model.solvables[*at].knowledge == Knowledge::Unknown;
            !solvables.is_empty() && solvables.iter().all(is_unknown)
        };
        let reached = self.reachable_names(needing);
        let names = reached.union(&self.roots).copied().filter(is_unread);
        names.map(|name| (name, self.model.names[name].solvables.clone())).collect()
    }

    /// What packages need, directly or not, by name.
    fn reachable_names(&self, from: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut reached: BTreeSet<usize> = BTreeSet::new();
        let mut queue: Vec<usize> = from.iter().copied().collect();
        while let Some(name) = queue.pop() {
            for &at in &self.model.names[name].solvables {
                let Some(Contents::Package(package)) = self.contents[at] else { continue };
                for requirement in &package.requires {
                    let Requirement::Package { source, .. } = requirement else { continue };
                    let Some(&target) = self.names.get(source) else { continue };
                    if reached.insert(target) {
                        queue.push(target);
                    }
                }
            }
        }
        reached
    }
}
