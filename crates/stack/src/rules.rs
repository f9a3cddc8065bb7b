//! The rules of this format, by name.

use xpkg::diagnostic::Severity;
use xpkg::lint::Rule;

/// Every rule, in the order documents should list them.
pub fn stack_rules() -> &'static [Rule] {
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
    APP_MISSING "stack-app-missing" Error
        "A package with .registry has an app.yaml at its root.";
    APP_INVALID "stack-app-invalid" Error
        "Fields of app.yaml have the right types and values that exist.";
    APP_SCOPE "stack-app-scope" Warning
        "app.yaml says whether the package needs rights in one namespace or in the cluster.";
    UNKNOWN_FIELD "stack-unknown-field" Warning
        "Files of .registry have no fields that mean nothing.";
    VERSION_TAG "stack-version-tag" Error
        "The version in app.yaml is the tag of the image.";
    VERSION_CHANNEL "stack-version-channel" Warning
        "The tag of the image is a version, so that it can be compared with app.yaml.";
    DEPENDENCY_CRD "stack-dependency" Error
        "A dependency names a definition: NAME.GROUP or NAME.GROUP/VERSION.";
    FILE_UNREAD "stack-file-unread" Error
        "Everything in .registry is a regular file of a reasonable size; links are not followed.";
    FILE_PLACE "stack-file-place" Warning
        "Files with names that mean something lie where they count.";
    INSTALL_INVALID "stack-install-invalid" Error
        "install.yaml is one Deployment of apps/v1.";
    BEHAVIOR_INVALID "stack-behavior-invalid" Error
        "behavior.yaml names an engine, a definition and where its templates are.";
    RBAC_IGNORED "stack-rbac-ignored" Warning
        "Rights follow from what a package owns and depends on, not from rbac.yaml.";
    METADATA_INVALID "stack-metadata-invalid" Error
        "Fields of group.yaml and resource.yaml have the right types.";
    METADATA_UNUSED "stack-metadata-unused" Warning
        "Metadata, icons and ui-schemas reach a definition in their directory or below.";
    ICON_SIZE "stack-icon-size" Error
        "An icon has at most 64 KiB: it is repeated on every definition it is for.";
    ICON_SHAPE "stack-icon-shape" Warning
        "A bitmap icon is what its name says, and as wide as it is high.";
    UI_SCHEMA_INVALID "stack-ui-schema-invalid" Error
        "A ui-schema is YAML.";
    DEFINITION_MISSING "stack-definition-missing" Error
        "A package has at least one definition in a file *crd.yaml below resources/.";
    DEFINITION_INVALID "stack-definition-invalid" Error
        "A file *crd.yaml holds CustomResourceDefinitions that an API server takes, once they are v1.";
    DEFINITION_DUPLICATE "stack-definition-duplicate" Error
        "A package has a definition once.";
    DEFINITION_SCHEMA "stack-definition-schema" Warning
        "A definition of v1beta1 has a structural schema, because v1 takes no other.";
    DEFINITION_SCOPE "stack-definition-scope" Error
        "A package that needs rights in one namespace owns no definitions of cluster scope.";
    GROUP_RESERVED "stack-group-reserved" Error
        "A package defines no kinds in groups of Kubernetes or of package managers.";
    REGISTRY_IGNORED "stack-registry-ignored" Warning
        "A package of today has no .registry beside its metadata: nothing reads it there.";
    ANNOTATIONS_SIZE "stack-annotations-size" Error
        "All annotations of a definition together have at most 256 KiB, as API servers demand.";
}

/// Shared with packages of today, and listed there.
pub(crate) const YAML_SYNTAX: Rule = Rule {
    name: "yaml-syntax",
    severity: Severity::Error,
    description: "Every file is YAML as Kubernetes reads it.",
};
