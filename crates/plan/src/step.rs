//! The vocabulary: what a step needs, and what it wants done.

use api::kind_reference::KindReference;
use api::object::ObjectMeta;
use oci::{Digest, Reference, Repository};
use serde_json::Value as Json;
use std::time::Duration;

/// Who we are to the API server, which keeps a record of who applied which field.
pub const MANAGER: &str = "apron";

/// What a step comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Not enough is known: find these out and ask again.
    Need(Vec<Need>),
    /// Do this.
    Do(Plan),
}

/// Something to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Which digest a registry has behind a tag now.
    Digest(Reference),
    /// Whether a file of this name, less `.xpkg`, is in the package cache, and its digest.
    CachedFile(String),
    /// Which tags a repository has. Like everything here it is named as packages name it: whoever
    /// finds out applies image configurations.
    Tags(Repository),
    /// What is inside a package: its metadata, and which objects it brings. By digest it is these
    /// bytes for ever, by tag whatever the registry has behind it now.
    Contents(Reference),
    /// Which packages bring a kind, or all kinds of a group, and whether the API server serves it
    /// already.
    Kind(KindReference),
    /// Whether an image has the signatures that are asked for. Unlike everything else it is named
    /// as image configurations have it, by digest.
    Signatures(Reference),
    /// Whether what the package needs is installed.
    Dependencies,
    /// What an administrator allows packages to ask for.
    Permissions,
    /// The certificate that tells a runtime's endpoint is genuine, from the Secret of this name.
    Certificate(String),
    /// All configurations that may say how packages are reached.
    Configurations,
    /// What the cluster has of these objects; only their metadata is kept, and whether they say
    /// what the package says.
    Objects(Vec<Wanted>),
    /// Whether the API server would carry these out: nothing is written.
    DryRun(Vec<Write>),
    /// What an object of the cluster is now, or that it is not there.
    Object(Target),
    /// The definitions that are kept for the package though no revision of it brings them.
    Retained,
    /// How many objects there are of each of these definitions.
    Instances(Vec<Target>),
}

/// An object that a step is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub target: Target,
    /// What it should say, if that matters.
    pub packaged: Option<Packaged>,
}

/// An object of a package, and what must be true for it to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which object that makes.
    pub target: Target,
    /// The object.
    pub object: Packaged,
    /// What must be true for that.
    pub expect: Expect,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In this order; the first that fails ends it, and the world is looked at again.
    pub actions: Vec<Action>,
    /// Why, in sentences, for those who ask.
    pub report: Vec<String>,
    /// When to look again though nothing has happened.
    pub wake: Wake,
}

/// When to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// When something changes.
    #[default]
    OnChange,
    /// After this long, too.
    After(Duration),
}

/// One thing to do to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make an object say this, and leave alone what it says besides.
    Apply {
        /// The fields that are ours, with kind and name.
        object: Json,
        /// What must be true for that.
        expect: Expect,
    },
    /// Delete an object.
    Delete {
        /// Which.
        target: Target,
        /// What must be true for that.
        expect: Expect,
    },
    /// Make an object of the cluster what a package says: made if it was absent, replaced if it
    /// was seen, with nothing of what others wrote into its metadata lost; owners are exactly those
    /// of the overlay. Neighbours in the list do not depend on each other and may be carried out
    /// at once.
    Establish(Write),
    /// Change part of an object that is there: objects are merged, `null` takes a field away,
    /// everything else is replaced, and what is not named stays as it is.
    Merge {
        /// Which.
        target: Target,
        /// What to change.
        change: Json,
        /// What must be true for that.
        expect: Expect,
    },
    /// Make a Secret say this, with keys and certificates that only hands can make.
    Issue {
        /// The Secret, less what is secret. Fields of its data that are not named stay as they
        /// are, and `null` takes one away; owners are exactly those that are named, if any are.
        secret: Json,
        /// Fields of its data that are taken over from what was seen: from which, to which.
        keep: Vec<(&'static str, &'static str)>,
        /// What is made anew.
        make: Option<Make>,
        /// What must be true for that.
        expect: Expect,
    },
    /// Let an object wait for us before it goes, or no longer.
    Finalizer {
        /// Which.
        target: Target,
        /// Our finalizer.
        finalizer: String,
        /// Whether it should be there.
        is_wanted: bool,
        /// What must be true for that.
        expect: Expect,
    },
    /// Make an object's status say this.
    Status {
        /// Which.
        target: Target,
        /// The whole status.
        status: Json,
        /// What must be true for that.
        expect: Expect,
    },
    /// Tell people what happened.
    Event {
        /// About which object.
        target: Target,
        /// Whether it is bad news.
        is_warning: bool,
        /// In one word.
        reason: &'static str,
        /// In a sentence.
        message: String,
    },
}

/// A key and a certificate to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Make {
    /// The field of the Secret's data for the certificate.
    pub certificate: &'static str,
    /// The field for its key.
    pub key: &'static str,
    /// The names it is good for.
    pub names: Vec<String>,
    /// What it is good for.
    pub usage: Usage,
    /// From when, in seconds since 1970.
    pub not_before: i64,
    /// Until when.
    pub not_after: i64,
    /// The Secret of the authority that signs it, in `tls.crt` and `tls.key`; without one it signs
    /// itself.
    pub signer: Option<Target>,
}

/// What a certificate is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Signing others.
    Authority,
    /// Serving.
    Server,
    /// Calling.
    Client,
}

/// An object in a package, by its place there: it is too large to be carried around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packaged {
    /// The image of the package.
    pub package: Digest,
    /// Which document of its stream, from 0.
    pub document: usize,
    /// What is laid over it: objects are merged, everything else is replaced.
    pub overlay: Json,
}

/// Why the API server would not carry out an action; a step that is told of it says so in a
/// condition. Being too busy, or a state that has changed, is no refusal: that is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the action was about.
    pub target: Target,
    /// What the API server said.
    pub message: String,
}

/// An object by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The version of its API.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if its kind has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The state an action was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: whatever is there is made to fit.
    Anything,
    /// There is no such object.
    Absent,
    /// It is exactly this one in this state.
    Unchanged {
        /// Which object of that name.
        uid: Option<String>,
        /// In which state.
        resource_version: Option<String>,
    },
}

impl Expect {
    /// That an object is still as it was seen.
    pub fn as_seen(metadata: &ObjectMeta) -> Self {
        let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
        Self::Unchanged { uid, resource_version }
    }

    /// That an object is still as it was seen, or still not there.
    pub fn as_found(object: Option<&Json>) -> Self {
        let Some(object) = object else { return Self::Absent };
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Self::Unchanged { uid: text("uid"), resource_version: text("resourceVersion") }
    }
}

impl Target {
    /// The object that this is.
    pub fn of(object: &Json) -> Self {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace,
            name: text(&object["metadata"]["name"]),
        }
    }
}

/// A moment, given in seconds since 1970, as objects write it.
pub fn timestamp(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March have their odd day at the end, and 400 of them are an era.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let year = year + era * 400;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The reverse of [`timestamp`]; none if it is no moment in that form.
pub fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 1 - 719_468;
    let found = days * 86_400 + hour * 3600 + minute * 60 + second;
    // Whatever does not come out as it went in was not a moment.
    (timestamp(found) == text).then_some(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_are_written_as_objects_write_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(super::timestamp(seconds), text);
            assert_eq!(super::seconds(text), Some(seconds));
        }
        for text in ["", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01"] {
            assert_eq!(super::seconds(text), None, "{text}");
        }
    }
}
