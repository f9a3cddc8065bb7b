//! What is laid over the objects of a package: labels and annotations that were asked for, and
//! where and how the API server reaches the package's runtime.

use super::contents::{Contents, Document};
use super::desired::lay;
use super::underlying::MANAGED;
use super::{Halt, World};
use crate::step::{Need, Packaged, Target, Wanted};
use api::meta::{PackageKind, capability};
use api::pkg::ANNOTATION_BROUGHT_BY;
use serde_json::{Map, Value as Json, json};
use xpkg::lint::{Calls, ObjectKind};

/// The port that runtimes serve webhooks on.
const PORT: u16 = 9443;
/// Kinds that configure a provider; they are there whatever is activated.
const CONFIGURING: [&str; 4] = [
    "ProviderConfig",
    "ClusterProviderConfig",
    "ProviderConfigUsage",
    "ClusterProviderConfigUsage",
];
pub(super) const CRD: &str = "apiextensions.k8s.io/v1";
const MRD: &str = "apiextensions.crossplane.io/v1alpha1";

/// Where the API server finds a runtime, and how it knows it.
struct Endpoint {
    /// None where somebody else runs packages, and the package itself says how it is known.
    certificate: Option<String>,
    service: Json,
}

impl Endpoint {
    /// What is laid over whatever a package says about how it is reached: always its own Service.
    fn client(&self) -> Json {
        let mut client = json!({"service": self.service});
        if let Some(certificate) = &self.certificate {
            client["caBundle"] = json!(certificate);
        }
        client
    }
}

/// The objects a revision wants in the cluster, but for who owns them.
pub(super) fn wanted(world: &World, contents: &Contents) -> Result<Vec<Wanted>, Halt> {
    let endpoint = endpoint(world, contents)?;
    let each = contents.documents.iter().map(|document| {
        let (target, overlay) = overlay(world, contents, document, endpoint.as_ref());
        let package = contents.package.clone();
        let packaged = Packaged { package, document: document.index, overlay };
        Wanted { target, packaged: Some(packaged) }
    });
    Ok(each.collect())
}

/// Only packages that are called need to be found. Where somebody else runs them and does not say
/// by which certificate they are known, what they say about that themselves stands.
fn endpoint(world: &World, contents: &Contents) -> Result<Option<Endpoint>, Halt> {
    let is_called = contents.documents.iter().any(|document| document.calls.is_own());
    if !is_called || !world.is_active() {
        return Ok(None);
    }
    let certificate = certificate(world)?;
    let (name, namespace) = (service(world)?, &world.settings.namespace);
    let service = json!({"name": name, "namespace": namespace, "port": PORT});
    Ok(Some(Endpoint { certificate, service }))
}

/// The certificate by which the runtime is known.
fn certificate(world: &World) -> Result<Option<String>, Halt> {
    let status = world.revision.status.as_ref();
    let secret = status.and_then(|status| status.tls_server_secret_name.as_deref());
    let secret = match secret.filter(|secret| !secret.is_empty()) {
        Some(secret) => secret,
        None if !world.settings.runs_packages => return Ok(None),
        None => {
            return Err(Halt::waiting(
                "waiting for package runtime controller to set revision's webhook TLS secret",
            ));
        }
    };
    match &world.certificate {
        None => Err(Halt::Need(vec![Need::Certificate(secret.to_owned())])),
        Some(None) => Err(Halt::waiting(format!(
            "waiting for a certificate: the Secret {secret} in namespace {} has none yet",
            world.settings.namespace
        ))),
        Some(Some(certificate)) => Ok(Some(certificate.clone())),
    }
}

/// The name of the Service that leads to the runtime. Where somebody else runs packages, it is the
/// package's.
fn service(world: &World) -> Result<String, Halt> {
    if !world.settings.runs_packages {
        return Ok(world.package_name().to_owned());
    }
    let Some(configurations) = &world.configurations else {
        return Err(Halt::Need(vec![Need::Configurations]));
    };
    let image = world.treatment.name(&world.revision.spec.image);
    let found = configurations.service(&world.revision, image, &world.settings.default_registry);
    found.map_err(|why| Halt::waiting(format!("cannot tell which Service is called: {why}")))
}

fn overlay(
    world: &World,
    contents: &Contents,
    document: &Document,
    endpoint: Option<&Endpoint>,
) -> (Target, Json) {
    let mut overlay = json!({"metadata": common(world)});
    let mut target = Target {
        api_version: document.api_version.clone(),
        kind: document.kind.clone(),
        namespace: None,
        name: document.name.clone(),
    };
    match (&document.calls, endpoint) {
        (Calls::Conversion(_), Some(endpoint)) => {
            let client = endpoint.client();
            overlay["spec"]["conversion"] = json!({"webhook": {"clientConfig": client}});
        }
        (Calls::Webhooks(webhooks), Some(endpoint)) => {
            target.name = webhook_name(world, contents, document);
            overlay["metadata"]["name"] = json!(target.name);
            overlay["webhooks"] = webhooks.iter().map(|one| reached(one, endpoint)).collect();
        }
        _ => {}
    }
    if is_managed(world, document) {
        (target.api_version, target.kind) = (MRD.to_owned(), MANAGED.to_owned());
        overlay["apiVersion"] = json!(target.api_version);
        overlay["kind"] = json!(target.kind);
        let meta = contents.meta.as_ref();
        if !meta.is_some_and(|meta| meta.has_capability(capability::SAFE_START)) {
            overlay["spec"]["state"] = json!("Active");
        }
    }
    (target, overlay)
}

/// Labels and annotations for everything the package brings; they win over the package's own. One
/// says whose it is, also when its owners are lost.
fn common(world: &World) -> Json {
    let spec = &world.revision.spec;
    let mut metadata = Map::new();
    for (key, values) in
        [("labels", &spec.common_labels), ("annotations", &spec.common_annotations)]
    {
        if let Some(values) = values.as_ref().filter(|values| !values.is_empty()) {
            metadata.insert(key.to_owned(), json!(values));
        }
    }
    let mut metadata = Json::Object(metadata);
    metadata["annotations"][ANNOTATION_BROUGHT_BY] = json!(world.mark());
    metadata
}

/// Named after the package, so that two packages never have one name. More than one of a kind keep
/// their own names behind that.
fn webhook_name(world: &World, contents: &Contents, document: &Document) -> String {
    let kind = world.kind.as_str().to_lowercase();
    let name = format!("crossplane-{kind}-{}", world.package_name());
    let mut same = contents.documents.iter().filter(|one| one.object == document.object);
    if same.next().is_some_and(|first| first.index == document.index) {
        name
    } else {
        format!("{name}-{}", document.name)
    }
}

/// A webhook that is called at the package's runtime, and nowhere else.
fn reached(webhook: &Json, endpoint: &Endpoint) -> Json {
    let mut webhook = webhook.clone();
    if let Some(client) = webhook.get_mut("clientConfig").and_then(Json::as_object_mut) {
        client.remove("url");
    }
    lay(&mut webhook, &json!({"clientConfig": endpoint.client()}));
    webhook
}

/// Whether a definition of resources is handed to Crossplane, which makes it one when it is
/// activated.
pub(super) fn is_managed(world: &World, document: &Document) -> bool {
    world.settings.defers_definitions
        && world.kind == PackageKind::Provider
        && document.object == ObjectKind::CustomResourceDefinition
        && document.api_version == CRD
        && !document.defines.as_deref().is_some_and(|kind| CONFIGURING.contains(&kind))
}
