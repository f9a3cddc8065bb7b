//! Rows of services, and what lies behind them.

use serde_json::{Value, json};

use super::{Seen, texts};

/// A service: who reaches it where.
pub(super) fn row(see: &Seen<'_>) -> Vec<Value> {
    let own: Vec<&str> = see.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    let outside = match see.text("/spec/type") {
        "ClusterIP" | "NodePort" => joined(&own, "<none>"),
        "LoadBalancer" => {
            let ingress = see.list("/status/loadBalancer/ingress");
            let mut found: Vec<&str> = texts(ingress, "ip")
                .into_iter()
                .zip(texts(ingress, "hostname"))
                .map(|(ip, host)| if ip.is_empty() { host } else { ip })
                .filter(|one| !one.is_empty())
                .collect();
            found.sort_unstable();
            found.dedup();
            found.extend(own);
            joined(&found, "<pending>")
        }
        "ExternalName" => see.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    };
    let ports: Vec<String> = see.list("/spec/ports").iter().map(port).collect();
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let mut selector: Vec<String> = see
        .item
        .pointer("/spec/selector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    selector.sort_unstable();
    let selector: Vec<&str> = selector.iter().map(String::as_str).collect();
    vec![
        json!(see.text("/metadata/name")),
        json!(see.text("/spec/type")),
        json!(see.or("/spec/clusterIPs/0", "<none>")),
        json!(outside),
        json!(joined(&ports, "<none>")),
        see.age(),
        json!(joined(&selector, "<none>")),
    ]
}

fn joined(parts: &[&str], none: &str) -> String {
    if parts.is_empty() { none.to_owned() } else { parts.join(",") }
}

fn port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or_default();
    match port["nodePort"].as_i64() {
        Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
        _ => format!("{}/{protocol}", port["port"]),
    }
}

/// The first three addresses, and how many more there are.
pub(super) fn endpoints(see: &Seen<'_>) -> String {
    const SHOWN_MAX: usize = 3;
    let mut all = Vec::new();
    for subset in see.list("/subsets") {
        let part = |field: &str| subset[field].as_array().map_or(&[][..], Vec::as_slice);
        let addresses = texts(part("addresses"), "ip");
        if part("ports").is_empty() {
            all.extend(addresses.iter().map(|ip| (*ip).to_owned()));
        }
        for port in part("ports") {
            all.extend(addresses.iter().map(|ip| {
                let ip = if ip.contains(':') { format!("[{ip}]") } else { (*ip).to_owned() };
                format!("{ip}:{}", port["port"])
            }));
        }
    }
    if all.is_empty() {
        return if see.list("/subsets").is_empty() { "<none>".to_owned() } else { String::new() };
    }
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// The address type, the ports and the addresses of a slice, three of each.
pub(super) fn slice_cells(see: &Seen<'_>) -> [Value; 3] {
    let port = |port: &Value| match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => port["name"].as_str().unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = see.list("/ports").iter().map(port).collect();
    let endpoints = see.list("/endpoints").iter();
    let addresses = endpoints.flat_map(|one| one["addresses"].as_array().into_iter().flatten());
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    [json!(see.text("/addressType")), json!(first_of(&ports)), json!(first_of(&addresses))]
}

/// The first three of several, and how many more there are.
fn first_of(all: &[String]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 if shown.is_empty() => "<unset>".to_owned(),
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}
