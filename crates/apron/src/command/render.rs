//! `render`: what is installed, with all that it needs, as objects for git.

use crate::cluster::Cluster;
use crate::command::{deploy, plan};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::settings::Settings;
use api::pkg::Package;
use controller::{Pinning, render};
use inventory::{Inventory, Which};
use serde_json::json;

/// What is to be in git.
pub(crate) struct Request {
    /// Packages that are to be there, too.
    pub(crate) references: Vec<String>,
    pub(crate) pinning: Pinning,
    pub(crate) is_json: bool,
    /// How the package manager is asked.
    pub(crate) plan: plan::Request,
}

/// Prints the objects.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let cluster = Cluster::connect(&request.plan.cluster, settings).await?;
    let inventory = Inventory::gather(&cluster).await?;
    let mut wished = Vec::new();
    for reference in &request.references {
        let asked = plan::Request { first: reference.clone(), ..request.plan.clone() };
        let wish = plan::wish(&asked, &cluster, &inventory, settings).await?;
        wished.push(wished_package(&inventory, &cluster.group, &wish, reference)?);
    }
    let stage = plan::prepare(&request.plan, settings, &cluster).await?;
    let names: Vec<String> = wished.iter().map(|one| one.metadata.name.clone()).collect();
    let rendered = render(&stage.hands, wished, request.pinning).await;
    let rendered = rendered.map_err(|error| plan::failed(&error))?;
    let told = rendered.refused.iter().map(|(name, why)| format!("{name}: {why}"));
    if rendered.refused.iter().any(|(name, _)| names.contains(name)) {
        let hint = "choose another version; `apron why` says who needs what";
        let failure = Failure::new("these packages do not go together", hint);
        return Err(Failure { causes: told.collect(), ..failure });
    }
    told.for_each(output::warn);
    deploy::print_objects(request.is_json, &rendered.objects)
}

/// A package as it would be asked for.
fn wished_package(
    inventory: &Inventory,
    group: &str,
    wish: &plan::Wish,
    reference: &str,
) -> Outcome<Package> {
    let name = wish.name();
    let Some(kind) = wish.kind() else {
        let hint = "commit its install object: `apron help first-format` shows one";
        return Err(Failure::new(format!("{reference} is a package of the first format"), hint));
    };
    if let Ok(one) = inventory.find(&Which { kind: Some(kind), name: name.to_owned() }) {
        let mut package = one.package.clone();
        reference.clone_into(&mut package.spec.package);
        return Ok(package);
    }
    let package = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind.as_str(),
        "metadata": {"name": name}, "spec": {"package": reference},
    });
    serde_json::from_value(package)
        .map_err(|error| Failure::new("cannot ask for it", "please report this").because(&error))
}
