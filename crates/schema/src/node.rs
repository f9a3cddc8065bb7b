//! The compiled schema: small, shared, immutable
//!
//! A provider for a large cloud brings two thousand definitions that repeat one another: the
//! same references, selectors, conditions and provider settings, in every version. Compiled
//! nodes are therefore values interned in a [`Pool`]: equal subtrees are one allocation, inside
//! a schema and across all schemas compiled in the same pool. Descriptions are not kept.
//!
//! One node type serves both halves of a schema: the structural part (types, properties,
//! defaults) and the value validations below `allOf`, `anyOf`, `oneOf` and `not`, where the
//! structural fields are empty.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::format::Format;
use super::metadata::{self, Malformed};
use super::pattern::Pattern;
use super::prune::{self, is_meta};

/// The JSON type a schema asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The switches of a node, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const NULLABLE: u8 = 1;
    pub(crate) const PRESERVE: u8 = 2;
    pub(crate) const EMBEDDED: u8 = 4;
    pub(crate) const INT_OR_STRING: u8 = 8;
    /// Some node at or below this one lies in an embedded resource.
    pub(crate) const HOLDS_EMBEDDED: u8 = 16;
    /// Some node at or below this one has rules.
    pub(crate) const HOLDS_RULES: u8 = 32;
    /// Some node at or below this one is a list of type set or map.
    pub(crate) const HOLDS_LISTS: u8 = 64;

    pub(crate) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    fn set(&mut self, bit: u8, on: bool) {
        if on {
            self.0 |= bit;
        }
    }
}

/// What a schema says about properties it does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Additional {
    #[default]
    Absent,
    Allowed,
    Denied,
    Schema(Arc<Node>),
}

/// How elements of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Box<[Arc<str>]>),
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) expression: Arc<str>,
    pub(crate) message: Option<Arc<str>>,
    pub(crate) message_expression: Option<Arc<str>>,
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) field_path: Option<Arc<str>>,
    pub(crate) optional_old_self: Option<bool>,
    /// The expressions as they are evaluated, read when first needed.
    pub(crate) compiled: super::rules::Compiled,
}

/// A float that is equal to itself bit by bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float(pub(crate) f64);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

impl Hash for Float {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The value validations of a node; most nodes have none.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Checks {
    pub(crate) format: Option<Format>,
    pub(crate) maximum: Option<Float>,
    pub(crate) minimum: Option<Float>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) exclusive_minimum: bool,
    pub(crate) unique_items: bool,
    pub(crate) multiple_of: Option<Float>,
    pub(crate) length_max: Option<i64>,
    pub(crate) length_min: Option<i64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) items_max: Option<i64>,
    pub(crate) items_min: Option<i64>,
    pub(crate) properties_max: Option<i64>,
    pub(crate) properties_min: Option<i64>,
    pub(crate) values: Box<[Value]>,
    pub(crate) required: Box<[Arc<str>]>,
    pub(crate) all_of: Box<[Arc<Node>]>,
    pub(crate) any_of: Box<[Arc<Node>]>,
    pub(crate) one_of: Box<[Arc<Node>]>,
    pub(crate) not: Option<Arc<Node>>,
}

/// The contents of a node.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) kind: Option<Kind>,
    pub(crate) flags: Flags,
    /// Sorted by name.
    pub(crate) properties: Box<[(Arc<str>, Arc<Node>)]>,
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) additional: Additional,
    pub(crate) default: Option<Box<Value>>,
    pub(crate) list: Option<Box<ListType>>,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Option<Box<[Rule]>>,
}

/// A schema node with its hash, so that comparing and interning do not walk the tree again.
#[derive(Debug)]
pub(crate) struct Node {
    hash: u64,
    body: Body,
}

impl std::ops::Deref for Node {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.body
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.body == other.body
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Body {
    pub(crate) fn has(&self, bit: u8) -> bool {
        self.flags.has(bit)
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Arc<Node>> {
        let found = self.properties.binary_search_by(|(key, _)| key.as_ref().cmp(name));
        found.ok().and_then(|i| self.properties.get(i)).map(|(_, node)| node)
    }

    /// The schema of properties that are not named.
    pub(crate) fn additional_schema(&self) -> Option<&Arc<Node>> {
        match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        }
    }

    /// The schema of a field, named or not.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<Node>> {
        self.property(name).or_else(|| self.additional_schema())
    }
}

