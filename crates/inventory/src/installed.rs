//! What is installed in a cluster, as values: packages, their revisions, and the lock.

use crate::cluster::{Cluster, Resource, lower};
use crate::installs::{FoundObject, InstallObject, gather_installs};
use api::meta::PackageKind;
use api::pkg::lock::{self, Dependency, Lock, LockPackage};
use api::pkg::revision::{ACTIVE, Revision};
use api::pkg::{LABEL_PACKAGE, Package};
use ground::failure::{Failure, Outcome};
use ground::words;
use oci::{Identifier, Reference, Repository, Rules};
use serde_json::Value as Json;

const KINDS: [PackageKind; 3] =
    [PackageKind::Configuration, PackageKind::Provider, PackageKind::Function];

/// Everything that is known about packages in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The packages, by kind.
    pub packages: Vec<Installed>,
    /// Install objects of the first package system.
    pub installs: Vec<InstallObject>,
    /// Whether the cluster has all kinds of packages.
    pub is_complete: bool,
    /// Kind and name of packages that are gone, though revisions of theirs are not.
    leaving: Vec<(PackageKind, String)>,
    lock: Lock,
}

/// A package and its revisions, the highest number first.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its kind.
    pub kind: PackageKind,
    /// What is asked for, and what the manager says of it.
    pub package: Package,
    /// Its revisions.
    pub revisions: Vec<Revision>,
    /// The package as the server has it.
    pub json: Json,
}

/// Which package somebody means.
#[derive(Clone, Debug)]
pub struct Which {
    /// Its kind, if it was said.
    pub kind: Option<PackageKind>,
    /// Its name.
    pub name: String,
}

/// Something a package needs, and what there is of it.
pub struct Needed<'a> {
    /// What is needed.
    pub dependency: &'a Dependency,
    /// The package that counts for it, if there is one.
    pub installed: Option<&'a Installed>,
}

impl Needed<'_> {
    /// What is accepted: versions of a package, or a kind, with why it comes from where it does.
    pub fn wants(&self) -> String {
        let Dependency { package, constraints, reason, .. } = self.dependency;
        match reason {
            Some(reason) => format!("CRD {package}: {reason}"),
            None if self.is_on_kind() => format!("CRD {package}"),
            None => constraints.clone(),
        }
    }

    /// Whether a kind is needed, whichever package brings it.
    pub fn is_on_kind(&self) -> bool {
        self.dependency.kind.as_deref() == Some("CustomResourceDefinition")
    }

    /// Whether it is a kind that is there without a package.
    pub fn is_external(&self) -> bool {
        self.dependency.brought_by.is_none() && self.dependency.reason.is_some()
    }
}

impl Which {
    /// What `NAME`, `KIND/NAME` and `KIND.GROUP/NAME` mean.
    pub fn parse(text: &str) -> Self {
        let parts = text.split_once('/').and_then(|(kind, name)| Some((kind_named(kind)?, name)));
        match parts {
            Some((kind, name)) => Self { kind: Some(kind), name: name.to_owned() },
            None => Self { kind: None, name: text.to_owned() },
        }
    }

    fn fits(&self, one: &Installed) -> bool {
        one.name() == self.name && self.kind.is_none_or(|kind| kind == one.kind)
    }

    /// What messages call it.
    fn told(&self) -> String {
        self.kind.map_or_else(|| self.name.clone(), |kind| format!("{} {}", lower(kind), self.name))
    }
}

/// The kind that a word names: `provider`, `Providers`, `provider.pkg.crossplane.io`.
pub fn kind_named(word: &str) -> Option<PackageKind> {
    let first = word.split('.').next().unwrap_or(word).to_lowercase();
    let one = first.strip_suffix('s').unwrap_or(&first);
    KINDS.into_iter().find(|kind| lower(*kind) == one)
}

