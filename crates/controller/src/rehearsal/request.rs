//! What requests to an API server are about, and what its changes come to.

use serde_json::{Map, Value as Json, json};

/// Objects of one kind, and one of them if it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) is_status: bool,
}

impl Place {
    /// The objects that an address means; none if it means something else.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let group = match *parts.first()? {
            "api" if parts.len() > 2 => String::new(),
            "apis" if parts.len() > 3 => parts.remove(1).to_owned(),
            _ => return None,
        };
        parts.drain(..2);
        let mut namespace = None;
        if parts[0] == "namespaces" && parts.len() > 2 {
            namespace = Some(parts[1].to_owned());
            parts.drain(..2);
        }
        let is_status = parts.get(2) == Some(&"status");
        let name = parts.get(1).map(|name| (*name).to_owned());
        Some(Self { group, plural: parts[0].to_owned(), namespace, name, is_status })
    }
}

/// Whether an object has the labels that a selector of the form `a=b,c=d` names.
pub(super) fn is_selected(object: &Json, selector: Option<&str>) -> bool {
    let mut wanted = selector.into_iter().flat_map(|it| it.split(',')).filter(|it| !it.is_empty());
    wanted.all(|one| {
        let (key, value) = one.split_once('=').unwrap_or((one, ""));
        object["metadata"]["labels"][key] == value.trim_start_matches('=')
    })
}

/// A merge patch, as RFC 7386 has it.
pub(super) fn merge(under: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *under = patch.clone();
        return;
    };
    if !under.is_object() {
        *under = Json::Object(Map::new());
    }
    let Json::Object(fields) = under else { return };
    for (field, value) in patch {
        if value.is_null() {
            fields.remove(field);
        } else {
            merge(fields.entry(field.clone()).or_insert(Json::Null), value);
        }
    }
}

/// What an API server answers when it will not do something.
pub(super) fn failure(code: u16, reason: &str, message: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_mean_objects() {
        let check = |path: &str, expected: Option<[&str; 4]>| {
            let found = Place::parse(path).map(|it| {
                let part = |one: Option<String>| one.unwrap_or_default();
                [it.group, it.plural, part(it.namespace), part(it.name)]
            });
            assert_eq!(found, expected.map(|it| it.map(str::to_owned)), "{path}");
        };
        check("/api/v1", None);
        check("/apis/apps/v1", None);
        check("/version", None);
        check("/api/v1/namespaces", Some(["", "namespaces", "", ""]));
        check("/api/v1/namespaces/a", Some(["", "namespaces", "", "a"]));
        check("/api/v1/namespaces/a/secrets", Some(["", "secrets", "a", ""]));
        check("/apis/apps/v1/namespaces/a/deployments/b", Some(["apps", "deployments", "a", "b"]));
        check("/apis/g.io/v1/things/b/status", Some(["g.io", "things", "", "b"]));
        assert!(Place::parse("/apis/g.io/v1/things/b/status").is_some_and(|it| it.is_status));
    }

    #[test]
    fn patches_change_what_they_name() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "l": [1]});
        merge(&mut object, &json!({"a": {"b": null, "d": 3}, "l": [2, 3]}));
        assert_eq!(object, json!({"a": {"c": 2, "d": 3}, "l": [2, 3]}));
    }

    #[test]
    fn selectors_choose_by_label() {
        let object = json!({"metadata": {"labels": {"a": "b"}}});
        for (selector, expected) in
            [(None, true), (Some("a=b"), true), (Some("a=c"), false), (Some("a=b,d=e"), false)]
        {
            assert_eq!(is_selected(&object, selector), expected, "{selector:?}");
        }
    }
}
