//! Roles: what providers and people may do with the kinds that packages bring.

use crate::kind::{Kind, Learnt, Meta, Wakes, Watch};
use crate::package::typed;
use crate::revision::Disputes;
use crate::{Hands, access, cluster, held};
use api::meta::{PackageKind, capability};
use api::pkg::revision::Revision;
use api::pkg::{LABEL_FAMILY, LABEL_PACKAGE};
use cluster::Which;
pub(crate) use cluster::{RBAC, ROLE};
use plan::adoption;
use plan::control::{controller_of, is_controlled_by, is_controlled_by_object};
use plan::rbac::{World, confined_to, definition, step, system_label};
use plan::step::{Need, Refusal, Step, Target};
use serde_json::Value as Json;

/// The roles of providers' revisions.
pub struct ProviderRoles;
/// The roles of composite resource definitions.
#[derive(Default)]
pub struct DefinitionRoles {
    /// Definitions of resources by the names that composite ones want theirs to have.
    disputes: Disputes,
}

pub(crate) const BINDING: &str = "ClusterRoleBinding";
pub(crate) const NAMESPACE_BINDING: &str = "RoleBinding";
const REVISION: &str = "ProviderRevision";
const DEFINITION: (&str, &str) = ("apiextensions.crossplane.io/v1", "CompositeResourceDefinition");
const CUSTOM: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

impl Kind for ProviderRoles {
    type World = World;

    fn name(&self) -> String {
        "provider-roles".to_owned()
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let stable = format!("{}/v1", hands.settings.group());
        let namespace = &hands.settings.namespace;
        let mut watches = vec![
            Watch::new(&stable, REVISION, |meta: &Meta| {
                let labels = meta.metadata.labels.as_ref();
                let has_kin = labels.is_some_and(|labels| labels.contains_key(LABEL_FAMILY));
                if has_kin { Wakes::Everyone } else { Wakes::These(Vec::new()) }
            }),
            Watch::itself(&stable, REVISION),
            Watch::by_owner("apps/v1", "Deployment", REVISION).in_namespace(namespace),
            Watch::by_owner(RBAC, ROLE, REVISION),
            Watch::by_owner(RBAC, BINDING, REVISION),
        ];
        if hands.settings.manages_stacks {
            watches.push(Watch::by_owner(RBAC, NAMESPACE_BINDING, REVISION));
        }
        watches.extend(allowed(hands));
        watches
    }

    async fn gather(&self, hands: &Hands, key: &str) -> Result<Option<World>, cluster::Error> {
        let stable = format!("{}/v1", hands.settings.group());
        let target = Target {
            api_version: stable.clone(),
            kind: REVISION.to_owned(),
            namespace: None,
            name: key.to_owned(),
        };
        let Some(found) = hands.cluster.get(&target).await? else { return Ok(None) };
        let revision: Revision = typed(found)?;
        let mut family = Vec::new();
        if let Some(label) = revision.metadata.labels.get(LABEL_FAMILY) {
            let labels = format!("{LABEL_FAMILY}={label}");
            let which = Which { labels: Some(&labels), ..Which::default() };
            let all = hands.cluster.list(&stable, REVISION, which).await?;
            family = all.into_iter().map(typed).collect::<Result<Vec<Revision>, _>>()?;
            family.retain(|one| one.metadata.name != key);
        }
        let contents = held::held(hands, &revision).await;
        let meta = contents.as_ref().and_then(|contents| contents.opened.meta());
        let names = ["aggregate-to-edit", "aggregate-to-view", "system"]
            .map(|end| format!("crossplane:provider:{key}:{end}"));
        let mut objects = roles(hands, &names).await?;
        let bound = Target {
            api_version: RBAC.to_owned(),
            kind: BINDING.to_owned(),
            namespace: None,
            name: format!("crossplane:provider:{key}:system"),
        };
        objects.extend(hands.cluster.get(&bound).await?);
        if confined_to(&revision).is_some() {
            let (label, name) = system_label(&revision);
            let labels = format!("{label}={name}");
            let which = Which { labels: Some(&labels), ..Which::default() };
            objects.extend(hands.cluster.list(RBAC, NAMESPACE_BINDING, which).await?);
        }
        let uncontrolled = uncontrolled(&objects);
        objects.retain(|object| is_controlled_by(object, &revision));
        let adopts_existing = !uncontrolled.is_empty() && adopts_existing(hands, &revision).await?;
        let requests = meta.map(|meta| meta.permission_requests().to_vec());
        Ok(Some(World {
            uncontrolled,
            adopts_existing,
            is_safe_start: meta.is_some_and(|meta| meta.has_capability(capability::SAFE_START)),
            allowed: access::allowed_for(hands, requests.as_deref().unwrap_or_default()).await?,
            requests,
            default_registry: hands.settings.default_registry.clone(),
            accounts: accounts(hands, &revision).await?,
            owned: objects,
            refusals: Vec::new(),
            family,
            revision,
        }))
    }

    fn step(&self, world: &World) -> Step {
        step(world)
    }

