//! Events: what happened, for people.
//!
//! The name of an event is made from what it says, so the same news about the same object is one
//! event that is counted up. News that cannot be told is not worth failing for.

use crate::Hands;
use crate::cluster::{Error, MANAGER, Mode};
use oci::Digest;
use plan::step::Target;
use serde_json::{Value as Json, json};

/// The longest message that the API takes.
const NOTE_SIZE_MAX: usize = 1024;
/// The longest begin of a name, so that the digits that follow have room.
const NAME_SIZE_MAX: usize = 200;

/// Tells people what happened to an object.
pub(super) async fn tell(
    hands: &Hands,
    target: &Target,
    is_warning: bool,
    reason: &str,
    message: &str,
) {
    if let Err(error) = send(hands, target, is_warning, reason, message).await {
        hands.say(crate::Entry::trouble("event", &target.name, &error.to_string()));
    }
}

async fn send(
    hands: &Hands,
    target: &Target,
    is_warning: bool,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    let Some(live) = hands.cluster.get_metadata(target).await? else { return Ok(()) };
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let note = shortened(message, NOTE_SIZE_MAX);
    let said = Digest::of(format!("{uid}\n{reason}\n{is_warning}\n{note}").as_bytes());
    // Events of what has no namespace are where kubectl looks for them.
    let namespace = target.namespace.as_deref().unwrap_or("default");
    // What is cut off may leave an end that a name must not have before the dot.
    let begin = shortened(&target.name, NAME_SIZE_MAX).trim_end_matches(['-', '.']);
    let name = format!("{begin}.{}", &said.hex()[..16]);
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": hands.now_precisely(),
        "reportingController": MANAGER, "reportingInstance": hands.settings.identity,
        "action": "Reconcile", "reason": reason, "note": note,
        "type": if is_warning { "Warning" } else { "Normal" },
        "regarding": {
            "apiVersion": target.api_version, "kind": target.kind, "name": target.name,
            "namespace": target.namespace, "uid": uid,
        },
    });
    let at = Target {
        api_version: "events.k8s.io/v1".to_owned(),
        kind: "Event".to_owned(),
        namespace: Some(namespace.to_owned()),
        name,
    };
    match hands.cluster.create(&at, &event, Mode::Real).await {
        Err(Error::Stale(_)) => count_up(hands, &at).await,
        other => other.map(|_| ()),
    }
}

async fn count_up(hands: &Hands, event: &Target) -> Result<(), Error> {
    let Some(live) = hands.cluster.get(event).await? else { return Ok(()) };
    let count = live["series"]["count"].as_i64().unwrap_or(1).saturating_add(1);
    let patch = json!({
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
        "series": {"count": count, "lastObservedTime": hands.now_precisely()},
    });
    hands.cluster.merge(event, &patch).await.map(|_: Json| ())
}

fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=text.len().min(most)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}
