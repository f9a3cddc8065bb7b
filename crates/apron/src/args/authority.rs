//! What packages may bring and ask for, as far as it is said where a manager is started.

use api::meta::PermissionRequest;
use clap::Args;
use controller::authority::ALLOWED_ROLE;
use xpkg::reserved::{Reserved, reserved};

/// What is allowed without asking the cluster.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenArguments {
    /// Let packages ask for any permissions, also for those of an administrator
    #[arg(long)]
    pub(crate) allow_any_permissions: bool,
    /// Group of Kubernetes' community that packages may define kinds in, such as
    /// gateway.networking.k8s.io; repeated for several
    #[arg(long = "allow-group", value_name = "GROUP", value_parser = community_group)]
    pub(crate) allowed_groups: Vec<String>,
}

/// The same, and where more is allowed.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuthorityArguments {
    /// `ClusterRole` whose rules packages may ask for beyond their own kinds
    #[arg(long, value_name = "NAME", default_value = ALLOWED_ROLE)]
    provider_clusterrole: String,
    #[command(flatten)]
    open: OpenArguments,
}

impl OpenArguments {
    /// How a manager is set up that was told this.
    pub(crate) fn applied(self, settings: controller::Settings) -> controller::Settings {
        let anything = self.allow_any_permissions.then(PermissionRequest::everything);
        controller::Settings {
            allowed: anything.into_iter().collect(),
            allowed_groups: self.allowed_groups,
            ..settings
        }
    }

    /// The words that tell a manager this.
    pub(crate) fn words(&self) -> Vec<String> {
        let anything = self.allow_any_permissions.then(|| "--allow-any-permissions".to_owned());
        let groups = self.allowed_groups.iter().map(|group| format!("--allow-group={group}"));
        anything.into_iter().chain(groups).collect()
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
fn community_group(text: &str) -> Result<String, String> {
    match reserved(text) {
        Some(Reserved::Community) => Ok(text.to_ascii_lowercase()),
        Some(Reserved::Kubernetes) => {
            Err("it is Kubernetes' own, and closed to packages everywhere".to_owned())
        }
        Some(Reserved::Manager) => {
            Err("it is the package manager's own, and closed to packages everywhere".to_owned())
        }
        None => Err("it is open to packages without a word".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_only_groups_of_the_community_can_be_opened() {
        assert!(community_group("gateway.networking.k8s.io").is_ok());
        for closed in ["rbac.authorization.k8s.io", "apps", "pkg.crossplane.io", "example.org"] {
            assert!(community_group(closed).is_err(), "{closed}");
        }
    }
}
