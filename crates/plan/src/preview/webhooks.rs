//! What the API server would call a package about, in words: whom, about what, and what happens if
//! there is no answer.

use super::text;
use serde_json::Value as Json;

/// Whether an object makes the API server call.
pub(super) fn is_one(object: &Json) -> bool {
    let kind = text(&object["kind"]);
    kind == "MutatingWebhookConfiguration" || kind == "ValidatingWebhookConfiguration"
}

/// Everything the API server is made to call about.
pub(super) fn summary(object: &Json) -> Vec<String> {
    webhooks(object).map(webhook).collect()
}

/// What it is made to call about otherwise than before.
pub(super) fn difference(before: &Json, after: &Json) -> Vec<String> {
    let (old, new) = (summary(before), summary(after));
    let gone = webhooks(before).filter(|one| !webhooks(after).any(|it| it["name"] == one["name"]));
    let gone = gone.map(|one| format!("{} is no longer called", text(&one["name"])));
    let new = new.into_iter().filter(|one| !old.contains(one));
    new.chain(gone).collect()
}

fn webhooks(object: &Json) -> impl Iterator<Item = &Json> {
    object["webhooks"].as_array().into_iter().flatten()
}

fn webhook(webhook: &Json) -> String {
    let rules = webhook["rules"].as_array().into_iter().flatten().map(rule);
    let rules: Vec<String> = rules.collect();
    let about = if rules.is_empty() { "nothing".to_owned() } else { rules.join(" and ") };
    // Without a word about it, API servers refuse what they get no answer for.
    let is_lenient = text(&webhook["failurePolicy"]) == "Ignore";
    let failure = if is_lenient { "goes through" } else { "is refused" };
    let (name, whom) = (text(&webhook["name"]), called(&webhook["clientConfig"]));
    format!("{name} calls {whom} about {about}, which {failure} without an answer")
}

/// Whom a client configuration leads to.
pub(super) fn called(client: &Json) -> String {
    if let Some(url) = client["url"].as_str() {
        return url.to_owned();
    }
    let service = &client["service"];
    format!("Service {}/{}", text(&service["namespace"]), text(&service["name"]))
}

/// For example `create, update of things.example.org`.
fn rule(rule: &Json) -> String {
    let list =
        |key: &str| -> Vec<&str> { rule[key].as_array().into_iter().flatten().map(text).collect() };
    let mut kinds = Vec::new();
    for group in list("apiGroups") {
        let of = if group.is_empty() { String::new() } else { format!(".{group}") };
        kinds.extend(list("resources").into_iter().map(|resource| format!("{resource}{of}")));
    }
    let operations: Vec<String> = list("operations").iter().map(|it| it.to_lowercase()).collect();
    let operations = match operations.as_slice() {
        [] => "every change".to_owned(),
        all if all.iter().any(|one| one == "*") => "every change".to_owned(),
        all => all.join(", "),
    };
    format!("{operations} of {}", kinds.join(", "))
}
