//! What installs a package: an object of its own type, or, for one of the first format, an install object
//! that says how far its rights reach.

use crate::answer::Definer;
use crate::record::Package;
use api::stacks::install_kind;
use oci::{Reference, Rules};
use serde_json::{Value as Json, json};
use stack::STACK_API_VERSION;

/// The namespace of an install object that is proposed.
const INSTALL_NAMESPACE: &str = "default";

/// The kind of the install object, by the dialect of a package and how far its rights reach; nothing for
/// a package of today.
fn find_install_kind(dialect: &str, scope: Option<&str>) -> Option<&'static str> {
    (dialect == STACK_API_VERSION).then(|| install_kind(scope))
}

/// The install object of a package of the first format.
pub fn propose_install(kind: &str, reference: &str) -> Json {
    let image = Reference::parse(reference, &Rules::weak());
    let name = image.map(|image| xpkg::label::object_name(&image)).unwrap_or_default();
    json!({
        "apiVersion": STACK_API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": INSTALL_NAMESPACE},
        "spec": {"package": reference},
    })
}

impl Package {
    /// The kind of install object that the package needs; nothing for one of today.
    pub fn find_install_kind(&self) -> Option<&'static str> {
        find_install_kind(&self.dialect, self.permission_scope.as_deref())
    }
}

impl Definer {
    /// The kind of install object that the package needs; nothing for one of today.
    pub fn find_install_kind(&self) -> Option<&'static str> {
        find_install_kind(&self.dialect, self.permission_scope.as_deref())
    }

    /// The kind of the object that installs the package.
    pub fn installing_kind(&self) -> &str {
        self.find_install_kind().unwrap_or(&self.kind)
    }

    /// What to type to install the package by a reference.
    pub fn advise_install(&self, reference: &str) -> String {
        match self.find_install_kind() {
            None => {
                let kind = self.kind.to_lowercase();
                format!("install it with `apron install {kind} {reference}`")
            }
            Some(kind) => {
                let object = propose_install(kind, reference);
                format!("install it with `echo '{object}' | kubectl apply -f -`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::stacks::{CLUSTER_INSTALL, NAMESPACE_INSTALL};

    fn definer(dialect: &str, scope: &str) -> Definer {
        serde_json::from_value(json!({
            "repository": "team/p", "type": "Provider", "origin": "crd", "installs": true,
            "versions": [], "dialect": dialect, "permissionScope": scope,
        }))
        .unwrap()
    }

    #[test]
    fn packages_of_the_first_format_are_installed_by_objects_of_their_scope() {
        let today = definer("meta.pkg.crossplane.io/v1", "");
        assert_eq!(
            today.advise_install("r/p:v1"),
            "install it with `apron install provider r/p:v1`"
        );
        assert_eq!(today.installing_kind(), "Provider");
        for (scope, kind) in
            [("", CLUSTER_INSTALL), ("Cluster", CLUSTER_INSTALL), ("Namespaced", NAMESPACE_INSTALL)]
        {
            assert_eq!(definer(STACK_API_VERSION, scope).installing_kind(), kind);
        }
        let reference = format!("r.io:5000/team/my-stack:v1@sha256:{}", "ab".repeat(32));
        assert_eq!(
            definer(STACK_API_VERSION, "Namespaced").advise_install(&reference),
            format!(
                "install it with `echo '{{\"apiVersion\":\"packages.crossplane.io/v1alpha1\",\"kind\":\
                 \"PackageInstall\",\"metadata\":{{\"name\":\"team-my-stack\",\"namespace\":\"default\"}},\"spec\":\
                 {{\"package\":\"{reference}\"}}}}' | kubectl apply -f -`"
            )
        );
    }
}
