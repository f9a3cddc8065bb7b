//! Why something cannot be, in sentences.
//!
//! A conflict is a smallest collection of facts that cannot all be true: which packages are
//! there, and what they say they need. Facts are thought away in halves until every one that is
//! left is needed for the conflict; those are put in words, from the roots down, and at the end
//! what it is that cannot be satisfied.

use crate::answer::Conflict;
use crate::model::{Face, Fact, Model, Name, What};
use crate::oracle::{Mode, Oracle, View, allowed};
use crate::problem::{Movement, Root, Want};
use crate::search::{Best, Soft, minimal, softs, view};
use crate::words::{list, of_versions, short, some_versions};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What to do where the wishes of several packages do not go together.
const MORE_VERSIONS: &str = "accept more versions in one of these, or remove a package; removing one \
                             deletes all objects of the kinds it brought";

/// A conflict for each wish given up that is more than a preference, in the order of roots.
pub(crate) fn conflicts(oracle: &mut Oracle, best: &Best) -> Vec<Conflict> {
    let mut found = Vec::new();
    for &soft in &best.given_up {
        let (Soft::Has(root, _) | Soft::Want(root)) = soft else { continue };
        let proof = Proof::find(oracle, &best.given_up, soft, root);
        found.push(Words { model: &oracle.model, proof }.conflict());
    }
    found
}

/// Two roots for one package.
pub(crate) fn rivalry(first: &Root, second: &Root) -> Conflict {
    let source = &first.source;
    let (one, two) = (&first.name, &second.name);
    Conflict {
        name: two.clone(),
        source: source.clone(),
        sentences: vec![format!("{one} and {two} are both the package {source}")],
        hint: format!("delete {two}, or let it name another package"),
        involved: BTreeSet::from([source.clone()]),
    }
}

/// Facts that cannot all be true.
struct Proof {
    /// Whose conflict it is.
    root: usize,
    /// The roots that must be as they are for there to be a conflict, this one among them.
    roots: Vec<usize>,
    facts: Vec<usize>,
    /// The view with nothing but these.
    view: View,
}

impl Proof {
    fn find(oracle: &mut Oracle, given_up: &[Soft], soft: Soft, root: usize) -> Self {
        let mut whole = whole(&oracle.model, given_up, soft);
        let others: Vec<usize> =
            (0..oracle.model.roots.len()).filter(|&other| other != root).collect();
        let mut roots =
            minimal(&others, &mut |some| oracle.satisfy(&with_roots(&whole, some, root)).is_none());
        whole = with_roots(&whole, &roots, root);
        let names: Vec<usize> =
            roots.iter().chain([&root]).map(|&at| oracle.model.roots[at].name).collect();
        let reachable = reachable(&oracle.model, &names);
        let facts = 0..oracle.model.facts.len();
        let facts: Vec<usize> =
            facts.filter(|&fact| reachable[oracle.model.facts[fact].name()]).collect();
        let facts = minimal(&facts, &mut |some| {
            oracle.satisfy(&with_facts(&oracle.model, &whole, some)).is_none()
        });
        let view = with_facts(&oracle.model, &whole, &facts);
        // With fewer facts, fewer roots may do.
        roots =
            minimal(&roots, &mut |some| oracle.satisfy(&with_roots(&view, some, root)).is_none());
        let view = with_roots(&view, &roots, root);
        roots.push(root);
        roots.sort_unstable();
        Self { root, roots, facts, view }
    }
}

/// Everything that counts in the best answer, except preferences, and one wish more.
fn whole(model: &Model, given_up: &[Soft], soft: Soft) -> View {
    let all = softs(model).into_iter();
    let firm = all.filter(|one| !matches!(one, Soft::Keep(_) | Soft::NotLower(_)));
    view(model, firm.filter(|one| *one == soft || !given_up.contains(one)))
}

fn with_roots(whole: &View, some: &[usize], root: usize) -> View {
    let mut view = whole.clone();
    for (at, grant) in view.grants.iter_mut().enumerate() {
        if at != root && !some.contains(&at) {
            grant.mode = Mode::Ignored;
        }
    }
    view
}

fn with_facts(model: &Model, whole: &View, some: &[usize]) -> View {
    let mut view = whole.clone();
    view.ignored = vec![true; model.facts.len()];
    for &fact in some {
        view.ignored[fact] = false;
    }
    view
}

