//! `manager install`: the package manager in the cluster of the current kubeconfig.

use crate::args::authority::OpenArguments;
use crate::args::cluster::ClusterArguments;
use crate::cluster::Cluster;
use crate::command::permissions;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use api::manager::{
    MANAGER_NAME, ManagerInstallation, managed_suffix, manager_labels, manager_objects,
    people_objects,
};
use inventory::Resource;
use serde_json::{Value as Json, json};
use std::time::Duration;
use tokio::time::Instant;

/// The pause between two looks at whether it runs.
const PAUSE: Duration = Duration::from_millis(500);

/// What to install, and where.
pub(crate) struct Request {
    pub(crate) image: Option<String>,
    pub(crate) pull_secrets: Vec<String>,
    /// What packages may bring and ask for without a word in the cluster.
    pub(crate) open: OpenArguments,
    pub(crate) arguments: Vec<String>,
    pub(crate) format: Format,
    /// Print the objects, and ask no cluster.
    pub(crate) dry_run: bool,
    /// How long to wait until it runs; not at all if it is not said.
    pub(crate) wait: Option<Duration>,
    pub(crate) cluster: ClusterArguments,
}

/// The form of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each
    #[default]
    Text,
    /// YAML for kubectl
    Yaml,
    /// A List in JSON
    Json,
}

/// Installs it, or prints what would be.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let objects = list_objects(request)?;
    if request.dry_run {
        return print_objects(request.format == Format::Json, &objects);
    }
    let cluster = Cluster::connect(&request.cluster, settings).await?;
    refuse_rival(&cluster, &request.cluster).await?;
    for object in &objects {
        let (resource, name) = address(object)?;
        cluster.apply(&resource, &name, object).await?;
        if request.format == Format::Text {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            output::print(format_args!("applied {kind}/{name}"));
        }
    }
    if let Some(time) = request.wait {
        wait(&cluster, &request.cluster.namespace, time).await?;
    }
    match request.format {
        Format::Text => Ok(()),
        format => print_objects(format == Format::Json, &objects),
    }
}

/// Everything that is installed, in order.
fn list_objects(request: &Request) -> Outcome<Vec<Json>> {
    let mut arguments = request.open.words();
    arguments.extend(request.arguments.iter().cloned());
    let manager = ManagerInstallation {
        namespace: &request.cluster.namespace,
        suffix: &request.cluster.group_suffix,
        image: named_image(request)?,
        pull_secrets: &request.pull_secrets,
        arguments,
        allowed_role: permissions::gathered(Some(&manager_labels())),
    };
    manager_objects(&manager).map_err(|error| {
        let hint = "give a suffix such as crossplane.io or ibm.crossplane.io";
        Failure::new("cannot make definitions", hint).because(&error)
    })
}

/// The image that was named. No registry in the world has one that can be counted on.
fn named_image(request: &Request) -> Outcome<&str> {
    request.image.as_deref().filter(|image| !image.is_empty()).ok_or_else(|| {
        Failure::new(
            "no image of apron was named",
            "make one and send it to a registry that the cluster can reach: `apron image build`, \
             `apron copy apron.tar REGISTRY/apron:TAG`, then give --image REGISTRY/apron:TAG",
        )
    })
}

/// Makes those of them that are not there; what is there stays as it is.
pub(crate) async fn ensure_people(cluster: &Cluster) -> Outcome {
    for object in people_objects(&json!({})) {
        let (resource, name) = address(&object)?;
        if cluster.get::<Json>(&resource, &name).await?.is_none() {
            cluster.create(&resource, &name, &object).await?;
        }
    }
    Ok(())
}

/// A namespace has room for one manager: a second one would be the end of the first.
async fn refuse_rival(cluster: &Cluster, arguments: &ClusterArguments) -> Outcome {
    let (namespace, suffix) = (&arguments.namespace, &arguments.group_suffix);
    let deployments = Resource::in_namespace("apps", "v1", namespace, "deployments");
    let found: Option<Json> = cluster.get(&deployments, MANAGER_NAME).await?;
    let Some(found) = found else { return Ok(()) };
    let managed = managed_suffix(&found);
    if managed == suffix {
        return Ok(());
    }
    Err(Failure::new(
        format!("the manager in the namespace {namespace} is for packages of pkg.{managed}"),
        format!(
            "install the one for pkg.{suffix} beside it, in another namespace: give --namespace; \
             or remove the one that is there: `kubectl -n {namespace} delete deployment {MANAGER_NAME}`"
        ),
    ))
}

pub(crate) fn print_objects(is_json: bool, objects: &[Json]) -> Outcome {
    if is_json {
        return output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    }
    for object in objects {
        output::print_document("---");
        output::print_yaml(object)?;
    }
    Ok(())
}

/// Where an object of the list is.
pub(crate) fn address(object: &Json) -> Outcome<(Resource, String)> {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let namespace = text(&object["metadata"]["namespace"]);
    let resource = match kind.as_str() {
        "Namespace" => Resource::core_of_cluster("namespaces"),
        "CustomResourceDefinition" => {
            Resource::of_group("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        }
        "ServiceAccount" => Resource::core(&namespace, "serviceaccounts"),
        "ClusterRole" => Resource::of_group("rbac.authorization.k8s.io", "v1", "clusterroles"),
        "ClusterRoleBinding" => {
            Resource::of_group("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
        }
        "ConfigMap" => Resource::core(&namespace, "configmaps"),
        "Service" => Resource::core(&namespace, "services"),
        "Deployment" => Resource::in_namespace("apps", "v1", &namespace, "deployments"),
        other => {
            let message = format!("nobody knows where a {other} belongs");
            return Err(Failure::new(message, "please report this"));
        }
    };
    Ok((resource, name))
}

/// Looks until the Deployment has a pod that is ready.
async fn wait(cluster: &Cluster, namespace: &str, time: Duration) -> Outcome {
    let deployments = Resource::in_namespace("apps", "v1", namespace, "deployments");
    let end = Instant::now() + time;
    loop {
        let found: Option<Json> = cluster.get(&deployments, MANAGER_NAME).await?;
        let available = found.and_then(|found| found["status"]["availableReplicas"].as_i64());
        if available.is_some_and(|count| count > 0) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Failure::new(
                format!(
                    "the package manager did not start within {}",
                    crate::args::duration::tell(time)
                ),
                format!("see why with `kubectl -n {namespace} describe pods -l app=apron`"),
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