impl Inventory {
    /// Looks at a cluster.
    pub async fn gather(cluster: &Cluster) -> Outcome<Self> {
        let (mut packages, mut leaving, mut known) = (Vec::new(), Vec::new(), 0);
        let each = KINDS.map(|kind| of_kind(cluster, kind));
        let locks = Resource::of_group(&cluster.group, "v1beta1", "locks");
        let (found, installs, lock) = futures::join!(
            futures::future::join_all(each),
            gather_installs(cluster),
            cluster.get(&locks, lock::NAME),
        );
        for found in found {
            if let Some((found, gone)) = found? {
                known += 1;
                packages.extend(found);
                leaving.extend(gone);
            }
        }
        if known == 0 {
            return Err(cluster.without_packages());
        }
        let (is_complete, lock) = (known == KINDS.len(), lock?.unwrap_or_default());
        Ok(Self { packages, installs: installs?, is_complete, leaving, lock })
    }

    /// Why not everybody has what they need, if that is so.
    pub fn unresolved(&self) -> Option<&str> {
        let conditions = self.lock.status.as_ref()?.conditions.as_deref()?;
        let resolved = api::condition::find(conditions, api::condition::types::RESOLVED)?;
        let message = resolved.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
        message.filter(|_| resolved.status != "True")
    }

    /// What is known of packages, each with its revisions, and of the lock.
    pub fn of(packages: Vec<(PackageKind, Json, Vec<Json>)>, lock: Json) -> Outcome<Self> {
        let mut found = Vec::new();
        for (kind, json, revisions) in packages {
            let revisions = serde_json::from_value::<Vec<Revision>>(Json::Array(revisions));
            let revisions = revisions.map_err(|error| not_understood(kind, &error))?;
            found.push(Installed::new(kind, json, &revisions)?);
        }
        let lock = serde_json::from_value(lock).unwrap_or_default();
        Ok(Self { packages: found, is_complete: true, lock, ..Self::default() })
    }

    /// The same with install objects of a kind, and the records that packages have.
    pub fn with_installs(
        mut self,
        kind: &'static str,
        installs: Vec<Json>,
        records: &[Json],
    ) -> Outcome<Self> {
        for json in installs {
            self.installs.push(InstallObject::read(kind, json, records)?);
        }
        Ok(self)
    }

    /// Whether nothing is left of a package.
    pub fn is_gone(&self, which: &Which) -> bool {
        let is_it = |(kind, name): &(PackageKind, String)| {
            *name == which.name && which.kind.is_none_or(|it| it == *kind)
        };
        let is_there = self.packages.iter().any(|one| which.fits(one))
            || !self.fitting_installs(which).is_empty();
        !is_there && !self.leaving.iter().any(is_it)
    }

    /// The package that is meant; that of an install object, if one is named.
    pub fn find(&self, which: &Which) -> Outcome<&Installed> {
        match self.find_object(which)? {
            FoundObject::Package(one) => Ok(one),
            FoundObject::Install(install) => install.provider(self).ok_or_else(|| {
                let message = format!("{} has brought no package yet", install.id());
                Failure::new(message, format!("see why with `apron status {}`", install.id()))
            }),
        }
    }

    /// The package that is called so itself.
    pub(crate) fn find_package(&self, which: &Which) -> Outcome<&Installed> {
        let found: Vec<&Installed> = self.packages.iter().filter(|one| which.fits(one)).collect();
        match found.as_slice() {
            [one] => Ok(one),
            [] => Err(self.missing(which)),
            several => {
                let names: Vec<String> = several.iter().map(|one| one.id()).collect();
                let message = format!("there are several packages called {}", which.name);
                Err(Failure::new(message, format!("say which: {}", names.join(" or "))))
            }
        }
    }

    fn missing(&self, which: &Which) -> Failure {
        let message = format!("{} is not installed", which.told());
        let names = self.packages.iter().map(|one| one.name().to_owned());
        let names = self.installs.iter().map(InstallObject::key).chain(names);
        let names: Vec<String> = names.take(10).collect();
        let hint = match names.as_slice() {
            [] => "nothing is; `apron install REFERENCE` installs a package".to_owned(),
            names => format!("these are: {}", names.join(", ")),
        };
        Failure::new(message, hint)
    }

    /// The packages of a repository.
    pub fn of_repository(&self, repository: &Repository) -> Vec<&Installed> {
        let is_of = |one: &&Installed| {
            one.reference().is_some_and(|reference| reference.repository() == repository)
        };
        self.packages.iter().filter(is_of).collect()
    }

