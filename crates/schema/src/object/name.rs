//! Which names are allowed, and what is said about the others.

/// The grammar a kind's names follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Dots allowed: most kinds.
    Subdomain,
    /// No dots: namespaces.
    Label,
    /// No dots, starts with a letter: services.
    Label1035,
    /// Anything that fits between two slashes: RBAC.
    Segment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// What is wrong with `name`, in order; nothing when it is fine.
pub fn check(rule: NameRule, name: &str) -> Vec<String> {
    let too_long =
        |max: usize| (name.len() > max).then(|| format!("must be no more than {max} characters"));
    let against = |fine: bool, text: &str| (!fine).then(|| text.to_owned());
    match rule {
        NameRule::Subdomain => [too_long(253), against(name.split('.').all(is_label), SUBDOMAIN)],
        NameRule::Label if name.contains('.') => {
            [too_long(63), Some("must not contain dots".to_owned())]
        }
        NameRule::Label => [too_long(63), against(is_label(name), LABEL)],
        NameRule::Label1035 => {
            let alphabetic = name.starts_with(|c: char| c.is_ascii_lowercase());
            [too_long(63), against(alphabetic && is_label(name), LABEL_1035)]
        }
        NameRule::Segment => [segment(name), None],
    }
    .into_iter()
    .flatten()
    .collect()
}

/// Whether this is a DNS label in lower case.
pub fn is_label(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(name.chars().next())
        && edge(name.chars().next_back())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ => ["/", "%"]
            .iter()
            .find(|bad| name.contains(**bad))
            .map(|bad| format!("may not contain '{bad}'")),
    }
}

const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
    'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a label's key (`prefix/name`).
pub fn check_qualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) => {
            if name.contains('/') {
                return vec![
                    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', \
                     and must start and end with an alphanumeric character (e.g. 'MyName',  or \
                     'my.name',  or '123-abc', regex used for validation is \
                     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain \
                     prefix and '/' (e.g. 'example.com/MyName')"
                        .to_owned(),
                ];
            }
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                let faults = check(NameRule::Subdomain, prefix);
                wrong.extend(faults.into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        wrong.push(QUALIFIED.to_owned());
    }
    wrong
}

/// What is wrong with a label's value.
pub fn check_label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_word(value) {
        wrong.push(VALUE.to_owned());
    }
    wrong
}

fn is_word(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
