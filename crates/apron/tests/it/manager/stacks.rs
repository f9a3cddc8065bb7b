//! Packages of the first system: install objects become Providers, and go without a trace.

use super::Scenario;
use super::kinds::publish;
use super::revisions::{crd, unhealthy};
use super::runtimes::{deployments, role};
use super::stage::{Stage, condition, packages};
use crate::support::{apron, patiently, shared, until};
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("a stack comes and goes", a_stack_comes_and_goes),
    ("the sample stack comes and goes", the_sample_stack_comes_and_goes),
    ("a stack without an install object", a_stack_without_an_install_object_is_told_which_to_write),
    ("a stack is upgraded", a_stack_is_upgraded_by_its_install_object),
    ("namespaces share a stack", namespaces_share_a_stack_and_its_rights_stay_within_them),
    ("a stack of templates", a_stack_of_templates_is_run_by_its_engine),
    ("a stack that runs nothing", a_stack_that_runs_nothing_brings_its_definitions),
    ("a stack of two groups", a_stack_of_one_namespace_has_its_groups_there),
    ("a stack moves", a_stack_moves_to_another_repository_with_its_objects),
    ("two stacks with one definition", a_definition_is_the_first_stacks_until_that_goes),
    ("what does not fit is told", what_does_not_fit_is_told_and_not_installed),
    ("an install by a definition", an_install_object_may_ask_for_a_definition),
];

/// Those in which the manager asks the registry's catalog.
pub(super) const CATALOGED: &[Scenario] =
    &[("what a stack depends on", what_a_stack_depends_on_is_there_before_it)];

const GROUP: &str = "/apis/packages.crossplane.io/v1alpha1";
pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const INSTALL: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec:
  selector: {matchLabels: {core.crossplane.io/name: mine}}
  template:
    metadata: {name: controller, labels: {core.crossplane.io/name: mine}}
    spec:
      containers:
      - {name: controller, args: [--debug], env: }
";

/// A package to be made.
pub(super) struct StackSource<'s> {
    pub(super) name: &'s str,
    pub(super) app: &'s str,
    pub(super) install: Option<&'s str>,
    pub(super) behavior: Option<&'s str>,
    /// Its definitions, by name.
    pub(super) definitions: &'s [&'s str],
}

impl<'s> StackSource<'s> {
    pub(super) fn new(name: &'s str, app: &'s str) -> Self {
        Self { name, app, install: Some(INSTALL), behavior: None, definitions: &[] }
    }
}

/// A definition as documents of the time have it.
fn beta_definition(name: &str) -> String {
    let (plural, group) = name.split_once('.').unwrap();
    format!(
        "---\napiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n\
         spec: {{group: {group}, names: {{kind: Thing, plural: {plural}}}, scope: Namespaced, version: v1alpha1}}\n"
    )
}

/// Builds and pushes a stack with one definition, in a group of its name unless it names others, and
/// gives its repository.
pub(super) fn push_stack(stage: &Stage, source: &StackSource<'_>, tag: &str) -> String {
    let StackSource { name, app, install, behavior, definitions } = source;
    let own = format!("things.{name}.example.org");
    let (first, more) =
        definitions.split_first().map_or((own.as_str(), &[][..]), |it| (*it.0, it.1));
    let mut files = vec![
        ("app.yaml", (*app).to_owned()),
        ("icon.svg", "<svg/>".to_owned()),
        ("resources/group/group.yaml", "title: The group\n".to_owned()),
        ("resources/group/thing/resource.yaml", "id: thing\ntitle: A thing\n".to_owned()),
        ("resources/group/thing/thing.ui-schema.yaml", "version: 1\n".to_owned()),
        ("resources/group/thing/thing.crd.yaml", beta_definition(first)),
        ("resources/more.crd.yaml", more.iter().map(|it| beta_definition(it)).collect()),
    ];
    files.retain(|(_, text)| !text.is_empty());
    files.extend(install.map(|text| ("install.yaml", text.to_owned())));
    files.extend(behavior.map(|text| ("behavior.yaml", text.to_owned())));
    let files = files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
    push_files(stage, name, tag, files)
}

