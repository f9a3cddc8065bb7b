//! Install objects, what becomes of them, and what they are told.

use super::*;
use crate::lock::{KindCandidate, Offered};
use crate::step::Need;
use api::stacks::{CLUSTER_INSTALL, NAMESPACE_INSTALL};

const IMAGE: &str = "registry.example.org/team/stack:v0.0.1";

fn install(kind: &str, namespace: &str, package: &str) -> PackageInstall {
    let object = json!({
        "apiVersion": "packages.crossplane.io/v1alpha1", "kind": kind,
        "metadata": {
            "name": "sample", "namespace": namespace, "uid": format!("uid-{namespace}"),
            "resourceVersion": "1", "generation": 1, "creationTimestamp": format!("2026-01-0{}", namespace.len()),
            "finalizers": [FINALIZER_INSTALL],
        },
        "spec": {"package": package},
    });
    serde_json::from_value(object).unwrap()
}

fn world(install: PackageInstall) -> InstallWorld {
    InstallWorld {
        installs: vec![install.clone()],
        install,
        settings: InstallSettings {
            group: "pkg.crossplane.io".to_owned(),
            stacks_group: "packages.crossplane.io".to_owned(),
            default_registry: "index.docker.io".to_owned(),
            namespace: "manager".to_owned(),
        },
        now: "2026-01-01T00:00:00Z".to_owned(),
        ..InstallWorld::default()
    }
}

fn contents(scope: &str) -> Json {
    json!({
        "apiVersion": "packages.crossplane.io/v1alpha1", "kind": "Package", "metadata": {},
        "spec": {
            "title": "Sample", "version": "0.0.1", "permissionScope": scope,
            "customresourcedefinitions": [],
            "permissions": {"rules": []},
            "controller": {"deployment": {"name": "c", "spec": {
                "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {
                    "serviceAccountName": "root",
                    "containers": [
                        {"name": "c", "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
                        {"name": "beside", "image": "team/beside:v1"},
                    ],
                }},
            }}},
        },
    })
}

fn plan_of(world: &InstallWorld) -> Plan {
    match decide_install(world) {
        Step::Do(plan) => plan,
        Step::Need(needs) => panic!("{needs:?}"),
    }
}

/// The object of a kind that a plan applies.
fn applied(plan: &Plan, kind: &str) -> Option<Json> {
    plan.actions.iter().find_map(|one| match one {
        Action::Apply { object, .. } if object["kind"] == kind => Some(object.clone()),
        _ => None,
    })
}

/// What a plan says of a condition: whether it is so, and why.
fn said(plan: &Plan, of: &str) -> (String, String) {
    let status = plan.actions.iter().find_map(|one| match one {
        Action::Status { status, target, .. } if target.kind != RECORD => Some(status.clone()),
        _ => None,
    });
    let status = status.expect("it says something");
    assert_eq!(status["conditions"], status["conditionedStatus"]["conditions"]);
    let all: Vec<Condition> = serde_json::from_value(status["conditions"].clone()).unwrap();
    let found = condition::find(&all, of).expect(of).clone();
    (found.status, found.message.unwrap_or_default())
}

/// The world in which the Provider is as it was applied, with its package read.
fn with_provider(mut world: InstallWorld, contents: Option<Json>) -> InstallWorld {
    let mut provider = applied(&plan_of(&world), "Provider").expect("a Provider");
    provider["metadata"]["uid"] = json!("p");
    provider["metadata"]["generation"] = json!(1);
    provider["status"] = json!({
        "currentIdentifier": provider["spec"]["package"], "currentRevision": "r",
    });
    world.provider = Some(provider);
    world.contents = contents;
    world
}

fn make_healthy(world: &mut InstallWorld) {
    let provider = world.provider.as_mut().unwrap();
    provider["spec"]["revisionActivationPolicy"] = json!("Automatic");
    let condition =
        |of: &str| json!({"type": of, "status": "True", "reason": "x", "lastTransitionTime": "t"});
    provider["status"]["conditions"] = json!([condition("Installed"), condition("Healthy")]);
}

