//! `metadata.managedFields`: who owns what.
//!
//! One [`Entry`] per manager, operation, subresource and, for updates, version. The server keys
//! entries by a small JSON text of exactly these ([`Entry::identity`]) and breaks ties by it, so
//! it is kept here as the key of the map.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fieldpath::{FieldsError, Set};
use super::golang::{self, Style};
use super::time::Timestamp;

/// The most entries made by updates; older ones are thrown together.
pub const UPDATE_MANAGERS_MAX: usize = 10;

/// The manager of entries thrown together.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    /// The text of the `operation` field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The manager's name.
    pub manager: String,
    /// How it came to own its fields.
    pub operation: Operation,
    /// The version the fields are named in.
    pub api_version: String,
    /// When it last changed the object, or added a field to what it owns by updates.
    pub time: Option<Timestamp>,
    /// The subresource it wrote through; empty for the object itself.
    pub subresource: String,
    /// What it owns.
    pub fields: Set,
}

impl Entry {
    /// The text the server identifies this entry by.
    pub fn identity(&self) -> String {
        let version = match self.operation {
            Operation::Apply => "",
            Operation::Update => &self.api_version,
        };
        let mut out = String::from("{");
        for (name, value) in [
            ("manager", &*self.manager),
            ("operation", self.operation.as_str()),
            ("apiVersion", version),
            ("subresource", &self.subresource),
        ] {
            if value.is_empty() {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            golang::json_string(value, Style::Standard, &mut out);
        }
        out.push('}');
        out
    }

    /// The manager as conflicts name it.
    pub(super) fn describe(&self) -> String {
        let mut out = String::new();
        golang::quote(&self.manager, &mut out);
        if !self.subresource.is_empty() {
            out.push_str(" with subresource ");
            golang::quote(&self.subresource, &mut out);
        }
        if self.operation == Operation::Update {
            out.push_str(" using ");
            out.push_str(&self.api_version);
        }
        out
    }

    fn to_value(&self) -> Result<Value, FieldsError> {
        let mut map = Map::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                map.insert(name.to_owned(), Value::String(value.to_owned()));
            }
        };
        put("manager", &self.manager);
        put("operation", self.operation.as_str());
        put("apiVersion", &self.api_version);
        put("time", &self.time.map(|time| time.to_string()).unwrap_or_default());
        put("fieldsType", "FieldsV1");
        map.insert("fieldsV1".to_owned(), self.fields.to_fields()?);
        if !self.subresource.is_empty() {
            map.insert("subresource".to_owned(), Value::String(self.subresource.clone()));
        }
        Ok(Value::Object(map))
    }

    /// The order of entries in an object.
    fn sort_key(&self) -> (Operation, i64, &str, &str, &str) {
        let seconds = self.time.map_or(0, |time| time.0);
        (self.operation, seconds, &self.manager, &self.api_version, &self.subresource)
    }
}

/// Why a list of managed fields is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedError {
    /// Neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// No type of fields.
    #[error("missing fieldsType in managed fields entry {index}")]
    NoFieldsType {
        /// Which entry.
        index: usize,
    },
    /// A type of fields this version does not know.
    #[error("invalid fieldsType {found:?} in managed fields entry {index}")]
    FieldsType {
        /// What was found.
        found: String,
        /// Which entry.
        index: usize,
    },
    /// The fields are not a set.
    #[error("error decoding set of managed fields entry {index}")]
    Fields {
        /// Which entry.
        index: usize,
        /// What is wrong.
        source: FieldsError,
    },
}

/// All entries of an object, by identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields {
    entries: BTreeMap<String, Entry>,
}

impl ManagedFields {
    /// Reads an object's managed fields; an object without them, or with a list that is not a
    /// list of entries at all, has none.
    pub fn of(object: &Value) -> Result<Self, ManagedError> {
        Self::decode(&raw_entries(object).unwrap_or_default())
    }

