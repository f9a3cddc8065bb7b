//! The guide as it is written: its own words through a real kubectl, its own documents, its own
//! examples. `guide.txt` says for every section of the guide, and for every behaviour of the
//! controllers in the design, which scenario shows it; that list is checked here, too.
//!
//! The guide's images are on Docker Hub. An image configuration sends whoever asks for them to the
//! registry of the stage.

use super::Scenario;
use super::revisions::{crd, path};
use super::runtimes::{core, deployments};
use super::stage::Stage;
use crate::support::{shared, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) const ALL: &[Scenario] = &[
    ("from building to updating", from_building_to_updating),
    ("packages written by hand", packages_written_by_hand),
    ("a controller configuration of the guide", a_controller_configuration_of_the_guide),
    ("a package that was never pushed", a_package_that_was_never_pushed),
];

/// The provider of the guide, word by word.
const PROVIDER: &str = r#"apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-gcp
spec:
  crossplane:
    version: ">=v1.0.0"
  controller:
    image: crossplane/provider-gcp-controller:v0.14.0
    permissionRequests:
    - apiGroups:
      - apiextensions.crossplane.io
      resources:
      - compositions
      verbs:
      - get
      - list
      - create
      - update
      - patch
      - watch
"#;

/// The configuration of the guide, word by word.
const CONFIGURATION: &str = r#"apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: my-org-infra
spec:
  crossplane:
    version: ">=v1.0.0"
  dependsOn:
    - provider: crossplane/provider-gcp
      version: ">=v0.14.0"
"#;

/// Sends whoever asks Docker Hub for images of this organisation to the registry of the stage.
fn hub(stage: &Stage, organisation: &str) {
    let spec = json!({
        "matchImages": [{"prefix": format!("docker.io/{organisation}/")}],
        "rewriteImage": {"prefix": stage.registry.reference(&format!("{organisation}/"))},
    });
    stage.image_config(&format!("hub-{organisation}"), &spec);
}

/// The only package file in a directory.
fn built(directory: &Path) -> Vec<String> {
    let files = fs_err::read_dir(directory).unwrap().map(|file| file.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(".xpkg")).collect()
}

fn from_building_to_updating(stage: &Stage) {
    hub(stage, "crossplane");
    // Whoever runs the cluster allows what the provider asks for.
    let verbs = ["get", "list", "create", "update", "patch", "watch"];
    let rule = json!({
        "apiGroups": ["apiextensions.crossplane.io"], "resources": ["compositions"], "verbs": verbs,
    });
    let allowed = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "allowed-permissions"}, "rules": [rule],
    });
    stage.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", &allowed);

    // Building and pushing.
    let group = "gcp.example.org";
    let write = |file: &str, text: &str| drop(stage.scratch.write(file, text));
    let push = |kind: &str, directory: &str, package: &str| {
        for old in built(&stage.scratch.join(directory)) {
            fs_err::remove_file(stage.scratch.join(directory).join(old)).unwrap();
        }
        stage.kubectl(directory, &["crossplane", "build", kind]).ok();
        assert_eq!(built(&stage.scratch.join(directory)).len(), 1);
        let there = stage.registry.reference(package);
        stage.kubectl(directory, &["crossplane", "push", kind, &there]).ok();
    };
    write("guide/provider/crossplane.yaml", PROVIDER);
    write("guide/provider/buckets.yaml", &crd(group, "buckets", &["a"]).to_string());
    push("provider", "guide/provider", "crossplane/provider-gcp:v0.14.0");
    write("guide/provider/buckets.yaml", &crd(group, "buckets", &["a", "b"]).to_string());
    push("provider", "guide/provider", "crossplane/provider-gcp:v0.15.0");
    write("guide/configuration/crossplane.yaml", CONFIGURATION);
    push("configuration", "guide/configuration", "crossplane/my-org-infra:v0.1.0");

    // Installing.
    let said = |words: &[&str]| stage.kubectl(".", words).ok().stdout;
    let provider = "crossplane/provider-gcp:v0.14.0";
    let install = ["crossplane", "install", "provider", provider];
    assert_eq!(said(&install), "provider.pkg.crossplane.io/provider-gcp created\n");
    stage.installed("Provider", "provider-gcp");
    let spec = &stage.package("Provider", "provider-gcp")["spec"];
    let shown = ["package", "packagePullPolicy", "revisionActivationPolicy"].map(|of| &spec[of]);
    assert_eq!(json!(shown), json!([provider, "IfNotPresent", "Automatic"]));
    assert_eq!(spec["revisionHistoryLimit"], 1);
    let configuration = "crossplane/my-org-infra:v0.1.0";
    let install = ["crossplane", "install", "configuration", configuration];
    assert_eq!(said(&install), "configuration.pkg.crossplane.io/my-org-infra created\n");
    stage.installed("Configuration", "my-org-infra");
    controller_of_the_guide(stage, group);

    // Updating.
    let update = ["crossplane", "update", "provider", "provider-gcp", "v0.15.0"];
    assert_eq!(said(&update), "provider.pkg.crossplane.io/provider-gcp updated\n");
    stage.states("Provider", "provider-gcp", &[(1, "Inactive"), (2, "Active")]);
    stage.installed("Provider", "provider-gcp");
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b";
    let definition = stage.ask(&path(&format!("buckets.{group}"))).unwrap();
    assert!(definition.pointer(field).is_some(), "{definition}");
    let shown = said(&["get", "providers.pkg.crossplane.io", "provider-gcp"]);
    let last: Vec<&str> = shown.lines().last().unwrap().split_whitespace().take(4).collect();
    let package = "crossplane/provider-gcp:v0.15.0";
    assert_eq!(last, ["provider-gcp", "True", "True", package], "{shown}");
}

