//! The Deployment that runs a package, built up in layers; what comes later wins.
//!
//! 1. The runtime configuration's template, as it is.
//! 2. The container `package-runtime`, first among the containers.
//! 3. What is filled in where the template says nothing: name, replicas, security, account.
//! 4. What is ours to say: namespace, owner, selector, pull secrets and policy, certificates, the
//!    environment and ports that packages count on.
//! 5. The image: the package's own, by digest, unless the template names another.
//! 6. The controller configuration, where there is one.
//!
//! A name that two layers use for a variable, a volume, a mount or a port is there once, and means
//! what the later one says.

use super::config::{Chosen, Names};
use super::objects::{PORT, mark, metadata, pod_labels, references, replace};
use super::{World, config};
use crate::package::pull::Policy;
use api::pkg::controller_config::{ControllerConfig, ControllerConfigSpec};
use api::pkg::{LABEL_FUNCTION, LABEL_PROVIDER, LABEL_REVISION};
use oci::{Identifier, Reference, Rules};
use serde_json::{Map, Value as Json, json};

/// The container that runs the package.
pub(super) const CONTAINER: &str = "package-runtime";
/// The annotation of pods that changes when their certificates do, so that they start anew.
pub(super) const ANNOTATION_CERTIFICATES: &str = "pkg.crossplane.io/certificates";
const METRICS_PORT: u64 = 8080;

/// The Deployment of a revision. `certificates` tells one state of its certificates from another.
pub(super) fn deployment(
    world: &World,
    chosen: &Chosen<'_>,
    names: &Names,
    certificates: Option<&str>,
) -> Result<Json, String> {
    let template = chosen.runtime.and_then(|config| config.spec.as_ref());
    let template = template.and_then(|spec| spec.deployment_template.as_ref());
    let meta = template.and_then(|template| template.metadata.as_ref());
    let spec = template.and_then(|template| template.spec.as_ref());
    let spec = spec.map(|spec| spec.0.clone()).unwrap_or_default();
    let mut build = Build::from(without_nulls(spec));
    build.defaults(names);
    build.ours(world, chosen);
    if let Some(certificates) = certificates {
        let mut annotations = Map::new();
        annotations.insert(ANNOTATION_CERTIFICATES.to_owned(), json!(certificates));
        extend(&mut build.pod_metadata, "annotations", annotations);
    }
    if build.container.get("image").and_then(Json::as_str).unwrap_or_default().is_empty() {
        build.container.insert("image".to_owned(), json!(image(world)?));
    }
    let mut metadata = metadata(world, &names.deployment, meta);
    if let Some(controller) = chosen.controller {
        replace(&mut metadata, "labels", &controller.metadata.labels);
        replace(&mut metadata, "annotations", &controller.metadata.annotations);
        mark(world, &mut metadata);
        build.override_by(controller);
    }
    if world.is_awaiting_activation() {
        build.spec.insert("replicas".to_owned(), json!(0));
    }
    let spec = build.finish();
    Ok(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}))
}

/// The image to run: the package's, pinned to the bytes that were installed, or the one that an
/// old package names instead.
fn image(world: &World) -> Result<String, String> {
    let package = world.package.as_ref().ok_or("the package is not at hand")?;
    let written =
        package.image.as_deref().unwrap_or_else(|| config::resolved_image(&world.revision));
    let rules = Rules::weak().default_registry(&world.settings.default_registry);
    let what = if world.is_function() { "function" } else { "provider" };
    if written.starts_with("git+") {
        return Err(format!(
            "a {what} from Git has no image to run; name one in spec.controller.image of its \
             crossplane.yaml, or push a package with a runtime to a registry"
        ));
    }
    let reference = Reference::parse(written, &rules)
        .map_err(|error| format!("cannot parse {what} package image: {error}"))?;
    let is_own = package.image.is_none();
    Ok(match reference.identifier() {
        Identifier::Tag(tag) if is_own => {
            format!("{}:{tag}@{}", reference.repository(), package.digest)
        }
        _ => reference.name(),
    })
}

/// A Deployment's spec, taken apart.
struct Build {
    spec: Map<String, Json>,
    pod_metadata: Map<String, Json>,
    pod: Map<String, Json>,
    container: Map<String, Json>,
    others: Vec<Json>,
}

