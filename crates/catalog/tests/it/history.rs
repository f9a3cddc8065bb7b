//! Random histories of a registry, followed by the catalog and by a model that is easy to read.

use crate::support::{Kept, definition, head, needing, provider, read};
use catalog::answer::State;
use catalog::{Head, Index, KindReference, Outcome, Question, Rights};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const REPOSITORIES: [&str; 3] = ["team/a", "team/b", "private/c"];
const KINDS: [&str; 4] = ["apples", "pears", "plums", "figs"];
const GROUP: &str = "fruit.example.org";

/// What each manifest of the world is; some share kinds, some are no packages.
fn contents(digest: &str) -> Outcome {
    let number: usize = digest.rsplit('-').next().unwrap().parse().unwrap();
    let kind = |index: usize| {
        let plural = KINDS[index % KINDS.len()];
        let versions: &[&str] = if number.is_multiple_of(2) { &["v1", "v1beta1"] } else { &["v1"] };
        definition(plural, &format!("Kind{plural}"), GROUP, versions)
    };
    match number {
        0 => Outcome::Other,
        1 => Outcome::Broken("it is broken".to_owned()),
        2 => {
            read(needing(provider("needs-a", vec![kind(2)]), "registry.example.org/team/a", ">=v1"))
        }
        _ => read(provider("plain", vec![kind(number), kind(number + 1)])),
    }
}

/// What the registry has.
#[derive(Clone, Debug, Default)]
struct Model {
    repositories: BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>,
}

impl Model {
    fn step(&mut self, kind: u8, repository: &'static str, number: u8, tag: &str) {
        let here = self.repositories.entry(repository).or_default();
        let digest = format!("sha256-{number}");
        match kind {
            // A push with a tag, which may move one.
            0..=3 => {
                for tags in here.values_mut() {
                    tags.remove(tag);
                }
                here.entry(digest).or_default().insert(tag.to_owned());
            }
            4 => {
                here.entry(digest).or_default();
            }
            5 => here.values_mut().for_each(|tags| {
                tags.remove(tag);
            }),
            6 => {
                here.remove(&digest);
            }
            // A collection of what has no tags.
            7 => here.retain(|_, tags| !tags.is_empty()),
            _ => here.clear(),
        }
    }

    fn heads(&self, repository: &str) -> Vec<Head> {
        let here = self.repositories.get(repository).into_iter().flatten();
        let told = |(digest, tags): (&String, &BTreeSet<String>)| {
            head(digest, &tags.iter().map(String::as_str).collect::<Vec<_>>())
        };
        here.map(told).collect()
    }

    /// Repositories and digests that bring a kind.
    fn definers(&self, plural: &str, rights: &Rights) -> BTreeSet<(String, String)> {
        let mut all = BTreeSet::new();
        for (repository, manifests) in &self.repositories {
            for digest in manifests.keys() {
                let Outcome::Package(package) = contents(digest) else { continue };
                let has = package.definitions.iter().any(|it| it.plural == plural);
                if has && rights.allow(repository) {
                    all.insert(((*repository).to_owned(), digest.clone()));
                }
            }
        }
        all
    }
}

fn found(index: &Index, plural: &str, rights: &Rights) -> BTreeSet<(String, String)> {
    let kind = KindReference::parse(&format!("{plural}.{GROUP}")).unwrap();
    let definers = index.definers(&kind, None, rights).unwrap();
    let pairs = definers.packages.into_iter().flat_map(|definer| {
        let name = definer.repository;
        definer.versions.into_iter().map(move |version| (name.clone(), version.digest))
    });
    pairs.collect()
}

/// Everything that can be asked, as text.
fn everything(index: &Index, rights: &Rights) -> String {
    let mut all = String::new();
    let mut tell = |value: serde_json::Value| all.push_str(&format!("{value}\n"));
    let json = |value: &dyn erased::Value| value.json();
    for plural in KINDS {
        let kind = KindReference::parse(&format!("{plural}.{GROUP}")).unwrap();
        tell(json(&index.definers(&kind, None, rights).unwrap()));
        tell(json(&index.kind(&kind, rights).unwrap()));
    }
    for words in ["", "fruit", "kindapples", "plain", "aple"] {
        tell(json(&index.kinds(&Question::about(words), rights).unwrap()));
        tell(json(&index.packages(&Question::about(words), rights).unwrap()));
        tell(json(&index.search(words, rights).unwrap()));
    }
    for repository in REPOSITORIES {
        tell(json(&index.package(repository, rights).unwrap()));
        tell(json(&index.versions(repository, rights).unwrap()));
        tell(json(&index.dependents(repository, rights).unwrap()));
        for reference in ["v1.0.0", "latest", ">=v1.0.0", "sha256-3"] {
            tell(json(&index.version(repository, reference, rights).unwrap()));
            tell(json(&index.definitions(repository, reference, rights).unwrap()));
        }
    }
    all
}

/// Values of different types in one list.
mod erased {
    pub(super) trait Value {
        fn json(&self) -> serde_json::Value;
    }

    impl<T: serde::Serialize> Value for T {
        fn json(&self) -> serde_json::Value {
            serde_json::to_value(self).unwrap()
        }
    }
}

