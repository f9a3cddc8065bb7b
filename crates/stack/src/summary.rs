//! What a package of this format is, in the same facts as those of packages of today.

use super::app::VersionTag;
use super::files::RegistryFiles;
use super::record::RecordOptions;
use super::{STACK_API_VERSION, Stack};
use serde_json::Value as Json;
use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::facts::{DependencyFacts, Inspection, ObjectFacts, PackageFacts, PermissionFacts};

/// What can be said of a package, as far as it could be read.
pub fn inspect_stack(
    source: String,
    files: &RegistryFiles,
    stack: Option<&Stack>,
    findings: &[Diagnostic],
) -> Inspection {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    Inspection {
        source,
        package: stack.map(list_facts),
        dependencies: stack.map(list_dependencies).unwrap_or_default(),
        objects: stack.map(list_objects).unwrap_or_default(),
        image: None,
        stream_size: files.files.iter().map(|file| file.bytes.len() as u64).sum(),
        errors,
        warnings: findings.len() - errors,
    }
}

pub(crate) fn list_facts(stack: &Stack) -> PackageFacts {
    let text = |key: &str| stack.app.find_text(key).map(|text| text.trim().to_owned());
    let people = stack.app.spec.get("maintainers").and_then(Json::as_array);
    let name = |person: &Json| match (person["name"].as_str(), person["email"].as_str()) {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email).map(str::to_owned),
    };
    let people: Vec<String> = people.into_iter().flatten().filter_map(name).collect();
    let options = RecordOptions { name: None, image: None, tag: VersionTag::Untagged };
    let record = stack.to_record(&options);
    let rules = record.pointer("/spec/permissions/rules").and_then(Json::as_array);
    PackageFacts {
        api_version: STACK_API_VERSION.to_owned(),
        kind: text("packageType").unwrap_or_else(|| "Package".to_owned()),
        name: text("title").unwrap_or_else(|| "untitled".to_owned()),
        crossplane: None,
        description: text("overviewShort").or_else(|| text("overview")),
        maintainer: Some(people.join(", ")).filter(|people| !people.is_empty()),
        source: text("source"),
        license: text("license"),
        readme: text("readme"),
        controller_image: stack.controller_image().map(str::to_owned),
        capabilities: Vec::new(),
        permission_requests: rules.into_iter().flatten().map(permission_of).collect(),
    }
}

fn permission_of(rule: &Json) -> PermissionFacts {
    let texts = |key: &str| {
        let all = rule.get(key).and_then(Json::as_array).into_iter().flatten();
        all.filter_map(Json::as_str).map(str::to_owned).collect()
    };
    PermissionFacts {
        api_groups: texts("apiGroups"),
        resources: texts("resources"),
        resource_names: Vec::new(),
        non_resource_urls: Vec::new(),
        verbs: texts("verbs"),
    }
}

fn list_dependencies(stack: &Stack) -> Vec<DependencyFacts> {
    let required = stack.app.requirements.iter();
    let facts = required.map(|one| DependencyFacts {
        kind: "CustomResourceDefinition".to_owned(),
        package: format!("{}.{}", one.name, one.group),
        version: one.version.clone().unwrap_or_else(|| "*".to_owned()),
    });
    facts.collect()
}

fn list_objects(stack: &Stack) -> Vec<ObjectFacts> {
    let definitions = stack.definitions.iter();
    let facts = definitions.map(|one| ObjectFacts {
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        name: one.name().to_owned(),
    });
    facts.collect()
}

impl Stack {
    /// The image of the first container, if one is named.
    pub fn controller_image(&self) -> Option<&str> {
        let deployment = self.deployment.as_ref()?;
        let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
        let image = containers.first()?.get("image")?.as_str();
        image.filter(|image| !image.is_empty())
    }
}