    async fn learn(&self, _: &Hands, _: &mut World, need: Need) -> Result<Learnt, cluster::Error> {
        Err(cluster::Error::Refused(format!("roles ask for {need:?}")))
    }

    fn refuse(&self, world: &mut World, refusals: Vec<Refusal>) {
        world.refusals = refusals;
    }
}

impl Kind for DefinitionRoles {
    type World = definition::World;

    fn name(&self) -> String {
        "definition-roles".to_owned()
    }

    fn watches(&self, _: &Hands) -> Vec<Watch> {
        vec![
            Watch::itself(DEFINITION.0, DEFINITION.1),
            Watch::by_owner(RBAC, ROLE, DEFINITION.1),
            self.disputes.watch(CUSTOM.0, CUSTOM.1, DEFINITION.1),
        ]
    }

    async fn gather(
        &self,
        hands: &Hands,
        key: &str,
    ) -> Result<Option<definition::World>, cluster::Error> {
        let target = Target {
            api_version: DEFINITION.0.to_owned(),
            kind: DEFINITION.1.to_owned(),
            namespace: None,
            name: key.to_owned(),
        };
        let Some(definition) = hands.cluster.get(&target).await? else {
            self.disputes.settle(key, |_, _| false);
            return Ok(None);
        };
        let targets = definition::derived_definitions(&definition);
        self.disputes.begin(key, targets.iter());
        let mut derived = Vec::new();
        for target in &targets {
            derived.extend(hands.cluster.get_metadata(target).await?);
        }
        let names = ["crossplane", "edit", "view", "browse"]
            .map(|end| format!("crossplane:composite:{key}:aggregate-to-{end}"));
        let mut owned = roles(hands, &names).await?;
        let uncontrolled = uncontrolled(&owned);
        owned.retain(|object| is_controlled_by_object(object, &definition));
        Ok(Some(definition::World {
            definition,
            derived,
            allowed: access::allowed_by_settings(hands).await?,
            owned,
            uncontrolled,
            adopts_existing: hands.settings.adopts_existing,
            refusals: Vec::new(),
        }))
    }

    fn step(&self, world: &definition::World) -> Step {
        definition::step(world)
    }

    async fn learn(
        &self,
        _: &Hands,
        _: &mut definition::World,
        need: Need,
    ) -> Result<Learnt, cluster::Error> {
        Err(cluster::Error::Refused(format!("roles ask for {need:?}")))
    }

    fn refuse(&self, world: &mut definition::World, refusals: Vec<Refusal>) {
        world.refusals = refusals;
    }
}

/// The role that says what packages may ask for concerns all of them.
pub(crate) fn allowed(hands: &Hands) -> Option<Watch> {
    let allowed = hands.settings.allowed_role.clone()?;
    Some(Watch::new(RBAC, ROLE, move |meta| {
        let is_meant = meta.metadata.name.as_ref() == Some(&allowed);
        if is_meant { Wakes::Everyone } else { Wakes::These(Vec::new()) }
    }))
}

/// Objects that nothing controls.
fn uncontrolled(objects: &[Json]) -> Vec<Json> {
    objects.iter().filter(|one| controller_of(one).is_none()).cloned().collect()
}

/// Whether the package of a revision may take over what is there already.
async fn adopts_existing(hands: &Hands, revision: &Revision) -> Result<bool, cluster::Error> {
    let Some(name) = revision.metadata.labels.get(LABEL_PACKAGE) else { return Ok(false) };
    let target = Target {
        api_version: revision.api_version.clone(),
        kind: PackageKind::Provider.as_str().to_owned(),
        namespace: None,
        name: name.clone(),
    };
    let package = hands.cluster.get_metadata(&target).await?;
    let package = package.as_ref().map(adoption::metadata_of).unwrap_or_default();
    Ok(hands.settings.adopts_existing || adoption::gives_existing(&package.annotations))
}

/// The roles of these names that are there.
async fn roles(hands: &Hands, names: &[String]) -> Result<Vec<Json>, cluster::Error> {
    let mut found = Vec::new();
    for name in names {
        let target = Target {
            api_version: RBAC.to_owned(),
            kind: ROLE.to_owned(),
            namespace: None,
            name: name.clone(),
        };
        found.extend(hands.cluster.get(&target).await?);
    }
    Ok(found)
}

/// The accounts that a revision's Deployments run as.
async fn accounts(
    hands: &Hands,
    revision: &Revision,
) -> Result<Vec<(String, String)>, cluster::Error> {
    let namespace = &hands.settings.namespace;
    let which = Which { namespace: Some(namespace), ..Which::default() };
    let deployments = hands.cluster.list("apps/v1", "Deployment", which).await?;
    let ours = deployments.iter().filter(|one| is_controlled_by(one, revision));
    let names = ours.filter_map(|one| {
        one["spec"]["template"]["spec"]["serviceAccountName"].as_str().map(str::to_owned)
    });
    Ok(names.map(|name| (namespace.clone(), name)).collect())
}
