//! Rows of manifests, their children and tags: what one push or deletion changes.

use super::{Versions, now, stored_digest, stored_size};
use crate::error::Error;
use crate::limits::DESCRIPTORS_MAX;
use crate::name::Tag;
use oci::{Descriptor, Digest, Document, MediaType, Raw};
use rusqlite::{OptionalExtension, Transaction, params};
use std::collections::BTreeSet;

/// What the database keeps of a manifest.
pub(super) struct Row {
    pub(super) digest: Digest,
    media_type: String,
    pub(super) size: u64,
    pub(super) subject: Option<Digest>,
    artifact_type: Option<String>,
    annotations: Option<String>,
    /// What must be there before it.
    required: BTreeSet<Digest>,
    /// Everything it names.
    children: BTreeSet<Digest>,
}

impl Row {
    /// Reads what a manifest says.
    pub(super) fn of(raw: &Raw, digest: Digest) -> Result<Self, Error> {
        let (children, subject, artifact_type, annotations) = match &raw.document {
            Document::Manifest(it) => {
                let all: Vec<&Descriptor> = std::iter::once(&it.config).chain(&it.layers).collect();
                let kind = it.artifact_type.clone().filter(|kind| !kind.is_empty());
                let kind = kind.unwrap_or_else(|| it.config.media_type.to_string());
                (all, &it.subject, Some(kind), &it.annotations)
            }
            Document::Index(it) => {
                let kind = it.artifact_type.clone().filter(|kind| !kind.is_empty());
                (it.manifests.iter().collect(), &it.subject, kind, &it.annotations)
            }
        };
        if children.len() > DESCRIPTORS_MAX {
            return Err(Error::ManifestTooMany);
        }
        let needed = children.iter().filter(|it| !is_elsewhere(&it.media_type));
        let annotations = (!annotations.is_empty() && subject.is_some())
            .then(|| serde_json::to_string(annotations).ok())
            .flatten();
        Ok(Self {
            digest,
            media_type: raw.media_type.to_string(),
            size: raw.bytes.len() as u64,
            subject: subject.as_ref().map(|it| it.digest.clone()),
            artifact_type,
            annotations,
            required: needed.map(|it| it.digest.clone()).collect(),
            children: children.iter().map(|it| it.digest.clone()).collect(),
        })
    }

    /// Everything it names.
    pub(super) fn children(&self) -> &BTreeSet<Digest> {
        &self.children
    }

    /// Writes the row and those of its children.
    pub(super) fn insert(
        &self,
        transaction: &Transaction<'_>,
        repository: i64,
    ) -> Result<(), Error> {
        let digest = self.digest.to_string();
        transaction
            .prepare_cached(
                "INSERT INTO manifest VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET media_type = ?3, pushed = ?5",
            )?
            .execute(params![
                repository,
                digest,
                self.media_type,
                stored_size(self.size),
                now(),
                self.subject.as_ref().map(ToString::to_string),
                self.artifact_type,
                self.annotations,
            ])?;
        let mut statement = transaction
            .prepare_cached("INSERT OR IGNORE INTO manifest_child VALUES (?1, ?2, ?3)")?;
        for child in &self.children {
            statement.execute(params![repository, digest, child.to_string()])?;
        }
        Ok(())
    }
}

/// Layers that their authors want fetched from elsewhere are never here.
fn is_elsewhere(media_type: &MediaType) -> bool {
    media_type.as_str().contains(".nondistributable.") || media_type.as_str().contains(".foreign.")
}

/// Everything a manifest names must be in its repository, in the same transaction.
pub(super) fn check_children(
    transaction: &Transaction<'_>,
    repository: i64,
    row: &Row,
) -> Result<(), Error> {
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
pub(super) fn set_tag(
    transaction: &Transaction<'_>,
    repository: i64,
    tag: &Tag,
    digest: &Digest,
    versions: Versions,
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
    write_tag(transaction, repository, tag.as_str(), digest)?;
    Ok(before)
}

/// Writes a tag, whatever it meant before.
pub(super) fn write_tag(
    transaction: &Transaction<'_>,
    repository: i64,
    tag: &str,
    digest: &Digest,
) -> Result<(), Error> {
    transaction.prepare_cached("REPLACE INTO tag VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        repository,
        tag,
        digest.to_string(),
        now()
    ])?;
    Ok(())
}

pub(super) fn delete_tag(
    transaction: &Transaction<'_>,
    repository: i64,
    tag: &Tag,
) -> Result<(), Error> {
    let deleted = transaction
        .prepare_cached("DELETE FROM tag WHERE repository = ?1 AND name = ?2")?
        .execute(params![repository, tag.as_str()])?;
    if deleted == 0 { Err(Error::ManifestUnknown(tag.to_string())) } else { Ok(()) }
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
