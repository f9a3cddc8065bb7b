//! Questions about packages: versions, what one brings, what it needs, what needs it.

use super::contents::{BROKEN, OTHER, READ, leads_to, path_of};
use super::kinds::split_tags;
use super::order::sort_versions;
use super::{Index, IndexError, Rights};
use crate::answer::{Dependent, PackageSummary, State, VersionDetail, VersionSummary};
use crate::record::{Definition, Package};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use xpkg::constraint::Constraint;
use xpkg::version::Version;

/// The columns that [`read_version`] takes.
pub(super) const VERSION: &str =
    "version.digest, package.state, coalesce(version.reason, package.reason),
    package.facts, package.kinds,
    (SELECT group_concat(tag.name, ' ') FROM tag
     WHERE tag.repository = repository.id AND tag.digest = version.digest)";

impl Index {
    /// A package, by its newest version; none if there is none that may be read.
    pub fn package(
        &self,
        repository: &str,
        rights: &Rights,
    ) -> Result<Option<PackageSummary>, IndexError> {
        self.ask(rights, |database| package_summary(database, repository))
    }

    /// Versions of a package, newest first; none if there is no such package.
    pub fn versions(
        &self,
        repository: &str,
        rights: &Rights,
    ) -> Result<Option<Vec<VersionSummary>>, IndexError> {
        self.ask(rights, |database| {
            let versions = versions(database, repository)?;
            Ok(Some(versions).filter(|all| !all.is_empty()))
        })
    }

    /// Everything about one version, by its tag or digest or as the newest within a constraint.
    pub fn version(
        &self,
        repository: &str,
        reference: &str,
        rights: &Rights,
    ) -> Result<Option<VersionDetail>, IndexError> {
        self.ask(rights, |database| {
            let Some(summary) = choose(database, repository, reference)? else { return Ok(None) };
            let sql = "SELECT readme, icon FROM package WHERE digest = ?1";
            let found: Option<(Option<String>, Option<String>)> = database
                .prepare_cached(sql)?
                .query_row([&summary.digest], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (readme, icon) = found.unwrap_or_default();
            Ok(Some(VersionDetail { repository: repository.to_owned(), summary, readme, icon }))
        })
    }

    /// The kinds that a version brings, by name.
    pub fn definitions(
        &self,
        repository: &str,
        reference: &str,
        rights: &Rights,
    ) -> Result<Option<Vec<Definition>>, IndexError> {
        self.ask(rights, |database| {
            let Some(version) = choose(database, repository, reference)? else { return Ok(None) };
            if version.state != State::Read {
                // Another repository may have the same bytes, and whole.
                return Ok(Some(Vec::new()));
            }
            let sql =
                "SELECT offer.facts FROM package JOIN provides ON provides.package = package.id
                       JOIN offer ON offer.id = provides.offer
                       WHERE package.digest = ?1 ORDER BY provides.name";
            let mut statement = database.prepare_cached(sql)?;
            let rows = statement.query_map([&version.digest], |row| row.get::<_, String>(0))?;
            let all: rusqlite::Result<Vec<String>> = rows.collect();
            let read = |facts: &String| serde_json::from_str(facts);
            Ok(Some(all?.iter().map(read).collect::<Result<_, _>>()?))
        })
    }

    /// Versions of packages that need this one, by repository, newest first.
    pub fn dependents(
        &self,
        repository: &str,
        rights: &Rights,
    ) -> Result<Option<Vec<Dependent>>, IndexError> {
        self.ask(rights, |database| {
            if package_summary(database, repository)?.is_none() {
                return Ok(None);
            }
            dependents(database, repository).map(Some)
        })
    }
}

/// A package as lists show it.
pub(super) fn package_summary(
    database: &Connection,
    repository: &str,
) -> Result<Option<PackageSummary>, IndexError> {
    let sql = format!(
        "SELECT {VERSION}, repository.versions FROM repository
         JOIN version ON version.repository = repository.id AND version.digest = newest
         JOIN package ON package.id = version.package
         WHERE repository.name = ?1 AND readable(repository.name)"
    );
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query([repository])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(PackageSummary {
        repository: repository.to_owned(),
        newest: read_version(row)?,
        versions: usize::try_from(row.get::<_, i64>(6)?).unwrap_or_default(),
    }))
}

