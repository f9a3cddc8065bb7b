//! Actions as lines of text.

use crate::step::{Action, Expect, Write};
use api::pkg::ANNOTATION_BROUGHT_BY;
use serde_json::{Value as Json, json};

/// Owners by name; the controller has a star.
pub(super) fn owners(references: &Json) -> String {
    let each = references.as_array().into_iter().flatten().map(|one| {
        let star = if one["controller"] == json!(true) { "*" } else { "" };
        format!("{}{star}", one["name"].as_str().unwrap())
    });
    each.collect::<Vec<_>>().join(" ")
}

/// An action as a line.
pub(super) fn show(action: &Action) -> String {
    match action {
        Action::Apply { object, .. } => format!("create {}", told(object)),
        Action::Merge { target, change, .. } => {
            let owned = &change["metadata"]["ownerReferences"];
            let change =
                if owned.is_array() { format!("owned by {}", owners(owned)) } else { told(change) };
            format!("change {} {}: {change}", target.kind, target.name)
        }
        Action::Establish(Write { target, object, expect }) => {
            let how = if *expect == Expect::Absent { "create" } else { "replace" };
            let owned = owners(&object.overlay["metadata"]["ownerReferences"]);
            let mut overlay = object.overlay.clone();
            let metadata = overlay["metadata"].as_object_mut().unwrap();
            metadata.remove("ownerReferences");
            // Every object says whose it is, which is no news each time.
            let annotations = metadata["annotations"].as_object_mut().unwrap();
            annotations.remove(ANNOTATION_BROUGHT_BY).unwrap();
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
            let over = if overlay == json!({"metadata": {}}) {
                String::new()
            } else {
                format!(" with {overlay}")
            };
            format!("{how} {} {} owned by {owned}{over}", target.kind, target.name)
        }
        Action::Finalizer { is_wanted, finalizer, .. } => {
            format!("{} finalizer {finalizer}", if *is_wanted { "add" } else { "remove" })
        }
        Action::Status { status, .. } => {
            let mut status = status.clone();
            let conditions = status["conditions"].as_array().unwrap().iter().map(|one| {
                let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
                let message = text("message");
                let message = if message.is_empty() { message } else { format!(" ({message})") };
                format!("{}={} {}{message}", text("type"), text("status"), text("reason"))
            });
            let conditions: Vec<String> = conditions.collect();
            status.as_object_mut().unwrap().remove("conditions");
            format!("status {}; {status}", conditions.join(", "))
        }
        Action::Event { is_warning, reason, message, .. } => {
            format!("event {} {reason}: {message}", if *is_warning { "Warning" } else { "Normal" })
        }
        Action::Delete { target, .. } => format!("delete {}", target.name),
        other @ Action::Issue { .. } => panic!("no business of a revision: {other:?}"),
    }
}

fn told(object: &Json) -> String {
    object.to_string()
}
