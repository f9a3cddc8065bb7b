//! One write of a history: what is sent, and what it takes from the object as it is.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::schema::{GROUP, Made, value};

const MANAGERS: [&str; 4] = ["ann", "ben", "cyd", "kubectl"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How the write is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Apply,
    Force,
    Create,
    /// A new form, whatever is there.
    Put,
    /// What is there, changed as the body (a merge patch) says, as clients do it.
    PutEdited,
    Merge,
    Json,
}

/// What a client says about owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    Nothing,
    /// `[{}]`: forget them all.
    Reset,
    /// The present ones, but for the first.
    OneLess,
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) way: Way,
    pub(crate) owners: Owners,
    manager: &'static str,
    version: usize,
    status: bool,
    pub(crate) body: Value,
}

/// A request as it goes out.
pub(crate) struct Wire {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) media: &'static str,
    pub(crate) body: Value,
}

/// A random write to an object of a made-up kind.
pub(crate) fn random(dice: &mut Dice, made: &Made) -> Step {
    let way = match dice.below(20) {
        0..=5 => Way::Apply,
        6..=8 => Way::Force,
        9 => Way::Create,
        10 | 11 => Way::Put,
        12..=14 => Way::PutEdited,
        15..=17 => Way::Merge,
        _ => Way::Json,
    };
    let owners = match dice.below(100) {
        0 | 1 => Owners::Reset,
        2 | 3 => Owners::OneLess,
        _ => Owners::Nothing,
    };
    let status = made.status && dice.chance(25);
    // So few updaters that they are never too many to be kept apart.
    let managers = match way {
        Way::Apply | Way::Force => &MANAGERS[..],
        _ if status => &MANAGERS[..1],
        _ => &MANAGERS[..3],
    };
    let version = dice.below(made.versions.len());
    let body = match way {
        Way::Json => operations(dice, made, version),
        _ => object(dice, made, version, way),
    };
    let manager = dice.pick(managers);
    Step { way, owners, manager, version, status, body }
}

fn object(dice: &mut Dice, made: &Made, version: usize, way: Way) -> Value {
    let schema = &made.versions[version].1;
    let mut object = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if dice.chance(if name == "spec" { 85 } else { 40 }) {
            object.insert(name.clone(), value(dice, schema));
        }
    }
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        if dice.chance(20) {
            let mut map = Map::new();
            for _ in 0..dice.below(3) {
                map.insert((*dice.pick(&["l", "m"])).to_owned(), json!(dice.pick(&["x", "y"])));
            }
            if field == "annotations" && dice.chance(20) {
                let config = json!({"spec": object.get("spec"), "apiVersion": format!("{GROUP}/v1"),
                    "kind": made.kind, "metadata": {"name": "x"}});
                map.insert(LAST_APPLIED.to_owned(), json!(config.to_string()));
            }
            metadata.insert(field.to_owned(), Value::Object(map));
        }
    }
    if dice.chance(10) {
        let names = ["example.org/a", "example.org/b"];
        let some: Vec<&str> = names.into_iter().filter(|_| dice.chance(50)).collect();
        metadata.insert("finalizers".to_owned(), json!(some));
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    let mut object = Value::Object(object);
    if [Way::Merge, Way::PutEdited].contains(&way) {
        forget_some(dice, &mut object);
    }
    object
}

/// Makes some members null, which in a merge patch means: away with it.
fn forget_some(dice: &mut Dice, value: &mut Value) {
    let Value::Object(map) = value else { return };
    for (_, member) in map.iter_mut() {
        if dice.chance(12) {
            *member = Value::Null;
        } else {
            forget_some(dice, member);
        }
    }
}

/// Some operations of a JSON patch.
fn operations(dice: &mut Dice, made: &Made, version: usize) -> Value {
    let mut list = Vec::new();
    for _ in 0..=dice.below(2) {
        let (mut path, mut schema) = (String::new(), &made.versions[version].1);
        for depth in 0..4 {
            let Some(declared) = schema["properties"].as_object() else { break };
            if depth > 0 && dice.chance(30) {
                break;
            }
            let names: Vec<&String> = declared.keys().collect();
            let name = dice.pick(&names);
            path = format!("{path}/{name}");
            schema = &declared[name.as_str()];
        }
        if schema["type"] == "array" && dice.chance(60) {
            let place = dice.pick(&["/-", "/0", "/1"]);
            path.push_str(place);
            schema = &schema["items"];
        }
        list.push(match dice.below(6) {
            0 | 1 => json!({"op": "remove", "path": path}),
            2 => json!({"op": "replace", "path": path, "value": value(dice, schema)}),
            _ => json!({"op": "add", "path": path, "value": value(dice, schema)}),
        });
    }
    Value::Array(list)
}

