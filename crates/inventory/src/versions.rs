//! Versions of packages: what a user means by another one, how it is told, and whether it will do.

use crate::installed::{Installed, Inventory, Needed, Which, reference, version};
use api::meta::PackageKind;
use ground::failure::{Failure, Outcome};
use xpkg::constraint::Constraint;
use xpkg::version::Version;

impl Installed {
    /// From which version to which: what was asked for may never have come.
    pub fn describe_move(&self, package: &str) -> String {
        let after = version(package);
        let active = self.active().map(|it| it.spec.image.as_str());
        if active == Some(package) {
            return format!("to {after}, which is active");
        }
        let before = active.map_or_else(|| self.asked_version(), version);
        if before == after {
            return format!("from {} to {package}", active.unwrap_or(&self.package.spec.package));
        }
        format!("from {before} to {after}")
    }

    /// The image that is meant: a reference as it is, or the old repository with another version.
    pub fn other_version(&self, to: &str) -> Outcome<String> {
        if to.contains('/') {
            return reference(to).map(|_| to.to_owned()).ok_or_else(|| {
                let hint = "a reference looks like registry.example.org/team/package:v1.0.0";
                Failure::new(format!("`{to}` is not a reference to a package"), hint)
            });
        }
        let old = &self.package.spec.package;
        let repository = match reference(old) {
            Some(old) => xpkg::label::source(&old).to_owned(),
            None => old.clone(),
        };
        // A tag stays before a digest in what is written; neither may stay here.
        let last = repository.rfind('/').map_or(0, |slash| slash + 1);
        let bare =
            repository[last..].find(':').map_or(&*repository, |colon| &repository[..last + colon]);
        let digest = to.strip_prefix('@').unwrap_or(to);
        let written = if digest.starts_with("sha256:") {
            format!("{bare}@{digest}")
        } else {
            format!("{bare}:{to}")
        };
        match reference(&written) {
            Some(_) => Ok(written),
            None => Err(Failure::new(
                format!("`{to}` is neither a version nor a reference"),
                "a version is a tag such as v1.2.0, or a digest such as sha256:… with 64 digits",
            )),
        }
    }
}

impl Inventory {
    /// The package to change: by its name, or by the repository of the reference that it should become.
    pub fn find_updated(
        &self,
        kind: Option<PackageKind>,
        name: Option<&str>,
        to: &str,
    ) -> Outcome<&Installed> {
        if let Some(name) = name {
            let mut which = Which::parse(name);
            which.kind = kind.or(which.kind);
            return self.find(&which);
        }
        let Some(wanted) = reference(to).filter(|_| to.contains('/')) else {
            return Err(Failure::new(
                format!("which package should become {to}?"),
                "give its name and a version, or a whole reference: apron update NAME VERSION",
            ));
        };
        let fits = |one: &&Installed| kind.is_none_or(|kind| kind == one.kind);
        let same: Vec<&Installed> =
            self.of_repository(wanted.repository()).into_iter().filter(fits).collect();
        // Where a kind is said, a package that moves to another registry has the name of its path.
        let path = xpkg::label::object_name(&wanted);
        let moved = self.packages.iter().filter(fits).find(|one| one.name() == path);
        match same.as_slice() {
            [one] => Ok(one),
            [] => moved.filter(|_| kind.is_some()).ok_or_else(|| {
                let hint =
                    format!("install it with `apron install {to}`, or name the package to change");
                Failure::new(format!("nothing is installed from {}", wanted.repository()), hint)
            }),
            several => {
                let names: Vec<String> = several.iter().map(|one| one.id()).collect();
                let hint = format!("name one: {}", names.join(" or "));
                let message = format!("several packages come from {}", wanted.repository());
                Err(Failure::new(message, hint))
            }
        }
    }
}

impl Needed<'_> {
    /// Whether what is installed will do; nothing if that cannot be told.
    pub fn fits(&self) -> Option<bool> {
        let installed = self.installed?;
        if self.is_on_kind() {
            return None;
        }
        let constraints = &self.dependency.constraints;
        let reference = reference(installed.image())?;
        if constraints.starts_with("sha256:") {
            return Some(reference.identifier().to_string() == *constraints);
        }
        let version = Version::parse(reference.identifier().as_tag()?).ok()?;
        Some(Constraint::parse(constraints).ok()?.matches(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_that_never_came_is_not_what_a_package_is_moved_from() {
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "p"},
            "spec": {"package": "example.org/p:v9.9.9"},
        });
        let revision = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
            "metadata": {"name": "p-1", "labels": {"pkg.crossplane.io/package": "p"}},
            "spec": {"desiredState": "Active", "image": "example.org/p:v1.0.0", "revision": 1},
        });
        let step = |revisions: Vec<serde_json::Value>, after: &str| {
            let found = vec![(PackageKind::Provider, package.clone(), revisions)];
            Inventory::of(found, json!({})).unwrap().packages[0].describe_move(after)
        };
        let revision = || vec![revision.clone()];
        assert_eq!(step(revision(), "example.org/p:v1.1.0"), "from v1.0.0 to v1.1.0");
        assert_eq!(step(revision(), "example.org/p:v1.0.0"), "to v1.0.0, which is active");
        assert_eq!(
            step(revision(), "example.com/p:v1.0.0"),
            "from example.org/p:v1.0.0 to example.com/p:v1.0.0"
        );
        assert_eq!(step(Vec::new(), "example.org/p:v1.0.0"), "from v9.9.9 to v1.0.0");
    }

    #[test]
    fn a_package_that_moves_to_another_registry_is_found_by_its_kind_and_path() {
        let name = "crossplane-contrib-provider-nop";
        let package = json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": name},
            "spec": {"package": "old.example.org/crossplane-contrib/provider-nop:v0.2.0"},
        });
        let inventory =
            Inventory::of(vec![(PackageKind::Provider, package, Vec::new())], json!({})).unwrap();
        let found = |kind: Option<PackageKind>| {
            let to = "new.example.org/crossplane-contrib/provider-nop:v0.4.0";
            inventory.find_updated(kind, None, to).ok().map(|one| one.name().to_owned())
        };
        assert_eq!(found(Some(PackageKind::Provider)).as_deref(), Some(name));
        assert_eq!((found(Some(PackageKind::Function)), found(None)), (None, None));
    }
}
