//! What users do.

mod pods;
mod stacks;

use crate::pack::{Failure, Package};
use crate::stage::{ManagedKinds, Stage};
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value as Json, json};

/// Steps of a user.
pub type Steps = for<'a> fn(&'a mut Stage) -> BoxFuture<'a, Result<(), Failure>>;

/// Something a user does.
pub struct Scenario {
    /// In a few words.
    pub name: &'static str,
    /// What was done before; it goes well.
    pub before: Steps,
    /// What is done now, while things happen.
    pub act: Steps,
    /// Whether things happen from the manager's start on.
    pub is_start: bool,
    /// Whether packages are pushed meanwhile.
    pub pushes: bool,
    /// Whether Deployments become pods, which a node runs.
    pub is_hosted: bool,
    /// Which kinds the manager looks after.
    pub kinds: ManagedKinds,
}

/// Makes futures of the steps.
macro_rules! scenario {
    ($name:literal, $before:ident, $act:ident) => {
        Scenario {
            name: $name,
            before: |stage| Box::pin($before(stage)),
            act: |stage| Box::pin($act(stage)),
            is_start: false,
            pushes: false,
            is_hosted: false,
            kinds: $crate::stage::ManagedKinds::Packages,
        }
    };
}

use scenario;

/// All of them.
pub const ALL: &[Scenario] = &[
    scenario!("install", stocked, install),
    scenario!("upgrade", installed, upgrade),
    scenario!("roll-back", upgraded, go_back),
    scenario!("uninstall", installed, delete),
    scenario!("function", stocked, install_function),
    scenario!("configuration", stocked, install_configuration),
    scenario!("dependencies", stocked, install_all),
    scenario!("kinds", pinned, install_seeker),
    scenario!("activate", waiting, activate),
    scenario!("history", upgraded, upgrade_again),
    scenario!("contest", installed, contest),
    scenario!("settlement", contested, delete),
    Scenario { pushes: true, ..scenario!("mend", failing, stock) },
    scenario!("go-on", paused, unpause),
    scenario!("runtime", configured, configure),
    scenario!("mirror", lost, mirror),
    scenario!("restore", installed, lose_definition),
    scenario!("retain", dropped, drop_again),
    scenario!("stuck", paced, upgrade_to_stuck),
    scenario!("mended", stuck, mend_configuration),
    START,
    stacks::INSTALL,
    stacks::UPGRADE,
    stacks::MOVE,
    stacks::UNINSTALL,
    pods::INSTALL,
    pods::UPGRADE,
    pods::BAD_UPGRADE,
    pods::NODE_AWAY,
    pods::UNINSTALL,
];

/// A manager comes to a new cluster.
const START: Scenario = Scenario {
    name: "start",
    before: |_| Box::pin(async { Ok(()) }),
    act: |_| Box::pin(async { Ok(()) }),
    is_start: true,
    pushes: false,
    is_hosted: false,
    kinds: ManagedKinds::Packages,
};

/// Where packages are.
pub(crate) const HOST: &str = "registry.example.org";
const VERSIONS: [&str; 3] = ["v1.0.0", "v1.1.0", "v1.2.0"];

fn provider(version: &str) -> Package {
    let field = version.replace('.', "x");
    Package::new("Provider", "nop").with_crd("things", "nop.example.org", &field)
}

fn image(version: &str) -> String {
    format!("{HOST}/team/nop:{version}")
}

/// Where packages or revisions of a kind are, or one of them.
pub(crate) fn path(kind: &str, name: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    let slash = if name.is_empty() { "" } else { "/" };
    format!("/apis/pkg.crossplane.io/v1/{plural}{slash}{name}")
}

async fn create(stage: &Stage, kind: &str, name: &str, spec: Json) -> Result<(), Failure> {
    let object = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": kind,
        "metadata": {"name": name}, "spec": spec,
    });
    stage.ask(Method::POST, &path(kind, ""), &object).await.map(|_| ())
}

async fn change(stage: &Stage, kind: &str, name: &str, patch: Json) -> Result<(), Failure> {
    stage.ask(Method::PATCH, &path(kind, name), &patch).await.map(|_| ())
}

