//! Runtimes: what runs the packages that are to be run.

use crate::families::{Families, Given, list_siblings};
use crate::forbidden::Subject;
use crate::kind::{Kind, Learnt, Meta, Wakes, Watch};
use crate::package::typed;
use crate::{Hands, access, certificate, cluster, held, roles};
use api::condition::types;
use api::meta::{PackageKind, capability};
use api::pkg::revision::{ACTIVE, Revision};
use cluster::Which;
use plan::authority::Allowed;
use plan::control::is_controlled_by;
use plan::rbac::{confined_to, has_roles, system_role};
use plan::runtime::{Managed, Package, SECRETS, Settings, World, step};
use plan::step::{Need, Refusal, Step, Target, seconds};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// What runs packages of one kind.
pub struct Runtimes(pub PackageKind);

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const SERVICE: (&str, &str) = ("v1", "Service");
const ACCOUNT: (&str, &str) = ("v1", "ServiceAccount");
const SECRET: (&str, &str) = ("v1", "Secret");
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

impl Runtimes {
    fn revision(&self) -> String {
        format!("{}Revision", self.0.as_str())
    }

    fn target(&self, hands: &Hands, key: &str) -> Target {
        Target {
            api_version: format!("{}/v1", hands.settings.group()),
            kind: self.revision(),
            namespace: None,
            name: key.to_owned(),
        }
    }
}

impl Kind for Runtimes {
    type World = World;

    fn name(&self) -> String {
        format!("{}-runtime", self.0.as_str().to_lowercase())
    }

    fn watches(&self, hands: &Hands) -> Vec<Watch> {
        let group = hands.settings.group();
        let (stable, beta) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let (namespace, authority) = (&hands.settings.namespace, &hands.settings.authority);
        let revision = self.revision();
        let families = Families::default();
        let given =
            Given { families: families.clone(), package: self.0.as_str(), group: group.clone() };
        let owned = |(api_version, kind): (&str, &str)| {
            given.watch_owned(api_version, kind, &revision).in_namespace(namespace)
        };
        let mut watches = vec![
            Watch::itself(&stable, &revision),
            // What runs of a revision goes on until the next one is established.
            families.watch(&stable, &revision),
            given.watch_package(&stable),
            given.watch_running(DEPLOYMENT.0, DEPLOYMENT.1, &revision).in_namespace(namespace),
            owned(SERVICE),
            owned(ACCOUNT),
            // Certificates belong to packages, and the authority to everybody.
            Watch::new(SECRET.0, SECRET.1, certificates(self.0, authority)).in_namespace(namespace),
            Watch::for_everyone(&beta, "DeploymentRuntimeConfig"),
            Watch::for_everyone(&beta, "ImageConfig"),
        ];
        if self.0 == PackageKind::Provider {
            watches.push(Watch::for_everyone(&format!("{group}/v1alpha1"), "ControllerConfig"));
            watches.push(Watch::new(DEFINITION.0, DEFINITION.1, activated(&revision)));
            if hands.settings.manages_roles {
                watches.push(Watch::by_owner(roles::RBAC, roles::BINDING, &revision));
                if hands.settings.manages_stacks {
                    let kind = roles::NAMESPACE_BINDING;
                    watches.push(Watch::by_owner(roles::RBAC, kind, &revision));
                }
            }
        }
        watches.extend(roles::allowed(hands));
        watches
    }

    fn subject(&self, hands: &Hands, key: &str) -> Option<Subject> {
        Some((self.target(hands, key), types::RUNTIME_HEALTHY))
    }