#[test]
fn a_package_is_read_before_anything_of_it_is_installed() {
    let mut first = install(CLUSTER_INSTALL, "default", "team/stack:v0.0.1");
    first.spec.source = Some("registry.example.org".to_owned());
    let mut unheld = first.clone();
    unheld.metadata.finalizers.clear();
    assert!(matches!(plan_of(&world(unheld)).actions[..], [Action::Finalizer { .. }]));
    let world = world(first);
    let plan = plan_of(&world);
    let provider = applied(&plan, "Provider").unwrap();
    assert_eq!(provider["metadata"]["name"], "team-stack");
    assert_eq!(provider["spec"]["package"], IMAGE);
    assert_eq!(provider["spec"]["revisionActivationPolicy"], "Manual");
    let labels = &provider["spec"]["commonLabels"];
    assert_eq!(labels["crossplane.io/scope"], "environment");
    assert_eq!(labels["parent.packages.crossplane.io/default-sample"], "true");
    assert_eq!(labels["core.crossplane.io/parent-kind"], CLUSTER_INSTALL);
    assert_eq!(applied(&plan, "DeploymentRuntimeConfig"), None);
    assert_eq!(said(&plan, "Ready").0, "False");
    assert_eq!(said(&plan, "Creating").0, "True");
    assert_eq!(said(&plan, "Synced").0, "True");
}

#[test]
fn a_package_that_fits_is_activated_recorded_and_run_as_install_yaml_says() {
    let mut first = install(CLUSTER_INSTALL, "default", "team/stack:v0.0.1");
    first.spec.source = Some("registry.example.org".to_owned());
    first.spec.image_pull_policy = Some("Always".to_owned());
    let account = json!({"annotations": {"iam": "special"}});
    first.spec.service_account = serde_json::from_value(account.clone()).unwrap();
    let mut world = with_provider(world(first), Some(contents("Cluster")));
    let plan = plan_of(&world);
    let provider = applied(&plan, "Provider").unwrap();
    assert_eq!(provider["spec"]["revisionActivationPolicy"], "Automatic");
    assert_eq!(provider["spec"]["packagePullPolicy"], "Always");
    assert_eq!(provider["spec"]["serviceAccount"], account);
    let config = applied(&plan, "DeploymentRuntimeConfig").unwrap();
    let pod = &config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], Json::Null);
    assert_eq!(pod["securityContext"], json!({"runAsNonRoot": true}));
    let [own, beside] = pod["containers"].as_array().unwrap().as_slice() else { panic!("{pod}") };
    assert_eq!((&own["name"], &own["image"]), (&json!("package-runtime"), &Json::Null));
    assert_eq!(beside["image"], "registry.example.org/team/beside:v1");
    for container in [own, beside] {
        assert_eq!(container["imagePullPolicy"], "Always");
        let security = &container["securityContext"];
        assert_eq!(
            (&security["privileged"], &security["runAsNonRoot"]),
            (&json!(false), &json!(true))
        );
    }
    let record = applied(&plan, "Package").unwrap();
    assert_eq!(record["metadata"]["namespace"], "default");
    assert_eq!(record["spec"]["serviceAccount"], account);
    assert_eq!(record["spec"]["controller"]["serviceAccount"], account);
    let recorded =
        &record["spec"]["controller"]["deployment"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(recorded["image"], IMAGE);
    make_healthy(&mut world);
    assert_eq!(said(&plan_of(&world), "Ready"), ("True".to_owned(), String::new()));
}

