//! Revisions: from what is in packages to objects of the cluster.

mod disputes;
mod objects;

pub(crate) use disputes::Disputes;
pub(crate) use objects::{bare, owners};

use crate::access::{access, allowed, allowed_by_settings};
use crate::cluster::{self, Which};
use crate::families::{Families, Given, list_siblings};
use crate::forbidden::Subject;
use crate::kind::{Kind, Learnt, Wakes, Watch};
use crate::package::{self, ask, provided, treatment, typed};
use crate::runtime::all;
use crate::{Entry, Hands, act, held, lock, retention, roles, secrets, signature};
use api::condition::types;
use api::meta::PackageKind;
use api::pkg::LABEL_PACKAGE;
use api::pkg::revision::{ACTIVE, Revision};
use oci::{Digest, Reference};
use plan::adoption;
use plan::lock::{Verdict, Whose};
use plan::package::pull::{Image, Policy};
use plan::revision::{Contents, Settings, World, step};
use plan::runtime::{Configurations, SECRETS};
use plan::signature::Trust;
use plan::stacks::ANNOTATION_INSTALLS;
use plan::step::{Need, Refusal, Step, Target};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Revisions of packages of one kind.
pub struct Revisions {
    kind: PackageKind,
    families: Families,
    disputes: Disputes,
}

/// Kinds of objects that packages bring, with the versions of their APIs.
const PROVIDED: [(&str, &str); 4] = [
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceDefinition"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
];
/// The same of configurations, and what Crossplane makes of their definitions.
const CONFIGURED: [(&str, &str); 7] = [
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.crossplane.io/v1", "CompositeResourceDefinition"),
    ("apiextensions.crossplane.io/v1", "Composition"),
    ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"),
    ("ops.crossplane.io/v1alpha1", "Operation"),
    ("ops.crossplane.io/v1alpha1", "CronOperation"),
    ("ops.crossplane.io/v1alpha1", "WatchOperation"),
];

impl Revisions {
    /// Revisions of packages of a kind.
    pub fn new(kind: PackageKind) -> Self {
        Self { kind, families: Families::default(), disputes: Disputes::default() }
    }

    fn revision(&self) -> String {
        format!("{}Revision", self.kind.as_str())
    }

    fn given(&self, group: &str) -> Given {
        let (families, group) = (self.families.clone(), group.to_owned());
        Given { families, package: self.kind.as_str(), group }
    }

    /// Certificates are in Secrets that packages or their revisions own, or that somebody else made
    /// under the name that such a one has.
    fn certificates(&self, namespace: &str) -> Watch {
        let (families, package, revision) =
            (self.families.clone(), self.kind.as_str(), self.revision());
        let watch = Watch::new("v1", "Secret", move |meta| {
            let mut concerned = Vec::new();
            for owner in meta.metadata.owner_references.iter().flatten() {
                if owner.kind == revision {
                    concerned.push(owner.name.clone());
                } else if owner.kind == package {
                    concerned.extend(families.of(&owner.name));
                }
            }
            if concerned.is_empty() {
                let name = meta.metadata.name.as_deref().unwrap_or_default();
                let packages = SECRETS.iter().filter_map(|end| name.strip_suffix(end));
                concerned.extend(packages.flat_map(|package| families.of(package)));
            }
            Wakes::These(concerned)
        });
        watch.in_namespace(namespace)
    }
}

impl Kind for Revisions {
    type World = World;

    fn name(&self) -> String {
        self.revision().to_lowercase()
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let group = hands.settings.group();
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let mut watches = vec![
            Watch::itself(&stable, &self.revision()),
            self.families.watch(&stable, &self.revision()),
            Watch::for_everyone(&beta, "ImageConfig"),
            secrets::watch(hands, Wakes::Everyone),
            self.given(&group).watch_package(&stable),
        ];
        let brought: &[(&str, &str)] = match self.kind {
            PackageKind::Provider => &PROVIDED,
            PackageKind::Configuration => &CONFIGURED,
            PackageKind::Function => &[],
        };
        for (api_version, kind) in brought {
            watches.push(self.disputes.watch(api_version, kind, &self.revision()));
        }
        watches.push(self.disputes.record(&beta));
        if self.kind == PackageKind::Provider {
            watches.push(self.certificates(&hands.settings.namespace));
            if hands.settings.runs(self.kind) {
                // They say which Service webhooks are to call.
                watches.push(Watch::for_everyone(&beta, "DeploymentRuntimeConfig"));
            }
        }
        watches.extend(roles::allowed(hands));
        watches
    }

    fn calls(&self, hands: &Hands) -> Option<broadcast::Receiver<String>> {
        Some(hands.verdicts.news())
    }

