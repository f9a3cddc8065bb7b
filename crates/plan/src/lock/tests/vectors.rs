//! Never worse than upstream: its own decisions on random locks, held against what becomes of the
//! same packages here, when everybody has done their part.

use super::cluster::{Cluster, cluster};
use crate::lock::Contents;
use api::meta::Meta;
use serde_json::{Value as Json, json};
use solver::{Movement, Pin, Range};
use std::collections::BTreeMap;

fn vectors() -> Vec<Json> {
    serde_json::from_str(include_str!("../../../../solver/testdata/resolver.json")).unwrap()
}

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// Every package is of one kind here; upstream does not look.
fn contents(bytes: &str, dependencies: &Json) -> Contents {
    let dependencies = dependencies.as_array().unwrap().iter();
    let dependencies: Vec<Json> = dependencies
        .map(|one| json!({"provider": one["package"], "version": one["constraints"]}))
        .collect();
    let meta = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": "Provider",
        "metadata": {"name": "x"}, "spec": {"dependsOn": dependencies},
    });
    let digest = bytes.parse().unwrap_or_else(|_| oci::Digest::of(bytes.as_bytes()));
    Contents::new(digest, &Meta::from_json(&meta).unwrap())
}

/// The cluster of a vector: what is in the lock is installed and well. Upstream knows only what
/// installed versions need; others are taken to need the same.
fn stage(vector: &Json) -> Cluster {
    let input = &vector["in"];
    let mut cluster = cluster("");
    cluster.world.settings.movement = match (&input["upgrades"], &input["downgrades"]) {
        (_, Json::Bool(true)) => Movement::Any,
        (Json::Bool(true), _) => Movement::Upgrades,
        _ => Movement::Held,
    };
    let lock = input["lock"].as_array().unwrap();
    let mut needs: BTreeMap<&str, &Json> = BTreeMap::new();
    for package in lock {
        needs.entry(text(package, "source")).or_insert(&package["dependencies"]);
    }
    let none = json!([]);
    let publish =
        |cluster: &mut Cluster, needs: &BTreeMap<&str, &Json>, source: &str, tag: &str| {
            let needs = needs.get(source).copied().unwrap_or(&none);
            let bytes =
                if tag.starts_with("sha256:") { tag.to_owned() } else { format!("{source}:{tag}") };
            let tags = cluster.registry.entry(source.to_owned()).or_default();
            tags.entry(tag.replace(':', "-")).or_insert_with(|| contents(&bytes, needs));
        };
    for (source, tags) in input["tags"].as_object().unwrap() {
        tags.as_array()
            .unwrap()
            .iter()
            .for_each(|tag| publish(&mut cluster, &needs, source, tag.as_str().unwrap()));
    }
    for package in lock {
        publish(&mut cluster, &needs, text(package, "source"), text(package, "version"));
    }
    // Nobody knows what bytes need that are not installed.
    needs.clear();
    for package in lock {
        for dependency in package["dependencies"].as_array().unwrap() {
            let wanted = text(dependency, "constraints");
            if wanted.starts_with("sha256:") {
                publish(&mut cluster, &needs, text(dependency, "package"), wanted);
            }
        }
    }
    for package in lock {
        let (source, version) = (text(package, "source"), text(package, "version"));
        let separator = if version.contains(':') { '@' } else { ':' };
        let image = format!("{source}{separator}{version}");
        cluster.install("Provider", text(package, "name"), &image);
    }
    cluster.begin();
    cluster
}

type State = BTreeMap<String, Pin>;

fn state(cluster: &Cluster) -> State {
    let packages = cluster.world.packages.iter().rev().map(|one| {
        let image = &one.spec.package;
        let (source, pin) = image.split_once('@').or_else(|| image.rsplit_once(':')).unwrap();
        (source.to_owned(), Pin::parse(pin))
    });
    packages.collect()
}

/// How many packages of the lock lack something in a state.
fn lacking(vector: &Json, cluster: &Cluster, state: &State) -> usize {
    let lacks = |package: &&Json| {
        let source = text(package, "source");
        let Some(pin) = state.get(source) else { return true };
        let inside = &cluster.registry[source][&pin.to_string().replace(':', "-")];
        inside.dependencies.iter().any(|one| {
            let target = &one.target.as_ref().unwrap().package;
            let Ok(range) = Range::parse(&one.version) else { return true };
            !state.get(target).is_some_and(|there| range.accepts(there))
        })
    };
    vector["in"]["lock"].as_array().unwrap().iter().filter(lacks).count()
}

#[test]
fn fewer_packages_lack_something_than_after_upstream() {
    let (mut better, mut equal) = (0, 0);
    for vector in vectors() {
        let mut cluster = stage(&vector);
        let mut theirs = state(&cluster);
        if let Some(image) = vector["out"]["package"].as_str() {
            let (source, pin) = image.split_once('@').or_else(|| image.rsplit_once(':')).unwrap();
            theirs.insert(source.to_owned(), Pin::parse(pin));
        }
        let theirs = lacking(&vector, &cluster, &theirs);
        let told = cluster.run();
        let ours = lacking(&vector, &cluster, &state(&cluster));
        assert!(ours <= theirs, "{}: {ours} > {theirs}\n{told}\n{}", vector["id"], cluster.show());
        let counted = if ours < theirs { &mut better } else { &mut equal };
        *counted += 1;
        assert_eq!(cluster.run(), "nothing", "{}", vector["id"]);
    }
    println!("better {better}, equal {equal}");
    assert!(better > 0, "upstream takes one step, so this must be better somewhere");
}