impl From<Map<String, Json>> for Build {
    fn from(mut spec: Map<String, Json>) -> Self {
        let mut template = take(&mut spec, "template");
        let pod_metadata = take(&mut template, "metadata");
        let mut pod = take(&mut template, "spec");
        let mut others = match pod.shift_remove("containers") {
            Some(Json::Array(containers)) => containers,
            _ => Vec::new(),
        };
        let at = others.iter().position(|container| container["name"] == CONTAINER);
        let mut container = match at.map(|at| others.remove(at)) {
            Some(Json::Object(container)) => container,
            _ => Map::new(),
        };
        container.insert("name".to_owned(), json!(CONTAINER));
        Self { spec, pod_metadata, pod, container, others }
    }
}

impl Build {
    /// What is said where the template says nothing.
    fn defaults(&mut self, names: &Names) {
        let pod_security = json!({"runAsNonRoot": true, "runAsUser": 2000, "runAsGroup": 2000});
        let security = json!({
            "runAsUser": 2000, "runAsGroup": 2000, "allowPrivilegeEscalation": false,
            "privileged": false, "runAsNonRoot": true,
        });
        or_insert(&mut self.spec, "replicas", json!(1));
        or_insert(&mut self.pod, "securityContext", pod_security);
        or_insert(&mut self.container, "imagePullPolicy", json!("IfNotPresent"));
        or_insert(&mut self.container, "securityContext", security);
        or_insert(&mut self.pod, "serviceAccountName", json!(names.account));
    }

    /// What is ours to say.
    fn ours(&mut self, world: &World, chosen: &Chosen<'_>) {
        let labels = pod_labels(world);
        let mut selector = take(&mut self.spec, "selector");
        selector.insert("matchLabels".to_owned(), Json::Object(labels.clone()));
        self.spec.insert("selector".to_owned(), Json::Object(selector));
        extend(&mut self.pod_metadata, "labels", labels);
        let spec = &world.revision.spec;
        let secrets = spec.package_pull_secrets.iter().flatten();
        let secrets = secrets.filter_map(|one| one.name.as_deref());
        self.pod.insert(
            "imagePullSecrets".to_owned(),
            json!(references(secrets.chain(chosen.pull_secret))),
        );
        let policy = spec.package_pull_policy.as_ref();
        if let Some(policy) = policy.filter(|policy| Policy::known(policy).is_some()) {
            self.container.insert("imagePullPolicy".to_owned(), json!(policy));
        }
        self.port("metrics", METRICS_PORT);
        self.certificates(spec.tls_client_secret_name.as_deref(), "client");
        self.certificates(spec.tls_server_secret_name.as_deref(), "server");
        if world.is_function() {
            self.port("grpc", u64::from(PORT));
            self.variable(&from_label("FUNCTION_NAME", LABEL_FUNCTION));
        } else {
            self.variable(&from_field("POD_NAMESPACE", "metadata.namespace"));
            self.variable(&from_label("PROVIDER_NAME", LABEL_PROVIDER));
        }
        self.variable(&from_label("REVISION_NAME", LABEL_REVISION));
        let uid = world.revision.metadata.uid.clone().unwrap_or_default();
        self.variable(&json!({"name": "REVISION_UID", "value": uid}));
        if !world.is_function() {
            self.scraped();
            if spec.tls_server_secret_name.is_some() {
                self.port("webhook", u64::from(PORT));
                let directory = "$(TLS_SERVER_CERTS_DIR)";
                self.variable(&json!({"name": "WEBHOOK_TLS_CERT_DIR", "value": directory}));
            }
        }
    }

    /// Shows a Secret with certificates to the container.
    fn certificates(&mut self, secret: Option<&str>, whose: &str) {
        let Some(secret) = secret else { return };
        let (volume, directory) = (format!("tls-{whose}-certs"), format!("/tls/{whose}"));
        let items: Vec<Json> = ["tls.crt", "tls.key", "ca.crt"]
            .iter()
            .map(|file| json!({"key": file, "path": file}))
            .collect();
        let source = json!({"name": volume, "secret": {"secretName": secret, "items": items}});
        put(&mut self.pod, "volumes", "name", source);
        let mount = json!({"name": volume, "readOnly": true, "mountPath": directory});
        put(&mut self.container, "volumeMounts", "mountPath", mount);
        let name = format!("TLS_{}_CERTS_DIR", whose.to_uppercase());
        self.variable(&json!({"name": name, "value": directory}));
    }

