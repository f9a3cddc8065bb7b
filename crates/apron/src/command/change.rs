//! What a command did to an object of a cluster, told in the words of whoever asked.

use crate::cluster::Cluster;
use crate::failure::Outcome;
use crate::output::{self, ObjectFormat};
use serde_json::{Value as Json, json};

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// A user of apron, in a form.
    Apron(ObjectFormat),
    /// A user of upstream's CLI.
    Crossplane,
    /// A user of the guide's plugin.
    Kubectl,
}

/// One change.
pub(crate) struct Change {
    /// What the older tools call it: `created`, `updated`.
    pub(crate) word: &'static str,
    /// What we call it.
    pub(crate) said: &'static str,
    /// Its kind, as people write it.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// What comes after our word for it.
    pub(crate) detail: String,
    /// The object as it is now.
    pub(crate) object: Json,
}

/// Tells several changes: each by itself in words, all in one document to programs, as kubectl does.
pub(crate) fn tell_all(changes: &[Change], format: ObjectFormat, cluster: &Cluster) -> Outcome {
    match (format, changes) {
        (ObjectFormat::Json, [_, _, ..]) => output::print_json(&list(changes)),
        (ObjectFormat::Yaml, [_, _, ..]) => output::print_yaml(&list(changes)),
        _ => changes.iter().try_for_each(|one| one.tell(Voice::Apron(format), cluster)),
    }
}

/// Several objects as one.
fn list(changes: &[Change]) -> Json {
    let items: Vec<Json> = changes.iter().map(Change::shown).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

impl Change {
    /// The object as people want to see it: without the book that API servers keep on who wrote
    /// which field.
    fn shown(&self) -> Json {
        let mut object = self.object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object
    }

    /// The API group of the object; that of packages, if it does not say.
    fn group<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        let written = self.object["apiVersion"].as_str().and_then(|it| it.split_once('/'));
        match written {
            Some((group, _)) => group,
            None => &cluster.group,
        }
    }

    /// Tells it.
    pub(crate) fn tell(&self, voice: Voice, cluster: &Cluster) -> Outcome {
        let (kind, name, word) = (&self.kind, &self.name, self.word);
        match voice {
            Voice::Crossplane => output::print(format_args!("{kind}/{name} {word}")),
            Voice::Kubectl => {
                output::print(format_args!("{kind}.{}/{name} {word}", self.group(cluster)));
            }
            Voice::Apron(ObjectFormat::Text | ObjectFormat::Wide) => {
                output::print(format_args!("{} {}", self.said, self.detail));
            }
            Voice::Apron(ObjectFormat::Name) => {
                output::print(format_args!("{kind}.{}/{name}", self.group(cluster)));
            }
            Voice::Apron(ObjectFormat::Json) => return output::print_json(&self.shown()),
            Voice::Apron(ObjectFormat::Yaml) => return output::print_yaml(&self.shown()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_objects_are_one_document_without_the_book_on_fields() {
        let change = |name: &str| Change {
            word: "deleted",
            said: "uninstalled",
            kind: "provider".to_owned(),
            name: name.to_owned(),
            detail: String::new(),
            object: json!({"metadata": {"name": name, "managedFields": [{"manager": "m"}]}}),
        };
        let items = json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]);
        let expected = json!({"apiVersion": "v1", "kind": "List", "items": items});
        assert_eq!(list(&[change("a"), change("b")]), expected);
    }
}
