//! The definitions of the kinds that the manager looks after, and what it needs besides.

use crate::cluster::{Error, Force, MANAGER, Mode};
use crate::{Entry, Hands};
use plan::same::same;
use plan::step::Target;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// How often to look whether a definition is served yet.
const LOOK: Duration = Duration::from_millis(100);
/// After so many looks it is told what is waited for.
const PATIENCE: usize = 100;

/// Installs every definition, or brings it up to date, and waits until all are served. Kinds of
/// other groups belong to Crossplane's core where that is: they are made only if they are missing.
pub(crate) async fn install(hands: &Hands) -> Result<(), Error> {
    let suffix = &hands.settings.group_suffix;
    let definitions = api::stacks::define_kinds(suffix, hands.settings.manages_stacks);
    let definitions = definitions.map_err(|error| Error::Refused(error.to_string()))?;
    let own = [hands.settings.group(), hands.settings.stacks_group()];
    for definition in &definitions {
        let target = definition_of(definition);
        let live = hands.cluster.get(&target).await?;
        let is_others = !own.iter().any(|group| definition["spec"]["group"] == **group);
        if live.is_some_and(|live| is_others || is_current(definition, &live)) {
            continue;
        }
        hands.cluster.apply(&target, definition, Force::Overrule, Mode::Real).await?;
    }
    for definition in &definitions {
        let target = definition_of(definition);
        let mut looks = 0;
        while !hands.cluster.get(&target).await?.is_some_and(|live| is_served(&live)) {
            looks += 1;
            if looks == PATIENCE {
                let name = &target.name;
                let why = format!(
                    "the API server does not serve it yet; its conditions say why: kubectl get \
                     customresourcedefinition {name} -o yaml"
                );
                hands.say(Entry::trouble("definitions", name, &why));
            }
            tokio::time::sleep(LOOK).await;
        }
        let [group, stacks] = &own;
        hands.cluster.forget(&format!("{group}/v1"));
        hands.cluster.forget(&format!("{group}/v1beta1"));
        hands.cluster.forget(&format!("{stacks}/{}", api::stacks::STACKS_VERSION));
    }
    Ok(())
}

/// Whether a definition need not be written. Schemas are compared to the letter: API servers
/// replace them as a whole and fill nothing in, so nothing that is gone from ours may be left.
fn is_current(definition: &Json, live: &Json) -> bool {
    let schemas = |of: &Json| -> Vec<Json> {
        let versions = of["spec"]["versions"].as_array().into_iter().flatten();
        versions.map(|version| version["schema"].clone()).collect()
    };
    same(definition, live, MANAGER) && schemas(definition) == schemas(live)
}

/// Makes the Lock, if it is not there: whoever writes to it can then name the state it had. Where
/// its kind is not served, the first package makes it; but a definition that the manager has just
/// installed is waited for, since API servers tell of new kinds a little later than they have them.
pub(crate) async fn lock(hands: &Hands) -> Result<(), Error> {
    let target = crate::lock::target(hands);
    if !hands.cluster.serves(&target.api_version, &target.kind).await? {
        let is_ours = hands.settings.installs_definitions;
        let missing = Error::Missing(format!("kind Lock of {}", target.api_version));
        return if is_ours { Err(missing) } else { Ok(()) };
    }
    if hands.cluster.get(&target).await?.is_some() {
        return Ok(());
    }
    let object = json!({
        "apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": target.name},
    });
    hands.cluster.create(&target, &object, Mode::Real).await.map(|_| ())
}

/// Makes the namespace that packages run in, if it is not there.
pub(crate) async fn namespace(hands: &Hands) -> Result<(), Error> {
    let name = &hands.settings.namespace;
    let target = Target {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: name.clone(),
    };
    if hands.cluster.get(&target).await?.is_some() {
        return Ok(());
    }
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    hands.cluster.create(&target, &object, Mode::Real).await.map(|_| ())
}

fn definition_of(definition: &Json) -> Target {
    Target {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: definition["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    }
}

fn is_served(live: &Json) -> bool {
    let conditions = live["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
}