async fn remove(stage: &Stage, kind: &str, name: &str) -> Result<(), Failure> {
    stage.ask(Method::DELETE, &path(kind, name), &Json::Null).await.map(|_| ())
}

/// A provider is installed and deleted; what others may use stays.
pub(crate) async fn come_and_go(stage: &mut Stage) -> Result<(), Failure> {
    let package = Package::new("Provider", "first").with_crd("firsts", "first.example.org", "a");
    let image = format!("{HOST}/team/first:v1.0.0");
    stage.push(&package, &image).await?;
    create(stage, "Provider", "first", json!({"package": image})).await?;
    stage.settle().await?;
    remove(stage, "Provider", "first").await?;
    stage.settle().await
}

async fn stocked(stage: &mut Stage) -> Result<(), Failure> {
    for version in VERSIONS {
        stage.push(&provider(version), &image(version)).await?;
    }
    stage.push(&provider("other"), &format!("{HOST}/other/nop:v1.0.0")).await?;
    stage.push(&Package::new("Function", "ready"), &ready()).await?;
    stage.push(&composing("v1.0.0"), &format!("{HOST}/team/composes:v1.0.0")).await?;
    let top = Package::new("Configuration", "top")
        .needing("Provider", &format!("{HOST}/team/nop"), ">=v1.0.0, <v1.2.0")
        .needing("Function", &format!("{HOST}/team/ready"), ">=v1.0.0");
    stage.push(&top, &format!("{HOST}/team/top:v1.0.0")).await
}

async fn install(stage: &mut Stage) -> Result<(), Failure> {
    create(stage, "Provider", "nop", json!({"package": image("v1.0.0")})).await
}

async fn installed(stage: &mut Stage) -> Result<(), Failure> {
    stocked(stage).await?;
    install(stage).await?;
    stage.settle().await
}

async fn upgrade(stage: &mut Stage) -> Result<(), Failure> {
    change(stage, "Provider", "nop", json!({"spec": {"package": image("v1.1.0")}})).await
}

async fn upgraded(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    upgrade(stage).await?;
    stage.settle().await
}

async fn go_back(stage: &mut Stage) -> Result<(), Failure> {
    change(stage, "Provider", "nop", json!({"spec": {"package": image("v1.0.0")}})).await
}

async fn delete(stage: &mut Stage) -> Result<(), Failure> {
    remove(stage, "Provider", "nop").await
}

fn ready() -> String {
    format!("{HOST}/team/ready:v1.0.0")
}

async fn install_function(stage: &mut Stage) -> Result<(), Failure> {
    create(stage, "Function", "ready", json!({"package": ready()})).await
}

/// A configuration with a definition of a composite resource and a composition.
pub(crate) fn composing(version: &str) -> Package {
    let schema = json!({
        "type": "object", "description": version, "properties": {"spec": {"type": "object"}},
    });
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.composes.example.org"},
        "spec": {
            "group": "composes.example.org", "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "composes"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "composes.example.org/v1", "kind": "XThing"},
            "mode": "Pipeline", "pipeline": [],
        },
    });
    Package::new("Configuration", "composes").with(xrd).with(composition)
}

async fn install_configuration(stage: &mut Stage) -> Result<(), Failure> {
    let spec = json!({"package": format!("{HOST}/team/composes:v1.0.0")});
    create(stage, "Configuration", "composes", spec).await
}

/// A configuration that needs the provider and the function.
async fn install_all(stage: &mut Stage) -> Result<(), Failure> {
    let spec = json!({"package": format!("{HOST}/team/top:v1.0.0")});
    create(stage, "Configuration", "top", spec).await
}

/// A configuration that needs a kind, and an administrator's word on which package brings it.
async fn pinned(stage: &mut Stage) -> Result<(), Failure> {
    stocked(stage).await?;
    let seeker = Package::new("Configuration", "seeker").needing_kind("things.nop.example.org/v1");
    stage.push(&seeker, &format!("{HOST}/team/seeker:v1.0.0")).await?;
    let pins = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": api::manager::PINS},
        "data": {"things.nop.example.org": format!("{HOST}/team/nop")},
    });
    let path = format!("/api/v1/namespaces/{}/configmaps", api::manager::MANAGER_NAMESPACE);
    stage.ask(Method::POST, &path, &pins).await.map(|_| ())
}

