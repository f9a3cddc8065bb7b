//! Everything that can be reached from the roots by what is known.

use crate::problem::{
    Bringer, Contents, Dependencies, Known, Listing, Package, Requirement, Root, Tag,
};
use crate::quick::Map;
use crate::value::{Pin, Range, RangeKey, Source};
use std::collections::BTreeMap;
use xpkg::version::Version;

/// A package, and what there is of it.
pub(crate) struct Found<'a> {
    pub(crate) source: &'a Source,
    pub(crate) root: Option<&'a Root>,
    pub(crate) offers: Vec<Offer<'a>>,
    pub(crate) other_tags: Vec<String>,
    /// What anybody says about it, by text: many versions say the same.
    pub(crate) ranges: Map<RangeKey<'a>, &'a Range>,
    pub(crate) listing: Option<&'a Listing>,
}

/// Something that can be installed.
pub(crate) struct Offer<'a> {
    pub(crate) pin: Pin,
    pub(crate) aliases: Vec<Pin>,
    pub(crate) contents: Option<&'a Contents>,
}

impl Offer<'_> {
    pub(crate) fn version(&self) -> Option<&Version> {
        [&self.pin].into_iter().chain(&self.aliases).find_map(Pin::version)
    }

    fn is_accepted_by(&self, range: &Range) -> bool {
        [&self.pin].into_iter().chain(&self.aliases).any(|pin| range.accepts(pin))
    }
}

impl Found<'_> {
    /// Whether nobody cares what it needs.
    pub(crate) fn is_skipped(&self) -> bool {
        self.root.is_some_and(|root| root.dependencies == Dependencies::Skipped)
    }
}

/// Every package that can be reached, sorted by source.
pub(crate) fn discover<'a>(
    roots: &BTreeMap<&'a Source, &'a Root>,
    known: &'a Known,
) -> Vec<Found<'a>> {
    let mut contents: Map<&Source, Vec<(&Pin, &Contents)>> = Map::default();
    for ((source, pin), inside) in &known.contents {
        contents.entry(source).or_default().push((pin, inside));
    }
    let (index, found, queue) = (Map::default(), Vec::new(), Vec::new());
    let mut discovery = Discovery { known, contents, roots, index, found, queue };
    for source in roots.keys() {
        discovery.enter(source);
    }
    while let Some(requirement) = discovery.queue.pop() {
        match requirement {
            Requirement::Package { source, range, .. } => {
                let at = discovery.enter(source);
                discovery.ask(at, range);
            }
            Requirement::Crd(crd) => {
                if let Some(Bringer::Package { source, .. }) = known.bringers.get(crd) {
                    discovery.enter(source);
                }
            }
            Requirement::Invalid(_) => {}
        }
    }
    let mut found = discovery.found;
    found.sort_by_key(|one| one.source);
    found
}

struct Discovery<'a, 'r> {
    known: &'a Known,
    /// Sorted by pin.
    contents: Map<&'a Source, Vec<(&'a Pin, &'a Contents)>>,
    roots: &'r BTreeMap<&'a Source, &'a Root>,
    index: Map<&'a Source, usize>,
    found: Vec<Found<'a>>,
    queue: Vec<&'a Requirement>,
}

impl<'a> Discovery<'a, '_> {
    fn enter(&mut self, source: &'a Source) -> usize {
        if let Some(&at) = self.index.get(source) {
            return at;
        }
        let (root, listing) = (self.roots.get(source).copied(), self.known.listings.get(source));
        let tags = match listing {
            Some(Listing::Tags(tags)) => tags.as_slice(),
            Some(Listing::Unavailable(_)) | None => &[],
        };
        let (mut offers, other_tags) = self.of_tags(source, tags);
        let pins = root.into_iter().flat_map(|root| [root.base(), root.installed.as_ref()]);
        for pin in pins.flatten() {
            if !offers.iter().any(|offer| offer.pin == *pin) {
                let mut names = names_of(pin, tags);
                let tag = root.and_then(|root| root.tags.get(pin)).cloned();
                names.extend(tag.map(Pin::Channel));
                offers.push(self.offer(source, pin.clone(), names));
            }
        }
        let ranges = Map::default();
        let found = Found { source, root, offers, other_tags, ranges, listing };
        if !found.is_skipped() {
            let mut needs: Vec<_> = found.offers.iter().map(requirements).collect();
            // Most versions need what the one before them needs.
            needs.dedup();
            self.queue.extend(needs.into_iter().flatten());
        }
        self.found.push(found);
        self.index.insert(source, self.found.len() - 1);
        self.found.len() - 1
    }

    /// The tags that can be installed, each once, and those that cannot.
    fn of_tags(&self, source: &Source, tags: &[Tag]) -> (Vec<Offer<'a>>, Vec<String>) {
        let (mut offers, mut others): (Vec<Offer<'a>>, Vec<String>) = (Vec::new(), Vec::new());
        let mut seen = std::collections::HashSet::new();
        for tag in tags {
            let version = Version::parse(&tag.name).ok().filter(Version::is_installable);
            match version {
                None => others.push(tag.name.clone()),
                Some(version) if seen.insert(&tag.name) => {
                    let aliases = tag.digest.iter().cloned().map(Pin::Digest).collect();
                    offers.push(self.offer(source, Pin::Version(version), aliases));
                }
                Some(_) => {}
            }
        }
        others.sort_unstable();
        (offers, others)
    }

    fn offer(&self, source: &Source, pin: Pin, mut aliases: Vec<Pin>) -> Offer<'a> {
        let inside = self.contents.get(source).map_or(&[][..], Vec::as_slice);
        let find = |pin: &Pin| {
            let at = inside.binary_search_by(|(one, _)| (*one).cmp(pin)).ok()?;
            Some(inside[at].1)
        };
        let contents = find(&pin).or_else(|| aliases.iter().find_map(find));
        if let Some(Contents::Package(Package { digest: Some(digest), .. })) = contents {
            let alias = Pin::Digest(digest.clone());
            if pin != alias && !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
        Offer { pin, aliases, contents }
    }

    /// Notes a range; a digest or tag asked for is an offer, whether or not it is listed.
    fn ask(&mut self, at: usize, range: &'a Range) {
        if self.found[at].ranges.insert(range.key(), range).is_some() {
            return;
        }
        let Some(pin) = range.pin() else { return };
        if self.found[at].offers.iter().any(|offer| offer.is_accepted_by(range)) {
            return;
        }
        let offer = self.offer(self.found[at].source, pin, Vec::new());
        if !self.found[at].is_skipped() {
            self.queue.extend(requirements(&offer));
        }
        self.found[at].offers.push(offer);
    }
}

/// The versions that tags give to bytes.
fn names_of(pin: &Pin, tags: &[Tag]) -> Vec<Pin> {
    let Pin::Digest(digest) = pin else { return Vec::new() };
    let same = tags.iter().filter(|tag| tag.digest.as_ref() == Some(digest));
    let mut names: Vec<Pin> = same.map(|tag| Pin::parse(&tag.name)).collect();
    names.retain(|name| name.version().is_some());
    names.sort();
    names.reverse();
    names
}

fn requirements<'a>(offer: &Offer<'a>) -> &'a [Requirement] {
    match offer.contents {
        Some(Contents::Package(package)) => &package.requires,
        Some(Contents::Unusable(_)) | None => &[],
    }
}