/// Builds and pushes a stack of files, and gives its repository.
pub(super) fn push_files(
    stage: &Stage,
    name: &str,
    tag: &str,
    files: Vec<(String, String)>,
) -> String {
    let root = format!("stacks/{name}-{tag}");
    for (path, text) in files {
        stage.scratch.write(&format!("{root}/.registry/{path}"), text);
    }
    let file = format!("stacks/{name}-{tag}.xpkg");
    apron(&stage.scratch, ["build", &root, "-o", &file]).ok();
    let reference = stage.registry.reference(&format!("team/{name}:{tag}"));
    apron(&stage.scratch, ["push", &reference, "-f", &file]).ok();
    format!("team/{name}:{tag}")
}

/// Waits until the catalog knows a definition.
pub(super) fn is_listed(stage: &Stage, definition: &str) {
    until(&format!("the catalog knows {definition}"), || {
        (stage.registry.get(&format!("/api/v1/crds/{definition}")).0 == 200).then_some(())
    });
}

fn collection(namespace: &str, kind: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/{}s", kind.to_lowercase())
}

pub(super) fn object_path(namespace: &str, kind: &str, name: &str) -> String {
    format!("{}/{name}", collection(namespace, kind))
}

/// Makes an install object of a package in the stage's registry, and gives its path.
pub(super) fn ask_for(
    stage: &Stage,
    kind: &str,
    namespace: &str,
    name: &str,
    package: &str,
) -> String {
    ask_with(stage, kind, (namespace, name), &json!({"package": package}));
    object_path(namespace, kind, name)
}