async fn install_seeker(stage: &mut Stage) -> Result<(), Failure> {
    let spec = json!({"package": format!("{HOST}/team/seeker:v1.0.0")});
    create(stage, "Configuration", "seeker", spec).await
}

/// The next version is there and waits for somebody to activate it.
async fn waiting(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    let spec = json!({"package": image("v1.1.0"), "revisionActivationPolicy": "Manual"});
    change(stage, "Provider", "nop", json!({"spec": spec})).await?;
    stage.settle().await
}

async fn activate(stage: &mut Stage) -> Result<(), Failure> {
    let all = stage.ask(Method::GET, &path("ProviderRevision", ""), &Json::Null).await?;
    let items = all["items"].as_array().cloned().unwrap_or_default();
    let waiting = items.iter().find(|one| one["spec"]["desiredState"] != "Active");
    let waiting = waiting.and_then(|one| one["metadata"]["name"].as_str());
    let waiting = waiting.ok_or("no revision waits")?;
    let active = json!({"spec": {"desiredState": "Active"}});
    change(stage, "ProviderRevision", waiting, active).await
}

async fn upgrade_again(stage: &mut Stage) -> Result<(), Failure> {
    change(stage, "Provider", "nop", json!({"spec": {"package": image("v1.2.0")}})).await
}

/// Another provider brings the same kind.
async fn contest(stage: &mut Stage) -> Result<(), Failure> {
    create(stage, "Provider", "other", json!({"package": format!("{HOST}/other/nop:v1.0.0")})).await
}

async fn contested(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    contest(stage).await?;
    stage.settle().await
}

/// A provider whose package is not in the registry.
async fn failing(stage: &mut Stage) -> Result<(), Failure> {
    create(stage, "Provider", "nop", json!({"package": image("v1.0.0")})).await?;
    stage.settle().await
}

async fn stock(stage: &mut Stage) -> Result<(), Failure> {
    stage.push(&provider("v1.0.0"), &image("v1.0.0")).await
}

/// Another version is wanted of a provider that is paused.
async fn paused(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    let patch = json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}});
    change(stage, "Provider", "nop", patch).await?;
    stage.settle().await?;
    upgrade(stage).await?;
    stage.settle().await
}

async fn unpause(stage: &mut Stage) -> Result<(), Failure> {
    let patch = json!({"metadata": {"annotations": {"crossplane.io/paused": null}}});
    change(stage, "Provider", "nop", patch).await
}

pub(crate) const RUNTIME_CONFIGS: &str = "/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs";

/// A provider that is run as a runtime configuration says.
async fn configured(stage: &mut Stage) -> Result<(), Failure> {
    stocked(stage).await?;
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "custom"},
    });
    stage.ask(Method::POST, RUNTIME_CONFIGS, &config).await?;
    let spec = json!({"package": image("v1.0.0"), "runtimeConfigRef": {"name": "custom"}});
    create(stage, "Provider", "nop", spec).await?;
    stage.settle().await
}

async fn configure(stage: &mut Stage) -> Result<(), Failure> {
    let container = json!({"name": "package-runtime", "args": ["--debug"]});
    let template = json!({"spec": {"containers": [container]}});
    let template = json!({"spec": {"selector": {}, "template": template}});
    let patch = json!({"spec": {"deploymentTemplate": template}});
    stage.ask(Method::PATCH, &format!("{RUNTIME_CONFIGS}/custom"), &patch).await.map(|_| ())
}

/// A provider whose package is somewhere else.
async fn lost(stage: &mut Stage) -> Result<(), Failure> {
    stocked(stage).await?;
    let image = format!("{HOST}/elsewhere/nop:v1.0.0");
    create(stage, "Provider", "nop", json!({"package": image})).await?;
    stage.settle().await
}