/// Names and subtrees that several schemas share.
#[derive(Debug, Default)]
pub struct Pool {
    names: HashSet<Arc<str>>,
    nodes: HashSet<Arc<Node>>,
    /// Keep formats that are not checked, as the server does for defaults.
    all_formats: bool,
}

impl Pool {
    /// Forgets what no schema uses any more.
    pub fn sweep(&mut self) {
        loop {
            let before = self.nodes.len();
            self.nodes.retain(|node| Arc::strong_count(node) > 1);
            if self.nodes.len() == before {
                break;
            }
        }
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    /// How many distinct nodes are held.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(text);
        self.names.insert(Arc::clone(&name));
        name
    }

    fn node(&mut self, body: Body) -> Arc<Node> {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let node = Node { hash: hasher.finish(), body };
        if let Some(known) = self.nodes.get(&node) {
            return Arc::clone(known);
        }
        let node = Arc::new(node);
        self.nodes.insert(Arc::clone(&node));
        node
    }

    /// Compiles a schema as stored. Fields of the wrong type read as absent: the structural
    /// check has spoken about them before.
    pub(crate) fn compile(&mut self, schema: &Value) -> Arc<Node> {
        self.compile_at(schema, Place::Root)
    }

    /// Compiles a part of a schema on its own.
    pub(crate) fn compile_part(&mut self, schema: &Value) -> Arc<Node> {
        self.compile_at(schema, Place::Field)
    }

    /// A pool whose schemas keep formats that are not checked.
    pub(crate) fn with_all_formats() -> Self {
        Self { all_formats: true, ..Self::default() }
    }

