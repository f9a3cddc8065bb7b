//! The description of the first package system, section by section: its own documents, read from where it
//! stands, with the lines they are at. Registries of the world are those of the stage.

use super::Scenario;
use super::runtimes::deployments;
use super::stacks::{
    CRDS, StackSource, ask_for, brought, goes, is_listed, is_ready, object_path, push_files,
    push_stack,
};
use super::stage::Stage;
use crate::support::{shared, until};
use serde_json::{Value as Json, json};

pub(super) const ALL: &[Scenario] = &[
    ("lines 86 to 127: install objects", lines_86_to_127_install_objects_bring_packages),
    ("lines 129 to 202: a record", lines_129_to_202_a_record_is_kept_as_it_is_written),
    ("lines 204 to 269: what an object changes", lines_204_to_269_an_object_changes_what_runs),
    ("lines 285 to 336: files of a package", lines_285_to_336_files_are_found_by_their_patterns),
    ("lines 340 to 626: examples of files", lines_340_to_626_files_become_the_definition),
];

/// Lines of the description, the first and the last among them; none where it is not at hand. They must be
/// what a scenario takes them for.
fn seed_lines(first: usize, last: usize, begin: &str) -> Option<String> {
    let path = shared("seeds/packages-v1.md")?;
    let text = fs_err::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().skip(first - 1).take(last + 1 - first).collect();
    assert!(lines[0].starts_with(begin), "line {first} is {}", lines[0]);
    Some(format!("{}\n", lines.join("\n")))
}

/// The same in the registry of the stage.
fn in_registry(stage: &Stage, text: &str, host: &str) -> String {
    text.replace(host, stage.registry.reference("").trim_end_matches('/'))
}

/// Applies a document as a user of the time would.
fn apply(stage: &Stage, name: &str, text: &str) {
    let path = object_path("default", "PackageInstall", "nothing");
    let collection = path.rsplit_once('/').unwrap().0;
    until("the kinds are served", || stage.ask(collection));
    stage.scratch.write(&format!("seed/{name}.yaml"), text);
    stage.kubectl(".", &["apply", "-f", &format!("seed/{name}.yaml")]).ok();
}

fn lines_86_to_127_install_objects_bring_packages(stage: &Stage) {
    let Some(text) = seed_lines(98, 126, "# Install a package into Crossplane") else { return };
    let app = "title: GCP\nversion: 0.1.0\npermissionScope: Cluster\n";
    push_stack(stage, &StackSource::new("gcp", app), "v0.1.0");
    let (from, to) = ("team/gcp:v0.1.0", "crossplane/provider-gcp:v0.1.0");
    let [from, to] = [from, to].map(|it| stage.registry.reference(it));
    stage.apron(&["copy", &from, &to]).ok();
    let definition = "wordpressinstances.wordpress.samples.packages.crossplane.io";
    let app = "title: Blogs\nversion: 0.1.0\npermissionScope: Namespaced\n";
    let source = StackSource { definitions: &[definition], ..StackSource::new("blogs", app) };
    push_stack(stage, &source, "v0.1.0");
    is_listed(stage, definition);
    apply(stage, "installs", &in_registry(stage, &text, "registry.crossplane.io"));
    // By its name, with rights in the whole cluster; kubectl says in which namespace it is.
    let cluster = object_path("default", "ClusterPackageInstall", "gcp-from-package");
    is_ready(stage, &cluster, "crossplane-provider-gcp");
    let rest = brought(stage, "default", "gcp-from-package", "crossplane-provider-gcp");
    goes(stage, &cluster, &[rest, vec![format!("{CRDS}/things.gcp.example.org")]].concat());
    // By a definition, with rights in a namespace.
    let within = object_path("default", "PackageInstall", "wordpress-from-crd");
    let object = is_ready(stage, &within, "team-blogs");
    let chosen = &object["metadata"]["annotations"]["pkg.crossplane.io/chosen-package"];
    assert_eq!(*chosen, *stage.registry.reference("team/blogs:v0.1.0"));
    let rest = brought(stage, "default", "wordpress-from-crd", "team-blogs");
    goes(stage, &within, &[rest, vec![format!("{CRDS}/{definition}")]].concat());
}

