//! A rule: verbs on resources or on paths. What it allows, and whether it covers another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::ask::Attributes;

/// One rule of a role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// What may be done; `*` is everything.
    pub verbs: Vec<String>,
    /// In which groups.
    pub groups: Vec<String>,
    /// With which resources: `pods`, `pods/status`, `*/status`, `*`.
    pub resources: Vec<String>,
    /// With which objects only; none means all.
    pub names: Vec<String>,
    /// On which paths, where it is not about resources.
    pub urls: Vec<String>,
}

const FIELDS: [&str; 5] = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];

impl Rule {
    /// A rule as objects write it.
    pub fn read(value: &Value) -> Self {
        let texts = |field: &str| {
            let list = value.get(field).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let [verbs, groups, resources, names, urls] = FIELDS.map(texts);
        Self { verbs, groups, resources, names, urls }
    }

    /// All rules of a role.
    pub fn read_all(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::read).collect()
    }

    /// The rule as objects write it.
    pub fn write(&self) -> Value {
        let mut map = Map::new();
        for (field, list) in FIELDS.iter().zip(self.lists()) {
            if !list.is_empty() || *field == "verbs" {
                map.insert((*field).to_owned(), json!(list));
            }
        }
        Value::Object(map)
    }

    fn lists(&self) -> [&Vec<String>; 5] {
        [&self.verbs, &self.groups, &self.resources, &self.names, &self.urls]
    }

