//! An inspection for people's eyes.

use crate::output::table;
use crate::output::tree::{Branch, lines};
use crate::output::{self, bold, dim, print};
use xpkg::facts::{Inspection, LayerFacts, ObjectFacts, PackageFacts};

/// How many objects are listed before the rest is only counted.
const OBJECTS_SHOWN: usize = 20;
/// How many lines of a readme are shown before the rest is only counted.
const README_LINES_SHOWN: usize = 12;

/// Sections of columns.
pub(super) fn table(inspection: &Inspection, all: bool) {
    heading(inspection);
    for (key, value) in facts(inspection) {
        print(format_args!("{key:<12}{value}"));
    }
    let dependencies = inspection.dependencies.iter();
    let dependencies: Vec<Vec<String>> = dependencies
        .map(|one| vec![one.kind.clone(), one.package.clone(), one.version.clone()])
        .collect();
    section("dependencies", &["KIND", "PACKAGE", "VERSION"], &dependencies, dependencies.len());
    let rights: Vec<Vec<String>> = inspection
        .package
        .iter()
        .flat_map(|package| &package.permission_requests)
        .map(|right| vec![right.verbs.join(", "), right.name_objects()])
        .collect();
    section("permission requests", &["MAY", "ON"], &rights, rights.len());
    let total = inspection.objects.len();
    let objects: Vec<Vec<String>> = shown(inspection, all).iter().map(row).collect();
    section("objects", &["KIND", "NAME", "APIVERSION"], &objects, total);
    if let Some(image) = &inspection.image {
        let header = ["ROLE", "SIZE", "DIGEST"];
        section("layers", &header, &layers(&image.layers), image.layers.len());
        if let Some(extensions) = &image.extensions {
            let rows = layers(&extensions.layers);
            section("extensions, for other readers", &header, &rows, rows.len());
        }
    }
    readme(inspection, all);
    trouble(inspection);
}

/// What the package says of itself at length.
fn readme(inspection: &Inspection, all: bool) {
    let Some(readme) = inspection.package.as_ref().and_then(|package| package.readme.as_deref())
    else {
        return;
    };
    let lines: Vec<&str> = readme.lines().collect();
    let shown = if all { lines.len() } else { lines.len().min(README_LINES_SHOWN) };
    print("");
    print(bold("readme"));
    for line in &lines[..shown] {
        print(format_args!("  {line}"));
    }
    if shown < lines.len() {
        print(format_args!("  … and {} more lines; show them with --all", lines.len() - shown));
    }
}

fn heading(inspection: &Inspection) {
    match &inspection.package {
        Some(package) => {
            print(format_args!("{} {}", bold(&package.name), dim(&package.kind)));
            if let Some(description) = &package.description {
                description.trim_end().lines().for_each(print);
            }
        }
        None => print(format_args!("{} has no readable metadata", bold(&inspection.source))),
    }
    print("");
}

/// What there is to say, in the order people ask.
fn facts(inspection: &Inspection) -> Vec<(&'static str, String)> {
    let mut facts = vec![("source", inspection.source.clone())];
    if let Some(image) = &inspection.image {
        facts.push(("digest", image.digest.clone()));
        if !image.platforms.is_empty() {
            facts.push(("platforms", image.platforms.join(", ")));
        }
        let layers = output::count(image.layers.len(), "layer");
        facts.push(("size", format!("{} in {layers}", output::size(image.size))));
    }
    facts.push(("contents", format!("{} of YAML", output::size(inspection.stream_size))));
    if let Some(package) = &inspection.package {
        facts.push(("format", package.api_version.clone()));
        facts.extend(package_facts(package));
    }
    facts
}