    /// What a package needs, by the lock.
    pub fn needs<'a>(&'a self, one: &'a Installed) -> Vec<Needed<'a>> {
        let Some(entry) = self.entry(one) else { return Vec::new() };
        let needed = |dependency: &'a Dependency| {
            let source = dependency.brought_by.as_ref().unwrap_or(&dependency.package);
            let installed = self.by_source(source);
            Needed { dependency, installed }
        };
        let mut needs: Vec<Needed<'a>> = entry.dependencies.iter().map(needed).collect();
        let unknown = needs.iter().filter(|it| it.installed.is_none()).count();
        let revision = one.revisions.iter().find(|it| it.metadata.name == entry.name);
        if revision.and_then(missing_dependencies).is_some_and(|missing| missing < unknown) {
            for need in needs.iter_mut().filter(|it| it.installed.is_none()) {
                need.installed = self.alike(need.dependency);
            }
        }
        needs
    }

    /// The package that may count for a dependency though it comes from elsewhere: the manager
    /// knows of copies and rewritten names, and looks for them where repositories end alike.
    fn alike(&self, dependency: &Dependency) -> Option<&Installed> {
        let last = |text: &str| {
            let repository = repository(text)?;
            Some(repository.path().rsplit('/').next()?.to_owned())
        };
        let wanted = last(&dependency.package)?;
        let is_kind =
            |entry: &LockPackage| dependency.kind.is_none() || dependency.kind == entry.kind;
        let mut entries = self.entries().iter();
        let entry = entries.find(|it| is_kind(it) && last(&it.source).as_ref() == Some(&wanted))?;
        self.of_entry(entry)
    }

    /// The package whose revision the lock lists.
    fn of_entry(&self, entry: &LockPackage) -> Option<&Installed> {
        let has = |one: &&Installed| one.revisions.iter().any(|it| it.metadata.name == entry.name);
        self.packages.iter().find(has)
    }

    /// Who needs a package.
    pub fn needed_by<'a>(&'a self, one: &Installed) -> Vec<&'a Installed> {
        let needs = |other: &&Installed| {
            let mut needs = self.needs(other).into_iter();
            needs.any(|it| it.installed.is_some_and(|it| it.is(one)))
        };
        self.packages.iter().filter(needs).collect()
    }

    /// A package, and everything it needs, once each.
    pub fn closure<'a>(&'a self, one: &'a Installed) -> Vec<&'a Installed> {
        let mut found = vec![one];
        let mut next = 0;
        while let Some(one) = found.get(next).copied() {
            next += 1;
            for installed in self.needs(one).into_iter().filter_map(|it| it.installed) {
                if !found.iter().any(|other| other.is(installed)) {
                    found.push(installed);
                }
            }
        }
        found
    }

    fn entries(&self) -> &[LockPackage] {
        self.lock.packages.as_deref().unwrap_or_default()
    }

    fn entry(&self, one: &Installed) -> Option<&LockPackage> {
        let mut entries = self.entries().iter();
        entries.find(|entry| one.revisions.iter().any(|it| it.metadata.name == entry.name))
    }

    /// The package with this source: by the lock, which knows of mirrors, or by what it asks for.
    fn by_source(&self, source: &str) -> Option<&Installed> {
        let wanted = repository(source);
        let same =
            |other: &str| other == source || (wanted.is_some() && repository(other) == wanted);
        let entry = self.entries().iter().find(|entry| same(&entry.source));
        entry.and_then(|entry| self.of_entry(entry)).or_else(|| {
            let asks = |one: &&Installed| {
                let reference = one.reference();
                wanted.is_some() && reference.map(|it| it.repository().clone()) == wanted
            };
            self.packages.iter().find(asks)
        })
    }
}

/// How many packages are missing that a revision needs, as its manager counts them.
fn missing_dependencies(revision: &Revision) -> Option<usize> {
    let status = revision.status.as_ref()?;
    let there = status.installed_dependencies.unwrap_or_default();
    usize::try_from(status.found_dependencies? - there).ok()
}

