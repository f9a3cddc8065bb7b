//! Lists and sets.

use std::cmp::Ordering;

use super::super::meter::Meter;
use super::super::value::{Result, Text, Trouble, Val, contains};
use super::strings;
use crate::ListType;

/// The longest list `lists.range` makes.
const RANGE_MAX: i64 = 1_000_000;

pub(super) fn call<'a>(name: &str, args: &[Val<'a>], meter: &Meter) -> Result<Val<'a>> {
    if let ("lists.range", [Val::Int(count)]) = (name, args) {
        return Ok(Val::list((0..*count.min(&RANGE_MAX)).map(Val::Int).collect()));
    }
    let [list, rest @ ..] = args else { return Err(Trouble::overload()) };
    let end = match name {
        "first" if rest.is_empty() => Some(0),
        "last" if rest.is_empty() => Some(list.size().saturating_sub(1)),
        _ => None,
    };
    if let Some(at) = end {
        return Ok(list.item(at, meter)?.map_or(Val::Optional(None), Val::some));
    }
    let items = list.items(meter)?;
    match (name, rest) {
        ("join", []) => strings::join(&items, &Text::Borrowed(""), meter),
        ("join", [Val::String(by)]) => strings::join(&items, by, meter),
        ("indexOf", [wanted]) => position(items.iter().enumerate(), wanted, meter),
        ("lastIndexOf", [wanted]) => position(items.iter().enumerate().rev(), wanted, meter),
        ("isSorted", []) => is_sorted(&items, meter).map(Val::Bool),
        ("sum", []) => sum(&items),
        ("max", []) => extreme(&items, Ordering::Greater, "max", meter),
        ("min", []) => extreme(&items, Ordering::Less, "min", meter),
        ("slice", [Val::Int(from), Val::Int(to)]) => slice(&items, *from, *to),
        ("flatten", []) => flatten(&items, 1, meter).map(Val::list),
        ("flatten", [Val::Int(depth)]) => {
            if *depth < 0 {
                return Err(Trouble::new("level must be non-negative"));
            }
            flatten(&items, usize::try_from(*depth).unwrap_or(0), meter).map(Val::list)
        }
        ("distinct", []) => distinct(items, meter),
        ("reverse", []) => Ok(Val::list(items.into_iter().rev().collect())),
        ("sort", []) => {
            let keyed = items.into_iter().map(|item| (item.clone(), item)).collect();
            sorted(keyed, meter).map(Val::list)
        }
        ("sets.contains", [other]) => all_in(&other.items(meter)?, &items, meter).map(Val::Bool),
        ("sets.equivalent", [other]) => {
            let other = other.items(meter)?;
            Ok(Val::Bool(all_in(&other, &items, meter)? && all_in(&items, &other, meter)?))
        }
        ("sets.intersects", [other]) => {
            for item in &other.items(meter)? {
                if contains(&items, item, meter)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        _ => Err(Trouble::overload()),
    }
}

fn all_in(wanted: &[Val<'_>], items: &[Val<'_>], meter: &Meter) -> Result<bool> {
    for item in wanted {
        if !contains(items, item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn position<'a, 'b>(
    items: impl Iterator<Item = (usize, &'b Val<'a>)>,
    wanted: &Val<'a>,
    meter: &Meter,
) -> Result<Val<'a>>
where
    'a: 'b,
{
    for (at, item) in items {
        if item.equals(wanted, meter)? {
            return Ok(Val::int(at));
        }
    }
    Ok(Val::Int(-1))
}

fn is_sorted(items: &[Val<'_>], meter: &Meter) -> Result<bool> {
    for pair in items.windows(2) {
        let [a, b] = pair else { continue };
        match a.compare_within(b, meter)? {
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

fn extreme<'a>(items: &[Val<'a>], wanted: Ordering, name: &str, meter: &Meter) -> Result<Val<'a>> {
    let mut best: Option<&Val<'a>> = None;
    for item in items {
        match best {
            None => best = Some(item),
            Some(so_far) => match item.compare_within(so_far, meter)? {
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

fn flatten<'a>(items: &[Val<'a>], depth: usize, meter: &Meter) -> Result<Vec<Val<'a>>> {
    let mut out = Vec::new();
    for item in items {
        match item {
            Val::Items(..) | Val::List(_) if depth > 0 => {
                out.extend(flatten(&item.items(meter)?, depth - 1, meter)?);
            }
            other => {
                meter.copy(1)?;
                out.push(other.clone());
            }
        }
    }
    Ok(out)
}

fn distinct<'a>(items: Vec<Val<'a>>, meter: &Meter) -> Result<Val<'a>> {
    let mut out = Vec::new();
    for item in items {
        if !contains(&out, &item, meter)? {
            out.push(item);
        }
    }
    Ok(Val::list(out))
}

/// Items by their keys. Nothing can stop a sort halfway, so it is paid for before: each key is
/// compared as often as the number of items has digits.
pub(crate) fn sorted<'a>(
    mut keyed: Vec<(Val<'a>, Val<'a>)>,
    meter: &Meter,
) -> Result<Vec<Val<'a>>> {
    let rounds = usize::try_from(keyed.len().checked_ilog2().unwrap_or(0)).unwrap_or(0) + 1;
    let bytes = keyed.iter().map(|(key, _)| key.bytes()).fold(0, usize::saturating_add);
    meter.work(keyed.len().saturating_mul(rounds))?;
    meter.scan(bytes.saturating_mul(rounds))?;
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
pub(super) fn joined<'a>(a: &Val<'a>, b: &Val<'a>, meter: &Meter) -> Result<Val<'a>> {
    let (mut items, more) = (a.items(meter)?, b.items(meter)?);
    match a.list_type() {
        Some(ListType::Set) => {
            for item in more {
                if !contains(&items, &item, meter)? {
                    items.push(item);
                }
            }
        }
        Some(ListType::Map(keys)) => {
            for item in more {
                let mut same = None;
                for (at, mine) in items.iter().enumerate() {
                    if same_keys(mine, &item, keys, meter)? {
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

fn same_keys(
    a: &Val<'_>,
    b: &Val<'_>,
    keys: &[std::sync::Arc<str>],
    meter: &Meter,
) -> Result<bool> {
    for key in keys {
        let key = super::super::escape(key).unwrap_or_else(|| key.to_string());
        let (mine, theirs) = (Val::text(key.clone()), Val::text(key));
        let same = match (a.find(&mine, meter)?, b.find(&theirs, meter)?) {
            (Some(a), Some(b)) => a.equals(&b, meter)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
