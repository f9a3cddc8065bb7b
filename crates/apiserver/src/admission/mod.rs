//! # Admission: others have a say before a write is done
//!
//! ```text
//!  create, update, patch ─► mutate ─► (defaults, checks) ─► validate ─► written
//!  delete ─────────────────► mutate ─► validate ─► gone
//! ```
//!
//! Webhooks are configured by objects. Mutating ones are asked in order and may change what
//! is written; validating ones are asked together and may only refuse. Where there are none,
//! a write pays for one look at an empty part of the log.

mod config;
mod review;
pub(crate) mod validate;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use config::Hooks;

use crate::Server;
use crate::http::status::Failure;
use crate::kind::Kind;
use crate::rest::{Change, Request};
use apply::patch;
use config::{Hook, Sort};
use review::Verdict;

/// A write, as webhooks see it.
pub(crate) struct Action<'a> {
    request: &'a Request,
    operation: &'static str,
    object: Option<Value>,
    old: Option<Value>,
    dry_run: bool,
}

impl Action<'_> {
    /// Whether the objects are `Scale`s, whatever the request's kind is.
    fn is_scale(&self) -> bool {
        self.request.target.subresource.as_deref() == Some("scale")
    }

    fn name(&self) -> &str {
        match self.request.target.name.as_deref() {
            Some(name) => name,
            None => self
                .object
                .as_ref()
                .map(|object| schema::object::meta_text(object, "name"))
                .unwrap_or_default(),
        }
    }
}

/// Puts an object that is to be made before the mutating webhooks.
pub(crate) async fn create(
    server: &Server,
    request: &Request,
    object: Value,
    dry_run: bool,
) -> Result<Value, Failure> {
    let hooks = server.hooks.of(server, Sort::Mutating);
    if hooks.is_empty() || is_exempt(&request.kind) {
        return Ok(object);
    }
    let mut action =
        Action { request, operation: "CREATE", object: Some(object), old: None, dry_run };
    mutate(server, &hooks, &mut action).await?;
    Ok(action.object.unwrap_or_default())
}

/// Puts an object that is about to be made before the validating webhooks.
pub(crate) async fn created(
    server: &Server,
    request: &Request,
    object: &Value,
    dry_run: bool,
) -> Result<(), Failure> {
    let hooks = server.hooks.of(server, Sort::Validating);
    if hooks.is_empty() || is_exempt(&request.kind) {
        return Ok(());
    }
    let object = Some(object.clone());
    let action = Action { request, operation: "CREATE", object, old: None, dry_run };
    validate(server, &hooks, &action).await
}

/// What an object becomes that a client wants to be `new`, if the webhooks agree.
pub(crate) async fn update(
    server: &Server,
    request: &Request,
    old: &Value,
    new: Value,
    dry_run: bool,
) -> Result<Change, Failure> {
    let settle = |new| crate::rest::settle(server, request, old, new);
    let mutating = server.hooks.of(server, Sort::Mutating);
    let validating = server.hooks.of(server, Sort::Validating);
    if (mutating.is_empty() && validating.is_empty()) || is_exempt(&request.kind) {
        return settle(new);
    }
    let mut action =
        Action { request, operation: "UPDATE", object: Some(new), old: Some(old.clone()), dry_run };
    mutate(server, &mutating, &mut action).await?;
    let change = settle(action.object.take().unwrap_or_default())?;
    action.object = Some(match &change {
        Change::Put(object) | Change::Remove(object) => object.clone(),
        _ => old.clone(),
    });
    validate(server, &validating, &action).await?;
    Ok(change)
}

/// The same for a `Scale`: webhooks see what `show` makes of objects, and `settle` says what an
/// object becomes once the `Scale` is as they left it.
pub(crate) async fn scale(
    server: &Server,
    request: &Request,
    (old, scale, dry_run): (&Value, Value, bool),
    settle: impl Fn(&Value) -> Result<Change, Failure>,
    show: impl Fn(&Value) -> Value,
) -> Result<Change, Failure> {
    let mutating = server.hooks.of(server, Sort::Mutating);
    let validating = server.hooks.of(server, Sort::Validating);
    let (object, old) = (Some(scale), Some(show(old)));
    let mut action = Action { request, operation: "UPDATE", object, old, dry_run };
    mutate(server, &mutating, &mut action).await?;
    let change = settle(action.object.as_ref().unwrap_or(&Value::Null))?;
    if let Change::Put(object) | Change::Remove(object) = &change {
        action.object = Some(show(object));
    }
    validate(server, &validating, &action).await?;
    Ok(change)
}

/// Asks whether an object may be deleted.
pub(crate) async fn delete(
    server: &Server,
    request: &Request,
    old: &Value,
    dry_run: bool,
) -> Result<(), Failure> {
    let mutating = server.hooks.of(server, Sort::Mutating);
    let validating = server.hooks.of(server, Sort::Validating);
    if (mutating.is_empty() && validating.is_empty()) || is_exempt(&request.kind) {
        return Ok(());
    }
    let old = Some(old.clone());
    let mut action = Action { request, operation: "DELETE", object: None, old, dry_run };
    mutate(server, &mutating, &mut action).await?;
    validate(server, &validating, &action).await
}

