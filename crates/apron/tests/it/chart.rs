//! The chart, by a real Helm on both servers; and the manager with no more rights than the chart
//! gives it.

use crate::control_plane::Asked;
use crate::kubectl::plane::{Ours, Real, peer};
use crate::recorder::{Deed, Recorder};
use crate::registry::{Served, ask};
use crate::support::{Ran, Scratch, apron, command, patiently, until};
use kube::config::Kubeconfig;
use serde_json::{Value as Json, json};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Not the usual one, so that nothing works by chance.
const NAMESPACE: &str = "planes";
/// The usual one.
const USUAL: &str = "crossplane-system";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/apron")
}

fn helm(scratch: &Scratch, kubeconfig: Option<&Path>, words: &[&str]) -> Ran {
    let mut command = Command::new(peer("helm"));
    command.args(words).env("HOME", scratch.path()).env_remove("KUBECONFIG");
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    Ran::from(command.output().unwrap())
}

/// What Helm makes of the chart, without what only Helm says.
fn rendered(scratch: &Scratch, namespace: &str, words: &[&str]) -> Vec<Json> {
    let chart = chart();
    let first = ["template", "apron", chart.to_str().unwrap(), "--namespace", namespace];
    let image = ["--set", "image.repository=registry.example.org/apron"];
    let words: Vec<&str> = first.iter().chain(&image).chain(words).copied().collect();
    let text = helm(scratch, None, &words).ok().stdout;
    let documents = text.split("\n---\n").filter(|text| text.contains("apiVersion:"));
    let read = |text: &str| -> Json { serde_saphyr::from_str(text).unwrap() };
    documents.map(|text| without_helm(read(text))).collect()
}

fn without_helm(mut object: Json) -> Json {
    let of_pods = object["spec"]["template"].is_object();
    let places: &[&str] = if of_pods {
        &["/metadata/labels", "/spec/template/metadata/labels"]
    } else {
        &["/metadata/labels"]
    };
    for place in places {
        let labels = object.pointer_mut(place).and_then(Json::as_object_mut).unwrap();
        assert_eq!(labels.remove("app.kubernetes.io/managed-by"), Some(json!("Helm")));
    }
    object
}

/// What `apron manager install` would apply, besides the namespace and the definitions, which the
/// manager brings itself where the chart is used.
fn installed(scratch: &Scratch, namespace: &str, words: &[&str]) -> Vec<Json> {
    let first = ["manager", "install", "--dry-run", "-o", "json", "-n", namespace];
    let usual = ["--image", concat!("registry.example.org/apron:", env!("CARGO_PKG_VERSION"))];
    let image: &[&str] = if words.contains(&"--image") { &[] } else { &usual };
    let words: Vec<&str> = first.iter().chain(image).chain(words).copied().collect();
    let list: Json = serde_json::from_str(&apron(scratch, words).ok().stdout).unwrap();
    let all = list["items"].as_array().unwrap().iter();
    let ours = all.filter(|one| {
        !matches!(one["kind"].as_str(), Some("CustomResourceDefinition" | "Namespace"))
    });
    ours.cloned().collect()
}

fn sorted(mut all: Vec<Json>) -> Vec<Json> {
    all.sort_by_key(|one| (one["kind"].to_string(), one["metadata"]["name"].to_string()));
    all
}