/// A record by hand is kept, and not acted upon: it would give rights to its writer.
fn lines_129_to_202_a_record_is_kept_as_it_is_written(stage: &Stage) {
    let Some(text) = seed_lines(142, 201, "apiVersion: packages.crossplane.io/v1alpha1") else {
        return;
    };
    // The last line of the example, an empty `env:`, is null, which no API server keeps.
    apply(stage, "record", &text);
    let record = stage.ask(&object_path("default", "Package", "redis")).unwrap();
    let spec = &record["spec"];
    assert_eq!(
        spec["customresourcedefinitions"],
        json!([{"kind": "RedisCluster", "apiVersion": "crossplane.redislabs.com/v1alpha1"}])
    );
    assert_eq!(spec["title"], "Redis package for Crossplane");
    assert_eq!(spec["icons"][0]["mediatype"], "image/png");
    assert!(spec["icons"][0]["base64data"].is_string());
    assert_eq!(spec["maintainers"][0], json!({"name": "Rick Kane", "email": "rick@foo.io"}));
    assert_eq!(spec["owners"][0]["name"], "Chandler");
    assert_eq!(spec["version"], "0.1.0");
    let container = &spec["controller"]["deployment"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "redis/redis-crossplane-controller:2.0.9");
    for namespace in ["default", "crossplane-system"] {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/redis-controller");
        assert!(stage.is_absent(&path), "{path}");
    }
}

fn lines_204_to_269_an_object_changes_what_runs(stage: &Stage) {
    let Some(text) = seed_lines(216, 226, "apiVersion: packages.crossplane.io/v1alpha1") else {
        return;
    };
    let app = "title: Private\npermissionScope: Namespaced\n";
    push_stack(stage, &StackSource::new("private", app), "v1.0.0");
    let [from, to] =
        ["team/private:v1.0.0", "private-user/image:latest"].map(|it| stage.registry.reference(it));
    stage.apron(&["copy", &from, &to]).ok();
    let host = "private.registry.example.com";
    let named = "kind: PackageInstall\nmetadata:\n  name: private";
    let text = in_registry(stage, &text, host).replace("kind: PackageInstall", named);
    // The Secret is in the namespace of the object.
    let credentials = "eyJhdXRocyI6e319";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "private-registry-secret", "namespace": "default"},
        "data": {".dockerconfigjson": credentials},
    });
    stage.make("/api/v1/namespaces/default/secrets", &secret);
    apply(stage, "private", &text);
    let path = object_path("default", "PackageInstall", "private");
    is_ready(stage, &path, "private-user-image");
    let record = stage.ask(&object_path("default", "Package", "private")).unwrap();
    let pod = &record["spec"]["controller"]["deployment"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let image = container["image"].as_str().unwrap();
    assert!(image.starts_with(&stage.registry.reference("")), "{image}");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "private-registry-secret"}]));
    let annotations = json!({"annotations": {"iam-service-annotation": "special-value"}});
    assert_eq!(record["spec"]["serviceAccount"], annotations);
    // What runs is as the record says.
    let (_, _, revision) = stage.revisions("Provider", "private-user-image").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["imagePullPolicy"], "Always");
    let copy = pod["imagePullSecrets"][0]["name"].as_str().unwrap();
    let copy = super::runtimes::core("secrets", copy);
    assert_eq!(stage.ask(&copy).unwrap()["data"][".dockerconfigjson"], credentials);
    let account = pod["serviceAccountName"].as_str().unwrap();
    let account = stage.ask(&super::runtimes::core("serviceaccounts", account)).unwrap();
    assert_eq!(account["metadata"]["annotations"]["iam-service-annotation"], "special-value");
    let rest = brought(stage, "default", "private", "private-user-image");
    let definition = format!("{CRDS}/things.private.example.org");
    goes(stage, &path, &[rest, vec![definition, copy]].concat());
}

