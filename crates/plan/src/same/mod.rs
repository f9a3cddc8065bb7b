//! Whether an object in a cluster already is what it should be.
//!
//! What is asked for is a part of what a cluster answers with: API servers fill in defaults,
//! leave out what is empty, write quantities their own way, and others add fields of their own.
//! So two questions are asked. Does the object say everything it should ([`holds`])? And does it
//! still say something that was ours and should no longer be there ([`left_over`])? The second is
//! answered by the object itself: the API server keeps a record of who applied which field.
//!
//! When both are answered well there is nothing to write, which is how a world that is as it
//! should be comes to no actions at all.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json};

/// What is one value in the kinds that the manager writes by itself: whoever adds to it changes it. A
/// selector with one label more selects nothing, and a rule with names is about those alone. In
/// other kinds, API servers may fill in something there.
const WHOLE: [&str; 3] = ["nodeSelector", "rules", "selector"];

/// Whether an object already is what `manager` wants to apply.
pub fn same(wanted: &Json, live: &Json, manager: &str) -> bool {
    let place = Place { is_ours: true, ..Place::default() };
    covers(place, wanted, Some(live)) && !left_over(wanted, live, manager)
}

/// Whether an object says everything that is wanted, whatever it says besides. The state that was
/// seen (`resourceVersion`) is not part of what is wanted.
pub fn holds(wanted: &Json, live: &Json) -> bool {
    covers(Place::default(), wanted, Some(live))
}

/// Whether an object still says something that `manager` applied and that is no longer wanted.
pub fn left_over(wanted: &Json, live: &Json, manager: &str) -> bool {
    records(live, manager)
        .filter_map(|record| record["fieldsV1"].as_object())
        .any(|fields| !fields.iter().all(|(step, below)| is_wanted(wanted, "", step, below)))
}

/// Whether `manager` applied an object before, so that what it no longer says goes.
pub fn is_applied(live: &Json, manager: &str) -> bool {
    records(live, manager).next().is_some()
}

/// Whether an item of a list of the metadata goes by itself once `manager` does not apply it any
/// more: it did so before, and nobody else says it.
pub fn is_given_up(live: &Json, list: &str, key: &str, value: &str, manager: &str) -> bool {
    let item = format!("k:{}", serde_json::json!({key: value}));
    let says =
        |record: &&Json| record["fieldsV1"]["f:metadata"][format!("f:{list}")].get(&item).is_some();
    let all = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let who = all.filter(says).count();
    who == 1 && records(live, manager).filter(says).count() == 1
}

/// What an object says about who applied which field of it.
fn records<'a>(live: &'a Json, manager: &str) -> impl Iterator<Item = &'a Json> {
    let records = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    records.filter(move |record| {
        record["manager"] == manager
            && record["operation"] == "Apply"
            && record["subresource"].as_str().unwrap_or_default().is_empty()
    })
}

/// Where in an object a comparison is: the name of the field, whether quantities are below, and
/// whether the object is of a kind that the manager writes by itself.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    field: &'a str,
    is_quantity: bool,
    is_ours: bool,
}

impl<'a> Place<'a> {
    fn below(self, field: &'a str) -> Self {
        let is_quantity = self.is_quantity
            || matches!(field, "limits" | "requests" | "sizeLimit" | "divisor" | "capacity");
        Self { field, is_quantity, ..self }
    }
}

fn covers(place: Place<'_>, wanted: &Json, live: Option<&Json>) -> bool {
    let Some(live) = live else { return is_empty(wanted) };
    if place.is_ours && WHOLE.contains(&place.field) {
        let place = Place { field: "", ..place };
        return covers(place, wanted, Some(live)) && covers(place, live, Some(wanted));
    }
    match (wanted, live) {
        (Json::Object(wanted), Json::Object(live)) => covers_fields(place, wanted, live),
        (Json::Array(wanted), Json::Array(live)) => covers_items(place, wanted, live),
        _ if place.is_quantity => quantity(wanted) == quantity(live),
        _ => wanted == live || (is_empty(wanted) && is_empty(live)),
    }
}

fn covers_fields(place: Place<'_>, wanted: &Map<String, Json>, live: &Map<String, Json>) -> bool {
    wanted.iter().all(|(field, wanted)| {
        (place.field == "metadata" && field == "resourceVersion")
            || covers(place.below(field), wanted, live.get(field))
    })
}

/// Lists whose items have names are sets of them; others are compared from first to last.
fn covers_items(place: Place<'_>, wanted: &[Json], live: &[Json]) -> bool {
    // An item has no field of its own: its fields are below the list.
    let item = Place { field: "", ..place };
    let keys = keys_of(place.field, wanted);
    if keys.is_empty() {
        let paired = wanted.iter().zip(live);
        return wanted.len() == live.len()
            && paired.into_iter().all(|(one, two)| covers(item, one, Some(two)));
    }
    wanted.iter().all(|wanted| {
        let found = live.iter().find(|live| keys.iter().all(|key| key.of(wanted) == key.of(live)));
        found.is_some() && covers(item, wanted, found)
    })
}

