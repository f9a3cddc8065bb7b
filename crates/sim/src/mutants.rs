//! Bugs that the manager could have. Each is put in between manager and server, where a manager
//! with the bug would send something else, or nothing.

use crate::gate::{Bend, Bent, Call};
use http::Method;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A bug.
pub struct Mutant {
    /// What the manager does wrong.
    pub name: &'static str,
    /// The scenario in which it shows.
    pub scenario: &'static str,
    /// How calls are bent; anew for each run.
    pub bend: fn() -> Bend,
}

/// All of them.
pub const ALL: &[Mutant] = &[
    Mutant {
        name: "says nothing about revisions",
        scenario: "install",
        bend: || swallow(|call| is_status(call, "providerrevisions")),
    },
    Mutant {
        name: "says nothing about packages",
        scenario: "install",
        bend: || swallow(|call| is_status(call, "providers")),
    },
    Mutant {
        name: "does not keep the lock",
        scenario: "install",
        bend: || swallow(|call| call.is_write() && call.path.contains("/locks/")),
    },
    Mutant {
        name: "never removes a finalizer",
        scenario: "uninstall",
        bend: || {
            swallow_if(|call, body| {
                call.method == Method::PATCH && body.pointer("/metadata/finalizers").is_some()
            })
        },
    },
    Mutant {
        name: "forgets who owns what it makes",
        scenario: "install",
        bend: || change(is_definition, |body| drop_field(body, "/metadata", "ownerReferences")),
    },
    Mutant {
        name: "turns the order of owners around",
        scenario: "upgrade",
        bend: || {
            change(is_definition, |body| {
                if let Some(owners) =
                    body.pointer_mut("/metadata/ownerReferences").and_then(Json::as_array_mut)
                {
                    owners.reverse();
                }
            })
        },
    },
    Mutant {
        name: "controls nothing",
        scenario: "install",
        bend: || {
            change(is_definition, |body| {
                let owners =
                    body.pointer_mut("/metadata/ownerReferences").and_then(Json::as_array_mut);
                owners.into_iter().flatten().for_each(|one| one["controller"] = json!(false));
            })
        },
    },
    Mutant {
        name: "activates the wrong revision",
        scenario: "upgrade",
        bend: || {
            change(
                |call| writes_to(call, "providerrevisions"),
                |body| match body.pointer("/spec/desiredState").and_then(Json::as_str) {
                    Some("Active") => body["spec"]["desiredState"] = json!("Inactive"),
                    Some("Inactive") => body["spec"]["desiredState"] = json!("Active"),
                    _ => {}
                },
            )
        },
    },
    Mutant {
        name: "does not count revisions",
        scenario: "upgrade",
        bend: || {
            change(
                |call| writes_to(call, "providerrevisions"),
                |body| {
                    if body.pointer("/spec/revision").is_some() {
                        body["spec"]["revision"] = json!(1);
                    }
                },
            )
        },
    },
    Mutant { name: "writes for ever", scenario: "install", bend: forever },
    Mutant {
        name: "keeps what ran the revision before",
        scenario: "upgrade",
        bend: || {
            swallow(|call| call.method == Method::DELETE && call.path.contains("/deployments/"))
        },
    },
    Mutant {
        name: "keeps every revision",
        scenario: "history",
        bend: || {
            swallow(|call| {
                call.method == Method::DELETE && call.path.contains("/providerrevisions/")
            })
        },
    },
    Mutant {
        name: "leaves the service with the revision before",
        scenario: "upgrade",
        bend: || swallow(|call| call.method == Method::PATCH && call.path.contains("/services/")),
    },
    Mutant {
        name: "lets definitions go with their objects",
        scenario: "retain",
        bend: || {
            change(is_definition, |body| {
                let is_kept = !body["metadata"]["labels"][api::pkg::LABEL_RETAINED].is_null();
                let owners = body.pointer_mut("/metadata/ownerReferences");
                let owners = owners.filter(|_| is_kept).and_then(Json::as_array_mut);
                owners.into_iter().flatten().for_each(|one| one["uid"] = json!("nobody"));
            })
        },
    },
    Mutant {
        name: "starts a provider beside the one before",
        scenario: "upgrade",
        bend: || {
            change(
                |call| writes_to(call, "deployments"),
                |body| {
                    let annotations = &body["metadata"]["annotations"];
                    if !annotations[api::pkg::ANNOTATION_HANDOVER].is_null() {
                        body["spec"]["replicas"] = json!(1);
                    }
                },
            )
        },
    },
    Mutant {
        name: "does not let a provider come back",
        scenario: "stuck",
        bend: || {
            swallow_if(|call, body| {
                let is_scaled = writes_to(call, "deployments") && call.method == Method::PATCH;
                let noted = body["metadata"]["annotations"].get(api::pkg::ANNOTATION_STANDBY);
                is_scaled && noted.is_some_and(Json::is_null)
            })
        },
    },
    Mutant {
        name: "takes pods that end for gone",
        scenario: "pods-upgrade",
        bend: || mishear(|call| call.path.contains("/deployments/"), forget_ending),
    },
    Mutant {
        name: "gives runtimes nothing they may do",
        scenario: "install",
        bend: || swallow(|call| call.is_write() && call.path.contains("/clusterrolebindings")),
    },
    Mutant {
        name: "makes certificates of nobody",
        scenario: "install",
        bend: || {
            change(|call| writes_to(call, "secrets"), |body| drop_field(body, "/data", "tls.crt"))
        },
    },
    Mutant {
        name: "runs another image",
        scenario: "install",
        bend: || {
            change(
                |call| writes_to(call, "deployments"),
                |body| {
                    if let Some(image) = body.pointer_mut("/spec/template/spec/containers/0/image")
                    {
                        *image = json!("registry.example.org/team/other:latest");
                    }
                },
            )
        },
    },
    Mutant {
        name: "ignores the runtime configuration",
        scenario: "runtime",
        bend: || {
            change(
                |call| writes_to(call, "deployments"),
                |body| {
                    drop_field(body, "/spec/template/spec/containers/0", "args");
                },
            )
        },
    },
    Mutant {
        name: "marks nothing as a package's",
        scenario: "install",
        bend: || {
            change(
                |call| writes_to(call, "providerrevisions"),
                |body| {
                    drop_field(body, "/metadata", "labels");
                },
            )
        },
    },
    Mutant {
        name: "believes that a definition was made when it was not",
        scenario: "install",
        bend: || swallow(is_real_definition),
    },
    // What follows is right as long as nothing goes wrong.
    Mutant {
        name: "makes a definition at the first attempt or never",
        scenario: "install",
        bend: || once(is_real_definition),
    },
    Mutant {
        name: "makes a revision under another name at each attempt",
        scenario: "install",
        bend: renamed,
    },
    Mutant {
        name: "removes a Deployment at the first attempt or never",
        scenario: "upgrade",
        bend: || once(|call| call.method == Method::DELETE && call.path.contains("/deployments/")),
    },
    Mutant {
        name: "makes a role at the first attempt or never",
        scenario: "install",
        bend: || once(|call| call.is_write() && call.path.contains("/clusterroles/")),
    },
    Mutant {
        name: "makes an account at the first attempt or never",
        scenario: "install",
        bend: || once(|call| call.is_write() && call.path.contains("/serviceaccounts/")),
    },
];

