//! Two schemas of the same version: which values are no longer taken, and which fields went.

use super::{Changes, Severity, shortened, shown};
use serde_json::{Number, Value as Json};
use std::cmp::Ordering;
use std::collections::BTreeSet;

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Whether a version of a definition is served; older texts may leave that out, which is no.
pub(super) fn is_served(version: &Json) -> bool {
    version["served"] == true
}

/// Finds the changes between the schemas of one field, and of all below it.
pub(super) fn compare_schemas(old: &Json, new: &Json, path: &str, found: &mut Changes) {
    let mut field = Field { old, new, path, found };
    if !field.compare_types() {
        return;
    }
    field.compare_enums();
    field.compare_bounds();
    field.compare_texts();
    field.compare_flags();
    field.compare_default();
    field.compare_merging();
    field.compare_logic();
    field.compare_rules();
    field.compare_properties();
    field.compare_required();
    field.compare_map_values();
    if old["items"].is_object() && new["items"].is_object() {
        compare_schemas(&old["items"], &new["items"], &format!("{path}[]"), found);
    }
}

/// A field that both schemas have.
struct Field<'a> {
    old: &'a Json,
    new: &'a Json,
    path: &'a str,
    found: &'a mut Changes,
}

impl Field<'_> {
    fn add(&mut self, severity: Severity, rule: &'static str, message: impl Into<String>) {
        self.found.add(severity, rule, self.path, message);
    }

    /// How much it matters that fewer values are taken: what only a controller writes is its own
    /// business.
    fn tightened(&self) -> Severity {
        let below = self.path.strip_prefix("status");
        let is_status = below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if is_status { Severity::Warning } else { Severity::Breaking }
    }

    /// Whether the rest can be compared.
    fn compare_types(&mut self) -> bool {
        let (old, new) = (type_of(self.old), type_of(self.new));
        if old == new {
            return true;
        }
        let widens = matches!(
            (old, new),
            (_, "any") | ("integer", "number") | ("integer" | "string", "int-or-string")
        );
        let severity = if widens { Severity::Note } else { Severity::Breaking };
        self.add(severity, "type", format!("type {old} becomes {new}"));
        widens
    }

    fn compare_enums(&mut self) {
        let (old, new) = (items(&self.old["enum"]), items(&self.new["enum"]));
        match (old.is_empty(), new.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let all: Vec<String> = new.into_iter().collect();
                let message = format!("limited to {}", shortened(&all.join(", ")));
                self.add(self.tightened(), "enum", message);
            }
            (false, true) => self.add(Severity::Note, "enum", "no longer limited to some values"),
            (false, false) => {
                for value in old.difference(&new) {
                    let message = format!("value {} no longer allowed", shortened(value));
                    self.add(self.tightened(), "enum", message);
                }
                for value in new.difference(&old) {
                    self.add(Severity::Note, "enum", format!("value {} added", shortened(value)));
                }
            }
        }
    }

    fn compare_bounds(&mut self) {
        for (keyword, tighter) in [
            ("minimum", Ordering::Greater),
            ("minLength", Ordering::Greater),
            ("minItems", Ordering::Greater),
            ("minProperties", Ordering::Greater),
            ("maximum", Ordering::Less),
            ("maxLength", Ordering::Less),
            ("maxItems", Ordering::Less),
            ("maxProperties", Ordering::Less),
        ] {
            let number = |schema: &Json| schema[keyword].as_number().cloned();
            match (number(self.old), number(self.new)) {
                (None, Some(new)) if limits_nothing(keyword, &new) => {}
                (None, Some(new)) => {
                    self.add(self.tightened(), "bounds", format!("{keyword} {new} added"));
                }
                (Some(old), None) => {
                    self.add(Severity::Note, "bounds", format!("{keyword} {old} removed"));
                }
                (Some(old), Some(new)) => match compare_numbers(&new, &old) {
                    Ordering::Equal => {}
                    order => {
                        let severity =
                            if order == tighter { self.tightened() } else { Severity::Note };
                        self.add(severity, "bounds", format!("{keyword} {old} becomes {new}"));
                    }
                },
                (None, None) => {}
            }
        }
        for keyword in ["exclusiveMinimum", "exclusiveMaximum", "uniqueItems"] {
            match (self.old[keyword] == true, self.new[keyword] == true) {
                (false, true) => self.add(self.tightened(), "bounds", format!("{keyword} added")),
                (true, false) => self.add(Severity::Note, "bounds", format!("{keyword} removed")),
                _ => {}
            }
        }
        self.compare_keyword("multipleOf", "bounds", |_, _| false);
    }

    fn compare_texts(&mut self) {
        self.compare_keyword("pattern", "pattern", |_, _| false);
        self.compare_keyword("format", "format", |old, new| {
            matches!(
                (old.as_str(), new.as_str()),
                (Some("int32"), Some("int64")) | (Some("float"), Some("double"))
            )
        });
    }

    /// A keyword of which any other value may refuse what was taken before, unless it widens.
    fn compare_keyword(
        &mut self,
        keyword: &'static str,
        rule: &'static str,
        widens: impl Fn(&Json, &Json) -> bool,
    ) {
        let (old, new) = (&self.old[keyword], &self.new[keyword]);
        let (severity, message) = match (old.is_null(), new.is_null()) {
            (true, false) => (self.tightened(), format!("{keyword} {} added", shown(new))),
            (false, true) => (Severity::Note, format!("{keyword} {} removed", shown(old))),
            _ if old == new => return,
            _ => {
                let severity = if widens(old, new) { Severity::Note } else { self.tightened() };
                (severity, format!("{keyword} {} becomes {}", shown(old), shown(new)))
            }
        };
        self.add(severity, rule, message);
    }

    fn compare_flags(&mut self) {
        match (self.old["nullable"] == true, self.new["nullable"] == true) {
            (true, false) => self.add(self.tightened(), "nullable", "null no longer allowed"),
            (false, true) => self.add(Severity::Note, "nullable", "null allowed"),
            _ => {}
        }
        match (self.old[PRESERVES] == true, self.new[PRESERVES] == true) {
            (true, false) => {
                self.add(Severity::Breaking, "unknown-fields", "unknown fields no longer kept");
            }
            (false, true) => self.add(Severity::Note, "unknown-fields", "unknown fields kept"),
            _ => {}
        }
        let embeds = |schema: &Json| schema["x-kubernetes-embedded-resource"] == true;
        if embeds(self.new) && !embeds(self.old) {
            let message = "has to be an object with apiVersion and kind";
            self.add(self.tightened(), "embedded-resource", message);
        }
    }

    fn compare_default(&mut self) {
        let (old, new) = (&self.old["default"], &self.new["default"]);
        let message = match (old.is_null(), new.is_null()) {
            (true, false) => format!("default {} added", shown(new)),
            (false, true) => format!("default {} removed", shown(old)),
            _ if old == new => return,
            _ => format!("default {} becomes {}", shown(old), shown(new)),
        };
        self.add(Severity::Warning, "default", message);
    }

    /// How writers share lists and maps. Managed fields of stored objects do not survive another
    /// way.
    fn compare_merging(&mut self) {
        for (keyword, usual) in
            [("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")]
        {
            let text = |schema: &Json| schema[keyword].as_str().unwrap_or(usual).to_owned();
            let (old, new) = (text(self.old), text(self.new));
            if old != new {
                let what = keyword.trim_start_matches("x-kubernetes-");
                let message = format!("{what} {old} becomes {new}");
                self.add(Severity::Breaking, "merging", message);
            }
        }
        let keyword = "x-kubernetes-list-map-keys";
        let (old, new) = (texts(&self.old[keyword]), texts(&self.new[keyword]));
        if old != new && !old.is_empty() && !new.is_empty() {
            let join = |keys: BTreeSet<&str>| keys.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!("list-map-keys {} become {}", join(old), join(new));
            self.add(Severity::Breaking, "merging", message);
        }
    }

    /// Branches that must hold: one more of `allOf`, one less of `anyOf`, any change of the others.
    fn compare_logic(&mut self) {
        // The two types of such a value are spelled out as branches by some generators.
        if self.old[INT_OR_STRING] == true {
            return;
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let (old, new) = (items(&self.old[keyword]), items(&self.new[keyword]));
            if old == new {
                continue;
            }
            let (came, went) = (new.difference(&old).count(), old.difference(&new).count());
            let severity = match keyword {
                _ if new.is_empty() => Severity::Note,
                _ if old.is_empty() => self.tightened(),
                "allOf" if came == 0 => Severity::Note,
                "anyOf" if went == 0 => Severity::Note,
                _ => self.tightened(),
            };
            let message = format!("{keyword}: {came} added, {went} removed");
            self.add(severity, "logic", message);
        }
        self.compare_keyword("not", "logic", |_, _| false);
    }

    fn compare_rules(&mut self) {
        let rules = |schema: &Json| -> BTreeSet<String> {
            let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
            rules.filter_map(|rule| rule["rule"].as_str().map(str::to_owned)).collect()
        };
        let (old, new) = (rules(self.old), rules(self.new));
        for rule in new.difference(&old) {
            let message = match rule.split_whitespace().collect::<String>().as_str() {
                "self==oldSelf" | "oldSelf==self" => "cannot be changed any more".to_owned(),
                _ => format!("rule added: {}", shortened(rule)),
            };
            self.add(self.tightened(), "validation-rule", message);
        }
        for rule in old.difference(&new) {
            let message = format!("rule removed: {}", shortened(rule));
            self.add(Severity::Note, "validation-rule", message);
        }
    }

    fn compare_properties(&mut self) {
        let empty = serde_json::Map::new();
        let old = self.old["properties"].as_object().unwrap_or(&empty);
        let new = self.new["properties"].as_object().unwrap_or(&empty);
        for (name, before) in old {
            let path = self.below(name);
            match new.get(name) {
                // Every object has these, whatever its schema says.
                _ if self.path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind") => {}
                Some(after) => compare_schemas(before, after, &path, self.found),
                None if self.new[PRESERVES] == true || type_of(self.new) == "any" => {
                    let message = "no longer described, and still kept";
                    self.found.add(Severity::Warning, "field-removed", &path, message);
                }
                None => self.found.add(Severity::Breaking, "field-removed", &path, "removed"),
            }
        }
        let required = texts(&self.new["required"]);
        for (name, field) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            let path = self.below(name);
            let (severity, message) = if is_demanded(name, field, &required) {
                (self.tightened(), "added, and required")
            } else {
                (Severity::Note, "added")
            };
            self.found.add(severity, "field-added", &path, message);
        }
    }

    /// Fields that were there and must be given from now on. Added ones are told as such.
    fn compare_required(&mut self) {
        let (old, new) = (self.old, self.new);
        let (before, after) = (texts(&old["required"]), texts(&new["required"]));
        for name in after.difference(&before).filter(|name| !old["properties"][**name].is_null()) {
            let path = self.below(name);
            let (severity, message) = if new["properties"][*name]["default"].is_null() {
                (self.tightened(), "required")
            } else {
                (Severity::Note, "required, with a default")
            };
            self.found.add(severity, "required", &path, message);
        }
        for name in before.difference(&after).filter(|name| !new["properties"][**name].is_null()) {
            let path = self.below(name);
            self.found.add(Severity::Note, "required", &path, "no longer required");
        }
    }

    /// Values of maps, whatever their keys.
    fn compare_map_values(&mut self) {
        let (old, new) = (&self.old["additionalProperties"], &self.new["additionalProperties"]);
        let takes_any = |schema: &Json| schema.is_object() || *schema == true;
        match (takes_any(old), takes_any(new)) {
            (true, false) if self.new[PRESERVES] != true => {
                self.add(Severity::Breaking, "map-values", "other keys no longer kept");
            }
            (false, true) => self.add(Severity::Note, "map-values", "any keys kept"),
            (true, true) if old.is_object() && new.is_object() => {
                let path = self.below("*");
                compare_schemas(old, new, &path, self.found);
            }
            (true, true) if new.is_object() && *old == true => {
                self.add(self.tightened(), "map-values", "values are checked");
            }
            _ => {}
        }
    }

    fn below(&self, name: &str) -> String {
        let name = if name.contains(['.', '[']) { format!("[{name:?}]") } else { name.to_owned() };
        match self.path {
            "" => name,
            path if name.starts_with('[') => format!("{path}{name}"),
            path => format!("{path}.{name}"),
        }
    }
}

/// Whether a field must be given by everybody.
fn is_demanded(name: &str, field: &Json, required: &BTreeSet<&str>) -> bool {
    field["default"].is_null() && required.contains(name)
}

fn type_of(schema: &Json) -> &str {
    if schema[INT_OR_STRING] == true {
        return "int-or-string";
    }
    schema["type"].as_str().unwrap_or("any")
}

/// Items of a list as JSON, in no order.
fn items(list: &Json) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(Json::to_string).collect()
}

/// Texts of a list, in no order.
fn texts(list: &Json) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).collect()
}

/// A lower bound that everything meets.
fn limits_nothing(keyword: &str, bound: &Number) -> bool {
    matches!(keyword, "minLength" | "minItems" | "minProperties") && bound.as_u64() == Some(0)
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal)
}
