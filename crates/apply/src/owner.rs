//! Who owns what after a write, and what an apply removes.
//!
//! Ownership follows from comparing the object before and after. For everybody but the writer:
//! fields that changed or appeared are a conflict (or, when forced, simply lost), fields that
//! went are lost. An apply also removes what its manager applied last time, does not mention
//! now, and nobody else owns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::ApplyContext;
use super::convert::{ConvertError, Typed};
use super::error::{ApplyError, Conflict, Conflicts, OwnershipError};
use super::fieldpath::Set;
use super::managed::{Entry, ManagedFields};
use super::typed::{Comparison, compare, field_set, merge, reconcile, remove_items};
use super::value;

/// How messages about removal start.
const PRUNE: &str = "failed to prune fields";

/// What happens to fields that somebody else owns and the writer changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnConflict {
    /// The write is refused.
    Refuse,
    /// The writer becomes the owner.
    Take,
}

/// The object after an apply (nothing if it stays as it is) and its owners.
pub(super) type Outcome = (Option<Value>, ManagedFields);

impl ApplyContext<'_> {
    fn typed<'b>(&'b self, value: Cow<'b, Value>) -> Typed<'b> {
        Typed { value, version: self.api_version, schema: self.schema }
    }

    fn at<'b>(
        &'b self,
        object: &'b Typed<'b>,
        version: &'b str,
    ) -> Result<Typed<'b>, ConvertError> {
        object.at(version, (self.api_version, self.schema), self.converter)
    }

    /// An object at another version; nothing if there is no such version.
    fn find<'b>(
        &'b self,
        object: &'b Typed<'b>,
        version: &'b str,
        what: impl FnOnce() -> String,
    ) -> Result<Option<Typed<'b>>, OwnershipError> {
        match self.at(object, version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::NoSuchVersion { .. }) => Ok(None),
            Err(source) => Err(OwnershipError::Convert { what: what(), source }),
        }
    }

    fn filter(&self, set: Set) -> Set {
        match self.reset_fields {
            Some(reset) => set.recursive_difference(reset),
            None => set,
        }
    }

    /// Computes the owners after an update by the entry's manager, who takes what it changed.
    pub(super) fn own_update(
        &self,
        live: &Value,
        new: &Value,
        mut managers: ManagedFields,
        mut writer: Entry,
    ) -> Result<ManagedFields, OwnershipError> {
        let live = self.typed(Cow::Borrowed(live));
        let new = self.typed(Cow::Borrowed(new));
        self.reconcile(&live, &mut managers)?;
        // The writer is nobody yet: what it owned already is compared like everybody's.
        let (changes, _) = self.settle(&live, &new, &mut managers, None, OnConflict::Take)?;
        let taken = self.filter(changes.modified.union(&changes.added));
        let taken = taken.difference(stripped());
        if taken.is_empty() {
            return Ok(managers);
        }
        let identity = writer.identity();
        if let Some(previous) = managers.get(&identity) {
            writer.fields = taken.union(&previous.fields);
        } else {
            writer.fields = taken;
        }
        managers.map().insert(identity, writer);
        Ok(managers)
    }

    /// Applies a configuration for the entry's manager and computes the owners.
    pub(super) fn own_apply(
        &self,
        live: &Value,
        config: &Value,
        mut managers: ManagedFields,
        mut applier: Entry,
        on_conflict: OnConflict,
    ) -> Result<Outcome, ApplyError> {
        let identity = applier.identity();
        let live = self.typed(Cow::Borrowed(live));
        self.reconcile(&live, &mut managers).map_err(ApplyError::Ownership)?;
        let merged = merge(self.schema, &live.value, config);
        let last = managers.get(&identity).cloned();
        applier.fields = self.filter(field_set(self.schema, config));
        applier.time = last.as_ref().and_then(|last| last.time);
        managers.map().insert(identity.clone(), applier);
        let new = self
            .prune(merged, &managers, &identity, last.as_ref())
            .map_err(ApplyError::Ownership)?;
        let new = self.typed(Cow::Owned(new));
        let settled = self.settle(&live, &new, &mut managers, Some(&identity), on_conflict);
        let (_, conflicts) = settled.map_err(ApplyError::Ownership)?;
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(Conflicts(conflicts)));
        }
        let changed = !value::equal(&live.value, &new.value);
        let new = changed.then(|| new.value.into_owned());
        if let Some(entry) = managers.map().get_mut(&identity) {
            entry.fields = entry.fields.difference(stripped());
            if changed {
                entry.time = Some(self.now);
            }
            if entry.fields.is_empty() {
                managers.map().remove(&identity);
            }
        }
        Ok((new, managers))
    }

    /// Forgets managers at versions that are gone, and brings sets up to date with the schema.
    fn reconcile(
        &self,
        live: &Typed<'_>,
        managers: &mut ManagedFields,
    ) -> Result<(), OwnershipError> {
        let mut gone = Vec::new();
        for (identity, entry) in managers.map().iter_mut() {
            let version = entry.api_version.clone();
            match self.at(live, &version) {
                Ok(typed) => {
                    if let Some(set) = reconcile(typed.schema, &entry.fields) {
                        entry.fields = set;
                    }
                }
                Err(ConvertError::NoSuchVersion { .. }) => gone.push(identity.clone()),
                Err(error) => return Err(OwnershipError::Reconcile(error)),
            }
        }
        for identity in gone {
            managers.map().remove(&identity);
        }
        Ok(())
    }

    /// Takes from everybody but the writer what the write changed; answers what changed, and the
    /// conflicts if they are to be refused.
    fn settle(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        managers: &mut ManagedFields,
        writer: Option<&str>,
        on_conflict: OnConflict,
    ) -> Result<(Comparison, Vec<Conflict>), OwnershipError> {
        let changes = self.changes(old, new)?;
        let mut others: BTreeMap<String, Option<Change>> = BTreeMap::new();
        others.insert(self.api_version.to_owned(), Some(Change::of(&changes)));
        let mut conflicts = Vec::new();
        let mut gone = Vec::new();
        for (identity, entry) in managers.map().iter_mut() {
            if Some(identity.as_str()) == writer {
                continue;
            }
            if !others.contains_key(&entry.api_version) {
                let change = self.changes_at(old, new, &entry.api_version)?;
                others.insert(entry.api_version.clone(), change);
            }
            let Some(Some(change)) = others.get(&entry.api_version) else {
                gone.push(identity.clone());
                continue;
            };
            if on_conflict == OnConflict::Refuse {
                let paths = entry.fields.intersection(&change.touched).paths();
                let manager = entry.describe();
                let conflict = |path| Conflict { manager: manager.clone(), path };
                conflicts.extend(paths.into_iter().map(conflict));
            }
            if !change.is_empty() {
                entry.fields = entry.fields.difference(&change.touched).difference(&change.removed);
            }
        }
        managers
            .map()
            .retain(|identity, entry| !gone.contains(identity) && !entry.fields.is_empty());
        Ok((changes, conflicts))
    }

    fn changes(&self, old: &Typed<'_>, new: &Typed<'_>) -> Result<Comparison, OwnershipError> {
        let changes = compare(new.schema, &old.value, &new.value);
        let changes = changes.map_err(OwnershipError::Compare)?;
        let here = self.reset_everywhere || new.version == self.api_version;
        let reset = self.reset_fields.filter(|_| here);
        Ok(match reset {
            Some(reset) => changes.without(reset),
            None => changes,
        })
    }

    /// What changed, seen at another version; nothing if there is no such version.
    fn changes_at(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        version: &str,
    ) -> Result<Option<Change>, OwnershipError> {
        let what = |which: &str| format!("failed to convert {which} object");
        let Some(old) = self.find(old, version, || what("old"))? else { return Ok(None) };
        let Some(new) = self.find(new, version, || what("new"))? else { return Ok(None) };
        Ok(Some(Change::of(&self.changes(&old, &new)?)))
    }

    /// Removes what the manager applied last time, did not now, and nobody else owns.
    fn prune(
        &self,
        merged: Value,
        managers: &ManagedFields,
        applier: &str,
        last: Option<&Entry>,
    ) -> Result<Value, OwnershipError> {
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return Ok(merged) };
        let same_version = last.api_version == self.api_version;
        let now = managers.get(applier).map(|entry| &entry.fields);
        let one_version = managers.iter().all(|(_, entry)| entry.api_version == self.api_version);
        if same_version && one_version && now.is_some_and(|now| last.fields.is_subset(now)) {
            // Everything applied last time is applied again: nothing can go. With other versions
            // around the long way still finds objects that do not convert.
            return Ok(merged);
        }
        let home = self.typed(Cow::Owned(merged));
        let what = || format!("{PRUNE}: failed to convert merged object to last applied version");
        let Some(merged) = self.find(&home, &last.api_version, what)? else {
            return Ok(home.value.into_owned());
        };
        let schema = merged.schema;
        let last_fields = last.fields.with_named_fields(schema, schema.root());
        let everything = field_set(schema, &merged.value).with_named_fields(schema, schema.root());
        let pruned = remove_items(schema, merged.value.clone().into_owned(), &last_fields);
        let kept = self.add_back_owned(&merged, &everything, pruned, managers)?;
        let items = everything.difference(&kept).intersection(&last_fields);
        if same_version {
            return Ok(remove_items(self.schema, home.value.into_owned(), &items));
        }
        let version = merged.version;
        let value = Cow::Owned(remove_items(schema, merged.value.into_owned(), &items));
        let pruned = Typed { value, version, schema };
        let back = self.at(&pruned, self.api_version);
        let failed = |source| OwnershipError::Convert { what: PRUNE.to_owned(), source };
        let back = back.map_err(failed)?;
        Ok(back.value.into_owned())
    }

    /// The fields of a pruned object once everything anybody owns is added back, named in the
    /// version it was pruned at.
    fn add_back_owned(
        &self,
        merged: &Typed<'_>,
        everything: &Set,
        pruned: Value,
        managers: &ManagedFields,
    ) -> Result<Set, OwnershipError> {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for (_, entry) in managers.iter() {
            let set = owned.entry(&entry.api_version).or_default();
            *set = set.union(&entry.fields);
        }
        let (schema, root) = (merged.schema, merged.schema.root());
        let named = |value: &Value| field_set(schema, value).with_named_fields(schema, root);
        let mut kept = named(&pruned);
        let mut pruned = Typed { value: Cow::Owned(pruned), ..merged.clone() };
        // First at the version that was pruned: later ones may need those fields to convert.
        if let Some(owned) = owned.remove(merged.version) {
            let keep = kept.union(&owned.with_named_fields(schema, root));
            let value = merged.value.clone().into_owned();
            let value = remove_items(schema, value, &everything.difference(&keep));
            kept = named(&value);
            pruned.value = Cow::Owned(value);
        }
        if owned.is_empty() {
            return Ok(kept);
        }
        let mut pruned = pruned.value.into_owned();
        for (version, owned) in owned {
            pruned = self.add_back_at(merged, pruned, version, &owned)?;
        }
        Ok(named(&pruned))
    }

    /// Adds back what is owned at another version.
    fn add_back_at(
        &self,
        merged: &Typed<'_>,
        pruned: Value,
        version: &str,
        owned: &Set,
    ) -> Result<Value, OwnershipError> {
        let home = Typed { value: Cow::Owned(pruned), ..merged.clone() };
        let step = "failed add back owned items";
        let what =
            |which| format!("{PRUNE}: {step}: failed to convert {which} at version {version}");
        let whole = self.find(merged, version, || what("merged object"))?;
        let part = self.find(&home, version, || what("pruned object"))?;
        let (Some(whole), Some(part)) = (whole, part) else {
            return Ok(home.value.into_owned());
        };
        let (schema, root) = (whole.schema, whole.schema.root());
        let named = |value: &Value| field_set(schema, value).with_named_fields(schema, root);
        let keep = named(&part.value).union(&owned.with_named_fields(schema, root));
        let gone = named(&whole.value).difference(&keep);
        let value = remove_items(schema, whole.value.into_owned(), &gone);
        let value = Typed { value: Cow::Owned(value), version, schema };
        let step = "failed add back dangling items";
        let what = "failed to convert pruned object to last applied version";
        let what = format!("{PRUNE}: {step}: {what}");
        let back = self.at(&value, merged.version);
        let back = back.map_err(|source| OwnershipError::Convert { what, source })?;
        Ok(back.value.into_owned())
    }
}

/// What a write did, as far as other managers care.
struct Change {
    touched: Set,
    removed: Set,
}

impl Change {
    fn of(changes: &Comparison) -> Self {
        let touched = changes.modified.union(&changes.added);
        Self { touched, removed: changes.removed.clone() }
    }

    fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.removed.is_empty()
    }
}

/// Fields that are never owned: the server's own, and those that name the object.
fn stripped() -> &'static Set {
    use super::fieldpath::Path;
    static STRIPPED: std::sync::LazyLock<Set> = std::sync::LazyLock::new(|| {
        let root = ["apiVersion", "kind", "metadata"].map(|name| Path::fields([name]));
        let metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let metadata = metadata.map(|name| Path::fields(["metadata", name]));
        Set::of(root.into_iter().chain(metadata))
    });
    &STRIPPED
}
