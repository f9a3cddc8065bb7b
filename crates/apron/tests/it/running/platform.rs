//! Programs that upstream's people wrote, as they are: a provider and functions run as packages, and upstream's
//! core composes with them, without a cluster.

use super::stage::{Image, Running, is_ready};
use crate::support::{Scratch, patiently, peer_path};
use serde_json::{Value, json};

const PROVIDER: &str = "provider-kubernetes";
/// What the core's image is called in the world.
const CORE: &str = "registry.example.org/crossplane/crossplane:v2.3.4";

#[test]
fn upstreams_own_programs_make_a_platform() {
    let scratch = Scratch::new();
    let running = Running::start(&scratch, &[]);
    install_packages(&running);
    an_object_becomes_a_config_map(&running);
    objects_are_converted_by_their_provider(&running);
    push_core(&running);
    running.up.stop();
    let mut running = Running::start(&scratch, &["--with-crossplane", CORE, "--timeout", "15m"]);
    running.up.told("ready after ");
    define_greetings(&running);
    a_composite_resource_becomes_ready(&running);
    what_was_composed_goes_with_it(&running);
    packages_stay_apron_s(&running);
    running.up.stop();
}

/// Installs a provider and three functions, which all listen on the same port.
fn install_packages(running: &Running<'_>) {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for (kind, peer, name, at) in [
        ("provider", PROVIDER, PROVIDER, "usr/local/bin/crossplane-kubernetes-provider"),
        ("function", "function-patch-and-transform", "function-patch-and-transform", "function"),
        ("function", "function-auto-ready", "function-auto-ready", "function"),
        ("function", "function-auto-ready", "function-again", "function"),
    ] {
        let config = match kind {
            "provider" => json!({
                "Entrypoint": ["crossplane-kubernetes-provider"], "User": "65532",
                "Env": [format!("PATH={path}")],
            }),
            _ => json!({
                "Entrypoint": ["/function"], "User": "nonroot:nonroot", "WorkingDir": "/",
                "Env": [format!("PATH={path}")], "ExposedPorts": {"9443/tcp": {}},
            }),
        };
        let program = peer_path(peer);
        let image = Image { name, program: &program, at, directories: &[], config };
        let reference = format!("registry.example.org/upstream/{name}:v1.0.0");
        running.install(kind, &program.with_file_name("package"), &image, &reference);
    }
    patiently(|| {
        let pods = running.pods();
        let are_ready = pods.len() == 4 && pods.iter().all(is_ready);
        if are_ready { Ok(()) } else { Err(format!("{pods:#?}")) }
    });
}

/// The provider works with the rights that the package manager gave it.
fn an_object_becomes_a_config_map(running: &Running<'_>) {
    running.apply(&json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "here"}, "spec": {"credentials": {"source": "InjectedIdentity"}},
    }));
    running.apply(&json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
        "metadata": {"name": "berth"},
        "spec": {
            "providerConfigRef": {"name": "here"},
            "forProvider": {"manifest": config_map("berth", "north")},
        },
    }));
    wait_until_ready(running, &["objects.v1alpha2.kubernetes.crossplane.io", "berth"]);
    let made = running.get(&["configmap", "berth", "-n", "default"]);
    assert_eq!(made["data"]["text"], "north", "{made:#}");
}

/// The API server calls the provider's webhook, which is behind a Service, for the version that is not stored.
fn objects_are_converted_by_their_provider(running: &Running<'_>) {
    let old = running.get(&["objects.v1alpha1.kubernetes.crossplane.io", "berth"]);
    assert_eq!(old["spec"]["managementPolicy"], "Default", "{old:#}");
    running.apply(&json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "Object",
        "metadata": {"name": "watched"},
        "spec": {
            "managementPolicy": "Observe", "providerConfigRef": {"name": "here"},
            "forProvider": {"manifest": config_map("berth", "any")},
        },
    }));
    let new = running.get(&["objects.v1alpha2.kubernetes.crossplane.io", "watched"]);
    assert_eq!(new["spec"]["managementPolicies"], json!(["Observe"]), "{new:#}");
}

/// Puts the core's image into the registry of the control plane, as a mirror would have it.
fn push_core(running: &Running<'_>) {
    let program = peer_path("core");
    let directories = ["crds", "webhookconfigurations"].map(|name| program.with_file_name(name));
    let image = Image {
        name: "core",
        program: &program,
        at: "bin/crossplane",
        directories: &directories,
        config: json!({"Entrypoint": ["/bin/crossplane"], "User": "65532", "Env": ["PATH=/bin"]}),
    };
    let archive = image.write_archive(running.scratch).display().to_string();
    let there = format!("{}/{CORE}", running.up.registry);
    running.up.say(&["copy", &archive, &there]).ok();
}

