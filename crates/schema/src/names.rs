//! Names, labels and the sentences about wrong ones

use std::sync::LazyLock;

use super::pattern::Pattern;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

macro_rules! whole {
    ($($name:ident = $source:expr;)*) => {
        $(static $name: LazyLock<Pattern> =
            LazyLock::new(|| Pattern::new(&format!("^{}$", $source)));)*
    };
}

whole! {
    LABEL_RE = LABEL;
    LABEL_1035_RE = LABEL_1035;
    SUBDOMAIN_RE = SUBDOMAIN;
    LABEL_KEY_RE = LABEL_KEY;
    LABEL_VALUE_RE = LABEL_VALUE;
}

fn too_long(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

fn regex_error(sentence: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{sentence} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// What is wrong with a DNS label (RFC 1123).
pub fn label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(too_long(63));
    }
    if !LABEL_RE.matches(value) {
        errors.push(if SUBDOMAIN_RE.matches(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// What is wrong with a DNS label that starts with a letter (RFC 1035).
pub fn label_1035(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(too_long(63));
    }
    if !LABEL_1035_RE.matches(value) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// What is wrong with a DNS subdomain.
pub fn subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 253 {
        errors.push(too_long(253));
    }
    if !SUBDOMAIN_RE.matches(value) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    errors
}

/// What is wrong with a label key, a qualified name.
pub fn label_key(value: &str) -> Vec<String> {
    let sentence = || {
        regex_error(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            LABEL_KEY,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut errors = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(subdomain(prefix).iter().map(|error| format!("prefix part {error}")));
            }
            *name
        }
        _ => {
            let example =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {example}", sentence())];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_long(63)));
    }
    if !LABEL_KEY_RE.matches(name) {
        errors.push(format!("name part {}", sentence()));
    }
    errors
}

/// What is wrong with the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(too_long(63));
    }
    if !LABEL_VALUE_RE.matches(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// What is wrong with a name that becomes part of a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// What is wrong with the beginning of such a name.
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    let banned = ["/", "%"].into_iter().filter(|part| name.contains(part));
    banned.map(|part| format!("may not contain '{part}'")).collect()
}