#[test]
fn a_package_that_does_not_fit_is_not_activated_and_its_object_says_why() {
    let told = |kind: &str, package: &str, contents: Json| {
        let world = with_provider(world(install(kind, "default", package)), Some(contents));
        let plan = plan_of(&world);
        assert_eq!(applied(&plan, "Package"), None);
        let provider = applied(&plan, "Provider");
        assert!(provider.is_none_or(|it| it["spec"]["revisionActivationPolicy"] == "Manual"));
        let (status, why) = said(&plan, "Synced");
        assert_eq!(status, "False");
        why
    };
    let beyond = |pointer: &str, value: Json| {
        let mut contents = contents("Cluster");
        let pod = "/spec/controller/deployment/spec/template/spec";
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        contents.pointer_mut(&format!("{pod}{parent}")).unwrap()[field] = value;
        let why = told(CLUSTER_INSTALL, IMAGE, contents);
        why.split_once("which").unwrap().0.to_owned()
    };
    assert_eq!(
        told(NAMESPACE_INSTALL, IMAGE, contents("Cluster")),
        "the package has permissionScope Cluster, which a PackageInstall does not give; install it \
         with a ClusterPackageInstall"
    );
    assert_eq!(
        told(CLUSTER_INSTALL, "registry.example.org/team/stack:v2.0.0", contents("Cluster")),
        "app.yaml says version 0.0.1, and the tag says v2.0.0; ask for a tag whose package says the \
         same, or push this one to the tag v0.0.1"
    );
    assert_eq!(
        told(CLUSTER_INSTALL, IMAGE, Json::Null),
        "registry.example.org/team/stack:v0.0.1 is a package of today; install it with `apron \
         install`, and delete this object"
    );
    let place = "install.yaml has spec.template.spec";
    for (pointer, value, path) in [
        ("/hostNetwork", json!(true), "hostNetwork"),
        ("/volumes", json!([{"name": "root", "hostPath": {"path": "/"}}]), "volumes[0].hostPath"),
        (
            "/containers/0/env",
            json!([{"name": "x", "valueFrom": {"secretKeyRef": {"name": "crossplane-root-ca", "key": "tls.key"}}}]),
            "containers[0].env[0].valueFrom.secretKeyRef",
        ),
        ("/containers/1/envFrom", json!([]), "containers[1].envFrom"),
        (
            "/containers/0/securityContext",
            json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
            "containers[0].securityContext.capabilities.add",
        ),
        ("/containers/0/ports", json!([{"hostPort": 80}]), "containers[0].ports[0].hostPort"),
    ] {
        assert_eq!(beyond(pointer, value), format!("{place}.{path}, "));
    }
}

#[test]
fn installs_of_one_package_share_it_or_are_told_why_they_cannot() {
    let asked = |kind: &str, package: &str, others: &[PackageInstall]| {
        let mut world = world(install(kind, "team-two", package));
        world.installs.extend(others.iter().cloned());
        plan_of(&world)
    };
    let one = install(NAMESPACE_INSTALL, "team", IMAGE);
    let plan = asked(NAMESPACE_INSTALL, IMAGE, std::slice::from_ref(&one));
    let provider = applied(&plan, "Provider").unwrap();
    let named = &provider["metadata"]["annotations"][ANNOTATION_INSTALLS];
    assert_eq!(*named, "team-two/sample,team/sample");
    let labels = &provider["spec"]["commonLabels"];
    assert_eq!(labels["crossplane.io/scope"], "namespace");
    assert_eq!(labels["namespace.crossplane.io/team"], "true");
    assert_eq!(labels["namespace.crossplane.io/team-two"], "true");
    assert_eq!(labels["core.crossplane.io/parent-namespace"], "team", "the oldest leads");
    let newer =
        asked(NAMESPACE_INSTALL, "registry.example.org/team/stack:v2", std::slice::from_ref(&one));
    assert_eq!(
        said(&newer, "Synced").1,
        "PackageInstall team/sample has registry.example.org/team/stack installed as v0.0.1, and its \
         definitions can be there in one version only; ask for the same version, or change that one \
         first"
    );
    let everywhere = asked(CLUSTER_INSTALL, IMAGE, &[one]);
    assert_eq!(
        said(&everywhere, "Synced").1,
        "registry.example.org/team/stack is installed already, by PackageInstall team/sample, and can \
         be in a cluster only once with rights in all of it; delete one of the two"
    );
    let mut taken = world(install(CLUSTER_INSTALL, "default", IMAGE));
    taken.record = Some(json!({"kind": "Package", "metadata": {"name": "sample"}}));
    assert_eq!(
        said(&plan_of(&taken), "Synced").1,
        "Package sample is there already, and is not the record of this object; delete one of the two"
    );
    taken.provider = Some(json!({"metadata": {"name": "team-stack"}, "spec": {"package": IMAGE}}));
    for contents in [None, Some(Json::Null)] {
        taken.contents = contents;
        assert_eq!(
            said(&plan_of(&taken), "Synced").1,
            "Provider team-stack is there already, and was not made for an install object; delete one \
             of the two"
        );
    }
}

