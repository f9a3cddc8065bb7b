//! API groups that no package may define kinds in, because they are somebody else's.
//!
//! A package that brings a definition gets rights on the kind, and RBAC knows groups and resources
//! but not versions: rights on a made-up version of `clusterroles.rbac.authorization.k8s.io` are
//! rights on the real ones. A definition in a group of the package manager replaces what the
//! manager itself rests on. So these groups are closed to packages, whatever the definition's
//! name, version or annotations.

/// The owner of a group that packages keep out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Kubernetes, which serves it itself.
    Kubernetes,
    /// A project of Kubernetes' community. An administrator may open the group by name.
    Community,
    /// The package manager, or Crossplane's core.
    Manager,
}

/// Domains that Kubernetes keeps for itself and its community.
const DOMAINS: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// The groups with a dot that Kubernetes serves, or once served, itself.
const BUILT_IN: [&str; 25] = [
    "admission.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apiserver.k8s.io",
    "audit.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "metrics.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "settings.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// The group of Crossplane's first package system. Packages of that time have groups under it.
const FIRST: &str = "packages.crossplane.io";

/// The groups of Crossplane's core; what lies under them is its own, too.
const CORE: [&str; 6] = [
    "apiextensions.crossplane.io",
    "ops.crossplane.io",
    "pkg.crossplane.io",
    "protection.crossplane.io",
    "rbac.crossplane.io",
    "secrets.crossplane.io",
];

/// How groups of package managers begin, whatever they end with: several can share a cluster.
const MANAGERS: [&str; 2] = ["pkg.", "meta.pkg."];

/// The owner of a group, if packages keep out of it.
pub fn reserved(group: &str) -> Option<Reserved> {
    let group = group.trim_end_matches('.').to_ascii_lowercase();
    let is_built_in = BUILT_IN.contains(&group.as_str());
    // Kubernetes takes a group without a dot for one of its own, also where it has none such.
    if is_built_in || !group.contains('.') || DOMAINS.contains(&group.as_str()) {
        return Some(Reserved::Kubernetes);
    }
    if DOMAINS.iter().any(|domain| is_under(&group, domain)) {
        return Some(Reserved::Community);
    }
    let is_core = group == FIRST || CORE.iter().any(|core| is_under(&group, core));
    let is_managers = MANAGERS.iter().any(|begin| group.starts_with(begin));
    (is_core || is_managers).then_some(Reserved::Manager)
}

/// Whether a group is a domain, or lies under it.
fn is_under(group: &str, domain: &str) -> bool {
    let rest = group.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_kubernetes_and_of_the_manager_are_closed() {
        for (group, expected) in [
            ("", Some(Reserved::Kubernetes)),
            ("apps", Some(Reserved::Kubernetes)),
            ("batch", Some(Reserved::Kubernetes)),
            ("k8s.io", Some(Reserved::Kubernetes)),
            ("kubernetes.io", Some(Reserved::Kubernetes)),
            ("rbac.authorization.k8s.io", Some(Reserved::Kubernetes)),
            ("RBAC.authorization.k8s.io.", Some(Reserved::Kubernetes)),
            ("admissionregistration.k8s.io", Some(Reserved::Kubernetes)),
            ("networking.k8s.io", Some(Reserved::Kubernetes)),
            ("gateway.networking.k8s.io", Some(Reserved::Community)),
            ("snapshot.storage.k8s.io", Some(Reserved::Community)),
            ("anything.kubernetes.io", Some(Reserved::Community)),
            ("pkg.crossplane.io", Some(Reserved::Manager)),
            ("meta.pkg.crossplane.io", Some(Reserved::Manager)),
            ("packages.crossplane.io", Some(Reserved::Manager)),
            ("pkg.ibm.crossplane.io", Some(Reserved::Manager)),
            ("meta.pkg.example.org", Some(Reserved::Manager)),
            ("apiextensions.crossplane.io", Some(Reserved::Manager)),
            ("ops.crossplane.io", Some(Reserved::Manager)),
            ("protection.crossplane.io", Some(Reserved::Manager)),
            ("rbac.crossplane.io", Some(Reserved::Manager)),
            ("secrets.crossplane.io", Some(Reserved::Manager)),
            ("wordpress.samples.packages.crossplane.io", None),
            ("nop.crossplane.io", None),
            ("kubernetes.crossplane.io", None),
            ("autoready.fn.crossplane.io", None),
            ("s3.aws.upbound.io", None),
            ("ops.example.org", None),
            ("notk8s.io", None),
            ("example-k8s.io", None),
        ] {
            assert_eq!(reserved(group), expected, "{group}");
        }
    }
}
