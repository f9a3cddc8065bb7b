//! From packages to revisions: pull policies, activation, history, pause.

use super::Scenario;
use super::signer::digest;
use super::stage::{Gate, Stage, condition, packages};
use crate::support::until;
use serde_json::json;

pub(super) const ALL: &[Scenario] = &[
    ("a provider gets its revision", a_provider_gets_its_revision),
    ("another tag makes another revision", another_tag_makes_another_revision),
    ("manual activation waits", manual_activation_waits),
    ("only so many revisions are kept", only_so_many_revisions_are_kept),
    ("what is paused is left alone", what_is_paused_is_left_alone),
    ("a file in the cache needs no registry", a_file_in_the_cache_needs_no_registry),
    ("what is cached is not asked for", what_is_cached_is_not_asked_for),
    ("a mirror is used where one is configured", a_mirror_is_used_where_one_is_configured),
];

fn a_provider_gets_its_revision(stage: &Stage) {
    let package = stage.push("Provider", "plain", "v1.0.0");
    stage.install("Provider", "plain", &json!({"package": package}));
    stage.condition("Provider", "plain", "Installed", "True", "ActivePackageRevision");
    stage.states("Provider", "plain", &[(1, "Active")]);
    let name = stage.revisions("Provider", "plain").remove(0).2;
    let provider = stage.package("Provider", "plain");
    assert_eq!(provider["status"]["currentRevision"], name);
    assert_eq!(provider["status"]["currentIdentifier"], package);
    let revision = stage.package("ProviderRevision", &name);
    assert_eq!(revision["spec"]["image"], package);
    let owner = &revision["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], provider["metadata"]["uid"]);
    assert_eq!((&owner["controller"], &owner["kind"]), (&json!(true), &json!("Provider")));
}

fn another_tag_makes_another_revision(stage: &Stage) {
    for kind in ["Configuration", "Function"] {
        let name = format!("grows-{}", kind.to_lowercase());
        let (one, two) = (stage.push(kind, &name, "v1.0.0"), stage.push(kind, &name, "v2.0.0"));
        stage.install(kind, &name, &json!({"package": one, "revisionHistoryLimit": 0}));
        stage.states(kind, &name, &[(1, "Active")]);
        stage.merge(kind, &name, &json!({"spec": {"package": two}}));
        stage.states(kind, &name, &[(1, "Inactive"), (2, "Active")]);
        // Back to the first: it is the same revision, and the latest.
        stage.merge(kind, &name, &json!({"spec": {"package": one}}));
        stage.states(kind, &name, &[(2, "Inactive"), (3, "Active")]);
    }
}

fn manual_activation_waits(stage: &Stage) {
    let kind = "Configuration";
    let (one, two) = (stage.push(kind, "waits", "v1.0.0"), stage.push(kind, "waits", "v2.0.0"));
    let spec = json!({"package": one, "revisionActivationPolicy": "Manual"});
    stage.install(kind, "waits", &spec);
    // What is no policy is not taken for one.
    for policy in ["revisionActivationPolicy", "packagePullPolicy"] {
        let refused = stage.refusal(kind, "waits", &json!({"spec": {policy: "Weird"}}));
        assert!(refused.contains(policy) && refused.contains("Unsupported value"), "{refused}");
    }
    stage.condition(kind, "waits", "Installed", "False", "InactivePackageRevision");
    stage.states(kind, "waits", &[(1, "Inactive")]);
    let activate = |name: &str| {
        let active = json!({"spec": {"desiredState": "Active"}});
        stage.merge("ConfigurationRevision", name, &active);
    };
    activate(&stage.revisions(kind, "waits")[0].2);
    stage.condition(kind, "waits", "Installed", "True", "ActivePackageRevision");
    // Who becomes active gets a number of its own, also if it has the highest.
    stage.states(kind, "waits", &[(2, "Active")]);
    stage.merge(kind, "waits", &json!({"spec": {"package": two}}));
    stage.states(kind, "waits", &[(2, "Active"), (3, "Inactive")]);
    activate(&stage.revisions(kind, "waits")[1].2);
    stage.states(kind, "waits", &[(2, "Inactive"), (4, "Active")]);
}

fn only_so_many_revisions_are_kept(stage: &Stage) {
    let kind = "Configuration";
    for (number, version) in (1..).zip(["v1.0.0", "v2.0.0", "v3.0.0"]) {
        let package = stage.push(kind, "short", version);
        match number {
            1 => stage.install(kind, "short", &json!({"package": package})),
            _ => drop(stage.merge(kind, "short", &json!({"spec": {"package": package}}))),
        }
        until("it is the active one", || {
            let last = stage.revisions(kind, "short").pop()?;
            (last.0 == number && last.1 == "Active").then_some(())
        });
    }
    stage.states(kind, "short", &[(2, "Inactive"), (3, "Active")]);
}

fn what_is_paused_is_left_alone(stage: &Stage) {
    let kind = "Provider";
    let (one, two) = (stage.push(kind, "paused", "v1.0.0"), stage.push(kind, "paused", "v2.0.0"));
    stage.install(kind, "paused", &json!({"package": one}));
    stage.states(kind, "paused", &[(1, "Active")]);
    stage.merge(
        kind,
        "paused",
        &json!({"metadata": {"annotations": {"crossplane.io/paused": "true"}}}),
    );
    stage.condition(kind, "paused", "Synced", "False", "ReconcilePaused");
    let changed = stage.merge(kind, "paused", &json!({"spec": {"package": two}}));
    until("the manager has seen the change", || {
        let seen = condition(&stage.package(kind, "paused"), "Synced")?;
        (seen["observedGeneration"] == changed["metadata"]["generation"]).then_some(())
    });
    assert_eq!(stage.revisions(kind, "paused").len(), 1);
    stage.merge(
        kind,
        "paused",
        &json!({"metadata": {"annotations": {"crossplane.io/paused": null}}}),
    );
    stage.states(kind, "paused", &[(1, "Inactive"), (2, "Active")]);
    until("it is no longer said to be paused", || {
        condition(&stage.package(kind, "paused"), "Synced").is_none().then_some(())
    });
}

fn a_file_in_the_cache_needs_no_registry(stage: &Stage) {
    let (kind, name) = ("Configuration", "mycoolpkg");
    stage.install(kind, name, &json!({"package": name, "packagePullPolicy": "Never"}));
    let said = stage.condition(kind, name, "Installed", "False", "UnpackingPackage");
    assert_eq!(
        said,
        "cannot unpack package: mycoolpkg is not in the package cache, and its pull policy is \
         Never; load the package into the cache, or use another pull policy"
    );
    let file = stage.build(kind, name, "v1.0.0");
    // As whole as people are told to put it there.
    let partial = stage.cache.join("mycoolpkg.tmp");
    fs_err::copy(file, &partial).unwrap();
    fs_err::rename(partial, stage.cache.join("mycoolpkg.xpkg")).unwrap();
    stage.condition(kind, name, "Installed", "True", "ActivePackageRevision");
    stage.states(kind, name, &[(1, "Active")]);
}

fn what_is_cached_is_not_asked_for(stage: &Stage) {
    let gate = Gate::before(&stage.registry);
    gate.open();
    stage.push("Provider", "kept", "v1.0.0");
    let package = format!("{}/kept:v1.0.0", gate.address);
    stage.install("Provider", "kept", &json!({"package": package}));
    stage.states("Provider", "kept", &[(1, "Active")]);
    let first = stage.revisions("Provider", "kept").remove(0).2;
    // The registry goes, and so does the revision: it comes back from the cache.
    gate.close();
    let uid = stage.package("ProviderRevision", &first)["metadata"]["uid"].clone();
    let path = format!("/apis/pkg.crossplane.io/v1/providerrevisions/{first}");
    stage.change("DELETE", &path, "application/json", &json!({}));
    until("the revision is made again", || {
        let again = stage.ask(&path)?["metadata"]["uid"].clone();
        (again != uid).then_some(())
    });
    stage.condition("Provider", "kept", "Installed", "True", "ActivePackageRevision");
}

fn a_mirror_is_used_where_one_is_configured(stage: &Stage) {
    stage.push("Provider", "mirrored", "v1.0.0");
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig",
        "metadata": {"name": "mirror"},
        "spec": {
            "matchImages": [{"prefix": "mirror.example.org/team/"}],
            "rewriteImage": {"prefix": stage.registry.reference("")},
        },
    });
    let path = "/apis/pkg.crossplane.io/v1beta1/imageconfigs";
    stage.change("POST", path, "application/json", &config);
    let package = "mirror.example.org/team/mirrored:v1.0.0";
    stage.install("Provider", "mirrored", &json!({"package": package}));
    stage.condition("Provider", "mirrored", "Installed", "True", "ActivePackageRevision");
    let status = stage.package("Provider", "mirrored")["status"].clone();
    assert_eq!(status["resolvedPackage"], stage.registry.reference("mirrored:v1.0.0"));
    let applied = json!([{"name": "mirror", "reason": "RewriteImage"}]);
    assert_eq!(status["appliedImageConfigRefs"], applied);
    // What the package asks for is what its revision says.
    let revision = stage.revisions("Provider", "mirrored").remove(0).2;
    assert_eq!(stage.package("ProviderRevision", &revision)["spec"]["image"], package);
}