    async fn gather(&self, hands: &Hands, key: &str) -> Result<Option<World>, cluster::Error> {
        let group = hands.settings.group();
        let beta = format!("{group}/v1beta1");
        let target = self.target(hands, key);
        let Some(found) = hands.cluster.get(&target).await? else { return Ok(None) };
        let revision: Revision = typed(found)?;
        let siblings = list_siblings(hands, &revision).await?;
        let package = held::held(hands, &revision).await.and_then(|contents| {
            let meta = contents.opened.meta()?;
            Some(Package {
                digest: contents.digest.clone(),
                image: meta.image().map(str::to_owned),
                requests: meta.permission_requests().to_vec(),
            })
        });
        let alpha = format!("{group}/v1alpha1");
        let requests = package.as_ref().map(|it: &Package| it.requests.as_slice());
        let allowed = access::allowed_for(hands, requests.unwrap_or_default()).await?;
        let (owned, deployments) = owned(hands, &revision, &siblings).await?;
        Ok(Some(World {
            managed: managed(hands, &revision).await?,
            unbound: unbound(hands, self.0, &revision, package.as_ref(), &allowed).await?,
            owned,
            deployments,
            revision,
            kind: self.0,
            siblings,
            package,
            allowed,
            image_configs: all(hands, &beta, "ImageConfig").await?,
            runtime_configs: all(hands, &beta, "DeploymentRuntimeConfig").await?,
            controller_configs: all(hands, &alpha, "ControllerConfig").await?,
            account_secrets: access::own(hands).await?,
            live: BTreeMap::new(),
            certificates: BTreeMap::new(),
            pairs: BTreeSet::new(),
            refusal: None,
            settings: Settings {
                namespace: hands.settings.namespace.clone(),
                default_registry: hands.settings.default_registry.clone(),
                authority: hands.settings.authority.clone(),
                lifetimes: hands.settings.lifetimes,
                adopts_existing: hands.settings.adopts_existing,
            },
            now: seconds(&hands.now()).unwrap_or_default(),
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
        let Need::Object(target) = need else {
            return Err(cluster::Error::Refused(format!("a runtime asks for {need:?}")));
        };
        let found = hands.cluster.get(&target).await?;
        if let (SECRET, Some(secret)) = ((&*target.api_version, &*target.kind), &found) {
            let fields = secret["data"].as_object().into_iter().flatten();
            let fields = fields.filter_map(|(_, value)| value.as_str());
            let read = fields.filter_map(|text| Some((text.to_owned(), certificate::read(text)?)));
            world.certificates.extend(read);
            world.pairs.extend(certificate::pairs(secret));
        }
        world.live.insert(target, found);
        Ok(Learnt::Known)
    }

    fn refuse(&self, world: &mut World, refusals: Vec<Refusal>) {
        world.refusal = refusals.into_iter().next();
    }
}

/// Whom news of a Secret concerns: everybody if it is the authority's, and otherwise those who use
/// it, who are found among the revisions of the package that owns it. One that lost its owner is
/// known by its name.
fn certificates(
    kind: PackageKind,
    authority: &str,
) -> impl Fn(&Meta) -> Wakes + Send + Sync + use<> {
    let authority = authority.to_owned();
    move |meta| {
        let name = meta.metadata.name.as_deref().unwrap_or_default();
        let mut owners = meta.metadata.owner_references.iter().flatten();
        let is_ours = owners.any(|one| one.kind.starts_with(kind.as_str()))
            || SECRETS.iter().any(|end| name.ends_with(end));
        if name == authority || is_ours { Wakes::Everyone } else { Wakes::These(Vec::new()) }
    }
}

/// Whom the definition of a resource concerns: the revision whose kind it activates. Definitions
/// that packages bring themselves start nothing.
fn activated(revision: &str) -> impl Fn(&Meta) -> Wakes + Send + Sync + use<> {
    let revision = revision.to_owned();
    move |meta| {
        let owners = || meta.metadata.owner_references.iter().flatten();
        if !owners().any(|one| one.kind == "ManagedResourceDefinition") {
            return Wakes::These(Vec::new());
        }
        let concerned = owners().filter(|one| one.kind == revision);
        Wakes::These(concerned.map(|one| one.name.clone()).collect())
    }
}

/// All objects of a kind.
pub(crate) async fn all<T: DeserializeOwned>(
    hands: &Hands,
    api_version: &str,
    kind: &str,
) -> Result<Vec<T>, cluster::Error> {
    let found = hands.cluster.list(api_version, kind, Which::default()).await?;
    found.into_iter().map(typed).collect()
}

/// Deployments, Services and accounts that a revision controls, and the Deployments of its siblings.
/// Metadata is all that counts of most; what hands over or takes over is read whole.
async fn owned(
    hands: &Hands,
    revision: &Revision,
    siblings: &[Revision],
) -> Result<(Vec<Json>, Vec<Json>), cluster::Error> {
    let which = Which { namespace: Some(&hands.settings.namespace), ..Which::default() };
    let is_active = revision.spec.desired_state == ACTIVE;
    let (mut owned, mut deployments) = (Vec::new(), Vec::new());
    for (api_version, kind) in [DEPLOYMENT, SERVICE, ACCOUNT] {
        for mut object in hands.cluster.list_metadata(api_version, kind, which).await? {
            object["apiVersion"] = Json::from(api_version);
            object["kind"] = Json::from(kind);
            let is_own = is_controlled_by(&object, revision);
            let is_deployment = kind == DEPLOYMENT.1;
            let is_kin = || siblings.iter().any(|one| is_controlled_by(&object, one));
            if is_own && is_deployment && !is_active {
                owned.extend(hands.cluster.get(&Target::of(&object)).await?);
            } else if is_own {
                owned.push(object);
            } else if is_deployment && is_kin() {
                // A Deployment that is listed counts as running until its spec says otherwise: only
                // a list without it lets a successor start.
                let found = hands.cluster.get(&Target::of(&object)).await?;
                deployments.push(found.unwrap_or(object));
            }
        }
    }
    Ok((owned, deployments))
}

/// The binding that should give a provider its rights, where it does not.
async fn unbound(
    hands: &Hands,
    kind: PackageKind,
    revision: &Revision,
    package: Option<&Package>,
    allowed: &Allowed,
) -> Result<Option<String>, cluster::Error> {
    let requests = package.map(|package| package.requests.as_slice()).unwrap_or_default();
    let is_active = revision.spec.desired_state == ACTIVE;
    let has_roles = kind == PackageKind::Provider && has_roles(revision, requests, allowed);
    if !(hands.settings.manages_roles && is_active && has_roles) {
        return Ok(None);
    }
    let name = system_role(revision);
    let target = |kind: &str, namespace: Option<&str>| Target {
        api_version: roles::RBAC.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.clone(),
    };
    let bindings = match confined_to(revision) {
        None => vec![target(roles::BINDING, None)],
        Some(within) => {
            within.into_iter().map(|it| target(roles::NAMESPACE_BINDING, Some(it))).collect()
        }
    };
    for target in bindings {
        let binding = hands.cluster.get(&target).await?;
        let subjects = binding.as_ref().and_then(|binding| binding["subjects"].as_array());
        if subjects.is_none_or(Vec::is_empty) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The kinds that Crossplane makes for a revision when somebody wants them: one that is wanted has
/// a definition of a resource by the same name.
async fn managed(hands: &Hands, revision: &Revision) -> Result<Managed, cluster::Error> {
    let Some(status) = &revision.status else { return Ok(Managed::default()) };
    let mut capabilities = status.capabilities.iter().flatten();
    if !capabilities.any(|one| capability::matches(one, capability::SAFE_START)) {
        return Ok(Managed::default());
    }
    let refs = status.object_refs.iter().flatten();
    let refs = refs.filter(|one| one.kind == "ManagedResourceDefinition");
    let names: BTreeSet<&str> = refs.map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Managed::default());
    }
    let made = hands.cluster.list_metadata(DEFINITION.0, DEFINITION.1, Which::default()).await?;
    let made = made.iter().filter_map(|one| one["metadata"]["name"].as_str());
    let active = made.filter(|name| names.contains(name)).count();
    Ok(Managed { total: names.len(), active })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn news_of_a_secret_that_lost_its_owner_reach_those_who_use_it() {
        let concerns = certificates(PackageKind::Provider, "crossplane-root-ca");
        let owner =
            |kind: &str| json!([{"apiVersion": "v1", "kind": kind, "name": "p", "uid": "u"}]);
        for (name, owners, is_told) in [
            ("crossplane-root-ca", json!([]), true),
            ("p-tls-server", owner("Provider"), true),
            ("p-tls-server", json!([]), true),
            ("p-tls-client", json!([]), true),
            ("anything", owner("Provider"), true),
            ("anything", owner("ConfigMap"), false),
            ("anything", json!([]), false),
        ] {
            let meta = json!({"metadata": {"name": name, "ownerReferences": owners}});
            let told = concerns(&serde_json::from_value(meta).unwrap());
            assert_eq!(matches!(told, Wakes::Everyone), is_told, "{name} {owners}");
        }
    }
}