/// The same, by what its spec says beside the registry.
fn ask_with(stage: &Stage, kind: &str, (namespace, name): (&str, &str), spec: &Json) {
    let mut object = json!({
        "apiVersion": "packages.crossplane.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    });
    object["spec"]["source"] = json!(stage.registry.reference("").trim_end_matches('/'));
    let path = collection(namespace, kind);
    until(&format!("{path} is served"), || stage.ask(&path));
    stage.make(&path, &object);
}

/// Waits until an install object is ready, and says that its controller runs where nobody else does.
#[track_caller]
pub(super) fn is_ready(stage: &Stage, path: &str, provider: &str) -> Json {
    is_ready_with(stage, path, &[provider])
}

/// The same where several providers run.
#[track_caller]
fn is_ready_with(stage: &Stage, path: &str, providers: &[&str]) -> Json {
    patiently(|| {
        let all = providers.iter().flat_map(|provider| stage.revisions("Provider", provider));
        for (_, state, revision) in all {
            let deployment = deployments(&revision);
            if state == "Active" && stage.is_real() && stage.ask(&deployment).is_some() {
                stage.make_available(&deployment);
            }
        }
        let object = stage.ask(path).unwrap_or_default();
        let ready = condition(&object, "Ready").unwrap_or_default();
        if ready["status"] == "True" { Ok(object) } else { Err(format!("{path} says {object}")) }
    })
}

/// Waits until a condition of an install object is so for this reason.
#[track_caller]
fn says(stage: &Stage, path: &str, of: &str, expected: &str) {
    patiently(|| {
        let object = stage.ask(path).unwrap_or_default();
        let said = condition(&object, of).unwrap_or_default();
        let message = said["message"].as_str().unwrap_or_default();
        if said["status"] == "False" && message.contains(expected) {
            return Ok(());
        }
        Err(format!("{path} says {said} instead of {expected}"))
    });
}

/// Deletes an install object, and waits until nothing is left of what it brought.
#[track_caller]
pub(super) fn goes(stage: &Stage, path: &str, rest: &[String]) {
    stage.change("DELETE", path, "application/json", &Json::Null);
    for path in [path.to_owned()].iter().chain(rest) {
        until(&format!("{path} is gone"), || stage.is_absent(path).then_some(()));
    }
}

/// Everything that an install of a package comes to, but for its revisions.
pub(super) fn brought(stage: &Stage, namespace: &str, name: &str, provider: &str) -> Vec<String> {
    let mut all = vec![
        object_path(namespace, "Package", name),
        format!("{}/{provider}", packages("Provider")),
        format!("/apis/pkg.crossplane.io/v1beta1/deploymentruntimeconfigs/{provider}"),
    ];
    for (_, _, revision) in stage.revisions("Provider", provider) {
        all.extend([role(&revision), deployments(&revision)]);
        all.push(format!("{}/{revision}", packages("ProviderRevision")));
    }
    all
}

fn a_stack_comes_and_goes(stage: &Stage) {
    let app =
        "title: The stack\nversion: 1.0.0\npermissionScope: Cluster\noverviewShort: About it\n";
    let package = push_stack(stage, &StackSource::new("comes", app), "v1.0.0");
    ask_for(stage, "ClusterPackageInstall", "default", "comes", &package);
    let path = object_path("default", "ClusterPackageInstall", "comes");
    let object = is_ready(stage, &path, "team-comes");
    let status = &object["status"];
    assert_eq!(status["conditions"], status["conditionedStatus"]["conditions"]);
    assert_eq!(condition(&object, "Synced").unwrap()["reason"], "ReconcileSuccess");
    assert_eq!(condition(&object, "Creating"), None);
    // Its definition, with what the files beside it say.
    let definition = format!("{CRDS}/things.comes.example.org");
    let found = stage.ask(&definition).unwrap();
    let annotation = |key: &str| {
        found["metadata"]["annotations"][format!("packages.crossplane.io/{key}")].clone()
    };
    assert_eq!(annotation("package-title"), "The stack");
    assert_eq!(annotation("group-title"), "The group");
    assert_eq!(annotation("resource-title"), "A thing");
    assert_eq!(annotation("ui-schema"), "version: 1\n");
    assert_eq!(annotation("icon-data-uri"), "data:image/svg+xml;base64,PHN2Zy8+");
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/managed-by"], "package-manager");
    assert_eq!(labels["crossplane.io/scope"], "environment");
    assert_eq!(labels["core.crossplane.io/parent-name"], "comes");
    assert_eq!(labels["parent.packages.crossplane.io/default-comes"], "true");
    // Its record, and what it says of itself.
    let record = until("the record is ready", || {
        let record = stage.ask(&object_path("default", "Package", "comes"))?;
        (condition(&record, "Ready")?["status"] == "True").then_some(record)
    });
    assert_eq!(record["spec"]["overviewShort"], "About it");
    assert_eq!(record["spec"]["customresourcedefinitions"][0]["kind"], "Thing");
    assert_eq!(status["packageRecord"]["uid"], record["metadata"]["uid"]);
    // What runs is the package's own image, by digest, without privileges.
    let (_, _, revision) = stage.revisions("Provider", "team-comes").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["core.crossplane.io/name"], "mine");
    let container = &pod["spec"]["containers"][0];
    assert!(
        container["image"].as_str().unwrap().contains("team/comes:v1.0.0@sha256:"),
        "{container}"
    );
    assert_eq!(container["args"], json!(["--debug"]));
    assert_eq!(container["securityContext"]["privileged"], false);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    let rest = brought(stage, "default", "comes", "team-comes");
    for path in &rest {
        assert!(stage.ask(path).is_some(), "{path}");
    }
    goes(stage, &path, &[rest, vec![definition]].concat());
}

fn the_sample_stack_comes_and_goes(stage: &Stage) {
    let Some(sample) = shared("corpus/packages/sample-stack-v1") else { return };
    stage.scratch.copy_package_from(&sample, "stacks/sample");
    apron(&stage.scratch, ["build", "stacks/sample", "-o", "stacks/sample.xpkg"]).ok();
    let reference = stage.registry.reference("crossplane/sample-stack:v0.0.1");
    apron(&stage.scratch, ["push", &reference, "-f", "stacks/sample.xpkg"]).ok();
    let package = "crossplane/sample-stack:v0.0.1";
    ask_for(stage, "ClusterPackageInstall", "default", "sample", package);
    let path = object_path("default", "ClusterPackageInstall", "sample");
    is_ready(stage, &path, "crossplane-sample-stack");
    let (_, _, revision) = stage.revisions("Provider", "crossplane-sample-stack").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    // The controller's image comes from where the package comes from.
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, stage.registry.reference("crossplane/sample-stack:latest"));
    let mut rest = brought(stage, "default", "sample", "crossplane-sample-stack");
    rest.push(format!("{CRDS}/mytypes.samples.upbound.io"));
    for path in &rest {
        assert!(stage.ask(path).is_some(), "{path}");
    }
    goes(stage, &path, &rest);
}