#[test]
fn helm_makes_of_the_chart_what_the_command_applies() {
    let scratch = Scratch::new();
    helm(&scratch, None, &["lint", "--strict", chart().to_str().unwrap()]).ok();
    for (values, words) in [
        (&[][..], &[][..]),
        (
            &[
                "--set",
                "image.repository=registry.example.org/apron",
                "--set",
                "image.tag=v9",
                "--set",
                "imagePullSecrets[0].name=s",
                "--set",
                "args={--registry=xpkg.example.org}",
                "--set",
                "groupSuffix=ibm.crossplane.io",
                "--set",
                "allowAnyPermissions=true",
                "--set",
                "allowedGroups={gateway.networking.k8s.io}",
                "--set",
                "adoptExisting=true",
                "--set",
                "unsupportedObjects=skip",
            ],
            &[
                "--image",
                "registry.example.org/apron:v9",
                "--image-pull-secrets",
                "s",
                "--arg=--registry=xpkg.example.org",
                "--group-suffix",
                "ibm.crossplane.io",
                "--allow-any-permissions",
                "--allow-group",
                "gateway.networking.k8s.io",
                "--adopt-existing",
                "--unsupported-objects=skip",
            ],
        ),
    ] {
        for namespace in [USUAL, NAMESPACE] {
            let by_helm = sorted(rendered(&scratch, namespace, values));
            assert_eq!(by_helm, sorted(installed(&scratch, namespace, words)));
        }
    }
    let claimed =
        rendered(&scratch, NAMESPACE, &["--set", "packageCache.pvc=c", "--set", "replicas=2"]);
    let deployment = claimed.iter().find(|one| one["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["persistentVolumeClaim"]["claimName"], "c");
}

/// H7: Helm says what is missing, too.
#[test]
fn h7_the_chart_asks_for_an_image() {
    let scratch = Scratch::new();
    let chart = chart();
    let said = helm(&scratch, None, &["template", "apron", chart.to_str().unwrap()]).failed();
    assert!(said.contains("image.repository is not set"), "{said}");
}

/// L8: what Kubernetes calls the restricted profile, of the chart and of the command alike.
#[test]
fn l8_pods_of_the_manager_keep_to_the_restricted_profile() {
    let scratch = Scratch::new();
    for objects in [rendered(&scratch, USUAL, &[]), installed(&scratch, USUAL, &[])] {
        let deployment = objects.iter().find(|one| one["kind"] == "Deployment").unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let context = &pod["securityContext"];
        assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}));
        assert_eq!(context["runAsNonRoot"], json!(true));
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod[field], Json::Null, "{field}");
        }
        for volume in pod["volumes"].as_array().unwrap() {
            assert_eq!(volume["hostPath"], Json::Null);
        }
        for container in pod["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], json!(false));
            assert_eq!(context["readOnlyRootFilesystem"], json!(true));
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
            assert_eq!(context["privileged"], Json::Null);
        }
    }
}

/// L8: whoever publishes an image can say which bytes it stands on.
#[test]
fn l8_the_images_below_ours_are_arguments_of_the_build() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs_err::read_to_string(root.join("Dockerfile")).unwrap();
    let from: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(from, ["${BUILD_IMAGE} AS build", "${RUN_IMAGE}"]);
    assert!(text.contains("@$(digest "), "it says how");
    assert!(text.lines().any(|line| line.starts_with("USER 65532")));
}

/// What the manager may do, and what for. A right that is not here is not asked of the user who installs
/// the manager; `a_manager_with_the_rights_of_the_chart_works_…` shows that these are enough.
const RIGHTS: [(&str, &str); 13] = [
    (
        "*: * of apiextensions.crossplane.io, ops.crossplane.io, packages.crossplane.io, \
         pkg.crossplane.io, protection.crossplane.io",
        "packages, revisions and the Lock are its own; the rest is what configurations bring",
    ),
    (
        "*: customresourcedefinitions, customresourcedefinitions/status of apiextensions.k8s.io",
        "definitions that packages bring, and its own at the start",
    ),
    ("list: * of *", "a definition with objects is not let go"),
    (
        "create, delete, get, list, patch, update, watch: secrets, serviceaccounts, services of core",
        "certificates, credentials for registries; what packages run as and are reached by",
    ),
    (
        "get: configmaps of core named package-pins",
        "which package an administrator chose for a kind",
    ),
    (
        "create, get, patch: configmaps of core named package-manager.crossplane.io",
        "how it is set up, for those who plan what it would do",
    ),
    ("create, get: namespaces of core", "its own namespace, if it is not there"),
    (
        "create, delete, get, patch, update: events of core, events.k8s.io",
        "what it tells people about packages",
    ),
    ("create, delete, get, list, patch, update, watch: deployments of apps", "what runs packages"),
    (
        "create, delete, get, list, patch, update, watch: leases of coordination.k8s.io",
        "which of several managers works",
    ),
    (
        "create, delete, get, list, patch, update, watch: mutatingwebhookconfigurations, \
         validatingwebhookconfigurations of admissionregistration.k8s.io",
        "webhooks that packages bring",
    ),
    (
        "bind, create, delete, escalate, get, list, patch, update, watch: clusterroles of \
         rbac.authorization.k8s.io",
        "roles for the kinds of packages: rights on kinds that it has no rights on itself",
    ),
    (
        "create, delete, get, list, patch, update, watch: clusterrolebindings, rolebindings of \
         rbac.authorization.k8s.io",
        "which account has them",
    ),
];

