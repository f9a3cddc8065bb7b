//! What asks for a package.

use crate::condition::Condition;
use crate::object::ObjectMeta;
use crate::pkg::{
    ANNOTATION_CHOSEN_FOR, ANNOTATION_CHOSEN_PACKAGE, LocalReference, ServiceAccountOptions,
};
use crate::wire::wire;

wire! {
    /// A package that is asked for, with rights in the cluster or in its namespace.
    PackageInstall {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// `ClusterPackageInstall` or `PackageInstall`.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What is asked for.
        spec: PackageInstallSpec = "spec" with {"x-kubernetes-validations": [{
            "rule": "(has(self.__package__) && self.__package__ != '') != (has(self.crd) && self.crd != '')",
            "message": "exactly one of package and crd must be set",
        }]},
        /// What was found.
        status: Option<PackageInstallStatus> = "status",
    }

    /// What an install object asks for.
    PackageInstallSpec {
        /// The registry to take the package from, with a path if it has one; without it the
        /// manager's default.
        source: Option<String> = "source",
        /// The image of the package, with or without a tag.
        package: Option<String> = "package",
        /// A definition that the package brings: NAME.GROUP/VERSION.
        crd: Option<String> = "crd",
        /// Secrets in the namespace of this object, for the images of package and controller.
        image_pull_secrets: Option<Vec<LocalReference>> = "imagePullSecrets",
        /// When images of package and controller are pulled: Always, `IfNotPresent` or Never.
        image_pull_policy: Option<String> = "imagePullPolicy"
            with {"enum": ["Always", "IfNotPresent", "Never"]},
        /// What the controller's account has.
        service_account: Option<ServiceAccountOptions> = "serviceAccount",
    }

    /// What was found about a package that is asked for.
    PackageInstallStatus {
        /// How it is, where readers of the time look for it.
        conditioned_status: Option<InstallConditions> = "conditionedStatus",
        /// How it is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        /// The Job that unpacked the package; none where the manager does so itself.
        install_job: Option<InstallReference> = "installJob",
        /// The record of the package.
        package_record: Option<InstallReference> = "packageRecord",
    }

    /// Conditions, one level down.
    InstallConditions {
        /// How it is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }

    /// An object that belongs to an installed package.
    InstallReference {
        /// The version of its API.
        api_version: Option<String> = "apiVersion",
        /// Its kind.
        kind: Option<String> = "kind",
        /// Its name.
        name: Option<String> = "name",
        /// Its namespace.
        namespace: Option<String> = "namespace",
        /// Which object of that name.
        uid: Option<String> = "uid",
    }
}

impl PackageInstall {
    /// The object, with the image that was chosen for the definition that it asks for in place of that.
    /// A choice for another definition does not count.
    #[must_use]
    pub fn with_chosen_image(mut self) -> Self {
        let annotations = &self.metadata.annotations;
        let is_for_it = self.spec.crd.as_ref() == annotations.get(ANNOTATION_CHOSEN_FOR);
        let is_open = self.spec.crd.is_some() && self.spec.package.iter().all(String::is_empty);
        let chosen = annotations.get(ANNOTATION_CHOSEN_PACKAGE).filter(|_| is_for_it && is_open);
        if let Some(image) = chosen {
            self.spec.package = Some(image.clone());
            self.spec.crd = None;
        }
        self
    }
}