/// Both directions, for every repository and kind.
fn check(index: &Index, model: &Model, rights: &Rights) -> Result<(), TestCaseError> {
    for plural in KINDS {
        prop_assert_eq!(found(index, plural, rights), model.definers(plural, rights));
    }
    for repository in REPOSITORIES {
        let versions = index.versions(repository, rights).unwrap().unwrap_or_default();
        let heads = model.heads(repository);
        let is_package = |head: &&Head| contents(&head.digest) != Outcome::Other;
        let expected: BTreeSet<Head> =
            heads.iter().filter(is_package).filter(|_| rights.allow(repository)).cloned().collect();
        let told = versions.iter().map(|it| {
            let mut tags = it.tags.clone();
            tags.sort();
            Head { digest: it.digest.clone(), tags, is_damaged: false }
        });
        prop_assert_eq!(told.collect::<BTreeSet<Head>>(), expected);
        for version in versions {
            let all = index.definitions(repository, &version.digest, rights).unwrap().unwrap();
            for definition in all {
                let back = found(index, &definition.plural, rights);
                prop_assert!(back.contains(&(repository.to_owned(), version.digest.clone())));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn both_directions_hold_after_every_step_and_after_a_rebuild(
        steps in prop::collection::vec(
            (0..10_u8, 0..3_usize, 0..7_u8, prop::sample::select(vec!["v1.0.0", "v1.1.0", "latest"])),
            1..24,
        ),
    ) {
        let (kept, mut model) = (Kept::new(), Model::default());
        let few = Rights::when(|name| !name.starts_with("private/"));
        for (kind, place, number, tag) in steps {
            let repository = REPOSITORIES[place];
            model.step(kind, repository, number, tag);
            kept.follow(repository, &model.heads(repository), contents);
            check(&kept.index, &model, &Rights::all())?;
            check(&kept.index, &model, &few)?;
        }
        let fresh = Kept::new();
        for repository in REPOSITORIES.iter().rev() {
            fresh.follow(repository, &model.heads(repository), contents);
        }
        for rights in [Rights::all(), few] {
            prop_assert_eq!(everything(&kept.index, &rights), everything(&fresh.index, &rights));
        }
        // What is not there any more leaves nothing behind.
        kept.index.retain(&BTreeSet::new()).unwrap();
        let empty = Kept::new();
        prop_assert_eq!(
            everything(&kept.index, &Rights::all()),
            everything(&empty.index, &Rights::all())
        );
    }
}

#[test]
fn telling_the_same_again_changes_nothing_and_what_was_read_stays_read() {
    let kept = Kept::new();
    let heads = [head("sha256-3", &["v1.0.0"]), head("sha256-4", &["v1.1.0", "latest"])];
    assert_eq!(kept.index.settle("team/a", &heads).unwrap(), ["sha256-3", "sha256-4"]);
    kept.index.learn("sha256-3", &contents("sha256-3")).unwrap();
    // A process that dies here goes on with the other one.
    let again = Index::open(&kept.directory.path().join("catalog.db")).unwrap();
    assert_eq!(again.settle("team/a", &heads).unwrap(), ["sha256-4"]);
    again.learn("sha256-4", &contents("sha256-4")).unwrap();
    assert_eq!(again.settle("team/a", &heads).unwrap(), Vec::<String>::new());
    // The same bytes in another repository are known already.
    assert_eq!(again.settle("team/b", &heads).unwrap(), Vec::<String>::new());
    // What nobody has any more is not learned.
    again.learn("sha256-5", &contents("sha256-5")).unwrap();
    assert_eq!(found(&again, "plums", &Rights::all()).len(), 0);
}

#[test]
fn a_file_that_is_damaged_or_of_another_time_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.db");
    fs_err::write(&path, vec![b'x'; 10_000]).unwrap();
    let index = Index::open(&path).unwrap();
    assert_eq!(index.settle("a", &[head("sha256-3", &[])]).unwrap(), ["sha256-3"]);
    index.learn("sha256-3", &contents("sha256-3")).unwrap();
    assert_eq!(index.packages(&Question::about(""), &Rights::all()).unwrap().items.len(), 1);
}

#[test]
fn a_version_that_is_damaged_is_listed_as_such_and_leads_nowhere_until_it_is_back() {
    let kept = Kept::new();
    let whole = [head("sha256-3", &["v1.0.0"]), head("sha256-4", &["v1.1.0"])];
    let damaged = [Head { is_damaged: true, ..whole[0].clone() }, whole[1].clone()];
    for repository in ["team/a", "team/b"] {
        kept.follow(repository, &whole, contents);
    }
    let before = everything(&kept.index, &Rights::all());
    // Nothing is to be read of it, and the other repository is told of it in its turn.
    for repository in ["team/a", "team/b"] {
        assert_eq!(kept.index.settle(repository, &damaged).unwrap(), Vec::<String>::new());
        kept.index.learn("sha256-3", &contents("sha256-3")).unwrap();
        let versions = kept.index.versions(repository, &Rights::all()).unwrap().unwrap();
        let told: Vec<_> = versions.iter().map(|it| (it.tags[0].as_str(), it.state)).collect();
        assert_eq!(told, [("v1.1.0", State::Read), ("v1.0.0", State::Incomplete)]);
        assert!(versions[1].reason.as_ref().is_some_and(|reason| reason.contains("damaged")));
        let kinds = kept.index.definitions(repository, "v1.0.0", &Rights::all()).unwrap();
        assert_eq!(kinds.map(|it| it.len()).unwrap_or_default(), 0);
    }
    for plural in KINDS {
        let found = found(&kept.index, plural, &Rights::all());
        assert!(found.iter().all(|(_, digest)| digest != "sha256-3"), "{found:?}");
    }
    for repository in ["team/a", "team/b"] {
        kept.follow(repository, &whole, contents);
    }
    assert_eq!(everything(&kept.index, &Rights::all()), before);
    // New and damaged.
    let third = [Head { is_damaged: true, ..head("sha256-5", &["v2.0.0"]) }];
    assert_eq!(kept.index.settle("team/c", &third).unwrap(), Vec::<String>::new());
    let versions = kept.index.versions("team/c", &Rights::all()).unwrap().unwrap();
    assert_eq!(versions[0].state, State::Incomplete);
}