/// A rule of a role as a line.
fn rule_in_line(rule: &Json) -> String {
    let list = |field: &str| {
        let texts = rule[field].as_array().into_iter().flatten().map(|one| one.as_str().unwrap());
        let mut texts: Vec<&str> =
            texts.map(|one| if one.is_empty() { "core" } else { one }).collect();
        texts.sort_unstable();
        texts.join(", ")
    };
    let named = match list("resourceNames") {
        names if names.is_empty() => names,
        names => format!(" named {names}"),
    };
    assert!(rule["nonResourceURLs"].is_null(), "{rule}");
    format!("{}: {} of {}{named}", list("verbs"), list("resources"), list("apiGroups"))
}

/// L9: a change of the manager's rights comes with its reason here.
#[test]
fn l9_the_role_of_the_manager_holds_what_it_needs_and_no_more() {
    let scratch = Scratch::new();
    for objects in [rendered(&scratch, USUAL, &[]), installed(&scratch, USUAL, &[])] {
        let mut roles = objects.iter().filter(|one| one["kind"] == "ClusterRole");
        let own = roles.find(|one| one["metadata"]["name"] == "apron").unwrap();
        let held: Vec<String> = own["rules"].as_array().unwrap().iter().map(rule_in_line).collect();
        assert_eq!(held, RIGHTS.map(|(right, _)| right));
    }
    assert!(RIGHTS.iter().all(|(_, why)| !why.is_empty()));
}

/// What the role of the account is called, and its binding.
fn roles(objects: &[Json]) -> [&str; 3] {
    let of = |kind: &str, place: &str| {
        let mut of_kind = objects.iter().filter(|one| one["kind"] == kind);
        let name = |one: &Json| one["metadata"]["name"].as_str().unwrap().to_owned();
        let own = of_kind.find(|one| name(one).starts_with("apron")).unwrap();
        own.pointer(place).and_then(Json::as_str).unwrap()
    };
    [
        of("ClusterRole", "/metadata/name"),
        of("ClusterRoleBinding", "/metadata/name"),
        of("ClusterRoleBinding", "/roleRef/name"),
    ]
}

#[test]
fn the_usual_manager_has_the_role_it_always_had_and_every_other_one_of_its_own() {
    let scratch = Scratch::new();
    for (namespace, suffix, role) in [
        (USUAL, "crossplane.io", "apron"),
        (USUAL, "apron.example.org", "apron:crossplane-system:apron.example.org"),
        (NAMESPACE, "crossplane.io", "apron:planes:crossplane.io"),
        (NAMESPACE, "apron.example.org", "apron:planes:apron.example.org"),
    ] {
        let by_helm = rendered(&scratch, namespace, &["--set", &format!("groupSuffix={suffix}")]);
        assert_eq!(roles(&by_helm), [role; 3]);
        let by_command = installed(&scratch, namespace, &["--group-suffix", suffix]);
        assert_eq!(roles(&by_command), [role; 3]);
    }
}

/// A manager that runs as the pod would.
struct Pod {
    child: Child,
    log: PathBuf,
    /// What it asks the API server for passes here.
    recorder: Recorder,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let _ = writeln!(io::stderr(), "the manager said:\n{}", self.said());
        }
    }
}

