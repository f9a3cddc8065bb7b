//! What kubectl printed, without what must differ: identities, versions, times, addresses.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns and what stands for what they find; the order matters.
const RULES: &[(&str, &str)] = &[
    ("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000|Z)", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
    (r"[WE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "LOG "),
    (r#"resourceVersion"?: ?"\d+""#, "resourceVersion: VERSION"),
    (r"Resource Version: +\d+", "Resource Version: VERSION"),
    (r"\b\d+[smhd](\d+[smhd])?\b", "AGE"),
    (r"https://127\.0\.0\.1:\d+", "URL"),
    (r"\S*/(LIVE|MERGED)-\d+", "/$1"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"\b80:3\d{4}/TCP", "80:PORT/TCP"),
    (r"nodePort: \d+", "nodePort: PORT"),
    (r"NodePort: +(\S+) +\d+/TCP", "NodePort: $1 PORT/TCP"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"\bv1\.36\.4\+apron\b", "v1.36.4"),
    (r"[ \t]+", " "),
    (r"(?m) $", ""),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    RULES.iter().map(|(rule, stands)| (Regex::new(rule).unwrap(), *stands)).collect()
});

pub(super) fn normal(text: &str) -> String {
    let mut text = sorted(text);
    for (rule, stands) in COMPILED.iter() {
        text = rule.replace_all(&text, *stands).into_owned();
    }
    text
}

/// One JSON document, as `get --raw` prints it, with its keys in order.
fn sorted(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(mut value @ serde_json::Value::Object(_)) => {
            value.sort_all_objects();
            format!("{value}\n")
        }
        _ => text.to_owned(),
    }
}