fn define_greetings(running: &Running<'_>) {
    running.apply(&json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "greetings.demo.example.org"},
        "spec": {
            "scope": "Namespaced", "group": "demo.example.org",
            "names": {"kind": "Greeting", "plural": "greetings"},
            "versions": [{
                "name": "v1alpha1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "required": ["text"],
                    "properties": {"text": {"type": "string"}},
                }}}},
            }],
        },
    }));
    let patch = |to: &str| json!([{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.text", "toFieldPath": to}]);
    let resources = json!([
        {
            "name": "plain",
            "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}},
            "patches": patch("data.text"),
        },
        {
            "name": "by-provider",
            "base": {
                "apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
                "spec": {
                    "providerConfigRef": {"kind": "ProviderConfig", "name": "here"},
                    "forProvider": {"manifest": config_map("by-provider", "")},
                },
            },
            "patches": patch("spec.forProvider.manifest.data.text"),
        },
    ]);
    running.apply(&json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "greetings"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "demo.example.org/v1alpha1", "kind": "Greeting"},
            "mode": "Pipeline",
            "pipeline": [
                {
                    "step": "compose",
                    "functionRef": {"name": "function-patch-and-transform"},
                    "input": {
                        "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
                        "resources": resources,
                    },
                },
                {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
            ],
        },
    }));
    let words = ["wait", "xrd/greetings.demo.example.org", "--for=condition=Established"];
    running.kubectl(&[&words[..], &["--timeout=900s"]].concat()).ok();
}

fn a_composite_resource_becomes_ready(running: &Running<'_>) {
    running.apply(&json!({
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "here", "namespace": "default"},
        "spec": {"credentials": {"source": "InjectedIdentity"}},
    }));
    running.apply(&json!({
        "apiVersion": "demo.example.org/v1alpha1", "kind": "Greeting",
        "metadata": {"name": "hello", "namespace": "default"}, "spec": {"text": "ahoy"},
    }));
    wait_until_ready(running, &["greetings.demo.example.org", "hello", "-n", "default"]);
    for name in ["plain", "by-provider"] {
        let made = running.get(&["configmap", name, "-n", "default"]);
        assert_eq!(made["data"]["text"], "ahoy", "{made:#}");
    }
}

fn what_was_composed_goes_with_it(running: &Running<'_>) {
    let words = ["delete", "greeting", "hello", "-n", "default", "--cascade=foreground"];
    running.kubectl(&[&words[..], &["--timeout=900s"]].concat()).ok();
    for name in ["plain", "by-provider"] {
        patiently(|| {
            let ran = running.kubectl(&["get", "configmap", name, "-n", "default"]);
            if ran.code == Some(1) { Ok(()) } else { Err(ran.all()) }
        });
    }
}

/// The core reads packages and changes nothing of them, nor the definitions of their kinds.
fn packages_stay_apron_s(running: &Running<'_>) {
    patiently(|| {
        let listed = running.up.say(&["list", "-o", "json"]).ok().stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let all = listed.as_array().unwrap();
        let are_healthy = all.len() == 4 && all.iter().all(|one| one["state"] == "healthy");
        if are_healthy { Ok(()) } else { Err(format!("{listed:#}")) }
    });
    let definition = running.get(&["crd", "locks.pkg.crossplane.io"]).to_string();
    assert!(definition.contains("\"digest\""), "the core's setup replaced the definition");
    let revisions = running.get(&["providerrevisions,functionrevisions"]);
    let writers =
        revisions["items"].as_array().unwrap().iter().flat_map(|one| {
            one["metadata"]["managedFields"].as_array().cloned().unwrap_or_default()
        });
    let core = writers.filter(|writer| writer["manager"] == "crossplane").count();
    assert_eq!(core, 0, "{revisions:#}");
    patiently(|| {
        let pods = running.pods();
        if pods.len() == 5 { Ok(()) } else { Err(format!("{pods:#?}")) }
    });
}

fn config_map(name: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"text": text},
    })
}

/// Waits for an object that is ready, and tells what is in its way.
fn wait_until_ready(running: &Running<'_>, words: &[&str]) {
    patiently(|| {
        let object = running.get(words);
        if is_ready(&object) { Ok(()) } else { Err(format!("{object:#}")) }
    });
}
