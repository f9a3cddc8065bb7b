//! A schema as one version of a package has it.

use super::{Index, IndexError, Rights};
use crate::json::decompress;
use rusqlite::OptionalExtension as _;

impl Index {
    /// A schema by its digest, if that version of a package has it; as JSON.
    pub fn schema_of_version(
        &self,
        repository: &str,
        version_digest: &str,
        schema_digest: &str,
        rights: &Rights,
    ) -> Result<Option<Vec<u8>>, IndexError> {
        self.ask(rights, |database| {
            let sql = "SELECT schema.bytes FROM repository
                       JOIN version ON version.repository = repository.id AND version.digest = ?2
                       JOIN schema_use ON schema_use.package = version.package
                       JOIN schema ON schema.digest = schema_use.digest
                       WHERE repository.name = ?1 AND readable(repository.name) AND schema.digest = ?3";
            let mut statement = database.prepare_cached(sql)?;
            let found: Option<Vec<u8>> = statement
                .query_row([repository, version_digest, schema_digest], |row| row.get(0))
                .optional()?;
            Ok(found.map(|bytes| decompress(&bytes)).transpose()?)
        })
    }
}