pub(crate) const IMAGE_CONFIGS: &str = "/apis/pkg.crossplane.io/v1beta1/imageconfigs";

/// Images of `elsewhere/` are those of `team/`.
pub(crate) fn mirrored() -> Json {
    json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
        "metadata": {"name": "mirror"},
        "spec": {
            "matchImages": [{"prefix": format!("{HOST}/elsewhere/")}],
            "rewriteImage": {"prefix": format!("{HOST}/team/")},
        },
    })
}

async fn mirror(stage: &mut Stage) -> Result<(), Failure> {
    stage.ask(Method::POST, IMAGE_CONFIGS, &mirrored()).await.map(|_| ())
}

/// Somebody deletes what a package brought.
async fn lose_definition(stage: &mut Stage) -> Result<(), Failure> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.nop.example.org";
    stage.ask(Method::DELETE, path, &Json::Null).await.map(|_| ())
}

/// A version of a provider that brings these kinds.
fn keeper(version: &str, plurals: &[&str]) -> Package {
    let field = version.replace('.', "x");
    let package = Package::new("Provider", "keeper");
    plurals.iter().fold(package, |it, plural| it.with_crd(plural, "keeper.example.org", &field))
}

/// A provider whose second version has dropped two kinds, one of which has an object.
async fn dropped(stage: &mut Stage) -> Result<(), Failure> {
    let image = |version: &str| format!("{HOST}/team/keeper:{version}");
    let all = ["things", "gadgets", "widgets"];
    for (version, plurals) in [("v1.0.0", &all[..]), ("v1.1.0", &all[..1]), ("v1.2.0", &all[..1])] {
        stage.push(&keeper(version, plurals), &image(version)).await?;
    }
    create(stage, "Provider", "keeper", json!({"package": image("v1.0.0")})).await?;
    stage.settle().await?;
    let gadget = json!({
        "apiVersion": "keeper.example.org/v1", "kind": "gadget", "metadata": {"name": "precious"},
    });
    stage.ask(Method::POST, "/apis/keeper.example.org/v1/gadgets", &gadget).await?;
    let next = json!({"spec": {"package": image("v1.1.0")}});
    change(stage, "Provider", "keeper", next).await?;
    stage.settle().await
}

/// The version after that: the revision that brought the kinds leaves the history.
async fn drop_again(stage: &mut Stage) -> Result<(), Failure> {
    let next = json!({"spec": {"package": format!("{HOST}/team/keeper:v1.2.0")}});
    change(stage, "Provider", "keeper", next).await
}

/// How a provider is run whose pods never come: its rollout is paused. It is given up soon.
const STUCK: &str = "stuck";

/// A provider that runs, and a configuration under which the next one does not.
async fn paced(stage: &mut Stage) -> Result<(), Failure> {
    installed(stage).await?;
    let spec = json!({
        "selector": {}, "template": {}, "paused": true, "progressDeadlineSeconds": 60,
    });
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": STUCK},
        "spec": {"deploymentTemplate": {"spec": spec}},
    });
    stage.ask(Method::POST, RUNTIME_CONFIGS, &config).await.map(|_| ())
}

/// The next version does not become available, so the one before runs again.
async fn upgrade_to_stuck(stage: &mut Stage) -> Result<(), Failure> {
    let spec = json!({"package": image("v1.1.0"), "runtimeConfigRef": {"name": STUCK}});
    change(stage, "Provider", "nop", json!({"spec": spec})).await
}

async fn stuck(stage: &mut Stage) -> Result<(), Failure> {
    paced(stage).await?;
    upgrade_to_stuck(stage).await?;
    stage.settle().await
}

/// What kept the next version from starting is mended, and it is tried again.
async fn mend_configuration(stage: &mut Stage) -> Result<(), Failure> {
    let template = json!({"spec": {"paused": false}});
    let patch = json!({"spec": {"deploymentTemplate": template}});
    stage.ask(Method::PATCH, &format!("{RUNTIME_CONFIGS}/{STUCK}"), &patch).await.map(|_| ())
}