impl Pod {
    /// Starts what the Deployment says, as the account that it says.
    fn start(scratch: &Scratch, kubeconfig: &Path, deployment: &Json) -> Self {
        let pod = &deployment["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().unwrap();
        let mut file = Kubeconfig::read_from(kubeconfig).unwrap();
        for user in &mut file.auth_infos {
            let user = user.auth_info.get_or_insert_default();
            user.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:{account}"));
            let groups = ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
            user.impersonate_groups = Some(groups.into());
        }
        let recorder = Recorder::start(file);
        let server = format!("http://{}", recorder.address);
        let named = |field: &str, value: Json| json!([{"name": "pod", field: value}]);
        let own = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "pod",
            "clusters": named("cluster", json!({"server": server})),
            "users": named("user", json!({})),
            "contexts": named("context", json!({"cluster": "pod", "user": "pod"})),
        });
        let own = scratch.write("pod/kubeconfig", own.to_string());
        let container = &pod["containers"][0];
        let cache = format!("--cache-dir={}", scratch.join("pod/cache").display());
        let words = container["args"].as_array().unwrap().iter().map(|one| {
            match one.as_str().unwrap() {
                "--cache-dir=/cache" => cache.clone(),
                // The one port that a pod has for itself is shared here.
                "--listen=0.0.0.0:8080" => "--listen=127.0.0.1:0".to_owned(),
                other => other.to_owned(),
            }
        });
        let log = scratch.join("pod/log");
        let mut command = command(scratch);
        command.args(words).env("KUBECONFIG", own);
        for one in container["env"].as_array().unwrap() {
            let value = match one["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap() {
                "metadata.name" => "apron-0",
                "metadata.namespace" => NAMESPACE,
                "spec.serviceAccountName" => account,
                other => panic!("pods have no {other}"),
            };
            command.env(one["name"].as_str().unwrap(), value);
        }
        let said = fs_err::File::create(&log).unwrap().into_file();
        let child = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Self { child, log, recorder }
    }

    fn said(&self) -> String {
        fs_err::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it answers to a probe of the Deployment.
    fn probe(&self, probe: &Json) -> Option<u16> {
        let said = self.said();
        let address = said.split_once("serving http://")?.1.split_once("/metrics")?.0;
        let path = probe["httpGet"]["path"].as_str().unwrap();
        ask(address, &format!("GET {path} HTTP/1.0\r\n\r\n"), b"").map(|(status, _)| status)
    }
}

/// L9: everything that the manager asked for was allowed by its role, and without any one of the rules
/// something would not have been, sooner or later.
fn l9_no_rule_can_be_spared(rules: &[Json], recorder: &Recorder) {
    assert_eq!(rules.len(), RIGHTS.len());
    patiently(|| {
        let spared = find_spared_rules(rules, recorder);
        let why = || format!("nothing needs {}", spared.join("; "));
        if spared.is_empty() { Ok(()) } else { Err(why()) }
    });
}

/// The rules without which nothing is missing of what the manager asked for so far.
fn find_spared_rules(rules: &[Json], recorder: &Recorder) -> Vec<String> {
    let deeds = recorder.deeds();
    let allowing = |deed: &Deed| -> Vec<usize> {
        let all = rules.iter().enumerate().filter(|(_, rule)| deed.is_allowed_by(rule));
        all.map(|(at, _)| at).collect()
    };
    let all: Vec<(Vec<usize>, &Deed)> = deeds.iter().map(|deed| (allowing(deed), deed)).collect();
    for (by, deed) in &all {
        assert!(!by.is_empty(), "no rule allows {deed:?}");
    }
    let is_spared = |at: usize| !all.iter().any(|(by, _)| *by == [at]);
    let spared = rules.iter().enumerate().filter(|(at, _)| is_spared(*at));
    spared.map(|(_, rule)| rule_in_line(rule)).collect()
}

