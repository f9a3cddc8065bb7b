//! The few fields of a stored object that upkeep looks at, read without the rest.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Holds an owner until what blocks it is gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an owner until nothing refers to it.
pub(crate) const ORPHAN: &str = "orphan";

/// Who an object belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(rename = "blockOwnerDeletion")]
    block: Option<bool>,
}

impl Owner {
    /// Whether the owner's foreground deletion waits for this dependent.
    pub(crate) fn blocks(&self) -> bool {
        self.block == Some(true)
    }
}

/// An object, as far as upkeep is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) uid: String,
    pub(crate) deleting: bool,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Text {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<Owner>>,
}

impl Stored {
    /// Reads a stored object; one that cannot be read owns nothing and is owned by nobody.
    pub(crate) fn read(value: &[u8]) -> Self {
        let Metadata { uid, deletion_timestamp, finalizers, owner_references } =
            serde_json::from_slice::<Text>(value).unwrap_or_default().metadata;
        Self {
            uid,
            deleting: deletion_timestamp.is_some(),
            finalizers: finalizers.unwrap_or_default(),
            owners: owner_references.unwrap_or_default(),
        }
    }

    /// Whether it is on its way out and held by this finalizer.
    pub(crate) fn leaves_with(&self, finalizer: &str) -> bool {
        self.deleting && self.finalizers.iter().any(|one| one == finalizer)
    }
}

/// A stored pod, as far as it takes room on its node.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PodText {
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

/// Whether a stored pod takes room on its node: those whose programs have ended do not.
pub(crate) fn takes_room(pod: &[u8]) -> bool {
    let PodText { status } = serde_json::from_slice(pod).unwrap_or_default();
    !["Succeeded", "Failed"].contains(&status.phase.as_str())
}

/// A uid in the form in which objects have it; references may say anything.
pub(crate) fn number(uid: &str) -> Option<u128> {
    let dashes = [8, 13, 18, 23].iter().all(|at| uid.as_bytes().get(*at) == Some(&b'-'));
    let digits: String = uid.chars().filter(|c| *c != '-').collect();
    if uid.len() != 36 || !dashes || digits.len() != 32 || digits.starts_with('+') {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_read() {
        let text =
            br#"{"spec":{"metadata":1},"metadata":{"name":"x","uid":"u","finalizers":["orphan"],
            "deletionTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"a":1}],
            "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"o",
            "blockOwnerDeletion":true}]}}"#;
        let stored = Stored::read(text);
        assert!(stored.leaves_with(ORPHAN) && !stored.leaves_with(FOREGROUND));
        assert!(stored.owners[0].blocks() && stored.owners[0].api_version == "v1");
        assert_eq!(Stored::read(b"{"), Stored::default());
    }

    #[test]
    fn a_pod_takes_room_until_it_is_over() {
        for (text, is_room) in [
            (r#"{"status":{"phase":"Running"}}"#, true),
            (r#"{"status":{"phase":null}}"#, true),
            ("{}", true),
            (r#"{"spec":{},"status":{"phase":"Failed","conditions":[]}}"#, false),
            (r#"{"status":{"phase":"Succeeded"}}"#, false),
        ] {
            assert_eq!(takes_room(text.as_bytes()), is_room, "{text}");
        }
    }

    #[test]
    fn a_uid_is_thirty_two_digits_in_five_groups() {
        assert_eq!(
            number("00000000-0000-4000-8000-0000000000ff"),
            Some(0x4000_8000_0000_0000_00ff)
        );
        for odd in
            ["", "odd", "00000000-0000-4000-8000-0000000000f", "0000000000004000-8000-0000000000ff"]
        {
            assert_eq!(number(odd), None, "{odd}");
        }
    }
}
