//! What views show, and what they bring back.

use super::{Sqlite, blobs, ensure, known, manifests, stored_digest, stored_name};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::{Behind, Counts, Pictures, Restored, Shown};
use oci::{Descriptor, Digest, MediaType};
use rusqlite::params;

impl Pictures for Sqlite {
    fn behind(&self) -> Result<Vec<Behind>, Error> {
        self.database.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT name, generation FROM repository WHERE viewed < generation ORDER BY name",
            )?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let repository = stored_name(&row.get::<_, String>(0)?)?;
                all.push(Behind { repository, generation: row.get(1)? });
            }
            Ok(all)
        })
    }

    fn shown(&self, name: &Name) -> Result<Vec<Shown>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "SELECT manifest.digest, media_type, size, name FROM manifest LEFT JOIN tag
                 ON tag.repository = manifest.repository AND tag.digest = manifest.digest
                 WHERE manifest.repository = ?1 ORDER BY name IS NULL, name, manifest.digest",
            )?;
            let mut rows = statement.query([repository])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let digest = stored_digest(&row.get::<_, String>(0)?)?;
                let size: i64 = row.get(2)?;
                let media_type = MediaType::new(&row.get::<_, String>(1)?);
                let descriptor = Descriptor::new(media_type, digest, size.unsigned_abs());
                all.push(Shown { descriptor, tag: row.get(3)? });
            }
            Ok(all)
        })
    }

    fn held(&self, name: &Name) -> Result<Vec<Digest>, Error> {
        self.database.read(|database| {
            let repository = known(database, name)?;
            let mut statement = database.prepare_cached(
                "SELECT digest FROM repository_blob AS it WHERE repository = ?1
                 AND EXISTS (SELECT 1 FROM manifest_child
                             WHERE repository = ?1 AND child = it.digest) ORDER BY digest",
            )?;
            let rows: rusqlite::Result<Vec<String>> =
                statement.query_map([repository], |row| row.get(0))?.collect();
            rows?.iter().map(|text| stored_digest(text)).collect()
        })
    }

    fn note_view(&self, view: &Behind) -> Result<(), Error> {
        let Behind { repository, generation } = view.clone();
        self.database.write(move |transaction| {
            transaction
                .prepare_cached("UPDATE repository SET viewed = ?2 WHERE name = ?1")?
                .execute(params![repository.as_str(), generation])?;
            Ok(())
        })
    }

    fn restore(&self, restored: Restored) -> Result<(), Error> {
        self.database.write(move |transaction| {
            let repository = ensure(transaction, &restored.repository)?;
            for (row, tag) in &restored.manifests {
                blobs::record(transaction, &row.digest, row.size)?;
                manifests::insert(transaction, repository, row, restored.at)?;
                if let Some(tag) = tag {
                    manifests::write_tag(transaction, repository, tag, &row.digest, restored.at)?;
                }
            }
            for (digest, size) in &restored.blobs {
                if let Some(size) = size {
                    blobs::record(transaction, digest, *size)?;
                }
                blobs::link(transaction, repository, digest, 0)?;
            }
            manifests::touch(transaction, repository)
        })
    }

    fn counts(&self) -> Result<Counts, Error> {
        self.database.read(|database| {
            let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok(Counts {
                repositories: count("SELECT count(*) FROM repository")?.unsigned_abs(),
                manifests: count("SELECT count(*) FROM manifest")?.unsigned_abs(),
                tags: count("SELECT count(*) FROM tag")?.unsigned_abs(),
                blobs: count("SELECT count(*) FROM blob")?.unsigned_abs(),
            })
        })
    }
}