    fn variable(&mut self, variable: &Json) {
        put(&mut self.container, "env", "name", variable.clone());
    }

    /// Opens a port, unless there is one of that name or that number already.
    fn port(&mut self, name: &str, number: u64) {
        let mut ports = take_list(&mut self.container, "ports");
        let is_there = ports.iter().any(|port| {
            let is_tcp = port["protocol"].as_str().is_none_or(|protocol| protocol == "TCP");
            port["name"] == name || (is_tcp && port["containerPort"] == number)
        });
        if !is_there {
            ports.push(json!({"name": name, "containerPort": number}));
        }
        self.container.insert("ports".to_owned(), Json::Array(ports));
    }

    /// Lets metrics be collected, unless the template says something about that.
    fn scraped(&mut self) {
        let ports = self.container.get("ports").and_then(Json::as_array).into_iter().flatten();
        let port = ports.into_iter().find(|port| port["name"] == "metrics");
        let port = port.and_then(|port| port["containerPort"].as_u64()).unwrap_or(METRICS_PORT);
        let mut annotations = take(&mut self.pod_metadata, "annotations");
        if !annotations.contains_key("prometheus.io/scrape") {
            for (key, value) in
                [("scrape", "true"), ("port", &port.to_string()), ("path", "/metrics")]
            {
                annotations.insert(format!("prometheus.io/{key}"), json!(value));
            }
        }
        self.pod_metadata.insert("annotations".to_owned(), Json::Object(annotations));
    }

    /// The last word: what a controller configuration says.
    fn override_by(&mut self, config: &ControllerConfig) {
        let Some(spec) = &config.spec else { return };
        if let Some(meta) = &spec.metadata {
            // Its annotations take the place of ours, but pods still start anew when they must.
            let certificates = self.pod_metadata.get("annotations");
            let certificates =
                certificates.and_then(|found| found.get(ANNOTATION_CERTIFICATES)).cloned();
            let mut annotations: Map<String, Json> = meta
                .annotations
                .iter()
                .flatten()
                .map(|(key, one)| (key.clone(), json!(one)))
                .collect();
            if let Some(certificates) = certificates {
                annotations.insert(ANNOTATION_CERTIFICATES.to_owned(), certificates);
            }
            self.pod_metadata.insert("annotations".to_owned(), Json::Object(annotations));
            let labels = meta.labels.iter().flatten();
            let labels = labels.map(|(key, one)| (key.clone(), json!(one))).collect();
            extend(&mut self.pod_metadata, "labels", labels);
        }
        if let Some(replicas) = spec.replicas {
            self.spec.insert("replicas".to_owned(), json!(replicas));
        }
        for (key, value) in pod_overrides(spec) {
            self.pod.insert(key.to_owned(), value);
        }
        for (key, value) in container_overrides(spec) {
            self.container.insert(key.to_owned(), value);
        }
        let each = |list: &Option<api::wire::OpaqueList>| -> Vec<Json> {
            list.iter().flat_map(|list| &list.0).map(|one| Json::Object(one.0.clone())).collect()
        };
        for variable in each(&spec.env) {
            self.variable(&variable);
        }
        for volume in each(&spec.volumes) {
            put(&mut self.pod, "volumes", "name", volume);
        }
        for mount in each(&spec.volume_mounts) {
            put(&mut self.container, "volumeMounts", "mountPath", mount);
        }
    }

    fn finish(mut self) -> Json {
        let mut containers = vec![Json::Object(self.container)];
        containers.append(&mut self.others);
        self.pod.insert("containers".to_owned(), Json::Array(containers));
        let template = json!({"metadata": self.pod_metadata, "spec": self.pod});
        self.spec.insert("template".to_owned(), template);
        let mut spec = Json::Object(self.spec);
        drop_empty(
            &mut spec,
            &["/template/spec/imagePullSecrets", "/template/metadata/annotations"],
        );
        spec
    }
}

