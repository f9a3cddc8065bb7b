//! Nobody can give what they do not have: roles and bindings are refused to those who do
//! not hold every rule in them, unless they hold the right to do just that.

use serde_json::{Value, json};

use super::ask::{Attributes, Resource};
use super::authorize;
use super::policy::{GROUP, MASTERS, RoleRef};
use super::rule::{Rule, describe, missing, quoted, together};
use crate::Server;
use crate::http::status::{Failure, details};
use crate::rest::Request;
use schema::object::{meta_text, metadata_mut};

/// Refuses an object (that was `old` before) if it would give more than its writer has.
pub(crate) fn check(
    server: &Server,
    request: &Request,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Failure> {
    if request.kind.group != GROUP || request.user.groups.iter().any(|group| group == MASTERS) {
        return Ok(());
    }
    let own = request.target.subresource.is_none();
    if !own || old.is_some_and(|old| differs_in_upkeep_only(object, old)) {
        return Ok(());
    }
    match request.kind.kind.as_str() {
        "Role" | "ClusterRole" => check_role(server, request, object, old),
        "RoleBinding" | "ClusterRoleBinding" => check_binding(server, request, object),
        _ => Ok(()),
    }
}

/// Whether only what the garbage collector needs is different.
fn differs_in_upkeep_only(object: &Value, old: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            metadata_mut(&mut object).shift_remove(field);
        }
        for field in ["rules", "subjects"] {
            if let Value::Object(map) = &mut object
                && map.get(field).is_some_and(|list| list.is_null() || *list == json!([]))
            {
                map.shift_remove(field);
            }
        }
        object
    };
    stripped(object) == stripped(old)
}

/// Whether the writer may do `verb` with this role.
fn may(server: &Server, request: &Request, verb: &str, resource: Resource) -> bool {
    let asked = Attributes {
        user: &request.user,
        verb: verb.to_owned(),
        path: String::new(),
        resource: Some(resource),
    };
    authorize(server, &asked).allowed
}

fn namespace(request: &Request) -> String {
    request.target.namespace.clone().unwrap_or_default()
}

fn check_role(
    server: &Server,
    request: &Request,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Failure> {
    let role = Resource {
        group: GROUP.to_owned(),
        resource: request.kind.plural.clone(),
        subresource: String::new(),
        namespace: namespace(request),
        name: request.target.name.clone().unwrap_or_default(),
    };
    if may(server, request, "escalate", role) {
        return Ok(());
    }
    confirm(server, request, object, &Rule::read_all(object))?;
    let gathers = |object: &Value| {
        let selectors = object.pointer("/aggregationRule/clusterRoleSelectors");
        selectors.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    if request.kind.kind == "ClusterRole" && (gathers(object) || old.is_some_and(gathers)) {
        let all = |field: &str| Rule::read(&json!({"verbs": ["*"], field: ["*"]}));
        let mut everything = all("resources");
        everything.groups = vec!["*".to_owned()];
        let held = server.access.policy.held(&server.log, &request.user, "");
        if !missing(&held.rules, &[everything, all("nonResourceURLs")]).is_empty() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Failure::forbidden(&request.kind, meta_text(object, "name"), why));
        }
    }
    Ok(())
}

fn check_binding(server: &Server, request: &Request, object: &Value) -> Result<(), Failure> {
    let reference = RoleRef::read(object);
    let group = object.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or_default();
    let plural = match reference.kind.as_str() {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        kind => {
            let message = format!("unsupported role reference kind: {kind:?}");
            return Err(Failure::internal(message));
        }
    };
    let role = Resource {
        group: group.to_owned(),
        resource: plural.to_owned(),
        subresource: String::new(),
        namespace: namespace(request),
        name: reference.name.clone(),
    };
    if may(server, request, "bind", role) {
        return Ok(());
    }
    let place = if plural == "roles" { namespace(request) } else { String::new() };
    let Some(role) = server.access.policy.role(&server.log, &place, &reference.name) else {
        // Upstream names the resource that was asked for, not the one that is missing.
        let wrong = &request.kind.plural;
        let failure = Failure::new(404, "NotFound", reference.not_found(wrong));
        return Err(failure.with(details(&reference.name, GROUP, wrong)));
    };
    confirm(server, request, object, &role.rules)
}

/// Refuses rules that the writer does not hold, and names them.
fn confirm(
    server: &Server,
    request: &Request,
    object: &Value,
    wanted: &[Rule],
) -> Result<(), Failure> {
    let held = server.access.policy.held(&server.log, &request.user, &namespace(request));
    let lacking = missing(&held.rules, wanted);
    if lacking.is_empty() {
        return Ok(());
    }
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        request.user.name,
        quoted(&request.user.groups),
        describe(&lacking)
    );
    let mut lost: Vec<String> = Vec::new();
    for role in &held.missing {
        let said = role.not_found(&request.kind.plural);
        if !lost.contains(&said) {
            lost.push(said);
        }
    }
    if !lost.is_empty() {
        why = format!("{why}; resolution errors: [{}]", together(&lost));
    }
    Err(Failure::forbidden(&request.kind, meta_text(object, "name"), &why))
}
