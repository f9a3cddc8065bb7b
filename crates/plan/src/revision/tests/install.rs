//! What an active revision does when all goes well.

use super::super::Unsupported;
use super::cluster::Cluster;
use super::{TAG, TAG_TWO, composition, crd, meta, provider};
use crate::lock::{Counts, Verdict};
use api::meta::PackageKind;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

#[test]
fn a_provider_gets_its_definitions_and_then_there_is_nothing_to_do() {
    let (mut cluster, name) = provider(&["buckets", "keys"]);
    let told = [cluster.settle(&name), cluster.run(&name)];
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p","keys.example.org":"Provider/p"}}
    create CustomResourceDefinition buckets.example.org owned by p-f2fba9b72b5d* p
    create CustomResourceDefinition keys.example.org owned by p-f2fba9b72b5d* p
    # 2 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    ==
    nothing
    "#);
}

#[test]
fn a_package_of_the_first_format_is_installed_for_install_objects_only() {
    let mut cluster = Cluster::new();
    for (scope, kind) in [
        (json!("Cluster"), "ClusterPackageInstall"),
        (json!("Namespaced"), "PackageInstall"),
        (Json::Null, "ClusterPackageInstall"),
    ] {
        let mut first = meta("Provider", &json!({}));
        first["stack"] = json!({"kind": "Package", "spec": {"permissionScope": scope}});
        cluster.publish(TAG, &[first, crd("buckets")]);
        cluster.serves_installs = false;
        let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
        let told = cluster.settle(&name);
        assert!(!told.contains("create"), "{told}");
        let said = format!(
            "write a {kind} of packages.crossplane.io/v1alpha1 with spec.package {TAG}, and it \
             takes this Provider over; or turn the package into one of today with `apron convert`"
        );
        assert!(told.contains("RevisionHealthy=False") && told.contains(&said), "{told}");
    }
    // Its configuration comes with the object: until it is there, the package waits.
    cluster.serves_installs = true;
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    assert!(!cluster.settle(&name).contains("create"));
    let config = serde_json::from_value(json!({"name": "p"})).unwrap();
    cluster.revisions.get_mut(&name).unwrap().spec.runtime_config_ref = Some(config);
    let told = cluster.settle(&name);
    assert!(told.contains("create CustomResourceDefinition buckets.example.org"), "{told}");
    // What is installed goes on without the Provider's annotation, too.
    cluster.serves_installs = false;
    assert!(!cluster.settle(&name).contains("RevisionHealthy=False"));
}

/// F40: a package with objects that its kind may not bring is not installed, and names them all.
#[test]
fn f40_a_package_with_unsupported_objects_is_not_installed() {
    let mut cluster = Cluster::new();
    let strange = ["a", "b", "c", "d", "e"].map(crd);
    let documents = [vec![meta("Configuration", &json!({})), composition("c")], strange.to_vec()];
    cluster.publish(TAG, &documents.concat());
    let name = cluster.revise(PackageKind::Configuration, "p", TAG, "Active");
    let told = cluster.settle(&name);
    assert!(!told.contains("create"), "{told}");
    assert!(told.contains("RevisionHealthy=False"), "{told}");
    for one in ["a", "b", "c", "d", "e"] {
        let what = format!(
            "CustomResourceDefinition \"{one}.example.org\" does not belong in a Configuration"
        );
        assert!(told.contains(&what), "{told}");
    }
}