fn a_stack_without_an_install_object_is_told_which_to_write(stage: &Stage) {
    let app = "title: Plain\nversion: 1.0.0\npermissionScope: Cluster\n";
    let package = push_stack(stage, &StackSource::new("plain", app), "v1.0.0");
    let image = stage.registry.reference(&package);
    stage.install("Provider", "team-plain", &json!({"package": image}));
    let why = unhealthy(stage, "Provider", "team-plain", "is a package of the first format");
    let object = "write a ClusterPackageInstall of packages.crossplane.io/v1alpha1";
    assert!(why.contains(&format!("{object} with spec.package {image}")), "{why}");
    let definition = format!("{CRDS}/things.plain.example.org");
    assert!(stage.is_absent(&definition));
    // Commands that look for a kind say the same.
    let kind = "things.plain.example.org";
    let host = stage.registry.reference("");
    is_listed(stage, kind);
    let refused = stage.apron(&["install", "--crd", kind, "--catalog", &host]).failed();
    assert!(refused.contains("which a ClusterPackageInstall installs"), "{refused}");
    let which = stage.apron(&["which", kind, "--registry", host.trim_end_matches('/')]).ok().all();
    assert!(which.contains("\"kind\":\"ClusterPackageInstall\""), "{which}");
    // The object takes over what waits for it, and everything goes with it.
    ask_for(stage, "ClusterPackageInstall", "default", "plain", &package);
    let path = object_path("default", "ClusterPackageInstall", "plain");
    is_ready(stage, &path, "team-plain");
    let (_, _, revision) = stage.revisions("Provider", "team-plain").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["--debug"]));
    let rest = brought(stage, "default", "plain", "team-plain");
    goes(stage, &path, &[rest, vec![definition]].concat());
}

fn a_stack_is_upgraded_by_its_install_object(stage: &Stage) {
    let app = "title: One\npermissionScope: Cluster\n";
    let first = push_stack(stage, &StackSource::new("moves", app), "v1.0.0");
    let app = "title: Two\npermissionScope: Cluster\n";
    let second = push_stack(stage, &StackSource::new("moves", app), "v2.0.0");
    let app = "title: Three\npermissionScope: Namespaced\n";
    let third = push_stack(stage, &StackSource::new("moves", app), "v3.0.0");
    ask_for(stage, "ClusterPackageInstall", "default", "moves", &first);
    let path = object_path("default", "ClusterPackageInstall", "moves");
    is_ready(stage, &path, "team-moves");
    let record = object_path("default", "Package", "moves");
    let version = || stage.ask(&record).map(|it| it["spec"]["version"].clone()).unwrap_or_default();
    assert_eq!(version(), "v1.0.0", "what app.yaml does not say the tag does");
    stage.change("PATCH", &path, MERGE, &json!({"spec": {"package": second}}));
    // Each activation by the install object has a number of its own.
    stage.states("Provider", "team-moves", &[(2, "Inactive"), (4, "Active")]);
    is_ready(stage, &path, "team-moves");
    until("the record is of the new version", || (version() == "v2.0.0").then_some(()));
    // A version that does not fit changes nothing of what works.
    stage.change("PATCH", &path, MERGE, &json!({"spec": {"package": third}}));
    says(stage, &path, "Synced", "the package has permissionScope Namespaced");
    stage.states("Provider", "team-moves", &[(2, "Inactive"), (4, "Active"), (5, "Inactive")]);
    assert_eq!(version(), "v2.0.0");
    let rest = brought(stage, "default", "moves", "team-moves");
    goes(stage, &path, &rest);
}