fn writes_to(call: &Call, plural: &str) -> bool {
    let is_meant = |part: &str| part == plural;
    call.method != Method::GET
        && call.path.split('/').any(is_meant)
        && !call.path.ends_with("/status")
}

fn is_status(call: &Call, plural: &str) -> bool {
    call.method == Method::PUT
        && call.path.ends_with("/status")
        && call.path.contains(&format!("/{plural}/"))
}

fn is_definition(call: &Call) -> bool {
    writes_to(call, "customresourcedefinitions")
}

fn is_real_definition(call: &Call) -> bool {
    is_definition(call) && call.is_write()
}

fn parse(body: &[u8]) -> Json {
    serde_json::from_slice(body).unwrap_or_default()
}

fn drop_field(body: &mut Json, at: &str, field: &str) {
    if let Some(fields) = body.pointer_mut(at).and_then(Json::as_object_mut) {
        fields.remove(field);
    }
}

/// What a server says that did something, as far as a manager looks at it.
fn done(call: &Call, body: &[u8]) -> Bent {
    let mut object = parse(body);
    if object.get("metadata").is_none() {
        object["metadata"] = json!({});
    }
    object["metadata"]["generation"] = json!(1);
    object["metadata"]["uid"] = json!("none");
    let code = if call.method == Method::POST { 201 } else { 200 };
    Bent::Pretend(code, object)
}