/// An install object that asks for a definition, and what is known of where that comes from.
fn asking(crd: &str, offered: Option<Offered>) -> InstallWorld {
    let mut asking = install(NAMESPACE_INSTALL, "team", "");
    asking.spec.crd = Some(crd.to_owned());
    let sources = |one| KindSources {
        kinds: [("buckets.s3.example.org".to_owned(), one)].into(),
        catalogs: vec!["registry.example.org".to_owned()],
        ..KindSources::default()
    };
    InstallWorld { kinds: offered.map(sources), ..world(asking) }
}

fn offered(repositories: &[&str]) -> Offered {
    let candidate = |repository: &&str| KindCandidate {
        repository: (*repository).to_owned(),
        tags: vec!["v0.0.1".to_owned()],
        catalog: "registry.example.org".to_owned(),
    };
    Offered { candidates: repositories.iter().map(candidate).collect(), ..Offered::default() }
}

#[test]
fn an_install_object_may_ask_for_a_definition() {
    const CRD: &str = "buckets.s3.example.org/v1";
    let needs = decide_install(&asking(CRD, None));
    assert!(
        matches!(&needs, Step::Need(needs) if matches!(needs[..], [Need::Kind(_)])),
        "{needs:?}"
    );
    let mut world = asking(CRD, Some(offered(&["registry.example.org/team/stack"])));
    let plan = plan_of(&world);
    let [Action::Merge { change, .. }, Action::Event { .. }] = &plan.actions[..] else {
        panic!("{plan:?}")
    };
    let annotations = &change["metadata"]["annotations"];
    assert_eq!(annotations["pkg.crossplane.io/chosen-package"], IMAGE);
    // What was chosen stays, and another definition is another choice.
    world.install.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
    let mut other = world.install.clone();
    other.spec.crd = Some("queues.s3.example.org/v1".to_owned());
    assert_eq!(other.clone().with_chosen_image(), other);
    world.install = world.install.with_chosen_image();
    let provider = applied(&plan_of(&world), "Provider").unwrap();
    assert_eq!(provider["spec"]["package"], IMAGE);
    // What cannot be chosen is told.
    let squatted = offered(&["registry.example.org/team/stack", "registry.example.org/squat"]);
    let served = Offered { is_served: true, ..offered(&[]) };
    for (crd, offered, words) in [
        (CRD, squatted, "several packages bring the CRD"),
        (CRD, offered(&[]), "no package brings the CRD"),
        (
            CRD,
            served,
            "is there already, and another package or user brought it; delete this object",
        ),
        ("*.s3.example.org", offered(&[]), "is a group of kinds; name one of its kinds"),
        ("buckets", offered(&[]), "spec.crd names no kind"),
    ] {
        let (status, why) = said(&plan_of(&asking(crd, Some(offered))), "Synced");
        assert!(status == "False" && why.contains(words), "{why}");
    }
}

#[test]
fn a_provider_goes_with_its_install_object_though_that_names_no_image_any_more() {
    let world = world(install(NAMESPACE_INSTALL, "team", IMAGE));
    let mut world = with_provider(world, None);
    world.install.spec.package = None;
    world.install.metadata.deletion_timestamp = Some("2026-01-02T00:00:00Z".to_owned());
    let deletes = |plan: Plan| plan.actions.iter().any(|one| matches!(one, Action::Delete { .. }));
    assert!(deletes(plan_of(&world)));
    world.installs.push(install(NAMESPACE_INSTALL, "team-two", IMAGE));
    assert!(!deletes(plan_of(&world)), "it is needed by the other");
}

