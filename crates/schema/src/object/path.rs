//! The part of `JSONPath` that printer columns and selectable fields use.

use serde_json::Value;

/// The values that `.spec.ports[?(@.name=="x")].port` and its like point at.
pub fn find<'a>(root: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![root];
    for step in steps(path) {
        found = found.into_iter().flat_map(|value| walk(value, &step)).collect();
    }
    found
}

enum Step {
    Field(String),
    Index(i64),
    All,
    Equals { path: String, value: String },
}

fn walk<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => {
            let Some(items) = value.as_array() else { return Vec::new() };
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *at < 0 { at.saturating_add(length) } else { *at };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        },
        Step::Equals { path, value: wanted } => {
            let fits = |item: &&'a Value| {
                find(item, path).first().is_some_and(|found| match found {
                    Value::String(text) => text == wanted,
                    other => other.to_string() == *wanted,
                })
            };
            value.as_array().map(|items| items.iter().filter(fits).collect()).unwrap_or_default()
        }
    }
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some((inside, after)) = split_bracket(after) else { return steps };
            steps.push(bracket(inside));
            rest = after;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let mut name = String::new();
        let mut end = rest.len();
        let mut characters = rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => name.extend(characters.next().map(|(_, c)| c)),
                '.' | '[' => {
                    end = at;
                    break;
                }
                _ => name.push(c),
            }
        }
        rest = &rest[end..];
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Field(name)),
        }
    }
    steps
}

/// Splits at the bracket that closes, minding quotes.
fn split_bracket(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, ']') => return Some((&text[..at], text[at..].strip_prefix(']')?)),
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Step {
    let inside = inside.trim();
    let unquote = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(filter) = inside.strip_prefix("?(").and_then(|text| text.strip_suffix(')'))
        && let Some((left, right)) = filter.split_once("==")
    {
        let path = left.trim().trim_start_matches('@').to_owned();
        return Step::Equals { path, value: unquote(right) };
    }
    match inside.parse::<i64>() {
        Ok(at) => Step::Index(at),
        Err(_) if inside == "*" || inside == ":" => Step::All,
        Err(_) => Step::Field(unquote(inside)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn printer_columns_find_their_values() {
        let object = json!({"status": {"conditions": [
            {"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]},
            "metadata": {"labels": {"a.b/c": "x"}}});
        let check = |path: &str, expect: Value| {
            assert_eq!(json!(find(&object, path)), expect, "{path}");
        };
        check(".status.conditions[?(@.type==\"Ready\")].status", json!(["True"]));
        check(".status.conditions[?(@.type=='Ready')].status", json!(["True"]));
        check(".status.conditions[0].type", json!(["Synced"]));
        check(".status.conditions[*].type", json!(["Synced", "Ready"]));
        check(".metadata.labels['a.b/c']", json!(["x"]));
        check(".metadata.labels.a\\.b/c", json!(["x"]));
        check(".spec.nothing", json!([]));
    }
}
