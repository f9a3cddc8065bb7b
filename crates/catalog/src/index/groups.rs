//! API groups, and the packages that bring kinds of them.

use super::{Index, IndexError, Question, Rights};
use crate::answer::{GroupSummary, Page};
use rusqlite::{Connection, params};

impl Index {
    /// Groups by name.
    pub fn groups(
        &self,
        question: &Question,
        rights: &Rights,
    ) -> Result<Page<GroupSummary>, IndexError> {
        self.ask(rights, |database| {
            let last = question.cursor.as_deref().unwrap_or_default();
            let length = question.length();
            let mut items = list_groups(database, last, length + 1)?;
            let has_more = items.len() > length;
            items.truncate(length);
            let next = items.last().filter(|_| has_more).map(|it| it.group.clone());
            Ok(Page { items, next })
        })
    }

    /// One group; none if the asker may read no package with a kind of it.
    pub fn group(&self, group: &str, rights: &Rights) -> Result<Option<GroupSummary>, IndexError> {
        self.ask(rights, |database| describe_group(database, group))
    }
}

fn list_groups(
    database: &Connection,
    last: &str,
    limit: usize,
) -> Result<Vec<GroupSummary>, IndexError> {
    let sql = "SELECT DISTINCT family FROM kind WHERE family > ?1
               AND EXISTS (SELECT 1 FROM home JOIN repository ON repository.id = home.repository
                           WHERE home.name = kind.name AND readable(repository.name))
               ORDER BY family LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map(params![last, limit], |row| row.get(0))?;
    let names = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut groups = Vec::new();
    for name in names {
        groups.extend(describe_group(database, &name)?);
    }
    Ok(groups)
}

fn describe_group(database: &Connection, group: &str) -> Result<Option<GroupSummary>, IndexError> {
    let sql = "SELECT repository.name, count(*) FROM kind
               JOIN home ON home.name = kind.name
               JOIN repository ON repository.id = home.repository
               WHERE kind.family = ?1 AND readable(repository.name)
               GROUP BY repository.name ORDER BY repository.name";
    let mut statement = database.prepare_cached(sql)?;
    let rows = statement.query_map([group], |row| row.get(0))?;
    let packages = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    if packages.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT count(DISTINCT kind.name) FROM kind
               JOIN home ON home.name = kind.name
               JOIN repository ON repository.id = home.repository
               WHERE kind.family = ?1 AND readable(repository.name)";
    let kinds: i64 = database.prepare_cached(sql)?.query_row([group], |row| row.get(0))?;
    let kinds = usize::try_from(kinds).unwrap_or_default();
    Ok(Some(GroupSummary { group: group.to_owned(), kinds, packages }))
}
