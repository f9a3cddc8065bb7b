//! A package of the first format as one of today: a Provider with the same definitions.
//!
//! Only Providers bring definitions, so that is what every package becomes. Its controller gets
//! rights on its own kinds, and on Secrets, `ConfigMaps` and events, by being a Provider; what it
//! depends on becomes requests for permissions, and in the stream that installs it dependencies on
//! kinds, which Crossplane does not know. How its Deployment differs from a Provider's goes
//! into a runtime configuration beside the package. What has no place today is told.

use super::{STACK_GROUP, Stack};
use crate::rights::name_plurals;
use serde_json::{Map, Value as Json, json};
use xpkg::label::to_dns_label;

/// How to convert.
#[derive(Clone, Copy, Debug)]
pub struct ConvertOptions<'o> {
    /// The name of the package; made of its title if there is none.
    pub name: Option<&'o str>,
    /// The image of the package, for a controller that is in it.
    pub image: Option<&'o str>,
}

/// A package of today.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertedPackage {
    /// Its name.
    pub name: String,
    /// Files of the package's directory, by path.
    pub files: Vec<(String, Json)>,
    /// The runtime configuration that its Provider refers to.
    pub runtime_config: Json,
    /// What could not be carried over, and what to do about it.
    pub notes: Vec<String>,
}

/// Converts a package.
pub fn convert_stack(stack: &Stack, options: &ConvertOptions<'_>) -> ConvertedPackage {
    let title = stack.app.find_text("title").unwrap_or_default();
    let name = match options.name {
        Some(name) => name.to_owned(),
        None => Some(to_dns_label(&title.replace(' ', "-").to_lowercase()))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "converted-stack".to_owned()),
    };
    let mut notes = Vec::new();
    let image = choose_image(stack, options.image, &mut notes);
    let mut files = vec![("crossplane.yaml".to_owned(), to_metadata(stack, &name, image))];
    for definition in &stack.definitions {
        let path = format!("crds/{}.yaml", definition.name());
        files.push((path, definition.object.clone()));
    }
    let runtime_config = to_runtime_config(stack, &name, &mut notes);
    report_losses(stack, &mut notes);
    ConvertedPackage { name, files, runtime_config, notes }
}

/// The image that runs the Provider.
fn choose_image<'i>(
    stack: &'i Stack,
    own: Option<&'i str>,
    notes: &mut Vec<String>,
) -> Option<&'i str> {
    stack.deployment.as_ref()?;
    let image = stack.controller_image().or(own);
    if image.is_none() {
        notes.push(
            "the controller is in the package's own image, which is not known here: build with \
             --embed-runtime-image IMAGE, or convert the image instead of its directory"
                .to_owned(),
        );
    }
    image
}

fn to_metadata(stack: &Stack, name: &str, image: Option<&str>) -> Json {
    let mut annotations = Map::new();
    let mut annotate = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            annotations.insert(format!("meta.crossplane.io/{key}"), Json::String(value));
        }
    };
    let text = |key: &str| stack.app.find_text(key).map(str::to_owned);
    let facts = super::summary::list_facts(stack);
    annotate("maintainer", facts.maintainer);
    annotate("source", text("source"));
    annotate("license", text("license"));
    annotate("description", text("overviewShort").or_else(|| text("overview")));
    annotate("readme", text("readme").or_else(|| text("overview")));
    for key in ["title", "company", "category", "website"] {
        annotate(key, text(key));
    }
    let keywords = stack.app.spec.get("keywords").and_then(Json::as_array);
    let keywords: Vec<&str> = keywords.into_iter().flatten().filter_map(Json::as_str).collect();
    annotate("keywords", Some(keywords.join(",")));
    if let Some(icon) = stack.icons.first() {
        annotate("iconURI", Some(icon.data_uri()));
    }
    let mut controller = Map::new();
    controller.extend(image.map(|image| ("image".to_owned(), json!(image))));
    let requests: Vec<Json> = stack
        .app
        .requirements
        .iter()
        .map(|one| {
            let resources = name_plurals(&one.name);
            json!({"apiGroups": [one.group], "resources": resources, "verbs": ["*"]})
        })
        .collect();
    if !requests.is_empty() {
        controller.insert("permissionRequests".to_owned(), Json::Array(requests));
    }
    let mut spec = Map::new();
    if !controller.is_empty() {
        spec.insert("controller".to_owned(), Json::Object(controller));
    }
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Provider",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    })
}

