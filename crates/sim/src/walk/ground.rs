//! Where walks begin.

use crate::explore::on_a_clock;
use crate::pack::{Failure, Package};
use crate::scenarios::HOST;
use crate::stage::{Setting, Snapshot, Stage};
use serde_json::{Value as Json, json};

/// A tag that is moved from version to version.
pub(super) const STABLE: &str = "registry.example.org/team/nop:stable";
/// The versions of the provider, which the tag may be moved to.
pub(super) const VERSIONS: [&str; 3] = ["v1.0.0", "v1.1.0", "v1.2.0"];

/// A provider; from version 1.2.0 on it brings less, and from version 1.1.0 on a webhook.
pub(super) fn nop(version: &str) -> Package {
    let field = version.replace('.', "x");
    let mut nop = Package::new("Provider", "nop").with_crd("things", "nop.example.org", &field);
    if version != "v1.2.0" {
        nop = nop.with_crd("extras", "nop.example.org", &field);
    }
    if version == "v1.0.0" { nop } else { nop.with(webhook()) }
}

/// Says little, so that API servers fill in much.
fn webhook() -> Json {
    let rule = json!({
        "apiGroups": ["nop.example.org"], "apiVersions": ["*"],
        "operations": ["CREATE"], "resources": ["things"],
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nop"},
        "webhooks": [{
            "name": "things.nop.example.org", "rules": [rule], "failurePolicy": "Ignore",
            "clientConfig": {"service": {"name": "webhook", "namespace": "system"}},
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// A cluster with nothing in it that users made, and a registry with everything they may want.
pub fn ground(base: &Snapshot) -> Result<Snapshot, Failure> {
    on_a_clock(async {
        let mut stage = Stage::open(base, Setting { pushes: true, ..Setting::default() }).await?;
        for version in VERSIONS {
            stage.push(&nop(version), &format!("{HOST}/team/nop:{version}")).await?;
        }
        stage.push(&nop("v1.0.0"), STABLE).await?;
        stage.push(&nop("other"), &format!("{HOST}/other/nop:v1.0.0")).await?;
        for version in ["v1.0.0", "v1.1.0"] {
            let ready =
                Package::new("Function", "ready").with_crd("inputs", "fn.example.org", version);
            stage.push(&ready, &format!("{HOST}/team/ready:{version}")).await?;
            let composes = crate::scenarios::composing(version);
            stage.push(&composes, &format!("{HOST}/team/composes:{version}")).await?;
        }
        for (version, wanted) in [("v1.0.0", ">=v1.0.0, <v1.2.0"), ("v2.0.0", ">=v1.2.0")] {
            let top = Package::new("Configuration", "top")
                .needing("Provider", &format!("{HOST}/team/nop"), wanted)
                .needing("Function", &format!("{HOST}/team/ready"), ">=v1.0.0");
            stage.push(&top, &format!("{HOST}/team/top:{version}")).await?;
        }
        let side = Package::new("Configuration", "side");
        let side = side.needing("Provider", &format!("{HOST}/team/nop"), ">=v1.1.0");
        stage.push(&side, &format!("{HOST}/team/side:v1.0.0")).await?;
        for (one, other) in [("cycle", "circle"), ("circle", "cycle")] {
            let other = format!("{HOST}/team/{other}");
            let package = Package::new("Configuration", one);
            let package = package.needing("Configuration", &other, ">=v1.0.0");
            stage.push(&package, &format!("{HOST}/team/{one}:v1.0.0")).await?;
        }
        let broken = Package::new("Provider", "broken").with(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "wrong"}, "spec": {},
        }));
        stage.push(&broken, &format!("{HOST}/team/broken:v1.0.0")).await?;
        stage.settle().await?;
        Ok(stage.close())
    })
}
