//! What names mean: packages, and install objects that bring them.

use super::{InstallObject, install_kind_named, named_installs};
use crate::cluster::{Cluster, Resource, lower};
use crate::installed::{Installed, Inventory, Which};
use crate::state::State;
use ground::failure::{Failure, Outcome};
use serde_json::Value as Json;

/// What a name means: a package, or an install object that brings one.
#[derive(Clone, Copy, Debug)]
pub enum FoundObject<'a> {
    /// A package of today.
    Package(&'a Installed),
    /// An install object.
    Install(&'a InstallObject),
}

impl Inventory {
    /// The install object that says which version of a package is there.
    pub fn only_install_of(&self, one: &Installed) -> Outcome<&InstallObject> {
        let all = self.installs_of(one);
        if let [install] = all[..] {
            return Ok(install);
        }
        let ids: Vec<String> = all.iter().map(|one| one.id()).collect();
        Err(Failure::new(
            format!("{} was made for {}", one.id(), ids.join(" and ")),
            "its version is the same for all of them: change spec.package of each, with kubectl",
        ))
    }

    /// The install object that is meant, if one is: `NAME`, `NAMESPACE/NAME`, or either behind its kind.
    pub fn find_install(&self, which: &Which) -> Outcome<Option<&InstallObject>> {
        let (kind, rest) = split_kind(&which.name);
        let found = self.fitting_installs(which);
        match (found.as_slice(), kind.filter(|_| which.kind.is_none())) {
            ([one], _) => Ok(Some(*one)),
            ([], None) => Ok(None),
            ([], Some(_)) => {
                let ids: Vec<String> =
                    self.installs.iter().map(InstallObject::id).take(10).collect();
                let hint = match ids.as_slice() {
                    [] => "there are no install objects; `apron list` lists what is installed"
                        .to_owned(),
                    ids => format!("these are there: {}", ids.join(", ")),
                };
                Err(Failure::new(format!("{} is not installed", which.name), hint))
            }
            (several, _) => {
                let names: Vec<String> = several.iter().map(|one| one.id()).collect();
                let message = format!("there are several install objects called {rest}");
                Err(Failure::new(message, format!("say which: {}", names.join(" or "))))
            }
        }
    }

    /// The install objects that a name may mean.
    pub(crate) fn fitting_installs(&self, which: &Which) -> Vec<&InstallObject> {
        let (kind, rest) = split_kind(&which.name);
        let fits = |one: &&InstallObject| {
            kind.is_none_or(|kind| kind == one.kind) && (one.name() == rest || one.key() == rest)
        };
        self.installs.iter().filter(fits).filter(|_| which.kind.is_none()).collect()
    }

    /// What is meant: an install object, or a package. One name for an install object and the Provider
    /// that it became means the object, which is what a user made.
    pub fn find_object(&self, which: &Which) -> Outcome<FoundObject<'_>> {
        let Some(install) = self.find_install(which)? else {
            return self.find_package(which).map(FoundObject::Package);
        };
        match self.find_package(which) {
            Ok(one) if named_installs(one).all(|key| key != install.key()) => {
                let message = format!("there are several packages called {}", which.name);
                let hint = format!("say which: {} or {}", one.id(), install.id());
                Err(Failure::new(message, hint))
            }
            _ => Ok(FoundObject::Install(install)),
        }
    }
}

/// The kind before a name, if it is one of install objects, and the rest.
fn split_kind(name: &str) -> (Option<&'static str>, &str) {
    let parts = name.split_once('/');
    let parts = parts.and_then(|(word, rest)| Some((install_kind_named(word)?, rest)));
    parts.map_or((None, name), |(kind, rest)| (Some(kind), rest))
}

impl<'a> FoundObject<'a> {
    /// The package: itself, or what the install object became.
    pub fn package(self, inventory: &'a Inventory) -> Option<&'a Installed> {
        match self {
            Self::Package(one) => Some(one),
            Self::Install(one) => one.provider(inventory),
        }
    }

    /// What commands call it.
    pub fn id(self) -> String {
        match self {
            Self::Package(one) => one.id(),
            Self::Install(one) => one.id(),
        }
    }

    /// What names exactly this one.
    pub fn which(self) -> Which {
        match self {
            Self::Package(one) => one.which(),
            Self::Install(one) => one.which(),
        }
    }

    /// Its kind and its name, as people write them; install objects have a namespace.
    pub fn kind_and_name(self) -> (String, String) {
        match self {
            Self::Package(one) => (lower(one.kind), one.name().to_owned()),
            Self::Install(one) => (one.kind.to_lowercase(), one.key()),
        }
    }

    /// Its kind with the group, and its name, as kubectl prints them.
    pub fn full_name(self, cluster: &Cluster) -> String {
        let (kind, _) = self.kind_and_name();
        match self {
            Self::Package(one) => format!("{kind}.{}/{}", cluster.group, one.name()),
            Self::Install(one) => format!("{kind}.{}/{}", cluster.stacks_group(), one.name()),
        }
    }

    /// The object as the server has it.
    pub fn json(self) -> &'a Json {
        match self {
            Self::Package(one) => &one.json,
            Self::Install(one) => &one.json,
        }
    }

    /// Where the object is.
    pub fn address(self, cluster: &Cluster) -> (Resource, &'a str) {
        match self {
            Self::Package(one) => (cluster.packages(one.kind), one.name()),
            Self::Install(one) => (cluster.installs(one.kind, one.namespace()), one.name()),
        }
    }

    /// How it is.
    pub fn state(self, inventory: &Inventory) -> State {
        match self {
            Self::Package(one) => one.state(),
            Self::Install(one) => one.state(inventory),
        }
    }

    /// One line on how it comes along.
    pub fn progress(self, inventory: &Inventory) -> String {
        match self {
            Self::Package(one) => one.progress(inventory),
            Self::Install(one) => one.progress(inventory),
        }
    }

    /// Whether it stays as it is until a user acts: waiting longer does not help.
    pub fn needs_user_action(self, inventory: &Inventory) -> bool {
        match self {
            Self::Package(one) => one.needs_user_action(),
            Self::Install(one) => matches!(one.state(inventory), State::New | State::Paused),
        }
    }
}
