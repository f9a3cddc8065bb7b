//! What an image says beside its package: whether anything would run, and where.
//!
//! These checks need the image, not only the stream in it, so they speak when a built package is
//! looked at and are silent about directories.

use super::rules::{RUNTIME_MISSING, RUNTIME_PLATFORM, Rule};
use crate::diagnostic::Diagnostic;
use crate::locate::PACKAGE_FILE;
use api::meta::{Meta, PackageKind};
use oci::{ImageConfig, Index};
use yaml::Position;

/// Looks at the image a package came in. `root` is the index it was chosen from, if the place it
/// came from can hold one.
pub fn image(meta: &Meta, config: &ImageConfig, root: Root<'_>) -> Vec<Diagnostic> {
    let runs = matches!(meta.kind(), PackageKind::Provider | PackageKind::Function);
    // Old packages name the image to run instead of being one.
    if !runs || meta.image().is_some() {
        return Vec::new();
    }
    let kind = meta.kind().as_str();
    if !is_runnable(config) {
        let message = format!("nothing would run: this {kind} package has no runtime image");
        let hint = "build it with --embed-runtime-image-tarball";
        return vec![finding(&RUNTIME_MISSING, message, hint)];
    }
    let platforms = match root {
        Root::File => return Vec::new(),
        Root::Manifest => 1,
        Root::Index(index) => {
            index.manifests.iter().filter(|child| child.platform.is_some()).count()
        }
    };
    if platforms > 1 {
        return Vec::new();
    }
    let platform = format!("{}/{}", config.os, config.architecture);
    let message = format!("this {kind} package runs on {platform} only");
    let hint = "build a package file per platform and push them together: apron push REFERENCE -f amd64.xpkg,arm64.xpkg";
    vec![finding(&RUNTIME_PLATFORM, message, hint)]
}

/// What an image was found under.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a> {
    /// A file, which holds one image by its nature.
    File,
    /// A tag or digest of one image.
    Manifest,
    /// A tag or digest of several.
    Index(&'a Index),
}

fn is_runnable(config: &ImageConfig) -> bool {
    let says = |key: &str| {
        let words = config.config.extra.get(key).and_then(|value| value.as_array());
        words.is_some_and(|words| !words.is_empty())
    };
    says("Entrypoint") || says("Cmd")
}

fn finding(rule: &Rule, message: String, hint: &str) -> Diagnostic {
    Diagnostic::warning(rule.name, PACKAGE_FILE, Position::default(), message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci::{Descriptor, MediaType};
    use serde_json::json;

    fn check(kind: &str, config: serde_json::Value, root: Root<'_>, expected: &[&str]) {
        let meta = json!({"apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": "x"}});
        let meta = Meta::from_json(&meta).unwrap();
        let config = serde_json::from_value(config).unwrap();
        let rules: Vec<_> = image(&meta, &config, root).iter().map(|found| found.rule).collect();
        assert_eq!(rules, expected, "{kind}");
    }

    #[test]
    fn a_package_that_should_run_has_something_to_run_on_every_platform() {
        let empty = json!({"architecture": "", "os": ""});
        let runtime =
            json!({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/p"]}});
        let child = |platform: &str| {
            let mut child = Descriptor::of(MediaType::OCI_MANIFEST, platform.as_bytes());
            child.platform = platform.parse().ok();
            child
        };
        let one = Index::oci(vec![child("linux/amd64")]);
        let two = Index::oci(vec![child("linux/amd64"), child("linux/arm64")]);
        check("Configuration", empty.clone(), Root::File, &[]);
        check("Provider", empty.clone(), Root::File, &["runtime-missing"]);
        check("Function", empty, Root::Manifest, &["runtime-missing"]);
        check("Provider", runtime.clone(), Root::File, &[]);
        check("Provider", runtime.clone(), Root::Manifest, &["runtime-single-platform"]);
        check("Function", runtime.clone(), Root::Index(&one), &["runtime-single-platform"]);
        check("Provider", runtime, Root::Index(&two), &[]);
    }
}