    fn subject(&self, hands: &Hands, key: &str) -> Option<Subject> {
        let target = Target {
            api_version: format!("{}/v1", hands.settings.group()),
            kind: self.revision(),
            namespace: None,
            name: key.to_owned(),
        };
        Some((target, types::REVISION_HEALTHY))
    }

    async fn gather(&self, hands: &Hands, key: &str) -> Result<Option<World>, cluster::Error> {
        let group = hands.settings.group();
        let stable = format!("{group}/v1");
        let target = |api_version: &str, kind: &str, name: &str| Target {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        let found = hands.cluster.get(&target(&stable, &self.revision(), key)).await?;
        let Some(found) = found else {
            self.disputes.settle(key, |_, _| false);
            return Ok(None);
        };
        let revision: Revision = typed(found)?;
        let siblings = list_siblings(hands, &revision).await?;
        let image = Image { cached: held::digest(hands, &revision), ..Image::default() };
        let treated = treatment(hands, &revision.spec.image).await?;
        let (trust, treatment) = (Trust::of(&treated), treated.unwrap_or_default());
        let packages = packages(hands).await?;
        let label = revision.metadata.labels.get(LABEL_PACKAGE);
        let owner = label.map(|name| plan::lock::owner(self.kind.as_str(), name));
        let of = owner.and_then(|one| packages.get(&one).copied());
        Ok(Some(World {
            kind: self.kind,
            siblings,
            lock: lock::current(hands).await?,
            package_stays: of.is_some_and(|one| one.stays),
            adopts_existing: of.is_some_and(|one| one.adopts_existing),
            serves_installs: of.is_some_and(|one| one.serves_installs),
            packages: packages.into_keys().collect(),
            image,
            treatment,
            trust,
            contents: None,
            verdict: None,
            certificate: None,
            configurations: None,
            seen: BTreeMap::new(),
            retained: None,
            instances: BTreeMap::new(),
            checked: None,
            refused: Vec::new(),
            allowed: None,
            settings: settings(hands, self.kind).await?,
            now: hands.now(),
            revision,
        }))
    }

    fn step(&self, world: &World) -> Step {
        step(world)
    }

    async fn learn(
        &self,
        hands: &Hands,
        world: &mut World,
        need: Need,
    ) -> Result<Learnt, cluster::Error> {
        match need {
            Need::Digest(reference) => {
                let asked = ask(hands, &pull_secrets(world), &world.treatment, &reference).await?;
                let learnt = if asked.is_ok() { Learnt::Known } else { Learnt::Unknown };
                world.image.asked = Some(asked);
                Ok(learnt)
            }
            Need::CachedFile(name) => {
                world.image.searched = true;
                world.image.cached = provided(hands, &name).await.unwrap_or_else(|error| {
                    hands.say(Entry::trouble(&self.name(), &name, &error.text()));
                    None
                });
                let is_known = world.image.cached.is_some();
                Ok(if is_known { Learnt::Known } else { Learnt::Unknown })
            }
            Need::Contents(reference) => contents(hands, world, &reference).await,
            Need::Signatures(image) => {
                let secrets = pull_secrets(world);
                let policy = Policy::parse(world.revision.spec.package_pull_policy.as_deref());
                signature::learn(hands, &mut world.trust, &image, &secrets, policy).await
            }
            Need::Dependencies => {
                world.verdict = Some(verdict(hands, world));
                Ok(Learnt::Known)
            }
            Need::Certificate(secret) => {
                world.certificate = Some(certificate(hands, secret).await?);
                Ok(Learnt::Known)
            }
            Need::Permissions => {
                world.allowed = Some(allowed(hands).await?);
                Ok(Learnt::Known)
            }
            Need::Configurations => {
                world.configurations = Some(configurations(hands).await?);
                Ok(Learnt::Known)
            }
            Need::Objects(wanted) => {
                let name = world.revision.metadata.name.clone();
                // Who is not active wants nothing from anybody.
                let is_active = world.revision.spec.desired_state == ACTIVE;
                let disputed = wanted.iter().filter(|_| is_active).map(|one| &one.target);
                self.disputes.begin(&name, disputed);
                objects::look(hands, world, wanted).await?;
                let theirs = objects::of_others(world);
                let is_theirs = |kind: &str, object: &str| theirs.contains(&(kind, object));
                self.disputes.settle(&name, |kind, object| is_active && is_theirs(kind, object));
                // Who waits for an administrator keeps nothing from others meanwhile.
                if is_active && world.is_obstructed() && world.has_nothing() {
                    hands.verdicts.tried(Whose::of(&world.revision), true);
                }
                Ok(Learnt::Known)
            }
            Need::DryRun(writes) => {
                let refusals = act::try_out(hands, &writes).await?;
                let has_failed = !refusals.is_empty() && world.has_nothing();
                hands.verdicts.tried(Whose::of(&world.revision), has_failed);
                world.checked = Some(refusals);
                // That may have taken long. What is claimed next is claimed in the Lock of now:
                // refused for an old one, all of this would be tried once more.
                world.lock = lock::current(hands).await?;
                Ok(Learnt::Known)
            }
            Need::Retained | Need::Instances(_) => {
                retention::learn(hands, world, need).await?;
                Ok(Learnt::Known)
            }
            Need::Tags(_) | Need::Object(_) | Need::Kind(_) => {
                Err(cluster::Error::Refused(format!("a revision asks for {need:?}")))
            }
        }
    }

    fn refuse(&self, world: &mut World, refusals: Vec<Refusal>) {
        world.refused = refusals;
    }
}

async fn settings(hands: &Hands, kind: PackageKind) -> Result<Settings, cluster::Error> {
    Ok(Settings {
        default_registry: hands.settings.default_registry.clone(),
        crossplane_version: hands.settings.crossplane_version.clone(),
        namespace: hands.settings.namespace.clone(),
        runs_packages: hands.settings.runs(kind),
        defers_definitions: hands.settings.defers_definitions,
        allowed: allowed_by_settings(hands).await?,
        adopts_existing: hands.settings.adopts_existing,
    })
}

/// What is known of a package.
#[derive(Clone, Copy)]
struct Known {
    /// Whether it may take over what is there already.
    adopts_existing: bool,
    /// Whether it was made for install objects of the first package system.
    serves_installs: bool,
    /// Whether it is not on its way out.
    stays: bool,
}

/// All packages there are, as the Lock's record names them.
async fn packages(hands: &Hands) -> Result<BTreeMap<String, Known>, cluster::Error> {
    let api_version = format!("{}/v1", hands.settings.group());
    let mut packages = BTreeMap::new();
    for kind in PackageKind::ALL {
        let which = Which::default();
        let all = hands.cluster.list_metadata(&api_version, kind.as_str(), which).await?;
        packages.extend(all.iter().map(|one| {
            let metadata = adoption::metadata_of(one);
            let owner = plan::lock::owner(kind.as_str(), &metadata.name);
            let adopts_existing = adoption::gives_existing(&metadata.annotations);
            let serves_installs = metadata.annotations.contains_key(ANNOTATION_INSTALLS);
            let stays = metadata.deletion_timestamp.is_none();
            (owner, Known { adopts_existing, serves_installs, stays })
        }));
    }
    Ok(packages)
}

fn pull_secrets(world: &World) -> Vec<String> {
    let named = world.revision.spec.package_pull_secrets.as_deref();
    package::pull_secrets(named, &world.treatment)
}

/// What is in the package, from the cache if it is there, else from the registry.
async fn contents(
    hands: &Hands,
    world: &mut World,
    reference: &Reference,
) -> Result<Learnt, cluster::Error> {
    let Some(digest) = reference.identifier().as_digest() else {
        world.contents = Some(Err(format!("{reference} is no digest").into()));
        return Ok(Learnt::Unknown);
    };
    let found = if let Ok(found) = hands.cache.contents(digest).await {
        Ok(found)
    } else {
        let mut access = access(hands, &pull_secrets(world)).await?;
        let keychain = std::mem::take(&mut access.keychain);
        let fetched = hands.fetch.contents(reference.repository(), digest, keychain).await;
        fetched.map_err(|error| access.explain(error))
    };
    let learnt = if found.is_ok() { Learnt::Known } else { Learnt::Unknown };
    let summary = |found: Arc<crate::cache::Contents>| {
        Arc::new(Contents::of(Digest::clone(digest), &found.opened, hands.settings.unsupported))
    };
    world.contents = Some(found.map(summary));
    Ok(learnt)
}

/// What may say how runtimes are reached.
async fn configurations(hands: &Hands) -> Result<Configurations, cluster::Error> {
    let beta = format!("{}/v1beta1", hands.settings.group());
    Ok(Configurations {
        image: all(hands, &beta, "ImageConfig").await?,
        runtime: all(hands, &beta, "DeploymentRuntimeConfig").await?,
    })
}

/// What the lock says; whoever hears nothing is called when it does.
fn verdict(hands: &Hands, world: &World) -> Verdict {
    hands.verdicts.of(&Whose::of(&world.revision)).unwrap_or(Verdict::Unheard)
}

/// The certificate of whoever vouches for a runtime, or its own; in base64, as Secrets and
/// objects have it.
async fn certificate(hands: &Hands, name: String) -> Result<Option<String>, cluster::Error> {
    let target = Target {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(hands.settings.namespace.clone()),
        name,
    };
    let secret = hands.cluster.get(&target).await?.unwrap_or_default();
    let entry = |key: &str| {
        let text = secret["data"][key].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    Ok(entry("ca.crt").or_else(|| entry("tls.crt")))
}
