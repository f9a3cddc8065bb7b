//! `apron manager install`, and the values of the Helm chart; what Helm makes of it is in `chart`.

use crate::control_plane::Asked;
use crate::kubectl::plane::{Ours, Real};
use crate::support::{Ran, Scratch, apron, command, peer, until};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const INSTALL: [&str; 4] = ["manager", "install", "--image", "registry.example.org/apron:v1"];

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/apron")
}

#[test]
fn the_manager_is_installed_alike_on_both_servers() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    let install = |kubeconfig: &Path| {
        let mut command = command(&scratch);
        command.env("KUBECONFIG", kubeconfig).args(INSTALL).args(["-n", "planes"]);
        Ran::from(command.output().unwrap()).ok().stdout
    };
    let here = install(&ours.kubeconfig);
    assert!(here.starts_with("applied namespace/planes\n"), "{here}");
    assert!(here.ends_with("applied deployment/apron\n"), "{here}");
    assert_eq!(install(&real.kubeconfig), here);
    // Whoever may view sees packages, and later what they bring.
    until("the role of viewers has rules", || {
        let access = ours.kubeconfig.to_str().unwrap();
        let words = ["--kubeconfig", access, "get", "clusterrole", "crossplane-view", "-o", "json"];
        let role: Json =
            serde_json::from_str(&peer(&scratch, "kubectl", words).ok().stdout).ok()?;
        let rules = role["rules"].as_array()?;
        rules.iter().any(|one| one.to_string().contains("pkg.crossplane.io")).then_some(())
    });
    // It can be repeated.
    assert_eq!(install(&ours.kubeconfig), here);
    assert_eq!(install(&real.kubeconfig), here);
}

/// H7: there is no image that nobody publishes.
#[test]
fn h7_without_an_image_the_way_to_one_is_told() {
    let scratch = Scratch::new();
    let words = apron(&scratch, ["manager", "install", "--dry-run"]).failed();
    assert_eq!(
        words,
        "error: no image of apron was named\n\
         hint: make one and send it to a registry that the cluster can reach: `apron image build`, \
         `apron copy apron.tar REGISTRY/apron:TAG`, then give --image REGISTRY/apron:TAG\n"
    );
}

#[test]
fn a_second_manager_leaves_the_first_its_rights_and_its_place() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    for kubeconfig in [&ours.kubeconfig, &real.kubeconfig] {
        stand_side_by_side(&scratch, kubeconfig);
    }
}

fn stand_side_by_side(scratch: &Scratch, kubeconfig: &Path) {
    let install = |words: &[&str]| {
        let mut command = command(scratch);
        command.env("KUBECONFIG", kubeconfig).args(INSTALL).args(words);
        Ran::from(command.output().unwrap())
    };
    let other = "apron.example.org";
    install(&[]).ok();
    let asked = Asked::new(kubeconfig);
    let people = || {
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/crossplane-view";
        asked.get(path).unwrap()["aggregationRule"].clone()
    };
    let before = people();
    assert!(before.is_object(), "{before}");
    // The second lives elsewhere, and there it can be installed again.
    for words in [&["--group-suffix", other, "-n", "apron-system"][..], &["-n", "third"]] {
        install(words).ok();
        install(words).ok();
    }
    for (namespace, group) in [
        ("crossplane-system", "pkg.crossplane.io"),
        ("apron-system", "pkg.apron.example.org"),
        ("third", "pkg.crossplane.io"),
    ] {
        let account = format!("system:serviceaccount:{namespace}:crossplane");
        until(&format!("{account} has its rights"), || {
            asked.may(&account, ["create", group, "providers"]).then_some(())
        });
    }
    assert_eq!(people(), before);
    // Where one is, a manager of another group is refused, and nothing changes.
    let path = "/apis/apps/v1/namespaces/crossplane-system/deployments/apron";
    let first = asked.get(path).unwrap()["spec"].clone();
    let refused = install(&["--group-suffix", other]).failed();
    let why = "the manager in the namespace crossplane-system is for packages of pkg.crossplane.io";
    assert!(refused.contains(why) && refused.contains("in another namespace"), "{refused}");
    assert_eq!(asked.get(path).unwrap()["spec"], first);
}

#[test]
fn every_value_of_the_chart_is_used_and_every_used_value_is_there() {
    let values = fs_err::read_to_string(chart().join("values.yaml")).unwrap();
    let values = paths(&values);
    let used = regex::Regex::new(r"\.Values\.([A-Za-z0-9.]+)").unwrap();
    let mut found = BTreeSet::new();
    for entry in fs_err::read_dir(chart().join("templates")).unwrap() {
        let text = fs_err::read_to_string(entry.unwrap().path()).unwrap();
        found.extend(used.captures_iter(&text).map(|it| it[1].to_owned()));
    }
    let is_in = |path: &String, all: &BTreeSet<String>| {
        all.iter().any(|one| one == path || one.starts_with(&format!("{path}.")))
    };
    let missing: Vec<_> = found.iter().filter(|path| !is_in(path, &values)).collect();
    assert!(missing.is_empty(), "templates use values that are not there: {missing:?}");
    let has_user =
        |path: &String| found.iter().any(|one| one == path || path.starts_with(&format!("{one}.")));
    let unused: Vec<_> = values.iter().filter(|path| !has_user(path)).collect();
    assert!(unused.is_empty(), "nobody uses these values: {unused:?}");
}

/// The paths of all leaves of plain YAML with two spaces a level.
fn paths(text: &str) -> BTreeSet<String> {
    let (mut above, mut found) = (Vec::<String>::new(), BTreeSet::new());
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let (key, value) = line.trim().split_once(':').unwrap();
        above.truncate(depth);
        above.push(key.to_owned());
        if !value.trim().is_empty() {
            found.insert(above.join("."));
        }
    }
    found
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let text = fs_err::read_to_string(chart().join("Chart.yaml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("\nappVersion: {version}\n")), "{text}");
}
