//! What packages may bring, ask for and take over, as far as it is said where a manager is started.

use api::meta::PermissionRequest;
use clap::{Args, ValueEnum};
use controller::Unsupported;
use controller::authority::ALLOWED_ROLE;
use xpkg::reserved::{Reserved, reserved};

/// What is allowed without asking the cluster.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenArguments {
    /// Let packages ask for any permissions, also for those of an administrator
    #[arg(long)]
    pub(crate) allow_any_permissions: bool,
    /// Group of Kubernetes' community, or of another API server, that packages may define kinds in,
    /// such as gateway.networking.k8s.io; repeated for several
    #[arg(long = "allow-group", value_name = "GROUP", value_parser = openable_group)]
    pub(crate) allowed_groups: Vec<String>,
    /// Let packages take over what is there already, as Crossplane does: what no package brought is
    /// overwritten, and goes with the package
    #[arg(long)]
    pub(crate) adopt_existing: bool,
    /// What becomes of a package with objects that its type may not bring
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) unsupported_objects: UnsupportedObjects,
}

/// What becomes of a package with objects that its type may not bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnsupportedObjects {
    /// It is not installed, and says which they are
    #[default]
    Refuse,
    /// They are left out and the others installed, as Crossplane does
    Skip,
}

/// The same, and where more is allowed.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorityArguments {
    /// `ClusterRole` whose rules packages may ask for beyond their own kinds
    #[arg(long, value_name = "NAME", default_value = ALLOWED_ROLE)]
    provider_clusterrole: String,
    #[command(flatten)]
    open: OpenArguments,
}

impl Default for AuthorityArguments {
    fn default() -> Self {
        let (provider_clusterrole, open) = (ALLOWED_ROLE.to_owned(), OpenArguments::default());
        Self { provider_clusterrole, open }
    }
}

impl OpenArguments {
    /// How a manager is set up that was told this.
    pub(crate) fn applied(self, settings: controller::Settings) -> controller::Settings {
        let anything = self.allow_any_permissions.then(PermissionRequest::everything);
        controller::Settings {
            allowed: anything.into_iter().collect(),
            allowed_groups: self.allowed_groups,
            adopts_existing: self.adopt_existing,
            unsupported: match self.unsupported_objects {
                UnsupportedObjects::Refuse => Unsupported::Refuse,
                UnsupportedObjects::Skip => Unsupported::Skip,
            },
            ..settings
        }
    }

    /// The words that tell a manager this.
    pub(crate) fn words(&self) -> Vec<String> {
        let anything = self.allow_any_permissions.then(|| "--allow-any-permissions".to_owned());
        let groups = self.allowed_groups.iter().map(|group| format!("--allow-group={group}"));
        let existing = self.adopt_existing.then(|| "--adopt-existing".to_owned());
        let is_skipping = self.unsupported_objects == UnsupportedObjects::Skip;
        let skipping = is_skipping.then(|| "--unsupported-objects=skip".to_owned());
        anything.into_iter().chain(groups).chain(existing).chain(skipping).collect()
    }
}

impl AuthorityArguments {
    /// How a manager is set up that was told this.
    pub(crate) fn applied(self, settings: controller::Settings) -> controller::Settings {
        let allowed_role = Some(self.provider_clusterrole);
        controller::Settings { allowed_role, ..self.open.applied(settings) }
    }
}

/// A group that an administrator can open to packages.
fn openable_group(text: &str) -> Result<String, String> {
    match reserved(text) {
        Some(Reserved::Community) | None => Ok(text.to_ascii_lowercase()),
        Some(Reserved::Kubernetes) => {
            Err("it is Kubernetes' own, and closed to packages everywhere".to_owned())
        }
        Some(Reserved::Manager) => {
            Err("it is the package manager's own, and closed to packages everywhere".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_groups_of_kubernetes_and_of_the_manager_cannot_be_opened() {
        for open in ["gateway.networking.k8s.io", "authorization.openshift.io"] {
            assert!(openable_group(open).is_ok(), "{open}");
        }
        for closed in ["rbac.authorization.k8s.io", "apps", "pkg.crossplane.io"] {
            assert!(openable_group(closed).is_err(), "{closed}");
        }
    }
}
