//! Versions of a kind.
//!
//! A manager's fields are named in the version it wrote. To compare them with an object of
//! another version, the object is brought to the manager's version first. Who knows how is
//! behind [`Converter`].

use std::borrow::Cow;

use serde_json::Value;

use super::typed::{Duplicates, Faults, validate};
use super::types::Schema;

/// Why an object is not available in a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// There is no such version: whoever owns fields in it loses them.
    #[error("no kind is registered for version {version:?}")]
    NoSuchVersion {
        /// The version.
        version: String,
    },
    /// Conversion failed.
    #[error("{message}")]
    Failed {
        /// Why.
        message: String,
    },
    /// The converted object does not fit the schema of its version.
    #[error(transparent)]
    Misfit(Faults),
}

/// Knows the other versions of a kind.
pub trait Converter {
    /// Brings an object to another version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// The schema of another version.
    fn schema(&self, api_version: &str) -> Option<&Schema>;
}

/// The converter of a kind with one version: managers at any other are forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneVersion;

impl Converter for OneVersion {
    fn convert(&self, _: &Value, api_version: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::NoSuchVersion { version: api_version.to_owned() })
    }

    fn schema(&self, _: &str) -> Option<&Schema> {
        None
    }
}

/// The converter of a kind whose versions differ in nothing but their schemas: conversion
/// rewrites `apiVersion`.
#[derive(Debug, Clone, Default)]
pub struct SameShape<'a> {
    /// Every version with its schema.
    pub versions: Vec<(&'a str, &'a Schema)>,
}

impl Converter for SameShape<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if self.schema(api_version).is_none() {
            return Err(ConvertError::NoSuchVersion { version: api_version.to_owned() });
        }
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
        }
        Ok(object)
    }

    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.versions.iter().find(|(version, _)| *version == api_version).map(|(_, schema)| *schema)
    }
}

/// An object at a known version.
#[derive(Debug, Clone)]
pub(super) struct Typed<'a> {
    pub(super) value: Cow<'a, Value>,
    pub(super) version: &'a str,
    pub(super) schema: &'a Schema,
}

impl<'a> Typed<'a> {
    /// This object at another version, with the schema of that version.
    pub(super) fn at<'b>(
        &'b self,
        version: &'b str,
        home: (&'b str, &'b Schema),
        converter: &'b dyn Converter,
    ) -> Result<Typed<'b>, ConvertError>
    where
        'a: 'b,
    {
        if version == self.version {
            let value = Cow::Borrowed(&*self.value);
            return Ok(Typed { value, version: self.version, schema: self.schema });
        }
        let schema = if version == home.0 { Some(home.1) } else { converter.schema(version) };
        let value = converter.convert(&self.value, version)?;
        let missing = || ConvertError::NoSuchVersion { version: version.to_owned() };
        let schema = schema.ok_or_else(missing)?;
        validate(schema, &value, Duplicates::Refused).map_err(ConvertError::Misfit)?;
        Ok(Typed { value: Cow::Owned(value), version, schema })
    }
}