/// X32, X37, X40: what each kind of package may not bring.
#[test]
fn f40_each_kind_of_package_is_held_to_what_it_may_bring() {
    for (kind, object, what) in [
        (PackageKind::Configuration, crd("a"), r#"CustomResourceDefinition "a.example.org""#),
        (PackageKind::Provider, composition("c"), r#"Composition "c""#),
        (PackageKind::Function, composition("c"), r#"Composition "c""#),
    ] {
        let mut cluster = Cluster::new();
        cluster.publish(TAG, &[meta(kind.as_str(), &json!({})), object]);
        let name = cluster.revise(kind, "p", TAG, "Active");
        let told = cluster.settle(&name);
        let what = format!("{what} does not belong in a {}", kind.as_str());
        assert!(told.contains("RevisionHealthy=False") && told.contains(&what), "{told}");
        assert!(!told.contains("create"), "{told}");
    }
}

#[test]
fn f40_a_manager_that_skips_what_is_unsupported_installs_the_rest() {
    let mut cluster = Cluster::new();
    cluster.unsupported = Unsupported::Skip;
    let documents = [meta("Configuration", &json!({})), composition("c"), crd("left-out")];
    cluster.publish(TAG, &documents);
    let name = cluster.revise(PackageKind::Configuration, "p", TAG, "Active");
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"compositions":{"c":"Configuration/p"}}
    create Composition c owned by p-8b3de464ca4f* p
    # 1 of 1 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.crossplane.io/v1","kind":"Composition","name":"c","uid":"uid-c"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    event Warning LintPackage: linting package contents failed: package.yaml line 5: CustomResourceDefinition "left-out.example.org" does not belong in a Configuration package (CustomResourceDefinition may be part of a Provider or Function package); left out
    # package.yaml line 5: CustomResourceDefinition "left-out.example.org" does not belong in a Configuration package (CustomResourceDefinition may be part of a Provider or Function package)
    "#);
}

#[test]
fn a_function_brings_no_objects_and_composes_unless_it_says_otherwise() {
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &[meta("Function", &json!({})), crd("inputs")]);
    let name = cluster.revise(PackageKind::Function, "p", TAG, "Active");
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=True HealthyPackageRevision; {"capabilities":["composition"],"resolvedImage":"registry.example.org/p:v1"}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn everything_a_package_brings_gets_the_common_labels_and_annotations() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.change(&name, |revision| {
        revision.spec.common_labels = Some([("team".to_owned(), "a".to_owned())].into());
        revision.spec.common_annotations = Some([("cost".to_owned(), "b".to_owned())].into());
    });
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p"}}
    create CustomResourceDefinition buckets.example.org owned by p-ca2815f8b304* p with {"metadata":{"labels":{"team":"a"},"annotations":{"cost":"b"}}}
    # 1 of 1 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

fn called() -> Vec<Json> {
    let mut converted = crd("buckets");
    converted["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"service": {"path": "/convert"}},
    }});
    let webhook = |name: &str, client: &Json| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
            "webhooks": [{"name": format!("{name}.example.org"), "clientConfig": client}],
        })
    };
    let path = json!({"service": {"name": "x", "namespace": "y", "path": "/validate"}});
    let nowhere = json!({});
    vec![meta("Provider", &json!({})), converted, webhook("one", &path), webhook("two", &nowhere)]
}

#[test]
fn webhooks_and_conversions_are_led_to_the_runtime_once_it_has_a_certificate() {
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &called());
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    let mut told = vec![cluster.settle(&name)];
    cluster.change(&name, |revision| {
        let status = revision.status.as_mut().unwrap();
        status.tls_server_secret_name = Some("p-tls-server".to_owned());
    });
    told.push(cluster.settle(&name));
    cluster.certificate = Some("Q0VSVA==".to_owned());
    told.push(cluster.settle(&name));
    cluster.certificate = Some("TkVX".to_owned());
    told.push(cluster.settle(&name));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (waiting for package runtime controller to set revision's webhook TLS secret); {"resolvedImage":"registry.example.org/p:v1"}
    # waiting for package runtime controller to set revision's webhook TLS secret
    # again in 60 s
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (waiting for a certificate: the Secret p-tls-server in namespace crossplane-system has none yet); {"tlsServerSecretName":"p-tls-server","resolvedImage":"registry.example.org/p:v1"}
    # waiting for a certificate: the Secret p-tls-server in namespace crossplane-system has none yet
    # again in 60 s
    ==
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p"}}
    create CustomResourceDefinition buckets.example.org owned by p-df3b3f09ec73* p with {"metadata":{},"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443},"caBundle":"Q0VSVA=="}}}}}
    create ValidatingWebhookConfiguration crossplane-provider-p owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p"},"webhooks":[{"name":"one.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","path":"/validate","port":9443},"caBundle":"Q0VSVA=="}}]}
    create ValidatingWebhookConfiguration crossplane-provider-p-two owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p-two"},"webhooks":[{"name":"two.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443},"caBundle":"Q0VSVA=="}}]}
    # 3 of 3 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"tlsServerSecretName":"p-tls-server","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"},{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"crossplane-provider-p-two","uid":"uid-crossplane-provider-p-two"},{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"crossplane-provider-p","uid":"uid-crossplane-provider-p"}],"resolvedImage":"registry.example.org/p:v1"}
    event Normal SyncPackage: Successfully reconciled package revision
    ==
    replace CustomResourceDefinition buckets.example.org owned by p-df3b3f09ec73* p with {"metadata":{},"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443},"caBundle":"TkVX"}}}}}
    replace ValidatingWebhookConfiguration crossplane-provider-p owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p"},"webhooks":[{"name":"one.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","path":"/validate","port":9443},"caBundle":"TkVX"}}]}
    replace ValidatingWebhookConfiguration crossplane-provider-p-two owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p-two"},"webhooks":[{"name":"two.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443},"caBundle":"TkVX"}}]}
    # 3 of 3 objects are written
    # again at once
    "#);
}