/// Installs the chart, runs the manager with the rights it gives, and installs a provider with
/// everything that a manager makes for one.
fn works(scratch: &Scratch, kubeconfig: &Path) {
    let chart = chart();
    let install = [
        "upgrade",
        "--install",
        "apron",
        chart.to_str().unwrap(),
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set",
        "image.repository=registry.example.org/apron",
    ];
    helm(scratch, Some(kubeconfig), &install).ok();
    // It can be repeated.
    helm(scratch, Some(kubeconfig), &install).ok();
    let asked = Asked::new(kubeconfig);
    let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/apron");
    let deployment = asked.get(&deployment).unwrap();
    let account = format!("system:serviceaccount:{NAMESPACE}:crossplane");
    // Servers hear of roles after a while.
    until("the account has its rights", || {
        asked.may(&account, ["create", "apps", "deployments"]).then_some(())
    });
    let pod = Pod::start(scratch, kubeconfig, &deployment);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for probe in ["livenessProbe", "readinessProbe"] {
        let probe = &container[probe];
        until(&format!("{probe} is answered"), || (pod.probe(probe)? == 200).then_some(()));
    }
    for plural in ["v1/providers", "v1/providerrevisions", "v1beta1/locks"] {
        let path = format!("/apis/pkg.crossplane.io/{plural}");
        until(&format!("{path} is served"), || asked.get(&path));
    }
    let registry = Served::start(scratch);
    scratch.copy_package("provider-nop");
    apron(scratch, ["build", "provider-nop", "-o", "nop.xpkg"]).ok();
    let reference = registry.reference("team/nop:v0.1.0");
    apron(scratch, ["push", &reference, "-f", "nop.xpkg"]).ok();
    let words = ["install", &reference, "nop", "-n", NAMESPACE];
    let run = command(scratch).args(words).env("KUBECONFIG", kubeconfig).output().unwrap();
    Ran::from(run).ok();
    let revision = until("its objects are in place", || {
        let list = asked.get("/apis/pkg.crossplane.io/v1/providerrevisions")?;
        let one = list["items"].as_array()?.first()?.clone();
        let conditions = one["status"]["conditions"].as_array()?;
        let is_healthy = |it: &Json| it["type"] == "RevisionHealthy" && it["status"] == "True";
        conditions
            .iter()
            .any(is_healthy)
            .then(|| one["metadata"]["name"].as_str().map(str::to_owned))?
    });
    for path in [
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{revision}"),
        format!("/api/v1/namespaces/{NAMESPACE}/services/nop"),
        format!(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/crossplane%3Aprovider%3A{revision}%3Asystem"
        ),
        format!(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/crossplane%3Aprovider%3A{revision}%3Asystem"
        ),
    ] {
        until(&format!("{path} is there"), || asked.get(&path));
    }
    let apron_to = |words: &[&str]| {
        let run = command(scratch).args(words).env("KUBECONFIG", kubeconfig).output().unwrap();
        Ran::from(run).ok()
    };
    // Looking for a package that brings a kind takes the pins, and going away takes counting.
    let seeks = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "seeks"},
        "spec": {"dependsOn": [{"crd": "things.absent.example.org/v1"}]},
    });
    scratch.write("seeks/crossplane.yaml", seeks.to_string());
    apron(scratch, ["build", "seeks", "-o", "seeks.xpkg"]).ok();
    let reference = registry.reference("team/seeks:v0.1.0");
    apron(scratch, ["push", &reference, "-f", "seeks.xpkg"]).ok();
    apron_to(&["install", &reference, "seeks", "-n", NAMESPACE]);
    until("the pins are asked for", || {
        let mut deeds = pod.recorder.deeds().into_iter();
        deeds.any(|deed| deed.name == "package-pins").then_some(())
    });
    apron_to(&["uninstall", "nop", "-n", NAMESPACE]);
    let brought =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nopresources.nop.crossplane.io";
    until("its definition is gone", || asked.get(brought).is_none().then_some(()));
    let said = pod.said();
    assert!(!said.contains("forbidden"), "{said}");
    let role = format!("apron%3A{NAMESPACE}%3Acrossplane.io");
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
    let role = asked.get(&role).unwrap();
    l9_no_rule_can_be_spared(role["rules"].as_array().unwrap(), &pod.recorder);
    drop(pod);
    helm(scratch, Some(kubeconfig), &["uninstall", "apron", "--namespace", NAMESPACE]).ok();
}

#[test]
fn a_manager_with_the_rights_of_the_chart_works_on_the_embedded_server() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    works(&scratch, &ours.kubeconfig);
}

#[test]
fn a_manager_with_the_rights_of_the_chart_works_on_a_real_server() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    works(&scratch, &real.kubeconfig);
}

/// C1: the role that gathers what packages may ask for is brought, and is empty.
#[test]
fn c1_the_chart_and_the_command_bring_an_empty_role_of_allowed_permissions() {
    let scratch = Scratch::new();
    let label = "rbac.crossplane.io/aggregate-to-allowed-provider-permissions";
    for objects in [rendered(&scratch, USUAL, &[]), installed(&scratch, USUAL, &[])] {
        let named =
            |one: &&Json| one["metadata"]["name"] == "crossplane:allowed-provider-permissions";
        let role = objects.iter().find(named).unwrap();
        assert_eq!(role["kind"], "ClusterRole");
        let gathers = json!([{"matchLabels": {label: "true"}}]);
        assert_eq!(role["aggregationRule"]["clusterRoleSelectors"], gathers);
        assert!(role["rules"].as_array().is_none_or(Vec::is_empty), "{role}");
        let manager = objects.iter().find(|one| one["kind"] == "Deployment").unwrap();
        let words = manager["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
        assert!(!words.contains("--allow-any-permissions"), "{words}");
    }
}
