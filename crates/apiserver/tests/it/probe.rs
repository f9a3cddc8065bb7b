//! Probes as text: what is asked of both servers.
//!
//! ```text
//! let CM = /api/v1/namespaces/default/configmaps
//!
//! = create a config map
//! POST $CM save=p1
//! {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p1"}}
//!
//! = read it at its version
//! GET $CM/p1?resourceVersion=${p1.metadata.resourceVersion}
//! ```
//!
//! Options after the path: `save=NAME` keeps the answer for `${NAME.path}`, `type=` is the
//! body's media type, `accept=` the answer's; short words stand for the long ones.
//! A body that starts with `base64:` is sent as the bytes it stands for.
//! `as=NAME` asks as another user (see `peers::USERS`; `nobody` shows nothing), `token=` with
//! a token from an earlier answer, `header=Name:value` sends a header, with `_` for a space.
//! `quiet` sends without comparing: setting the table. `retry` asks again for a while
//! until both agree: for what a controller does later; `until=words+like+these` asks at least
//! until both say so, because before the controller comes they agree, too.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::peers::{TOKEN, token};

/// One question.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) media: String,
    pub(crate) accept: String,
    pub(crate) save: Option<String>,
    /// The `Authorization` header; none shows nothing.
    pub(crate) authorization: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) quiet: bool,
    pub(crate) retry: bool,
    pub(crate) until: Option<String>,
    pub(crate) body: Option<String>,
}

/// Reads a file of probes.
pub(crate) fn parse(file: &str, text: &str) -> Vec<Probe> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut probes = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(definition) = line.strip_prefix("let ") {
            let (name, value) = definition.split_once(" = ").expect("let NAME = value");
            names.insert(format!("${name}"), value.to_owned());
        }
        let Some(name) = line.strip_prefix("= ") else { continue };
        let mut head = lines.next().expect("a request").to_owned();
        let mut body = String::new();
        while let Some(line) = lines.next_if(|line| !line.is_empty()) {
            body.push_str(line);
            body.push('\n');
        }
        for (name, value) in names.iter().rev() {
            head = head.replace(name.as_str(), value);
            body = body.replace(name.as_str(), value);
        }
        probes.push(probe(format!("{file}: {name}"), &head, body.trim_end()));
    }
    probes
}

fn probe(name: String, head: &str, body: &str) -> Probe {
    let mut words = head.split_whitespace();
    let method = words.next().expect("a method").to_owned();
    let path = words.next().expect("a path").to_owned();
    let mut probe = Probe {
        name,
        method,
        path,
        media: "application/json".to_owned(),
        accept: "application/json".to_owned(),
        save: None,
        authorization: Some(format!("Bearer {TOKEN}")),
        headers: Vec::new(),
        quiet: false,
        retry: false,
        until: None,
        body: (!body.is_empty()).then(|| body.to_owned()),
    };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("save", name) => probe.save = Some(name.to_owned()),
            ("type", media) => probe.media = long(media),
            ("accept", media) => probe.accept = long(media),
            ("as", "nobody") => probe.authorization = None,
            ("as", user) => probe.authorization = Some(format!("Bearer {}", token(user))),
            ("token", token) => probe.authorization = Some(format!("Bearer {token}")),
            ("authorization", said) => probe.authorization = Some(said.replace('_', " ")),
            ("header", header) => {
                let (name, value) = header.split_once(':').expect("header=Name:value");
                probe.headers.push((name.to_owned(), value.replace('_', " ")));
            }
            ("quiet", _) => probe.quiet = true,
            ("retry", _) => probe.retry = true,
            ("until", words) => {
                probe.retry = true;
                probe.until = Some(words.replace('+', " "));
            }
            (other, _) => panic!("{}: unknown option {other}", probe.name),
        }
    }
    probe
}

fn long(word: &str) -> String {
    match word {
        "merge" => "application/merge-patch+json",
        "json-patch" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "metadata-list" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "discovery" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "protobuf" => "application/vnd.kubernetes.protobuf",
        "yaml" => "application/yaml",
        "none" => "",
        other => other,
    }
    .to_owned()
}

/// Puts what earlier answers said into a text.
pub(crate) fn fill(text: &str, saved: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find('}').expect("a closing brace") + start;
        let (name, path) =
            rest[start + 2..end].split_once('.').unwrap_or((&rest[start + 2..end], ""));
        let mut value = saved.get(name).unwrap_or(&Value::Null);
        for step in path.split('.').filter(|step| !step.is_empty()) {
            value = match step.parse::<usize>() {
                Ok(at) => value.get(at),
                Err(_) => value.get(step),
            }
            .unwrap_or(&Value::Null);
        }
        match value {
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        }
        rest = &rest[end + 1..];
    }
    out + rest
}

/// The bytes of a body.
pub(crate) fn bytes(body: String) -> Vec<u8> {
    use base64::Engine;
    match body.strip_prefix("base64:") {
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text).expect("base64"),
        None => body.into_bytes(),
    }
}
