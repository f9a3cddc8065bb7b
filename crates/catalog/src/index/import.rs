//! A catalog from a file that another one was exported to.
//!
//! Schemas and documents are digested again. Which manifest a package is of is believed: the file
//! comes from where packages come from.

use super::export::{FORMAT, KindLine, PackageLine, RepositoryLine};
use super::{Head, Index, IndexError};
use crate::read::pack_kind;
use crate::record::{Outcome, Package};
use flate2::read::MultiGzDecoder;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};

/// The longest line; a kind with its document is the longest there is.
const LINE_SIZE_MAX: u64 = 64 << 20;

/// Why a file cannot be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    Io(#[from] std::io::Error),
    /// It is something else, or damaged.
    #[error("line {0} is not of a catalog that was exported")]
    Line(u64),
    /// A version of the program wrote it that has another format.
    #[error("it has the format {0}, and not {known}", known = FORMAT)]
    Format(String),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Index {
    /// Takes in what another catalog wrote, compressed as it is sent. Repositories of the same name get what they have there; all
    /// others stay as they are. Tells how many repositories there were.
    pub fn import(&self, from: &mut dyn Read) -> Result<usize, ImportError> {
        let mut from = BufReader::new(MultiGzDecoder::new(from));
        let mut taken =
            Taken { index: self, unread: BTreeSet::new(), package: None, repositories: 0 };
        let mut number = 0;
        while let Some(line) = read_line(&mut from)? {
            number += 1;
            let line: Json =
                serde_json::from_slice(&line).map_err(|_| ImportError::Line(number))?;
            match number {
                1 if line["format"] == FORMAT => {}
                1 => return Err(first_line_error(&line)),
                _ => taken.take_line(line, number)?,
            }
        }
        if number == 0 {
            return Err(ImportError::Line(1));
        }
        taken.finish_package()?;
        Ok(taken.repositories)
    }
}

/// What is wrong with the first line: it is of another format, or of no catalog.
fn first_line_error(line: &Json) -> ImportError {
    let family = FORMAT.split('/').next().unwrap_or(FORMAT);
    match line["format"].as_str() {
        Some(format) if format.split('/').next() == Some(family) => {
            ImportError::Format(format.to_owned())
        }
        _ => ImportError::Line(1),
    }
}

fn read_line(from: &mut impl BufRead) -> Result<Option<Vec<u8>>, std::io::Error> {
    let mut line = Vec::new();
    let size = from.take(LINE_SIZE_MAX).read_until(b'\n', &mut line)?;
    Ok((size > 0).then_some(line))
}

struct Taken<'index> {
    index: &'index Index,
    /// What repositories have and is not known yet.
    unread: BTreeSet<String>,
    package: Option<(String, Outcome)>,
    repositories: usize,
}

impl Taken<'_> {
    fn take_line(&mut self, mut line: Json, number: u64) -> Result<(), ImportError> {
        let invalid = |_| ImportError::Line(number);
        if line.get("repository").is_some() {
            let line: RepositoryLine = serde_json::from_value(line).map_err(invalid)?;
            return self.take_repository(line);
        }
        if let Some(package) = line.get_mut("package") {
            let package = serde_json::from_value(package.take()).map_err(invalid)?;
            return self.take_package(package);
        }
        let kind = line.get_mut("kind").ok_or(ImportError::Line(number))?;
        let kind: KindLine = serde_json::from_value(kind.take()).map_err(invalid)?;
        if let Some((_, Outcome::Package(package))) = &mut self.package {
            add_kind(package, kind);
        }
        Ok(())
    }

    fn take_repository(&mut self, line: RepositoryLine) -> Result<(), ImportError> {
        let heads: Vec<Head> = line
            .versions
            .into_iter()
            .map(|version| Head { digest: version.digest, tags: version.tags, is_damaged: false })
            .collect();
        self.unread.extend(self.index.settle(&line.repository, &heads)?);
        self.repositories += 1;
        Ok(())
    }

    fn take_package(&mut self, line: PackageLine) -> Result<(), ImportError> {
        self.finish_package()?;
        let PackageLine { digest, reason, facts, readme, icon, metadata, objects } = line;
        let outcome = match reason {
            Some(reason) => Outcome::Broken(reason),
            None => {
                Outcome::Package(Box::new(Package { readme, icon, objects, metadata, ..facts }))
            }
        };
        self.package = Some((digest, outcome));
        Ok(())
    }

    /// Learns what the package is whose lines have all come.
    fn finish_package(&mut self) -> Result<(), ImportError> {
        let Some((digest, outcome)) = self.package.take() else { return Ok(()) };
        if self.unread.contains(&digest) {
            self.index.learn(&digest, &outcome)?;
        }
        Ok(())
    }
}

fn add_kind(package: &mut Package, kind: KindLine) {
    let KindLine { definition, document } = kind;
    if let Some((document, schemas)) = document.and_then(|mut it| pack_kind(&mut it)) {
        package.schemas.extend(schemas);
        package.documents.insert(definition.name.clone(), document);
    }
    package.definitions.push(definition);
}
