//! Lists and sets.

use std::cmp::Ordering;

use super::super::value::{Result, Text, Trouble, Val, contains};
use super::strings;
use crate::schema::ListType;

/// The longest list `lists.range` makes.
const RANGE_MAX: i64 = 1_000_000;

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    if let ("lists.range", [Val::Int(count)]) = (name, args) {
        return Ok(Val::list((0..*count.min(&RANGE_MAX)).map(Val::Int).collect()));
    }
    let [list, rest @ ..] = args else { return Err(Trouble::overload()) };
    let items = list.items()?;
    match (name, rest) {
        ("join", []) => strings::join(&items, &Text::Borrowed("")),
        ("join", [Val::String(by)]) => strings::join(&items, by),
        ("indexOf", [wanted]) => position(items.iter().enumerate(), wanted),
        ("lastIndexOf", [wanted]) => position(items.iter().enumerate().rev(), wanted),
        ("isSorted", []) => is_sorted(&items).map(Val::Bool),
        ("sum", []) => sum(&items),
        ("max", []) => extreme(&items, Ordering::Greater, "max"),
        ("min", []) => extreme(&items, Ordering::Less, "min"),
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(&items, *from, *to),
        ("flatten", []) => flatten(&items, 1).map(Val::list),
        ("flatten", [Val::Int(depth)]) => {
            if *depth < 0 {
                return Err(Trouble::new("level must be non-negative"));
            }
            flatten(&items, usize::try_from(*depth).unwrap_or(0)).map(Val::list)
        }
        ("distinct", []) => distinct(items),
        ("reverse", []) => Ok(Val::list(items.into_iter().rev().collect())),
        ("sort", []) => {
            sorted(items.into_iter().map(|item| (item.clone(), item)).collect()).map(Val::list)
        }
        ("first", []) => Ok(items.into_iter().next().map_or(Val::Optional(None), Val::some)),
        ("last", []) => Ok(items.into_iter().next_back().map_or(Val::Optional(None), Val::some)),
        ("sets.contains", [other]) => all_in(&other.items()?, &items).map(Val::Bool),
        ("sets.equivalent", [other]) => {
            let other = other.items()?;
            Ok(Val::Bool(all_in(&other, &items)? && all_in(&items, &other)?))
        }
        ("sets.intersects", [other]) => {
            for item in &other.items()? {
                if contains(&items, item)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        _ => Err(Trouble::overload()),
    }
}

fn all_in(wanted: &[Val<'_>], items: &[Val<'_>]) -> Result<bool> {
    for item in wanted {
        if !contains(items, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn position<'a, 'b>(
    items: impl Iterator<Item = (usize, &'b Val<'a>)>,
    wanted: &Val<'a>,
) -> Result<Val<'a>>
where
    'a: 'b,
{
    for (at, item) in items {
        if item.equals(wanted)? {
            return Ok(Val::int(at));
        }
    }
    Ok(Val::Int(-1))
}

fn is_sorted(items: &[Val<'_>]) -> Result<bool> {
    for pair in items.windows(2) {
        let [a, b] = pair else { continue };
        match a.compare(b) {
            Some(Ordering::Greater) => return Ok(false),
            Some(_) => {}
            None => return Err(Trouble::overload()),
        }
    }
    Ok(true)
}

fn sum<'a>(items: &[Val<'a>]) -> Result<Val<'a>> {
    let Some((first, rest)) = items.split_first() else { return Ok(Val::Int(0)) };
    let mut total = first.clone();
    for item in rest {
        total = super::numbers::arithmetic("_+_", &[total, item.clone()])?;
    }
    Ok(total)
}

fn extreme<'a>(items: &[Val<'a>], wanted: Ordering, name: &str) -> Result<Val<'a>> {
    let mut best: Option<&Val<'a>> = None;
    for item in items {
        match best {
            None => best = Some(item),
            Some(so_far) => match item.compare(so_far) {
                Some(order) if order == wanted => best = Some(item),
                Some(_) => {}
                None => return Err(Trouble::overload()),
            },
        }
    }
    best.cloned().ok_or_else(|| Trouble::new(format!("{name} called on empty list")))
}

fn slice<'a>(items: &[Val<'a>], from: i64, to: i64) -> Result<Val<'a>> {
    let text = |why: &str| Err(Trouble::new(format!("cannot slice({from}, {to}), {why}")));
    if from < 0 || to < 0 {
        return text("negative indexes not supported");
    }
    if from > to {
        return text("start index must be less than or equal to end index");
    }
    let range = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(usize::MAX);
    match items.get(range) {
        Some(part) => Ok(Val::list(part.to_vec())),
        None => text(&format!("list is length {}", items.len())),
    }
}

fn flatten<'a>(items: &[Val<'a>], depth: usize) -> Result<Vec<Val<'a>>> {
    let mut out = Vec::new();
    for item in items {
        match item {
            Val::Items(..) | Val::List(_) if depth > 0 => {
                out.extend(flatten(&item.items()?, depth - 1)?);
            }
            other => out.push(other.clone()),
        }
    }
    Ok(out)
}

fn distinct(items: Vec<Val<'_>>) -> Result<Val<'_>> {
    let mut out = Vec::new();
    for item in items {
        if !contains(&out, &item)? {
            out.push(item);
        }
    }
    Ok(Val::list(out))
}

/// Items by their keys.
pub(crate) fn sorted<'a>(mut keyed: Vec<(Val<'a>, Val<'a>)>) -> Result<Vec<Val<'a>>> {
    let mut comparable = true;
    keyed.sort_by(|(a, _), (b, _)| {
        a.compare(b).unwrap_or_else(|| {
            comparable = false;
            Ordering::Equal
        })
    });
    if !comparable {
        return Err(Trouble::new("list elements must be comparable"));
    }
    Ok(keyed.into_iter().map(|(_, item)| item).collect())
}

/// One list after the other; a set takes only what it has not, a map replaces what it has.
pub(super) fn joined<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>> {
    let (mut items, more) = (a.items()?, b.items()?);
    match a.list_type() {
        Some(ListType::Set) => {
            for item in more {
                if !contains(&items, &item)? {
                    items.push(item);
                }
            }
        }
        Some(ListType::Map(keys)) => {
            for item in more {
                let mut same = None;
                for (at, mine) in items.iter().enumerate() {
                    if same_keys(mine, &item, keys)? {
                        same = Some(at);
                    }
                }
                match same {
                    Some(at) => items[at] = item,
                    None => items.push(item),
                }
            }
        }
        _ => items.extend(more),
    }
    Ok(Val::list(items))
}

fn same_keys(a: &Val<'_>, b: &Val<'_>, keys: &[std::sync::Arc<str>]) -> Result<bool> {
    for key in keys {
        let key = super::super::escape(key).unwrap_or_else(|| key.to_string());
        let same = match (a.find(&Val::text(key.clone()))?, b.find(&Val::text(key))?) {
            (Some(a), Some(b)) => a.equals(&b)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