#[test]
fn a_provider_that_waits_for_an_install_object_is_taken_over() {
    let mut world = world(install(CLUSTER_INSTALL, "default", IMAGE));
    world.provider = Some(json!({
        "metadata": {"name": "team-stack"}, "spec": {"package": IMAGE},
        "status": {"currentIdentifier": IMAGE},
    }));
    world.contents = Some(contents("Cluster"));
    let provider = applied(&plan_of(&world), "Provider").unwrap();
    assert_eq!(provider["metadata"]["annotations"][ANNOTATION_INSTALLS], "default/sample");
    assert_eq!(provider["spec"]["revisionActivationPolicy"], "Automatic");
    // One that is installed is its makers', and one that does not fit stays as it is.
    world.is_installed = true;
    let plan = plan_of(&world);
    assert!(said(&plan, "Synced").1.contains("was not made for an install object"));
    assert!(applied(&plan, "Provider").is_none());
    world.is_installed = false;
    world.contents = Some(contents("Namespaced"));
    let plan = plan_of(&world);
    assert!(said(&plan, "Synced").1.contains("PackageInstall"), "{}", said(&plan, "Synced").1);
    assert!(applied(&plan, "Provider").is_none());
}

#[test]
fn an_install_object_goes_after_everything_it_brought() {
    let mut going = install(CLUSTER_INSTALL, "default", IMAGE);
    let mut world = with_provider(world(going.clone()), Some(contents("Cluster")));
    world.runtime_config = applied(&plan_of(&world), "DeploymentRuntimeConfig");
    world.record = applied(&plan_of(&world), "Package");
    world.has_revisions = true;
    going.metadata.deletion_timestamp = Some("2026-01-02T00:00:00Z".to_owned());
    world.install = going;
    let deleted = |plan: &Plan| -> Vec<String> {
        let kinds = plan.actions.iter().filter_map(|one| match one {
            Action::Delete { target, .. } => Some(target.kind.clone()),
            Action::Finalizer { is_wanted: false, .. } => Some("finalizer".to_owned()),
            _ => None,
        });
        kinds.collect()
    };
    let plan = plan_of(&world);
    assert_eq!(deleted(&plan), ["Package", "Provider"]);
    assert_eq!(plan.wake, Wake::After(DEPARTURE_PAUSE));
    (world.provider, world.record) = (None, None);
    let plan = plan_of(&world);
    assert_eq!(deleted(&plan), [""; 0], "its revisions are there");
    assert_eq!(
        said(&plan, "Ready").1,
        "waiting for the package's revisions and their objects to be gone"
    );
    world.has_revisions = false;
    assert_eq!(deleted(&plan_of(&world)), ["DeploymentRuntimeConfig"], "it need not go at once");
    world.runtime_config = None;
    assert_eq!(deleted(&plan_of(&world)), ["finalizer"]);
}

#[test]
fn what_is_shared_stays_for_the_others() {
    let one = install(NAMESPACE_INSTALL, "team", IMAGE);
    let mut world = world(install(NAMESPACE_INSTALL, "team-two", IMAGE));
    world.installs.push(one);
    let mut world = with_provider(world, None);
    world.install.metadata.deletion_timestamp = Some("2026-01-02T00:00:00Z".to_owned());
    world.has_revisions = true;
    let plan = plan_of(&world);
    assert!(matches!(plan.actions[..], [Action::Finalizer { is_wanted: false, .. }]), "{plan:?}");
}

