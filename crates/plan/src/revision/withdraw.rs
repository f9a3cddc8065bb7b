//! Webhooks that were allowed once and are no longer: unlike roles, nobody else takes them away.

use super::draft::Draft;
use super::objects::{look, target};
use super::{Halt, World};
use crate::step::{Action, Expect, Plan, Target, Wanted};

/// Kinds of objects by which the API server is made to call.
const WEBHOOKS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

/// Removes the webhooks that a revision controls, if there are any.
pub(super) fn webhooks(world: &World, draft: &Draft) -> Result<(), Halt> {
    let told = draft.status.object_refs.iter().flatten();
    let told = told.filter(|one| WEBHOOKS.contains(&one.kind.as_str()));
    let targets: Vec<Target> = told.map(target).collect();
    look(world, targets.iter().map(|one| Wanted { target: one.clone(), packaged: None }))?;
    let party = world.party();
    let mut plan = Plan::default();
    for target in targets {
        let Some(Some(seen)) = world.seen.get(&target) else { continue };
        let metadata = &seen.metadata;
        if party.controls(metadata) && metadata.deletion_timestamp.is_none() {
            plan.report.push(format!("{} {} goes: nobody allows it", target.kind, target.name));
            let expect = Expect::as_seen(metadata);
            plan.actions.push(Action::Delete { target, expect });
        }
    }
    if plan.actions.is_empty() { Ok(()) } else { Err(Halt::First(plan)) }
}