/// The configurations themselves are nobody else's business.
fn is_exempt(kind: &Kind) -> bool {
    kind.group == config::GROUP
}

/// Asks the mutating webhooks, in order; those that wish so once more if others changed the
/// object after them.
async fn mutate(
    server: &Server,
    hooks: &[Arc<Hook>],
    action: &mut Action<'_>,
) -> Result<(), Failure> {
    let mut asked: Vec<(usize, bool)> = Vec::new();
    for (at, hook) in hooks.iter().enumerate() {
        let Some(changed) = ask(server, hook, action, true).await? else { continue };
        if changed {
            for (_, again) in &mut asked {
                *again = true;
            }
        }
        asked.push((at, false));
    }
    for (at, again) in asked {
        if again && hooks[at].reinvoke {
            ask(server, &hooks[at], action, true).await?;
        }
    }
    Ok(())
}

async fn validate(
    server: &Server,
    hooks: &[Arc<Hook>],
    action: &Action<'_>,
) -> Result<(), Failure> {
    let calls = hooks.iter().map(|hook| async {
        // Nobody may change anything now: each gets its own copy.
        let mut own = Action {
            request: action.request,
            operation: action.operation,
            object: action.object.clone(),
            old: action.old.clone(),
            dry_run: action.dry_run,
        };
        ask(server, hook, &mut own, false).await
    });
    for answer in futures::future::join_all(calls).await {
        answer?;
    }
    Ok(())
}

/// Asks one webhook, if the write concerns it; says whether it changed the object.
async fn ask(
    server: &Server,
    hook: &Hook,
    action: &mut Action<'_>,
    mutating: bool,
) -> Result<Option<bool>, Failure> {
    let Some(kind) = hook.concerns(server, action) else { return Ok(None) };
    let uid = crate::world::uid(server.world.as_ref());
    let review = review::request(action, &kind, &uid);
    match hook.conditions(&review["request"]) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if !hook.fail => return Ok(None),
        Err(why) => {
            return Err(Failure::forbidden(&action.request.kind, action.name(), &why));
        }
    }
    match review::send(server, hook, &review, &uid, mutating).await {
        Ok(Verdict { denied: Some(failure), warnings, .. }) => {
            warn(action.request, warnings);
            Err(*failure)
        }
        Ok(Verdict { patch, warnings, .. }) => {
            warn(action.request, warnings);
            let Some(patch) = patch else { return Ok(Some(false)) };
            apply(action, &kind, &patch).map(Some)
        }
        Err(_) if !hook.fail => Ok(None),
        Err(why) => Err(failed(&hook.name, &why)),
    }
}

fn warn(request: &Request, warnings: Vec<String>) {
    for warning in warnings {
        request.warnings.add(warning);
    }
}

/// A webhook that cannot be asked and may not be left out.
fn failed(name: &str, why: &str) -> Failure {
    let why = format!("failed calling webhook {name:?}: {why}");
    let mut failure = Failure::new(500, "InternalError", format!("Internal error occurred: {why}"));
    failure.details = Some(Box::new(json!({"causes": [{"message": why}]})));
    failure
}

/// Changes the object as a webhook wishes.
fn apply(action: &mut Action<'_>, kind: &Kind, wishes: &Value) -> Result<bool, Failure> {
    let Some(object) = action.object.take() else {
        return Err(Failure::new(
            500,
            "InternalError",
            "Internal error occurred: admission webhook attempted to modify the object, which is \
             not supported for this operation",
        ));
    };
    let scale = action.is_scale();
    let mut new = object.clone();
    if !scale {
        new["apiVersion"] = json!(kind.api_version());
    }
    let operations = wishes.as_array().map(Vec::as_slice).unwrap_or_default();
    if operations.len() > patch::OPERATIONS_MAX {
        let most = patch::OPERATIONS_MAX;
        return Err(misfit(&format!("the patch has more than {most} operations")));
    }
    let mut budget = patch::Budget::of(&new);
    for operation in operations {
        patch::json_step(&mut new, operation, &mut budget).map_err(|error| {
            misfit(&if error.is_limit() { error.to_string() } else { doubt(operation) })
        })?;
    }
    if !new.is_object() {
        return Err(misfit("the patch leaves no object"));
    }
    if !scale {
        new["apiVersion"] = json!(action.request.kind.api_version());
        crate::http::body::prune(&action.request.kind, &mut new);
        crate::rest::fill(&action.request.kind, &mut new);
    }
    let changed = new != object;
    action.object = Some(new);
    Ok(changed)
}

/// What a webhook wishes cannot be done.
fn misfit(why: &str) -> Failure {
    let mut failure = Failure::new(500, "InternalError", format!("Internal error occurred: {why}"));
    failure.details = Some(Box::new(json!({"causes": [{"message": why}]})));
    failure
}

/// Why an operation does not apply.
fn doubt(operation: &Value) -> String {
    let text = |field: &str| operation.get(field).and_then(Value::as_str).unwrap_or_default();
    let (wish, path) = (text("op"), text("path"));
    match wish {
        "test" => format!("testing value {path} failed: test failed"),
        "replace" => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        _ => {
            format!("{wish} operation does not apply: doc is missing path: {path:?}: missing value")
        }
    }
}
