//! Walking a JSON document while remembering the path, so that a refusal can name the field.
//!
//! `null` and absence are the same here. Paths are built eagerly: metadata is one small document
//! per package, and plain code is worth more than the saved strings.

use super::MetaError;
use super::path::FieldPath;
use serde_json::Value as Json;

/// A place in a document that may hold nothing.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    value: Option<&'a Json>,
    path: FieldPath,
}

impl<'a> Cursor<'a> {
    /// The document itself, which must be a mapping.
    pub(super) fn root(document: &'a Json) -> Result<Self, MetaError> {
        let root = Self { value: Some(document), path: FieldPath::default() };
        match document {
            Json::Object(_) => Ok(root),
            _ => Err(root.wrong("a mapping")),
        }
    }

    /// The field `key` of the mapping at this place.
    pub(super) fn field(&self, key: &str) -> Result<Self, MetaError> {
        let value = match self.value {
            None => None,
            Some(Json::Object(entries)) => entries.get(key),
            Some(_) => return Err(self.wrong("a mapping")),
        };
        let value = value.filter(|value| !value.is_null());
        Ok(Self { value, path: self.path.key(key) })
    }

    /// Whether nothing stands here.
    pub(super) fn is_absent(&self) -> bool {
        self.value.is_none()
    }

    /// Whether a string stands here.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.value, Some(Json::String(_)))
    }

    /// The string at this place.
    pub(super) fn text(&self) -> Result<Option<&'a str>, MetaError> {
        match self.value {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong("a string")),
        }
    }

    /// The items of the list at this place; none when nothing stands here.
    pub(super) fn items(&self) -> Result<Vec<Self>, MetaError> {
        let items = match self.value {
            None => return Ok(Vec::new()),
            Some(Json::Array(items)) => items,
            Some(_) => return Err(self.wrong("a list")),
        };
        let item = |(index, value): (usize, &'a Json)| Self {
            value: Some(value).filter(|value| !value.is_null()),
            path: self.path.index(index),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// The list of strings at this place, telling absence from an empty list.
    pub(super) fn texts(&self) -> Result<Option<Vec<String>>, MetaError> {
        if self.is_absent() {
            return Ok(None);
        }
        let texts = self.items()?.into_iter();
        let owned = |item: Self| item.text().map(|text| text.unwrap_or_default().to_owned());
        texts.map(owned).collect::<Result<_, _>>().map(Some)
    }

    /// The mapping of strings to strings at this place.
    pub(super) fn text_entries(&self) -> Result<Vec<(String, String)>, MetaError> {
        let entries = match self.value {
            None => return Ok(Vec::new()),
            Some(Json::Object(entries)) => entries,
            Some(_) => return Err(self.wrong("a mapping")),
        };
        let read = |key: &String| -> Result<_, MetaError> {
            let value = self.field(key)?.text()?.unwrap_or_default();
            Ok((key.clone(), value.to_owned()))
        };
        entries.keys().map(read).collect()
    }

    fn wrong(&self, expected: &'static str) -> MetaError {
        let found = match self.value {
            None | Some(Json::Null) => "null",
            Some(Json::Bool(_)) => "a boolean",
            Some(Json::Number(_)) => "a number",
            Some(Json::String(_)) => "a string",
            Some(Json::Array(_)) => "a list",
            Some(Json::Object(_)) => "a mapping",
        };
        let path = self.path.clone();
        MetaError::WrongType { path, expected, found }
    }
}
