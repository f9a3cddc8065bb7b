//! Pages: functions from answers to HTML.

pub(crate) mod api;
pub(crate) mod changes;
pub(crate) mod described;
pub(crate) mod filter;
pub(crate) mod group;
pub(crate) mod home;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod package;
mod parts;
pub(crate) mod plane;
pub(crate) mod problem;
pub(crate) mod search;

/// What every page knows of where it is served.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a page asks on its own")]
pub(crate) struct PageSite {
    /// The host by which clients know the registry.
    pub(crate) host: String,
    /// Whether repositories with a host in their names are installed under that name.
    pub(crate) stands_in: bool,
    /// Whether the asker said a name.
    pub(crate) is_signed_in: bool,
    /// Whether a name would show more.
    pub(crate) knows_users: bool,
    /// Whether there is a catalog of packages.
    pub(crate) has_catalog: bool,
    /// Whether there is a control plane.
    pub(crate) has_plane: bool,
}

impl PageSite {
    /// What clients call a repository.
    pub(crate) fn place_of(&self, repository: &str) -> String {
        let first = repository.split('/').next().unwrap_or_default();
        if self.stands_in && first.contains('.') {
            return repository.to_owned();
        }
        format!("{}/{repository}", self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_installs_packages_under_their_names_in_the_world() {
        let host = "127.0.0.1:5000".to_owned();
        let site = PageSite { host, stands_in: true, ..PageSite::default() };
        assert_eq!(site.place_of("registry.example.org/team/p"), "registry.example.org/team/p");
        assert_eq!(site.place_of("team/p"), "127.0.0.1:5000/team/p");
        let site = PageSite { stands_in: false, ..site };
        assert_eq!(site.place_of("docker.io/p"), "127.0.0.1:5000/docker.io/p");
    }
}