/// Neither cache nor registry says what the image is, and what is installed of it does not need it.
pub(super) fn m3_what_is_installed_goes_on_while_its_registry_is_away(stage: &mut Stage) {
    let gate = Gate::before(&stage.registry);
    gate.open();
    let all =
        [("Configuration", "stays-tag"), ("Provider", "stays-run"), ("Provider", "stays-bytes")];
    for (kind, name) in all {
        stage.push(kind, name, "v1.0.0");
        let mut package = format!("{}/{name}:v1.0.0", gate.address);
        if name == "stays-bytes" {
            let digest = digest(stage, &stage.registry.reference("stays-bytes:v1.0.0"));
            package = format!("{}/{name}@{digest}", gate.address);
        }
        stage.install(kind, name, &json!({"package": package}));
        stage.installed(kind, name);
    }
    stage.restart_after(&[], |stage| {
        gate.close();
        fs_err::remove_dir_all(&stage.cache).unwrap();
    });
    for (kind, name) in all {
        let controller = format!("controller=\"{}revision\"", kind.to_lowercase());
        let count = stage.ask(&packages(&format!("{kind}Revision"))).unwrap();
        let count = count["items"].as_array().unwrap().len();
        until("the manager has looked at every revision", || {
            let metrics = stage.metrics();
            let lines = metrics.lines().filter(|line| {
                line.starts_with("apron_reconciles_total") && line.contains(&controller)
            });
            let times = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok());
            (times.sum::<usize>() >= count).then_some(())
        });
        let changed = stage.merge(kind, name, &json!({"spec": {"revisionHistoryLimit": 5}}));
        until("the manager has looked at the package", || {
            let seen = condition(&stage.package(kind, name), "Installed")?;
            (seen["observedGeneration"] == changed["metadata"]["generation"]).then_some(())
        });
        stage.installed(kind, name);
    }
}