/// The Deployment as a template for the runtime of a Provider. Its first container is the package's.
fn to_runtime_config(stack: &Stack, name: &str, notes: &mut Vec<String>) -> Json {
    let spec = match &stack.deployment {
        None => json!({"replicas": 0, "selector": {}, "template": {}}),
        Some(deployment) => carry_deployment(deployment, notes),
    };
    json!({
        "apiVersion": "pkg.crossplane.io/v1beta1",
        "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name},
        "spec": {"deploymentTemplate": {"spec": spec}},
    })
}

fn carry_deployment(deployment: &Json, notes: &mut Vec<String>) -> Json {
    let mut spec = deployment.get("spec").cloned().unwrap_or_default();
    // Selectors and the account are the package manager's to choose.
    spec["selector"] = json!({});
    if let Some(pod) = spec.pointer_mut("/template/spec").and_then(Json::as_object_mut) {
        if pod.shift_remove("serviceAccountName").is_some() {
            notes.push(
                "the pod's serviceAccountName is left out: a Provider has its own".to_owned(),
            );
        }
        let containers = pod.get_mut("containers").and_then(Json::as_array_mut);
        let first = containers.and_then(|all| all.first_mut()).and_then(Json::as_object_mut);
        if let Some(container) = first {
            container.insert("name".to_owned(), json!("package-runtime"));
            container.shift_remove("image");
        }
    }
    let others = spec.pointer("/template/spec/containers").and_then(Json::as_array);
    let has_image = |one: &Json| one["image"].as_str().is_some_and(|image| !image.is_empty());
    if others.is_some_and(|all| all.iter().skip(1).any(|one| !has_image(one))) {
        notes.push(
            "another container of install.yaml has no image: name one in the runtime configuration"
                .to_owned(),
        );
    }
    spec
}

fn report_losses(stack: &Stack, notes: &mut Vec<String>) {
    if stack.deployment.is_none() {
        notes.push(
            "the package runs nothing: its runtime configuration asks for 0 replicas, so that none \
             are started"
                .to_owned(),
        );
    }
    if stack.deployment.is_some() {
        notes.push(
            "a Provider has every right on its own kinds but delete: a controller that deletes \
             objects of them asks for that under spec.controller.permissionRequests"
                .to_owned(),
        );
    }
    if stack.app.scope == Some(crate::PermissionScope::Namespaced) {
        notes.push(
            "permissionScope Namespaced is left out: a Provider's rights hold in the whole cluster"
                .to_owned(),
        );
    }
    for requirement in &stack.app.requirements {
        notes.push(format!(
            "dependsOn crd {requirement} is asked for as a permission, and brings no package: under \
             spec.dependsOn, add `- crd: {requirement}` for apron's manager, or the package that \
             defines it for Crossplane's"
        ));
    }
    if stack.behavior.is_some() {
        notes.push(
            "behavior.yaml is left out: templates are Compositions and Functions today".to_owned(),
        );
    }
    let is_described = |one: &super::OwnedDefinition| {
        let annotations = one.object.pointer("/metadata/annotations").and_then(Json::as_object);
        annotations.is_some_and(|all| all.keys().any(|key| key.starts_with(STACK_GROUP)))
    };
    if stack.definitions.iter().any(is_described) {
        notes.push(format!(
            "titles, icons and ui-schemas stay on definitions as annotations {STACK_GROUP}/…, for \
             readers that know them"
        ));
    }
}
