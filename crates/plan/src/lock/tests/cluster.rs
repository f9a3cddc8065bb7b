//! A cluster and a registry in a few lines of text, and everybody doing their part.

use crate::image_config::{Names, Treatment};
use crate::lock::{
    Contents, Counts, Decided, KindCandidate, KindPins, KindSources, Report, Verdict, Whose, World,
    decide,
};
use crate::package;
use crate::package::pull::Image;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Step, Wake};
use api::kind_reference::KindReference;
use api::meta::{Meta, PackageKind};
use api::pkg::revision::Revision;
use api::pkg::{ImageConfig, Package};
use oci::{Digest, Reference};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use xpkg::lint::Resource;

/// More rounds than any of these worlds takes.
const ROUNDS_MAX: usize = 30;

#[derive(Default)]
pub(super) struct Cluster {
    pub(super) world: World,
    /// Tags of repositories, and what is behind them.
    pub(super) registry: BTreeMap<String, BTreeMap<String, Contents>>,
    /// What was asked of registries.
    pub(super) asked: Vec<String>,
    pub(super) verdicts: BTreeMap<Whose, Verdict>,
    pub(super) report: Report,
    /// Whether the definition of the lock is one that has no record of owners.
    pub(super) prunes: bool,
    /// Packages whose objects the API server refuses.
    pub(super) refuses: BTreeSet<String>,
    /// Packages that do not run, where that is waited for.
    pub(super) stands: BTreeSet<String>,
    /// What the API server serves without a package, as `plural.group/version`.
    pub(super) served: BTreeSet<String>,
    /// Whether the manager has the packages of revisions at hand, not only what the lock remembers.
    pub(super) has_cache: bool,
    /// What is said of kinds beside what is in the registry.
    pub(super) catalog: Catalog,
}

/// A catalog of the registry.
#[derive(Default)]
pub(super) struct Catalog {
    /// Why it cannot be asked, if so.
    pub(super) away: Option<String>,
    /// Repositories that it says to bring everything.
    pub(super) lies: Vec<String>,
    /// Whether there is none.
    pub(super) is_absent: bool,
}

/// A cluster without packages, and a registry with these, one per line:
///
/// ```text
/// r.io/a v1.0.0 Provider: r.io/b >=v1.0.0 as Function, crd things.org, brings others.org
/// r.io/c v1.0.0 Configuration: kind buckets.s3.org/v1, brings queues.s3.org/v1
/// ```
pub(super) fn cluster(packages: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.world.pins.command = "apron pin".to_owned();
    cluster.world.now = "2026-01-01T00:00:00Z".to_owned();
    cluster.publish(packages);
    cluster
}

