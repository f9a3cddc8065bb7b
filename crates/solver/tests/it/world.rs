//! Worlds as text.
//!
//! ```text
//! a v1.0.0                       a version of package a, which needs nothing
//! a v1.0.0: b >=v1.0.0, c v2     what it needs
//! a v1.0.0: crd things.org       it needs whoever brings a CRD
//! a v1.0.0: brings things.org    it brings a CRD
//! a v1.0.0: kind Function        which kind it is; `b >=v1 as Provider` needs a kind
//! a v1.0.0: invalid TEXT         a dependency that says nothing
//! a v1.0.0! TEXT                 it cannot be used
//! a tag latest                   a tag that is no version
//! a unlisted                     nobody knows what there is of a; `a ? TEXT`: nobody can say
//! crd things.org there           it is there without a package; `from b v1.0.0`: a proposal
//! installed a v1.0.0 [held|bytes|up|any] [skip] [named b]
//! want a v1.0.0 [held|up|any]    exactly; `want a ~v1.0.0`: the best of these
//! move a v1.0.0 to v2.0.0        installed and asked to be another
//! ```

use solver::{
    Bringer, Change, Contents, Dependencies, Known, Listing, Movement, Outcome, Package, Pin,
    Problem, Range, Requirement, Root, Settlement, Source, Tag, Want, solve,
};
use std::collections::{BTreeMap, BTreeSet};

/// A problem and what is known, from text.
pub(crate) fn read(text: &str) -> (Problem, Known) {
    let (mut problem, mut known) = (Problem::default(), Known::default());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["installed", name, pin, rest @ ..] => {
                problem.roots.push(root(name, None, Some(pin), rest));
            }
            ["want", name, want, rest @ ..] => {
                problem.roots.push(root(name, Some(want), None, rest));
            }
            ["move", name, from, "to", to, rest @ ..] => {
                problem.roots.push(root(name, Some(to), Some(from), rest));
            }
            ["crd", crd, "there"] => {
                known.bringers.insert((*crd).to_owned(), Bringer::There);
            }
            ["crd", crd, "from", source, tags @ ..] => {
                let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
                let bringer = Bringer::Package { source: Source::new(*source), tags };
                known.bringers.insert((*crd).to_owned(), bringer);
            }
            [name, "unlisted"] => drop(known.listings.remove(&Source::new(*name))),
            [name, "?", ..] => {
                let reason = line.split_once("? ").unwrap().1.to_owned();
                known.listings.insert(Source::new(*name), Listing::Unavailable(reason));
            }
            [name, "tag", tag] => offer(&mut known, name, tag),
            [name, version, ..] => package(&mut known, line, name, version),
            _ => panic!("{line}"),
        }
    }
    for requirement in known.contents.values().flat_map(|contents| match contents {
        Contents::Package(package) => package.requires.clone(),
        Contents::Unusable(_) => Vec::new(),
    }) {
        match requirement {
            Requirement::Package { source, .. } => {
                known.listings.entry(source).or_insert_with(|| Listing::Tags(Vec::new()));
            }
            Requirement::Crd(crd) => {
                let reason = format!("no package that is installed brings the CRD {crd}");
                let hint = format!("install a package that brings {crd}");
                let nowhere = || Bringer::Nowhere { reason, hint };
                known.bringers.entry(crd).or_insert_with(nowhere);
            }
            Requirement::Invalid(_) => {}
        }
    }
    (problem, known)
}

fn root(name: &str, want: Option<&str>, installed: Option<&str>, rest: &[&str]) -> Root {
    let movement = match rest {
        _ if rest.contains(&"up") => Movement::Upgrades,
        _ if rest.contains(&"any") => Movement::Any,
        _ if rest.contains(&"bytes") => Movement::Named,
        _ => Movement::Held,
    };
    let exact = |text: &str| text.starts_with('v') || text.starts_with("sha256:");
    let want = want.map(|text| {
        if exact(text) || text == "latest" {
            Want::Pin(Pin::parse(text))
        } else {
            Want::Range(Range::parse(text).unwrap())
        }
    });
    let skipped = rest.contains(&"skip");
    Root {
        name: rest
            .iter()
            .skip_while(|word| **word != "named")
            .nth(1)
            .map_or(name, |name| name)
            .to_owned(),
        source: Source::new(name),
        want,
        installed: installed.map(Pin::parse),
        tags: BTreeMap::new(),
        movement,
        dependencies: if skipped { Dependencies::Skipped } else { Dependencies::Resolved },
    }
}

fn offer(known: &mut Known, name: &str, tag: &str) {
    let listing = known.listings.entry(Source::new(name));
    let Listing::Tags(tags) = listing.or_insert_with(|| Listing::Tags(Vec::new())) else { return };
    tags.push(Tag { name: tag.to_owned(), digest: None });
}

fn package(known: &mut Known, line: &str, name: &str, version: &str) {
    let version = version.trim_end_matches([':', '!']);
    if !version.starts_with("sha256:") {
        offer(known, name, version);
    }
    let contents = if let Some((_, reason)) = line.split_once("! ") {
        Contents::Unusable(reason.to_owned())
    } else {
        let parts = line.split_once(": ").map_or("", |(_, parts)| parts);
        let mut package = Package::default();
        for part in parts.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once(' ').unwrap() {
                ("crd", crd) => package.requires.push(Requirement::Crd(crd.to_owned())),
                ("brings", crd) => drop(package.crds.insert(crd.to_owned())),
                ("answers", crd) => drop(package.answers_to.insert(crd.to_owned())),
                ("kind", kind) => kind.clone_into(&mut package.kind),
                ("invalid", why) => package.requires.push(Requirement::Invalid(why.to_owned())),
                (source, range) => {
                    let (range, kind) = match range.split_once(" as ") {
                        Some((range, kind)) => (range, Some(kind.to_owned())),
                        None => (range, None),
                    };
                    let (source, range) = (Source::new(source), Range::parse(range).unwrap());
                    package.requires.push(Requirement::Package { source, kind, range });
                }
            }
        }
        Contents::Package(package)
    };
    known.contents.insert((Source::new(name), Pin::parse(version)), contents);
}

pub(crate) fn settle(problem: &Problem, known: &Known) -> Settlement {
    match solve(problem, known) {
        Outcome::Settled(settlement) => settlement,
        Outcome::Missing(needs) => panic!("{needs:?}"),
    }
}

/// The answer to a world, as text.
pub(crate) fn answer(text: &str) -> String {
    let (problem, known) = read(text);
    show(&settle(&problem, &known))
}

pub(crate) fn show(settlement: &Settlement) -> String {
    let change = |change: &Change| {
        let because = change.because.iter();
        let because: BTreeSet<String> =
            because.map(|one| format!("{} {} wants {}", one.source, one.pin, one.wants)).collect();
        let because: Vec<String> = because.into_iter().collect();
        let why =
            if because.is_empty() { String::new() } else { format!("  ({})", because.join("; ")) };
        format!("{change}{why}")
    };
    let mut lines: Vec<String> = settlement.changes.iter().map(change).collect();
    for conflict in &settlement.conflicts {
        lines.push(format!("conflict: {}", conflict.name));
        lines.extend(conflict.sentences.iter().map(|sentence| format!("  {sentence}")));
        lines.push(format!("  hint: {}", conflict.hint));
    }
    lines.join("\n")
}
