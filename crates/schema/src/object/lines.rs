//! YAML from clients, told of in the words of Go's library.

use serde_json::Value;
use yaml::Limits;

/// What one body may ask for. It has at most three megabytes, so only what it can multiply is
/// bounded closer than that.
const LIMITS: Limits = Limits {
    document_bytes_max: 3 << 20,
    documents_max: 1,
    depth_max: 100,
    nodes_max: 1_000_000,
    aliases_max: 10_000,
    alias_bytes_max: 8 << 20,
};

/// What precedes the keys that are set twice.
const REPEATED: &str = "yaml: unmarshal errors:\n";

/// Parses the first document; says which keys were set twice, if any were.
pub fn parse(text: &[u8]) -> Result<(Value, Option<String>), String> {
    let text = std::str::from_utf8(text).map_err(|_| "yaml: invalid leading UTF-8 octet")?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (node, repeated) = yaml::parse_body(text, &LIMITS).map_err(|error| error.in_go_words())?;
    let lines: Vec<String> = repeated.iter().map(|one| format!("  {one}")).collect();
    let odd = (!lines.is_empty()).then(|| format!("{REPEATED}{}", lines.join("\n")));
    let mut value = node.to_json();
    // Upstream goes through a map here, and tells what is wrong in the order of its keys.
    value.sort_all_objects();
    Ok((value, odd))
}

/// One thing that is odd about a body as the warnings it makes: each repeated key is one.
pub fn warnings(odd: String) -> Vec<String> {
    match odd.split_once(REPEATED) {
        Some((_, lines)) => lines.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![odd],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_set_twice_are_one_error_and_many_warnings() {
        let (value, odd) = parse(b"a: 1\na: 2\nb: on\nb: 1.0\n").unwrap();
        assert_eq!(value.to_string(), r#"{"a":2,"b":1}"#);
        let odd = odd.unwrap();
        let line =
            |number: u32, key: &str| format!("line {number}: key {key:?} already set in map");
        assert_eq!(odd, format!("{REPEATED}  {}\n  {}", line(2, "a"), line(4, "b")));
        assert_eq!(warnings(odd), [line(2, "a"), line(4, "b")]);
        assert_eq!(warnings("unknown field".to_owned()), ["unknown field"]);
    }

    #[test]
    fn bombs_are_refused_early() {
        let line = |level: u32| {
            let before = format!("*a{}, ", level - 1).repeat(10);
            format!("a{level}: &a{level} [{before}]\n")
        };
        let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        let bomb: String = std::iter::once(first).chain((1..12).map(line)).collect();
        let said = parse(bomb.as_bytes()).unwrap_err();
        assert_eq!(said, "yaml: document contains excessive aliasing");
        assert!(parse(b"\xff").is_err() && parse("[".repeat(200).as_bytes()).is_err());
    }
}
