//! `serviceaccounts/NAME/token`: a token for an account, for a time and an audience.

use serde_json::{Value, json};

use super::{service_account, token};
use crate::Server;
use crate::http::body;
use crate::http::status::{Failure, details};
use crate::kind::{self, Kind};
use crate::rest::{Answer, Request, place, track_new};
use crate::world;
use schema::object::field_error::FieldError;
use schema::object::{map_at, meta_text, metadata_mut, time};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// How long a token lasts if nobody says.
const SECONDS_DEFAULT: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;
/// What clients ask for that should ask again after an hour, but might not: their tokens,
/// if bound to a pod, last a year.
const SECONDS_WARN: i64 = 3607;
const SECONDS_EXTENDED: i64 = 365 * 24 * 3600;

/// Makes a token.
pub(crate) fn create(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let options = request.query.write_options("CreateOptions", &request.agent)?;
    let kind = kind::token_request();
    let decoded = body::decode(&kind, &request.media, &request.body)?;
    let warnings = body::judge(&kind, decoded.odd, options.validation)?;
    let mut asked = decoded.object;
    place(request, &mut asked)?;
    let spec = map_at(&mut asked, "spec");
    if spec.get("expirationSeconds").is_none_or(Value::is_null) {
        spec.insert("expirationSeconds".to_owned(), json!(SECONDS_DEFAULT));
    }
    for field in ["audiences", "boundObjectRef"] {
        spec.entry(field).or_insert(Value::Null);
    }
    let own = Request { kind: kind.clone(), ..request.clone() };
    let mut asked = track_new(server, &own, &options, asked);
    let account = account(server, request, &asked)?;
    complete(server, &account, &mut asked);
    let seconds = check(&asked)?;
    let bound = bound(server, request, &asked)?;
    let (claims, until) = claims(server, &account, &asked, seconds, bound);
    let key = server.signer.as_ref();
    let signed = key.and_then(|key| key.sign(&claims)).ok_or_else(|| {
        let message = "Internal error occurred: failed to generate token: no key";
        Failure::new(500, "InternalError", message)
    })?;
    asked["status"] = json!({"token": signed, "expirationTimestamp": time::format(until)});
    Ok(Answer::Object { code: 201, body: asked, warnings })
}

/// The account in the URL, which the body may repeat but not contradict.
fn account(server: &Server, request: &Request, asked: &Value) -> Result<Value, Failure> {
    let name = request.target.name.as_deref().unwrap_or_default();
    let namespace = request.target.namespace.as_deref().unwrap_or_default();
    let said = meta_text(asked, "name");
    if !said.is_empty() && said != name {
        let why = "must match the service account name if specified";
        let wrong = FieldError::invalid("metadata.name", &json!(said), why);
        return Err(Failure::invalid(KIND, GROUP, name, &[wrong]));
    }
    let found = token::find(server, "serviceaccounts", namespace, name)
        .ok_or_else(|| Failure::not_found(&request.kind, name))?;
    let (said, real) = (meta_text(asked, "uid"), meta_text(&found, "uid"));
    if !said.is_empty() && said != real {
        let why = format!(
            "the UID in the token request ({said}) does not match the UID of the service account \
             ({real})"
        );
        return Err(conflict(GROUP, KIND, name, &why));
    }
    Ok(found)
}

fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Failure {
    let what = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
    Failure::new(409, "Conflict", message).with(details(name, group, resource))
}

/// Fills in what the client left out.
fn complete(server: &Server, account: &Value, asked: &mut Value) {
    let now = time::format(server.world.now());
    for field in ["name", "namespace", "uid"] {
        let value = meta_text(account, field);
        metadata_mut(asked).insert(field.to_owned(), json!(value));
    }
    metadata_mut(asked).insert("creationTimestamp".to_owned(), json!(now));
    if let Value::Object(map) = asked {
        map.shift_remove("status");
    }
    let spec = map_at(asked, "spec");
    if spec.get("audiences").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("audiences".to_owned(), json!(server.audiences()));
    }
}