/// The tree of lines 286 to 304, and the least of lines 328 to 334.
fn lines_285_to_336_files_are_found_by_their_patterns(stage: &Stage) {
    let Some(tree) = seed_lines(286, 304, ".registry/") else { return };
    for name in ["mysql.v1alpha1.crd.yaml", "ui-schema.yaml", "group.yaml", "resource.yaml"] {
        assert!(tree.contains(name), "{tree}");
    }
    let definition = |version: &str, name: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}s.databases.foocompany.example}}\n\
             spec: {{group: databases.foocompany.example, names: {{kind: {name}, plural: {name}s}}, scope: Namespaced, version: {version}}}\n"
        )
    };
    let (below, icon) = ("resources/databases.foocompany.io", "<svg/>".to_owned());
    let (first, second) = (definition("v1alpha1", "mysql"), definition("v1beta1", "mariadb"));
    let files = vec![
        ("icon.svg".to_owned(), icon.clone()),
        ("app.yaml".to_owned(), "title: Databases\npermissionScope: Cluster\n".to_owned()),
        ("ui-schema.yaml".to_owned(), "version: 0.5\n".to_owned()),
        (format!("{below}/group.yaml"), "title: The group\n".to_owned()),
        (format!("{below}/icon.svg"), "<svg id='group'/>".to_owned()),
        (format!("{below}/mysql/v1alpha1/mysql.v1alpha1.crd.yaml"), first.clone()),
        (format!("{below}/mysql/v1alpha1/icon.svg"), "<svg id='mysql'/>".to_owned()),
        (format!("{below}/mysql/v1alpha1/resource.yaml"), "id: mysql\ntitle: M\n".to_owned()),
        (format!("{below}/mysql/v1beta1/mariadb.v1beta1.crd.yaml"), second),
        (format!("{below}/mysql/v1beta1/ui-schema.yaml"), "more: true\n".to_owned()),
        (format!("{below}/mysql/v1beta1/resource.yaml"), "id: mariadb\ntitle: D\n".to_owned()),
    ];
    let package = push_files(stage, "tree", "v1.0.0", files);
    let path = ask_for(stage, "ClusterPackageInstall", "default", "tree", &package);
    is_ready(stage, &path, "team-tree");
    let annotation = |name: &str, key: &str| {
        let path = format!("{CRDS}/{name}s.databases.foocompany.example");
        let found = stage.ask(&path).unwrap();
        found["metadata"]["annotations"][format!("packages.crossplane.io/{key}")].clone()
    };
    let icon_of = |name: &str| annotation(name, "icon-data-uri");
    assert_ne!(icon_of("mysql"), icon_of("mariadb"), "the nearest icon counts");
    for (name, title, schema) in
        [("mysql", "M", "version: 0.5\n"), ("mariadb", "D", "version: 0.5\n---\nmore: true\n")]
    {
        assert_eq!(annotation(name, "resource-title"), title);
        assert_eq!(annotation(name, "group-title"), "The group");
        assert_eq!(annotation(name, "ui-schema"), schema);
    }
    let names =
        ["mysqls", "mariadbs"].map(|it| format!("{CRDS}/{it}.databases.foocompany.example"));
    let rest = brought(stage, "default", "tree", "team-tree");
    goes(stage, &path, &[rest, names.to_vec()].concat());
    // The least: app.yaml, install.yaml and one definition; install.yaml is optional.
    let files = vec![
        ("app.yaml".to_owned(), "title: Least\n".to_owned()),
        ("resources/crd.yaml".to_owned(), first.replace("foocompany", "least")),
    ];
    let package = push_files(stage, "least", "v1.0.0", files);
    let path = ask_for(stage, "ClusterPackageInstall", "default", "least", &package);
    is_ready(stage, &path, "team-least");
    goes(stage, &path, &brought(stage, "default", "least", "team-least"));
}

