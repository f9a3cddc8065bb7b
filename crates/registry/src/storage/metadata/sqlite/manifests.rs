//! Manifests, their children and tags.

use super::{Sqlite, blobs, ensure, known, stored_digest, stored_size};
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use crate::storage::metadata::{Manifests, NewManifest, Recorded, Row};
use crate::storage::{Missing, Versions};
use oci::Digest;
use rusqlite::{OptionalExtension, Transaction, params};

impl Manifests for Sqlite {
    fn push(&self, manifest: NewManifest) -> Result<Recorded, Error> {
        self.database.write(move |transaction| {
            let NewManifest { repository: name, row, tags, missing, versions, quota, at } =
                &manifest;
            let repository = ensure(transaction, name)?;
            if *missing == Missing::Refuse {
                check_children(transaction, repository, row)?;
            }
            blobs::check_quota(transaction, repository, &row.digest, row.size, *quota)?;
            let mut healed = blobs::record(transaction, &row.digest, row.size)?;
            healed.retain(|it| it != name);
            insert(transaction, repository, row, *at)?;
            let mut before = Vec::with_capacity(tags.len());
            for tag in tags {
                before.push(set_tag(transaction, repository, tag, &row.digest, *versions, *at)?);
            }
            touch(transaction, repository)?;
            Ok(Recorded { before, healed })
        })
    }

    fn manifest(&self, name: &Name, selector: &Selector) -> Result<(Digest, String), Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let columns = "SELECT digest, media_type FROM manifest JOIN blob USING (digest)";
            let mut statement = match selector {
                Selector::Digest(_) => database
                    .prepare_cached(&format!("{columns} WHERE repository = ?1 AND digest = ?2"))?,
                Selector::Tag(_) => database.prepare_cached(&format!(
                    "{columns} WHERE repository = ?1
                     AND digest = (SELECT digest FROM tag WHERE repository = ?1 AND name = ?2)"
                ))?,
            };
            let found = statement.query_row(params![repository, selector.to_string()], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?))
            });
            let unknown = || Error::ManifestUnknown(selector.to_string());
            let (digest, media_type) = found.optional()?.ok_or_else(unknown)?;
            Ok((stored_digest(&digest)?, media_type))
        })
    }

    fn delete_tag(&self, name: &Name, tag: &Tag) -> Result<(), Error> {
        let (name, tag) = (name.clone(), tag.clone());
        self.database.write(move |transaction| {
            let repository = known(transaction, &name)?;
            let deleted = transaction
                .prepare_cached("DELETE FROM tag WHERE repository = ?1 AND name = ?2")?
                .execute(params![repository, tag.as_str()])?;
            if deleted == 0 {
                return Err(Error::ManifestUnknown(tag.to_string()));
            }
            touch(transaction, repository)
        })
    }

    fn delete_manifest(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error> {
        let (name, digest) = (name.clone(), digest.clone());
        self.database.write(move |transaction| {
            let repository = known(transaction, &name)?;
            delete(transaction, repository, &digest, lease)?;
            touch(transaction, repository)
        })
    }
}

/// Writes a manifest's row and those of its children.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    repository: i64,
    row: &Row,
    at: i64,
) -> Result<(), Error> {
    let digest = row.digest.to_string();
    let annotations = (!row.annotations.is_empty())
        .then(|| serde_json::to_string(&row.annotations).ok())
        .flatten();
    transaction
        .prepare_cached(
            "INSERT INTO manifest VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET media_type = ?3, pushed = ?5",
        )?
        .execute(params![
            repository,
            digest,
            row.media_type.as_str(),
            stored_size(row.size),
            at,
            row.subject.as_ref().map(ToString::to_string),
            row.artifact_type,
            annotations,
        ])?;
    let mut statement =
        transaction.prepare_cached("INSERT OR IGNORE INTO manifest_child VALUES (?1, ?2, ?3)")?;
    for child in &row.children {
        statement.execute(params![repository, digest, child.to_string()])?;
    }
    Ok(())
}

/// Everything a manifest names must be in its repository, in the same transaction.
fn check_children(transaction: &Transaction<'_>, repository: i64, row: &Row) -> Result<(), Error> {
    let mut statement = transaction.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM repository_blob JOIN blob USING (digest)
                        WHERE repository = ?1 AND digest = ?2)
             OR EXISTS (SELECT 1 FROM manifest WHERE repository = ?1 AND digest = ?2)",
    )?;
    let mut missing = Vec::new();
    for child in &row.required {
        let there: bool =
            statement.query_row(params![repository, child.to_string()], |row| row.get(0))?;
        if !there {
            missing.push(child.clone());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::ManifestBlobUnknown(missing)) }
}

/// Lets a tag mean a manifest; gives what it meant before.
fn set_tag(
    transaction: &Transaction<'_>,
    repository: i64,
    tag: &Tag,
    digest: &Digest,
    versions: Versions,
    at: i64,
) -> Result<Option<Digest>, Error> {
    let before: Option<String> = transaction
        .prepare_cached("SELECT digest FROM tag WHERE repository = ?1 AND name = ?2")?
        .query_row(params![repository, tag.as_str()], |row| row.get(0))
        .optional()?;
    let before = before.map(|text| stored_digest(&text)).transpose()?;
    if let Some(before) = &before
        && before != digest
        && versions == Versions::Stay
        && tag.is_version()
    {
        return Err(Error::TagImmutable { tag: tag.clone(), digest: before.clone() });
    }
    write_tag(transaction, repository, tag, digest, at)?;
    Ok(before)
}

/// Writes a tag, whatever it meant before.
pub(super) fn write_tag(
    transaction: &Transaction<'_>,
    repository: i64,
    tag: &Tag,
    digest: &Digest,
    at: i64,
) -> Result<(), Error> {
    transaction.prepare_cached("REPLACE INTO tag VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        repository,
        tag.as_str(),
        digest.to_string(),
        at
    ])?;
    Ok(())
}

/// Deletes a manifest. What it named gets a new lease: a client may have seen it a moment ago.
pub(super) fn delete(
    transaction: &Transaction<'_>,
    repository: i64,
    digest: &Digest,
    lease: i64,
) -> Result<(), Error> {
    let text = digest.to_string();
    let deleted = transaction
        .prepare_cached("DELETE FROM manifest WHERE repository = ?1 AND digest = ?2")?
        .execute(params![repository, text])?;
    if deleted == 0 {
        return Err(Error::ManifestUnknown(text));
    }
    for statement in [
        "UPDATE repository_blob SET lease = max(lease, ?3) WHERE repository = ?1 AND digest IN
             (SELECT child FROM manifest_child WHERE repository = ?1 AND parent = ?2)",
        "DELETE FROM manifest_child WHERE repository = ?1 AND parent = ?2 AND ?3 = ?3",
        "DELETE FROM tag WHERE repository = ?1 AND digest = ?2 AND ?3 = ?3",
    ] {
        transaction.prepare_cached(statement)?.execute(params![repository, text, lease])?;
    }
    Ok(())
}

/// Notes that a repository's view has to be written again.
pub(super) fn touch(transaction: &Transaction<'_>, repository: i64) -> Result<(), Error> {
    transaction
        .prepare_cached("UPDATE repository SET generation = generation + 1 WHERE id = ?1")?
        .execute([repository])?;
    Ok(())
}