/// What a controller configuration says about the pod.
fn pod_overrides(spec: &ControllerConfigSpec) -> Vec<(&'static str, Json)> {
    let mut said = Vec::new();
    let mut say = |key, value: Option<Json>| said.extend(value.map(|value| (key, value)));
    say("nodeSelector", spec.node_selector.as_ref().map(|one| json!(one)));
    say("serviceAccountName", spec.service_account_name.as_ref().map(|one| json!(one)));
    say("nodeName", spec.node_name.as_ref().map(|one| json!(one)));
    say("securityContext", spec.pod_security_context.as_ref().map(|one| json!(one)));
    let secrets = spec.image_pull_secrets.as_ref().filter(|list| !list.is_empty());
    say("imagePullSecrets", secrets.map(|one| json!(one)));
    say("affinity", spec.affinity.as_ref().map(|one| json!(one)));
    let tolerations = spec.tolerations.as_ref().filter(|list| !list.0.is_empty());
    say("tolerations", tolerations.map(|one| json!(one)));
    say("priorityClassName", spec.priority_class_name.as_ref().map(|one| json!(one)));
    say("runtimeClassName", spec.runtime_class_name.as_ref().map(|one| json!(one)));
    said
}

/// What it says about the container.
fn container_overrides(spec: &ControllerConfigSpec) -> Vec<(&'static str, Json)> {
    let mut said = Vec::new();
    let mut say = |key, value: Option<Json>| said.extend(value.map(|value| (key, value)));
    say("image", spec.image.as_ref().map(|one| json!(one)));
    say("imagePullPolicy", spec.image_pull_policy.as_ref().map(|one| json!(one)));
    let ports = spec.ports.as_ref().filter(|list| !list.0.is_empty());
    say("ports", ports.map(|one| json!(one)));
    say("securityContext", spec.security_context.as_ref().map(|one| json!(one)));
    say("resources", spec.resources.as_ref().map(|one| json!(one)));
    say("args", spec.args.as_ref().filter(|list| !list.is_empty()).map(|one| json!(one)));
    let env_from = spec.env_from.as_ref().filter(|list| !list.0.is_empty());
    say("envFrom", env_from.map(|one| json!(one)));
    said
}

fn from_field(name: &str, path: &str) -> Json {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn from_label(name: &str, label: &str) -> Json {
    from_field(name, &format!("metadata.labels['{label}']"))
}

/// Takes an object out of a field; what is no object is as good as none.
fn take(from: &mut Map<String, Json>, key: &str) -> Map<String, Json> {
    match from.shift_remove(key) {
        Some(Json::Object(found)) => found,
        _ => Map::new(),
    }
}

fn or_insert(map: &mut Map<String, Json>, key: &str, value: Json) {
    if map.get(key).is_none_or(|found| found == "") {
        map.insert(key.to_owned(), value);
    }
}

fn extend(map: &mut Map<String, Json>, key: &str, with: Map<String, Json>) {
    let mut found = take(map, key);
    found.extend(with);
    map.insert(key.to_owned(), Json::Object(found));
}

/// The list in a field, to be put back.
fn take_list(map: &mut Map<String, Json>, key: &str) -> Vec<Json> {
    match map.shift_remove(key) {
        Some(Json::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Appends an item to a list, and takes out the one that it takes the place of.
fn put(map: &mut Map<String, Json>, key: &str, name: &str, item: Json) {
    let mut list = take_list(map, key);
    list.retain(|one| one[name] != item[name]);
    list.push(item);
    map.insert(key.to_owned(), Json::Array(list));
}

/// Fields that say nothing are as good as not there.
fn without_nulls(map: Map<String, Json>) -> Map<String, Json> {
    let kept = map.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| (key, prune_nulls(value))).collect()
}

/// A value without fields that say nothing.
pub(crate) fn prune_nulls(value: Json) -> Json {
    match value {
        Json::Object(map) => Json::Object(without_nulls(map)),
        Json::Array(items) => items.into_iter().map(prune_nulls).collect(),
        other => other,
    }
}

fn drop_empty(spec: &mut Json, paths: &[&str]) {
    for path in paths {
        let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(Json::Object(parent)) = spec.pointer_mut(parent) else { continue };
        let is_empty = match parent.get(last) {
            Some(Json::Array(items)) => items.is_empty(),
            Some(Json::Object(fields)) => fields.is_empty(),
            _ => false,
        };
        if is_empty {
            parent.shift_remove(last);
        }
    }
}
