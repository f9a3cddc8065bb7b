//! Stored texts as answers, without reading them.
//!
//! Reading every object into a tree and writing it again is most of what a long list costs. What
//! is stored of a built-in kind is what is shown; only its version is missing, and goes in where
//! the metadata starts.

use serde_json::{Value, json};

use super::Request;
use super::list::Selection;
use super::store::{self, set_version, storage};
use crate::http::negotiate::Form;
use crate::http::status::Failure;
use crate::kind::{Kind, event};
use crate::log::Entry;

/// A copy that starts with what it is, and its metadata: what [`Splice`] looks for.
pub(super) fn ordered(object: &Value) -> Value {
    const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];
    let Value::Object(map) = object else { return object.clone() };
    let first = FIRST.iter().filter_map(|field| map.get_key_value(*field));
    let rest = map.iter().filter(|(field, _)| !FIRST.contains(&field.as_str()));
    first.chain(rest).map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// Stored texts as answers, without reading them: possible for kinds whose objects are shown as
/// they are stored. Only their version has to be put in, and what they are to be right.
pub(super) struct Splice {
    stored: String,
    shown: String,
}

impl Splice {
    /// For kinds that need nothing done to their objects.
    pub(super) fn new(kind: &Kind) -> Option<Self> {
        if kind.custom || kind.conversion.is_some() || event::is_newer(kind) {
            return None;
        }
        let head =
            |version: &Value| format!("{{\"kind\":{},\"apiVersion\":{version},", json!(kind.kind));
        Some(Self { stored: head(&storage(kind)), shown: head(&json!(kind.api_version())) })
    }

    /// Writes an object; `None` if its text is not what is expected.
    pub(super) fn object(&self, entry: &Entry, out: &mut Vec<u8>) -> Option<()> {
        out.extend(self.shown.as_bytes());
        self.rest(entry, out)
    }

    /// Writes an object of a list, which does not say what it is.
    pub(super) fn item(&self, entry: &Entry, out: &mut Vec<u8>) -> Option<()> {
        out.push(b'{');
        self.rest(entry, out)
    }

    /// An object with nothing but its metadata; the rest of its text is not read.
    fn metadata(&self, entry: &Entry) -> Option<Value> {
        let text = entry.value.strip_prefix(self.stored.as_bytes())?;
        let text = text.strip_prefix(b"\"metadata\":")?;
        let metadata = serde_json::Deserializer::from_slice(text).into_iter::<Value>().next();
        let mut object = json!({"metadata": metadata?.ok().filter(Value::is_object)?});
        set_version(&mut object, entry.version);
        Some(object)
    }

    fn rest(&self, entry: &Entry, out: &mut Vec<u8>) -> Option<()> {
        const METADATA: &[u8] = b"\"metadata\":{";
        let rest = entry.value.strip_prefix(self.stored.as_bytes())?.strip_prefix(METADATA)?;
        out.extend(METADATA);
        out.extend(format!("\"resourceVersion\":\"{}\"", entry.version).as_bytes());
        if !rest.starts_with(b"}") {
            out.push(b',');
        }
        out.extend(rest);
        Some(())
    }
}

/// How stored objects are read for an answer: whole, or, where that is all that is asked for,
/// their metadata alone.
pub(super) struct Reader<'a> {
    kind: &'a Kind,
    head: Option<Splice>,
}

impl<'a> Reader<'a> {
    /// For those who see what they selected in the form they asked for.
    pub(super) fn new(request: &'a Request, selection: &Selection) -> Self {
        let is_enough = request.form == Form::Metadata && selection.is_by_metadata();
        let head = if is_enough { Splice::new(&request.kind) } else { None };
        Self { kind: &request.kind, head }
    }

    /// For those who need all of each object.
    pub(super) fn whole(kind: &'a Kind) -> Self {
        Self { kind, head: None }
    }

    /// Whether only metadata is read.
    pub(super) fn is_brief(&self) -> bool {
        self.head.is_some()
    }

    /// An object.
    pub(super) fn open(&self, entry: &Entry) -> Result<Value, Failure> {
        let brief = self.head.as_ref().and_then(|head| head.metadata(entry));
        brief.map_or_else(|| store::open(self.kind, entry), Ok)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn spliced(text: &str) -> Option<(String, String)> {
        let kinds = crate::kind::Kinds::new();
        let kind = kinds.find("apps", "v1", "deployments").unwrap();
        let splice = Splice::new(&kind).unwrap();
        let entry = Entry { version: 7, value: Bytes::from(text.to_owned()) };
        let (mut object, mut item) = (Vec::new(), Vec::new());
        splice.object(&entry, &mut object)?;
        splice.item(&entry, &mut item)?;
        Some((String::from_utf8(object).unwrap(), String::from_utf8(item).unwrap()))
    }

    #[test]
    fn stored_texts_become_answers_by_putting_in_their_version() {
        let head = r#"{"kind":"Deployment","apiVersion":"apps/v1","#;
        let (object, item) =
            spliced(&format!(r#"{head}"metadata":{{"name":"a"}},"spec":{{}}}}"#)).unwrap();
        let rest = r#""metadata":{"resourceVersion":"7","name":"a"},"spec":{}}"#;
        assert_eq!(object, format!("{head}{rest}"));
        assert_eq!(item, format!("{{{rest}"));
        let (object, _) = spliced(&format!(r#"{head}"metadata":{{}}}}"#)).unwrap();
        assert_eq!(object, format!(r#"{head}"metadata":{{"resourceVersion":"7"}}}}"#));
    }

    #[test]
    fn metadata_is_read_without_the_rest() {
        let kinds = crate::kind::Kinds::new();
        let kind = kinds.find("apps", "v1", "deployments").unwrap();
        let splice = Splice::new(&kind).unwrap();
        let read = |text: &str| {
            let value = Bytes::from(text.to_owned());
            splice.metadata(&Entry { version: 7, value })
        };
        let head = r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":"#;
        let object = read(&format!(r#"{head}{{"name":"a","labels":{{"b":"}}"}}}},"spec":@"#));
        let metadata = json!({"name": "a", "labels": {"b": "}"}, "resourceVersion": "7"});
        assert_eq!(object, Some(json!({"metadata": metadata})));
        assert_eq!(read(&format!("{head}7}}")), None);
        assert_eq!(read(r#"{"metadata":{}}"#), None);
    }

    #[test]
    fn texts_that_start_otherwise_are_read_instead() {
        assert_eq!(spliced(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{}}"#), None);
        assert_eq!(spliced("{}"), None);
    }

    #[test]
    fn what_is_stored_starts_with_what_it_is() {
        let kinds = crate::kind::Kinds::new();
        let kind = kinds.find("", "v1", "configmaps").unwrap();
        let object = json!({
            "data": {"a": "b"}, "metadata": {"name": "a", "resourceVersion": "3"},
            "apiVersion": "v1", "kind": "ConfigMap",
        });
        let stored = crate::rest::close(&kind, &object);
        let text =
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"b"}}"#;
        assert_eq!(stored, text.as_bytes());
    }
}
