//! Which packages a constraint on a kind leads to.

use super::kinds::{find_name, names_of_group, suggest};
use super::offers::defining;
use super::{Index, IndexError, Rights};
use crate::answer::Resolution;
use crate::grammar::KindReference;
use crate::resolve::{ResolveTerms, resolve_kind};
use rusqlite::Connection;

impl Index {
    /// Finds the packages that bring a kind, or the kinds of a group, and judges whether they are a choice.
    pub fn resolve(
        &self,
        kind: &KindReference,
        terms: &ResolveTerms,
        rights: &Rights,
    ) -> Result<Resolution, IndexError> {
        self.ask(rights, |database| {
            let names = meant_names(database, kind)?;
            let mut resolution = resolve_names(database, kind, &names, terms)?;
            if names.is_empty() && kind.name.is_some() {
                resolution.suggestions = suggest(database, kind)?;
            }
            Ok(resolution)
        })
    }
}

/// What a constraint on a kind leads to, given the CRDs that are meant.
pub(super) fn resolve_names(
    database: &Connection,
    kind: &KindReference,
    names: &[String],
    terms: &ResolveTerms,
) -> Result<Resolution, IndexError> {
    let mut offers = Vec::new();
    for name in names {
        offers.extend(defining(database, name)?);
    }
    let kind = match names {
        [only] if kind.name.is_some() => named_by_plural(kind, only),
        _ => kind.clone(),
    };
    Ok(resolve_kind(&kind, offers, terms))
}

/// The CRDs that are meant.
pub(super) fn meant_names(
    database: &Connection,
    kind: &KindReference,
) -> Result<Vec<String>, IndexError> {
    if kind.name.is_none() {
        return names_of_group(database, &kind.group);
    }
    Ok(find_name(database, kind)?.into_iter().collect())
}

fn named_by_plural(kind: &KindReference, crd: &str) -> KindReference {
    let plural = crd.split_once('.').map_or(crd, |(plural, _)| plural);
    KindReference { name: Some(plural.to_owned()), ..kind.clone() }
}
