//! Whether a package is what its install object asks for.

use super::{InstallWorld, pods};
use api::stacks::{StackRecord, TEMPLATE_RECORD, install_kind};
use oci::Reference;
use serde_json::Value as Json;
use xpkg::version::Version;

/// Refuses a package that is of today, has another scope, or says another version than its tag.
pub(super) fn check_contents(
    world: &InstallWorld,
    image: &Reference,
    contents: &Json,
) -> Result<(), String> {
    if contents.is_null() {
        return Err(format!(
            "{image} is a package of today; install it with `apron install`, and delete this object"
        ));
    }
    if let Err(error) = serde_json::from_value::<StackRecord>(contents.clone()) {
        return Err(format!("{image} cannot be read: {error}; push the package again"));
    }
    let spec = &contents["spec"];
    check_scope(&world.install.kind, spec["permissionScope"].as_str())?;
    check_version(image, spec["version"].as_str())?;
    pods::check_pods(&spec["controller"]["deployment"]["spec"])?;
    check_templates(contents)
}

fn check_scope(kind: &str, scope: Option<&str>) -> Result<(), String> {
    let wanted = install_kind(scope);
    // A package that does not say which rights it needs gets those that it is installed with.
    let Some(scope @ ("Cluster" | "Namespaced")) = scope else { return Ok(()) };
    if kind == wanted {
        return Ok(());
    }
    Err(format!(
        "the package has permissionScope {scope}, which a {kind} does not give; install it with a \
         {wanted}"
    ))
}

/// A leading `v` counts on neither side; tags that are no version cannot be compared.
fn check_version(image: &Reference, version: Option<&str>) -> Result<(), String> {
    let (Some(version), Some(tag)) = (version, image.identifier().as_tag()) else {
        return Ok(());
    };
    let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
    if bare(version) == bare(tag) || Version::parse(tag).is_err() {
        return Ok(());
    }
    Err(format!(
        "app.yaml says version {version}, and the tag says {tag}; ask for a tag whose package says \
         the same, or push this one to the tag v{}",
        bare(version)
    ))
}

/// Templates need something that fills them in.
fn check_templates(contents: &Json) -> Result<(), String> {
    let image = contents["spec"]["behavior"]["engine"]["controllerImage"].as_str();
    if contents["kind"] != TEMPLATE_RECORD || image.is_some_and(|image| !image.is_empty()) {
        return Ok(());
    }
    Err("behavior.yaml names no engine.controllerImage, so nothing fills in its templates; name one \
         there, and push the package again"
        .to_owned())
}
