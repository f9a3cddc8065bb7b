//! What the manager may not do at all, told to whom it concerns.
//!
//! What decides about an object cannot be gathered where the manager's account lacks a right, so
//! there is no world for `plan` to decide on, and the object would say nothing, or what it said
//! before. So that is told here, in the condition by which people know how it goes.

use crate::{Hands, act};
use api::condition::{self, Condition, reasons};
use plan::step::{Action, Expect, Target};
use serde_json::{Value as Json, json};

/// Whom a key names, and the condition that says how it goes.
pub(crate) type Subject = (Target, &'static str);

/// Tells an object why it cannot be looked at, unless it says so already.
pub(crate) async fn tell(hands: &Hands, subject: &Subject, why: &str) {
    let (target, of) = subject;
    let Ok(Some(object)) = hands.cluster.get(target).await else { return };
    let message = said(why);
    let Some(status) = told(&object, of, &message, hands.now()) else { return };
    let expect = Expect::as_found(Some(&object));
    let actions = [
        Action::Status { target: target.clone(), status, expect },
        Action::Event { target: target.clone(), is_warning: true, reason: "Forbidden", message },
    ];
    if act::carry_out(hands, &actions).await.is_err() {
        hands.say(crate::Entry::trouble("manager", &target.name, "that could not be told"));
    }
}

fn said(why: &str) -> String {
    if why.contains("forbidden") {
        return format!(
            "{why}; give the manager's account that right, as `apron manager install` does, and it \
             goes on by itself"
        );
    }
    why.to_owned()
}

/// The status that says so; none if it does.
fn told(object: &Json, of: &str, message: &str, now: String) -> Option<Json> {
    let mut status = object["status"].clone();
    let mut conditions: Vec<Condition> =
        serde_json::from_value(status["conditions"].take()).unwrap_or_default();
    let found = condition::find(&conditions, of);
    if found.is_some_and(|one| one.status == "False" && one.message.as_deref() == Some(message)) {
        return None;
    }
    let new = Condition {
        condition_type: of.to_owned(),
        status: "False".to_owned(),
        last_transition_time: now,
        reason: reasons::UNHEALTHY.to_owned(),
        message: Some(message.to_owned()),
        observed_generation: object["metadata"]["generation"].as_i64(),
        ..Condition::default()
    };
    condition::set(&mut conditions, new);
    if !status.is_object() {
        status = json!({});
    }
    status["conditions"] = json!(conditions);
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_told_once_what_keeps_it_from_being_looked_at() {
        let why = "deployments.apps is forbidden: User \"x\" cannot list resource";
        let mut object = json!({
            "metadata": {"generation": 3},
            "status": {"objectRefs": [], "conditions": [
                {"type": "RuntimeHealthy", "status": "True", "reason": "x", "lastTransitionTime": "1"},
                {"type": "RevisionHealthy", "status": "True", "reason": "x", "lastTransitionTime": "1"},
            ]},
        });
        let message = said(why);
        assert!(message.ends_with("and it goes on by itself"), "{message}");
        let tell = |object: &Json| told(object, "RuntimeHealthy", &message, "2".to_owned());
        let status = tell(&object).unwrap();
        assert_eq!(status["conditions"][0]["message"], *message);
        assert_eq!(status["conditions"][0]["observedGeneration"], 3);
        assert_eq!(status["conditions"][1], object["status"]["conditions"][1], "others stay");
        assert_eq!(status["objectRefs"], json!([]), "and so does everything else");
        object["status"] = status;
        assert_eq!(tell(&object), None);
        let nothing = told(&json!({"metadata": {}}), "Healthy", "no", "2".to_owned()).unwrap();
        assert_eq!(nothing["conditions"][0]["message"], "no");
    }
}
