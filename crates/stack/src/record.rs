//! The object that a cluster keeps about an installed package: a `Package`, or, if the package fills
//! in templates, a `StackDefinition`.

use super::app::VersionTag;
use super::rights::list_rules;
use super::{STACK_API_VERSION, Stack};
use serde_json::{Map, Value as Json, json};

/// What the record says beyond the package's own files.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions<'o> {
    /// The name of the object; an install object gives it its own.
    pub name: Option<&'o str>,
    /// The image of the package, for containers that name none.
    pub image: Option<&'o str>,
    /// The tag it came from.
    pub tag: VersionTag<'o>,
}

impl Stack {
    /// The record of this package.
    pub fn to_record(&self, options: &RecordOptions<'_>) -> Json {
        let mut spec = self.app.spec.clone();
        if let Some(version) = self.app.choose_version(options.tag) {
            spec.insert("version".to_owned(), Json::String(version));
        }
        let icons = self.icons.iter();
        let icons: Vec<Json> = icons
            .map(|icon| json!({"base64data": icon.base64_data(), "mediatype": icon.media_type()}))
            .collect();
        if !icons.is_empty() {
            spec.insert("icons".to_owned(), Json::Array(icons));
        }
        let owned = self.definitions.iter().map(|one| {
            json!({"apiVersion": format!("{}/{}", one.group, one.storage_version), "kind": one.kind})
        });
        spec.insert("customresourcedefinitions".to_owned(), owned.collect());
        let rules = list_rules(&self.definitions, &self.app.requirements);
        spec.insert("permissions".to_owned(), json!({"rules": rules}));
        if let Some(deployment) = self.controller_deployment(options.image) {
            spec.insert("controller".to_owned(), json!({"deployment": deployment}));
        }
        let mut kind = "Package";
        if let Some(behavior) = &self.behavior {
            spec.insert("behavior".to_owned(), fill_behavior(behavior, options.image));
            kind = "StackDefinition";
        }
        let mut metadata = Map::new();
        metadata.extend(options.name.map(|name| ("name".to_owned(), json!(name))));
        json!({"apiVersion": STACK_API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
    }

    /// What the record says of the Deployment, images filled in.
    fn controller_deployment(&self, image: Option<&str>) -> Option<Json> {
        if let Some(behavior) = &self.behavior {
            let behavior = fill_behavior(behavior, image);
            return Some(json!({"name": "", "spec": template_controller(&behavior)}));
        }
        let deployment = self.deployment.as_ref()?;
        let name = deployment.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
        let mut spec = deployment.get("spec").cloned().unwrap_or_default();
        if let Some(image) = image {
            fill_images(&mut spec, image);
        }
        Some(json!({"name": name, "spec": spec}))
    }
}

/// Gives containers without an image that of the package.
fn fill_images(spec: &mut Json, image: &str) {
    for containers in ["containers", "initContainers"] {
        let path = format!("/template/spec/{containers}");
        let all = spec.pointer_mut(&path).and_then(Json::as_array_mut).into_iter().flatten();
        for container in all.filter_map(Json::as_object_mut) {
            if container.get("image").and_then(Json::as_str).unwrap_or_default().is_empty() {
                container.insert("image".to_owned(), json!(image));
            }
        }
    }
}

fn fill_behavior(behavior: &Json, image: Option<&str>) -> Json {
    let mut behavior = behavior.clone();
    let named = behavior.pointer("/source/image").and_then(Json::as_str).unwrap_or_default();
    if let (true, Some(image)) = (named.is_empty(), image) {
        behavior["source"]["image"] = json!(image);
    }
    behavior
}

/// The Deployment of a controller that fills in templates: they are copied out of their image first.
fn template_controller(behavior: &Json) -> Json {
    let text = |path: &str| behavior.pointer(path).and_then(Json::as_str).unwrap_or_default();
    let from = format!("{}/.", text("/source/path").trim_end_matches('/'));
    let mount = json!([{"name": "behaviors", "mountPath": "/behaviors"}]);
    let arguments = [
        "--resources-dir",
        "/behaviors",
        "--stack-definition-namespace",
        "$(SD_NAMESPACE)",
        "--stack-definition-name",
        "$(SD_NAME)",
    ];
    let copy = json!({
        "name": "package-behavior-copy-to-manager",
        "image": text("/source/image"),
        "command": ["cp", "-R", from, "/behaviors"],
        "volumeMounts": mount,
    });
    let manage = json!({
        "name": "package-behavior-manager",
        "image": text("/engine/controllerImage"),
        "args": arguments,
        "volumeMounts": mount,
    });
    json!({
        "selector": {"matchLabels": {}},
        "template": {"spec": {
            "restartPolicy": "Always",
            "initContainers": [copy],
            "containers": [manage],
            "volumes": [{"name": "behaviors", "emptyDir": {}}],
        }},
    })
}

/// Objects as a stream of YAML documents.
pub fn write_documents(objects: &[Json]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&yaml::write::to_string(object));
    }
    text
}