impl Cluster {
    pub(super) fn publish(&mut self, packages: &str) {
        for line in packages.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (head, needs) = line.split_once(": ").unwrap_or((line, ""));
            let [repository, tag, kind] = head.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let contents = contents(kind, needs, line);
            let tags = self.registry.entry(repository.to_owned()).or_default();
            tags.insert(tag.to_owned(), contents);
        }
    }

    /// Somebody asks for a package, or for another version of it.
    pub(super) fn install(&mut self, kind: &str, name: &str, image: &str) -> &mut Package {
        let seen =
            self.world.packages.iter().position(|it| it.kind == kind && it.metadata.name == name);
        let at = seen.unwrap_or_else(|| {
            let package = json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
                "metadata": {"name": name, "uid": format!("uid-{kind}-{name}"), "generation": 1},
                "spec": {"package": ""},
            });
            self.world.packages.push(serde_json::from_value(package).unwrap());
            self.world.packages.len() - 1
        });
        let package = &mut self.world.packages[at];
        image.clone_into(&mut package.spec.package);
        package
    }

    pub(super) fn uninstall(&mut self, name: &str) {
        self.world.packages.retain(|one| one.metadata.name != name);
        self.world.revisions.retain(|one| one.metadata.labels["pkg.crossplane.io/package"] != name);
    }

    pub(super) fn rewrite(&mut self, from: &str, to: &str) {
        let config = json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
            "metadata": {"name": format!("c{}", self.world.image_configs.len())},
            "spec": {"matchImages": [{"prefix": from}], "rewriteImage": {"prefix": to}},
        });
        let config: ImageConfig = serde_json::from_value(config).unwrap();
        self.world.image_configs.push(config);
    }

    fn find(&self, image: &str) -> Result<(&str, &Contents), String> {
        let names = Names {
            configs: &self.world.image_configs,
            default_registry: &self.world.settings.default_registry,
        };
        let (name, reference) = names.image(image).map_err(|error| error.to_string())?;
        let tags = self.registry.get(name.source.as_str()).ok_or("no such repository")?;
        let wanted = reference.identifier();
        let mut tags = tags.iter();
        let found = tags.find(|(tag, inside)| match wanted.as_tag() {
            Some(wanted) => *tag == wanted,
            None => inside.digest.as_ref() == wanted.as_digest(),
        });
        found.map(|(tag, inside)| (tag.as_str(), inside)).ok_or("no such tag".to_owned())
    }

    /// Asks for a decision, and finds out what it takes.
    pub(super) fn decide(&mut self) -> Decided {
        if self.has_cache {
            let revisions = self.world.revisions.iter();
            let read = revisions.filter_map(|one| {
                let (_, inside) = self.find(&one.spec.image).ok()?;
                Some((one.metadata.name.clone(), inside.clone()))
            });
            self.world.known.revisions = read.collect();
        }
        for _ in 0..ROUNDS_MAX {
            match decide(&self.world) {
                Ok(decided) => return decided,
                Err(needs) => {
                    assert!(!needs.is_empty());
                    for need in needs {
                        self.find_out(need);
                    }
                }
            }
        }
        panic!("it never ends: {:#?}", self.asked);
    }

    pub(super) fn find_out(&mut self, need: Need) {
        match need {
            Need::Tags(repository) => {
                self.asked.push(format!("tags of {repository}"));
                let names = Names {
                    configs: &self.world.image_configs,
                    default_registry: &self.world.settings.default_registry,
                };
                let source = names.repository(&repository.to_string()).unwrap().source;
                let tags = self.registry.get(source.as_str());
                let tags = tags.map(|tags| tags.keys().cloned().collect::<Vec<_>>());
                let answer = tags.ok_or("no such repository".to_owned());
                assert!(self.world.known.tags.insert(repository, answer).is_none(), "twice");
            }
            Need::Contents(reference) => {
                self.asked.push(format!("contents of {reference}"));
                let answer = self.find(&reference.name()).map(|(_, inside)| inside.clone());
                let before = self.world.known.contents.insert(reference.name(), answer);
                assert!(before.is_none(), "asked twice for {reference}");
            }
            Need::Digest(reference) => {
                self.asked.push(format!("digest of {reference}"));
                let answer = self.find(&reference.name());
                let answer = answer.map(|(_, inside)| inside.digest.clone().unwrap());
                let before = self.world.known.digests.insert(reference.name(), answer);
                assert!(before.is_none(), "asked twice for {reference}");
            }
            Need::Kind(kind) => {
                self.asked.push(format!("packages with {kind}"));
                let answer = Ok(self.sources_of(&kind));
                let before = self.world.known.kinds.insert(kind.clone(), answer);
                assert!(before.is_none(), "asked twice for {kind}");
            }
            Need::Object(target) => {
                self.asked.push(format!("{} {}", target.kind, target.name));
                let properties = if self.prunes { json!({}) } else { record() };
                let schema = json!({"openAPIV3Schema": {"properties": properties}});
                let definition = json!({"spec": {"versions": [{"schema": schema}]}});
                self.world.known.definition = Some(Some(definition));
            }
            other => panic!("no business of a lock: {other:?}"),
        }
    }

    /// What the API server and the catalog say of a kind.
    fn sources_of(&self, kind: &KindReference) -> KindSources {
        let mut sources = KindSources::default();
        for served in &self.served {
            let one = KindReference::parse(served).unwrap();
            let crd = one.bare();
            let name = one.name.unwrap();
            if kind.names_definition(&one.group, &name, &name, &name) {
                let offered = sources.kinds.entry(crd).or_default();
                offered.is_served |= kind.accepts_version(&one.version.unwrap());
            }
        }
        let is_there = sources.kinds.values().any(|one| one.is_served);
        if self.catalog.is_absent || is_there && kind.name.is_some() {
            return sources;
        }
        sources.catalogs.push("r.io".to_owned());
        sources.silent.clone_from(&self.catalog.away);
        if sources.silent.is_none() {
            self.offers_of(kind, &mut sources);
        }
        sources
    }

    fn offers_of(&self, kind: &KindReference, sources: &mut KindSources) {
        for (repository, tags) in &self.registry {
            let mut offers: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (tag, inside) in tags {
                for resource in inside.resources.iter().filter(|one| one.is_meant_by(kind)) {
                    let crd = format!("{}.{}", resource.plural, resource.group);
                    if resource.served.iter().any(|version| kind.accepts_version(version)) {
                        offers.entry(crd).or_default().push(tag.clone());
                    } else {
                        let offered = sources.kinds.entry(crd).or_default();
                        offered.other_versions.extend(resource.served.clone());
                    }
                }
            }
            if self.catalog.lies.contains(repository) {
                offers.insert(kind.bare(), tags.keys().cloned().collect());
            }
            for (crd, tags) in offers {
                let (repository, catalog) = (repository.clone(), "r.io".to_owned());
                let candidate = KindCandidate { repository, tags, catalog };
                sources.kinds.entry(crd).or_default().candidates.push(candidate);
            }
        }
    }

    /// An administrator chooses a package for a kind.
    pub(super) fn pin(&mut self, kind: &str, repository: &str) {
        let pins = &mut self.world.pins.repositories;
        pins.insert(kind.to_owned(), repository.to_owned());
    }

    /// What packages ask for is installed already, and well.
    pub(super) fn begin(&mut self) {
        self.packages();
        let all = self.world.revisions.iter().map(|one| (Whose::of(one), Verdict::Skipped));
        self.revisions(&all.collect());
    }

    /// Everybody does their part until nobody has anything to do; says what the lock did.
    pub(super) fn run(&mut self) -> String {
        let mut told = Vec::new();
        for round in 0..ROUNDS_MAX {
            self.world.known.tags.clear();
            self.world.known.contents.clear();
            self.world.known.digests.clear();
            self.world.known.kinds.clear();
            self.world.known.definition = None;
            let mut busy = self.packages();
            let decided = self.decide();
            let lines = show(&decided);
            busy |= !decided.plan.actions.is_empty();
            for action in decided.plan.actions {
                self.carry_out(action);
            }
            busy |= self.revisions(&decided.verdicts);
            self.verdicts = decided.verdicts;
            self.report = decided.report;
            if !busy {
                return if told.is_empty() { "nothing".to_owned() } else { told.join("--\n") };
            }
            if !lines.is_empty() {
                told.push(format!("{}\n", lines.join("\n")));
            }
            assert!(round + 1 < ROUNDS_MAX, "never quiet: {told:#?}");
        }
        unreachable!()
    }

    /// Packages become revisions, by the step that is there for that.
    pub(super) fn packages(&mut self) -> bool {
        let mut busy = false;
        for at in 0..self.world.packages.len() {
            let package = self.world.packages[at].clone();
            let found = self.find(&package.spec.package);
            let digest = found.map(|(_, inside)| inside.digest.clone().unwrap());
            let kinds = PackageKind::ALL.into_iter();
            let of = (format!("{}Revision", package.kind), package.metadata.name.clone());
            let revisions = self.world.revisions.iter().filter(|one| {
                one.kind == of.0 && one.metadata.labels["pkg.crossplane.io/package"] == of.1
            });
            let world = package::World {
                kind: kinds.clone().find(|one| one.as_str() == package.kind).unwrap(),
                revisions: revisions.cloned().collect(),
                image: Image {
                    cached: digest.clone().ok(),
                    asked: Some(digest.map_err(Into::into)),
                    ..Image::default()
                },
                treatment: Treatment::default(),
                trust: Trust::default(),
                owners: BTreeMap::new(),
                kinds: None,
                pins: KindPins::default(),
                refused: Vec::new(),
                settings: package::Settings {
                    default_registry: self.world.settings.default_registry.clone(),
                    runs_packages: false,
                },
                now: self.world.now.clone(),
                package,
            };
            let Step::Do(plan) = package::step(&world) else {
                panic!("{:?}", package::step(&world))
            };
            for action in plan.actions {
                busy |= !matches!(action, Action::Event { .. });
                self.carry_out(action);
            }
        }
        busy
    }

    /// Revisions are established when the lock lets them.
    fn revisions(&mut self, verdicts: &BTreeMap<Whose, Verdict>) -> bool {
        let mut busy = false;
        for revision in &mut self.world.revisions {
            let verdict = verdicts.get(&Whose::of(revision));
            let is_tried = matches!(verdict, Some(Verdict::Resolved(_) | Verdict::Skipped));
            let is_refused =
                self.refuses.contains(&revision.metadata.labels["pkg.crossplane.io/package"]);
            if is_tried && is_refused {
                self.world.known.failing.insert(Whose::of(revision));
            } else if is_tried {
                self.world.known.failing.remove(&Whose::of(revision));
            }
            let well = is_tried && !is_refused;
            let status = if well { "True" } else { "False" };
            let condition = json!({"type": "RevisionHealthy", "status": status, "reason": "x",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let mut conditions = vec![condition];
            let package = &revision.metadata.labels["pkg.crossplane.io/package"];
            if well && !self.world.settings.awaited.is_empty() {
                let status = if self.stands.contains(package) { "False" } else { "True" };
                conditions.push(json!({"type": "RuntimeHealthy", "status": status, "reason": "x",
                                       "message": "no pods",
                                       "lastTransitionTime": "2026-01-01T00:00:00Z"}));
            }
            let status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
            if revision.spec.desired_state == "Active" && revision.status.as_ref() != Some(&status)
            {
                revision.status = Some(status);
                busy = true;
            }
        }
        busy
    }

    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Apply { object, expect } => self.apply(&object, &expect),
            Action::Delete { target, .. } => {
                let is_it = |kind: &str, name: &str| (kind, name) == (&target.kind, &target.name);
                self.world.revisions.retain(|one| !is_it(&one.kind, &one.metadata.name));
                self.world.packages.retain(|one| !is_it(&one.kind, &one.metadata.name));
            }
            Action::Status { target, status, .. } => {
                let mut packages = self.world.packages.iter_mut();
                let is_it =
                    |it: &Package| it.kind == target.kind && it.metadata.name == target.name;
                match (packages.find(|it| is_it(it)), &mut self.world.lock) {
                    (Some(it), _) => it.status = serde_json::from_value(status).unwrap(),
                    (None, lock) => {
                        let lock = lock.as_mut().unwrap();
                        lock.status = serde_json::from_value(status).unwrap();
                    }
                }
            }
            Action::Merge { target, change, .. } if target.kind == "Lock" => {
                let mut lock = serde_json::to_value(self.world.lock.take().unwrap()).unwrap();
                merge(&mut lock, &change);
                self.world.lock = serde_json::from_value(lock).unwrap();
                self.prune();
            }
            Action::Merge { target, change, .. } if target.kind.ends_with("Revision") => {
                let mut all = self.world.revisions.iter_mut();
                let it = all.find(|one| one.metadata.name == target.name).unwrap();
                *it = merged(it, &change);
            }
            Action::Merge { target, change, .. } => {
                let mut all = self.world.packages.iter_mut();
                let is_it =
                    |it: &Package| it.kind == target.kind && it.metadata.name == target.name;
                let it = all.find(|it| is_it(it)).unwrap();
                *it = merged(it, &change);
            }
            Action::Event { .. } => {}
            other => panic!("no business of a lock: {other:?}"),
        }
    }

    fn apply(&mut self, object: &Json, expect: &Expect) {
        let (kind, name) =
            (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        if kind == "Lock" {
            assert!(self.world.lock.is_none() && *expect == Expect::Absent);
            self.world.lock = serde_json::from_value(object.clone()).unwrap();
            self.prune();
        } else if kind.ends_with("Revision") {
            let mut revision: Revision = serde_json::from_value(object.clone()).unwrap();
            let mut seen = self.world.revisions.iter_mut();
            match seen.find(|it| it.kind == kind && it.metadata.name == name) {
                Some(old) => {
                    revision.status = old.status.take();
                    *old = revision;
                }
                None => self.world.revisions.push(revision),
            }
        } else {
            let image = object["spec"]["package"].as_str().unwrap();
            let seen = self.world.packages.iter();
            let is_there = { seen }.any(|it| it.kind == kind && it.metadata.name == name);
            assert_eq!(is_there, *expect != Expect::Absent, "{object}");
            let annotations = object["metadata"]["annotations"].clone();
            let package = self.install(kind, name, image);
            package.metadata.annotations = serde_json::from_value(annotations).unwrap();
        }
    }

    /// Drops what the definition of the lock does not have.
    fn prune(&mut self) {
        let Some(lock) = self.world.lock.as_mut().filter(|_| self.prunes) else { return };
        (lock.custom_resource_definitions, lock.compositions) = (None, None);
        lock.packages.iter_mut().flatten().for_each(|one| one.digest = None);
    }

    /// What the cluster has, package by package.
    pub(super) fn show(&self) -> String {
        let mut lines = Vec::new();
        for package in &self.world.packages {
            let name = &package.metadata.name;
            let mut active = self.world.revisions.iter().filter(|one| {
                let of = &one.metadata.labels["pkg.crossplane.io/package"];
                of == name
                    && one.kind.starts_with(&package.kind)
                    && one.spec.desired_state == "Active"
            });
            let verdict = active.next().and_then(|one| self.verdicts.get(&Whose::of(one)));
            let verdict = match verdict {
                Some(Verdict::Resolved(Counts { found, installed, invalid })) => {
                    format!("resolved {found}/{installed}/{invalid}")
                }
                Some(Verdict::Waiting(_, why)) => format!("waiting: {why}"),
                Some(Verdict::Conflict(_, why)) => format!("conflict: {why}"),
                Some(Verdict::Skipped) => "skipped".to_owned(),
                Some(Verdict::Unheard) => "unheard".to_owned(),
                None => "no revision".to_owned(),
            };
            lines.push(format!("{} {name} {} {verdict}", package.kind, package.spec.package));
        }
        lines.sort();
        lines.join("\n")
    }

    pub(super) fn resolved(&self) -> String {
        let lock = self.world.lock.as_ref();
        let conditions = lock.and_then(|lock| lock.status.as_ref()?.conditions.clone());
        let told = conditions.unwrap_or_default().into_iter().map(|one| {
            let message = one.message.map(|it| format!(" ({it})")).unwrap_or_default();
            format!("{}={} {}{message}", one.condition_type, one.status, one.reason)
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// A package as text; the bytes are the text itself unless it names others.
fn contents(kind: &str, needs: &str, line: &str) -> Contents {
    let mut bytes = line.to_owned();
    let (mut depends, mut brings, mut made_for) = (Vec::new(), Vec::new(), json!(null));
    let (mut fault, mut dialect) = (None, "meta.pkg.crossplane.io/v1");
    for need in needs.split(", ").filter(|need| !need.is_empty()) {
        match need.split(' ').collect::<Vec<_>>()[..] {
            ["brings", crd] => brings.push(("CustomResourceDefinition", crd)),
            ["kind", kind] => depends.push(json!({"crd": kind})),
            ["composition", name] => brings.push(("Composition", name)),
            ["bytes", of] => of.clone_into(&mut bytes),
            ["first"] => dialect = "meta.pkg.ibm.crossplane.io/v1alpha1",
            ["broken"] => fault = Some("line 9: ConfigMap cannot be part of it".to_owned()),
            ["crossplane", range] => made_for = json!({"version": range}),
            ["crd", crd] => depends.push(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "package": crd, "version": "*",
            })),
            [package, ref range @ .., "as", kind] => depends.push(json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
                "package": package, "version": range.join(" "),
            })),
            [package, ref range @ ..] => {
                depends.push(json!({"provider": package, "version": range.join(" ")}));
            }
            _ => panic!("{line}"),
        }
    }
    let meta = json!({
        "apiVersion": dialect, "kind": kind, "metadata": {"name": "x"},
        "spec": {"dependsOn": depends, "crossplane": made_for},
    });
    let meta = Meta::from_json(&meta).unwrap();
    let mut contents = Contents::new(Digest::of(bytes.as_bytes()), &meta);
    contents.fault = fault;
    for (kind, name) in brings {
        let (name, version) = name.split_once('/').unwrap_or((name, ""));
        contents.bring(kind, name);
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        if !version.is_empty() {
            contents.resources.push(Resource {
                group: group.to_owned(),
                plural: plural.to_owned(),
                kind: plural.trim_end_matches('s').to_owned(),
                served: vec![version.to_owned()],
                versions: vec![version.to_owned()],
                ..Resource::default()
            });
        }
    }
    contents
}