#[test]
fn webhooks_and_conversions_are_led_to_the_service_that_is_there() {
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &called());
    cluster.certificate = Some("Q0VSVA==".to_owned());
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.change(&name, |revision| {
        let status = revision.status.get_or_insert_default();
        status.tls_server_secret_name = Some("p-tls-server".to_owned());
    });
    cluster.settle(&name);
    let called = |cluster: &Cluster, service: &str| {
        let object = |name: &str| {
            let (_, object) = cluster.objects.iter().find(|(one, _)| one.name == name).unwrap();
            object
        };
        let (definition, webhooks) =
            (object("buckets.example.org"), object("crossplane-provider-p"));
        for client in [
            &definition["spec"]["conversion"]["webhook"]["clientConfig"],
            &webhooks["webhooks"][0]["clientConfig"],
        ] {
            assert_eq!(client["service"]["name"], service);
        }
    };
    called(&cluster, "p");
    let config = |name: &str, service: &str| {
        let template = json!({"metadata": {"name": service}});
        let config = json!({"metadata": {"name": name}, "spec": {"serviceTemplate": template}});
        serde_json::from_value(config).unwrap()
    };
    // It may come later.
    cluster.configurations.runtime = vec![config("default", "other")];
    cluster.settle(&name);
    called(&cluster, "other");
    cluster.configurations.runtime.push(config("mine", "third"));
    cluster.change(&name, |revision| {
        let reference = json!({"name": "mine"});
        revision.spec.runtime_config_ref = Some(serde_json::from_value(reference).unwrap());
    });
    cluster.settle(&name);
    called(&cluster, "third");
    // Who runs what is not known stays as it is.
    cluster.configurations.runtime.pop();
    let told = cluster.settle(&name);
    assert!(told.contains("cannot tell which Service is called"), "{told}");
    called(&cluster, "third");
}

