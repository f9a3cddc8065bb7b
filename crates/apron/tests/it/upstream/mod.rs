//! apron and upstream's package manager understand each other: packages that apron builds install
//! under upstream's core, and come to the same there as under apron's manager; apron's words work
//! there, and what people wrote for upstream is taken or refused alike. (That packages of upstream's
//! tools install in apron is a scenario of `manager::upstream`.)

mod alike;
mod core;
mod manifests;

use crate::control_plane::Asked;
use crate::kubectl::plane::{Ours, Real, peer};
use crate::manager::process;
use crate::registry::Served;
use crate::support::{Ran, Scratch, apron, command, patiently, until};
use core::Core;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::Command;

/// Applies definitions, and waits until all of them are served.
fn define(kubeconfig: &Path, files: &Path) {
    let kubectl = |words: &[&str]| {
        let run = Command::new(peer("kubectl"))
            .args(words)
            .arg("-f")
            .arg(files)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", kubeconfig.parent().unwrap())
            .output();
        Ran::from(run.unwrap()).ok()
    };
    kubectl(&["apply", "--server-side"]);
    kubectl(&["wait", "--for=condition=Established", "--timeout=300s"]);
}

/// A configuration that needs both packages of the corpus, with a definition and a composition.
fn platform(scratch: &Scratch, registry: &Served) {
    let needs = |kind: &str, name: &str| {
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind,
               "package": registry.reference(&format!("team/{name}")), "version": ">=v0.1.0"})
    };
    let needs = [needs("Provider", "provider-nop"), needs("Function", "function-auto-ready")];
    let metadata = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Configuration",
        "metadata": {"name": "harbour"}, "spec": {"dependsOn": needs},
    });
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "berths.harbour.example.org"},
        "spec": {
            "group": "harbour.example.org", "scope": "Namespaced",
            "names": {"kind": "Berth", "plural": "berths"},
            "versions": [{"name": "v1", "served": true, "referenceable": true,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "berths"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "harbour.example.org/v1", "kind": "Berth"},
            "mode": "Pipeline",
            "pipeline": [{"step": "ready", "functionRef": {"name": "team-function-auto-ready"}}],
        },
    });
    scratch.write("harbour/crossplane.yaml", metadata.to_string());
    scratch.write("harbour/definition.yaml", definition.to_string());
    scratch.write("harbour/composition.yaml", composition.to_string());
}

/// Whether a package is what it should be, as far as upstream's core is concerned.
fn is_well(package: &Json) -> bool {
    let conditions = package["status"]["conditions"].as_array().into_iter().flatten();
    let is = |of: &str| {
        let mut all = conditions.clone();
        all.any(|one| one["type"] == of && one["status"] == "True")
    };
    is("Installed") && is("Healthy")
}

/// Says of every Deployment that its pods are there: there is nobody who runs them.
fn make_available(asked: &Asked) {
    let path = "/apis/apps/v1/namespaces/crossplane-system/deployments";
    let list = asked.get(path).unwrap_or_default();
    for one in list["items"].as_array().into_iter().flatten() {
        let now = "2026-01-01T00:00:00Z";
        let condition = json!({
            "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
            "message": "", "lastTransitionTime": now, "lastUpdateTime": now,
        });
        let path = format!("{path}/{}/status", one["metadata"]["name"].as_str().unwrap());
        let status = json!({"status": {"conditions": [condition]}});
        // One that has just gone needs nothing.
        let _ = asked.send("PATCH", &path, "application/merge-patch+json", &status);
    }
}

#[test]
fn packages_of_apron_install_under_upstreams_core_and_manifests_mean_the_same() {
    let scratch = Scratch::new();
    let ours = Ours::start(&scratch.join("ours"));
    let real = Real::start(&scratch.join("real"), &ours);
    let core = Core::start(&scratch.join("core"), &real.kubeconfig);
    let asked = Asked::new(&real.kubeconfig);
    let other = Real::start(&scratch.join("other"), &ours);
    let (cache, log) = (scratch.join("cache"), scratch.join("manager.log"));
    let _manager = process::start(&scratch, &other.kubeconfig, &cache, &log, &[]);
    let packages = "/apis/pkg.crossplane.io/v1/configurations";
    let manages = Asked::new(&other.kubeconfig);
    until("the manager's definitions are served", || manages.get(packages));
    let crds = apron(&scratch, ["crds"]).ok().stdout;
    define(&ours.kubeconfig, &scratch.write("crds.yaml", crds));
    manifests::mean_the_same(&asked, &Asked::new(&ours.kubeconfig));
    let registry = Served::start(&scratch);
    publish(&scratch, &registry);
    installs(&scratch, &registry, &asked, &real.kubeconfig, &core, &other.kubeconfig);
    c2_takes_back(&scratch, &registry, &asked, &real.kubeconfig, core);
}