fn record() -> Json {
    json!({"customResourceDefinitions": {"type": "object"}})
}

pub(super) fn digest(bytes: &str) -> Digest {
    Digest::of(bytes.as_bytes())
}

/// What the lock wants done, without what only repeats it.
pub(super) fn show(decided: &Decided) -> Vec<String> {
    let mut lines: Vec<String> = decided.plan.actions.iter().filter_map(show_action).collect();
    if let (Wake::After(time), false) = (decided.plan.wake, lines.is_empty()) {
        lines.push(format!("# again in {} s", time.as_secs()));
    }
    lines
}

fn show_action(action: &Action) -> Option<String> {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let lock = |change: &Json| {
        let packages = change["packages"].as_array()?.iter();
        let packages: Vec<String> = packages
            .map(|one| format!("{} {}", text(&one["source"]), text(&one["version"])))
            .collect();
        let listed = if packages.is_empty() { "nothing".to_owned() } else { packages.join(", ") };
        Some(format!("lock {listed}"))
    };
    match action {
        Action::Apply { object, .. } if object["kind"] == "Lock" => lock(object),
        Action::Apply { object, .. } => {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            Some(format!("create {kind} {name} {}", text(&object["spec"]["package"])))
        }
        Action::Merge { target, change, .. } if target.kind == "Lock" => lock(change),
        Action::Merge { target, change, .. } if target.kind.ends_with("Revision") => {
            let of = text(&change["metadata"]["labels"]["pkg.crossplane.io/package"]);
            Some(format!("pass {} {} on to {of}", target.kind, target.name))
        }
        Action::Merge { target, change, .. } if change["spec"].is_null() => {
            let to = &change["metadata"]["annotations"]["pkg.crossplane.io/gives-way-to"];
            Some(format!("mark {} {} for {to}", target.kind, target.name))
        }
        Action::Delete { target, .. } => Some(format!("delete {} {}", target.kind, target.name)),
        Action::Merge { target, change, .. } => Some(format!(
            "set {} {} {}",
            target.kind,
            target.name,
            text(&change["spec"]["package"])
        )),
        Action::Event { target, message, .. } => Some(format!("event {}: {message}", target.name)),
        Action::Status { .. } => None,
        other => panic!("no business of a lock: {other:?}"),
    }
}

fn merged<T: serde::Serialize + serde::de::DeserializeOwned>(seen: &T, change: &Json) -> T {
    let mut object = serde_json::to_value(seen).unwrap();
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

fn merge(into: &mut Json, change: &Json) {
    let Json::Object(fields) = change else { return change.clone_into(into) };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// An image by the bytes of a line.
pub(super) fn by_digest(repository: &str, bytes: &str) -> String {
    let rules = oci::Rules::weak();
    let reference = Reference::parse(repository, &rules).unwrap();
    reference.repository().digest(digest(bytes)).name()
}
