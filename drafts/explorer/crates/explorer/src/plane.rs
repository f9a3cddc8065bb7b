//! A control plane as values: what is installed, how it is, what happened.

use async_trait::async_trait;

/// Knows a control plane.
#[async_trait]
pub trait PlaneSource: Send + Sync {
    /// What is so now, or why that cannot be told.
    async fn read_report(&self) -> Result<PlaneReport, String>;
}

/// What is installed in a control plane, in the words of `apron status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneReport {
    /// The packages, by kind and name.
    pub packages: Vec<PlanePackage>,
    /// What happened to them, the last first.
    pub events: Vec<PlaneEvent>,
}

/// A package that is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanePackage {
    /// Its kind and name: `provider/harbour`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `Provider`, `Configuration` or `Function`.
    pub kind: String,
    /// The version that runs.
    pub version: String,
    /// The reference that was asked for.
    pub package: String,
    /// How it is, in a word.
    pub state: String,
    /// Whether that is how it should be.
    pub is_well: bool,
    /// The version that waits to be activated.
    pub waiting: Option<String>,
    /// What is in the way, in sentences.
    pub messages: Vec<String>,
    /// Its revisions, the newest first.
    pub revisions: Vec<PlaneRevision>,
    /// What it needs.
    pub needs: Vec<PlaneNeed>,
    /// What needs it, by kind and name.
    pub needed_by: Vec<String>,
}

/// A revision of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneRevision {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// What it is: active, inactive, not installed.
    pub state: String,
    /// Its version.
    pub version: String,
    /// How many objects it has.
    pub objects: usize,
}

/// Something a package needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneNeed {
    /// The repository.
    pub package: String,
    /// The versions that will do.
    pub constraints: String,
    /// What is there for it, by kind and name.
    pub installed: Option<String>,
    /// Whether that will do.
    pub is_satisfied: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneEvent {
    /// When.
    pub time: String,
    /// `Normal` or `Warning`.
    pub severity: String,
    /// The kind and name of the object.
    pub object: String,
    /// The reason, in a word.
    pub reason: String,
    /// The rest, in a sentence.
    pub message: String,
    /// How often it happened.
    pub count: u64,
}