fn a_stack_moves_to_another_repository_with_its_objects(stage: &Stage) {
    let app = "title: Roams\nversion: 1.0.0\npermissionScope: Cluster\n";
    let first = push_stack(stage, &StackSource::new("roams", app), "v1.0.0");
    let [from, to] = [&first, "elsewhere/roams:v1.0.0"].map(|it| stage.registry.reference(it));
    stage.apron(&["copy", &from, &to]).ok();
    let path = ask_for(stage, "ClusterPackageInstall", "default", "roams", &first);
    is_ready(stage, &path, "team-roams");
    let things = "/apis/roams.example.org/v1alpha1/namespaces/default/things";
    let thing = json!({
        "apiVersion": "roams.example.org/v1alpha1", "kind": "Thing",
        "metadata": {"name": "lives", "namespace": "default"},
    });
    until("the kind is served", || stage.ask(things));
    stage.make(things, &thing);
    let uid = |path: &str| stage.ask(path).unwrap_or_default()["metadata"]["uid"].clone();
    let definition = format!("{CRDS}/things.roams.example.org");
    let before = [uid(&definition), uid(&format!("{things}/lives"))];
    stage.change("PATCH", &path, MERGE, &json!({"spec": {"package": "elsewhere/roams:v1.0.0"}}));
    // It is an upgrade of the Provider that is there: nothing else comes, and nothing goes.
    until("the Provider has the other repository", || {
        (stage.package("Provider", "team-roams")["spec"]["package"] == *to).then_some(())
    });
    is_ready(stage, &path, "team-roams");
    until("the definition is the new revision's", || {
        let found = stage.ask(&definition)?;
        let owners = found["metadata"]["ownerReferences"].as_array()?.clone();
        let controller = owners.into_iter().find(|one| one["controller"] == true)?;
        let active = stage.revisions("Provider", "team-roams");
        let active = active.into_iter().find(|(_, state, _)| state == "Active")?;
        let image = stage.ask(&format!("{}/{}", packages("ProviderRevision"), active.2))?;
        (controller["name"] == *active.2 && image["spec"]["image"] == *to).then_some(())
    });
    assert!(stage.package("Provider", "elsewhere-roams").is_null());
    assert_eq!(before, [uid(&definition), uid(&format!("{things}/lives"))]);
    let rest = brought(stage, "default", "roams", "team-roams");
    stage.change("DELETE", &format!("{things}/lives"), "application/json", &Json::Null);
    goes(stage, &path, &[rest, vec![definition]].concat());
}

fn namespaces_share_a_stack_and_its_rights_stay_within_them(stage: &Stage) {
    let app = "title: Shared\nversion: 1.0.0\npermissionScope: Namespaced\n";
    let package = push_stack(stage, &StackSource::new("shares", app), "v1.0.0");
    for namespace in ["shares-one", "shares-two"] {
        stage.make(
            "/api/v1/namespaces",
            &json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
            }),
        );
        ask_for(stage, "PackageInstall", namespace, "shared", &package);
    }
    let [one, two] =
        ["shares-one", "shares-two"].map(|it| object_path(it, "PackageInstall", "shared"));
    for path in [&one, &two] {
        is_ready(stage, path, "team-shares");
    }
    let (_, _, revision) = stage.revisions("Provider", "team-shares").pop().unwrap();
    let binding = |namespace: &str| {
        let name = format!("crossplane%3Aprovider%3A{revision}%3Asystem");
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}")
    };
    let everywhere = role(&revision).replace("clusterroles", "clusterrolebindings");
    for namespace in ["shares-one", "shares-two"] {
        until("there is a binding in each namespace", || stage.ask(&binding(namespace)));
        assert!(stage.ask(&object_path(namespace, "Package", "shared")).is_some());
    }
    assert!(stage.is_absent(&everywhere));
    // Who asks for another version, or for all of the cluster, is told who has it.
    ask_for(stage, "ClusterPackageInstall", "shares-one", "all", &package);
    let all = object_path("shares-one", "ClusterPackageInstall", "all");
    says(stage, &all, "Synced", "can be in a cluster only once with rights in all of it");
    goes(stage, &all, &[]);
    goes(stage, &one, &[object_path("shares-one", "Package", "shared"), binding("shares-one")]);
    is_ready(stage, &two, "team-shares");
    let definition = format!("{CRDS}/things.shares.example.org");
    until("the definition says whom it is for", || {
        let labels = stage.ask(&definition)?["metadata"]["labels"].clone();
        let (gone, stays) =
            ("namespace.crossplane.io/shares-one", "namespace.crossplane.io/shares-two");
        (labels[gone].is_null() && labels[stays] == "true").then_some(())
    });
    let rest = brought(stage, "shares-two", "shared", "team-shares");
    goes(stage, &two, &[rest, vec![definition, binding("shares-two")]].concat());
}

