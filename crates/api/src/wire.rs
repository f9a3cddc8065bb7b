//! Wire types that know their own schema.
//!
//! [`wire!`](crate::wire::wire) writes a type once: what it is called on the wire, what it means,
//! and what the API server should check and fill in. From that come both the serde type and its
//! part of the CRD, so the two cannot drift apart. Fields a type does not know are kept as they
//! are, because whoever rewrites an object must not lose what others wrote.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// A type with a structural schema.
pub trait Schema {
    /// The schema, without a description.
    fn schema() -> Json;

    /// Whether a field of this type must be there.
    fn is_required() -> bool {
        true
    }

    /// Whether the field is left out when written.
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T: Schema> Schema for Option<T> {
    fn schema() -> Json {
        T::schema()
    }

    fn is_required() -> bool {
        false
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Json {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema() -> Json {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

impl Schema for String {
    fn schema() -> Json {
        json!({"type": "string"})
    }
}

impl Schema for bool {
    fn schema() -> Json {
        json!({"type": "boolean"})
    }
}

impl Schema for i64 {
    fn schema() -> Json {
        json!({"type": "integer", "format": "int64"})
    }
}

impl Schema for i32 {
    fn schema() -> Json {
        json!({"type": "integer", "format": "int32"})
    }
}

/// An object that is somebody else's to check, such as the spec of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Opaque(pub Map<String, Json>);

impl Schema for Opaque {
    fn schema() -> Json {
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// Like [`Opaque`], for lists of such objects.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct OpaqueList(pub Vec<Opaque>);

impl Schema for OpaqueList {
    fn schema() -> Json {
        json!({"type": "array", "items": Opaque::schema()})
    }
}

/// A field of a type, as its schema needs it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name on the wire.
    pub key: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Its own schema.
    pub schema: Json,
    /// What else the API server should know: defaults, enumerations, rules.
    pub extra: Json,
}

/// The schema of an object with these fields.
pub fn object(fields: Vec<Field>) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let mut schema = Map::new();
        schema.insert("description".to_owned(), json!(sentence(field.about)));
        for part in [field.schema, field.extra] {
            if let Json::Object(part) = part {
                schema.extend(part);
            }
        }
        properties.insert(field.key.to_owned(), Json::Object(schema));
        if field.required {
            required.push(field.key);
        }
    }
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// A doc comment as one line of text, without the marks of code.
pub fn sentence(doc: &str) -> String {
    doc.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a field is left out when written.
pub fn is_absent<T: Schema>(value: &T) -> bool {
    value.is_absent()
}

/// Reads a field in which `null` means absence, as everywhere in Kubernetes.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Declares types that know their schema.
///
/// ```text
/// wire! {
///     /// What it is.
///     Name {
///         /// What the field means. A type that is no `Option` is required.
///         field: Type = "wireName" with {"default": 1},
///     }
/// }
/// ```
macro_rules! wire {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $($(#[doc = $about:literal])+ $field:ident: $type:ty = $key:literal $(with $extra:tt)?,)*
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(
                $(#[doc = $about])+
                #[serde(
                    rename = $key,
                    default,
                    deserialize_with = "crate::wire::or_default",
                    skip_serializing_if = "crate::wire::is_absent"
                )]
                pub $field: $type,
            )*
            /// Fields this type does not know, kept as they are.
            #[serde(flatten)]
            pub rest: serde_json::Map<String, serde_json::Value>,
        }

        impl $crate::wire::Schema for $name {
            fn schema() -> serde_json::Value {
                $crate::wire::object(vec![$($crate::wire::Field {
                    key: $key,
                    about: concat!($($about),+),
                    required: <$type as $crate::wire::Schema>::is_required(),
                    schema: <$type as $crate::wire::Schema>::schema(),
                    extra: $crate::wire::extra!($($extra)?),
                }),*])
            }
        }
    )+};
}

/// What a field says besides its type; nothing when it says nothing.
macro_rules! extra {
    () => {
        serde_json::Value::Null
    };
    ($extra:tt) => {
        serde_json::json!($extra)
    };
}

pub(crate) use {extra, wire};
