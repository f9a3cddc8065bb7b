//! The rules, by name: the part of the linter that documents and suppressions rely on.

use crate::diagnostic::Severity;

/// One thing the linter looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable name, e.g. `duplicate-object`.
    pub name: &'static str,
    /// How much a finding of this rule matters.
    pub severity: Severity,
    /// What the rule demands, in one sentence.
    pub description: &'static str,
}

/// Every rule, in the order documents should list them.
pub fn rules() -> &'static [Rule] {
    RULES
}

macro_rules! rules {
    ($($id:ident $name:literal $severity:ident $description:literal;)*) => {
        $(
            pub(crate) const $id: Rule = Rule {
                name: $name,
                severity: Severity::$severity,
                description: $description,
            };
        )*
        static RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    METADATA_MISSING "metadata-missing" Error
        "A package has metadata: one Provider, Configuration or Function document.";
    METADATA_DUPLICATE "metadata-duplicate" Error
        "A package has exactly one metadata document.";
    METADATA_PLACE "metadata-place" Error
        "Package metadata is in crossplane.yaml at the root, a file and no link, or in the file that was named.";
    FILE_SKIPPED "file-skipped" Warning
        "No YAML file or directory of a package is left out without a word.";
    METADATA_UNREGISTERED "metadata-unregistered" Error
        "Package metadata uses a version and kind that Crossplane knows.";
    METADATA_INVALID "metadata-invalid" Error
        "Fields of package metadata have the right types.";
    METADATA_REQUIRED "metadata-required" Error
        "Metadata of the first format has what that format calls required.";
    METADATA_KEY "metadata-key" Error
        "Keys of annotations and labels are ones that an API server takes.";
    METADATA_STEERING "metadata-steering" Warning
        "Annotations and labels that steer the package manager are not a package's to set.";
    METADATA_SOURCE "metadata-source" Warning
        "The source of a package is an address.";
    METADATA_LICENSE "metadata-license" Warning
        "The licence of a package is an SPDX expression.";
    METADATA_UNKNOWN_FIELD "metadata-unknown-field" Warning
        "Package metadata has no fields that Crossplane silently ignores.";
    CROSSPLANE_CONSTRAINT "crossplane-constraint" Error
        "The constraint on Crossplane's version can be read.";
    VERSION_PARTIAL "version-partial" Warning
        "A version that looks exact is complete, because a partial one means a range.";
    VERSION_PRERELEASE "version-prerelease" Warning
        "A range that admits pre-releases does not admit those of its own upper bound.";
    DEPENDENCY_TARGET "dependency-target" Error
        "A dependency names a package, with a complete type if it gives one.";
    DEPENDENCY_AMBIGUOUS "dependency-ambiguous" Warning
        "A dependency names its package only once.";
    DEPENDENCY_REFERENCE "dependency-reference" Error
        "A dependency's package is a well-formed repository.";
    DEPENDENCY_PINNED "dependency-pinned" Error
        "A dependency's package carries no tag or digest; its version says that.";
    DEPENDENCY_VERSION "dependency-version" Error
        "A dependency's version is a constraint or a digest.";
    DEPENDENCY_DUPLICATE "dependency-duplicate" Error
        "A package depends on another only once.";
    DEPENDENCY_KIND "dependency-kind" Warning
        "The key of a dependency says what kind of package its name does.";
    DEPENDENCY_CRD "dependency-crd" Error
        "A dependency on a kind names one that other packages can bring, and nothing beside it.";
    KIND_UNKNOWN "kind-unknown" Error
        "Every document is of a kind that packages may contain.";
    KIND_NOT_ALLOWED "kind-not-allowed" Error
        "Every object is of a kind that this type of package may contain.";
    OBJECT_INCOMPLETE "object-incomplete" Error
        "Every document is an object with apiVersion, kind and metadata.name.";
    OBJECT_NAME "object-name" Error
        "Names follow Kubernetes' rules; a definition is named after its plural and group.";
    OBJECT_TYPE "object-type" Error
        "Known fields of objects have the types that Crossplane decodes them to.";
    OBJECT_NAMESPACE "object-namespace" Warning
        "Objects in packages are cluster-scoped and have no namespace.";
    DUPLICATE_OBJECT "duplicate-object" Error
        "No object appears twice in a package.";
    CRD_INVALID "crd-invalid" Error
        "A CustomResourceDefinition has what the API server demands of it.";
    CRD_SCHEMA "crd-schema" Error
        "A CustomResourceDefinition's schema is structural, and its patterns compile.";
    CRD_DEFAULT "crd-default" Error
        "Defaults in a CustomResourceDefinition are values that their schema allows.";
    CRD_EXPRESSION "crd-expression" Error
        "Rules in a CustomResourceDefinition are CEL that compiles against their schema.";
    CRD_REMOVED_API "crd-removed-api" Warning
        "A CustomResourceDefinition uses v1; clusters have not served v1beta1 since 1.22.";
    XRD_INVALID "xrd-invalid" Error
        "A CompositeResourceDefinition has what Crossplane demands of it.";
    XRD_SCHEMA "xrd-schema" Error
        "A CompositeResourceDefinition's schema is structural, and its patterns compile.";
    XRD_DEFAULT "xrd-default" Error
        "Defaults in a CompositeResourceDefinition are values that their schema allows.";
    XRD_EXPRESSION "xrd-expression" Error
        "Rules in a CompositeResourceDefinition are CEL that compiles against their schema.";
    COMPOSITION_INVALID "composition-invalid" Error
        "A Composition names its composite type and a mode that exists.";
    COMPOSITION_TYPE "composition-type" Warning
        "A Composition's type is defined in the package, or may be in a dependency.";
    COMPOSITION_FUNCTION "composition-function" Warning
        "A Composition's functions are among the dependencies.";
    GROUP_RESERVED "group-reserved" Error
        "A package defines no kinds in groups of Kubernetes, of Crossplane's core or of package managers.";
    GROUP_COMMUNITY "group-community" Warning
        "A group of Kubernetes' community is one that administrators have to open to packages.";
    WEBHOOK_ADDRESS "webhook-address" Error
        "A webhook is called at the package's own Service, never at an address.";
    WEBHOOK_SCOPE "webhook-scope" Warning
        "A webhook is called about kinds of its package; others have to be allowed by administrators.";
    RUNTIME_MISSING "runtime-missing" Warning
        "A built Provider or Function package has an image to run.";
    RUNTIME_PLATFORM "runtime-single-platform" Warning
        "A Provider or Function in a registry runs on more than one platform.";
    YAML_SYNTAX "yaml-syntax" Error
        "Every file is YAML as Kubernetes reads it.";
    DUPLICATE_KEY "duplicate-key" Warning
        "No mapping in a built package has a key twice; in source files that is an error of syntax.";
    EXAMPLE_INVALID "example-invalid" Error
        "Every example is a Kubernetes object.";
}
