//! Packages: Providers, Configurations and Functions, and the revisions they should have.

use crate::access::access;
use crate::forbidden::Subject;
use crate::kind::{Kind, Learnt, Wakes, Watch};
use crate::revision::owners;
use crate::{Hands, cluster, fetch, held, kinds, secrets, signature};
use api::condition::types;
use api::meta::PackageKind;
use api::pkg::revision::Revision;
use api::pkg::{LABEL_PACKAGE, LocalReference, Package};
use cluster::Which;
use oci::{Digest, Identifier, Reference, Rules};
use plan::image_config::{ImageConfigError, Treatment, treat};
use plan::lock::{KindPins, is_automatic};
use plan::package::pull::{Image, Policy, Unavailable};
use plan::package::{Settings, World, can_be_labelled, may_use_cached, revision_of_image, step};
use plan::signature::Trust;
use plan::step::{Need, Refusal, Step, Target};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Packages of one kind.
pub struct Packages(pub PackageKind);

impl Packages {
    fn kind(&self) -> &'static str {
        self.0.as_str()
    }

    fn revision(&self) -> String {
        format!("{}Revision", self.kind())
    }

    /// The revisions of a package. API servers refuse to be asked for a label that cannot be.
    async fn revisions_of(
        &self,
        hands: &Hands,
        api_version: &str,
        package: &str,
    ) -> Result<Vec<Revision>, cluster::Error> {
        if !can_be_labelled(package) {
            return Ok(Vec::new());
        }
        let labels = format!("{LABEL_PACKAGE}={package}");
        let which = Which { labels: Some(&labels), ..Which::default() };
        let found = hands.cluster.list(api_version, &self.revision(), which).await?;
        found.into_iter().map(typed).collect()
    }
}

impl Kind for Packages {
    type World = World;

    fn name(&self) -> String {
        self.kind().to_lowercase()
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let group = hands.settings.group();
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        vec![
            Watch::itself(&stable, self.kind()).for_content(),
            Watch::by_label(&stable, &self.revision(), LABEL_PACKAGE),
            Watch::for_everyone(&beta, "ImageConfig"),
            secrets::watch(hands, Wakes::Everyone),
        ]
    }

    fn subject(&self, hands: &Hands, key: &str) -> Option<Subject> {
        let target = Target {
            api_version: format!("{}/v1", hands.settings.group()),
            kind: self.kind().to_owned(),
            namespace: None,
            name: key.to_owned(),
        };
        Some((target, types::HEALTHY))
    }

