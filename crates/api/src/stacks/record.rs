//! What is known of an installed package.

use super::install::{InstallConditions, InstallReference, PackageInstallSpec};
use crate::condition::Condition;
use crate::object::ObjectMeta;
use crate::pkg::ServiceAccountOptions;
use crate::wire::{Opaque, OpaqueList, wire};

wire! {
    /// The record of an installed package: a Package or a `StackDefinition`.
    StackRecord {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Package or `StackDefinition`.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What the package is.
        spec: RecordSpec = "spec",
        /// How it is.
        status: Option<RecordStatus> = "status",
    }

    /// What an installed package is.
    RecordSpec {
        /// The title.
        title: Option<String> = "title",
        /// One line about it.
        overview_short: Option<String> = "overviewShort",
        /// Plain text about it.
        overview: Option<String> = "overview",
        /// Markdown about it.
        readme: Option<String> = "readme",
        /// The version.
        version: Option<String> = "version",
        /// The company behind it.
        company: Option<String> = "company",
        /// The category that fits it best.
        category: Option<String> = "category",
        /// Where to read more.
        website: Option<String> = "website",
        /// Where its source is.
        source: Option<String> = "source",
        /// The licence, as SPDX has it.
        license: Option<String> = "license",
        /// Icons, the preferred one first.
        icons: Option<Vec<RecordIcon>> = "icons",
        /// People who maintain it.
        maintainers: Option<Vec<RecordPerson>> = "maintainers",
        /// People who own it.
        owners: Option<Vec<RecordPerson>> = "owners",
        /// Words to find it by.
        keywords: Option<Vec<String>> = "keywords",
        /// Definitions it depends on.
        depends_on: Option<Vec<PackageInstallSpec>> = "dependsOn",
        /// What sort of package it is.
        package_type: Option<String> = "packageType"
            with {"enum": ["Provider", "Stack", "Application", "Addon"]},
        /// Where it needs rights.
        permission_scope: Option<String> = "permissionScope"
            with {"enum": ["Cluster", "Namespaced"]},
        /// The kinds it owns.
        definitions: Option<Vec<DefinitionKind>> = "customresourcedefinitions",
        /// What runs it.
        controller: Option<RecordController> = "controller",
        /// What its account has.
        service_account: Option<ServiceAccountOptions> = "serviceAccount",
        /// What its controller may do.
        permissions: Option<RecordPermissions> = "permissions",
        /// What its templating controller is told.
        behavior: Option<RecordBehavior> = "behavior",
    }

    /// An icon.
    RecordIcon {
        /// The content.
        base64_data: Option<String> = "base64data",
        /// Its type.
        media_type: Option<String> = "mediatype",
    }

    /// A person.
    RecordPerson {
        /// The name.
        name: Option<String> = "name",
        /// The address.
        email: Option<String> = "email",
    }

    /// A kind that a package owns.
    DefinitionKind {
        /// Group and version.
        api_version: String = "apiVersion",
        /// The kind.
        kind: String = "kind",
    }

    /// What runs a package.
    RecordController {
        /// The Deployment.
        deployment: Option<ControllerDeployment> = "deployment",
        /// What its account has.
        service_account: Option<ServiceAccountOptions> = "serviceAccount",
    }

    /// The Deployment that runs a package.
    ControllerDeployment {
        /// Its name.
        name: Option<String> = "name",
        /// Its spec: any that apps/v1 has, with images left out where they are the package's own.
        spec: Option<Opaque> = "spec",
    }

    /// What a controller may do.
    RecordPermissions {
        /// Rules, as roles have them.
        rules: Option<OpaqueList> = "rules",
    }

    /// What a templating controller is told.
    RecordBehavior {
        /// The kind whose objects are filled in.
        definition: Option<DefinitionKind> = "crd",
        /// What fills in.
        engine: Option<BehaviorEngine> = "engine",
        /// Where templates are.
        source: Option<BehaviorSource> = "source",
    }

    /// What fills in templates.
    BehaviorEngine {
        /// `helm2` or kustomize.
        engine_type: Option<String> = "type" with {"enum": ["helm2", "kustomize"]},
        /// The image of the templating controller.
        controller_image: Option<String> = "controllerImage",
        /// Overlays, and a kustomization.
        kustomize: Option<Opaque> = "kustomize",
    }

    /// Where templates are.
    BehaviorSource {
        /// The image.
        image: Option<String> = "image",
        /// The directory in it.
        path: Option<String> = "path",
    }

    /// How an installed package is.
    RecordStatus {
        /// How it is, where readers of the time look for it.
        conditioned_status: Option<InstallConditions> = "conditionedStatus",
        /// How it is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        /// The Deployment that runs it.
        controller_reference: Option<InstallReference> = "controllerRef",
    }
}
