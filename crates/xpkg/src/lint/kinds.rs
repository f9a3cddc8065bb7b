//! Which kinds of objects packages may contain, and which type of package may contain which.
//!
//! The table joins the package specification with what upstream accepts today. The specification
//! names a kind, `AdmissionWebhookConfiguration`, that Kubernetes never had; what it means are the
//! two kinds of webhooks there are, and that name is an error that says so. Anything that
//! Crossplane cannot read makes a package uninstallable, even kinds that Crossplane itself serves.

use super::findings::Findings;
use super::report::Identity;
use super::rules;
use super::suggest;
use api::meta::PackageKind;
use yaml::Node;

/// A kind of object that some type of package may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A custom resource's definition.
    CustomResourceDefinition,
    /// A managed resource's definition.
    ManagedResourceDefinition,
    /// A webhook that validates.
    ValidatingWebhookConfiguration,
    /// A webhook that changes.
    MutatingWebhookConfiguration,
    /// A composite resource's definition.
    CompositeResourceDefinition,
    /// A way to compose a composite resource.
    Composition,
    /// Which managed resources to activate.
    ManagedResourceActivationPolicy,
    /// A function run once.
    Operation,
    /// A function run by the clock.
    CronOperation,
    /// A function run on changes.
    WatchOperation,
}

use ObjectKind as Kind;

const CRD_VERSIONS: &[&str] = &["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];
const WEBHOOK_VERSIONS: &[&str] = &["admissionregistration.k8s.io/v1"];
const XRD_VERSIONS: &[&str] = &["apiextensions.crossplane.io/v1", "apiextensions.crossplane.io/v2"];
const ALPHA_VERSIONS: &[&str] = &["apiextensions.crossplane.io/v1alpha1"];
const OPS_VERSIONS: &[&str] = &["ops.crossplane.io/v1alpha1"];

/// Kind, its name, and the versions it is known in.
const TABLE: [(Kind, &str, &[&str]); 10] = [
    (Kind::CustomResourceDefinition, "CustomResourceDefinition", CRD_VERSIONS),
    (Kind::ManagedResourceDefinition, "ManagedResourceDefinition", ALPHA_VERSIONS),
    (Kind::ValidatingWebhookConfiguration, "ValidatingWebhookConfiguration", WEBHOOK_VERSIONS),
    (Kind::MutatingWebhookConfiguration, "MutatingWebhookConfiguration", WEBHOOK_VERSIONS),
    (Kind::CompositeResourceDefinition, "CompositeResourceDefinition", XRD_VERSIONS),
    (Kind::Composition, "Composition", &["apiextensions.crossplane.io/v1"]),
    (Kind::ManagedResourceActivationPolicy, "ManagedResourceActivationPolicy", ALPHA_VERSIONS),
    (Kind::Operation, "Operation", OPS_VERSIONS),
    (Kind::CronOperation, "CronOperation", OPS_VERSIONS),
    (Kind::WatchOperation, "WatchOperation", OPS_VERSIONS),
];

/// The specification's name for webhooks.
const WEBHOOK: &str = "AdmissionWebhookConfiguration";

/// Kinds that Crossplane can read and that no package may contain: where it finds one, it leaves it
/// out and installs the rest.
const LEFT_OUT: [(&str, &[&str]); 5] = [
    ("CompositionRevision", &["apiextensions.crossplane.io/v1"]),
    ("Usage", ALPHA_VERSIONS),
    ("ConversionReview", CRD_VERSIONS),
    ("ValidatingAdmissionPolicy", WEBHOOK_VERSIONS),
    ("ValidatingAdmissionPolicyBinding", WEBHOOK_VERSIONS),
];

fn is_left_out(identity: &Identity) -> bool {
    let is = |row: &(&str, &[&str])| {
        row.0 == identity.kind && row.1.contains(&identity.api_version.as_str())
    };
    LEFT_OUT.iter().any(is)
}

impl ObjectKind {
    /// The kind that an `apiVersion` and `kind` name.
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.1 == kind && row.2.contains(&api_version));
        row.map(|row| row.0)
    }

    /// The kind of that name in a group, whatever the version.
    pub fn find_in_group(group: &str, kind: &str) -> Option<Self> {
        let is_in_group = |version: &&str| version.split_once('/').is_some_and(|it| it.0 == group);
        let row = TABLE.iter().find(|row| row.1 == kind && row.2.iter().any(is_in_group));
        row.map(|row| row.0)
    }

    /// Whether objects of this kind define other kinds.
    pub fn is_definition(self) -> bool {
        matches!(
            self,
            Self::CustomResourceDefinition
                | Self::ManagedResourceDefinition
                | Self::CompositeResourceDefinition
        )
    }

    /// The types of package that may contain objects of this kind.
    pub fn packages(self) -> &'static [PackageKind] {
        match self {
            Self::CustomResourceDefinition => &[PackageKind::Provider, PackageKind::Function],
            Self::ManagedResourceDefinition
            | Self::ValidatingWebhookConfiguration
            | Self::MutatingWebhookConfiguration => &[PackageKind::Provider],
            Self::CompositeResourceDefinition
            | Self::Composition
            | Self::ManagedResourceActivationPolicy
            | Self::Operation
            | Self::CronOperation
            | Self::WatchOperation => &[PackageKind::Configuration],
        }
    }
}

/// Whether this is the object that installs a package, written in place of its metadata.
fn is_installed(identity: &Identity) -> bool {
    identity.group() == "pkg.crossplane.io"
        && PackageKind::ALL.iter().any(|kind| kind.as_str() == identity.kind)
}

/// Reports a document that belongs in no package, with the nearest kind that does.
pub(super) fn report_unknown(node: &Node<'_>, identity: &Identity, findings: &mut Findings<'_>) {
    let at = node.entry("kind").map_or(node.position, |entry| entry.position);
    let left_out = is_left_out(identity);
    // What is left out elsewhere is known to whoever installs the package only by its name.
    let what = if left_out { identity.called() } else { identity.kind.clone() };
    let message = format!("{what} in {} cannot be part of any package", identity.api_version);
    let same_kind = TABLE.iter().find(|row| row.1 == identity.kind);
    let close = || suggest::closest(&identity.kind, TABLE.map(|row| row.1));
    let hint = match (same_kind, close()) {
        _ if is_installed(identity) => {
            "did you mean meta.pkg.crossplane.io/v1? pkg.crossplane.io is for clusters".to_owned()
        }
        _ if identity.kind == WEBHOOK => {
            "Kubernetes has no such kind: write ValidatingWebhookConfiguration or \
             MutatingWebhookConfiguration"
                .to_owned()
        }
        (Some((_, kind, versions)), _) => format!("{kind} is known in {}", versions.join(" and ")),
        (None, Some(kind)) => format!("did you mean {kind}?"),
        (None, None) => {
            "keep it out of the package directory, or leave it out with --ignore".to_owned()
        }
    };
    let rule = if left_out { &rules::KIND_NOT_ALLOWED } else { &rules::KIND_UNKNOWN };
    findings.advise(rule, at, message, hint);
}