    async fn gather(&self, hands: &Hands, key: &str) -> Result<Option<World>, cluster::Error> {
        let api_version = format!("{}/v1", hands.settings.group());
        let Some((target, _)) = self.subject(hands, key) else { return Ok(None) };
        let Some(found) = hands.cluster.get(&target).await? else { return Ok(None) };
        let package = typed::<Package>(found)?.with_chosen_image();
        let revisions = self.revisions_of(hands, &api_version, key).await?;
        let treated = treatment(hands, &package.spec.package).await?;
        let (trust, treatment) = (Trust::of(&treated), treated.unwrap_or_default());
        let image = known(hands, &package, &revisions, &treatment);
        let settings = Settings {
            default_registry: hands.settings.default_registry.clone(),
            runs_packages: hands.settings.runs(self.0),
        };
        Ok(Some(World {
            package,
            kind: self.0,
            revisions,
            image,
            treatment,
            trust,
            owners: BTreeMap::new(),
            kinds: None,
            pins: KindPins::default(),
            refused: Vec::new(),
            settings,
            now: hands.now(),
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
        let spec = &world.package.spec;
        let secrets = pull_secrets(spec.package_pull_secrets.as_deref(), &world.treatment);
        if let Need::Digest(reference) = &need {
            let asked = ask(hands, &secrets, &world.treatment, reference).await?;
            let learnt = if asked.is_ok() { Learnt::Known } else { Learnt::Unknown };
            world.image.asked = Some(asked);
            return Ok(learnt);
        }
        if let Need::CachedFile(name) = &need {
            world.image.searched = true;
            let found = provided(hands, name).await;
            world.image.cached = found.unwrap_or_else(|error| {
                hands.say(crate::Entry::trouble(self.kind(), name, &error.text()));
                None
            });
            let known = world.image.cached.is_some();
            return Ok(if known { Learnt::Known } else { Learnt::Unknown });
        }
        if let Need::Signatures(image) = &need {
            let policy = Policy::parse(spec.package_pull_policy.as_deref());
            return signature::learn(hands, &mut world.trust, image, &secrets, policy).await;
        }
        if let Need::Kind(kind) = &need {
            (world.pins, world.kinds) = kinds::find_packages(hands, kind, None).await?;
            return Ok(Learnt::Known);
        }
        if let Need::Objects(wanted) = need {
            world.owners.extend(owners(hands, wanted).await?);
            return Ok(Learnt::Known);
        }
        Err(cluster::Error::Refused(format!("a package asks for {need:?}")))
    }

    fn refuse(&self, world: &mut World, refusals: Vec<Refusal>) {
        world.refused = refusals;
    }
}

/// What is known about the image of a package without asking anybody.
fn known(hands: &Hands, package: &Package, revisions: &[Revision], treatment: &Treatment) -> Image {
    let policy = Policy::parse(package.spec.package_pull_policy.as_deref());
    let is_own = may_use_cached(package, revisions);
    // What the lock found out a moment ago counts for the package that it brought for that. One that a
    // user asks for is what the registry says now, as a plan has told.
    let is_looked_up = is_own || is_automatic(package);
    let own = revision_of_image(package, revisions).filter(|_| policy != Policy::Never);
    let own = own.and_then(|revision| held::digest(hands, revision));
    let secrets = pull_secrets(package.spec.package_pull_secrets.as_deref(), treatment);
    let package = &package.spec.package;
    let Some(reference) = parse(hands, package) else { return Image::default() };
    let cached = match reference.identifier() {
        Identifier::Tag(_) => hands.cache.tag(&reference.name()),
        Identifier::Digest(digest) => Some(digest.clone()).filter(|one| hands.cache.has(one)),
    };
    let cached = own.or(cached.filter(|_| is_own));
    let resolved = parse(hands, treatment.name(package));
    let resolved = resolved.filter(|_| is_looked_up);
    let asked = resolved.and_then(|resolved| hands.fetch.remembered(&resolved, &secrets));
    // Somebody may have asked who looked for what packages need. For a package that would have
    // asked now, that is what it goes by from then on.
    let is_news = match policy {
        Policy::Never => false,
        Policy::IfNotPresent => cached.is_none(),
        Policy::Always => true,
    };
    let asked =
        asked.map(|digest| if is_news { noted(hands, &reference, digest) } else { Ok(digest) });
    Image { cached, asked, searched: false }
}

/// What image configurations come to for an image.
pub(crate) async fn treatment(
    hands: &Hands,
    image: &str,
) -> Result<Result<Treatment, ImageConfigError>, cluster::Error> {
    let api_version = format!("{}/v1beta1", hands.settings.group());
    let configs = hands.cluster.list(&api_version, "ImageConfig", Which::default()).await?;
    let configs = configs.into_iter().map(typed).collect::<Result<Vec<_>, _>>()?;
    Ok(treat(&configs, image, &hands.settings.default_registry))
}

/// The Secrets to fetch with: those that are named for the package, then the one that an image
/// configuration names.
pub(crate) fn pull_secrets(named: Option<&[LocalReference]>, treatment: &Treatment) -> Vec<String> {
    let named = named.unwrap_or_default().iter().filter_map(|one| one.name.clone());
    named.chain(treatment.pull_secret.clone()).collect()
}

fn parse(hands: &Hands, package: &str) -> Option<Reference> {
    let rules = Rules::weak().default_registry(&hands.settings.default_registry).git_sources();
    Reference::parse(package, &rules).ok()
}

/// Asks the registry what a tag means, and remembers what it said.
pub(crate) async fn ask(
    hands: &Hands,
    secrets: &[String],
    treatment: &Treatment,
    reference: &Reference,
) -> Result<Result<Digest, Unavailable>, cluster::Error> {
    let resolved = treatment.name(reference.as_written());
    let Some(resolved) = parse(hands, resolved) else {
        return Ok(Err(format!("it is rewritten to {resolved}, which is no image").into()));
    };
    let mut access = access(hands, secrets).await?;
    let keychain = std::mem::take(&mut access.keychain);
    let asked = match hands.fetch.digest(&resolved, keychain, secrets).await {
        Ok(digest) => digest,
        Err(error) => return Ok(Err(access.explain(error))),
    };
    Ok(noted(hands, reference, asked))
}

/// Remembers what a tag means. A digest means the same for ever: there is nothing to remember.
fn noted(hands: &Hands, reference: &Reference, asked: Digest) -> Result<Digest, Unavailable> {
    if let Identifier::Tag(_) = reference.identifier() {
        let failed = |error| fetch::FetchError::Cache(reference.to_string(), error);
        hands.cache.remember(&reference.name(), &asked).map_err(failed)?;
    }
    Ok(asked)
}

/// What somebody put into the cache for a package.
pub(crate) async fn provided(
    hands: &Hands,
    name: &str,
) -> Result<Option<Digest>, fetch::FetchError> {
    if let Some(found) = hands.fetch.provided(name).await? {
        return Ok(Some(found));
    }
    let Some(reference) = parse(hands, name) else { return Ok(None) };
    match reference.identifier() {
        Identifier::Digest(digest) => Ok(hands.fetch.provided_for(&reference, digest).await),
        Identifier::Tag(_) => Ok(None),
    }
}

/// An object as its type has it; one that is not of it says so.
pub(crate) fn typed<T: DeserializeOwned>(object: Json) -> Result<T, cluster::Error> {
    let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
    serde_json::from_value(object)
        .map_err(|error| cluster::Error::Refused(format!("{name} cannot be read: {error}")))
}
