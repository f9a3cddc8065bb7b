//! Which image configuration counts for an image.
//!
//! Each purpose is decided for itself: of all configurations that say something about it and match
//! the image, the one with the longest prefix counts. Of two that are as long the one whose name
//! comes first does, so that the answer is the same every time.

use api::pkg::{ImageConfig, ImageConfigRef, ImageConfigSpec};

/// The reason recorded for a runtime configuration.
pub const CONFIGURE_RUNTIME: &str = "ConfigureRuntime";
/// The reason recorded for a pull secret.
pub const SET_PULL_SECRET: &str = "SetImagePullSecret";

/// The configuration for an image and a purpose, with what the purpose asks for and the prefix
/// that matched.
pub fn select<'a, T>(
    configs: &'a [ImageConfig],
    image: &str,
    purpose: impl Fn(&'a ImageConfigSpec) -> Option<T>,
) -> Option<(&'a ImageConfig, T, &'a str)> {
    let mut best: Option<(&ImageConfig, T, &str)> = None;
    for config in configs {
        let Some(spec) = &config.spec else { continue };
        let prefixes = spec.match_images.iter().map(|one| one.prefix.as_str());
        let matching = prefixes.filter(|prefix| image.starts_with(prefix));
        let Some(prefix) = matching.max_by_key(|prefix| prefix.len()) else { continue };
        let Some(found) = purpose(spec) else { continue };
        let is_better = best.as_ref().is_none_or(|(best, _, length)| {
            (prefix.len(), &best.metadata.name) > (length.len(), &config.metadata.name)
        });
        if is_better {
            best = Some((config, found, prefix));
        }
    }
    best
}

/// Records which configuration was applied for a reason, or that none was.
pub fn record(refs: &mut Option<Vec<ImageConfigRef>>, reason: &str, name: Option<&str>) {
    let mut list = refs.take().unwrap_or_default();
    let place = list.iter().position(|one| one.reason == reason);
    match (place, name) {
        (Some(at), Some(name)) => name.clone_into(&mut list[at].name),
        (Some(at), None) => drop(list.remove(at)),
        (None, Some(name)) => {
            let (name, reason) = (name.to_owned(), reason.to_owned());
            list.push(ImageConfigRef { name, reason, ..ImageConfigRef::default() });
        }
        (None, None) => {}
    }
    *refs = (!list.is_empty()).then_some(list);
}

#[cfg(test)]
mod tests {
    use super::{record, select};
    use api::pkg::ImageConfig;
    use serde_json::json;

    fn config(name: &str, prefixes: &[&str], secret: bool) -> ImageConfig {
        let matches: Vec<_> = prefixes.iter().map(|prefix| json!({"prefix": prefix})).collect();
        let mut config = json!({"metadata": {"name": name}, "spec": {"matchImages": matches}});
        if secret {
            let secret = json!({"authentication": {"pullSecretRef": {"name": "s"}}});
            config["spec"]["registry"] = secret;
        }
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn the_longest_prefix_that_says_something_counts() {
        let configs = [
            config("b", &["r.org/a", "r.org/"], true),
            config("a", &["r.org/a"], true),
            config("c", &["r.org/a/b"], false),
            config("d", &["x.org/"], true),
        ];
        let found = |image: &str| {
            let found = select(&configs, image, |spec| spec.registry.as_ref());
            found.map(|(config, _, prefix)| format!("{} by {prefix}", config.metadata.name))
        };
        assert_eq!(found("r.org/a/b:v1").as_deref(), Some("a by r.org/a"));
        assert_eq!(found("r.org/b:v1").as_deref(), Some("b by r.org/"));
        assert_eq!(found("y.org/b:v1"), None);
    }

    #[test]
    fn there_is_one_record_for_each_reason() {
        let mut refs = None;
        for (reason, name) in [("A", Some("x")), ("B", Some("y")), ("A", Some("z")), ("B", None)] {
            record(&mut refs, reason, name);
        }
        let refs = refs.unwrap();
        assert_eq!((refs.len(), refs[0].name.as_str()), (1, "z"));
    }
}
