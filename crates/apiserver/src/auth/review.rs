//! Questions about who somebody is and what they may do, asked as objects that are
//! answered and never stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ask::{Attributes, Resource};
use super::rule::together;
use super::{User, authorize, who};
use crate::Server;
use crate::http::body;
use crate::http::status::Failure;
use crate::rest::{Answer, Request, track_new};
use schema::object::field_error::FieldError;
use schema::object::{meta_text, metadata, metadata_mut, time};

/// Answers the question in the body.
pub(crate) fn create(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let kind = &request.kind;
    let options = request.query.write_options("CreateOptions", &request.agent)?;
    let decoded = body::decode(kind, &request.media, &request.body)?;
    let warnings = body::judge(kind, decoded.odd, options.validation)?;
    let mut asked = decoded.object;
    if request.target.namespace.is_some() {
        crate::rest::place(request, &mut asked)?;
    }
    let answer = match kind.kind.as_str() {
        "SelfSubjectReview" => Ok(whoami(server, request)),
        "SelfSubjectRulesReview" => rules(server, request, &asked),
        "TokenReview" => token(server, request, asked, &options),
        _ => access(server, request, asked, &options),
    }?;
    Ok(Answer::Object { code: 201, body: answer, warnings })
}

fn bare(request: &Request) -> Value {
    let kind = &request.kind;
    json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": {}})
}

fn whoami(server: &Server, request: &Request) -> Value {
    let mut answer = bare(request);
    let now = time::format(server.world.now());
    metadata_mut(&mut answer).insert("creationTimestamp".to_owned(), json!(now));
    answer["status"] = json!({"userInfo": request.user.show()});
    answer
}

/// All that whoever asks may do in a namespace.
fn rules(server: &Server, request: &Request, asked: &Value) -> Result<Value, Failure> {
    let namespace = asked.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Failure::bad_request("no namespace on request"));
    }
    let held = server.access.policy.held(&server.log, &request.user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in &held.rules {
        let mut whole = rule.write();
        if let Value::Object(map) = &mut whole {
            let urls = map.shift_remove("nonResourceURLs");
            if let Some(urls) = urls {
                paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": urls}));
            }
        }
        if !rule.resources.is_empty() {
            resources.push(whole);
        }
    }
    let mut answer = bare(request);
    answer["spec"] = json!({});
    answer["status"] =
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    let mut missing: Vec<String> = Vec::new();
    for role in &held.missing {
        let said = role.not_found(&role.kind.to_lowercase());
        if !missing.contains(&said) {
            missing.push(said);
        }
    }
    if !missing.is_empty() {
        answer["status"]["evaluationError"] = json!(together(&missing));
    }
    Ok(answer)
}

/// Whether somebody, or whoever asks, may do one thing.
fn access(
    server: &Server,
    request: &Request,
    mut asked: Value,
    options: &crate::http::query::WriteOptions,
) -> Result<Value, Failure> {
    let kind = &request.kind;
    tidy(&mut asked);
    let wrong = check(&kind.kind, &asked);
    if !wrong.is_empty() {
        // Upstream does not know the kind any more when it says so.
        return Err(Failure::invalid("", &kind.group, "", &wrong));
    }
    let own = kind.kind == "SelfSubjectAccessReview";
    let user = if own { User::clone(&request.user) } else { subject(&asked["spec"]) };
    let verdict = authorize(server, &attributes(&user, &asked["spec"]));
    let mut answer = track_new(server, request, options, asked);
    let mut status = json!({"allowed": verdict.allowed});
    if !verdict.reason.is_empty() {
        status["reason"] = json!(verdict.reason);
    }
    answer["status"] = status;
    Ok(answer)
}

/// Empty texts and lists are not shown.
fn tidy(asked: &mut Value) {
    if let Value::Object(map) = asked {
        map.shift_remove("status");
        map.entry("metadata").or_insert_with(|| json!({}));
        let spec = map.entry("spec").or_insert_with(|| json!({}));
        if !spec.is_object() {
            *spec = json!({});
        }
        drop_empty(spec);
        for field in ["resourceAttributes", "nonResourceAttributes"] {
            if let Some(attributes) = spec.get_mut(field) {
                drop_empty(attributes);
            }
        }
    }
}

