//! How a package is run: its Deployment as the template of a Provider's runtime.

use super::InstallSettings;
use super::image::from_source;
use super::parties::{Parties, namespace_of};
use api::stacks::PackageInstall;
use oci::Reference;
use serde_json::{Map, Value as Json, json};

/// The container that a Provider's runtime takes for the package's own.
const PACKAGE_CONTAINER: &str = "package-runtime";

/// The runtime configuration of a package. One that runs nothing has a template without pods.
pub(super) fn runtime_config(
    parties: &Parties<'_>,
    (name, image): (&str, &Reference),
    contents: &Json,
    settings: &InstallSettings,
) -> Result<Json, String> {
    let deployment = &contents["spec"]["controller"]["deployment"];
    let spec = match &deployment["spec"] {
        Json::Null => json!({"replicas": 0, "selector": {}, "template": {}}),
        spec => pod_template(spec.clone(), parties.lead, image)?,
    };
    Ok(json!({
        "apiVersion": format!("{}/v1beta1", settings.group),
        "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name, "annotations": parties.annotation()},
        "spec": {"deploymentTemplate": {"spec": spec}},
    }))
}

/// The Deployment as a Provider's runtime starts from it: selectors and the account are chosen there,
/// and the first container is the package's. One without an image has that of the package, by digest.
fn pod_template(mut spec: Json, lead: &PackageInstall, image: &Reference) -> Result<Json, String> {
    spec["selector"] = json!({});
    harden_pods(&mut spec, lead, image);
    let pod = spec.pointer_mut("/template/spec").and_then(Json::as_object_mut);
    let pod = pod.ok_or("install.yaml has no spec.template.spec, so nothing can be run; add it")?;
    for field in ["serviceAccountName", "serviceAccount"] {
        pod.shift_remove(field);
    }
    let containers = pod.get_mut("containers").and_then(Json::as_array_mut);
    let first = containers.and_then(|all| all.first_mut()).and_then(Json::as_object_mut);
    let first = first.ok_or("install.yaml has no container; add one to spec.template.spec")?;
    first.insert("name".to_owned(), json!(PACKAGE_CONTAINER));
    if first.get("image").is_some_and(|it| *it == json!(image.as_written())) {
        first.shift_remove("image");
    }
    if let Some(metadata) = spec.pointer_mut("/template/metadata").and_then(Json::as_object_mut) {
        metadata.shift_remove("name");
    }
    Ok(spec)
}

/// Fills in what an install object says about images, and what every controller is held to: no root,
/// no privileges, and none to be had.
pub(super) fn harden_pods(spec: &mut Json, lead: &PackageInstall, image: &Reference) {
    let names = [("SD_NAMESPACE", namespace_of(lead)), ("SD_NAME", lead.metadata.name.as_str())];
    let Some(Json::Object(pod)) = spec.pointer_mut("/template/spec") else { return };
    if pod.get("securityContext").is_some_and(|it| it["fsGroup"] == json!(0))
        && let Some(Json::Object(security)) = pod.get_mut("securityContext")
    {
        security.shift_remove("fsGroup");
    }
    lay_security(pod, &json!({"runAsNonRoot": true}));
    let confined =
        json!({"allowPrivilegeEscalation": false, "privileged": false, "runAsNonRoot": true});
    for list in ["initContainers", "containers"] {
        let all = pod.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten();
        for container in all.filter_map(Json::as_object_mut) {
            let written = container.get("image").and_then(Json::as_str).unwrap_or_default();
            let used = match written {
                "" => image.as_written().to_owned(),
                other => from_source(lead.spec.source.as_deref(), other),
            };
            container.insert("image".to_owned(), json!(used));
            if let Some(policy) = lead.spec.image_pull_policy.as_ref().filter(|it| !it.is_empty()) {
                container.insert("imagePullPolicy".to_owned(), json!(policy));
            }
            lay_security(container, &confined);
            name_templates(container, &names);
        }
    }
}

/// Tells a templating controller whose templates it fills in, where its arguments ask for that.
fn name_templates(container: &mut Map<String, Json>, names: &[(&str, &str); 2]) {
    let arguments = container.get("args").and_then(Json::as_array).into_iter().flatten();
    let arguments: Vec<&str> = arguments.filter_map(Json::as_str).collect();
    let asked = names.iter().filter(|(name, _)| arguments.contains(&format!("$({name})").as_str()));
    let asked: Vec<Json> =
        asked.map(|(name, value)| json!({"name": name, "value": value})).collect();
    if asked.is_empty() {
        return;
    }
    let variables = container.entry("env".to_owned()).or_insert(Json::Null);
    let mut all = variables.as_array().cloned().unwrap_or_default();
    all.retain(|one| !asked.iter().any(|it| it["name"] == one["name"]));
    all.extend(asked);
    *variables = Json::Array(all);
}

/// Overrules fields of a security context, which is made if there is none.
fn lay_security(map: &mut Map<String, Json>, over: &Json) {
    let mut security = match map.shift_remove("securityContext") {
        Some(Json::Object(security)) => security,
        _ => Map::new(),
    };
    let over = over.as_object().into_iter().flatten();
    security.extend(over.map(|(field, value)| (field.clone(), value.clone())));
    map.insert("securityContext".to_owned(), Json::Object(security));
}
