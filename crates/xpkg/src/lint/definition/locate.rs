//! Where the field that a path means stands in a document.

use yaml::{Node, Position, Value};

/// Where a field stands.
#[derive(Clone, Copy)]
pub(super) struct FieldPosition {
    /// Where an author looks: at the key of a mapping or list, else at the value.
    pub(super) shown: Position,
    /// Where the value begins.
    pub(super) value: Position,
}

/// Finds a field; the nearest field around it, if the document does not have it.
///
/// Paths are texts such as `spec.versions[0].schema.openAPIV3Schema.properties[a.b].type`: what is in
/// brackets may hold dots and brackets itself, so the document decides how a path is read.
pub(super) fn find_field(node: &Node<'_>, path: &str) -> FieldPosition {
    let (mut here, mut rest, mut shown) = (node, path, node.position);
    while !rest.is_empty() {
        let Some((next, position, after)) = step_into(here, rest) else { break };
        (here, rest, shown) = (next, after, position);
    }
    FieldPosition { shown, value: here.position }
}

/// One step along a path: the node, its position, and the rest of the path.
fn step_into<'n, 'a, 'p>(
    node: &'n Node<'a>,
    path: &'p str,
) -> Option<(&'n Node<'a>, Position, &'p str)> {
    match &node.value {
        Value::Sequence(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some((item, item.position, rest))
        }
        Value::Mapping(entries) => {
            let found = entries.iter().filter_map(|entry| {
                let rest = match path.strip_prefix('[') {
                    Some(path) => path.strip_prefix(entry.key.as_ref())?.strip_prefix(']')?,
                    None => {
                        path.strip_prefix('.').unwrap_or(path).strip_prefix(entry.key.as_ref())?
                    }
                };
                let is_whole = rest.is_empty() || rest.starts_with(['.', '[']);
                is_whole.then_some((entry, rest))
            });
            // Of keys that fit, the longest says most: `a` and `a.b` both begin the path `a.b`.
            let (entry, rest) = found.min_by_key(|(_, rest)| rest.len())?;
            let holds_more = matches!(entry.value.value, Value::Sequence(_) | Value::Mapping(_));
            let at = if holds_more { entry.position } else { entry.value.position };
            Some((&entry.value, at, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_positions() {
        let text = "spec:\n  list:\n  - a: 1\n    b: {c: 2}\n  properties:\n    a.b: {type: x}\n    'a': {}\n    'a]': {k: 1}\n";
        let node = yaml::parse(text, 1, &yaml::Limits::default()).unwrap();
        for (path, line, column) in [
            ("", 1, 1),
            ("status", 1, 1),
            ("spec", 1, 1),
            ("spec.nothing.at.all", 1, 1),
            ("spec.list[0]", 3, 5),
            ("spec.list[0].a", 3, 8),
            ("spec.list[0].b", 4, 5),
            ("spec.list[0].b.c", 4, 12),
            ("spec.list[7].b.c", 2, 3),
            ("spec.properties[a.b].type", 6, 17),
            ("spec.properties[a].type", 7, 5),
            ("spec.properties[a]].k", 8, 15),
        ] {
            let found = find_field(&node, path).shown;
            assert_eq!((found.line, found.column), (line, column), "{path}");
        }
    }
}
