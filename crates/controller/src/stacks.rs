//! Install objects of the first package system, each of which becomes a Provider.

use crate::cluster::{self, Which};
use crate::forbidden::Subject;
use crate::kind::{Kind, Learnt, Meta, Wakes, Watch};
use crate::package::typed;
use crate::{Hands, held, kinds};
use api::condition::types;
use api::pkg::LABEL_PACKAGE;
use api::pkg::revision::Revision;
use api::stacks::{
    CLUSTER_INSTALL, NAMESPACE_INSTALL, PackageInstall, RECORD, STACKS_VERSION, TEMPLATE_RECORD,
};
use plan::stacks::image::bare_source;
use plan::stacks::{
    InstallSettings, InstallWorld, LABEL_COPIED_FOR, NamedSecret, choose_provider, decide_install,
    named_secrets, needs_copies,
};
use plan::step::{Need, Refusal, Step, Target};
use serde_json::Value as Json;

pub use plan::stacks::ANNOTATION_INSTALLS;
pub use plan::stacks::image::install_image;

/// Install objects of one kind.
pub struct Installs(pub &'static str);

const PROVIDER: &str = "Provider";
const REVISION: &str = "ProviderRevision";
const RUNTIME_CONFIG: &str = "DeploymentRuntimeConfig";
const SECRET: &str = "Secret";

impl Installs {
    fn target(&self, hands: &Hands, key: &str) -> Option<Target> {
        let (namespace, name) = key.split_once('/')?;
        Some(Target {
            api_version: api_version(hands),
            kind: self.0.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        })
    }
}

impl Kind for Installs {
    type World = InstallWorld;

    fn name(&self) -> String {
        self.0.to_lowercase()
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let (group, own) = (hands.settings.group(), api_version(hands));
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let mut watches = vec![
            Watch::itself(&own, self.0).for_content(),
            Watch::new(&stable, PROVIDER, concerned_installs),
            Watch::new(&beta, RUNTIME_CONFIG, concerned_installs),
        ];
        // Who asks for a package decides for whom else it is.
        for kind in [CLUSTER_INSTALL, NAMESPACE_INSTALL] {
            watches.push(Watch::for_everyone(&own, kind).for_content());
        }
        for kind in [RECORD, TEMPLATE_RECORD] {
            let owner = self.0;
            let wakes = move |meta: &Meta| owning_installs(meta, owner);
            watches.push(Watch::new(&own, kind, wakes).for_content());
        }
        watches
    }

    fn subject(&self, hands: &Hands, key: &str) -> Option<Subject> {
        Some((self.target(hands, key)?, types::SYNCED))
    }

    async fn gather(
        &self,
        hands: &Hands,
        key: &str,
    ) -> Result<Option<InstallWorld>, cluster::Error> {
        let Some(target) = self.target(hands, key) else { return Ok(None) };
        let Some(found) = hands.cluster.get(&target).await? else { return Ok(None) };
        let install = typed::<PackageInstall>(found)?.with_chosen_image();
        let settings = InstallSettings {
            group: hands.settings.group(),
            stacks_group: hands.settings.stacks_group(),
            default_registry: hands.settings.default_registry.clone(),
            namespace: hands.settings.namespace.clone(),
        };
        let mut world =
            InstallWorld { install, settings, now: hands.now(), ..InstallWorld::default() };
        for kind in [CLUSTER_INSTALL, NAMESPACE_INSTALL] {
            let all = hands.cluster.list(&target.api_version, kind, Which::default()).await?;
            for one in all {
                world.installs.push(typed::<PackageInstall>(one)?.with_chosen_image());
            }
        }
        let of_kind = |kind: &str| Target { kind: kind.to_owned(), ..target.clone() };
        world.record = hands.cluster.get(&of_kind(RECORD)).await?;
        world.template_record = hands.cluster.get(&of_kind(TEMPLATE_RECORD)).await?;
        gather_provider(hands, &mut world).await?;
        gather_secrets(hands, &target, &mut world).await?;
        Ok(Some(world))
    }

    fn step(&self, world: &InstallWorld) -> Step {
        decide_install(world)
    }

    async fn learn(
        &self,
        hands: &Hands,
        world: &mut InstallWorld,
        need: Need,
    ) -> Result<Learnt, cluster::Error> {
        if let Need::Kind(kind) = &need {
            let source = bare_source(world.install.spec.source.as_deref());
            (world.pins, world.kinds) = kinds::find_packages(hands, kind, source).await?;
            return Ok(Learnt::Known);
        }
        Err(cluster::Error::Refused(format!("an install object asks for {need:?}")))
    }

    fn refuse(&self, world: &mut InstallWorld, refusals: Vec<Refusal>) {
        world.refused = refusals;
    }
}

fn api_version(hands: &Hands) -> String {
    format!("{}/{STACKS_VERSION}", hands.settings.stacks_group())
}

/// Install objects that an object was made for, as it says itself.
fn concerned_installs(meta: &Meta) -> Wakes {
    let annotations = meta.metadata.annotations.as_ref();
    let named = annotations.and_then(|all| all.get(ANNOTATION_INSTALLS));
    let keys = named.into_iter().flat_map(|named| named.split(','));
    Wakes::These(keys.filter(|key| !key.is_empty()).map(str::to_owned).collect())
}

/// Install objects of a kind that own an object of their namespace.
fn owning_installs(meta: &Meta, kind: &str) -> Wakes {
    let namespace = meta.metadata.namespace.as_deref().unwrap_or_default();
    let owners = meta.metadata.owner_references.iter().flatten();
    let owners = owners.filter(|one| one.kind == kind);
    Wakes::These(owners.map(|one| format!("{namespace}/{}", one.name)).collect())
}

/// The Provider that an install object goes by, how it is run, and what is in its package.
async fn gather_provider(hands: &Hands, world: &mut InstallWorld) -> Result<(), cluster::Error> {
    let group = &world.settings.group;
    let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
    let providers = hands.cluster.list(&stable, PROVIDER, Which::default()).await?;
    let configurations = hands.cluster.list(&beta, RUNTIME_CONFIG, Which::default()).await?;
    world.choice = choose_provider(world, &providers, &configurations);
    let Some(name) = world.choice.name.clone() else { return Ok(()) };
    let is_it = |one: &Json| one["metadata"]["name"] == *name;
    world.provider = providers.into_iter().find(is_it);
    world.runtime_config = configurations.into_iter().find(is_it);
    let labels = format!("{LABEL_PACKAGE}={name}");
    let which = Which { labels: Some(&labels), ..Which::default() };
    let revisions = hands.cluster.list(&stable, REVISION, which).await?;
    let revisions: Vec<Revision> = revisions.into_iter().map(typed).collect::<Result<_, _>>()?;
    world.has_revisions = !revisions.is_empty();
    world.is_installed = revisions.iter().any(Revision::is_present);
    // The Provider's current revision is the active one, which is of the image before while the
    // next one waits to be activated.
    let asked = world.provider.as_ref().and_then(|it| it["spec"]["package"].as_str());
    if let Some(found) = revisions.iter().find(|it| asked == Some(it.spec.image.as_str())) {
        world.contents = read_record(hands, found).await;
    }
    Ok(())
}

/// The pull secrets that an install object names, and what was copied of them.
async fn gather_secrets(
    hands: &Hands,
    install: &Target,
    world: &mut InstallWorld,
) -> Result<(), cluster::Error> {
    let (Some(uid), true) =
        (&world.install.metadata.uid, needs_copies(&world.install, &world.settings))
    else {
        return Ok(());
    };
    let labels = format!("{LABEL_COPIED_FOR}={uid}");
    let namespace = Some(hands.settings.namespace.as_str());
    let which = Which { namespace, labels: Some(&labels) };
    world.copies = hands.cluster.list("v1", SECRET, which).await?;
    for name in named_secrets(&world.install) {
        let target = Target {
            api_version: "v1".to_owned(),
            kind: SECRET.to_owned(),
            name: name.to_owned(),
            ..install.clone()
        };
        let found = hands.cluster.get(&target).await?;
        world.secrets.push(NamedSecret { name: name.to_owned(), found });
    }
    Ok(())
}

/// What the package of a revision says of itself, if it is at hand; null if it is one of today.
async fn read_record(hands: &Hands, revision: &Revision) -> Option<Json> {
    let digest = held::digest(hands, revision)?;
    let read = |text: &str| {
        let mut metadata: Json = serde_json::from_str(text).unwrap_or_default();
        metadata.get_mut(stack::RECORD_FIELD).map(Json::take).unwrap_or_default()
    };
    hands.cache.document(&digest, 0, read).await.ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_reads_packages_and_what_decides_about_them_mean_the_same_field() {
        assert_eq!(stack::RECORD_FIELD, plan::stacks::RECORD_FIELD);
    }
}
