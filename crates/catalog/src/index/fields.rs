//! Kinds by a field: `forProvider.region` finds all that have it.

use super::kinds::{VISIBLE, find_schema, newest_definition};
use super::{Index, IndexError, Rights};
use crate::answer::FieldMatch;
use crate::record::Definition;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use serde_json::Value as Json;

/// Parts of a path that are looked for.
const PARTS_MAX: usize = 8;
/// Names that begin with the last part.
const NAMES_MAX: i64 = 50;
/// Kinds whose schemas are looked at for one answer.
const LOOKED_AT_MAX: i64 = 40;
/// How deep fields are looked for.
const DEPTH_MAX: usize = 40;
/// The longest text about a field.
const DESCRIPTION_SIZE_MAX: usize = 200;

impl Index {
    /// Fields whose path ends with these parts, by kind.
    pub fn fields(
        &self,
        path: &str,
        limit: usize,
        rights: &Rights,
    ) -> Result<Vec<FieldMatch>, IndexError> {
        self.ask(rights, |database| find_fields(database, path, limit))
    }
}

pub(super) fn find_fields(
    database: &Connection,
    path: &str,
    limit: usize,
) -> Result<Vec<FieldMatch>, IndexError> {
    let parts: Vec<String> = path.trim().split('.').map(str::to_lowercase).collect();
    let is_path = parts.len() <= PARTS_MAX
        && parts.iter().all(|it| !it.is_empty() && !it.contains(char::is_whitespace));
    let Some((last, parents)) = parts.split_last().filter(|_| is_path) else {
        return Ok(Vec::new());
    };
    let mut parent_numbers = Vec::new();
    for parent in parents {
        let Some(number) = field_number(database, parent)? else { return Ok(Vec::new()) };
        parent_numbers.push(number);
    }
    let mut found = Vec::new();
    for (name, number) in field_numbers(database, last)? {
        let wanted: Vec<&str> = parents.iter().map(String::as_str).chain([name.as_str()]).collect();
        for kind in kinds_with_field(database, number, &parent_numbers)? {
            let is_known = found.iter().any(|it: &FieldMatch| it.crd == kind);
            if found.len() < limit && !is_known {
                found.extend(match_kind(database, &kind, &wanted)?);
            }
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

fn field_number(database: &Connection, name: &str) -> Result<Option<i64>, IndexError> {
    let sql = "SELECT id FROM field_name WHERE name = ?1";
    Ok(database.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?)
}

/// The very name first, then those that begin with it.
fn field_numbers(database: &Connection, part: &str) -> Result<Vec<(String, i64)>, IndexError> {
    let sql = "SELECT name, id FROM field_name WHERE name >= ?1 AND name < ?1 || char(1114111)
               ORDER BY name LIMIT ?2";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement
        .query_map(rusqlite::params![part, NAMES_MAX], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Kinds that have a field and all fields it is to be below of, wherever those are.
fn kinds_with_field(
    database: &Connection,
    number: i64,
    parents: &[i64],
) -> Result<Vec<String>, IndexError> {
    let has_parent = "AND EXISTS (SELECT 1 FROM field AS parent
                      WHERE parent.field = ? AND parent.name = kind_word.name)";
    let sql = format!(
        "SELECT name FROM field AS kind_word WHERE field = ? {} AND {VISIBLE} ORDER BY name LIMIT ?",
        vec![has_parent; parents.len()].join(" ")
    );
    let numbers = [number].into_iter().chain(parents.iter().copied()).chain([LOOKED_AT_MAX]);
    let mut statement = database.prepare_cached(&sql)?;
    let rows =
        statement.query_map(params_from_iter(numbers.map(Value::Integer)), |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The field in the version of a kind that counts, by the newest package that the asker may read.
fn match_kind(
    database: &Connection,
    name: &str,
    wanted: &[&str],
) -> Result<Option<FieldMatch>, IndexError> {
    let Some(definition) = newest_definition(database, name)? else { return Ok(None) };
    let Definition { kind, versions, .. } = &*definition;
    let Some(version) = versions.iter().find(|it| it.storage).or(versions.first()) else {
        return Ok(None);
    };
    let Some(digest) = &version.schema else { return Ok(None) };
    let Some(schema) = find_schema(database, digest)? else { return Ok(None) };
    let schema: Json = serde_json::from_slice(&schema)?;
    let found = find_path(&schema, wanted, &mut Vec::new());
    Ok(found.map(|(path, field)| FieldMatch {
        crd: name.to_owned(),
        kind: kind.clone(),
        version: version.name.clone(),
        path,
        kind_of_value: field.get("type").and_then(Json::as_str).unwrap_or_default().to_owned(),
        description: field.get("description").and_then(Json::as_str).map(shorten_text),
    }))
}

fn shorten_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.char_indices().map(|(at, _)| at).find(|at| *at >= DESCRIPTION_SIZE_MAX);
    end.map_or(line.clone(), |end| format!("{}…", &line[..end]))
}

/// The first field whose path ends with the wanted parts, in the order of the schema.
fn find_path<'schema>(
    schema: &'schema Json,
    wanted: &[&str],
    path: &mut Vec<String>,
) -> Option<(String, &'schema Json)> {
    if path.len() > DEPTH_MAX {
        return None;
    }
    for (name, field) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        path.push(name.clone());
        let is_end = path.len() >= wanted.len()
            && path[path.len() - wanted.len()..]
                .iter()
                .zip(wanted)
                .all(|(one, other)| one.to_lowercase() == *other);
        let found =
            if is_end { Some((path.join("."), field)) } else { find_path(field, wanted, path) };
        path.pop();
        if found.is_some() {
            return found;
        }
    }
    let inner = ["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key));
    inner.filter(|it| it.is_object()).find_map(|it| find_path(it, wanted, path))
}
