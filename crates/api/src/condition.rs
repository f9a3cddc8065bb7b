//! Conditions: how an object is, for people and programs.

use crate::wire::wire;

wire! {
    /// One thing that can be said about how an object is.
    Condition {
        /// What it is about; there is one condition of each type.
        condition_type: String = "type",
        /// True, False or Unknown.
        status: String = "status",
        /// When it last changed.
        last_transition_time: String = "lastTransitionTime" with {"format": "date-time"},
        /// Why, in one word.
        reason: String = "reason",
        /// Why, in sentences.
        message: Option<String> = "message",
        /// Which generation of the object it is about.
        observed_generation: Option<i64> = "observedGeneration",
    }
}

/// Types of conditions.
pub mod types {
    /// The package's revision is active, and in the cluster.
    pub const INSTALLED: &str = "Installed";
    /// The package does what it should.
    pub const HEALTHY: &str = "Healthy";
    /// The revision's objects are there.
    pub const REVISION_HEALTHY: &str = "RevisionHealthy";
    /// The revision's controller or function runs.
    pub const RUNTIME_HEALTHY: &str = "RuntimeHealthy";
    /// The revision's controller is wanted.
    pub const RUNTIME_ACTIVE: &str = "RuntimeActive";
    /// Work on the object goes on.
    pub const SYNCED: &str = "Synced";
    /// The revision's image is signed by whom it should be.
    pub const VERIFIED: &str = "Verified";
    /// Everybody in the lock has what they need.
    pub const RESOLVED: &str = "Resolved";
    /// Definitions stay that the package no longer brings, because they have objects.
    pub const DEFINITIONS_RETAINED: &str = "DefinitionsRetained";
}

/// Reasons of conditions.
pub mod reasons {
    /// The package is being fetched, or cannot be.
    pub const UNPACKING: &str = "UnpackingPackage";
    /// The revision waits to be activated.
    pub const INACTIVE: &str = "InactivePackageRevision";
    /// The revision is active.
    pub const ACTIVE: &str = "ActivePackageRevision";
    /// The revision is to be active, and nothing of it is in the cluster.
    pub const UNESTABLISHED: &str = "UnestablishedPackageRevision";
    /// All is well.
    pub const HEALTHY: &str = "HealthyPackageRevision";
    /// Something is wrong.
    pub const UNHEALTHY: &str = "UnhealthyPackageRevision";
    /// Definitions are on their way out with objects that only the package's controller can let go of.
    pub const TERMINATING: &str = "TerminatingDefinitions";
    /// Nobody knows yet.
    pub const UNKNOWN_HEALTH: &str = "UnknownPackageRevisionHealth";
    /// Nothing uses the package yet, so its controller sleeps.
    pub const AWAITING_ACTIVATION: &str = "AwaitingActivation";
    /// The controller is wanted.
    pub const ACTIVE_RUNTIME: &str = "ActiveRuntime";
    /// Somebody asked for no more work on the object.
    pub const PAUSED: &str = "ReconcilePaused";
    /// A policy is none that there is.
    pub const UNKNOWN_POLICY: &str = "UnknownPolicy";
    /// Somebody who may sign has signed.
    pub const VERIFIED: &str = "SignatureVerificationSucceeded";
    /// Nobody who may sign has signed.
    pub const UNVERIFIED: &str = "SignatureVerificationFailed";
    /// Everybody has what they need.
    pub const RESOLVED: &str = "DependencyResolutionSucceeded";
    /// Somebody lacks something.
    pub const UNRESOLVED: &str = "DependencyResolutionFailed";
}

impl Condition {
    /// Whether both say the same, whenever they said it. Generations count when both name one.
    pub fn says_same(&self, other: &Self) -> bool {
        let generations = (self.observed_generation, other.observed_generation);
        let same_generation = match generations {
            (Some(one), Some(two)) => one == two || one == 0 || two == 0,
            _ => true,
        };
        self.condition_type == other.condition_type
            && self.status == other.status
            && self.reason == other.reason
            && self.message.as_deref().unwrap_or_default()
                == other.message.as_deref().unwrap_or_default()
            && same_generation
    }
}

impl Condition {
    fn is_of_some(&self) -> bool {
        self.observed_generation.is_some_and(|it| it != 0)
    }

    /// Whether it is about another state than this one: an older one, or one from before a
    /// restore. One that does not say which it is about is believed.
    pub fn is_past(&self, generation: Option<i64>) -> bool {
        self.observed_generation.is_some_and(|it| it != 0 && Some(it) != generation)
    }
}

/// Puts a condition in its place; one that says the same as before stays, with its time.
pub fn set(conditions: &mut Vec<Condition>, new: Condition) {
    let place = conditions.iter_mut().find(|old| old.condition_type == new.condition_type);
    match place {
        // One that does not say what it is about gives way to one that does.
        Some(old) if old.says_same(&new) && old.is_of_some() >= new.is_of_some() => {}
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], of: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.condition_type == of)
}