fn a_stack_of_templates_is_run_by_its_engine(stage: &Stage) {
    let app = "title: Templates\nversion: 1.0.0\npermissionScope: Cluster\n";
    let behavior = "crd: {apiVersion: templates.example.org/v1alpha1, kind: Thing}\n\
                    engine: {type: helm2, controllerImage: team/templating:v1}\nsource: {path: charts}\n";
    let mut source = StackSource::new("templates", app);
    (source.install, source.behavior) = (None, Some(behavior));
    let package = push_stack(stage, &source, "v1.0.0");
    ask_for(stage, "ClusterPackageInstall", "default", "templates", &package);
    let path = object_path("default", "ClusterPackageInstall", "templates");
    is_ready(stage, &path, "team-templates");
    let template = object_path("default", "StackDefinition", "templates");
    let found = stage.ask(&template).unwrap();
    let image = stage.registry.reference("team/templates:v1.0.0");
    assert_eq!(found["spec"]["behavior"]["source"]["image"], *image);
    let (_, _, revision) = stage.revisions("Provider", "team-templates").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["image"], *image);
    assert_eq!(pod["containers"][0]["image"], *stage.registry.reference("team/templating:v1"));
    let mut rest = brought(stage, "default", "templates", "team-templates");
    rest.push(template);
    goes(stage, &path, &rest);
}

fn a_stack_that_runs_nothing_brings_its_definitions(stage: &Stage) {
    let mut source = StackSource::new("rests", "title: Rests\nversion: 1.0.0\n");
    source.install = None;
    let package = push_stack(stage, &source, "v1.0.0");
    ask_for(stage, "ClusterPackageInstall", "default", "rests", &package);
    let path = object_path("default", "ClusterPackageInstall", "rests");
    is_ready(stage, &path, "team-rests");
    let (_, _, revision) = stage.revisions("Provider", "team-rests").pop().unwrap();
    assert_eq!(stage.ask(&deployments(&revision)).unwrap()["spec"]["replicas"], 0);
    let rest = brought(stage, "default", "rests", "team-rests");
    goes(stage, &path, &[rest, vec![format!("{CRDS}/things.rests.example.org")]].concat());
}

fn a_stack_of_one_namespace_has_its_groups_there(stage: &Stage) {
    let app = "title: Groups\nversion: 1.0.0\npermissionScope: Namespaced\n";
    let groups = ["one.groups.example.org", "two.groups.example.org"];
    let [one, two] = groups.map(|group| format!("things.{group}"));
    let definitions = [one.as_str(), two.as_str()];
    let source = StackSource { definitions: &definitions, ..StackSource::new("groups", app) };
    let package = push_stack(stage, &source, "v1.0.0");
    ask_for(stage, "PackageInstall", "default", "groups", &package);
    let path = object_path("default", "PackageInstall", "groups");
    is_ready(stage, &path, "team-groups");
    // Metadata reaches the definitions below it.
    let title = |name: &str| {
        let found = stage.ask(&format!("{CRDS}/{name}")).unwrap();
        found["metadata"]["annotations"]["packages.crossplane.io/group-title"].clone()
    };
    assert_eq!((title(&one), title(&two)), (json!("The group"), Json::Null));
    let (_, _, revision) = stage.revisions("Provider", "team-groups").pop().unwrap();
    let rules = stage.ask(&role(&revision)).unwrap()["rules"].to_string();
    assert!(groups.iter().all(|group| rules.contains(group)), "{rules}");
    let everywhere = role(&revision).replace("clusterroles", "clusterrolebindings");
    assert!(stage.is_absent(&everywhere));
    let mut rest = brought(stage, "default", "groups", "team-groups");
    rest.extend(definitions.iter().map(|name| format!("{CRDS}/{name}")));
    goes(stage, &path, &rest);
}