/// Puts a configuration into a registry, and what it needs.
fn publish(scratch: &Scratch, registry: &Served) {
    for name in ["provider-nop", "function-auto-ready"] {
        scratch.copy_package(name);
    }
    platform(scratch, registry);
    for name in ["provider-nop", "function-auto-ready", "harbour"] {
        let file = format!("{name}.xpkg");
        apron(scratch, ["build", name, "-o", &file]).ok();
        apron(scratch, ["push", &registry.reference(&format!("team/{name}:v0.1.0")), "-f", &file])
            .ok();
    }
}

fn installs(
    scratch: &Scratch,
    registry: &Served,
    asked: &Asked,
    kubeconfig: &Path,
    core: &Core,
    other: &Path,
) {
    // apron's own words, to upstream's package manager.
    let apron_to = |kubeconfig: &Path, words: &[&str]| {
        let mut command = command(scratch);
        Ran::from(command.env("KUBECONFIG", kubeconfig).args(words).output().unwrap())
    };
    let apron = |words: &[&str]| apron_to(kubeconfig, words);
    let install = ["install", &registry.reference("team/harbour:v0.1.0")];
    apron(&install).ok();
    apron_to(other, &install).ok();
    for (plural, name) in [
        ("providers", "team-provider-nop"),
        ("functions", "team-function-auto-ready"),
        ("configurations", "team-harbour"),
    ] {
        let path = format!("/apis/pkg.crossplane.io/v1/{plural}/{name}");
        patiently(|| {
            make_available(asked);
            let package = asked.get(&path).unwrap_or_default();
            let why = || format!("{name} is {}\n{}", package["status"], core.log());
            if is_well(&package) { Ok(()) } else { Err(why()) }
        });
    }
    let brought =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nopresources.nop.crossplane.io";
    assert!(asked.get(brought).is_some());
    let defined = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions/berths.harbour.example.org";
    assert!(asked.get(defined).is_some());
    let status = apron(&["status", "team-harbour"]).ok().stdout;
    assert!(status.starts_with("configuration team-harbour v0.1.0: healthy\n"), "{status}");
    assert!(status.contains("provider team-provider-nop v0.1.0 (>=v0.1.0): healthy"), "{status}");
    alike::come_to_the_same(asked, &Asked::new(other));
    until("upstream's core deletes what apron uninstalls", || {
        apron(&["uninstall", "team-harbour"]);
        let path = "/apis/pkg.crossplane.io/v1/configurations/team-harbour";
        asked.get(path).is_none().then_some(())
    });
}

/// What upstream's core brought is known to apron's manager also without owners: it is taken back
/// without asking (C2).
fn c2_takes_back(
    scratch: &Scratch,
    registry: &Served,
    asked: &Asked,
    kubeconfig: &Path,
    core: Core,
) {
    let mut command = command(scratch);
    let install = ["install", &registry.reference("team/harbour:v0.1.0")];
    Ran::from(command.env("KUBECONFIG", kubeconfig).args(install).output().unwrap()).ok();
    let path = "/apis/apiextensions.crossplane.io/v1/compositions/berths";
    let is_controlled =
        |one: &Json| one["metadata"]["ownerReferences"].to_string().contains("true");
    let before = until("upstream's core brings it", || asked.get(path).filter(is_controlled));
    drop(core);
    let nobody = json!({"metadata": {"ownerReferences": null}});
    let orphan = asked.send("PATCH", path, "application/merge-patch+json", &nobody).unwrap();
    assert!(orphan["metadata"]["annotations"]["pkg.crossplane.io/brought-by"].is_null());
    let (cache, log) = (scratch.join("heir-cache"), scratch.join("heir.log"));
    let _manager = process::start(scratch, kubeconfig, &cache, &log, &[]);
    let after = until("apron takes it back", || asked.get(path).filter(is_controlled));
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let mark = &after["metadata"]["annotations"]["pkg.crossplane.io/brought-by"];
    assert_eq!(*mark, "configuration.pkg.crossplane.io/team-harbour");
}
