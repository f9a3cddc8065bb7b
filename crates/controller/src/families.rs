//! Revisions by package, so that news of one can reach the others.

use crate::Hands;
use crate::cluster::{self, Which};
use crate::kind::{Meta, Wakes, Watch};
use crate::package::typed;
use api::pkg::revision::Revision;
use api::pkg::{ANNOTATION_ADOPT, ANNOTATION_ADOPT_EXISTING, ANNOTATION_BROUGHT_BY, LABEL_PACKAGE};
use plan::stacks::ANNOTATION_INSTALLS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The revisions of every package that were ever heard of.
#[derive(Clone, Default)]
pub(crate) struct Families(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl Families {
    fn join(&self, package: &str, revision: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(package.to_owned()).or_default().insert(revision.to_owned());
    }

    /// The revisions of a package.
    pub(crate) fn of(&self, package: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(package).into_iter().flatten().cloned().collect()
    }

    /// News of a revision concerns the other revisions of its package.
    pub(crate) fn watch(&self, api_version: &str, kind: &str) -> Watch {
        let families = self.clone();
        Watch::new(api_version, kind, move |meta| {
            let labels = meta.metadata.labels.as_ref();
            let package = labels.and_then(|labels| labels.get(LABEL_PACKAGE));
            let (Some(package), Some(name)) = (package, meta.metadata.name.as_deref()) else {
                return Wakes::These(Vec::new());
            };
            families.join(package, name);
            Wakes::These(families.of(package).into_iter().filter(|one| one != name).collect())
        })
    }
}

/// The other revisions of a revision's package. A list of another moment than the revision is refused, and
/// asked for again: without the revision that follows, the Deployment that works would be deleted.
pub(crate) async fn list_siblings(
    hands: &Hands,
    revision: &Revision,
) -> Result<Vec<Revision>, cluster::Error> {
    let Some(package) = revision.metadata.labels.get(LABEL_PACKAGE) else {
        return Ok(Vec::new());
    };
    let labels = format!("{LABEL_PACKAGE}={package}");
    let which = Which { labels: Some(&labels), ..Which::default() };
    let all = hands.cluster.list(&revision.api_version, &revision.kind, which).await?;
    let all: Vec<Revision> = all.into_iter().map(typed).collect::<Result<_, _>>()?;
    let name = &revision.metadata.name;
    let (own, siblings): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.metadata.name == *name);
    if own.iter().any(|one| one.spec.desired_state == revision.spec.desired_state) {
        return Ok(siblings);
    }
    let message = format!("the list of {} is of another moment than {name}", revision.kind);
    Err(cluster::Error::Stale(message))
}

/// What administrators give to packages of a kind: news of it reaches their revisions.
pub(crate) struct Given {
    pub(crate) families: Families,
    /// The kind of packages.
    pub(crate) package: &'static str,
    /// Their API group.
    pub(crate) group: String,
}

impl Given {
    /// News of a package concerns its revisions if it may take over what is there, or was made for
    /// install objects.
    pub(crate) fn watch_package(&self, api_version: &str) -> Watch {
        let families = self.families.clone();
        let watch = Watch::new(api_version, self.package, move |meta| {
            let is_said =
                |key: &&str| meta.metadata.annotations.iter().any(|it| it.contains_key(*key));
            let is_given = [ANNOTATION_ADOPT_EXISTING, ANNOTATION_INSTALLS].iter().any(is_said);
            let name = meta.metadata.name.as_ref().filter(|_| is_given);
            Wakes::These(name.map(|name| families.of(name)).unwrap_or_default())
        });
        watch.for_content()
    }

    /// News of objects that revisions own, or that are given to their package.
    pub(crate) fn watch_owned(&self, api_version: &str, kind: &str, revision: &str) -> Watch {
        self.watch_named(api_version, kind, revision, &[ANNOTATION_ADOPT])
    }

    /// The same, of objects that all revisions of the package look at.
    pub(crate) fn watch_running(&self, api_version: &str, kind: &str, revision: &str) -> Watch {
        let named = &[ANNOTATION_ADOPT, ANNOTATION_BROUGHT_BY];
        self.watch_named(api_version, kind, revision, named)
    }

    /// News of objects that revisions own, or whose annotations name their package.
    fn watch_named(
        &self,
        api_version: &str,
        kind: &str,
        revision: &str,
        annotations: &'static [&'static str],
    ) -> Watch {
        let (families, revision) = (self.families.clone(), revision.to_owned());
        // As they are named in annotations, but for the name.
        let package = plan::adoption::mark(&format!("{}/v1", self.group), self.package, "");
        Watch::new(api_version, kind, move |meta| {
            let owners = meta.metadata.owner_references.iter().flatten();
            let owners = owners.filter(|one| one.kind == revision).map(|one| one.name.clone());
            let named = annotations.iter().filter_map(|key| annotation(meta, key));
            let named = named.filter_map(|to| to.strip_prefix(&package));
            let named = named.flat_map(|to| families.of(to));
            Wakes::These(owners.chain(named).collect())
        })
    }
}

fn annotation<'m>(meta: &'m Meta, key: &str) -> Option<&'m String> {
    meta.metadata.annotations.as_ref()?.get(key)
}
