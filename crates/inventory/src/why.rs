//! Why a package is there: who needs it and in which versions, who asked for it, what is in its way.

use crate::installed::{self, Installed, Inventory, Needed, Which};
use crate::installs::{FoundObject, InstallObject};
use controller::is_automatic;
use ground::failure::Outcome;
use serde::Serialize;

/// What there is to say of a package, an install object, or something that packages need.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What it is called in the cluster, if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The version that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Whether the package manager brought it for others, and no user by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_automatic: Option<bool>,
    /// Who needs it.
    pub needed_by: Vec<NeedReason>,
    /// The install objects of the first package system that it was made for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_for: Vec<String>,
    /// What an install object became.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub became: Option<String>,
    /// What is in the way.
    pub messages: Vec<String>,
}

/// A package that needs it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NeedReason {
    /// What that is called.
    pub id: String,
    /// The version of it that is there.
    pub version: String,
    /// What it accepts.
    pub constraints: String,
}

impl Inventory {
    /// Says why something is there, or is waited for.
    pub fn explain(&self, name: &str) -> Outcome<Explanation> {
        let missing = match self.find_object(&Which::parse(name)) {
            Ok(FoundObject::Package(one)) => return Ok(self.explain_package(one)),
            Ok(FoundObject::Install(one)) => return Ok(self.explain_install(one)),
            Err(missing) => missing,
        };
        if let Some(one) = self.find_by_repository(name) {
            return Ok(self.explain_package(one));
        }
        let needed_by =
            self.needs_like(|it| it.installed.is_none() && is_called(&it.dependency.package, name));
        if needed_by.is_empty() {
            return Err(missing);
        }
        let messages = self.unresolved().map(str::to_owned).into_iter().collect();
        Ok(Explanation { needed_by, messages, ..Explanation::default() })
    }

    fn explain_package(&self, one: &Installed) -> Explanation {
        let unresolved = self.unresolved().map(str::to_owned);
        Explanation {
            id: Some(one.id()),
            version: Some(one.version()),
            state: Some(one.state().word()),
            is_automatic: Some(is_automatic(&one.package)),
            needed_by: self.needs_like(|it| it.installed.is_some_and(|it| it.id() == one.id())),
            made_for: self.installs_of(one).into_iter().map(InstallObject::id).collect(),
            became: None,
            messages: one.complaints().into_iter().chain(unresolved).collect(),
        }
    }

    /// An install object is needed by nothing; packages may need what it became.
    fn explain_install(&self, one: &InstallObject) -> Explanation {
        let provider = one.provider(self);
        let beneath = provider.map(|it| self.explain_package(it)).unwrap_or_default();
        Explanation {
            id: Some(one.id()),
            version: Some(one.version(self)),
            state: Some(one.state(self).word()),
            is_automatic: Some(false),
            needed_by: beneath.needed_by,
            made_for: Vec::new(),
            became: beneath.id,
            messages: one.complaints(self).into_iter().chain(beneath.messages).collect(),
        }
    }

    /// What was installed from a repository, whatever it is called in the cluster.
    fn find_by_repository(&self, name: &str) -> Option<&Installed> {
        let reference = installed::reference(name).filter(|_| name.contains('/'))?;
        self.of_repository(reference.repository()).into_iter().next()
    }

    /// Every package that needs something like that.
    fn needs_like(&self, like: impl Fn(&Needed<'_>) -> bool) -> Vec<NeedReason> {
        let mut found = Vec::new();
        for one in &self.packages {
            for needed in self.needs(one).iter().filter(|it| like(it)) {
                let constraints = needed.wants();
                found.push(NeedReason { id: one.id(), version: one.version(), constraints });
            }
        }
        found
    }
}

/// Whether a repository is called so: in full, or by the last part of its path.
fn is_called(repository: &str, name: &str) -> bool {
    repository == name || repository.rsplit('/').next() == Some(name)
}