/// Which names can be reached from some.
fn reachable(model: &Model, from: &[usize]) -> Vec<bool> {
    let mut reached = vec![false; model.names.len()];
    let mut queue: Vec<usize> = from.to_vec();
    while let Some(name) = queue.pop() {
        if std::mem::replace(&mut reached[name], true) {
            continue;
        }
        let solvables = model.names[name].solvables.iter();
        let edges = solvables.flat_map(|&at| &model.solvables[at].edges);
        queue.extend(edges.map(|edge| model.target(*edge)));
    }
    reached
}

/// A proof on its way to being words.
struct Words<'a> {
    model: &'a Model,
    proof: Proof,
}

impl Words<'_> {
    fn conflict(&self) -> Conflict {
        let root = &self.model.roots[self.proof.root].root;
        let mut sentences: Vec<String> =
            self.ordered_facts().into_iter().filter_map(|fact| self.fact(fact)).collect();
        let (ends, hint) = self.ends();
        sentences.extend(ends);
        let (name, source) = (root.name.clone(), root.source.clone());
        Conflict { name, source, sentences, hint, involved: self.involved() }
    }

    fn involved(&self) -> BTreeSet<crate::value::Source> {
        let roots = self.proof.roots.iter().map(|&at| self.model.roots[at].name);
        let facts = self.proof.facts.iter().flat_map(|&fact| {
            let fact = &self.model.facts[fact];
            let target = match fact {
                Fact::Needs { target, .. } => Some(*target),
                Fact::NeedsCrd { .. } | Fact::Brings { .. } | Fact::Impossible { .. } => None,
            };
            [Some(fact.name()), target].into_iter().flatten()
        });
        roots.chain(facts).filter_map(|name| self.model.source(name).cloned()).collect()
    }

    /// From the root the conflict is about outwards, then from the others.
    fn ordered_facts(&self) -> Vec<usize> {
        let first = self.model.roots[self.proof.root].name;
        let others = self.proof.roots.iter().map(|&at| self.model.roots[at].name);
        let rest = self.proof.facts.iter().map(|&fact| self.model.facts[fact].name());
        let mut queue: VecDeque<usize> = [first].into_iter().chain(others).chain(rest).collect();
        let mut seen = BTreeSet::new();
        let mut ordered = Vec::new();
        // A name's facts stand together, and what they lead to comes right after.
        while let Some(name) = queue.pop_front() {
            if !seen.insert(name) {
                continue;
            }
            for &fact in &self.proof.facts {
                if self.model.facts[fact].name() == name {
                    ordered.push(fact);
                    if let Fact::Needs { target, .. } = &self.model.facts[fact] {
                        queue.push_front(*target);
                    }
                }
            }
        }
        ordered
    }

    /// The solvables of a name that the proof is about.
    fn in_play(&self, name: usize) -> Vec<usize> {
        let mut solvables = allowed(self.model, &self.proof.view, name);
        for set in self.sets_on(name) {
            solvables.retain(|at| self.model.sets[set].members.contains(at));
        }
        solvables
    }

    /// What facts of the proof accept of a name.
    fn sets_on(&self, name: usize) -> BTreeSet<usize> {
        let solvables = self.model.solvables.iter();
        let edges = solvables.flat_map(|solvable| &solvable.edges);
        let edges =
            edges.filter(|edge| edge.fact.is_some_and(|fact| self.proof.facts.contains(&fact)));
        edges.filter(|edge| self.model.target(**edge) == name).map(|edge| edge.set).collect()
    }

    /// A package, with the versions of it that say something.
    fn subject(&self, name: usize, fact: usize) -> (String, bool) {
        let source = self.model.source(name).map(ToString::to_string).unwrap_or_default();
        let says =
            |at: &usize| self.model.solvables[*at].edges.iter().any(|edge| edge.fact == Some(fact));
        let mut in_play = self.in_play(name);
        if !in_play.iter().any(says) {
            in_play = allowed(self.model, &self.proof.view, name);
        }
        let saying: Vec<usize> = in_play.iter().copied().filter(says).collect();
        let pins = |of: &[usize]| -> Vec<String> {
            let mut pins: Vec<_> =
                of.iter().filter_map(|&at| self.model.solvables[at].pin()).collect();
            pins.sort();
            pins.into_iter().map(short).collect()
        };
        match (saying.len(), in_play.len()) {
            (1, _) => (format!("{source} {}", pins(&saying).concat()), true),
            (some, all) if some == all && self.in_play(name).len() == all => {
                (format!("every version of {source} that would do"), true)
            }
            _ => (format!("{source} {}", some_versions(&pins(&saying))), false),
        }
    }

    fn fact(&self, at: usize) -> Option<String> {
        let fact = &self.model.facts[at];
        let (subject, one) = self.subject(fact.name(), at);
        let (needs, brings) = if one { ("needs", "brings") } else { ("need", "bring") };
        let sentence = match fact {
            Fact::Needs { target, range, kind, .. } => {
                let target = self.model.source(*target)?;
                let odd = kind.as_ref().filter(|kind| self.is_other_kind(fact, kind));
                let kind = odd.map(|kind| format!(" as a {kind}")).unwrap_or_default();
                format!("{subject} {needs} {target} {range}{kind}")
            }
            Fact::NeedsCrd { crd, .. } => format!("{subject} {needs} the CRD {}", self.crd(*crd)?),
            Fact::Brings { crd, .. } => format!("{subject} {brings} the CRD {}", self.crd(*crd)?),
            Fact::Impossible { reason, .. } => format!("{subject} cannot be installed: {reason}"),
        };
        Some(sentence)
    }

    /// Whether a package that is needed as one kind is known to be of another.
    fn is_other_kind(&self, fact: &Fact, kind: &str) -> bool {
        let Fact::Needs { target, .. } = fact else { return false };
        let mut solvables = self.model.names[*target].solvables.iter();
        solvables.any(|&at| {
            let known = &self.model.solvables[at].kind;
            !known.is_empty() && known != kind
        })
    }

    fn crd(&self, name: usize) -> Option<&str> {
        match &self.model.names[name].what {
            What::Crd(crd) => Some(crd),
            What::Package(_) | What::Circle | What::Nothing => None,
        }
    }

    /// What it is that cannot be satisfied, and what to do about it.
    fn ends(&self) -> (Vec<String>, String) {
        let facts = self.proof.facts.iter().map(|&fact| &self.model.facts[fact]);
        let mut targets = BTreeSet::new();
        let mut impossible = false;
        for fact in facts {
            match fact {
                Fact::Needs { target, .. } => drop(targets.insert(*target)),
                Fact::NeedsCrd { crd, .. } | Fact::Brings { crd, .. } => {
                    targets.insert(*crd);
                }
                Fact::Impossible { .. } => impossible = true,
            }
        }
        if impossible && targets.is_empty() {
            return (Vec::new(), "install another version, or ask its author".to_owned());
        }
        let ends: Vec<(String, String)> =
            targets.iter().filter_map(|&target| self.end(target)).collect();
        if let Some((_, hint)) = ends.first() {
            let hint = hint.clone();
            return (ends.into_iter().map(|(sentence, _)| sentence).collect(), hint);
        }
        if impossible {
            return (Vec::new(), "install another version, or ask its author".to_owned());
        }
        if self.is_circular() {
            let sentence = "packages must not need each other in a circle".to_owned();
            return (vec![sentence], "remove one of these dependencies".to_owned());
        }
        let root = &self.model.roots[self.proof.root].root;
        if self.proof.facts.is_empty() {
            return self.nothing_there(root);
        }
        let mut sentences = self.crd_origins();
        sentences.push("no choice of versions suits them all".to_owned());
        (sentences, MORE_VERSIONS.to_owned())
    }

    /// Where the CRDs come from that the proof is about: no fact says so.
    fn crd_origins(&self) -> Vec<String> {
        let facts = self.proof.facts.iter().map(|&fact| &self.model.facts[fact]);
        let needed = facts.filter_map(|fact| match fact {
            Fact::NeedsCrd { crd, .. } => Some(*crd),
            Fact::Needs { .. } | Fact::Brings { .. } | Fact::Impossible { .. } => None,
        });
        let origin = |(crd, owner): (usize, usize)| {
            let pins = self.bringing_versions(crd, owner);
            let source = self.model.source(owner)?;
            let versions = some_versions(&pins);
            Some(format!("the CRD {} comes with {source} {versions}", self.crd(crd)?))
        };
        let owners =
            needed.flat_map(|crd| self.crd_owners(crd).into_iter().map(move |it| (crd, it)));
        owners.filter_map(origin).collect()
    }

    /// The packages that bring a CRD.
    fn crd_owners(&self, crd: usize) -> Vec<usize> {
        let solvables = self.model.names[crd].solvables.iter();
        let faces = solvables.map(|&at| &self.model.solvables[at].face);
        let owner = |face: &Face| if let Face::Owner(owner) = face { Some(*owner) } else { None };
        faces.filter_map(owner).collect()
    }

    /// The versions of a package that bring a CRD.
    fn bringing_versions(&self, crd: usize, owner: usize) -> Vec<String> {
        let solvables = self.model.names[crd].solvables.iter();
        let edges = solvables.flat_map(|&at| &self.model.solvables[at].edges);
        let sets = edges.map(|edge| &self.model.sets[edge.set]).filter(|set| set.name == owner);
        let members = sets.flat_map(|set| &set.members);
        let mut pins: Vec<_> = members.filter_map(|&at| self.model.solvables[at].pin()).collect();
        pins.sort();
        pins.into_iter().map(short).collect()
    }

    /// A name of which nothing is left that everybody accepts.
    fn end(&self, name: usize) -> Option<(String, String)> {
        if let Some(crd) = self.crd(name) {
            return self.end_of_crd(name, crd);
        }
        if !self.in_play(name).is_empty() {
            return None;
        }
        let source = self.model.source(name)?;
        if let Some(end) = self.end_of_kind(name) {
            return Some(end);
        }
        let pinned = self.model.root_of(name).filter(|root| self.proof.roots.contains(root));
        if let Some(root) = pinned {
            return Some(self.end_of_root(&self.model.roots[root].root));
        }
        let offers: Vec<String> = self.offers(name);
        let why = &self.model.names[name].unavailable;
        if let (true, Some(reason)) = (offers.is_empty(), why) {
            let sentence = format!("the versions of {source} cannot be listed: {reason}");
            return Some((sentence, format!("make sure that {source} can be reached")));
        }
        let several = self.sets_on(name).len() > 1;
        let them = if several { " that satisfies them all" } else { " like that" };
        let mut sentence = format!("there is no version of {source}{them}{}", of_versions(&offers));
        if let Some(reason) = why {
            sentence = format!("{sentence}, and others cannot be listed: {reason}");
        }
        let tags = &self.model.names[name].other_tags;
        if offers.is_empty() && !tags.is_empty() {
            sentence = format!("{sentence}; its tags are no versions: {}", list(tags));
        }
        if offers.is_empty() && tags.is_empty() && why.is_none() {
            let hint = format!("check the name {source}, or publish such a version of it");
            let nothing = "the repository is empty, does not exist or is not to be seen";
            return Some((format!("there is no version of {source}: {nothing}"), hint));
        }
        let shy = self.model.names[name].solvables.iter();
        let shy = shy.map(|&at| &self.model.solvables[at]).find(|one| one.is_prerelease());
        let hint = if let Some(version) = shy.and_then(|one| one.version()) {
            let of = format!(">={}.{}.{}-0", version.major(), version.minor(), version.patch());
            format!("pre-releases count where a constraint names one, as {of} does")
        } else if several {
            MORE_VERSIONS.to_owned()
        } else {
            format!("publish such a version of {source}, or accept another")
        };
        Some((sentence, hint))
    }

    /// A package that is of another kind than it is needed as, in every version that is known.
    fn end_of_kind(&self, name: usize) -> Option<(String, String)> {
        let facts = self.proof.facts.iter().map(|&fact| &self.model.facts[fact]);
        let mut kinds = facts.filter_map(|fact| match fact {
            Fact::Needs { target, kind: Some(kind), .. } if *target == name => Some(kind),
            _ => None,
        });
        let wanted = kinds.next()?;
        let solvables = self.model.names[name].solvables.iter();
        let kinds = solvables.map(|&at| &self.model.solvables[at].kind);
        let known: BTreeSet<&String> = kinds.filter(|kind| !kind.is_empty()).collect();
        let is = known.first().filter(|_| !known.contains(wanted))?;
        let source = self.model.source(name)?;
        Some((format!("{source} is a {is}"), format!("need it as a {is}, or need another package")))
    }

    fn end_of_crd(&self, name: usize, crd: &str) -> Option<(String, String)> {
        let owners = self.model.names[name].solvables.len();
        if owners == 0 {
            let Name { unavailable, advice, .. } = &self.model.names[name];
            let sentence = unavailable.clone();
            let sentence = sentence
                .unwrap_or_else(|| format!("no package that is installed brings the CRD {crd}"));
            let hint = advice.clone();
            let hint = hint.unwrap_or_else(|| format!("install a package that brings {crd}"));
            return Some((sentence, hint));
        }
        let facts = self.proof.facts.iter().map(|&fact| &self.model.facts[fact]);
        let brings = facts.filter(|fact| matches!(fact, Fact::Brings { crd, .. } if *crd == name));
        (brings.count() > 1).then(|| {
            let sentence = "only one package may own a CRD".to_owned();
            let hint = "move one of the packages to a version without it; removing one deletes all \
                        objects of the kinds it brought";
            (sentence, hint.to_owned())
        })
    }

    /// What a root says about its own package that others cannot live with.
    fn end_of_root(&self, root: &Root) -> (String, String) {
        let Root { source, name, .. } = root;
        let free = format!("move {name} to a version that satisfies the others");
        let asked = match (&root.want, &root.installed) {
            (Some(Want::Pin(pin)), installed) if installed.as_ref() != Some(pin) => {
                format!("{name} asks for {source} {}", short(pin))
            }
            (Some(Want::Range(range)), _) => format!("{name} asks for {source} {range}"),
            (_, Some(installed)) => format!("{source} {} is installed", short(installed)),
            (_, None) => format!("{name} asks for {source}"),
        };
        let offers = self.model.source_name(source).map(|at| self.offers(at)).unwrap_or_default();
        let sentence = match root.movement {
            _ if matches!(root.want, Some(Want::Range(_))) => asked,
            Movement::Held | Movement::Named => format!("{asked} and must not be moved"),
            Movement::Upgrades => format!("{asked} and may only go up{}", of_versions(&offers)),
            Movement::Any => {
                format!("{asked}, and no other version would do{}", of_versions(&offers))
            }
        };
        (sentence, free)
    }

    /// A root whose own wish nothing satisfies.
    fn nothing_there(&self, root: &Root) -> (Vec<String>, String) {
        let name = self.model.roots[self.proof.root].name;
        let wish = match &root.want {
            Some(Want::Range(range)) => format!("{} asks for {} {range}", root.name, root.source),
            _ => format!("{} asks for {}", root.name, root.source),
        };
        let end = match &self.model.names[name].unavailable {
            Some(reason) => format!("its versions cannot be listed: {reason}"),
            None => format!("there is no such version{}", of_versions(&self.offers(name))),
        };
        (vec![wish, end], "ask for another version".to_owned())
    }

    fn offers(&self, name: usize) -> Vec<String> {
        let solvables = self.model.names[name].solvables.iter();
        let mut pins: Vec<_> = solvables.filter_map(|&at| self.model.solvables[at].pin()).collect();
        pins.sort();
        pins.into_iter().map(short).collect()
    }

    fn is_circular(&self) -> bool {
        let facts = self.proof.facts.iter().map(|&fact| &self.model.facts[fact]);
        let mut edges: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for fact in facts {
            match fact {
                Fact::Needs { name, target, .. } => edges.entry(*name).or_default().push(*target),
                Fact::NeedsCrd { name, crd } => {
                    edges.entry(*name).or_default().extend(self.crd_owners(*crd));
                }
                Fact::Brings { .. } | Fact::Impossible { .. } => {}
            }
        }
        edges.keys().any(|start| {
            let (mut seen, mut queue) = (BTreeSet::new(), edges[start].clone());
            while let Some(name) = queue.pop() {
                if seen.insert(name) {
                    queue.extend(edges.get(&name).into_iter().flatten());
                }
            }
            seen.contains(start)
        })
    }
}

impl Model {
    /// The name of a package.
    fn source_name(&self, source: &crate::value::Source) -> Option<usize> {
        self.roots.iter().find(|root| root.root.source == *source).map(|root| root.name)
    }
}