fn check(asked: &Value) -> Result<i64, Failure> {
    let said = asked.pointer("/spec/expirationSeconds").cloned().unwrap_or_default();
    let seconds = said.as_i64().unwrap_or(SECONDS_DEFAULT);
    let why = match seconds {
        short if short < SECONDS_MIN => "may not specify a duration less than 10 minutes",
        long if long > SECONDS_MAX => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(seconds),
    };
    let wrong = FieldError::invalid("spec.expirationSeconds", &said, why);
    Err(Failure::invalid(KIND, GROUP, "", &[wrong]))
}

/// What a token ends with, as claims.
fn bound(server: &Server, request: &Request, asked: &Value) -> Result<Value, Failure> {
    let Some(wish) = asked.pointer("/spec/boundObjectRef").filter(|wish| wish.is_object()) else {
        return Ok(json!({}));
    };
    let text = |field: &str| wish.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let namespace = request.target.namespace.as_deref().unwrap_or_default();
    let (plural, place) = match (group, kind) {
        ("", "Pod") => ("pods", namespace),
        ("", "Secret") => ("secrets", namespace),
        ("", "Node") => ("nodes", ""),
        _ => {
            let what = match group {
                "" => format!("/{version}, Kind={kind}"),
                group => format!("{group}/{version}, Kind={kind}"),
            };
            return Err(Failure::bad_request(format!(
                "cannot bind token to object of type {what}"
            )));
        }
    };
    let missing = || not_found(server.kinds.find("", "v1", plural).as_deref(), name);
    let found = token::find(server, plural, place, name).ok_or_else(missing)?;
    let mut claims = json!({});
    if kind == "Pod" {
        let runs = found.pointer("/spec/serviceAccountName").and_then(Value::as_str);
        let account = request.target.name.as_deref().unwrap_or_default();
        if runs != Some(account) {
            return Err(Failure::bad_request(format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different \
                 serviceaccount name."
            )));
        }
        let node = found.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !node.is_empty() {
            let known = token::find(server, "nodes", "", node);
            claims["node"] = json!({"name": node});
            if let Some(known) = known {
                claims["node"]["uid"] = json!(meta_text(&known, "uid"));
            }
        }
    }
    let (said, real) = (text("uid"), meta_text(&found, "uid"));
    if !said.is_empty() && said != real {
        let why = format!(
            "the UID in the bound object reference ({said}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(conflict("", kind, name, &why));
    }
    claims[kind.to_lowercase()] = json!({"name": name, "uid": real});
    Ok(claims)
}

fn not_found(kind: Option<&Kind>, name: &str) -> Failure {
    kind.map_or_else(|| Failure::internal("not found"), |kind| Failure::not_found(kind, name))
}

/// What the token says, and until when its holder is told it lasts.
fn claims(
    server: &Server,
    account: &Value,
    asked: &Value,
    seconds: i64,
    bound: Value,
) -> (Value, u64) {
    let now = server.world.now();
    let after = |seconds: i64| now.saturating_add(u64::try_from(seconds).unwrap_or_default());
    let (namespace, name) = (meta_text(account, "namespace"), meta_text(account, "name"));
    let mut about = json!({
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": meta_text(account, "uid")},
    });
    let audiences = asked.pointer("/spec/audiences").cloned().unwrap_or_default();
    let ours = audiences.as_array().is_some_and(|list| {
        let known = |one: &Value| server.audiences().iter().any(|own| *one == json!(own));
        list.iter().all(known)
    });
    let mut until = after(seconds);
    if bound.get("pod").is_some() && seconds == SECONDS_WARN && ours {
        about["warnafter"] = json!(until);
        until = after(SECONDS_EXTENDED);
    }
    if let Value::Object(bound) = bound {
        for (kind, reference) in bound {
            about[kind] = reference;
        }
    }
    let claims = json!({
        "aud": audiences, "exp": until, "iat": now, "iss": server.issuer(),
        "jti": world::uid(server.world.as_ref()), "kubernetes.io": about, "nbf": now,
        "sub": service_account(namespace, name),
    });
    (claims, after(seconds))
}
