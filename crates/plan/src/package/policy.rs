//! Policies that there are not.
//!
//! The definitions of packages refuse them. Those that were stored before are read as the careful one,
//! which is told.

use super::pull::Policy;
use api::pkg::PackageSpec;

/// What is made of policies that nobody knows, and what to do about it.
pub(super) fn unknown(spec: &PackageSpec) -> Option<String> {
    let activation = spec.revision_activation_policy.as_deref();
    let activation = activation.filter(|policy| !matches!(*policy, "" | "Automatic" | "Manual"));
    let activation = activation.map(|policy| {
        format!(
            "revisionActivationPolicy is {policy:?}, so new revisions wait to be activated as under \
             Manual; hint: set it to Automatic or Manual"
        )
    });
    let pull = spec.package_pull_policy.as_deref();
    let pull = pull.filter(|policy| !policy.is_empty() && Policy::known(policy).is_none());
    let pull = pull.map(|policy| {
        format!(
            "packagePullPolicy is {policy:?}, so the registry is asked as under IfNotPresent; hint: \
             set it to IfNotPresent, Always or Never"
        )
    });
    let all: Vec<String> = activation.into_iter().chain(pull).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