/// What runs, and what it may do: reconcile what the package installs, use Secrets, `ConfigMaps`
/// and Events, and what it asked for; nothing else.
fn controller_of_the_guide(stage: &Stage, group: &str) {
    let revision = stage.revisions("Provider", "provider-gcp").pop().unwrap().2;
    let deployment = until("it is run", || stage.ask(&deployments(&revision)));
    let pod = &deployment["spec"]["template"]["spec"];
    let image = pod["containers"][0]["image"].as_str().unwrap();
    assert!(image.ends_with("crossplane/provider-gcp-controller:v0.14.0"), "{image}");
    let account = pod["serviceAccountName"].as_str().unwrap();
    assert!(stage.ask(&core("serviceaccounts", account)).is_some());
    let user = format!("system:serviceaccount:crossplane-system:{account}");
    // Servers hear of roles after a while.
    for what in [
        ["update", group, "buckets"],
        ["update", group, "buckets/status"],
        ["create", "", "secrets"],
        ["create", "", "configmaps"],
        ["create", "", "events"],
        ["watch", "apiextensions.crossplane.io", "compositions"],
    ] {
        until(&format!("it may do {what:?}"), || stage.asked.may(&user, what).then_some(()));
    }
    for what in [["delete", "apiextensions.crossplane.io", "compositions"], ["get", "", "nodes"]] {
        assert!(!stage.asked.may(&user, what), "{what:?}");
    }
}

fn packages_written_by_hand(stage: &Stage) {
    hub(stage, "by-hand");
    stage.push_as(
        "Provider",
        "provider-gcp",
        "v1.0.0",
        &stage.registry.reference("by-hand/provider-gcp:master"),
    );
    stage.push_as(
        "Configuration",
        "my-org-infra",
        "v1.0.0",
        &stage.registry.reference("by-hand/my-org-infra:master"),
    );
    let object = |kind: &str, name: &str| {
        format!(
            "apiVersion: pkg.crossplane.io/v1\nkind: {kind}\nmetadata:\n  name: {name}-by-hand\n\
             spec:\n  package: by-hand/{name}:master\n  packagePullPolicy: IfNotPresent\n  \
             revisionActivationPolicy: Automatic\n  revisionHistoryLimit: 1\n"
        )
    };
    let (provider, configuration) =
        (object("Provider", "provider-gcp"), object("Configuration", "my-org-infra"));
    stage.scratch.write("by-hand.yaml", format!("{provider}---\n{configuration}"));
    stage.kubectl(".", &["apply", "-f", "by-hand.yaml"]).ok();
    stage.installed("Provider", "provider-gcp-by-hand");
    stage.installed("Configuration", "my-org-infra-by-hand");
    // What describes a package inside of it is no object of a cluster.
    stage.scratch.write("metadata.yaml", PROVIDER);
    let refused = stage.kubectl(".", &["apply", "-f", "metadata.yaml"]).failed();
    assert!(refused.contains("no matches for kind \"Provider\" in version"), "{refused}");
    // With somebody to say when it becomes active: activation by hand.
    stage.push_as(
        "Configuration",
        "calm",
        "v1.0.0",
        &stage.registry.reference("by-hand/calm:v1.0.0"),
    );
    let manual = ["configuration", "by-hand/calm:v1.0.0", "--manual-activation"];
    stage.kubectl(".", &[&["crossplane", "install"], &manual[..]].concat()).ok();
    stage.states("Configuration", "calm", &[(1, "Inactive")]);
    let revision = stage.revisions("Configuration", "calm").remove(0).2;
    let active = json!({"spec": {"desiredState": "Active"}}).to_string();
    let patch = ["patch", "configurationrevision", &revision, "--type=merge", "-p", &active];
    stage.kubectl(".", &patch).ok();
    stage.installed("Configuration", "calm");
}