impl Step {
    /// The request this is for an object called `name`, which is `live` now.
    pub(crate) fn wire(&self, made: &Made, name: &str, live: Option<&Value>) -> Wire {
        let version = &made.versions[self.version].0;
        let mut path = format!("/apis/{GROUP}/{version}/namespaces/default/{}", made.plural);
        if self.way != Way::Create {
            path = format!("{path}/{name}{}", if self.status { "/status" } else { "" });
        }
        path = format!("{path}?fieldManager={}", self.manager);
        if self.way == Way::Force {
            path.push_str("&force=true");
        }
        let (method, media) = match self.way {
            Way::Apply | Way::Force => ("PATCH", "application/apply-patch+yaml"),
            Way::Create => ("POST", "application/json"),
            Way::Put | Way::PutEdited => ("PUT", "application/json"),
            Way::Merge => ("PATCH", "application/merge-patch+json"),
            Way::Json => ("PATCH", "application/json-patch+json"),
        };
        let mut body = self.body.clone();
        match self.way {
            Way::Json => {
                if let (Some(value), Value::Array(list)) = (self.said(live), &mut body) {
                    list.push(
                        json!({"op": "add", "path": "/metadata/managedFields", "value": value}),
                    );
                }
            }
            Way::PutEdited => {
                let mut edited = live.cloned().unwrap_or_else(|| json!({}));
                apply::patch::merge(&mut edited, &self.body);
                body = edited;
                if self.owners != Owners::Nothing {
                    self.add_owners(&mut body, live);
                }
            }
            _ => self.add_owners(&mut body, live),
        }
        if ![Way::Json, Way::Merge].contains(&self.way) {
            body["apiVersion"] = json!(format!("{GROUP}/{version}"));
            body["kind"] = json!(made.kind);
            if !body["metadata"].is_object() {
                body["metadata"] = json!({});
            }
            body["metadata"]["name"] = json!(name);
        }
        if [Way::Put, Way::PutEdited].contains(&self.way)
            && let Some(version) = live.and_then(|live| live.pointer("/metadata/resourceVersion"))
        {
            body["metadata"]["resourceVersion"] = version.clone();
        }
        Wire { method, path, media, body }
    }

    /// What the client says about owners, if it says anything.
    fn said(&self, live: Option<&Value>) -> Option<Value> {
        match self.owners {
            Owners::Nothing => None,
            Owners::Reset => Some(json!([{}])),
            Owners::OneLess => {
                let mut owners = live?.pointer("/metadata/managedFields")?.as_array()?.clone();
                sort_owners(&mut owners);
                owners.remove(0);
                Some(Value::Array(owners))
            }
        }
    }

    fn add_owners(&self, body: &mut Value, live: Option<&Value>) {
        if let Some(owners) = self.said(live)
            && let Some(Value::Object(metadata)) = body.get_mut("metadata")
        {
            metadata.insert("managedFields".to_owned(), owners);
        }
    }

    /// As a line of a printed history.
    pub(crate) fn print(&self) -> String {
        let Self { way, owners, manager, version, status, body } = self;
        let sub = if *status { " status" } else { "" };
        let owners = match owners {
            Owners::Nothing => "",
            Owners::Reset => " (owners reset)",
            Owners::OneLess => " (one owner less)",
        };
        format!("{manager} v{}{sub} {way:?}{owners} {body}", version + 1)
    }
}

/// Puts owners into an order that does not depend on times.
pub(crate) fn sort_owners(owners: &mut [Value]) {
    owners.sort_by_cached_key(|owner| {
        ["operation", "manager", "apiVersion", "subresource"].map(|field| owner[field].to_string())
    });
}