/// Packages of a kind, and those of which only revisions are left.
type OfKind = (Vec<Installed>, Vec<(PackageKind, String)>);

async fn of_kind(cluster: &Cluster, kind: PackageKind) -> Outcome<Option<OfKind>> {
    let (packages, revisions) = (cluster.packages(kind), cluster.revisions(kind));
    let (packages, revisions) =
        futures::join!(cluster.list::<Json>(&packages), cluster.list::<Revision>(&revisions));
    let Some(packages) = packages? else { return Ok(None) };
    let revisions = revisions?.unwrap_or_default();
    let packages = packages.into_iter().map(|json| Installed::new(kind, json, &revisions));
    let packages: Vec<Installed> = packages.collect::<Outcome<_>>()?;
    let labels = revisions.iter().filter_map(|one| one.metadata.labels.get(LABEL_PACKAGE));
    let gone = labels.filter(|name| !packages.iter().any(|one| one.name() == *name));
    let gone = gone.map(|name| (kind, name.clone())).collect();
    Ok(Some((packages, gone)))
}

impl Installed {
    fn new(kind: PackageKind, json: Json, all: &[Revision]) -> Outcome<Self> {
        let package: Package =
            serde_json::from_value(json.clone()).map_err(|error| not_understood(kind, &error))?;
        let package = package.with_chosen_image();
        let name = &package.metadata.name;
        let is_its = |one: &&Revision| one.metadata.labels.get(LABEL_PACKAGE) == Some(name);
        let mut revisions: Vec<Revision> = all.iter().filter(is_its).cloned().collect();
        revisions.sort_by_key(|one| (-one.spec.revision, one.metadata.name.clone()));
        Ok(Self { kind, package, revisions, json })
    }

    /// What names exactly this one.
    pub fn which(&self) -> Which {
        Which { kind: Some(self.kind), name: self.name().to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.package.metadata.name
    }

    /// What kubectl calls it.
    pub fn id(&self) -> String {
        format!("{}/{}", lower(self.kind), self.name())
    }

    fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name() == other.name()
    }

    /// What it asks for, if that is a reference.
    pub fn reference(&self) -> Option<Reference> {
        reference(&self.package.spec.package)
    }

    /// What is there of it: what it asks for, or, where somebody decides when that becomes active,
    /// what is active until then.
    pub fn image(&self) -> &str {
        let asked = &self.package.spec.package;
        self.active().filter(|_| self.package.is_manual()).map_or(asked, |it| &it.spec.image)
    }

    /// The tag or digest of what is there.
    pub fn version(&self) -> String {
        version(self.image())
    }

    /// The tag or digest it asks for.
    pub fn asked_version(&self) -> String {
        version(&self.package.spec.package)
    }

    /// The revision it asks for, if that waits for somebody to activate it in place of another.
    pub fn waiting(&self) -> Option<&Revision> {
        self.asked().filter(|one| one.spec.desired_state != ACTIVE && self.is_held())
    }

    /// The revision that would be activated next: what is asked for, or the newest.
    pub fn next(&self) -> Option<&Revision> {
        self.asked().or(self.revisions.first())
    }

    fn asked(&self) -> Option<&Revision> {
        self.revisions.iter().find(|one| one.spec.image == self.package.spec.package)
    }

    /// Whether what is active stays so until somebody activates another.
    fn is_held(&self) -> bool {
        self.package.is_manual() && self.active().is_some()
    }

    /// The revision that stands for it.
    pub fn current(&self) -> Option<&Revision> {
        let name = self.package.status.as_ref()?.current_revision.as_ref()?;
        self.revisions.iter().find(|one| one.metadata.name == *name)
    }

    /// The revision that is installed.
    pub fn active(&self) -> Option<&Revision> {
        self.revisions.iter().find(|one| one.spec.desired_state == ACTIVE)
    }
}

fn not_understood(kind: PackageKind, error: &serde_json::Error) -> Failure {
    let hint = "its definition may be of a much older or newer version than apron knows";
    Failure::new(format!("cannot understand a {} of the cluster", lower(kind)), hint).because(error)
}