    /// Whether this rule alone allows what is asked.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, &asked.verb) && !has(&self.verbs, "*") {
            return false;
        }
        let Some(resource) = &asked.resource else {
            return self.urls.iter().any(|url| url_covers(url, &asked.path));
        };
        (has(&self.groups, &resource.group) || has(&self.groups, "*"))
            && self.allows_resource(&resource.resource, &resource.subresource)
            && (self.names.is_empty() || has(&self.names, &resource.name))
    }

    fn allows_resource(&self, resource: &str, part: &str) -> bool {
        let whole = match part {
            "" => resource.to_owned(),
            part => format!("{resource}/{part}"),
        };
        self.resources.iter().any(|own| {
            let anything = own.strip_prefix("*/").is_some_and(|own| own == part);
            own == "*" || *own == whole || (anything && !part.is_empty())
        })
    }

    /// How many rules that each say one thing say the same as this one.
    fn atom_count(&self) -> usize {
        let places = self.groups.len().saturating_mul(self.resources.len());
        let places = places.saturating_mul(self.names.len().max(1));
        places.saturating_add(self.urls.len()).saturating_mul(self.verbs.len())
    }

    /// Rules that each say one thing and together the same as this one.
    fn atoms(&self) -> Vec<Self> {
        let mut atoms = Vec::new();
        let names: Vec<Vec<String>> = if self.names.is_empty() {
            vec![Vec::new()]
        } else {
            self.names.iter().map(|name| vec![name.clone()]).collect()
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    atoms.extend(names.iter().map(|names| Self {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: names.clone(),
                        urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.urls {
            atoms.extend(self.verbs.iter().map(|verb| Self {
                verbs: vec![verb.clone()],
                urls: vec![url.clone()],
                ..Self::default()
            }));
        }
        atoms
    }

    /// Whether whoever holds this rule holds all of `atom`.
    fn covers(&self, atom: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| {
            has(own, "*") || wanted.iter().all(|one| has(own, one))
        };
        let resource = |wanted: &String| {
            let part = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
            has(&self.resources, wanted) || part.is_some_and(|part| has(&self.resources, &part))
        };
        let names = self.names.is_empty()
            || (!atom.names.is_empty() && atom.names.iter().all(|name| has(&self.names, name)));
        let url = |wanted: &String| self.urls.iter().any(|own| url_covers(own, wanted));
        all(&self.verbs, &atom.verbs)
            && all(&self.groups, &atom.groups)
            && (has(&self.resources, "*") || atom.resources.iter().all(resource))
            && names
            && atom.urls.iter().all(url)
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`: how refusals show a rule.
    fn describe(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown = parts
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", quoted(list)));
        format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}

/// `["a" "b"]`: a list as Go prints it.
pub fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// One complaint as it is, several in brackets.
pub fn together(complaints: &[String]) -> String {
    match complaints {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The most rules that say one thing each which a role may come to. A short role comes to many: as
/// the product of its lists.
const ATOMS_MAX: usize = 1 << 16;

/// What of `wanted` is not in `held`, in rules that each say one thing. Rules that no single one
/// covers, and that say too many things to look at each, count as not held.
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let covered = |rule: &Rule| held.iter().any(|own| own.covers(rule));
    let rest: Vec<&Rule> = wanted.iter().filter(|rule| !covered(rule)).collect();
    let atoms = rest.iter().fold(0, |sum: usize, rule| sum.saturating_add(rule.atom_count()));
    if atoms > ATOMS_MAX {
        return rest.into_iter().cloned().collect();
    }
    let atoms = rest.into_iter().flat_map(Rule::atoms);
    atoms.filter(|atom| !covered(atom)).collect()
}

/// Rules for people to read: those that differ in their verb only are one line.
pub fn describe(atoms: &[Rule]) -> String {
    let mut lines = BTreeSet::new();
    let mut joined: BTreeMap<_, Rule> = BTreeMap::new();
    for atom in atoms {
        if !atom.urls.is_empty() {
            lines.insert(atom.describe());
            continue;
        }
        let key = (atom.groups.clone(), atom.resources.clone(), atom.names.clone());
        match joined.get_mut(&key) {
            Some(rule) => rule.verbs.extend(atom.verbs.iter().cloned()),
            None => {
                joined.insert(key, atom.clone());
            }
        }
    }
    lines.extend(joined.values().map(Rule::describe));
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == wanted)
}

/// `/apis/*` covers what starts with `/apis/`.
fn url_covers(own: &str, wanted: &str) -> bool {
    own == wanted || (own.ends_with('*') && wanted.starts_with(own.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::User;
    use crate::auth::ask::Resource;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str, urls: &str) -> Rule {
        let list = |text: &str| -> Vec<String> {
            text.split_whitespace()
                .map(|one| if one == "core" { String::new() } else { one.to_owned() })
                .collect()
        };
        Rule {
            verbs: list(verbs),
            groups: list(groups),
            resources: list(resources),
            names: list(names),
            urls: list(urls),
        }
    }

    #[test]
    fn a_rule_allows_what_it_names_and_no_more() {
        let user = User::default();
        let check = |rule: &Rule, verb: &str, what: (&str, &str, &str, &str), expect: bool| {
            let (group, resource, subresource, name) = what;
            let asked = Attributes {
                user: &user,
                verb: verb.to_owned(),
                path: String::new(),
                resource: Some(Resource {
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    namespace: String::new(),
                    name: name.to_owned(),
                }),
            };
            assert_eq!(rule.allows(&asked), expect, "{rule:?} {verb} {what:?}");
        };
        let pods = rule("get list", "core", "pods", "", "");
        check(&pods, "get", ("", "pods", "", "a"), true);
        check(&pods, "watch", ("", "pods", "", ""), false);
        check(&pods, "get", ("apps", "pods", "", "a"), false);
        check(&pods, "get", ("", "pods", "status", "a"), false);
        let parts = rule("*", "*", "*/status pods/log", "", "");
        check(&parts, "patch", ("x", "things", "status", "a"), true);
        check(&parts, "patch", ("x", "things", "", "a"), false);
        check(&parts, "get", ("", "pods", "log", "a"), true);
        check(&parts, "get", ("", "jobs", "log", "a"), false);
        let named = rule("get list", "core", "secrets", "a", "");
        check(&named, "get", ("", "secrets", "", "a"), true);
        check(&named, "get", ("", "secrets", "", "b"), false);
        check(&named, "list", ("", "secrets", "", ""), false);
        let all = rule("*", "*", "*", "", "");
        check(&all, "any", ("g", "r", "p", "n"), true);
        let paths = rule("get", "", "", "", "/healthz /metrics/*");
        check(&paths, "get", ("", "pods", "", ""), false);
        for (path, expect) in [("/healthz", true), ("/healthz/x", false), ("/metrics/a", true)] {
            let asked = Attributes {
                user: &user,
                verb: "get".to_owned(),
                path: path.to_owned(),
                resource: None,
            };
            assert_eq!(paths.allows(&asked), expect, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_said_in_short_lines() {
        let held = [rule("get", "core", "pods", "", ""), rule("*", "*", "*/scale", "", "")];
        let wanted = [
            rule("get list watch", "core", "pods", "", ""),
            rule("patch", "apps", "deployments/scale", "", ""),
            rule("get", "", "", "", "/metrics"),
            rule("get", "core", "secrets", "a b", ""),
        ];
        assert_eq!(
            describe(&missing(&held, &wanted)),
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}\n\
             {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
        );
        assert_eq!(missing(&[rule("*", "*", "*", "", "*")], &wanted), []);
        // A right to some objects is not the right to all.
        let named = [rule("get", "core", "secrets", "a", "")];
        assert_eq!(missing(&named, &[rule("get", "core", "secrets", "", "")]).len(), 1);
        assert_eq!(missing(&named, &named), []);
    }

    /// A role of a few kilobytes says billions of things, one by one.
    #[test]
    fn h5_roles_are_not_taken_apart_without_bound() {
        let many =
            |word: &str| (0..2000).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join(" ");
        let big = rule(&many("v"), &many("g"), &many("r"), &many("n"), "");
        assert_eq!(big.atom_count(), 2000_usize.pow(4));
        let everything = rule("*", "*", "*", "", "");
        assert_eq!(missing(&[everything], std::slice::from_ref(&big)), []);
        let half = rule("v0", "*", "*", "", "");
        assert_eq!(missing(&[half], std::slice::from_ref(&big)), [big]);
    }
}
