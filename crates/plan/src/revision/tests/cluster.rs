//! A cluster as small as it can be: it answers what a step asks, does what a step says, and holds
//! every write to the state it was decided on.

use super::super::{Contents, Seen, Settings, Unsupported, World, desired, step};
use super::show::{owners, show};
use crate::adoption;
use crate::authority::{Allowed, Place};
use crate::image_config::Treatment;
use crate::lock::{Counts, Verdict};
use crate::package::pull::Image;
use crate::retention::Instances;
use crate::runtime::Configurations;
use crate::signature::Trust;
use crate::step::{Action, Expect, Need, Packaged, Refusal, Step, Target, Wake, Write};
use api::meta::PackageKind;
use api::object::ObjectMeta;
use api::pkg::lock::Lock;
use api::pkg::revision::Revision;
use oci::Digest;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) struct Cluster {
    pub(super) objects: BTreeMap<Target, Json>,
    pub(super) revisions: BTreeMap<String, Revision>,
    pub(super) lock: Option<Lock>,
    pub(super) packages: BTreeSet<String>,
    /// Whether packages may take over what is there already.
    pub(super) adopts_existing: bool,
    /// Whether packages were made for install objects.
    pub(super) serves_installs: bool,
    pub(super) verdict: Verdict,
    pub(super) certificate: Option<String>,
    /// What may say how runtimes are reached.
    pub(super) configurations: Configurations,
    pub(super) settings: Settings,
    /// What packages may bring and ask for.
    pub(super) allowed: Allowed,
    /// What becomes of packages with objects that their kind may not bring.
    pub(super) unsupported: Unsupported,
    /// What the API server refuses, by name of the object.
    pub(super) refuses: BTreeMap<String, String>,
    pub(super) refused: Vec<Refusal>,
    /// What image configurations make of every image, and what comes of signatures.
    pub(super) treatment: Treatment,
    pub(super) trust: Trust,
    pub(super) judged: Trust,
    /// What was fetched from where.
    pub(super) fetched: RefCell<Vec<String>>,
    /// Whether packages of revisions are in the cache.
    pub(super) is_cached: bool,
    /// Looked at after every single change.
    pub(super) law: fn(&Self),
    kinds: BTreeMap<String, PackageKind>,
    published: BTreeMap<Digest, (Arc<Contents>, Vec<Json>)>,
    tags: BTreeMap<String, Digest>,
    counter: u64,
    /// How many objects there are of definitions, by name.
    pub(super) instances: BTreeMap<String, Instances>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            revisions: BTreeMap::new(),
            lock: Some(empty_lock()),
            packages: BTreeSet::new(),
            adopts_existing: false,
            serves_installs: false,
            verdict: Verdict::Resolved(Counts::default()),
            certificate: None,
            configurations: Configurations::default(),
            settings: Settings {
                default_registry: "index.docker.io".to_owned(),
                crossplane_version: "v2.5.0".to_owned(),
                namespace: "crossplane-system".to_owned(),
                runs_packages: true,
                defers_definitions: false,
                allowed: Allowed::default(),
                adopts_existing: false,
            },
            allowed: Allowed { place: Place::Gathered { is_there: true }, ..Allowed::default() },
            unsupported: Unsupported::default(),
            refuses: BTreeMap::new(),
            refused: Vec::new(),
            treatment: Treatment::default(),
            trust: Trust::default(),
            judged: Trust::default(),
            fetched: RefCell::default(),
            is_cached: false,
            law: |_| {},
            kinds: BTreeMap::new(),
            published: BTreeMap::new(),
            tags: BTreeMap::new(),
            counter: 0,
            instances: BTreeMap::new(),
        }
    }

    fn next(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    /// Puts a package behind a tag, and answers its digest.
    pub(super) fn publish(&mut self, tag: &str, documents: &[Json]) -> Digest {
        let texts: Vec<String> = documents.iter().map(Json::to_string).collect();
        let text = texts.join("\n---\n");
        let opened = xpkg::open::read(text.as_bytes(), &xpkg::Limits::default()).unwrap();
        let digest = Digest::of(text.as_bytes());
        let contents = Contents::of(digest.clone(), &opened, self.unsupported);
        self.published.insert(digest.clone(), (Arc::new(contents), documents.to_vec()));
        self.tags.insert(tag.to_owned(), digest.clone());
        digest
    }

    /// Makes a revision of what is behind a tag, as its package would.
    pub(super) fn revise(
        &mut self,
        kind: PackageKind,
        package: &str,
        tag: &str,
        state: &str,
    ) -> String {
        let digest = self.tags[tag].clone();
        let name = xpkg::label::friendly_id(package, digest.hex());
        let (uid, version) = (format!("uid-{name}"), self.next());
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": format!("{}Revision", kind.as_str()),
            "metadata": {
                "name": name, "uid": uid, "resourceVersion": version, "generation": 1,
                "labels": {"pkg.crossplane.io/package": package},
                "ownerReferences": [{
                    "apiVersion": "pkg.crossplane.io/v1", "kind": kind.as_str(), "name": package,
                    "uid": format!("uid-{package}"), "controller": true,
                }],
            },
            "spec": {"desiredState": state, "image": tag, "revision": 1},
        });
        self.revisions.insert(name.clone(), serde_json::from_value(revision).unwrap());
        self.kinds.insert(name.clone(), kind);
        self.packages.insert(format!("{}/{package}", kind.as_str()));
        name
    }

    /// Changes a revision, as others do.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Revision)) {
        let version = self.next();
        let revision = self.revisions.get_mut(name).unwrap();
        revision.metadata.resource_version = Some(version);
        change(revision);
    }

    pub(super) fn state(&mut self, name: &str, state: &str) {
        self.change(name, |revision| {
            let generation = revision.metadata.generation.unwrap_or_default();
            revision.metadata.generation = Some(generation + 1);
            revision.spec.desired_state = state.to_owned();
        });
    }

    fn cached(&self, revision: &Revision) -> Option<Digest> {
        self.tags.get(&revision.spec.image).filter(|_| self.is_cached).cloned()
    }

    fn world(&self, name: &str) -> World {
        let revision = self.revisions[name].clone();
        let package = |one: &Revision| one.metadata.labels["pkg.crossplane.io/package"].clone();
        let others = self.revisions.values().filter(|one| one.metadata.name != name);
        let siblings = others
            .filter(|one| package(one) == package(&revision) && one.kind == revision.kind)
            .cloned()
            .collect();
        World {
            kind: self.kinds[name],
            siblings,
            lock: self.lock.clone(),
            packages: self.packages.clone(),
            package_stays: {
                let label = &revision.metadata.labels["pkg.crossplane.io/package"];
                self.packages.contains(&format!("{}/{label}", self.kinds[name].as_str()))
            },
            adopts_existing: self.adopts_existing,
            serves_installs: self.serves_installs,
            image: Image { cached: self.cached(&revision), ..Image::default() },
            treatment: self.treatment.clone(),
            trust: self.trust.clone(),
            contents: None,
            verdict: None,
            certificate: None,
            configurations: None,
            seen: BTreeMap::new(),
            retained: None,
            instances: BTreeMap::new(),
            checked: None,
            allowed: None,
            refused: self.refused.clone(),
            settings: self.settings.clone(),
            now: "2026-01-01T00:00:00Z".to_owned(),
            revision,
        }
    }

    /// Answers needs until there is a plan; more than a handful of rounds is a fault.
    fn plan(&self, name: &str) -> crate::step::Plan {
        let mut world = self.world(name);
        for _ in 0..10 {
            match step(&world) {
                Step::Do(plan) => return plan,
                Step::Need(needs) => {
                    for need in needs {
                        self.answer(&mut world, need);
                    }
                }
            }
        }
        panic!("{name} needs ever more: {:?}", step(&world));
    }

    /// Whether the package of a revision has nothing, once the revision has looked around.
    pub(super) fn has_nothing(&self, name: &str) -> bool {
        let mut world = self.world(name);
        while let Step::Need(needs) = step(&world) {
            for need in needs {
                self.answer(&mut world, need);
            }
        }
        world.has_nothing()
    }

    fn answer(&self, world: &mut World, need: Need) {
        match need {
            Need::Digest(reference) => {
                let found = self.tags.get(reference.as_written()).cloned();
                world.image.asked = Some(found.ok_or_else(|| "not found".to_owned().into()));
            }
            Need::Contents(reference) => {
                self.fetched.borrow_mut().push(reference.to_string());
                let digest = reference.identifier().as_digest().unwrap();
                let found = self.published.get(digest).map(|(contents, _)| Arc::clone(contents));
                world.contents = Some(found.ok_or_else(|| "not found".to_owned().into()));
            }
            Need::Signatures(_) => world.trust = self.judged.clone(),
            Need::Dependencies => world.verdict = Some(self.verdict.clone()),
            Need::Certificate(_) => world.certificate = Some(self.certificate.clone()),
            Need::Permissions => world.allowed = Some(self.allowed.clone()),
            Need::Configurations => world.configurations = Some(self.configurations.clone()),
            Need::Objects(wanted) => {
                for one in wanted {
                    let live = self.objects.get(&one.target);
                    let seen = live.map(|live| Seen {
                        metadata: metadata(live),
                        is_same: one.packaged.is_some_and(|packaged| {
                            desired::is_same(&self.desired(&packaged), live, "apron")
                        }),
                        state: live["spec"]["state"].as_str().map(str::to_owned),
                        is_written: adoption::is_written(live),
                    });
                    let name = one.target.name.clone();
                    let before = world.seen.insert(one.target, seen);
                    assert!(before.is_none(), "{name} is looked at twice");
                }
            }
            Need::DryRun(writes) => {
                let refused = writes.iter().filter_map(|write| self.refusal(&write.target));
                world.checked = Some(refused.collect());
            }
            Need::Retained => {
                let label = world.revision.metadata.labels["pkg.crossplane.io/package"].as_str();
                let kept = self.objects.iter().filter(|(_, live)| {
                    live["metadata"]["labels"]["pkg.crossplane.io/retained-for"] == label
                });
                world.retained = Some(kept.map(|(target, _)| target.clone()).collect());
            }
            Need::Instances(targets) => world.instances.extend(targets.into_iter().map(|one| {
                let count = self.instances.get(&one.name).copied();
                (one, count.unwrap_or(Instances::exactly(0)))
            })),
            other => panic!("no business of a revision: {other:?}"),
        }
    }

    fn refusal(&self, target: &Target) -> Option<Refusal> {
        let message = self.refuses.get(&target.name)?.clone();
        Some(Refusal { target: target.clone(), message })
    }

    fn desired(&self, packaged: &Packaged) -> Json {
        let document = self.published[&packaged.package].1[packaged.document].clone();
        desired::desired(document, &packaged.overlay)
    }

    /// Carries out what a step says, and tells it.
    pub(super) fn run(&mut self, name: &str) -> String {
        let plan = self.plan(name);
        let mut lines: Vec<String> = plan.actions.iter().map(show).collect();
        lines.extend(plan.report.iter().map(|line| format!("# {line}")));
        match plan.wake {
            Wake::After(time) if time.is_zero() => lines.push("# again at once".to_owned()),
            Wake::After(time) => lines.push(format!("# again in {} s", time.as_secs())),
            Wake::OnChange => {}
        }
        for action in plan.actions {
            self.act(action);
            (self.law)(self);
        }
        if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n") }
    }

    /// Runs a revision until there is nothing to do.
    pub(super) fn settle(&mut self, name: &str) -> String {
        let mut told = Vec::new();
        for _ in 0..9 {
            let plan = self.plan(name);
            if plan.actions.is_empty() {
                return told.join("\n--\n");
            }
            told.push(self.run(name));
        }
        panic!("{name} does not settle:\n{}", told.join("\n--\n"));
    }

    fn act(&mut self, action: Action) {
        let version = self.next();
        match action {
            Action::Merge { target, change, expect } => {
                self.merge(&target, &change, &expect, &version);
            }
            Action::Establish(write) => self.establish(write, &version),
            Action::Finalizer { target, finalizer, is_wanted, expect } => {
                let revision = self.revisions.get_mut(&target.name).unwrap();
                let seen = revision.metadata.clone();
                revision.metadata.resource_version = Some(version);
                revision.metadata.finalizers.retain(|one| *one != finalizer);
                if is_wanted {
                    revision.metadata.finalizers.push(finalizer);
                }
                expects(&target, &expect, Some(&seen));
            }
            Action::Status { target, status, expect } => {
                let seen = self.revisions[&target.name].metadata.clone();
                expects(&target, &expect, Some(&seen));
                let revision = self.revisions.get_mut(&target.name).unwrap();
                revision.metadata.resource_version = Some(version);
                revision.status = Some(serde_json::from_value(status).unwrap());
            }
            Action::Event { .. } => {}
            Action::Delete { target, expect } => {
                let live = self.objects.remove(&target);
                expects(&target, &expect, live.as_ref().map(metadata).as_ref());
            }
            other => panic!("no business of a revision: {other:?}"),
        }
    }

    fn merge(&mut self, target: &Target, change: &Json, expect: &Expect, version: &str) {
        let merged = |mut live: Json| {
            merge(&mut live, change);
            live["metadata"]["resourceVersion"] = json!(version);
            live
        };
        if target.kind == "Lock" {
            let lock = self.lock.clone().unwrap();
            expects(target, expect, Some(&lock.metadata));
            let lock = merged(serde_json::to_value(lock).unwrap());
            self.lock = Some(serde_json::from_value(lock).unwrap());
        } else if let Some(revision) = self.revisions.get(&target.name) {
            expects(target, expect, Some(&revision.metadata));
            let revision = merged(serde_json::to_value(revision).unwrap());
            let revision = serde_json::from_value(revision).unwrap();
            self.revisions.insert(target.name.clone(), revision);
        } else {
            let live = self.objects[target].clone();
            expects(target, expect, Some(&metadata(&live)));
            self.objects.insert(target.clone(), merged(live));
        }
    }

    fn establish(&mut self, write: Write, version: &str) {
        assert!(self.refusal(&write.target).is_none(), "checked before it is written");
        let desired = self.desired(&write.object);
        assert_eq!(desired["metadata"]["name"], json!(write.target.name));
        let seen = self.objects.get(&write.target).map(metadata);
        expects(&write.target, &write.expect, seen.as_ref());
        let mut object = match seen {
            Some(seen) => desired::replacement(desired, &seen),
            None => desired,
        };
        object["metadata"]["resourceVersion"] = json!(version);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", write.target.name));
        }
        self.objects.insert(write.target, object);
    }

    /// Who owns an object; the controller has a star.
    pub(super) fn owners(&self, name: &str) -> String {
        let (_, object) = self.objects.iter().find(|(target, _)| target.name == name).unwrap();
        owners(&object["metadata"]["ownerReferences"])
    }
}

pub(super) fn metadata(object: &Json) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap()
}

fn empty_lock() -> Lock {
    serde_json::from_value(json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock",
        "metadata": {"name": "lock", "resourceVersion": "0"},
    }))
    .unwrap()
}

/// Holds a write to the state it was decided on.
fn expects(target: &Target, expect: &Expect, seen: Option<&ObjectMeta>) {
    match (expect, seen) {
        (Expect::Anything, _) | (Expect::Absent, None) => {}
        (Expect::Unchanged { uid, resource_version }, Some(seen)) => {
            assert_eq!((uid, resource_version), (&seen.uid, &seen.resource_version), "{target:?}");
        }
        (expect, seen) => panic!("{target:?} is {seen:?}, not {expect:?}"),
    }
}

/// A merge patch.
fn merge(live: &mut Json, change: &Json) {
    let Json::Object(change) = change else {
        *live = change.clone();
        return;
    };
    if !live.is_object() {
        *live = json!({});
    }
    for (field, value) in change {
        if value.is_null() {
            live.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut live[field], value);
        }
    }
}