/// H7: but not where they are.
#[test]
fn h7_where_nothing_is_run_packages_say_themselves_how_they_are_known() {
    let mut cluster = Cluster::new();
    cluster.settings.runs_packages = false;
    cluster.publish(TAG, &called());
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p"}}
    create CustomResourceDefinition buckets.example.org owned by p-df3b3f09ec73* p with {"metadata":{},"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443}}}}}}
    create ValidatingWebhookConfiguration crossplane-provider-p owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p"},"webhooks":[{"name":"one.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","path":"/validate","port":9443}}}]}
    create ValidatingWebhookConfiguration crossplane-provider-p-two owned by p-df3b3f09ec73* p with {"metadata":{"name":"crossplane-provider-p-two"},"webhooks":[{"name":"two.example.org","clientConfig":{"service":{"name":"p","namespace":"crossplane-system","port":9443}}}]}
    # 3 of 3 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"},{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"crossplane-provider-p-two","uid":"uid-crossplane-provider-p-two"},{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"crossplane-provider-p","uid":"uid-crossplane-provider-p"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn who_runs_packages_for_us_says_by_which_certificate_they_are_known() {
    let mut cluster = Cluster::new();
    cluster.settings.runs_packages = false;
    cluster.publish(TAG, &called());
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.settle(&name);
    cluster.change(&name, |revision| {
        revision.status.as_mut().unwrap().tls_server_secret_name = Some("theirs".to_owned());
    });
    cluster.certificate = Some("Q0VSVA==".to_owned());
    let told = cluster.settle(&name);
    assert!(told.contains("ValidatingWebhookConfiguration crossplane-provider-p "), "{told}");
    assert!(told.contains(r#""caBundle":"Q0VSVA==""#), "{told}");
}

#[test]
fn definitions_can_be_left_to_crossplane_and_stay_activated() {
    let mut configuring = crd("providerconfigs");
    configuring["spec"]["names"]["kind"] = json!("ProviderConfig");
    let mut cluster = Cluster::new();
    cluster.publish(TAG, &[meta("Provider", &json!({})), crd("buckets"), configuring]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    cluster.settings.defers_definitions = true;
    let mut told = vec![cluster.settle(&name)];
    let spec = json!({"capabilities": ["SafeStart"]});
    let documents = [meta("Provider", &spec), crd("buckets"), crd("keys")];
    cluster.publish(TAG_TWO, &documents);
    let next = cluster.revise(PackageKind::Provider, "p", TAG_TWO, "Active");
    cluster.state(&name, "Inactive");
    told.push(cluster.settle(&next));
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p","providerconfigs.example.org":"Provider/p"}}
    create ManagedResourceDefinition buckets.example.org owned by p-b9ae9b13d02d* p with {"metadata":{},"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","spec":{"state":"Active"}}
    create CustomResourceDefinition providerconfigs.example.org owned by p-b9ae9b13d02d* p
    # 2 of 2 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"providerconfigs.example.org","uid":"uid-providerconfigs.example.org"},{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}]}
    event Normal SyncPackage: Successfully reconciled package revision
    ==
    add finalizer revision.pkg.crossplane.io
    --
    change Lock lock: {"customResourceDefinitions":{"keys.example.org":"Provider/p"}}
    replace ManagedResourceDefinition buckets.example.org owned by p-b9ae9b13d02d p p-00a3adbfb6b5* with {"metadata":{},"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","spec":{"state":"Active"}}
    create ManagedResourceDefinition keys.example.org owned by p-00a3adbfb6b5* p with {"metadata":{},"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition"}
    # 2 of 2 objects are written
    # again at once
    --
    status DefinitionsRetained=False NoObjects (no longer part of the package, without objects; they go with the last revision that brought them: providerconfigs.example.org), RevisionHealthy=True HealthyPackageRevision; {"capabilities":["SafeStart"],"objectRefs":[{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","name":"keys.example.org","uid":"uid-keys.example.org"},{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}],"resolvedImage":"registry.example.org/p:v2"}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn the_metadata_is_written_onto_the_revision_but_does_not_say_whose_it_is() {
    let mut cluster = Cluster::new();
    let mut meta = meta("Provider", &json!({}));
    meta["metadata"]["labels"] = json!({
        "pkg.crossplane.io/package": "somebody-else", "pkg.crossplane.io/provider-family": "f",
        "app.kubernetes.io/managed-by": "x", "team": "t",
    });
    meta["metadata"]["annotations"] = json!({
        "crossplane.io/paused": "true", "meta.crossplane.io/source": "s",
        "pkg.crossplane.io/other": "o", "rbac.crossplane.io/a": "b", "x.k8s.io/c": "d",
        "kubernetes.io/e": "f",
    });
    cluster.publish(TAG, &[meta]);
    let name = cluster.revise(PackageKind::Provider, "p", TAG, "Active");
    assert_snapshot!(cluster.settle(&name), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    change ProviderRevision p-3801ed7b1a1b: {"metadata":{"labels":{"app.kubernetes.io/managed-by":"x","pkg.crossplane.io/provider-family":"f","team":"t"},"annotations":{"kubernetes.io/e":"f","meta.crossplane.io/source":"s","pkg.crossplane.io/other":"o","rbac.crossplane.io/a":"b","x.k8s.io/c":"d"}}}
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1"}
    event Normal SyncPackage: Successfully reconciled package revision
    event Warning LintPackage: the metadata of the package steers the package manager: the label pkg.crossplane.io/package; the annotation crossplane.io/paused; not copied here
    "#);
}

#[test]
fn what_somebody_changed_is_put_right_and_what_they_added_stays() {
    let (mut cluster, name) = provider(&["buckets", "keys"]);
    cluster.settle(&name);
    for object in cluster.objects.values_mut() {
        object["metadata"]["labels"] = json!({"theirs": "x"});
        object["metadata"]["finalizers"] = json!(["theirs.example.org"]);
        object["status"] = json!({"acceptedNames": {}});
    }
    let mut told = vec![cluster.settle(&name)];
    let buckets = cluster.objects.values_mut().next().unwrap();
    buckets["spec"]["group"] = json!("wrong");
    let keys = cluster.objects.values_mut().nth(1).unwrap();
    keys["metadata"]["ownerReferences"].as_array_mut().unwrap().pop();
    told.push(cluster.settle(&name));
    let metadata = &cluster.objects.values().next().unwrap()["metadata"];
    told.push(format!("{} {}", metadata["labels"], metadata["finalizers"]));
    assert_snapshot!(told.join("\n==\n"), @r#"

    ==
    replace CustomResourceDefinition buckets.example.org owned by p-f2fba9b72b5d* p
    change CustomResourceDefinition keys.example.org: owned by p-f2fba9b72b5d* p
    # 1 of 2 objects are written
    # again at once
    ==
    {"theirs":"x"} ["theirs.example.org"]
    "#);
}

#[test]
fn a_revision_waits_for_what_it_needs() {
    let (mut cluster, name) = provider(&["buckets"]);
    let mut told = Vec::new();
    for verdict in [
        Verdict::Waiting(
            Counts { found: 1, ..Counts::default() },
            "missing dependencies: \"registry.example.org/q\" (>=v1)".to_owned(),
        ),
        Verdict::Conflict(
            Counts { found: 1, installed: 1, invalid: 1 },
            "two packages want different versions of q".to_owned(),
        ),
        Verdict::Resolved(Counts { found: 2, installed: 2, invalid: 0 }),
    ] {
        cluster.verdict = verdict;
        told.push(cluster.settle(&name));
    }
    assert_snapshot!(told.join("\n==\n"), @r#"
    add finalizer revision.pkg.crossplane.io
    --
    status RevisionHealthy=False UnhealthyPackageRevision (cannot resolve package dependencies: missing dependencies: "registry.example.org/q" (>=v1)); {"resolvedImage":"registry.example.org/p:v1","foundDependencies":1}
    event Warning ResolveDependencies: cannot resolve package dependencies: missing dependencies: "registry.example.org/q" (>=v1)
    # cannot resolve package dependencies: missing dependencies: "registry.example.org/q" (>=v1)
    ==
    status RevisionHealthy=False UnhealthyPackageRevision (cannot resolve package dependencies: two packages want different versions of q); {"resolvedImage":"registry.example.org/p:v1","foundDependencies":1,"installedDependencies":1,"invalidDependencies":1}
    event Warning ResolveDependencies: cannot resolve package dependencies: two packages want different versions of q
    # cannot resolve package dependencies: two packages want different versions of q
    ==
    change Lock lock: {"customResourceDefinitions":{"buckets.example.org":"Provider/p"}}
    create CustomResourceDefinition buckets.example.org owned by p-ca2815f8b304* p
    # 1 of 1 objects are written
    # again at once
    --
    status RevisionHealthy=True HealthyPackageRevision; {"resolvedImage":"registry.example.org/p:v1","objectRefs":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"buckets.example.org","uid":"uid-buckets.example.org"}],"foundDependencies":2,"installedDependencies":2}
    event Normal SyncPackage: Successfully reconciled package revision
    "#);
}

#[test]
fn dependencies_that_are_to_be_skipped_are_not_waited_for() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.change(&name, |one| one.spec.skip_dependency_resolution = Some(true));
    // The Lock has to have it all the same.
    cluster.verdict = Verdict::Unheard;
    assert!(!cluster.settle(&name).contains("RevisionHealthy=True"));
    cluster.verdict = Verdict::Skipped;
    cluster.settle(&name);
    assert_snapshot!(cluster.owners("buckets.example.org"), @r"
    p-ca2815f8b304* p
    ");
}

#[test]
fn objects_from_a_backup_are_known_by_the_names_of_their_owners() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    cluster.change(&name, |revision| {
        revision.metadata.uid = Some("new-uid".to_owned());
        revision.metadata.owner_references[0].uid = "new-package-uid".to_owned();
    });
    let told = [cluster.settle(&name), cluster.run(&name)];
    assert_snapshot!(told.join("\n==\n"), @r"
    change CustomResourceDefinition buckets.example.org: owned by p-ca2815f8b304* p
    # 0 of 1 objects are written
    # again at once
    ==
    nothing
    ");
    let owners = &cluster.objects.values().next().unwrap()["metadata"]["ownerReferences"];
    let uids: Vec<&Json> = owners.as_array().unwrap().iter().map(|one| &one["uid"]).collect();
    assert_eq!(uids, ["new-uid", "new-package-uid"]);
}

#[test]
fn an_object_that_lost_its_owners_is_taken_back() {
    let (mut cluster, name) = provider(&["buckets"]);
    cluster.settle(&name);
    cluster.objects.values_mut().next().unwrap()["metadata"]["ownerReferences"] = json!([]);
    assert_snapshot!(cluster.settle(&name), @r"
    replace CustomResourceDefinition buckets.example.org owned by p-ca2815f8b304* p
    # 1 of 1 objects are written
    # again at once
    ");
}
