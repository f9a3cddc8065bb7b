//! Crossplane's core beside the package manager: upstream's own program, as a Deployment that this machine runs
//! ([`api::crossplane_core`] says with which rights).

use super::Request;
use super::manager;
use super::pods::PodRuntime;
use crate::args::duration;
use crate::cluster::Cluster;
use crate::command::deploy::address;
use crate::failure::{Failure, Outcome};
use crate::output;
use api::crd::SUFFIX;
use api::crossplane_core::{CORE_NAME as NAME, CORE_NAMESPACE as NAMESPACE, core_objects};
use inventory::Resource;
use oci::{Reference, Rules};
use serde_json::Value as Json;
use std::time::Duration;
use tokio::time::Instant;

/// The pause between two looks at whether something is there.
const PAUSE: Duration = Duration::from_millis(200);

/// Refuses an image that is none, and a control plane in which no program runs.
pub(super) fn check_request(request: &Request, pods: &PodRuntime) -> Outcome {
    let Some(image) = &request.crossplane else { return Ok(()) };
    let rules = Rules::weak().any_digest();
    let rules = rules.default_registry(&manager::settings().default_registry);
    Reference::parse(image, &rules).map_err(|error| {
        let hint = "an image looks like xpkg.crossplane.io/crossplane/crossplane:v2.3.4";
        Failure::new(format!("`{image}` is not an image of Crossplane"), hint).because(&error)
    })?;
    let PodRuntime::Simulated(why) = pods else { return Ok(()) };
    let (message, hint) = match why {
        None => (
            "cannot run Crossplane where pods are only simulated".to_owned(),
            "give --runtime process, or leave --runtime out",
        ),
        Some(why) => (
            format!("cannot run Crossplane, because pods cannot be run on this machine: {why}"),
            "leave --with-crossplane out to try packages without running them",
        ),
    };
    Err(Failure::new(message, hint))
}

/// Installs the core, or brings it up to date, once the package manager has installed its definitions: before that,
/// the two would overwrite each other's.
pub(super) async fn install_core(cluster: &Cluster, image: &str, time: Duration) -> Outcome {
    let definitions = api::crd::definitions(SUFFIX).map_err(|error| {
        Failure::new("cannot make definitions", "please report this").because(&error)
    })?;
    await_definitions(cluster, &definitions, time).await?;
    for object in core_objects(image, controller::AUTHORITY, &definitions) {
        let (resource, name) = address(&object)?;
        cluster.apply(&resource, &name, &object).await?;
    }
    output::say(format_args!("installed {} of {image}", output::bold(NAME)));
    Ok(())
}

/// Waits until the core says that it is ready.
pub(super) async fn await_core(cluster: &Cluster, time: Duration) -> Outcome {
    let deployments = Resource::in_namespace("apps", "v1", NAMESPACE, "deployments");
    let pods = Resource::core(NAMESPACE, "pods");
    let end = Instant::now() + time;
    loop {
        let found: Option<Json> = cluster.get(&deployments, NAME).await?;
        // The status may be that of the last run, until the first look of this one; pods are not ready before that.
        let pods = cluster.list_labelled(&pods, "app", NAME).await?;
        if found.as_ref().is_some_and(is_available) && pods.iter().any(is_pod_ready) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Failure::new(
                format!("Crossplane did not start within {}", duration::tell(time)),
                format!(
                    "see why with `kubectl -n {NAMESPACE} describe pods -l app={NAME}` and \
                     `kubectl -n {NAMESPACE} logs deployment/{NAME}`"
                ),
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn await_definitions(cluster: &Cluster, definitions: &[Json], time: Duration) -> Outcome {
    let resource = Resource::of_group("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let end = Instant::now() + time;
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        while cluster.get::<Json>(&resource, name).await?.is_none() {
            if Instant::now() > end {
                return Err(Failure::new(
                    format!(
                        "the package manager did not install {name} within {}",
                        duration::tell(time)
                    ),
                    "see what it does with --verbose",
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether the present form of a Deployment runs, and no earlier one.
fn is_available(deployment: &Json) -> bool {
    let status = &deployment["status"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && status["updatedReplicas"] == 1
        && status["availableReplicas"] == 1
}

/// Whether a pod is ready, and not asked to end.
fn is_pod_ready(pod: &Json) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice);
    let mut conditions = conditions.unwrap_or_default().iter();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_earlier_form_that_runs_is_not_the_present_one() {
        let deployment = |observed: i64, updated: i64| {
            json!({
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": observed, "updatedReplicas": updated,
                    "availableReplicas": 1,
                },
            })
        };
        assert!(is_available(&deployment(2, 1)));
        assert!(!is_available(&deployment(1, 1)));
        assert!(!is_available(&deployment(2, 0)));
        assert!(!is_available(&json!({"metadata": {"generation": 1}})));
    }
}
