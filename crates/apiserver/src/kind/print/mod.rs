//! What `kubectl get` shows of built-in kinds: columns, and a row for each object.
//!
//! Custom kinds say in their definitions which columns they have; built-in ones are printed
//! by rules of their own, which count, join and summarise.

mod pod;
mod service;

use serde_json::{Value, json};

use super::Column;
use schema::object::{metadata, time};

/// The columns of a kind, by its plural; a `+` marks those that only wide tables show.
pub(super) fn columns(plural: &str) -> Vec<Column> {
    let heads: &[&str] = match plural {
        "configmaps" => &["Name", "Data", "Age"],
        "secrets" => &["Name", "Type", "Data", "Age"],
        "namespaces" => &["Name", "Status", "Age"],
        "services" => &["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"],
        "endpoints" => &["Name", "Endpoints", "Age"],
        "endpointslices" => &["Name", "AddressType", "Ports", "Endpoints", "Age"],
        "nodes" => &[
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "+Internal-IP",
            "+External-IP",
            "+OS-Image",
            "+Kernel-Version",
            "+Container-Runtime",
        ],
        "pods" => &[
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "+IP",
            "+Node",
            "+Nominated Node",
            "+Readiness Gates",
        ],
        "events" => &[
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "+Subobject",
            "+Source",
            "Message",
            "+First Seen",
            "+Count",
            "+Name",
        ],
        "deployments" => &[
            "Name",
            "Ready",
            "Up-to-date",
            "Available",
            "Age",
            "+Containers",
            "+Images",
            "+Selector",
        ],
        "replicasets" => {
            &["Name", "Desired", "Current", "Ready", "Age", "+Containers", "+Images", "+Selector"]
        }
        "customresourcedefinitions" | "clusterroles" | "roles" => &["Name", "Created At"],
        "clusterrolebindings" | "rolebindings" => {
            &["Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts"]
        }
        "leases" => &["Name", "Holder", "Age"],
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => {
            &["Name", "Webhooks", "Age"]
        }
        _ => &["Name", "Age"],
    };
    heads.iter().map(|head| column(plural, head)).collect()
}

fn column(plural: &str, head: &str) -> Column {
    let name = head.trim_start_matches('+');
    let type_ = match (plural, name) {
        (_, "Created At") => "date",
        ("replicasets", "Desired" | "Current" | "Ready") | (_, "Webhooks") => "integer",
        _ => "string",
    };
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: if name == "Name" { "name" } else { "" }.to_owned(),
        description: super::builtin::description(plural, name),
        priority: i64::from(head.starts_with('+')),
    }
}

/// An object's row.
pub fn cells(plural: &str, item: &Value, now: u64) -> Vec<Value> {
    let see = Seen { item, now };
    let name = json!(see.text("/metadata/name"));
    let mut row = vec![name.clone()];
    match plural {
        "configmaps" => {
            row.push(json!(see.length("/data").saturating_add(see.length("/binaryData"))));
        }
        "secrets" => row.extend([json!(see.text("/type")), json!(see.length("/data"))]),
        "namespaces" => row.push(json!(see.text("/status/phase"))),
        "services" => return service::row(&see),
        "endpoints" => row.push(json!(service::endpoints(&see))),
        "endpointslices" => row.extend(service::slice_cells(&see)),
        "nodes" => return node(&see),
        "pods" => return pod::row(&see),
        "events" => return event(&Seen { item: &super::event::core(item), now }),
        "deployments" => {
            let ready = see.number("/status/readyReplicas");
            row.push(json!(format!("{ready}/{}", see.number("/spec/replicas"))));
            row.push(json!(see.number("/status/updatedReplicas")));
            row.push(json!(see.number("/status/availableReplicas")));
            row.push(see.age());
            row.extend(see.template());
            return row;
        }
        "replicasets" => {
            row.push(json!(see.number("/spec/replicas")));
            row.push(json!(see.number("/status/replicas")));
            row.push(json!(see.number("/status/readyReplicas")));
            row.push(see.age());
            row.extend(see.template());
            return row;
        }
        "customresourcedefinitions" | "clusterroles" | "roles" => {
            return vec![name, json!(see.text("/metadata/creationTimestamp"))];
        }
        "clusterrolebindings" | "rolebindings" => {
            let role = format!("{}/{}", see.text("/roleRef/kind"), see.text("/roleRef/name"));
            row.extend([json!(role), see.age()]);
            row.extend(see.subjects());
            return row;
        }
        "leases" => row.push(json!(see.text("/spec/holderIdentity"))),
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => {
            row.push(json!(see.length("/webhooks")));
        }
        _ => {}
    }
    row.push(see.age());
    row
}

