//! Which manager owns which field of an object: server-side apply and managed fields, as an API
//! server has them, by the schemas that the real server has.

use super::request::Place;
use apply::fieldpath::{Path, Set};
use apply::types::Schema;
use apply::{ApplyContext, ApplyError, SameShape, Timestamp};
use serde_json::{Value as Json, json};

/// The versions of a kind, each with its schema.
#[derive(Debug)]
pub(super) struct KindVersions(Vec<(String, Schema)>);

impl KindVersions {
    /// The versions that a `CustomResourceDefinition` serves.
    pub(super) fn from_definition(definition: &Json) -> Self {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let is_open = spec["preserveUnknownFields"] == true;
        let versions = spec["versions"].as_array().into_iter().flatten().map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let schema = version.pointer("/schema/openAPIV3Schema");
            (format!("{group}/{name}"), Schema::from_crd(schema, is_open))
        });
        Self(versions.collect())
    }

    /// A kind that the server is built with, from the document that it publishes.
    pub(super) fn from_openapi(document: &Json, api_version: &str, kind: &str) -> Option<Self> {
        let components = document.pointer("/components/schemas")?.as_object()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = json!({"group": group, "version": version, "kind": kind});
        let is_it = |schema: &Json| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.contains(&wanted))
        };
        let (name, _) = components.iter().find(|(_, schema)| is_it(schema))?;
        Some(Self(vec![(api_version.to_owned(), Schema::from_components(components, name))]))
    }

    /// A kind of which nothing is known but that it has metadata: other lists are replaced.
    pub(super) fn unknown(api_version: &str) -> Self {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        Self(vec![(api_version.to_owned(), Schema::from_crd(Some(&open), true))])
    }

    fn converter(&self) -> SameShape<'_> {
        let versions = self.0.iter().map(|(version, schema)| (version.as_str(), schema));
        SameShape { versions: versions.collect() }
    }

    fn find(&self, api_version: &str) -> Option<&Schema> {
        self.0.iter().find(|(version, _)| version == api_version).map(|(_, schema)| schema)
    }
}

/// Whether the server has a schema of a kind because of a definition in it.
pub(super) fn definition_name(place: &Place) -> Option<String> {
    let Place { group, plural, .. } = place;
    let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
    (!is_built_in).then(|| format!("{plural}.{group}"))
}

/// One write, and by which manager.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldWrite<'a> {
    pub(super) manager: &'a str,
    pub(super) is_forced: bool,
    pub(super) is_status: bool,
    pub(super) now: Timestamp,
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) versions: &'a KindVersions,
}

impl FieldWrite<'_> {
    /// The object after a configuration was applied to it, or to nothing.
    pub(super) fn apply(&self, live: Option<&Json>, config: &Json) -> Result<Json, ApplyError> {
        let applied = self.with_context(|context| apply::apply(live, config, context))?;
        match live {
            Some(live) if !applied.changed => Ok(live.clone()),
            _ => Ok(applied.object),
        }
    }

    /// The object that replaces another, with its owners.
    pub(super) fn update(&self, live: Option<&Json>, new: Json) -> Json {
        let updated = self.with_context(|context| apply::update(live, &new, context));
        let mut object = updated.unwrap_or_else(|_| {
            // As in a server: a write is never refused because its owners are unclear.
            let mut object = new;
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.shift_remove("managedFields");
            }
            object
        });
        if let Some(live) = live {
            apply::keep_times(live, &mut object);
        }
        object
    }

    fn with_context<T>(&self, run: impl FnOnce(&ApplyContext<'_>) -> T) -> T {
        let converter = self.versions.converter();
        let unknown = KindVersions::unknown(self.api_version);
        let schema = self.versions.find(self.api_version).or(unknown.find(self.api_version));
        let deduced = Schema::deduced();
        let schema = schema.unwrap_or(&deduced);
        let mut context =
            ApplyContext::new(self.manager, self.now, (self.api_version, self.kind), schema);
        let reset = reset_fields(self.is_status);
        context.force = self.is_forced;
        context.subresource = if self.is_status { "status" } else { "" };
        context.reset_fields = Some(&reset);
        context.reset_everywhere = self.is_status;
        context.converter = &converter;
        run(&context)
    }
}

/// What a write to an object, or to its status, cannot change.
fn reset_fields(is_status: bool) -> Set {
    let names: &[&str] = if is_status { &["metadata", "spec"] } else { &["status"] };
    Set::of(names.iter().map(|name| Path::fields([*name])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Json {
        let ports = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"},
            }},
        });
        let spec = json!({"type": "object", "properties": {
            "ports": ports, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"spec": {"group": "example.org", "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": schema}},
        ]}})
    }

    fn write<'a>(manager: &'a str, versions: &'a KindVersions) -> FieldWrite<'a> {
        FieldWrite {
            manager,
            is_forced: false,
            is_status: false,
            now: Timestamp(0),
            api_version: "example.org/v1",
            kind: "Thing",
            versions,
        }
    }

    fn thing(spec: &Json) -> Json {
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
    }

    #[test]
    fn what_a_manager_no_longer_applies_goes_and_what_others_applied_stays() {
        let versions = KindVersions::from_definition(&definition());
        let ours = write("ours", &versions);
        let spec = json!({"labels": {"a": "1", "b": "2"}, "ports": [{"name": "x", "port": 1}]});
        let live = ours.apply(None, &thing(&spec)).unwrap();
        let theirs = json!({"labels": {"c": "3"}, "ports": [{"name": "y", "port": 2}]});
        let live = write("theirs", &versions).apply(Some(&live), &thing(&theirs)).unwrap();
        let spec = json!({"labels": {"a": "1"}, "ports": [{"name": "x", "port": 3}]});
        let after = ours.apply(Some(&live), &thing(&spec)).unwrap();
        let expected = json!({
            "labels": {"a": "1", "c": "3"},
            "ports": [{"name": "x", "port": 3}, {"name": "y", "port": 2}],
        });
        assert_eq!(after["spec"], expected);
        // The same once more changes nothing at all, not even times.
        let later = FieldWrite { now: Timestamp(60), ..ours };
        assert_eq!(later.apply(Some(&after), &thing(&spec)).unwrap(), after);
    }

    #[test]
    fn what_another_manager_says_is_a_conflict_unless_it_is_overruled() {
        let versions = KindVersions::from_definition(&definition());
        let live = write("theirs", &versions).apply(None, &thing(&json!({"labels": {"a": "1"}})));
        let live = live.unwrap();
        let ours = write("ours", &versions);
        let wanted = thing(&json!({"labels": {"a": "2"}}));
        let refused = ours.apply(Some(&live), &wanted).unwrap_err();
        assert!(refused.message().contains("conflict with \"theirs\""), "{}", refused.message());
        let forced = FieldWrite { is_forced: true, ..ours };
        let after = forced.apply(Some(&live), &wanted).unwrap();
        assert_eq!(after["spec"], json!({"labels": {"a": "2"}}));
    }

    #[test]
    fn kinds_are_found_in_what_a_server_publishes() {
        let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
        let document = json!({"components": {"schemas": {"io.k8s.api.apps.v1.Deployment": {
            "type": "object", "x-kubernetes-group-version-kind": [kind],
        }}}});
        let found = |kind: &str| KindVersions::from_openapi(&document, "apps/v1", kind);
        assert!(found("Deployment").is_some_and(|it| it.find("apps/v1").is_some()));
        assert!(found("StatefulSet").is_none());
    }
}
