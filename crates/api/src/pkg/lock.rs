//! The lock: who needs whom, and who owns what. There is one, called `lock`.

use crate::condition::Condition;
use crate::object::ObjectMeta;
use crate::wire::wire;
use std::collections::BTreeMap;

/// The name of the only one.
pub const NAME: &str = "lock";

wire! {
    /// What is known about all packages together.
    Lock {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Always Lock.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// The packages that are installed.
        packages: Option<Vec<LockPackage>> = "packages",
        /// Which package owns each CRD, by the name of the CRD.
        custom_resource_definitions: Option<BTreeMap<String, String>> = "customResourceDefinitions",
        /// Which package owns each composition, by the name of the composition.
        compositions: Option<BTreeMap<String, String>> = "compositions",
        /// What was found.
        status: Option<LockStatus> = "status",
    }

    /// A package that is installed.
    LockPackage {
        /// The name of its revision.
        name: String = "name",
        /// The version of the API of its package object.
        api_version: Option<String> = "apiVersion",
        /// The kind of its package object.
        kind: Option<String> = "kind",
        /// The older way to say what kind of package it is.
        package_type: Option<String> = "type"
            with {"enum": ["Configuration", "Provider", "Function"]},
        /// Its repository.
        source: String = "source",
        /// Its tag or digest.
        version: String = "version",
        /// The bytes it is, whatever its tag means by now.
        digest: Option<String> = "digest",
        /// What it needs.
        dependencies: Vec<Dependency> = "dependencies",
    }

    /// Something a package needs.
    Dependency {
        /// Its repository.
        package: String = "package",
        /// The version of the API of its package object.
        api_version: Option<String> = "apiVersion",
        /// The kind of its package object.
        kind: Option<String> = "kind",
        /// The older way to say what kind of package it is.
        package_type: Option<String> = "type"
            with {"enum": ["Configuration", "Provider", "Function"]},
        /// Which versions will do: a constraint or a digest.
        constraints: String = "constraints",
        /// Of a dependency on a definition: the repository of the package that brings it.
        brought_by: Option<String> = "broughtBy",
        /// Of a dependency on a definition: the bytes of that package.
        digest: Option<String> = "digest",
        /// Of a dependency on a definition: why it is that package.
        reason: Option<String> = "reason",
    }

    /// What was found about the lock.
    LockStatus {
        /// How the lock is.
        conditions: Option<Vec<Condition>> = "conditions"
            with {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }
}
