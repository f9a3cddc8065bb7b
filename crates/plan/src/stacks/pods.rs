//! What the pods of a package may be: a Deployment out of a package runs beside the manager, so it
//! gets nothing that a Provider's could not have. What is beyond that is refused, and never left out.

use serde_json::Value as Json;

const POD_FIELDS: [&str; 12] = [
    "affinity",
    "containers",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "restartPolicy",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumes",
];
const CONTAINER_FIELDS: [&str; 17] = [
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeMounts",
    "workingDir",
];
/// Volumes that lead nowhere.
const VOLUME_FIELDS: [&str; 3] = ["downwardAPI", "emptyDir", "name"];
/// Where variables may come from: what the pod itself says.
const VARIABLE_SOURCES: [&str; 2] = ["fieldRef", "resourceFieldRef"];
/// What the manager overrules, or what only takes rights away.
const SECURITY_FIELDS: [&str; 10] = [
    "allowPrivilegeEscalation",
    "fsGroup",
    "fsGroupChangePolicy",
    "privileged",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seccompProfile",
    "supplementalGroups",
];

/// Refuses pods that reach beyond themselves, with the path of what does.
pub(super) fn check_pods(spec: &Json) -> Result<(), String> {
    let pod = &spec["template"]["spec"];
    let place = "spec.template.spec";
    let beyond = find_pod(pod).map(|path| format!("{place}.{path}"));
    beyond.map_or(Ok(()), |path| {
        Err(format!(
            "install.yaml has {path}, which reaches beyond the package's own pods; remove it, or turn \
             the package into a Provider with `apron convert`, and say it in a runtime configuration"
        ))
    })
}

fn find_pod(pod: &Json) -> Option<String> {
    let unknown = beyond(pod, &POD_FIELDS);
    let security = || within("securityContext", beyond(&pod["securityContext"], &SECURITY_FIELDS));
    let volumes = || each(pod, "volumes", |one| beyond(one, &VOLUME_FIELDS));
    let containers = || {
        ["initContainers", "containers"]
            .into_iter()
            .find_map(|list| each(pod, list, find_container))
    };
    unknown.or_else(security).or_else(volumes).or_else(containers)
}

fn find_container(container: &Json) -> Option<String> {
    let variable = |one: &Json| within("valueFrom", beyond(&one["valueFrom"], &VARIABLE_SOURCES));
    let port = |one: &Json| one.get("hostPort").map(|_| "hostPort".to_owned());
    let security = &container["securityContext"];
    let capabilities = &security["capabilities"];
    beyond(container, &CONTAINER_FIELDS)
        .or_else(|| each(container, "env", variable))
        .or_else(|| each(container, "ports", port))
        .or_else(|| within("securityContext.capabilities", beyond(capabilities, &["drop"])))
        .or_else(|| {
            let known = [&SECURITY_FIELDS[..], &["capabilities"]].concat();
            within("securityContext", beyond(security, &known))
        })
}

/// The first field of an object that is none of these.
fn beyond(object: &Json, known: &[&str]) -> Option<String> {
    let mut fields = object.as_object().into_iter().flatten();
    let unknown =
        |(field, value): &(&String, &Json)| !value.is_null() && !known.contains(&field.as_str());
    fields.find(unknown).map(|(field, _)| field.clone())
}

fn within(field: &str, found: Option<String>) -> Option<String> {
    found.map(|found| format!("{field}.{found}"))
}

/// The first finding in a list of an object, with its place there.
fn each(object: &Json, list: &str, find: impl Fn(&Json) -> Option<String>) -> Option<String> {
    let mut items = object[list].as_array().into_iter().flatten().enumerate();
    items.find_map(|(at, one)| within(&format!("{list}[{at}]"), find(one)))
}
