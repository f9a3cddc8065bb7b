//! What packages may bring and ask for: the one place that decides it.
//!
//! ```text
//!   Contents ─► asked ─┐
//!                      ├─► Judgement: forbidden (never), refused (not until it is allowed)
//!   Allowed ───────────┘
//! ```
//!
//! A package gets rights on the kinds it brings, and on Secrets, `ConfigMaps`, events and leases.
//! Everything beyond is asked for, and nobody has it until an administrator allows it ([`Allowed`]):
//!
//! - **Permissions** of its controller, as its metadata lists them.
//! - **Interceptions**: webhooks about kinds that the package does not bring, and conversions of
//!   its composite resources by a Service that is not its own. RBAC has no word for these, so the
//!   allow list uses a verb that no API server knows: [`INTERCEPT`].
//!
//! Nobody can allow what is **forbidden**: definitions in groups of Kubernetes or of the package
//! manager ([`xpkg::reserved`]) or under the name of another kind, plurals and groups that are no
//! names of any (`*` is every kind, where rights are written), and webhooks at an address
//! instead of a Service. A group of
//! Kubernetes' community, or one that another API server serves through the one of the cluster, is
//! forbidden unless it is named ([`Allowed::groups`]).
//!
//! The linter tells authors what of this it can know; the manager, `apron plan` and `apron install`
//! ask here. [`rules`] has the arithmetic of rules, `words` the sentences.

pub mod rules;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use words::prohibition;
pub use words::{in_lines, refusal};

use crate::revision::{Contents, Document, Unsupported};
use api::kind_reference::{is_group, is_label};
use api::meta::{Meta, PermissionRequest};
use oci::Digest;
use std::collections::BTreeSet;
use xpkg::lint::{Calls, Kinds, ObjectKind};
use xpkg::open::Opened;
use xpkg::reserved::{Reserved, reserved};

/// The `ClusterRole` of allowed permissions, by upstream's name.
pub const ALLOWED_ROLE: &str = "crossplane:allowed-provider-permissions";
/// The label of `ClusterRoles` that it gathers, by upstream's name.
pub const ALLOWED_LABEL: &str = "rbac.crossplane.io/aggregate-to-allowed-provider-permissions";
/// The verb by which webhooks about kinds of others are allowed.
pub const INTERCEPT: &str = "intercept";

/// What an administrator allows packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Rules that packages may ask for.
    pub permissions: Vec<PermissionRequest>,
    /// Groups of Kubernetes' community, or of other API servers, that packages may define kinds in.
    pub groups: Vec<String>,
    /// Groups of the manager that only its suffix tells from those of packages.
    pub own_groups: Vec<String>,
    /// Groups that other API servers serve through the one of the cluster.
    pub aggregated_groups: Vec<String>,
    /// Where more may be allowed; nowhere, if everything is.
    pub place: Place,
}

/// Where an administrator allows permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Only where the manager is started.
    #[default]
    Flags,
    /// In the role that gathers what `apron permissions allow` writes.
    Gathered {
        /// Whether it is there.
        is_there: bool,
    },
    /// In a role that the manager was told to go by.
    Named {
        /// Its name.
        role: String,
        /// Whether it is there.
        is_there: bool,
    },
}

/// Why packages may not define kinds in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Kubernetes, its community or the package manager owns it in every cluster.
    Reserved(Reserved),
    /// Another API server serves its kinds in this cluster.
    Aggregated,
}

/// What a package asks for beyond its own kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Permissions of its controller.
    pub permissions: Vec<PermissionRequest>,
    /// Kinds of others that its webhooks are called about.
    pub interceptions: Vec<PermissionRequest>,
}

/// What is said to a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What nobody can allow, in sentences.
    pub forbidden: Vec<String>,
    /// What is asked for and not allowed.
    pub refused: Vec<PermissionRequest>,
}

impl Judgement {
    /// Whether the package may be installed.
    pub fn is_good(&self) -> bool {
        self.forbidden.is_empty() && self.refused.is_empty()
    }
}

impl Asked {
    /// Whether nothing is asked for.
    pub fn is_nothing(&self) -> bool {
        self.permissions.is_empty() && self.interceptions.is_empty()
    }

    /// Both together, as an allow list has them.
    pub fn all(&self) -> Vec<PermissionRequest> {
        self.permissions.iter().chain(&self.interceptions).cloned().collect()
    }
}

impl Allowed {
    /// Everything that can be allowed.
    pub fn anything() -> Self {
        Self { permissions: vec![PermissionRequest::everything()], ..Self::default() }
    }