/// The files of lines 348 to 532 as they stand, but for metadata that the definition printed in lines 543 to
/// 594 was made of, which the description does not print.
fn lines_340_to_626_files_become_the_definition(stage: &Stage) {
    let Some(app) = seed_lines(349, 419, "# This example conforms to version") else { return };
    let read = |first, last, begin: &str| seed_lines(first, last, begin).unwrap();
    let install = read(438, 471, "apiVersion: apps/v1");
    let expected = read(543, 594, "apiVersion: apiextensions.k8s.io/v1beta1");
    let definition = seed_block(&read(516, 533, "### Example `crd.yaml`"));
    let group = seed_block(&read(474, 488, "### Example `group.yaml`"));
    let resource = seed_block(&read(489, 515, "### Example `resource.yaml`"));
    // Group and resource of the examples are those of another company's database.
    assert!(group.contains("group: databases.foocompany.io"), "{group}");
    assert!(resource.contains("id: mysql"), "{resource}");
    let annotations = printed_annotations(&expected);
    let of = |key: &str| annotations[format!("packages.crossplane.io/{key}")].as_str().unwrap();
    let matching = |prefix: &str, id: &str| {
        let fields = [
            ("title", "title"),
            ("titlePlural", "title-plural"),
            ("category", "category"),
            ("overview", "overview"),
            ("overviewShort", "overview-short"),
            ("readme", "readme"),
        ];
        let known = fields.iter().filter(|(_, key)| {
            annotations.get(format!("packages.crossplane.io/{prefix}-{key}")).is_some()
        });
        let lines =
            known.map(|(field, key)| format!("{field}: {}\n", of(&format!("{prefix}-{key}"))));
        format!("{id}\n{}", lines.collect::<String>())
    };
    let (global, own) = of("ui-schema").split_once("---\n").unwrap();
    let files = vec![
        (
            "app.yaml".to_owned(),
            app.replace(
                "title: Sample Crossplane Stack",
                &format!("title: {}", of("package-title")),
            ),
        ),
        ("install.yaml".to_owned(), install),
        ("icon.svg".to_owned(), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n".to_owned()),
        ("ui-schema.yaml".to_owned(), global.to_owned()),
        ("resources/other/group.yaml".to_owned(), group),
        (
            "resources/samples/group.yaml".to_owned(),
            matching("group", "group: samples.crossplane.io"),
        ),
        ("resources/samples/mytype/mytype.crd.yaml".to_owned(), definition),
        ("resources/samples/mytype/mysql.resource.yaml".to_owned(), resource),
        ("resources/samples/mytype/resource.yaml".to_owned(), matching("resource", "id: mytype")),
        ("resources/samples/mytype/mytype.ui-schema.yaml".to_owned(), own.to_owned()),
    ];
    let package = push_files(stage, "sample-crossplane", "v0.0.1", files);
    provide_dependencies(stage);
    let path = ask_for(stage, "ClusterPackageInstall", "default", "seed", &package);
    is_ready(stage, &path, "team-sample-crossplane");
    let found = stage.ask(&format!("{CRDS}/mytypes.samples.crossplane.io")).unwrap();
    for (key, value) in annotations.as_object().unwrap() {
        assert_eq!(found["metadata"]["annotations"][key], *value, "{key}");
    }
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["controller-tools.k8s.io"], "1.0");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "package-manager");
    let spec = &found["spec"];
    assert_eq!(
        (&spec["scope"], &spec["names"]["plural"]),
        (&json!("Namespaced"), &json!("mytypes"))
    );
    assert_eq!(spec["versions"][0]["name"], "v1alpha1");
    // The controller's image is the package's own, as line 457 says of one that is left out.
    let (_, _, revision) = stage.revisions("Provider", "team-sample-crossplane").pop().unwrap();
    let deployment = stage.ask(&deployments(&revision)).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap();
    assert!(image.contains("team/sample-crossplane:v0.0.1@sha256:"), "{image}");
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
    let rest = brought(stage, "default", "seed", "team-sample-crossplane");
    goes(stage, &path, &rest);
}

/// What `dependsOn` of the example names is there, and its rights are allowed.
fn provide_dependencies(stage: &Stage) {
    for (plural, group, kind) in
        [("mytypes", "mygroup.example.org", "Mytype"), ("others", "yourstack.example.org", "Other")]
    {
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        });
        stage.make(CRDS, &object);
    }
    let groups = ["mygroup.example.org", "yourstack.example.org"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "allowed-permissions"},
        "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}],
    });
    stage.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role);
}

/// What is between the fences of a section.
fn seed_block(section: &str) -> String {
    let lines = section.lines().skip_while(|line| !line.starts_with("```")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("```"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The annotations of a definition as it is printed: texts in one line, quoted or not, and one block.
fn printed_annotations(printed: &str) -> Json {
    let lines = printed.lines().skip_while(|line| *line != "  annotations:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("    "));
    let mut found = serde_json::Map::new();
    let mut block: Option<String> = None;
    for line in lines {
        if let (Some(key), Some(more)) = (&block, line.strip_prefix("      ")) {
            let text = found[key].as_str().unwrap_or_default();
            found.insert(key.clone(), json!(format!("{text}{more}\n")));
            continue;
        }
        let (key, value) = line.trim().split_once(": ").unwrap();
        block = (value == "|").then(|| key.to_owned());
        let value = if value == "|" { "" } else { value.trim_matches('"') };
        found.insert(key.to_owned(), json!(value));
    }
    Json::Object(found)
}