/// A field that tells the items of a list apart.
struct Key {
    field: &'static str,
    otherwise: Option<&'static str>,
}

impl Key {
    fn of<'a>(&self, item: &'a Json) -> Option<std::borrow::Cow<'a, str>> {
        match item.get(self.field) {
            Some(Json::String(text)) => Some(text.as_str().into()),
            Some(other) => Some(other.to_string().into()),
            None => self.otherwise.map(Into::into),
        }
    }
}

/// What tells the items of a list apart, as Kubernetes' own kinds have it. None if the list has
/// an order that counts, or if not every item has what it takes.
fn keys_of(list: &str, wanted: &[Json]) -> Vec<Key> {
    let key = |field| Key { field, otherwise: None };
    let protocol = || Key { field: "protocol", otherwise: Some("TCP") };
    let has = |field: &str| wanted.iter().all(|item| item.get(field).is_some());
    let keys = match list {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "secrets"
        | "webhooks" => vec![key("name")],
        "volumeMounts" => vec![key("mountPath")],
        "volumeDevices" => vec![key("devicePath")],
        "ownerReferences" => vec![key("uid")],
        "hostAliases" => vec![key("ip")],
        "ports" if has("containerPort") => vec![key("containerPort"), protocol()],
        "ports" if has("port") => vec![key("port"), protocol()],
        "topologySpreadConstraints" => vec![key("topologyKey"), key("whenUnsatisfiable")],
        _ => Vec::new(),
    };
    if keys.iter().all(|key| key.otherwise.is_some() || has(key.field)) { keys } else { Vec::new() }
}

/// What an API server leaves out when it writes.
fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(value) => !value,
        Json::Number(value) => value.as_f64() == Some(0.0),
        Json::String(value) => value.is_empty(),
        Json::Array(items) => items.is_empty(),
        // An object of nothing but empty things is written as an empty one, or not at all.
        Json::Object(fields) => fields.values().all(is_empty),
    }
}

/// A quantity as a whole number of billionths, or what it says if it is none.
fn quantity(value: &Json) -> Result<i128, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    parse_quantity(&text).ok_or(text)
}

fn parse_quantity(text: &str) -> Option<i128> {
    const DECIMAL: [(&str, i32); 9] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    let places = i32::try_from(part.len()).ok()?;
    let (exponent, times) = if let Some(at) = BINARY.iter().position(|one| *one == unit) {
        (0, 1024_i128.checked_pow(u32::try_from(at).ok()? + 1)?)
    } else if let Some((_, exponent)) = DECIMAL.iter().find(|(one, _)| *one == unit) {
        (*exponent, 1)
    } else if unit.is_empty() {
        (0, 1)
    } else {
        (unit.strip_prefix(['e', 'E'])?.parse().ok()?, 1)
    };
    // Anything finer than a billionth is rounded up by Kubernetes.
    let shift = 9 + exponent - places;
    let scale = 10_i128.checked_pow(shift.unsigned_abs())?;
    let scaled = digits.checked_mul(times)?;
    if shift >= 0 { scaled.checked_mul(scale) } else { Some(div_up(scaled, scale)) }
}

fn div_up(value: i128, by: i128) -> i128 {
    let (quotient, rest) = (value / by, value % by);
    if rest == 0 { quotient } else { quotient + rest.signum() }
}

/// Whether a step of a record of fields, and all that is below it, is in what is wanted. Steps are
/// `f:FIELD`, `k:{keys of an item}` and `v:VALUE`; a dot is the thing itself.
fn is_wanted(wanted: &Json, list: &str, step: &str, below: &Json) -> bool {
    if step == "." {
        return true;
    }
    let (kind, rest) = step.split_once(':').unwrap_or((step, ""));
    let (found, name) = match kind {
        "f" => (wanted.get(rest), rest),
        "k" => (item_with(wanted, list, rest), ""),
        "v" => {
            let value: Option<Json> = serde_json::from_str(rest).ok();
            let mut items = wanted.as_array().into_iter().flatten();
            (items.find(|item| Some(*item) == value.as_ref()), "")
        }
        // A place in a list by number says nothing of its own.
        _ => return true,
    };
    let Some(found) = found else { return false };
    let steps = below.as_object();
    steps.is_none_or(|steps| steps.iter().all(|(step, below)| is_wanted(found, name, step, below)))
}

/// The item of a list that has these keys.
fn item_with<'a>(items: &'a Json, list: &str, keys: &str) -> Option<&'a Json> {
    let keys: Map<String, Json> = serde_json::from_str(keys).ok()?;
    let items = items.as_array()?;
    let known = keys_of(list, items);
    items.iter().find(|item| {
        keys.iter().all(|(field, value)| {
            let otherwise =
                known.iter().find(|key| key.field == field).and_then(|key| key.otherwise);
            item.get(field) == Some(value)
                || (item.get(field).is_none() && otherwise.is_some_and(|one| value == one))
        })
    })
}