fn a_controller_configuration_of_the_guide(stage: &Stage) {
    hub(stage, "aws");
    let there = stage.registry.reference("aws/provider-aws:v0.15.0");
    stage.push_as("Provider", "provider-aws", "v0.15.0", &there);
    let text = r"apiVersion: pkg.crossplane.io/v1alpha1
kind: ControllerConfig
metadata:
  name: aws-config
  annotations:
    eks.amazonaws.com/role-arn: arn:aws:iam::$AWS_ACCOUNT_ID\:role/$IAM_ROLE_NAME
spec:
  podSecurityContext:
    fsGroup: 2000
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-aws
spec:
  package: aws/provider-aws:v0.15.0
  controllerConfigRef:
    name: aws-config
";
    stage.scratch.write("aws.yaml", text);
    stage.kubectl(".", &["apply", "-f", "aws.yaml"]).ok();
    stage.installed("Provider", "provider-aws");
    let revision = stage.revisions("Provider", "provider-aws").remove(0).2;
    let pod = stage.ask(&deployments(&revision)).unwrap()["spec"]["template"]["spec"].clone();
    assert_eq!(pod["securityContext"]["fsGroup"], 2000);
    let account = pod["serviceAccountName"].as_str().unwrap();
    let account = stage.ask(&core("serviceaccounts", account)).unwrap();
    assert_eq!(
        account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"],
        r"arn:aws:iam::$AWS_ACCOUNT_ID\:role/$IAM_ROLE_NAME"
    );
}

fn a_package_that_was_never_pushed(stage: &Stage) {
    let metadata = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "mycoolpkg"},
    });
    stage.scratch.write("cool/crossplane.yaml", metadata.to_string());
    let build = ["crossplane", "build", "configuration", "--name", "mycoolpkg"];
    stage.kubectl("cool", &build).ok();
    assert_eq!(built(&stage.scratch.join("cool")), ["mycoolpkg.xpkg"]);
    // Copied in one go, as people are told to.
    let partial = stage.cache.join("mycoolpkg.tmp");
    fs_err::copy(stage.scratch.join("cool/mycoolpkg.xpkg"), &partial).unwrap();
    fs_err::rename(partial, stage.cache.join("mycoolpkg.xpkg")).unwrap();
    let text = "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: \
                my-cool-pkg\nspec:\n  package: mycoolpkg\n  packagePullPolicy: Never\n";
    stage.scratch.write("cool.yaml", text);
    stage.kubectl(".", &["apply", "-f", "cool.yaml"]).ok();
    stage.installed("Configuration", "my-cool-pkg");
}

/// Sections of the guide, and behaviours of the design's controllers, as the two documents call them.
fn titles_of_the_documents() -> Option<Vec<String>> {
    let guide = fs_err::read_to_string(shared("seeds/packages-guide.md")?).unwrap();
    let design = fs_err::read_to_string(shared("seeds/packages-v2.md")?).unwrap();
    let (_, design) = design.split_once("\n### Package Controller\n").unwrap();
    let (design, _) = design.split_once("\n## Related Efforts").unwrap();
    let sections = guide.lines().filter_map(|line| line.strip_prefix("##"));
    let sections = sections.map(|line| line.trim_start_matches('#').trim());
    let sections = sections.filter(|title| *title != "Table of Contents");
    let behaviours = design.lines().filter_map(|line| {
        let title = line.strip_prefix("**")?.strip_suffix("**")?;
        (!title.is_empty()).then_some(title)
    });
    Some(sections.chain(behaviours).map(|title| title.replace('`', "")).collect())
}

/// Every section of the guide, and every behaviour of the design's controllers, is in the list; and
/// every scenario that the list names is there.
#[test]
fn the_list_is_whole_and_true() {
    let list = include_str!("guide.txt");
    let titles: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let wanted: Vec<&str> = include_str!("guide-titles.txt").lines().collect();
    if let Some(titles) = titles_of_the_documents() {
        assert_eq!(titles, wanted, "guide-titles.txt is not what the documents say");
    }
    let titles: BTreeSet<&str> = titles.into_iter().collect();
    let missing: Vec<&&str> = wanted.iter().filter(|title| !titles.contains(**title)).collect();
    assert!(missing.is_empty(), "sections that the list leaves out: {missing:#?}");
    assert!(wanted.len() > 20, "{wanted:#?}");

    let known: BTreeSet<&str> =
        super::CHAPTERS.iter().flat_map(|chapter| chapter.iter().map(|one| one.0)).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let named = list
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .flat_map(|(_, all)| all.split(" | ").map(str::trim));
    let mut count = 0;
    for scenario in named {
        count += 1;
        let is_test = scenario.rsplit_once("::").is_some_and(|(file, test)| {
            let text = fs_err::read_to_string(here.join(format!("{}.rs", file.replace("::", "/"))));
            text.is_ok_and(|text| text.contains(&format!("fn {test}(")))
        });
        assert!(is_test || known.contains(scenario), "there is no scenario {scenario:?}");
    }
    assert!(count > 60, "{count}");
}
