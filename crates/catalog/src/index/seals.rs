//! What else a repository has about a version: signatures, attestations and lists of parts, as cosign
//! keeps them beside a manifest, under tags that are made from its digest.

use super::packages::choose;
use super::{Index, IndexError, Rights};
use crate::answer::VersionSeal;
use rusqlite::OptionalExtension as _;

/// Ends of such tags, and what is behind them.
const SEALS: [(&str, &str); 3] = [("sig", "signature"), ("att", "attestation"), ("sbom", "sbom")];

impl Index {
    /// What is kept beside a version; none if there is no such version. Nothing of it is verified.
    pub fn seals(
        &self,
        repository: &str,
        reference: &str,
        rights: &Rights,
    ) -> Result<Option<Vec<VersionSeal>>, IndexError> {
        self.ask(rights, |database| {
            let Some(version) = choose(database, repository, reference)? else { return Ok(None) };
            let sql = "SELECT tag.digest FROM repository
                       JOIN tag ON tag.repository = repository.id AND tag.name = ?2
                       WHERE repository.name = ?1 AND readable(repository.name)";
            let mut statement = database.prepare_cached(sql)?;
            let stem = version.digest.replacen(':', "-", 1);
            let mut found = Vec::new();
            for (end, kind) in SEALS {
                let tag = format!("{stem}.{end}");
                let digest =
                    statement.query_row([repository, tag.as_str()], |row| row.get(0)).optional()?;
                found.extend(digest.map(|digest| VersionSeal {
                    kind: kind.to_owned(),
                    tag,
                    digest,
                }));
            }
            Ok(Some(found))
        })
    }
}
