//! What users do with install objects of the first package system.

use super::{HOST, Scenario, scenario};
use crate::pack::{Failure, Package};
use crate::stage::{ManagedKinds, Stage};
use http::Method;
use serde_json::json;

/// A package of the first format is installed.
pub(super) const INSTALL: Scenario = Scenario {
    kinds: ManagedKinds::InstallObjects,
    ..scenario!("stack-install", stocked, install)
};

/// Its install object asks for the next version.
pub(super) const UPGRADE: Scenario = Scenario {
    kinds: ManagedKinds::InstallObjects,
    ..scenario!("stack-upgrade", installed, upgrade)
};

/// Its install object asks for a package of another repository, and what that replaces goes.
pub(super) const MOVE: Scenario = Scenario {
    kinds: ManagedKinds::InstallObjects,
    ..scenario!("stack-move", installed, change_package)
};

/// Its install object goes, and all that it brought.
pub(super) const UNINSTALL: Scenario = Scenario {
    kinds: ManagedKinds::InstallObjects,
    ..scenario!("stack-uninstall", installed, uninstall)
};

/// Where install objects are.
const INSTALLS: &str =
    "/apis/packages.crossplane.io/v1alpha1/namespaces/default/clusterpackageinstalls";

/// A package with one definition and a controller. Its version is the tag.
fn stack(name: &str, field: &str) -> Package {
    let group = format!("{name}.example.org");
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {field: {"type": "string"}},
    }}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "version": "v1alpha1",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "validation": {"openAPIV3Schema": schema},
        },
    });
    let labels = json!({"app": name});
    let install = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "controller"}]},
            },
        },
    });
    let file = |path: &str, content| (path.to_owned(), content);
    Package::of_registry_files(vec![
        file("app.yaml", json!({"title": name, "permissionScope": "Cluster"})),
        file("install.yaml", install),
        file("resources/thing.crd.yaml", definition),
    ])
}

async fn stocked(stage: &mut Stage) -> Result<(), Failure> {
    for (name, version) in [("nop", "v1.0.0"), ("nop", "v1.1.0"), ("other", "v1.0.0")] {
        let field = version.replace('.', "x");
        stage.push(&stack(name, &field), &format!("{HOST}/stacks/{name}:{version}")).await?;
    }
    // The kinds of install objects are there once the manager has made them known.
    stage.settle().await
}

async fn install(stage: &mut Stage) -> Result<(), Failure> {
    let object = json!({
        "apiVersion": "packages.crossplane.io/v1alpha1", "kind": "ClusterPackageInstall",
        "metadata": {"name": "nop", "namespace": "default"},
        "spec": {"source": HOST, "package": "stacks/nop:v1.0.0"},
    });
    stage.ask(Method::POST, INSTALLS, &object).await.map(|_| ())
}

async fn installed(stage: &mut Stage) -> Result<(), Failure> {
    stocked(stage).await?;
    install(stage).await?;
    stage.settle().await
}

async fn ask_for(stage: &mut Stage, package: &str) -> Result<(), Failure> {
    let patch = json!({"spec": {"package": package}});
    stage.ask(Method::PATCH, &format!("{INSTALLS}/nop"), &patch).await.map(|_| ())
}

async fn upgrade(stage: &mut Stage) -> Result<(), Failure> {
    ask_for(stage, "stacks/nop:v1.1.0").await
}

async fn change_package(stage: &mut Stage) -> Result<(), Failure> {
    ask_for(stage, "stacks/other:v1.0.0").await
}

async fn uninstall(stage: &mut Stage) -> Result<(), Failure> {
    stage
        .ask(Method::DELETE, &format!("{INSTALLS}/nop"), &serde_json::Value::Null)
        .await
        .map(|_| ())
}