#[test]
fn templates_are_filled_in_by_the_controller_that_behavior_yaml_names() {
    let mut contents = contents("Namespaced");
    contents["kind"] = json!("StackDefinition");
    contents["spec"]["behavior"] = json!({
        "crd": {"apiVersion": "a.example.org/v1", "kind": "A"},
        "engine": {"type": "helm2", "controllerImage": "team/templating:v1"},
        "source": {"image": "", "path": "charts"},
    });
    contents["spec"]["controller"]["deployment"]["spec"]["template"]["spec"] = json!({
        "initContainers": [{"name": "copy", "image": "", "command": ["cp"]}],
        "containers": [{"name": "manage", "image": "team/templating:v1", "args": ["$(SD_NAMESPACE)", "$(SD_NAME)"]}],
    });
    let mut first = install(NAMESPACE_INSTALL, "team", "team/stack:v0.0.1");
    first.spec.source = Some("registry.example.org".to_owned());
    let world = with_provider(world(first), Some(contents.clone()));
    let plan = plan_of(&world);
    let template = applied(&plan, "StackDefinition").unwrap();
    assert_eq!(template["spec"]["behavior"]["source"]["image"], IMAGE);
    let record = applied(&plan, "Package").unwrap();
    assert_eq!(record["spec"]["behavior"], Json::Null);
    let rules = record["spec"]["permissions"]["rules"].as_array().unwrap();
    assert_eq!(rules.last().unwrap()["resourceNames"], json!(["sample"]));
    let config = applied(&plan, "DeploymentRuntimeConfig").unwrap();
    let pod = &config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["image"], IMAGE);
    assert_eq!(pod["containers"][0]["image"], "registry.example.org/team/templating:v1");
    let variables =
        json!([{"name": "SD_NAMESPACE", "value": "team"}, {"name": "SD_NAME", "value": "sample"}]);
    assert_eq!(pod["containers"][0]["env"], variables);
    contents["spec"]["behavior"]["engine"] = json!({"type": "helm2"});
    let world = InstallWorld { contents: Some(contents), ..world };
    assert_eq!(
        said(&plan_of(&world), "Synced").1,
        "behavior.yaml names no engine.controllerImage, so nothing fills in its templates; name one \
         there, and push the package again"
    );
}

/// The Provider of an install object, as a look at that makes it.
fn provider_of(world: &InstallWorld) -> Json {
    applied(&plan_of(world), "Provider").expect("a Provider")
}

#[test]
fn an_object_that_asks_for_another_repository_keeps_its_provider() {
    let mut world = world(install(CLUSTER_INSTALL, "default", IMAGE));
    world.choice = choose_provider(&world, &[], &[]);
    assert_eq!(world.choice.name.as_deref(), Some("team-stack"));
    let provider = provider_of(&world);
    world.provider = Some(provider.clone());
    let moved = "mirror.example.org/other/stack:v0.0.1";
    world.install.spec.package = Some(moved.to_owned());
    world.installs = vec![world.install.clone()];
    world.choice = choose_provider(&world, std::slice::from_ref(&provider), &[]);
    assert_eq!(world.choice, ProviderChoice { name: Some("team-stack".to_owned()), left: None });
    let after = provider_of(&world);
    assert_eq!(
        (&after["metadata"]["name"], &after["spec"]["package"]),
        (&json!("team-stack"), &json!(moved))
    );
    assert_eq!(after["spec"]["revisionActivationPolicy"], "Manual", "it is read first");
    // It goes under that name, too, also once only revisions and the configuration are left.
    world.install.metadata.deletion_timestamp = Some("t".to_owned());
    let named = |providers: &[Json], configs: &[Json]| {
        choose_provider(&world, providers, configs).name.unwrap()
    };
    let config = json!({"metadata": {
        "name": "team-stack", "annotations": {ANNOTATION_INSTALLS: "default/sample"},
    }});
    assert_eq!(named(&[after], &[]), "team-stack");
    assert_eq!(named(&[], &[config]), "team-stack");
    assert_eq!(named(&[], &[]), "other-stack");
}

#[test]
fn an_object_that_shares_a_provider_leaves_it_to_the_others() {
    let other = install(NAMESPACE_INSTALL, "team", IMAGE);
    let moving = install(NAMESPACE_INSTALL, "team-two", "registry.example.org/other/stack:v1");
    let mut shared = world(other.clone());
    shared.installs.push(install(NAMESPACE_INSTALL, "team-two", IMAGE));
    let provider = provider_of(&shared);
    let mut world = world(moving);
    world.installs.push(other);
    world.choice = choose_provider(&world, std::slice::from_ref(&provider), &[]);
    assert_eq!(world.choice, ProviderChoice { name: Some("other-stack".to_owned()), left: None });
    // Where others have the repository already, what it had alone is not taken down for that.
    let mut own = provider.clone();
    own["metadata"]["annotations"][ANNOTATION_INSTALLS] = json!("team-two/sample");
    own["spec"]["package"] = json!("registry.example.org/mine/stack:v1");
    own["metadata"]["name"] = json!("mine-stack");
    world.install.spec.package = Some(IMAGE.to_owned());
    world.choice = choose_provider(&world, &[provider.clone(), own], &[]);
    world.provider = Some(provider);
    assert_eq!(world.choice.left.as_deref(), Some("mine-stack"));
    assert!(
        said(&plan_of(&world), "Synced").1.contains("Provider mine-stack is there for this one")
    );
}