/// Calls that are never made.
fn swallow(is_meant: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Bend {
    swallow_if(move |call, _| is_meant(call))
}

fn swallow_if(is_meant: impl Fn(&Call, &Json) -> bool + Send + Sync + 'static) -> Bend {
    Arc::new(
        move |call, body| {
            if is_meant(call, &parse(&body)) { done(call, &body) } else { Bent::Send(body) }
        },
    )
}

/// Calls that say something else.
fn change(
    is_meant: impl Fn(&Call) -> bool + Send + Sync + 'static,
    change: impl Fn(&mut Json) + Send + Sync + 'static,
) -> Bend {
    Arc::new(move |call, body| {
        if !is_meant(call) {
            return Bent::Send(body);
        }
        let mut object = parse(&body);
        if object.is_null() {
            return Bent::Send(body);
        }
        change(&mut object);
        Bent::Send(object.to_string().into_bytes())
    })
}

/// Calls whose answers are taken for others.
fn mishear(
    is_meant: impl Fn(&Call) -> bool + Send + Sync + 'static,
    change: fn(&mut Json),
) -> Bend {
    Arc::new(
        move |call, body| {
            if is_meant(call) { Bent::Mishear(body, change) } else { Bent::Send(body) }
        },
    )
}

/// What a server tells that does not count pods which end.
fn forget_ending(deployment: &mut Json) {
    drop_field(deployment, "/status", "terminatingReplicas");
}

/// Calls that are made once, whatever comes of it.
fn once(is_meant: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Bend {
    let made: Mutex<HashMap<String, usize>> = Mutex::default();
    Arc::new(move |call, body| {
        if !is_meant(call) {
            return Bent::Send(body);
        }
        let name = parse(&body)["metadata"]["name"].to_string();
        let what = format!("{} {} {name}", call.method, call.path);
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        let times = made.entry(what).or_default();
        *times += 1;
        if *times == 1 { Bent::Send(body) } else { done(call, &body) }
    })
}

/// A status that is another each time.
fn forever() -> Bend {
    let count = AtomicUsize::new(0);
    change(
        |call| is_status(call, "providers"),
        move |body| {
            let times = count.fetch_add(1, Ordering::SeqCst);
            body["status"]["currentIdentifier"] = json!(format!("the look number {times}"));
        },
    )
}

/// Revisions get another name each time somebody tries to make one.
fn renamed() -> Bend {
    let count = AtomicUsize::new(0);
    Arc::new(move |call, body| {
        let is_first = |call: &Call| {
            call.is_write() && writes_to(call, "providerrevisions") && call.method != Method::DELETE
        };
        let mut object = parse(&body);
        let is_new = object.pointer("/metadata/resourceVersion").is_none()
            && object.pointer("/spec/image").is_some();
        if !is_first(call) || !is_new {
            return Bent::Send(body);
        }
        let times = count.fetch_add(1, Ordering::SeqCst);
        if times == 0 {
            return Bent::Send(body);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let new = format!("{name}-{times}");
        object["metadata"]["name"] = json!(new);
        let path = format!("{}?{}", call.path.replace(&name, &new), call.query);
        Bent::Redirect(path, object.to_string().into_bytes())
    })
}