fn a_definition_is_the_first_stacks_until_that_goes(stage: &Stage) {
    let contested = "things.contested.example.org";
    let install = |name: &str| {
        let app = "title: One of two\nversion: 1.0.0\npermissionScope: Cluster\n";
        let source = StackSource { definitions: &[contested], ..StackSource::new(name, app) };
        let package = push_stack(stage, &source, "v1.0.0");
        ask_for(stage, "ClusterPackageInstall", "default", name, &package);
        object_path("default", "ClusterPackageInstall", name)
    };
    let first = install("contests-first");
    is_ready(stage, &first, "team-contests-first");
    let second = install("contests-second");
    says(stage, &second, "Ready", contested);
    let controller = || {
        let found = stage.ask(&format!("{CRDS}/{contested}"))?;
        let owners = found["metadata"]["ownerReferences"].as_array()?.clone();
        let owner = owners.into_iter().find(|one| one["controller"] == true)?;
        owner["name"].as_str().map(str::to_owned)
    };
    assert!(controller().is_some_and(|name| name.starts_with("team-contests-first-")));
    goes(stage, &first, &brought(stage, "default", "contests-first", "team-contests-first"));
    is_ready(stage, &second, "team-contests-second");
    assert!(controller().is_some_and(|name| name.starts_with("team-contests-second-")));
    let rest = brought(stage, "default", "contests-second", "team-contests-second");
    goes(stage, &second, &[rest, vec![format!("{CRDS}/{contested}")]].concat());
}

fn what_does_not_fit_is_told_and_not_installed(stage: &Stage) {
    let tell = |kind: &str, source: &StackSource<'_>, tag: &str, expected: &str| {
        let package = push_stack(stage, source, tag);
        ask_for(stage, kind, "default", source.name, &package);
        let path = object_path("default", kind, source.name);
        says(stage, &path, "Synced", expected);
        let definition = format!("{CRDS}/things.{}.example.org", source.name);
        assert!(stage.is_absent(&definition), "{definition}");
        goes(
            stage,
            &path,
            &brought(stage, "default", source.name, &format!("team-{}", source.name)),
        );
    };
    let app = "title: T\npermissionScope: Cluster\n";
    tell("PackageInstall", &StackSource::new("mismatch", app), "v1.0.0", "permissionScope Cluster");
    let app = "title: T\nversion: 2.0.0\n";
    let source = StackSource::new("mistagged", app);
    tell("ClusterPackageInstall", &source, "v1.0.0", "app.yaml says version 2.0.0");
    let install = INSTALL.replace("containers:", "hostNetwork: true\n      containers:");
    let source =
        StackSource { install: Some(&install), ..StackSource::new("reaches", "title: T\n") };
    tell("ClusterPackageInstall", &source, "v1.0.0", "spec.template.spec.hostNetwork");
    // The API server itself takes only one of package and definition.
    let path = collection("default", "PackageInstall");
    until(&format!("{path} is served"), || stage.ask(&path));
    for spec in [json!({}), json!({"package": "a", "crd": "b.example.org/v1"})] {
        let object = json!({
            "apiVersion": "packages.crossplane.io/v1alpha1", "kind": "PackageInstall",
            "metadata": {"name": "both", "namespace": "default"}, "spec": spec,
        });
        let said = stage.asked.send("POST", &path, "application/json", &object).unwrap_err();
        assert!(said.to_string().contains("exactly one of package and crd must be set"), "{said}");
    }
    let absent = object_path("default", "ClusterPackageInstall", "absent");
    ask_for(stage, "ClusterPackageInstall", "default", "absent", "team/nowhere:v1.0.0");
    says(stage, &absent, "Ready", "team/nowhere:v1.0.0");
    goes(stage, &absent, &[]);
}