fn drop_empty(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| {
            !value.is_null() && *value != json!("") && *value != json!([]) && !is_empty_map(value)
        });
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn check(kind: &str, asked: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let spec = &asked["spec"];
    let (resource, path) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    let shown = |value: Option<&Value>, fields: [&str; 2]| match value {
        None => Value::Null,
        Some(value) => {
            let names = ["path", "verb"].iter().zip(fields);
            let pairs = names.map(|(name, field)| {
                let text = value.get(*name).and_then(Value::as_str).unwrap_or_default();
                (field.to_owned(), json!(text))
            });
            Value::Object(pairs.collect())
        }
    };
    let path_shown = shown(path, ["Path", "Verb"]);
    if resource.is_some() && path.is_some() {
        let why = "cannot be specified in combination with resourceAttributes";
        wrong.push(FieldError::invalid("spec.nonResourceAttributes", &path_shown, why));
    }
    if resource.is_none() && path.is_none() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        wrong.push(FieldError::invalid("spec.resourceAttributes", &Value::Null, why));
    }
    let own = kind == "SelfSubjectAccessReview";
    if !own && spec.get("user").is_none() && spec.get("groups").is_none() {
        let why = "at least one of user or group must be specified";
        wrong.push(FieldError::invalid("spec.user", &json!(""), why));
    }
    let local = kind == "LocalSubjectAccessReview";
    let extra = metadata(asked).keys().any(|key| {
        let own = ["managedFields", "creationTimestamp"].contains(&key.as_str());
        !own && (key != "namespace" || !local)
    });
    if extra {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        wrong.push(FieldError::invalid("metadata", &asked["metadata"], why));
    }
    if local {
        let namespace = resource.and_then(|it| it.get("namespace")).and_then(Value::as_str);
        let namespace = namespace.unwrap_or_default();
        if resource.is_some() && namespace != meta_text(asked, "namespace") {
            let why = "must match metadata.namespace";
            let field = "spec.resourceAttributes.namespace";
            wrong.push(FieldError::invalid(field, &json!(namespace), why));
        }
        if path.is_some() {
            let why = "disallowed on this kind of request";
            wrong.push(FieldError::invalid("spec.nonResourceAttributes", &path_shown, why));
        }
    }
    wrong
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The user a review is about.
fn subject(spec: &Value) -> User {
    let text = |field| spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let extra = spec.get("extra").and_then(Value::as_object);
    let extra: BTreeMap<String, Vec<String>> = extra
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), texts(Some(values))))
        .collect();
    User { name: text("user"), uid: text("uid"), groups: texts(spec.get("groups")), extra }
}

fn attributes<'a>(user: &'a User, spec: &Value) -> Attributes<'a> {
    let text = |part: &str, field: &str| {
        let found = spec.pointer(&format!("/{part}/{field}"));
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let of = "resourceAttributes";
    if spec.get(of).is_none() {
        let of = "nonResourceAttributes";
        return Attributes { user, verb: text(of, "verb"), path: text(of, "path"), resource: None };
    }
    let resource = Resource {
        group: text(of, "group"),
        resource: text(of, "resource"),
        subresource: text(of, "subresource"),
        namespace: text(of, "namespace"),
        name: text(of, "name"),
    };
    Attributes { user, verb: text(of, "verb"), path: String::new(), resource: Some(resource) }
}

/// Who is behind a token.
fn token(
    server: &Server,
    request: &Request,
    mut asked: Value,
    options: &crate::http::query::WriteOptions,
) -> Result<Value, Failure> {
    tidy(&mut asked);
    let secret = asked.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    if secret.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let mut audiences = texts(asked.pointer("/spec/audiences"));
    if audiences.is_empty() {
        audiences = server.audiences().to_vec();
    }
    let status = match who::accept(server, secret, &audiences) {
        Ok(accepted) => json!({
            "authenticated": true, "user": accepted.user.show(), "audiences": accepted.audiences,
        }),
        Err(rejected) if rejected.0 == who::INVALID => json!({"user": {}, "error": rejected.0}),
        Err(rejected) => {
            json!({"user": {}, "error": format!("[{}, {}]", who::INVALID, rejected.0)})
        }
    };
    let mut answer = track_new(server, request, options, asked);
    answer["status"] = status;
    Ok(answer)
}
