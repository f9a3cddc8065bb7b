//! Pods as people write them, and what is started for them.

use super::environment::NamedService;
use super::identity::Allowances;
use super::start::{
    RunnableImage, StartContext, StartRefusal, plan_sandbox, plan_start, pod_hostname,
};
use super::volume::{list_sources, refuse_volume, renew_volumes, volume_files};
use super::{PodSources, PodSurroundings, TokenWish, is_label};
use crate::protocol::{ContainerStart, MountSource, ProcessUser, VolumeFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

fn pod(spec: &Value) -> Pod {
    let value = json!({
        "metadata": {
            "name": "p", "namespace": "n", "uid": "u",
            "labels": {"app.kubernetes.io/name": "x", "b": "c"}, "annotations": {"say": "a \"b\""},
        },
        "spec": spec,
    });
    serde_json::from_value(value).unwrap()
}

fn place() -> PodSurroundings {
    PodSurroundings {
        node_name: "apron".to_owned(),
        host_address: Ipv4Addr::new(10, 244, 0, 1),
        address: Ipv4Addr::new(10, 244, 0, 7),
        api: "10.96.0.1:443".parse().unwrap(),
        cpu_milli: 2_000,
        memory: 4 << 30,
    }
}

fn sources() -> PodSources {
    let secret: Secret =
        serde_json::from_value(json!({"data": {"tls.key": "a2V5", "user": "bWU="}})).unwrap();
    let map: ConfigMap = serde_json::from_value(
        json!({"data": {"a.conf": "one", "MODE": "fast"}, "binaryData": {"raw": "AP8="}}),
    )
    .unwrap();
    PodSources {
        secrets: BTreeMap::from([("s".to_owned(), secret)]),
        config_maps: BTreeMap::from([("m".to_owned(), map)]),
        tokens: BTreeMap::from([(TokenWish { audience: None, seconds: 3607 }, "token".to_owned())]),
        services: vec![NamedService {
            name: "my-db".to_owned(),
            address: Ipv4Addr::new(10, 96, 0, 9).into(),
            ports: vec![(Some("sql-in".to_owned()), 5432, "TCP".to_owned())],
        }],
    }
}

fn image() -> RunnableImage {
    let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    RunnableImage {
        rootfs: "/images/x".into(),
        entrypoint: list(&["/entry"]),
        command: list(&["default"]),
        environment: BTreeMap::from([("FROM_IMAGE".to_owned(), "yes".to_owned())]),
        directory: "/home".to_owned(),
        user: "nonroot:nonroot".to_owned(),
    }
}

fn resolve(user: &str) -> Result<ProcessUser, String> {
    let uid = match user.split(':').next().unwrap_or_default() {
        "" => 0,
        "nonroot" => 65532,
        other => other.parse().map_err(|_| format!("unable to find user {other}"))?,
    };
    Ok(ProcessUser { uid, gid: uid, groups: Vec::new() })
}

fn start(spec: &Value) -> Result<ContainerStart, StartRefusal> {
    start_with(spec, &image())
}

fn start_with(spec: &Value, image: &RunnableImage) -> Result<ContainerStart, StartRefusal> {
    start_allowed(spec, image, Allowances::default())
}

fn start_allowed(
    spec: &Value,
    image: &RunnableImage,
    allowances: Allowances,
) -> Result<ContainerStart, StartRefusal> {
    let pod = pod(spec);
    let container = pod.spec.as_ref().unwrap().containers[0].clone();
    let (sources, place) = (sources(), place());
    let logs = Path::new("/logs");
    let context = StartContext { pod: &pod, sources: &sources, place: &place, logs, allowances };
    plan_start(&context, &container, 3, image, &resolve)
}

fn config_refusal(spec: &Value) -> String {
    match start(spec) {
        Err(StartRefusal::Config(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_replaces_all_of_the_images_and_arguments_only_its_command() {
    for (said, expected) in [
        (json!({}), vec!["/entry", "default"]),
        (json!({"args": ["a"]}), vec!["/entry", "a"]),
        (json!({"command": ["/c"]}), vec!["/c"]),
        (
            json!({"command": ["/c"], "args": ["a", "$(WHO)"], "env": [{"name": "WHO", "value": "me"}]}),
            vec!["/c", "a", "me"],
        ),
        (
            json!({"args": ["$(NOBODY) $$(WHO) $(KUBERNETES_SERVICE_PORT)"]}),
            vec!["/entry", "$(NOBODY) $(WHO) 443"],
        ),
    ] {
        let mut container = json!({"name": "c", "image": "i"});
        container.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let started = start(&json!({"containers": [container]})).unwrap();
        assert_eq!(started.process.arguments, expected, "{said}");
        assert_eq!(started.container.attempt, 3);
    }
    let bare = RunnableImage { entrypoint: Vec::new(), command: Vec::new(), ..image() };
    let refused = start_with(&json!({"containers": [{"name": "c"}]}), &bare).unwrap_err();
    assert_eq!(refused, StartRefusal::NoProgram);
}

#[test]
fn variables_come_from_everywhere_and_see_those_before_them() {
    let from = |kind: &str, value: Value| json!({ kind: value });
    let spec = json!({
        "serviceAccountName": "robot",
        "containers": [{
            "name": "c",
            "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "1500m"}},
            "envFrom": [{"prefix": "M_", "configMapRef": {"name": "m"}},
                {"secretRef": {"name": "absent", "optional": true}}],
            "env": [
                {"name": "A", "value": "one"},
                {"name": "B", "value": "$(A)-$(M_MODE)-$(C)"},
                {"name": "C", "value": "late"},
                {"name": "USER_NAME", "valueFrom": from("secretKeyRef", json!({"name": "s", "key": "user"}))},
                {"name": "CONF", "valueFrom": from("configMapKeyRef", json!({"name": "m", "key": "a.conf"}))},
                {"name": "LACKING", "valueFrom": from("secretKeyRef",
                    json!({"name": "s", "key": "none", "optional": true}))},
                {"name": "LABEL", "valueFrom": from("fieldRef",
                    json!({"fieldPath": "metadata.labels['app.kubernetes.io/name']"}))},
                {"name": "IP", "valueFrom": from("fieldRef", json!({"fieldPath": "status.podIP"}))},
                {"name": "NODE", "valueFrom": from("fieldRef", json!({"fieldPath": "spec.nodeName"}))},
                {"name": "ACCOUNT", "valueFrom": from("fieldRef",
                    json!({"fieldPath": "spec.serviceAccountName"}))},
                {"name": "MEMORY", "valueFrom": from("resourceFieldRef",
                    json!({"resource": "limits.memory", "divisor": "1Mi"}))},
                {"name": "CPU", "valueFrom": from("resourceFieldRef", json!({"resource": "requests.cpu"}))},
                {"name": "CORES", "valueFrom": from("resourceFieldRef", json!({"resource": "limits.cpu"}))},
                {"name": "FROM_IMAGE", "value": "no"},
            ],
        }],
    });
    let told = start(&spec).unwrap().process.environment;
    for (name, expected) in [
        ("A", "one"),
        ("B", "one-fast-$(C)"),
        ("M_MODE", "fast"),
        ("USER_NAME", "me"),
        ("CONF", "one"),
        ("LABEL", "x"),
        ("IP", "10.244.0.7"),
        ("NODE", "apron"),
        ("ACCOUNT", "robot"),
        ("MEMORY", "64"),
        ("CPU", "2"),
        ("CORES", "2"),
        ("FROM_IMAGE", "no"),
        ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
        ("KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1"),
        ("MY_DB_SERVICE_PORT_SQL_IN", "5432"),
        ("MY_DB_PORT", "tcp://10.96.0.9:5432"),
        ("HOSTNAME", "p"),
    ] {
        assert_eq!(told.get(name).map(String::as_str), Some(expected), "{name}");
    }
    assert!(!told.contains_key("LACKING") && !told.contains_key("M_raw"));
    let mut quiet = spec;
    quiet["enableServiceLinks"] = json!(false);
    let told = start(&quiet).unwrap().process.environment;
    assert!(!told.contains_key("MY_DB_PORT") && told.contains_key("KUBERNETES_SERVICE_HOST"));
}

#[test]
fn what_is_not_there_is_said_as_the_kubelet_says_it() {
    let of = |from: Value| {
        config_refusal(
            &json!({"containers": [{"name": "c", "env": [{"name": "X", "valueFrom": from}]}]}),
        )
    };
    assert_eq!(of(json!({"secretKeyRef": {"name": "no", "key": "k"}})), "secret \"no\" not found");
    assert_eq!(
        of(json!({"secretKeyRef": {"name": "s", "key": "k"}})),
        "couldn't find key k in Secret n/s"
    );
    assert_eq!(
        of(json!({"configMapKeyRef": {"name": "m", "key": "k"}})),
        "couldn't find key k in ConfigMap n/m"
    );
    let from =
        json!({"containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "no"}}]}]});
    assert_eq!(config_refusal(&from), "configmap \"no\" not found");
    assert_eq!(of(json!({"fieldRef": {"fieldPath": "spec.x"}})), "unsupported fieldPath: spec.x");
}

#[test]
fn programs_run_as_whom_the_pod_says_and_root_is_refused_where_it_was_ruled_out() {
    let spec = |of_pod: Value, own: Value| json!({"securityContext": of_pod, "containers": [{"name": "c", "securityContext": own}]});
    let user = |of_pod: Value, own: Value| start(&spec(of_pod, own)).unwrap().process.user;
    let number = |uid, gid, groups: &[u32]| ProcessUser { uid, gid, groups: groups.to_vec() };
    assert_eq!(user(json!({}), json!({})), number(65532, 65532, &[]));
    assert_eq!(
        user(
            json!({"runAsUser": 2000, "runAsGroup": 2001, "fsGroup": 5, "supplementalGroups": [6]}),
            json!({})
        ),
        number(2000, 2001, &[6, 5])
    );
    assert_eq!(
        user(json!({"runAsUser": 2000}), json!({"runAsUser": 3000})),
        number(3000, 3000, &[])
    );
    let why = config_refusal(&spec(json!({"runAsNonRoot": true}), json!({})));
    assert_eq!(
        why,
        "container has runAsNonRoot and image has non-numeric user (nonroot), cannot verify user is \
         non-root (pod: \"p_n(u)\", container: c)"
    );
    let why = config_refusal(&spec(json!({"runAsUser": 0}), json!({"runAsNonRoot": true})));
    assert_eq!(why, "container's runAsUser breaks non-root policy (pod: \"p_n(u)\", container: c)");
    let rootly = RunnableImage { user: String::new(), ..image() };
    let refused = start_with(&spec(json!({"runAsNonRoot": true}), json!({})), &rootly).unwrap_err();
    assert_eq!(
        refused,
        StartRefusal::Config(
            "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: c)"
                .to_owned()
        )
    );
    let fine = json!({"runAsNonRoot": true, "runAsUser": 2000});
    assert_eq!(user(fine, json!({})), number(2000, 2000, &[]));
}

#[test]
fn what_would_reach_beyond_a_pod_is_refused() {
    for (spec, name) in [
        (json!({"hostNetwork": true, "containers": [{"name": "c"}]}), "hostNetwork"),
        (json!({"hostPID": true, "containers": [{"name": "c"}]}), "hostPID"),
        (
            json!({"shareProcessNamespace": true, "containers": [{"name": "c"}]}),
            "shareProcessNamespace",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
                "containers": [{"name": "c"}]}),
            "net.core.somaxconn",
        ),
        (
            json!({"containers": [{"name": "c", "securityContext": {"privileged": true}}]}),
            "privileged",
        ),
        (
            json!({"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}]}),
            "NET_ADMIN",
        ),
    ] {
        assert!(config_refusal(&spec).contains(name), "{spec}");
    }
    let dropping = json!({"containers": [{"name": "c", "securityContext": {
        "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true}}]});
    assert!(start(&dropping).unwrap().read_only_root);
}

fn files(volume: &Value) -> Result<Vec<(String, u32, String)>, String> {
    let pod = pod(&json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
        "volumes": [volume]}));
    let volume = &pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
    let told = volume_files(&pod, volume, &sources(), &place())?.unwrap();
    let text = |file: VolumeFile| {
        let bytes = STANDARD.decode(file.contents).unwrap();
        (file.path, file.mode, String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(told.into_iter().map(text).collect())
}

#[test]
fn volumes_have_the_files_that_were_asked_for() {
    let file = |path: &str, mode, text: &str| (path.to_owned(), mode, text.to_owned());
    assert_eq!(
        files(&json!({"name": "v", "secret": {"secretName": "s", "defaultMode": 0o400}})),
        Ok(vec![file("tls.key", 0o400, "key"), file("user", 0o400, "me")])
    );
    assert_eq!(
        files(&json!({"name": "v", "configMap": {"name": "m", "items": [
            {"key": "a.conf", "path": "etc/a", "mode": 0o600}]}})),
        Ok(vec![file("etc/a", 0o600, "one")])
    );
    let projected = json!({"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "m", "items": [{"key": "MODE", "path": "mode"}]}},
        {"secret": {"name": "absent", "optional": true}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}},
            {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
        ]}},
    ]}});
    assert_eq!(
        files(&projected),
        Ok(vec![
            file("cpu", 0o644, "1"),
            file("labels", 0o644, "app.kubernetes.io/name=\"x\"\nb=\"c\""),
            file("mode", 0o644, "fast"),
            file("namespace", 0o644, "n"),
            file("notes", 0o644, "say=\"a \\\"b\\\"\""),
            file("token", 0o644, "token"),
        ])
    );
    for (volume, why) in [
        (json!({"secret": {"secretName": "no"}}), "secret \"no\" not found"),
        (json!({"configMap": {"name": "no"}}), "configmap \"no\" not found"),
        (
            json!({"secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}}),
            "references non-existent secret key: k",
        ),
        (
            json!({"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}),
            "references non-existent config key: k",
        ),
        (
            json!({"configMap": {"name": "m", "items": [{"key": "MODE", "path": "../p"}]}}),
            "\"../p\" is not a path inside of the volume",
        ),
    ] {
        let mut volume = volume;
        volume["name"] = json!("v");
        assert_eq!(files(&volume), Err(why.to_owned()));
    }
    assert_eq!(
        files(&json!({"name": "v", "configMap": {"name": "no", "optional": true}})),
        Ok(Vec::new())
    );
}

/// A config map that was deleted kept a pod's token from being renewed, which then ended.
#[test]
fn a_volume_that_cannot_be_made_keeps_no_other_from_being_renewed() {
    let pod = pod(&json!({"containers": [{"name": "c"}], "volumes": [
        {"name": "map", "configMap": {"name": "no"}},
        {"name": "disk", "emptyDir": {}},
        {"name": "machine", "hostPath": {"path": "/"}},
        {"name": "token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]}},
    ]}));
    let spec = pod.spec.clone().unwrap();
    let renewed = renew_volumes(&pod, &spec, &sources(), &place(), Allowances::default());
    let names: Vec<&str> = renewed.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["token"]);
    assert_eq!(
        renewed.failure,
        Some(("map".to_owned(), "configmap \"no\" not found".to_owned())),
        "the first one is told"
    );
}

#[test]
fn mounts_are_made_from_the_outside_in_and_stay_inside() {
    let spec = |mounts: Value| {
        json!({
            "securityContext": {"fsGroup": 3000},
            "volumes": [{"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "s", "secret": {"secretName": "s"}}, {"name": "bare"}],
            "containers": [{"name": "c", "env": [{"name": "SUB", "value": "deep"}], "volumeMounts": mounts}],
        })
    };
    let started = start(&spec(json!([
        {"name": "s", "mountPath": "/a/b/c"}, {"name": "e", "mountPath": "/a", "subPathExpr": "x/$(SUB)"},
        {"name": "bare", "mountPath": "/z/", "readOnly": true},
    ])));
    let mounts = started.unwrap().mounts;
    let told: Vec<_> = mounts.iter().map(|one| (one.target.as_str(), one.read_only)).collect();
    assert_eq!(told, [("/a", false), ("/z/", true), ("/a/b/c", true)]);
    assert_eq!(mounts[0].sub_path.as_deref(), Some("x/deep"));
    let MountSource::Empty { in_memory, size_max, group, .. } = &mounts[0].source else { panic!() };
    assert_eq!((*in_memory, *size_max, *group), (true, Some(1 << 20), Some(3000)));
    for (mount, why) in [
        (json!({"name": "no", "mountPath": "/a"}), "cannot find volume"),
        (json!({"name": "e", "mountPath": "/a", "subPath": "../x"}), "leads out of it"),
        (
            json!({"name": "e", "mountPath": "/a", "subPathExpr": "$(NOT)"}),
            "missing value for \"NOT\"",
        ),
    ] {
        let told = config_refusal(&spec(json!([mount])));
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn volumes_of_other_kinds_are_refused_by_name() {
    let refused = |volume: Value, host_path| {
        refuse_volume(&serde_json::from_value(volume).unwrap(), Allowances { host_path })
    };
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    assert!(refused(claim, true).unwrap().contains("persistentVolumeClaim"));
    let path = json!({"name": "v", "hostPath": {"path": "/etc"}});
    assert!(refused(path.clone(), false).unwrap().contains("--allow-host-path"));
    assert_eq!(refused(path, true), None);
    assert_eq!(refused(json!({"name": "v"}), false), None);
}

#[test]
fn a_path_of_the_machine_is_mounted_only_if_that_is_allowed() {
    let spec = json!({
        "volumes": [{"name": "machine", "hostPath": {"path": "/etc"}}],
        "containers": [{"name": "c", "volumeMounts": [{"name": "machine", "mountPath": "/m"}]}],
    });
    assert!(config_refusal(&spec).contains("--allow-host-path"), "{}", config_refusal(&spec));
    let allowed = start_allowed(&spec, &image(), Allowances { host_path: true }).unwrap();
    assert_eq!(allowed.mounts[0].source, MountSource::Host { path: "/etc".into() });
    let claim = json!({
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/m"}]}],
    });
    assert!(config_refusal(&claim).contains("persistentVolumeClaim"));
}

#[test]
fn names_that_would_lead_elsewhere_are_refused() {
    for name in ["c", "my-container-2", "0"] {
        assert!(is_label(name), "{name}");
        assert_eq!(
            start(&json!({"containers": [{"name": name}]})).unwrap().logs,
            Path::new("/logs").join(name)
        );
    }
    let long = "a".repeat(64);
    for name in ["/etc/x", "..", "../..", ".", "", "a/b", "A", "a.b", "-a", "a-", "a\0", &long] {
        assert!(!is_label(name), "{name}");
        let why = config_refusal(&json!({"containers": [{"name": name}]}));
        assert_eq!(why, format!("{name:?} cannot be the name of a container"));
        let volume = serde_json::from_value(json!({"name": name})).unwrap();
        let why = refuse_volume(&volume, Allowances { host_path: true }).unwrap();
        assert_eq!(why, format!("{name:?} cannot be the name of a volume"));
    }
}

#[test]
fn everything_a_pod_refers_to_is_fetched() {
    let pod = pod(&json!({
        "volumes": [
            {"name": "a", "secret": {"secretName": "one"}}, {"name": "b", "configMap": {"name": "two"}},
            {"name": "c", "projected": {"sources": [{"secret": {"name": "three"}},
                {"serviceAccountToken": {"path": "t", "audience": "vault"}}]}},
        ],
        "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "four"}}]}],
        "containers": [{"name": "c", "env": [
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "five", "key": "k"}}}]}],
    }));
    let names = list_sources(pod.spec.as_ref().unwrap());
    assert_eq!(names.secrets.into_iter().collect::<Vec<_>>(), ["four", "one", "three"]);
    assert_eq!(names.config_maps.into_iter().collect::<Vec<_>>(), ["five", "two"]);
    let vault = TokenWish { audience: Some("vault".to_owned()), seconds: 3_600 };
    assert_eq!(names.tokens.into_iter().collect::<Vec<_>>(), [vault]);
}

#[test]
fn a_pod_has_a_name_and_knows_others_by_it() {
    let long = "a".repeat(62) + "-rest";
    let mut named = pod(&json!({"containers": [], "hostAliases": [
        {"ip": "10.0.0.1", "hostnames": ["x", "y"]}, {"ip": "1\n2", "hostnames": ["evil"]}]}));
    named.metadata.name = Some(long);
    assert_eq!(pod_hostname(&named), "a".repeat(62));
    let sandbox = plan_sandbox(&named, Ipv4Addr::new(10, 244, 0, 7));
    assert_eq!(sandbox.hosts, ["10.0.0.1\tx\ty"]);
}
