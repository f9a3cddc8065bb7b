//! One definition: a `CustomResourceDefinition` as generators of providers write them.

use crate::dice::Dice;
use crate::schema::{Room, Yaml, write_properties};
use crate::{measured, words};

/// Size of what each definition has in any case.
const SKELETON: usize = 1_600;

/// A definition that is not written yet.
#[derive(Debug)]
pub struct Definition {
    group: String,
    kind: String,
    versions: Vec<Version>,
    dice: Dice,
}

#[derive(Debug)]
struct Version {
    name: &'static str,
    is_deprecated: bool,
    size: usize,
    depth: usize,
    rules: usize,
}

impl Definition {
    /// The definition with this index, of a seed.
    pub fn generate(index: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed, index as u64);
        let size = dice.measured(&measured::SIZES);
        let has_two = size > 2 * 2_400 && dice.happens(measured::DEPRECATED_PERMILLE, 1000);
        let count = if has_two { 2 } else { 1 };
        let mut version = |name, is_deprecated| Version {
            name,
            is_deprecated,
            size: size / count,
            depth: dice.measured(&measured::DEPTHS),
            rules: if dice.happens(measured::RULES_PERMILLE, 1000) {
                dice.measured(&measured::RULES)
            } else {
                0
            },
        };
        let mut versions = Vec::new();
        if has_two {
            versions.push(version("v1beta1", true));
        }
        versions.push(version(if has_two { "v1beta2" } else { "v1beta1" }, false));
        Self {
            group: format!("{}.cloud.example.org", words::word(index % measured::GROUPS)),
            kind: words::capitalised(&words::word(index)),
            versions,
            dice,
        }
    }

    /// The name of its file, as generators choose it.
    pub fn file_name(&self) -> String {
        format!("{}_{}.yaml", self.group, self.plural())
    }

    fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    /// The definition as YAML.
    pub fn to_yaml(&self) -> String {
        let mut yaml = Yaml::default();
        let (kind, plural) = (&self.kind, self.plural());
        let singular = kind.to_lowercase();
        for line in [
            "---".to_owned(),
            "apiVersion: apiextensions.k8s.io/v1".to_owned(),
            "kind: CustomResourceDefinition".to_owned(),
            "metadata:".to_owned(),
            "  annotations:".to_owned(),
            "    example.org/generator: corpus".to_owned(),
            format!("  name: {plural}.{}", self.group),
            "spec:".to_owned(),
            format!("  group: {}", self.group),
            "  names:".to_owned(),
            "    categories:".to_owned(),
            "    - crossplane".to_owned(),
            "    - managed".to_owned(),
            format!("    kind: {kind}"),
            format!("    listKind: {kind}List"),
            format!("    plural: {plural}"),
            format!("    singular: {singular}"),
            "  scope: Cluster".to_owned(),
            "  versions:".to_owned(),
        ] {
            yaml.line(0, line);
        }
        let mut dice = self.dice.clone();
        for version in &self.versions {
            self.write_version(&mut yaml, version, &mut dice);
        }
        yaml.into_text()
    }

    fn write_version(&self, yaml: &mut Yaml, version: &Version, dice: &mut Dice) {
        let start = yaml.len();
        yaml.line(2, "- additionalPrinterColumns:");
        for (name, path, kind) in [
            ("SYNCED", ".status.conditions[?(@.type=='Synced')].status", "string"),
            ("READY", ".status.conditions[?(@.type=='Ready')].status", "string"),
            ("AGE", ".metadata.creationTimestamp", "date"),
        ] {
            yaml.line(4, format!("- jsonPath: {path}"));
            yaml.line(6, format!("name: {name}"));
            yaml.line(6, format!("type: {kind}"));
        }
        if version.is_deprecated {
            yaml.line(4, "deprecated: true");
            yaml.line(4, format!("deprecationWarning: {} is followed by v1beta2", version.name));
        }
        yaml.line(4, format!("name: {}", version.name));
        yaml.line(4, "schema:");
        yaml.line(6, "openAPIV3Schema:");
        yaml.line(8, format!("description: {} is a kind of the corpus.", self.kind));
        yaml.line(8, "properties:");
        for name in ["apiVersion", "kind"] {
            yaml.line(10, format!("{name}:"));
            yaml.line(12, "type: string");
        }
        yaml.line(10, "metadata:");
        yaml.line(12, "type: object");
        self.write_spec(yaml, version, start, dice);
        write_status(yaml, version, start, dice);
        yaml.line(8, "required:");
        yaml.line(8, "- spec");
        yaml.line(8, "type: object");
        yaml.line(4, "served: true");
        yaml.line(4, format!("storage: {}", !version.is_deprecated));
        yaml.line(4, "subresources:");
        yaml.line(6, "status: {}");
    }

    fn write_spec(&self, yaml: &mut Yaml, version: &Version, start: usize, dice: &mut Dice) {
        let room = version.size.saturating_sub(SKELETON);
        yaml.line(10, "spec:");
        yaml.line(12, format!("description: what is wanted of {}", self.kind));
        yaml.line(12, "properties:");
        yaml.line(14, "deletionPolicy:");
        yaml.line(16, "default: Delete");
        yaml.line(16, "enum:");
        yaml.line(16, "- Orphan");
        yaml.line(16, "- Delete");
        yaml.line(16, "type: string");
        // Half of the fields are wanted, half are observed.
        for (name, end) in [("forProvider", 3), ("initProvider", 5)] {
            yaml.line(14, format!("{name}:"));
            let room = Room { depth: version.depth - 3, end: start + SKELETON + room * end / 10 };
            write_properties(yaml, 16, dice, room);
            yaml.line(16, "type: object");
        }
        yaml.line(12, "required:");
        yaml.line(12, "- forProvider");
        yaml.line(12, "type: object");
        write_rules(yaml, version.rules, dice);
    }
}

/// Rules as generators write them: a field is wanted unless the object is only observed.
fn write_rules(yaml: &mut Yaml, count: usize, dice: &mut Dice) {
    if count > 0 {
        yaml.line(12, "x-kubernetes-validations:");
    }
    for _ in 0..count {
        let policy = *dice.pick(&["Delete", "Orphan"]);
        yaml.line(12, "- message: a policy is one of two");
        yaml.line(
            14,
            format!(
                "rule: '!has(self.deletionPolicy) || self.deletionPolicy == ''{policy}'' || \
                 has(self.forProvider)'"
            ),
        );
    }
}

fn write_status(yaml: &mut Yaml, version: &Version, start: usize, dice: &mut Dice) {
    yaml.line(10, "status:");
    yaml.line(12, "properties:");
    yaml.line(14, "atProvider:");
    let room = Room { depth: version.depth - 3, end: start + version.size.saturating_sub(600) };
    write_properties(yaml, 16, dice, room);
    yaml.line(16, "type: object");
    for line in [
        "  conditions:",
        "    items:",
        "      properties:",
        "        status:",
        "          type: string",
        "        type:",
        "          type: string",
        "      required:",
        "      - status",
        "      - type",
        "      type: object",
        "    type: array",
        "    x-kubernetes-list-map-keys:",
        "    - type",
        "    x-kubernetes-list-type: map",
    ] {
        yaml.line(12, line);
    }
    yaml.line(12, "type: object");
}