    /// Why packages may not define kinds in a group, or have rights on it; nothing if they may.
    pub fn closed(&self, group: &str) -> Option<Closed> {
        let is_it = |one: &String| one.eq_ignore_ascii_case(group.trim_end_matches('.'));
        let is_open = self.groups.iter().any(is_it);
        match reserved(group) {
            None if self.own_groups.iter().any(is_it) => Some(Closed::Reserved(Reserved::Manager)),
            None | Some(Reserved::Community) if is_open => None,
            None => self.aggregated_groups.iter().any(is_it).then_some(Closed::Aggregated),
            Some(closed) => Some(Closed::Reserved(closed)),
        }
    }

    /// Those of the rules that are not allowed.
    pub fn refused(&self, requests: &[PermissionRequest]) -> Vec<PermissionRequest> {
        rules::beyond(requests, &self.permissions)
    }
}

/// What a package asks for where the kinds of definitions of these names are others'.
pub(crate) fn asked(contents: &Contents, others: &BTreeSet<&str>) -> Asked {
    let own = contents.documents.iter().filter(|it| !others.contains(it.name.as_str()));
    let brought = own.filter_map(|it| it.brings.clone());
    // Of a kind called `*`, webhooks about every kind would be the package's own business.
    let brought: Kinds =
        brought.filter(|(group, plural)| is_label(plural) && is_group(group)).collect();
    let mut kinds = Kinds::new();
    for document in &contents.documents {
        kinds.extend(document.calls.intercepted(&brought));
        if matches!(document.calls, Calls::Elsewhere(_)) {
            kinds.extend(document.brings.clone());
        }
    }
    let interception = |(group, resource): (String, String)| PermissionRequest {
        api_groups: vec![group],
        resources: vec![resource],
        verbs: vec![INTERCEPT.to_owned()],
        ..PermissionRequest::default()
    };
    let permissions = contents.meta.as_ref().map(Meta::permission_requests);
    Asked {
        permissions: permissions.unwrap_or_default().to_vec(),
        interceptions: kinds.into_iter().map(interception).collect(),
    }
}

/// What is said to a package that was opened.
pub fn judge_opened(opened: &Opened, allowed: &Allowed) -> Judgement {
    // Which bytes it is makes no difference to what is in it.
    judge(&Contents::of(Digest::of(&[]), opened, Unsupported::Skip), allowed)
}

/// What is said to a package with these contents.
pub fn judge(contents: &Contents, allowed: &Allowed) -> Judgement {
    judge_among(contents, &BTreeSet::new(), allowed)
}

/// The same where the kinds of definitions of these names are others'.
pub(crate) fn judge_among(
    contents: &Contents,
    others: &BTreeSet<&str>,
    allowed: &Allowed,
) -> Judgement {
    let mut forbidden = Vec::new();
    for document in &contents.documents {
        let what = format!("{} {}", document.kind, document.name);
        let closed = document.groups.iter().find_map(|it| Some((it, allowed.closed(it)?)));
        if let Some((group, whose)) = closed {
            forbidden.push(words::closed(&what, group, whose));
        }
        let addresses = document.calls.addresses().into_iter();
        forbidden.extend(addresses.map(|address| words::address(&what, &address)));
        // Rights are handed out by name, so a name that says something else takes those of others.
        if document.object.is_definition() && document.brings.is_none() {
            forbidden.push(words::misnamed(&what));
        }
        forbidden.extend(check_names(document, &what));
    }
    let asked = asked(contents, others).all();
    if let Some(why) = rules::excess(&asked) {
        forbidden.push(why);
        return Judgement { forbidden, refused: Vec::new() };
    }
    Judgement { refused: allowed.refused(&asked), forbidden }
}

/// The names that a definition gives its kinds and their group, and that API servers serve none by,
/// in sentences. A definition under the name of another kind is told of as that.
fn check_names(document: &Document, what: &str) -> Vec<String> {
    let own = document.brings.as_ref();
    let is_composite = document.object == ObjectKind::CompositeResourceDefinition;
    let resource = document.resource.as_ref().filter(|_| is_composite);
    let plurals = [
        ("spec.names.plural", own.map(|(_, plural)| plural.as_str())),
        ("spec.claimNames.plural", resource.and_then(|it| it.claim.as_deref())),
    ];
    let plurals = plurals.into_iter().filter_map(|(field, plural)| Some((field, plural?)));
    let plurals = plurals.filter(|(_, plural)| !is_label(plural));
    let plurals = plurals.map(|(field, plural)| words::no_plural(what, field, plural));
    let group = own.map(|(group, _)| group).filter(|group| !is_group(group));
    plurals.chain(group.map(|group| words::no_group(what, group))).collect()
}