/// An object that is looked at, now.
struct Seen<'a> {
    item: &'a Value,
    now: u64,
}

impl<'a> Seen<'a> {
    fn text(&self, at: &str) -> &'a str {
        self.item.pointer(at).and_then(Value::as_str).unwrap_or_default()
    }

    /// A text, or what stands for none.
    fn or<'t>(&self, at: &str, none: &'t str) -> &'t str
    where
        'a: 't,
    {
        Some(self.text(at)).filter(|text| !text.is_empty()).unwrap_or(none)
    }

    fn number(&self, at: &str) -> i64 {
        self.item.pointer(at).and_then(Value::as_i64).unwrap_or_default()
    }

    fn list(&self, at: &str) -> &'a [Value] {
        self.item.pointer(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn length(&self, at: &str) -> usize {
        match self.item.pointer(at) {
            Some(Value::Array(list)) => list.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    fn age(&self) -> Value {
        json!(self.since(self.text("/metadata/creationTimestamp")))
    }

    /// How long ago a time was.
    fn since(&self, text: &str) -> String {
        match time::parse(text) {
            Some(then) => time::age(self.now.saturating_sub(then)),
            None => "<unknown>".to_owned(),
        }
    }

    /// Containers, images and selector of what is made from a template.
    fn template(&self) -> [Value; 3] {
        let containers = self.list("/spec/template/spec/containers");
        let join = |field: &str| json!(texts(containers, field).join(","));
        [join("name"), join("image"), json!(selector(self.item))]
    }

    /// Who a role is bound to: users, groups, service accounts.
    fn subjects(&self) -> [Value; 3] {
        let subjects = self.list("/subjects");
        let of = |kind: &str| {
            let found = subjects.iter().filter(|one| one["kind"] == kind);
            let shown: Vec<String> = found
                .map(|one| {
                    let text = |field: &str| one[field].as_str().unwrap_or_default();
                    match (kind, text("namespace")) {
                        ("ServiceAccount", namespace) => format!("{namespace}/{}", text("name")),
                        _ => text("name").to_owned(),
                    }
                })
                .collect();
            json!(shown.join(", "))
        };
        [of("User"), of("Group"), of("ServiceAccount")]
    }
}

/// A label selector as one writes it on a command line.
fn selector(item: &Value) -> String {
    let at = |path: &str| item.pointer(&format!("/spec/selector/{path}"));
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in at("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for one in at("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = one["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            one["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match one["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// One field of each item.
fn texts<'v>(items: &'v [Value], field: &str) -> Vec<&'v str> {
    items.iter().map(|item| item[field].as_str().unwrap_or_default()).collect()
}

fn node(see: &Seen<'_>) -> Vec<Value> {
    let ready = see.list("/status/conditions").iter().find(|one| one["type"] == "Ready");
    let mut status = match ready {
        Some(one) if one["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if see.item.pointer("/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = metadata(see.item).get("labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let found = see.list("/status/addresses").iter().find(|one| one["type"] == kind);
        json!(found.and_then(|one| one["address"].as_str()).unwrap_or("<none>"))
    };
    let info = |field: &str| see.or(&format!("/status/nodeInfo/{field}"), "<unknown>");
    let kernel = match see.text("/status/nodeInfo/architecture") {
        "" => info("kernelVersion").to_owned(),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    vec![
        json!(see.text("/metadata/name")),
        json!(status),
        json!(roles),
        see.age(),
        json!(see.text("/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}

fn event(see: &Seen<'_>) -> Vec<Value> {
    let first = match see.text("/firstTimestamp") {
        "" => see.since(see.text("/eventTime")),
        time => see.since(time),
    };
    let mut last = match see.text("/lastTimestamp") {
        "" => first.clone(),
        time => see.since(time),
    };
    let mut count = see.number("/count").max(1);
    if see.item.get("series").is_some() {
        last = see.since(see.text("/series/lastObservedTime"));
        count = see.number("/series/count");
    }
    let kind = see.text("/involvedObject/kind").to_lowercase();
    let object = match see.text("/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = see.or("/source/component", see.text("/reportingComponent"));
    let source = match see.or("/source/host", see.text("/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(see.text("/type")),
        json!(see.text("/reason")),
        json!(object),
        json!(see.text("/involvedObject/fieldPath")),
        json!(source),
        json!(see.text("/message").trim()),
        json!(first),
        json!(count),
        json!(see.text("/metadata/name")),
    ]
}
