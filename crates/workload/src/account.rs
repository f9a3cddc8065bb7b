//! What a pod gets with its service account: the account's name, its secrets for registries, and
//! a volume with a token for the API server.

use schema::object::map_at;
use serde_json::{Value, json};

/// Where programs look for their token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the names of volumes with tokens begin with.
const VOLUME_PREFIX: &str = "kube-api-access-";
/// How long the token is good for: an hour, and a little so that it is known as this one.
const TOKEN_SECONDS: u64 = 3607;
/// The account of pods that ask for none.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The name of the account that a pod runs as.
pub fn account_name(pod: &Value) -> &str {
    match asked_account(pod.get("spec").unwrap_or(&Value::Null)) {
        "" => DEFAULT_ACCOUNT,
        name => name,
    }
}

/// The account that the specification of a pod asks for, or nothing. `serviceAccount` is the older
/// name of `serviceAccountName`, which wins.
fn asked_account(spec: &Value) -> &str {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("serviceAccountName") {
        "" => text("serviceAccount"),
        name => name,
    }
}

/// Gives a pod what comes with its account; `suffix` makes the volume's name unlike others.
pub fn equip_pod(pod: &mut Value, account: &Value, suffix: &str) {
    let name = account_name(pod).to_owned();
    let spec = map_at(pod, "spec");
    spec.insert("serviceAccountName".to_owned(), json!(name));
    spec.insert("serviceAccount".to_owned(), json!(name));
    if spec.get("imagePullSecrets").is_none_or(|list| list == &json!([]))
        && let Some(secrets) = account.get("imagePullSecrets")
    {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone());
    }
    let said = |of: &Value| of.get("automountServiceAccountToken").and_then(Value::as_bool);
    let wished = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    if wished.or_else(|| said(account)) != Some(false) {
        mount_token(pod, &format!("{VOLUME_PREFIX}{suffix}"));
    }
}

fn mount_token(pod: &mut Value, suffixed: &str) {
    // A pod that was copied from another has the volume, and new containers share it.
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let mut names = volumes.into_iter().flatten().filter_map(|one| one["name"].as_str());
    let there = names.find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let volume = there.as_deref().unwrap_or(suffixed);
    let mut is_used = false;
    for list in ["containers", "initContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|one| one.is_object()) {
            let mounts = container.get("volumeMounts").and_then(Value::as_array);
            let mut mounts = mounts.cloned().unwrap_or_default();
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
            container["volumeMounts"] = json!(mounts);
            is_used = true;
        }
    }
    if !is_used || there.is_some() {
        return;
    }
    let volumes = map_at(pod, "spec").entry("volumes").or_insert_with(|| json!([]));
    if let Value::Array(volumes) = volumes {
        volumes.push(token_volume(volume));
    }
}

fn token_volume(name: &str) -> Value {
    let namespace = json!({
        "path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    });
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_gets_a_token_where_programs_look_for_it() {
        let mut pod = json!({"spec": {"containers": [{"name": "c"}]}});
        equip_pod(&mut pod, &json!({"imagePullSecrets": [{"name": "s"}]}), "abcde");
        assert_eq!(pod["spec"]["serviceAccountName"], "default");
        assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "s");
        assert_eq!(pod["spec"]["volumes"][0]["name"], "kube-api-access-abcde");
        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], MOUNT_PATH);
    }

    #[test]
    fn an_account_is_known_by_its_older_field_too() {
        let name = |spec: Value| account_name(&json!({"spec": spec})).to_owned();
        assert_eq!(name(json!({})), "default");
        assert_eq!(name(json!({"serviceAccount": "old"})), "old");
        assert_eq!(name(json!({"serviceAccount": "old", "serviceAccountName": ""})), "old");
        assert_eq!(name(json!({"serviceAccount": "old", "serviceAccountName": "new"})), "new");
    }

    #[test]
    fn a_copied_pod_keeps_its_volume_and_another_container_shares_it() {
        let mut pod = json!({"spec": {
            "volumes": [{"name": "kube-api-access-first"}],
            "containers": [{"volumeMounts": [{"mountPath": MOUNT_PATH}]}, {"name": "new"}],
        }});
        equip_pod(&mut pod, &json!({}), "other");
        assert_eq!(pod["spec"]["volumes"].as_array().map(Vec::len), Some(1));
        let mount = &pod["spec"]["containers"][1]["volumeMounts"][0];
        assert_eq!(mount["name"], "kube-api-access-first");
    }

    #[test]
    fn a_token_is_not_pressed_on_a_pod() {
        for (pod, account) in [
            (
                json!({"spec": {"automountServiceAccountToken": false, "containers": [{}]}}),
                json!({}),
            ),
            (json!({"spec": {"containers": [{}]}}), json!({"automountServiceAccountToken": false})),
            (
                json!({"spec": {"containers": [{"volumeMounts": [{"mountPath": MOUNT_PATH}]}]}}),
                json!({}),
            ),
        ] {
            let mut given = pod.clone();
            equip_pod(&mut given, &account, "abcde");
            assert_eq!(given.pointer("/spec/volumes"), None, "{pod}");
        }
    }
}
