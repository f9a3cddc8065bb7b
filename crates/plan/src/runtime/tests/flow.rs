//! From the first look at a revision to its end.

use super::*;
use insta::assert_snapshot;

#[test]
fn a_provider_is_prepared_then_run_then_healthy() {
    let mut world = world();
    let mut told = vec![act(&mut world), act(&mut world), act(&mut world), act(&mut world)];
    established(&mut world, true);
    told.push(format!("its objects are there\n{}", act(&mut world)));
    available(&mut world, "p-1", false, "Deployment does not have minimum availability.");
    told.push(format!("its pods are not ready\n{}", act(&mut world)));
    available(&mut world, "p-1", true, "");
    told.push(format!("its pods are ready\n{}", act(&mut world)));
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"));
}

#[test]
fn what_is_only_simulated_is_healthy_with_a_word_until_it_runs() {
    let mut world = running();
    let said = json!({"type": "Simulated", "status": "True", "message": "nothing runs here"});
    let object = world.live.get_mut(&target("Deployment", "p-1")).unwrap().as_mut().unwrap();
    object["status"]["conditions"].as_array_mut().unwrap().push(said);
    let told = settle(&mut world);
    assert!(
        told.contains("RuntimeHealthy=True HealthyPackageRevision (nothing runs here)"),
        "{told}"
    );
    assert!(!told.contains("event"), "{told}");
    available(&mut world, "p-1", true, "");
    let told = settle(&mut world);
    assert!(told.contains("RuntimeHealthy=True HealthyPackageRevision,"), "{told}");
}

#[test]
fn a_function_has_an_endpoint_and_no_client_certificate() {
    let mut world = function();
    let told = settle(&mut world);
    assert_snapshot!(told);
}

#[test]
fn nothing_is_run_of_a_revision_that_is_paused_or_going() {
    let mut world = world();
    world
        .revision
        .metadata
        .annotations
        .insert("crossplane.io/paused".to_owned(), "true".to_owned());
    assert_eq!(act(&mut world), "nothing");
    world.revision.metadata.annotations.clear();
    world.revision.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    assert_eq!(act(&mut world), "nothing");
}

/// A provider that runs and is healthy.
fn running() -> World {
    runs(world())
}

/// What runs and is healthy.
pub(super) fn runs(mut world: World) -> World {
    settle(&mut world);
    established(&mut world, true);
    settle(&mut world);
    available(&mut world, "p-1", true, "");
    settle(&mut world);
    world
}

#[test]
fn an_inactive_revision_loses_what_runs_it_and_keeps_what_is_the_packages() {
    let mut world = running();
    world.revision.spec.desired_state = "Inactive".to_owned();
    assert_snapshot!(settle(&mut world), @"
    delete ServiceAccount p-1
    delete Deployment p-1
    # ServiceAccount p-1 goes: the revision is not active
    # Deployment p-1 goes: the revision is not active
    status RuntimeHealthy=True HealthyPackageRevision, RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    ");
    assert!(live(&world, "Service", "p").is_some());
    assert!(live(&world, "Secret", "p-tls-server").is_some());
}

#[test]
fn the_status_names_what_runs_for_as_long_as_it_is_there() {
    let mut world = running();
    let named = |world: &World| {
        let status = world.revision.status.clone().unwrap();
        status.controller_ref.map(|one| serde_json::to_value(one).unwrap())
    };
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": "p-1",
    });
    assert_eq!(named(&world), Some(deployment));
    world.revision.spec.desired_state = "Inactive".to_owned();
    settle(&mut world);
    assert_eq!(named(&world), None);
}

#[test]
fn a_package_says_what_its_account_has_besides_what_configurations_say() {
    let mut world = world();
    let template = json!({"serviceAccountTemplate": {
        "metadata": {"annotations": {"a": "of the configuration", "b": "of the configuration"}},
    }});
    world.runtime_configs.push(config("default", &template));
    let options = json!({"annotations": {
        "b": "of the package", "c": "of the package", "pkg.crossplane.io/brought-by": "another",
    }});
    world.revision.spec.service_account = serde_json::from_value(options).unwrap();
    settle(&mut world);
    established(&mut world, true);
    settle(&mut world);
    let account = live(&world, "ServiceAccount", "p-1").unwrap();
    assert_eq!(
        account["metadata"]["annotations"],
        json!({
            "a": "of the configuration", "b": "of the package", "c": "of the package",
            "pkg.crossplane.io/brought-by": "provider.pkg.crossplane.io/p",
        })
    );
}