#[test]
fn a_provider_of_other_install_objects_is_not_given_another_repository() {
    let mut world = world(install(CLUSTER_INSTALL, "default", IMAGE));
    let mut other = provider_of(&world);
    other["metadata"]["annotations"][ANNOTATION_INSTALLS] = json!("elsewhere/moved");
    other["spec"]["package"] = json!("registry.example.org/moved/away:v1");
    world.choice = choose_provider(&world, std::slice::from_ref(&other), &[]);
    world.provider = Some(other);
    let plan = plan_of(&world);
    assert_eq!(applied(&plan, "Provider"), None);
    assert!(said(&plan, "Synced").1.contains("for the install object elsewhere/moved"));
}

#[test]
fn pull_secrets_are_copied_from_the_namespace_of_the_object() {
    let mut first = install(NAMESPACE_INSTALL, "team", IMAGE);
    first.spec.image_pull_secrets = serde_json::from_value(json!([{"name": "private"}])).unwrap();
    let mut world = world(first);
    world.settings.namespace = "manager".to_owned();
    let secret = |of: &str| NamedSecret {
        name: "private".to_owned(),
        found: Some(json!({
            "metadata": {"name": "private", "namespace": "team"}, "type": of,
            "data": {".dockerconfigjson": "e30=", "other": "e30="},
        })),
    };
    let told = |secret: NamedSecret| {
        let plan = plan_of(&InstallWorld { secrets: vec![secret], ..world.clone() });
        assert_eq!(applied(&plan, "Provider"), None, "nothing is asked for without them");
        said(&plan, "Synced").1
    };
    let missing = NamedSecret { found: None, ..secret("") };
    assert_eq!(
        told(missing),
        "there is no Secret private in namespace team; make it, or remove it from \
         spec.imagePullSecrets"
    );
    let opaque = told(secret("Opaque"));
    assert!(
        opaque.starts_with("Secret private in namespace team has type \"Opaque\" and no"),
        "{opaque}"
    );
    world.secrets = vec![secret("kubernetes.io/dockerconfigjson")];
    let plan = plan_of(&world);
    let copy = applied(&plan, "Secret").unwrap();
    assert_eq!(copy["metadata"]["namespace"], "manager");
    assert_eq!(copy["metadata"]["labels"][LABEL_COPIED_FOR], "uid-team");
    assert_eq!(copy["data"], json!({".dockerconfigjson": "e30="}), "and nothing else of it");
    let name = copy["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("private-") && name.len() == "private-".len() + 12, "{name}");
    let provider = applied(&plan, "Provider").unwrap();
    assert_eq!(provider["spec"]["packagePullSecrets"], json!([{"name": name}]));
    assert!(matches!(plan.wake, Wake::After(_)), "no news tell of Secrets elsewhere");
    // What is named no more goes, and so does all of it with the object.
    let deleted = |world: &InstallWorld| {
        plan_of(world).actions.iter().any(|one| {
            matches!(one, Action::Delete { target, .. } if target.kind == "Secret" && target.name == *name)
        })
    };
    world.copies = vec![copy.clone()];
    assert!(!deleted(&world));
    let gone = InstallWorld { secrets: Vec::new(), ..world.clone() };
    assert!(deleted(&gone));
    world.install.metadata.deletion_timestamp = Some("t".to_owned());
    assert!(deleted(&world));
    // In the manager's own namespace they are used as they are.
    world.install.metadata.deletion_timestamp = None;
    world.settings.namespace = "team".to_owned();
    world.copies.clear();
    let plan = plan_of(&world);
    assert_eq!(applied(&plan, "Secret"), None);
    let provider = applied(&plan, "Provider").unwrap();
    assert_eq!(provider["spec"]["packagePullSecrets"], json!([{"name": "private"}]));
}