fn rules() -> Rules {
    Rules::weak().any_digest().git_sources()
}

/// A reference as package managers read it.
pub fn reference(text: &str) -> Option<Reference> {
    Reference::parse(text, &rules()).ok()
}

fn repository(text: &str) -> Option<Repository> {
    Repository::parse(text, &rules()).ok()
}

/// The tag or digest of a reference, short enough to be read.
pub fn version(text: &str) -> String {
    match reference(text).as_ref().map(Reference::identifier) {
        Some(Identifier::Tag(tag)) => tag.clone(),
        Some(Identifier::Digest(digest)) => words::short(&digest.to_string()).to_owned(),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packages_are_named_as_kubectl_names_them() {
        let check = |text: &str, kind: Option<PackageKind>, name: &str| {
            let which = Which::parse(text);
            assert_eq!((which.kind, which.name.as_str()), (kind, name), "{text}");
        };
        check("a", None, "a");
        check("provider/a", Some(PackageKind::Provider), "a");
        check("functions/a", Some(PackageKind::Function), "a");
        check("configuration.pkg.crossplane.io/a", Some(PackageKind::Configuration), "a");
        check("example.org/a", None, "example.org/a");
    }

    /// A configuration that needs two providers from elsewhere, and one that comes from here; what
    /// the manager says of it.
    fn needing(found: i64, installed: i64) -> Inventory {
        let package = |kind: &str, name: &str, image: &str| {
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": name},
                "spec": {"package": image},
            })
        };
        let revision = |kind: &str, name: &str, image: &str| {
            json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": format!("{kind}Revision"),
                "metadata": {
                    "name": format!("{name}-1"), "labels": {"pkg.crossplane.io/package": name},
                },
                "spec": {"desiredState": "Active", "image": image, "revision": 1},
                "status": {"foundDependencies": found, "installedDependencies": installed},
            })
        };
        let both = |kind: PackageKind, name: &str, image: &str| {
            let word = kind.as_str();
            (kind, package(word, name, image), vec![revision(word, name, image)])
        };
        let dependency = |package: &str| {
            json!({"package": package, "kind": "Provider", "apiVersion": "pkg.crossplane.io/v1",
                "constraints": ">=v1.0.0"})
        };
        let entry = |kind: &str, name: &str, source: &str, dependencies: Json| {
            json!({"name": format!("{name}-1"), "kind": kind, "source": source, "version": "v1.0.0",
                "dependencies": dependencies})
        };
        let needs =
            json!([dependency("old.example.org/t/low"), dependency("far.example.org/gone")]);
        let lock = json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
            "packages": [
                entry("Function", "fun", "other.example.org/t/low", json!([])),
                entry("Configuration", "top", "example.org/t/top", needs),
                entry("Provider", "low", "new.example.org/t/low", json!([])),
            ],
        });
        let packages = vec![
            both(PackageKind::Configuration, "top", "example.org/t/top:v1.0.0"),
            both(PackageKind::Provider, "low", "new.example.org/t/low:v1.0.0"),
            both(PackageKind::Function, "fun", "other.example.org/t/low:v1.0.0"),
        ];
        Inventory::of(packages, lock).unwrap()
    }

    #[test]
    fn a_copy_from_elsewhere_is_needed_if_the_manager_counts_it() {
        let users = |inventory: &Inventory, name: &str| -> Vec<String> {
            let one = inventory.find(&Which::parse(name)).unwrap();
            inventory.needed_by(one).into_iter().map(Installed::id).collect()
        };
        // One of two is missing: that is not the one whose repository ends like what is there.
        let counted = needing(2, 1);
        assert_eq!(users(&counted, "low"), ["configuration/top"]);
        assert!(users(&counted, "fun").is_empty());
        assert!(users(&needing(2, 0), "low").is_empty());
    }

    #[test]
    fn versions_are_short() {
        let digest = "1".repeat(64);
        for (text, expected) in [
            ("crossplane/provider-gcp:v0.12.0", "v0.12.0"),
            ("example.org/a/b", "latest"),
            (&*format!("example.org/a@sha256:{digest}"), "sha256:111111111111"),
            ("not a reference", "-"),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }
}