/// Lines 114 to 127 of the description, as they stand there but for the registry.
fn an_install_object_may_ask_for_a_definition(stage: &Stage) {
    let definition = "wordpressinstances.wordpress.samples.packages.crossplane.io";
    let app = "title: Blogs\nversion: 0.1.0\npermissionScope: Namespaced\n";
    let source = StackSource { definitions: &[definition], ..StackSource::new("wordpress", app) };
    push_stack(stage, &source, "v0.1.0");
    is_listed(stage, definition);
    let by_definition = |name: &str, crd: &str| {
        ask_with(stage, "PackageInstall", ("default", name), &json!({"crd": crd}));
        object_path("default", "PackageInstall", name)
    };
    let path = by_definition("wordpress-from-crd", &format!("{definition}/v1alpha1"));
    let object = is_ready(stage, &path, "team-wordpress");
    let image = stage.registry.reference("team/wordpress:v0.1.0");
    assert_eq!(object["metadata"]["annotations"]["pkg.crossplane.io/chosen-package"], *image);
    assert_eq!(object["spec"]["package"], Json::Null);
    let mut rest = brought(stage, "default", "wordpress-from-crd", "team-wordpress");
    rest.push(format!("{CRDS}/{definition}"));
    for path in &rest {
        assert!(stage.ask(path).is_some(), "{path}");
    }
    goes(stage, &path, &rest);
    // A definition without a package, and one with several, is told and left alone.
    let missing = by_definition("from-nowhere", "things.nowhere.example.org/v1");
    says(stage, &missing, "Synced", "no package brings the CRD things.nowhere.example.org/v1");
    goes(stage, &missing, &[]);
    let several = "things.either.example.org";
    for name in ["either-one", "either-two"] {
        let source = StackSource { definitions: &[several], ..StackSource::new(name, app) };
        push_stack(stage, &source, "v0.1.0");
    }
    until("the catalog knows both packages", || {
        let (_, found) = stage.registry.get(&format!("/api/v1/crds/{several}/packages"));
        (found.contains("team/either-one") && found.contains("team/either-two")).then_some(())
    });
    let either = by_definition("from-either", &format!("{several}/v1alpha1"));
    says(stage, &either, "Synced", "several packages bring the CRD things.either.example.org");
    goes(stage, &either, &[]);
}

fn what_a_stack_depends_on_is_there_before_it(stage: &Stage) {
    let groups = ["missed.example.org", "sought.example.org", "present.example.org"];
    let allowed = json!({"apiGroups": groups, "resources": ["*"], "verbs": ["*"]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "allowed-permissions"}, "rules": [allowed],
    });
    stage.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role);
    let install_needing = |name: &str, group: &str| {
        let app = format!(
            "title: Needs\nversion: 1.0.0\npermissionScope: Cluster\ndependsOn:\n- crd: wants.{group}/v1\n"
        );
        let package = push_stack(stage, &StackSource::new(name, &app), "v1.0.0");
        ask_for(stage, "ClusterPackageInstall", "default", name, &package);
        object_path("default", "ClusterPackageInstall", name)
    };
    let [missed, sought, present] = groups;
    let path = install_needing("misses", missed);
    says(stage, &path, "Ready", &format!("no package brings the CRD wants.{missed}"));
    assert!(stage.is_absent(&format!("{CRDS}/things.misses.example.org")));
    goes(stage, &path, &brought(stage, "default", "misses", "team-misses"));
    // One that the catalog knows comes before it.
    publish(stage, "Provider", "sought-it", "v1.0.0", &[crd(sought, "wants", &["a"])]);
    let path = install_needing("seeks", sought);
    is_ready_with(stage, &path, &["team-seeks", "sought-it"]);
    assert!(stage.ask(&format!("{CRDS}/wants.{sought}")).is_some());
    goes(stage, &path, &brought(stage, "default", "seeks", "team-seeks"));
    // One that is there already takes no package.
    stage.make(CRDS, &crd(present, "wants", &["a"]));
    publish(stage, "Provider", "present-it", "v1.0.0", &[crd(present, "wants", &["a"])]);
    until("the kind is served", || stage.ask(&format!("/apis/{present}/v1/wants")));
    let path = install_needing("finds", present);
    is_ready(stage, &path, "team-finds");
    assert!(stage.package("Provider", "present-it").is_null());
    goes(stage, &path, &brought(stage, "default", "finds", "team-finds"));
}