pub(super) fn config(name: &str, spec: &Json) -> api::pkg::runtime_config::DeploymentRuntimeConfig {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// The next revision of the same package.
pub(super) fn next(world: &World) -> api::pkg::revision::Revision {
    let mut next = world.revision.clone();
    next.metadata.name = "p-2".to_owned();
    next.metadata.uid = Some("uid-p-2".to_owned());
    next.status = None;
    next
}

#[test]
fn an_account_that_the_next_revision_uses_is_left_to_it() {
    let mut world = running();
    let account = json!({"serviceAccountTemplate": {"metadata": {"name": "mine"}}});
    world.runtime_configs = vec![config("default", &account)];
    assert_snapshot!(settle(&mut world), @r"
    create ServiceAccount mine
    apply Deployment p-1
    delete ServiceAccount p-1
    # ServiceAccount mine is made
    # Deployment p-1 is brought in line
    # ServiceAccount p-1 goes: nothing uses it any more
    # again in 243 days
    ");
    world.siblings = vec![next(&world)];
    world.revision.spec.desired_state = "Inactive".to_owned();
    // What runs goes on until the next revision has its objects, and is available.
    assert_eq!(settle(&mut world), "");
    world.siblings[0].status.clone_from(&world.revision.status);
    assert_snapshot!(settle(&mut world), @"
    delete Deployment p-1
    # Deployment p-1 goes: the revision is not active
    status RuntimeHealthy=True HealthyPackageRevision, RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    ");
}

#[test]
fn the_next_revision_takes_over_what_is_the_packages() {
    let mut world = running();
    let old = world.revision.clone();
    world.revision = next(&world);
    world.siblings = vec![old];
    world.owned.clear();
    let mut before = live(&world, "Deployment", "p-1").unwrap().clone();
    before["spec"]["replicas"] = json!(0);
    world.deployments = vec![before];
    // Until it is established, callers find what runs of the revision before, which calls as before.
    let told = settle(&mut world);
    assert!(!told.contains("Service") && !told.contains("issue"), "{told}");
    world.revision.status.clone_from(&world.siblings[0].status);
    // And until there is a Deployment of its own, which may be refused.
    world.refusal = Some(Refusal { target: target("Deployment", "p-2"), message: "no".to_owned() });
    assert!(!act(&mut world).contains("Service"));
    world.refusal = None;
    let told = act(&mut world);
    assert!(told.starts_with("issue p-tls-client "), "{told}");
    let told = act(&mut world);
    assert!(told.contains("create Deployment p-2\n") && !told.contains(" Service "), "{told}");
    // And until that is available.
    let told = act(&mut world);
    assert!(told.contains("apply Deployment p-2\n") && !told.contains(" Service "), "{told}");
    assert!(!act(&mut world).contains(" Service "));
    available(&mut world, "p-2", true, "");
    let told = act(&mut world);
    assert!(told.starts_with("apply Service p\n"), "{told}");
    let service = live(&world, "Service", "p").unwrap();
    assert_eq!(service["spec"]["selector"]["pkg.crossplane.io/revision"], "p-2");
    assert_eq!(service["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
}

#[test]
fn what_another_manager_made_for_an_older_revision_is_made_anew() {
    let mut world = running();
    let service = live(&world, "Service", "p").unwrap().clone();
    put(&mut world, service, "crossplane");
    world.siblings = vec![world.revision.clone()];
    world.revision = next(&world);
    world.revision.status.clone_from(&world.siblings[0].status);
    let told = act(&mut world);
    assert!(told.starts_with("delete Service p\n"), "{told}");
    let told = act(&mut world);
    assert!(told.contains("create Service p\n"), "{told}");
}

#[test]
fn what_is_ours_by_an_older_uid_becomes_ours_again() {
    becomes_ours_again(MANAGER);
    // The API server would leave what somebody else wrote, and two would be in control.
    let told = becomes_ours_again("somebody who restored it");
    assert!(
        told.starts_with("merge Service p ") && told.contains("}\napply Service p\n"),
        "{told}"
    );
}

fn becomes_ours_again(manager: &str) -> String {
    let mut world = running();
    for (kind, name) in [("Service", "p"), ("ServiceAccount", "p-1"), ("Deployment", "p-1")] {
        let mut object = live(&world, kind, name).unwrap().clone();
        object["metadata"]["ownerReferences"][0]["uid"] = json!("before-the-restore");
        put(&mut world, object, manager);
    }
    let told = settle(&mut world);
    for applied in ["apply Service p\n", "apply ServiceAccount p-1\n", "apply Deployment p-1\n"] {
        assert!(told.contains(applied), "{told}");
    }
    let owners = &live(&world, "Service", "p").unwrap()["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["uid"], *world.revision.metadata.uid.as_ref().unwrap());
    assert_eq!(settle(&mut world), "");
    told
}

#[test]
fn what_belongs_to_somebody_else_is_let_be_and_named() {
    let mut world = world();
    let owner =
        json!({"apiVersion": "x/v1", "kind": "Shop", "name": "s", "uid": "y", "controller": true});
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "p", "namespace": NAMESPACE, "ownerReferences": [owner]},
    });
    put(&mut world, service, "shop");
    assert_snapshot!(act(&mut world), @r"
    event Warning SyncPackage: pre establish runtime hook failed for package: cannot apply provider package service: p is already controlled by Shop s; give it another name in a DeploymentRuntimeConfig
    status RuntimeHealthy=False UnhealthyPackageRevision (pre establish runtime hook failed for package: cannot apply provider package service: p is already controlled by Shop s; give it another name in a DeploymentRuntimeConfig), tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # pre establish runtime hook failed for package: cannot apply provider package service: p is already controlled by Shop s; give it another name in a DeploymentRuntimeConfig
    ");
}

/// It was established once, stepped back, and is active again: nothing runs before its objects are
/// there. What runs already follows what is asked for of it.
#[test]
fn nothing_is_started_for_what_a_revision_was() {
    let mut world = running();
    let generation = world.revision.metadata.generation.unwrap_or(1) + 1;
    world.revision.metadata.generation = Some(generation);
    let mut waits = world.clone();
    for kind in ["Deployment", "ServiceAccount"] {
        let (target, _) = waits.live.iter().find(|(one, _)| one.kind == kind).unwrap();
        let target = target.clone();
        waits.live.insert(target, None);
        waits.owned.retain(|one| one["kind"] != kind);
    }
    let told = settle(&mut waits);
    assert!(told.contains("Package revision is not healthy yet"), "{told}");
    assert!(live(&waits, "Deployment", "p-1").is_none());
    established(&mut waits, true);
    settle(&mut waits);
    assert!(live(&waits, "Deployment", "p-1").is_some());
    let container = json!({"name": "package-runtime", "args": ["--new"]});
    let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
    world.runtime_configs = vec![config("default", &json!({"deploymentTemplate": {"spec": spec}}))];
    assert!(settle(&mut world).starts_with("apply Deployment p-1"));
}

/// A Deployment of a fixed name goes from one revision to the next.
#[test]
fn what_runs_of_another_revision_says_nothing_of_this_one() {
    let mut world = running();
    let mut deployment = live(&world, "Deployment", "p-1").unwrap().clone();
    let before = next(&world);
    deployment["metadata"]["ownerReferences"][0]["uid"] = json!(before.metadata.uid);
    deployment["metadata"]["ownerReferences"][0]["name"] = json!(before.metadata.name);
    deployment["spec"]["selector"]["matchLabels"]["pkg.crossplane.io/revision"] = json!("p-2");
    world.siblings = vec![before];
    put(&mut world, deployment, MANAGER);
    let told = act(&mut world);
    assert!(told.starts_with("delete Deployment p-1\nstatus RuntimeHealthy=False"), "{told}");
    assert!(told.ends_with("# again in 5 s"), "nobody tells of it: {told}");
}

#[test]
fn a_deployment_with_another_selector_is_made_anew() {
    let mut world = running();
    let mut deployment = live(&world, "Deployment", "p-1").unwrap().clone();
    deployment["spec"]["selector"]["matchLabels"]["pkg.crossplane.io/provider"] =
        json!("meta-name");
    put(&mut world, deployment, MANAGER);
    assert_snapshot!(settle(&mut world), @r#"
    delete Deployment p-1
    status RuntimeHealthy=False UnhealthyPackageRevision (post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet), RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # Deployment p-1 goes: its selector is another
    # post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet
    # again in 5 s
    create Deployment p-1
    status RuntimeHealthy=False UnhealthyPackageRevision (post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet), RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # Deployment p-1 is made
    # post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet
    # again in 243 days
    status RuntimeHealthy=False UnhealthyPackageRevision (post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet), RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # post establish runtime hook failed for package: provider package deployment has no condition of type "Available" yet
    # again in 243 days
    "#);
}

#[test]
fn a_change_of_the_runtime_configuration_rolls() {
    let mut world = running();
    let args = |arg: &str| {
        let container = json!({"name": "package-runtime", "args": [arg]});
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
        config("default", &json!({"deploymentTemplate": {"spec": spec}}))
    };
    for arg in ["--one", "--two"] {
        world.runtime_configs = vec![args(arg)];
        let told = settle(&mut world);
        assert!(told.starts_with("apply Deployment p-1\n#"), "{told}");
        let deployment = live(&world, "Deployment", "p-1").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!([arg]));
    }
}

#[test]
fn a_renamed_deployment_does_not_leave_the_old_one_behind() {
    let mut world = running();
    let template = json!({"deploymentTemplate": {"metadata": {"name": "new"}}});
    world.runtime_configs = vec![config("default", &template)];
    let told = settle(&mut world);
    assert!(told.contains("create Deployment new\ndelete Deployment p-1"), "{told}");
}

#[test]
fn an_image_configuration_chooses_the_runtime_configuration() {
    let mut world = running();
    let template =
        json!({"deploymentTemplate": {"spec": {"replicas": 5, "selector": {}, "template": {}}}});
    world.runtime_configs = vec![config("by-image", &template)];
    let image_config = json!({"metadata": {"name": "ic"}, "spec": {
        "matchImages": [{"prefix": "xpkg.example.org/acme"}],
        "runtime": {"configRef": {"name": "by-image"}},
    }});
    world.image_configs = vec![serde_json::from_value(image_config).unwrap()];
    let told = settle(&mut world);
    assert!(told.contains(r#""ConfigureRuntime" "ic""#), "{told}");
    assert_eq!(live(&world, "Deployment", "p-1").unwrap()["spec"]["replicas"], 5);
    world.image_configs.clear();
    let told = settle(&mut world);
    assert!(!told.contains("ConfigureRuntime"), "{told}");
    assert_eq!(live(&world, "Deployment", "p-1").unwrap()["spec"]["replicas"], 1);
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    let mut lines = Vec::new();
    for (key, name) in [("runtimeConfigRef", "gone"), ("controllerConfigRef", "old")] {
        let mut world = world();
        let mut spec = serde_json::to_value(&world.revision.spec).unwrap();
        spec[key] = json!({"name": name});
        world.revision.spec = serde_json::from_value(spec).unwrap();
        lines.push(act(&mut world).lines().last().unwrap().to_owned());
    }
    assert_snapshot!(lines.join("\n"), @r"
    # cannot prepare runtime manifest builder options: cannot get referenced deployment runtime config: there is no DeploymentRuntimeConfig gone; make it, or name another in runtimeConfigRef
    # cannot prepare runtime manifest builder options: cannot get referenced controller config: there is no ControllerConfig old; make it, or name another in controllerConfigRef
    ");
}

#[test]
fn a_provider_whose_kinds_nobody_wants_yet_sleeps_until_one_is() {
    let mut world = world();
    let capabilities = Some(vec!["SafeStart".to_owned()]);
    world.revision.status.get_or_insert_default().capabilities = capabilities;
    world.managed = Managed { total: 3, active: 0 };
    established(&mut world, true);
    settle(&mut world);
    assert_eq!(live(&world, "Deployment", "p-1").unwrap()["spec"]["replicas"], 0);
    available(&mut world, "p-1", true, "");
    let mut told = vec![settle(&mut world)];
    world.managed.active = 1;
    told.push(settle(&mut world));
    world.managed.active = 0;
    told.push(format!("it is not put to sleep again: {:?}", settle(&mut world)));
    assert_eq!(live(&world, "Deployment", "p-1").unwrap()["spec"]["replicas"], 1);
    assert_snapshot!(told.join("\n--\n"), @r#"
    event Normal SyncPackage: Successfully configured package revision
    status RevisionHealthy=True HealthyPackageRevision, RuntimeHealthy=True HealthyPackageRevision, RuntimeActive=False AwaitingActivation (Package runtime is scaled to zero; awaiting the first ManagedResourceDefinition to be activated), tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # again in 243 days
    --
    apply Deployment p-1
    status RevisionHealthy=True HealthyPackageRevision, RuntimeHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # Deployment p-1 is brought in line
    # again in 243 days
    --
    it is not put to sleep again: ""
    "#);
}

#[test]
fn an_account_that_somebody_else_keeps_is_not_made() {
    let mut world = world();
    let pod = json!({"serviceAccountName": "theirs"});
    let spec = json!({"selector": {}, "template": {"spec": pod}});
    world.runtime_configs = vec![config("default", &json!({"deploymentTemplate": {"spec": spec}}))];
    established(&mut world, true);
    let told = settle(&mut world);
    assert!(told.contains("create Deployment p-1") && !told.contains("ServiceAccount"), "{told}");
}

#[test]
fn what_a_package_asks_for_and_may_not_have_is_told_and_nothing_runs() {
    let mut world = world();
    established(&mut world, true);
    let request = vec![api::meta::PermissionRequest {
        api_groups: vec!["apps".to_owned()],
        resources: vec!["deployments".to_owned()],
        verbs: vec!["get".to_owned(), "delete".to_owned()],
        ..Default::default()
    }];
    world.package.as_mut().unwrap().requests = request.clone();
    settle(&mut world);
    assert!(live(&world, "Deployment", "p-1").is_none());
    let told = world.revision.status.as_ref().unwrap().conditions.as_ref().unwrap();
    let told = told.iter().find(|one| one.condition_type == "RuntimeHealthy").unwrap();
    assert_snapshot!(told.message.as_ref().unwrap(), @r"
    post establish runtime hook failed for package: the package asks for permissions that nobody allowed: delete, get deployments.apps; an administrator allows them where the manager is started, with --provider-clusterrole or --allow-any-permissions
    ");
    world.allowed = Allowed { permissions: request, ..Allowed::default() };
    let told = settle(&mut world);
    assert!(told.contains("create Deployment p-1"), "{told}");
}

#[test]
fn what_runs_stays_as_it_is_while_the_package_is_not_at_hand() {
    let mut world = running();
    world.package = None;
    assert_eq!(settle(&mut world), "");
    let target = target("Deployment", "p-1");
    remove(&mut world, &target);
    let told = settle(&mut world);
    assert!(told.contains("hook failed for package: the package is not at hand"), "{told}");
}

#[test]
fn a_refusal_is_told_once_and_tried_again_later() {
    let mut world = running();
    let message = "admission webhook denied the request".to_owned();
    world.refusal = Some(crate::step::Refusal { target: target("Deployment", "p-1"), message });
    let mut told = vec![act(&mut world), act(&mut world)];
    world.refusal = None;
    told.push(act(&mut world));
    assert_snapshot!(told.join("\n--\n"), @r"
    event Warning SyncPackage: post establish runtime hook failed for package: cannot apply provider package deployment: admission webhook denied the request
    status RuntimeHealthy=False UnhealthyPackageRevision (post establish runtime hook failed for package: cannot apply provider package deployment: admission webhook denied the request), RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # post establish runtime hook failed for package: cannot apply provider package deployment: admission webhook denied the request
    # again in 60 s
    --
    # post establish runtime hook failed for package: cannot apply provider package deployment: admission webhook denied the request
    # again in 60 s
    --
    event Normal SyncPackage: Successfully configured package revision
    status RuntimeHealthy=True HealthyPackageRevision, RevisionHealthy=True HealthyPackageRevision, RuntimeActive=True ActiveRuntime, tlsServerSecretName p-tls-server, tlsClientSecretName p-tls-client
    # again in 243 days
    ");
}

#[test]
fn an_old_service_of_the_revision_goes() {
    let mut world = running();
    let owner = super::super::objects::controller(&world.revision);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "p-1", "namespace": NAMESPACE, "ownerReferences": [owner]},
    });
    put(&mut world, service, "crossplane");
    world.revision.spec.desired_state = "Inactive".to_owned();
    assert!(settle(&mut world).contains("delete Service p-1"));
}