    pub(super) fn decode(raw: &[RawEntry<'_>]) -> Result<Self, ManagedError> {
        let mut entries = BTreeMap::new();
        for (index, raw) in raw.iter().enumerate() {
            let entry = raw.entry(index)?;
            entries.insert(entry.identity(), entry);
        }
        Ok(Self { entries })
    }

    /// Writes the managed fields into an object, replacing what is there.
    pub fn write(&self, object: &mut Value) -> Result<(), FieldsError> {
        if self.entries.is_empty() {
            clear(object);
            return Ok(());
        }
        let mut entries: Vec<&Entry> = self.entries.values().collect();
        entries.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        let list = entries.into_iter().map(Entry::to_value).collect::<Result<_, _>>()?;
        let Some(object) = object.as_object_mut() else { return Ok(()) };
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
        Ok(())
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries by identity.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(identity, entry)| (identity.as_str(), entry))
    }

    /// Throws the oldest update entries together until few enough are left.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<(i64, String)> = self
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Update)
            .map(|(identity, entry)| (entry.time.map_or(0, |time| time.0), identity.to_owned()))
            .collect();
        updaters.sort();
        let mut left = updaters.len();
        let mut first_of_version: Vec<(String, String)> = Vec::new();
        for (_, identity) in updaters {
            if left <= UPDATE_MANAGERS_MAX {
                return;
            }
            let Some(entry) = self.get(&identity).cloned() else { continue };
            let version = entry.api_version.clone();
            let first = first_of_version.iter().find(|(of, _)| *of == version);
            let Some((_, first)) = first.cloned() else {
                first_of_version.push((version, identity));
                continue;
            };
            let bucket = Entry {
                manager: ANCIENT_CHANGES.to_owned(),
                subresource: String::new(),
                ..entry.clone()
            };
            let name = bucket.identity();
            let entries = &mut self.entries;
            if !entries.contains_key(&name)
                && let Some(oldest) = entries.remove(&first)
            {
                entries.insert(name.clone(), Entry { fields: oldest.fields, ..bucket });
            }
            if let Some(bucket) = entries.get_mut(&name) {
                bucket.fields = entry.fields.union(&bucket.fields);
                bucket.time = entry.time;
            }
            entries.remove(&identity);
            left -= 1;
        }
    }

    pub(super) fn map(&mut self) -> &mut BTreeMap<String, Entry> {
        &mut self.entries
    }

    pub(super) fn get(&self, identity: &str) -> Option<&Entry> {
        self.entries.get(identity)
    }
}

/// Removes an object's managed fields.
pub fn clear(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
}

/// An entry as found, before it is judged.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RawEntry<'v> {
    manager: &'v str,
    operation: &'v str,
    api_version: &'v str,
    time: Option<Timestamp>,
    fields_type: &'v str,
    fields: Option<&'v Value>,
    subresource: &'v str,
}

impl<'v> RawEntry<'v> {
    /// Whether the entry is `{}`.
    pub(super) fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    fn read(value: &'v Value) -> Option<Self> {
        let map = value.as_object()?;
        let text = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        let time = match map.get("time") {
            None | Some(Value::Null) => None,
            Some(value) => Some(Timestamp::parse(value.as_str()?)?),
        };
        Some(Self {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            time,
            fields_type: text("fieldsType")?,
            fields: map.get("fieldsV1").filter(|fields| !fields.is_null()),
            subresource: text("subresource")?,
        })
    }

    fn entry(&self, index: usize) -> Result<Entry, ManagedError> {
        let operation = match self.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedError::Operation),
        };
        if self.api_version.is_empty() {
            return Err(ManagedError::ApiVersion);
        }
        match self.fields_type {
            "FieldsV1" => {}
            "" => return Err(ManagedError::NoFieldsType { index }),
            other => return Err(ManagedError::FieldsType { found: other.to_owned(), index }),
        }
        let fields = self.fields.map_or_else(|| Ok(Set::default()), Set::from_fields);
        Ok(Entry {
            manager: self.manager.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            time: self.time,
            subresource: self.subresource.to_owned(),
            fields: fields.map_err(|source| ManagedError::Fields { index, source })?,
        })
    }
}

/// An object's entries as found; nothing if there is no list of them.
pub(super) fn raw_entries(object: &Value) -> Option<Vec<RawEntry<'_>>> {
    let list = object.get("metadata")?.get("managedFields")?.as_array()?;
    list.iter().map(RawEntry::read).collect()
}