/// Versions that are packages, or may turn out to be, newest first.
fn versions(database: &Connection, repository: &str) -> Result<Vec<VersionSummary>, IndexError> {
    let sql = format!(
        "SELECT {VERSION} FROM repository
         JOIN version ON version.repository = repository.id
         LEFT JOIN package ON package.id = version.package
         WHERE repository.name = ?1 AND readable(repository.name) AND package.state IS NOT ?2"
    );
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query(params![repository, OTHER])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read_version(row)?);
    }
    sort_versions(&mut all, |it| (&it.tags, &it.digest));
    Ok(all)
}

pub(super) fn read_version(row: &Row<'_>) -> Result<VersionSummary, IndexError> {
    let state: Option<String> = row.get(1)?;
    let reason: Option<String> = row.get(2)?;
    let state = match state.as_deref() {
        Some(READ) => State::Read,
        Some(BROKEN) => State::Broken,
        _ if reason.is_some() => State::Incomplete,
        _ => State::Waiting,
    };
    let facts: Option<String> = row.get(3)?;
    let package = facts.map(|facts| serde_json::from_str::<Package>(&facts)).transpose()?;
    let kinds: Option<i64> = row.get(4)?;
    Ok(VersionSummary {
        digest: row.get(0)?,
        tags: split_tags(row.get(5)?),
        state,
        reason,
        package: package.unwrap_or_default(),
        kinds: usize::try_from(kinds.unwrap_or_default()).unwrap_or_default(),
    })
}

/// The version that is meant; of the others only their tags are read.
pub(super) fn choose(
    database: &Connection,
    repository: &str,
    reference: &str,
) -> Result<Option<VersionSummary>, IndexError> {
    let Some(digest) = choose_digest(database, repository, reference)? else { return Ok(None) };
    let sql = format!(
        "SELECT {VERSION} FROM repository
         JOIN version ON version.repository = repository.id AND version.digest = ?2
         LEFT JOIN package ON package.id = version.package
         WHERE repository.name = ?1 AND readable(repository.name) AND package.state IS NOT ?3"
    );
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query(params![repository, digest, OTHER])?;
    rows.next()?.map(read_version).transpose()
}

/// The address of the version that is meant: by its digest, its tag, or as the newest within bounds.
fn choose_digest(
    database: &Connection,
    repository: &str,
    reference: &str,
) -> Result<Option<String>, IndexError> {
    let sql = "SELECT version.digest,
                   (SELECT group_concat(tag.name, ' ') FROM tag
                    WHERE tag.repository = repository.id AND tag.digest = version.digest)
               FROM repository JOIN version ON version.repository = repository.id
               LEFT JOIN package ON package.id = version.package
               WHERE repository.name = ?1 AND readable(repository.name)
               AND package.state IS NOT ?2";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map(params![repository, OTHER], |row| {
        Ok((row.get::<_, String>(0)?, split_tags(row.get(1)?)))
    })?;
    let mut all = rows.collect::<rusqlite::Result<Vec<(String, Vec<String>)>>>()?;
    let is_named = |(digest, tags): &(String, Vec<String>)| {
        digest == reference || tags.iter().any(|tag| tag == reference)
    };
    if let Some(at) = all.iter().position(is_named) {
        return Ok(Some(all.swap_remove(at).0));
    }
    let Ok(constraint) = Constraint::parse(reference) else { return Ok(None) };
    let fits = |tag: &String| Version::parse(tag).is_ok_and(|it| constraint.matches(&it));
    sort_versions(&mut all, |(digest, tags)| (tags, digest));
    Ok(all.into_iter().find(|(_, tags)| tags.iter().any(fits)).map(|(digest, _)| digest))
}

fn dependents(database: &Connection, repository: &str) -> Result<Vec<Dependent>, IndexError> {
    let sql = format!(
        "SELECT {VERSION}, repository.name FROM needs
         JOIN version ON version.package = needs.package
         JOIN repository ON repository.id = version.repository
         JOIN package ON package.id = needs.package
         WHERE needs.path IN (?1, ?2) AND readable(repository.name)"
    );
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query([repository, &path_of(repository)])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let VersionSummary { digest, tags, package, .. } = read_version(row)?;
        let name: String = row.get(6)?;
        let needs = package.dependencies.into_iter();
        for dependency in needs.filter(|it| leads_to(it, repository)) {
            let (repository, digest, tags) = (name.clone(), digest.clone(), tags.clone());
            all.push(Dependent { repository, digest, tags, dependency });
        }
    }
    sort_versions(&mut all, |it| (&it.tags, &it.digest));
    all.sort_by(|one, other| one.repository.cmp(&other.repository));
    Ok(all)
}