    fn compile_at(&mut self, schema: &Value, place: Place) -> Arc<Node> {
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        let mut body = Body { kind: text(map, "type").and_then(Kind::parse), ..Body::default() };
        body.flags.set(Flags::NULLABLE, flag(map, "nullable"));
        body.flags.set(Flags::PRESERVE, flag(map, "x-kubernetes-preserve-unknown-fields"));
        body.flags.set(Flags::EMBEDDED, flag(map, "x-kubernetes-embedded-resource"));
        body.flags.set(Flags::INT_OR_STRING, flag(map, "x-kubernetes-int-or-string"));
        let resource = place == Place::Root || body.has(Flags::EMBEDDED);
        let preserved = place == Place::PreservedItem || body.has(Flags::PRESERVE);
        let below = if place == Place::Metadata { Place::Metadata } else { Place::Field };
        let items = if preserved && below == Place::Field { Place::PreservedItem } else { below };
        body.properties = self.properties(map.get("properties"), below, resource);
        body.items =
            map.get("items").filter(|schema| schema.is_object()).map(|s| self.compile_at(s, items));
        body.additional = match map.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Allowed,
            Some(Value::Bool(false)) => Additional::Denied,
            Some(schema @ Value::Object(_)) => Additional::Schema(self.compile_at(schema, below)),
            _ => Additional::Absent,
        };
        body.list = self.list_type(map).map(Box::new);
        body.rules = self.rules(map);
        let checks = self.checks(map, &body);
        body.checks = (checks != Checks::default()).then(|| Box::new(checks));
        summarise(&mut body);
        if let Some(default) = map.get("default").filter(|default| !default.is_null()) {
            let mut node = Node { hash: 0, body };
            node.body.default = Some(Box::new(clean_default(&node, default, place)));
            body = node.body;
        }
        self.node(body)
    }

    fn properties(
        &mut self,
        value: Option<&Value>,
        place: Place,
        resource: bool,
    ) -> Box<[(Arc<str>, Arc<Node>)]> {
        let Some(map) = value.and_then(Value::as_object) else { return Box::default() };
        let mut property = |(key, schema): (&String, &Value)| {
            let place = if resource && is_meta(key) { Place::Metadata } else { place };
            (self.name(key), self.compile_at(schema, place))
        };
        let mut properties: Vec<(Arc<str>, Arc<Node>)> = map.iter().map(&mut property).collect();
        properties.sort_by(|a, b| a.0.cmp(&b.0));
        properties.into_boxed_slice()
    }

    fn list_type(&mut self, map: &Map<String, Value>) -> Option<ListType> {
        Some(match text(map, "x-kubernetes-list-type")? {
            "set" => ListType::Set,
            "map" => ListType::Map(self.names(map.get("x-kubernetes-list-map-keys"))),
            _ => ListType::Atomic,
        })
    }

    fn names(&mut self, value: Option<&Value>) -> Box<[Arc<str>]> {
        let names = value.and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(|name| self.name(name)).collect()
    }

    fn rules(&mut self, map: &Map<String, Value>) -> Option<Box<[Rule]>> {
        let rules = map.get("x-kubernetes-validations")?.as_array().filter(|r| !r.is_empty())?;
        let rule = |rule: &Value| {
            let mut name = |key: &str| {
                let text = rule.get(key)?.as_str().filter(|text| !text.is_empty())?;
                Some(self.name(text))
            };
            Rule {
                expression: name("rule").unwrap_or_default(),
                message: name("message"),
                message_expression: name("messageExpression"),
                reason: name("reason"),
                field_path: name("fieldPath"),
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
                compiled: super::rules::Compiled::default(),
            }
        };
        Some(rules.iter().map(rule).collect())
    }

    fn checks(&mut self, map: &Map<String, Value>, body: &Body) -> Checks {
        let float = |key: &str| map.get(key).and_then(Value::as_f64).map(Float);
        let int = |key: &str| map.get(key).and_then(Value::as_i64);
        let kind = body.kind.filter(|_| !body.has(Flags::INT_OR_STRING));
        Checks {
            format: text(map, "format").and_then(|name| {
                if self.all_formats { Format::any(name) } else { Format::parse(name, kind) }
            }),
            maximum: float("maximum"),
            minimum: float("minimum"),
            exclusive_maximum: flag(map, "exclusiveMaximum"),
            exclusive_minimum: flag(map, "exclusiveMinimum"),
            unique_items: flag(map, "uniqueItems"),
            multiple_of: float("multipleOf"),
            length_max: int("maxLength"),
            length_min: int("minLength"),
            pattern: text(map, "pattern").filter(|p| !p.is_empty()).map(Pattern::new),
            items_max: int("maxItems"),
            items_min: int("minItems"),
            properties_max: int("maxProperties"),
            properties_min: int("minProperties"),
            values: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default().into(),
            required: self.names(map.get("required")),
            all_of: self.branches(map.get("allOf")),
            any_of: self.branches(map.get("anyOf")),
            one_of: self.branches(map.get("oneOf")),
            not: map
                .get("not")
                .filter(|not| not.is_object())
                .map(|s| self.compile_at(s, Place::Field)),
        }
    }

    fn branches(&mut self, value: Option<&Value>) -> Box<[Arc<Node>]> {
        value
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|s| self.compile_at(s, Place::Field))
            .collect()
    }
}

/// Where a node is, as far as its default is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field,
    /// An element of a list that preserves unknown fields.
    PreservedItem,
    /// At or below the metadata of a resource, which is not pruned.
    Metadata,
}

/// A default as the server uses it: with metadata in its typed form, without unknown fields.
fn clean_default(node: &Node, default: &Value, place: Place) -> Value {
    let mut value = default.clone();
    if place != Place::Metadata {
        // Dropping what is malformed leaves nothing to refuse.
        _ = metadata::coerce(node, &mut value, place == Place::Root, Malformed::Drop);
        prune::prune_below(node, &mut value, place == Place::PreservedItem);
    }
    value
}

/// Notes on a node what its subtree holds, so that walks can skip the rest.
fn summarise(body: &mut Body) {
    let holds = |node: &Arc<Node>, bit| node.has(bit);
    for bit in [Flags::HOLDS_EMBEDDED, Flags::HOLDS_RULES, Flags::HOLDS_LISTS] {
        let below = body.properties.iter().any(|(_, node)| holds(node, bit))
            || body.items.as_ref().is_some_and(|node| holds(node, bit))
            || body.additional_schema().is_some_and(|node| holds(node, bit));
        body.flags.set(bit, below);
    }
    let lists = matches!(body.list.as_deref(), Some(ListType::Set | ListType::Map(_)));
    body.flags.set(Flags::HOLDS_EMBEDDED, body.has(Flags::EMBEDDED));
    body.flags.set(Flags::HOLDS_RULES, body.rules.is_some());
    body.flags.set(Flags::HOLDS_LISTS, lists);
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or(false)
}
