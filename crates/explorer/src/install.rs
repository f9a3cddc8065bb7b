//! What to type to install a package.

use crate::words::last_part;
use catalog::Package;
use catalog::install::propose_install;
use serde_json::json;

/// The longest name of an object.
const NAME_SIZE_MAX: usize = 63;

/// What is typed, and for which tool.
pub(crate) struct InstallWays {
    /// The reference that never moves.
    pub(crate) pinned: String,
    /// With apron, which makes objects of packages of today only.
    pub(crate) apron: Option<String>,
    /// With kubectl.
    pub(crate) kubectl: String,
    /// As a document.
    pub(crate) document: String,
}

impl InstallWays {
    /// The ways to install a version of a package that clients find at `place`.
    pub(crate) fn of(package: &Package, place: &str, tag: Option<&str>, digest: &str) -> Self {
        let pinned = format!("{place}@{digest}");
        let reference = tag.map_or_else(|| pinned.clone(), |tag| format!("{place}:{tag}"));
        let kind = &package.kind;
        let (object, apron) = match package.find_install_kind() {
            Some(install) => (propose_install(install, &reference), None),
            None => (
                json!({
                    "apiVersion": "pkg.crossplane.io/v1",
                    "kind": kind,
                    "metadata": {"name": object_name(place)},
                    "spec": {"package": reference},
                }),
                Some(format!("apron install {} {reference}", kind.to_lowercase())),
            ),
        };
        let document = yaml::write::to_string(&object);
        Self {
            apron,
            kubectl: format!("kubectl apply -f - <<'EOF'\n{document}EOF"),
            document,
            pinned,
        }
    }
}

/// A name for the object, of letters that an API server takes.
fn object_name(place: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = last_part(place).chars().map(plain).take(NAME_SIZE_MAX).collect();
    name.trim_matches('-').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_names_the_version() {
        let package = Package { kind: "Provider".to_owned(), ..Package::default() };
        let ways =
            InstallWays::of(&package, "registry.example.org/team/p_x", Some("v1.0.0"), "sha256:ab");
        assert_eq!(
            ways.apron.as_deref(),
            Some("apron install provider registry.example.org/team/p_x:v1.0.0")
        );
        assert_eq!(ways.pinned, "registry.example.org/team/p_x@sha256:ab");
        assert_eq!(
            ways.document,
            "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: p-x\nspec:\n  \
             package: registry.example.org/team/p_x:v1.0.0\n"
        );
        assert!(ways.kubectl.ends_with(":v1.0.0\nEOF"), "{}", ways.kubectl);
    }
}