fn package_facts(package: &PackageFacts) -> Vec<(&'static str, String)> {
    let optional = [
        ("crossplane", package.crossplane.clone()),
        ("runs", package.controller_image.clone()),
        ("maintainer", package.maintainer.clone()),
        ("from", package.source.clone()),
        ("license", package.license.clone()),
        ("can", Some(package.capabilities.join(", ")).filter(|text| !text.is_empty())),
    ];
    optional.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn section(title: &str, header: &[&str], rows: &[Vec<String>], total: usize) {
    if total == 0 {
        return;
    }
    print("");
    print(format_args!("{} {}", bold(title), dim(format_args!("({total})"))));
    for line in table::table(header, rows) {
        print(format_args!("  {line}"));
    }
    if rows.len() < total {
        print(format_args!("  … and {} more; show them with --all", total - rows.len()));
    }
}

fn shown(inspection: &Inspection, all: bool) -> &[ObjectFacts] {
    let count = if all { inspection.objects.len() } else { OBJECTS_SHOWN };
    &inspection.objects[..count.min(inspection.objects.len())]
}

fn row(object: &ObjectFacts) -> Vec<String> {
    vec![object.kind.clone(), object.name.clone(), object.api_version.clone()]
}

fn layers(layers: &[LayerFacts]) -> Vec<Vec<String>> {
    let role = |role: &Option<String>| match role.as_deref() {
        Some("base") => "package".to_owned(),
        Some("upbound") => "examples".to_owned(),
        Some(other) => other.to_owned(),
        None => "-".to_owned(),
    };
    layers
        .iter()
        .map(|layer| vec![role(&layer.role), output::size(layer.size), layer.digest.clone()])
        .collect()
}

fn trouble(inspection: &Inspection) {
    let (errors, warnings) = (inspection.errors, inspection.warnings);
    if errors + warnings == 0 {
        return;
    }
    print("");
    print(format_args!(
        "the check found {} and {}; `apron lint {}` lists them",
        output::count(errors, "error"),
        output::count(warnings, "warning"),
        inspection.source,
    ));
}

/// The package and what is in it, as branches.
pub(super) fn tree(inspection: &Inspection, all: bool) {
    let (name, kind) = match &inspection.package {
        Some(package) => (package.name.as_str(), package.kind.as_str()),
        None => (inspection.source.as_str(), "no readable metadata"),
    };
    let root = format!("{} {}", bold(name), dim(kind));
    let mut branches: Vec<(String, Vec<String>)> = Vec::new();
    let dependencies: Vec<String> = inspection
        .dependencies
        .iter()
        .map(|one| format!("{} {} {}", one.package, dim(&one.version), dim(&one.kind)))
        .collect();
    branches.push(("dependencies".to_owned(), dependencies));
    for (kind, mut names) in by_kind(&inspection.objects) {
        let total = names.len();
        if !all && total > OBJECTS_SHOWN {
            names.truncate(OBJECTS_SHOWN);
            names.push(format!("… and {} more; show them with --all", total - OBJECTS_SHOWN));
        }
        branches.push((format!("{kind} {}", dim(format_args!("({total})"))), names));
    }
    if let Some(image) = &inspection.image {
        let lines = |all: &[LayerFacts]| {
            layers(all).into_iter().map(|cells| cells.join(" ")).collect::<Vec<String>>()
        };
        branches.push(("layers".to_owned(), lines(&image.layers)));
        let extensions = image.extensions.iter();
        branches.extend(extensions.map(|one| ("extensions".to_owned(), lines(&one.layers))));
    }
    branches.retain(|(_, leaves)| !leaves.is_empty());
    draw(root, branches);
    trouble(inspection);
}

fn draw(root: String, branches: Vec<(String, Vec<String>)>) {
    let branch = |(line, leaves): (String, Vec<String>)| Branch {
        line,
        below: leaves.into_iter().map(Branch::leaf).collect(),
    };
    let root = Branch { line: root, below: branches.into_iter().map(branch).collect() };
    lines(&root).into_iter().for_each(print);
}

/// Objects grouped by kind, kinds in the order they first appear.
fn by_kind(objects: &[ObjectFacts]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for object in objects {
        match groups.iter_mut().find(|(kind, _)| *kind == object.kind) {
            Some((_, names)) => names.push(object.name.clone()),
            None => groups.push((object.kind.clone(), vec![object.name.clone()])),
        }
    }
    groups
}
