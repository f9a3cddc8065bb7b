//! Which package to install for a kind: the only one that brings it, or the one that is pinned.

use super::{Catalog, escape};
use crate::args::registry::RegistryArguments;
use crate::cluster::Cluster;
use crate::command::pin;
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use ::catalog::KindReference;
use ::catalog::answer::{Definer, Definers, DefiningVersion};
use api::meta::PackageKind;
use controller::CatalogAddress;
use xpkg::version::Version;

/// Which kind, and where to ask.
pub(crate) struct KindQuestion<'a> {
    pub(crate) kind: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) registry: &'a RegistryArguments,
    /// Where the package manager runs, and choices stand.
    pub(crate) namespace: &'a str,
}

/// A package that brings a kind.
pub(crate) struct ResolvedPackage {
    pub(crate) kind: PackageKind,
    /// The image, with its registry and tag.
    pub(crate) package: String,
}

/// Finds the package to install for a kind.
pub(crate) async fn find_package(
    asked: &KindQuestion<'_>,
    cluster: Cluster,
    settings: &Settings,
) -> Outcome<ResolvedPackage> {
    let kind = read_kind(asked.kind)?;
    let host = asked.host.map(read_host).transpose()?;
    let catalog = Catalog::connect(host.as_deref(), asked.registry, settings).await?;
    let address = format!("/api/v1/crds/{}/packages", escape(&kind.bare()));
    let found: Definers = catalog.ask_all(&address).await?;
    let stands_in = cluster.own_registry().as_deref() == Some(catalog.host());
    let place = CatalogAddress { registry: catalog.host().to_owned(), stands_in };
    let candidates =
        found.packages.iter().filter_map(|definer| DefiningRepository::of(definer, &kind, &place));
    let candidates: Vec<DefiningRepository<'_>> = candidates.collect();
    let chosen = pin::pinned(cluster, asked.namespace, &kind, &found.crd).await?;
    let own = chosen.and_then(|chosen| candidates.iter().find(|it| it.repository == chosen));
    match (own, candidates.as_slice()) {
        (Some(one), _) | (None, [one]) => one.found(),
        (None, []) => Err(none_found(&kind, &found, catalog.host())),
        (None, several) => Err(several_found(&kind, &found.crd, several)),
    }
}

fn read_kind(text: &str) -> Outcome<KindReference> {
    let kind = KindReference::parse(text).map_err(|error| {
        let hint = "write it as buckets.s3.example.org or buckets.s3.example.org/v1";
        Failure::new(format!("`{text}` is not a kind"), hint).because(&error)
    })?;
    if kind.name.is_none() {
        let hint = format!("`apron which {kind}` lists its kinds and the packages that bring them");
        return Err(Failure::new(format!("{kind} is a group of kinds, not one of them"), hint));
    }
    Ok(kind)
}

fn read_host(text: &str) -> Outcome<String> {
    let address = CatalogAddress::parse(text).map_err(|why| {
        Failure::new(why, "name a host, such as registry.example.org or 127.0.0.1:5000")
    })?;
    Ok(address.registry)
}

/// A repository with versions that bring the kind.
struct DefiningRepository<'a> {
    definer: &'a Definer,
    /// With its registry.
    repository: String,
    /// The newest release of those, or the newest.
    tag: &'a str,
}

impl<'a> DefiningRepository<'a> {
    fn of(definer: &'a Definer, kind: &KindReference, place: &CatalogAddress) -> Option<Self> {
        let serves = |version: &&DefiningVersion| {
            let mut served = version.versions.iter().filter(|one| one.served);
            served.any(|one| kind.accepts_version(&one.name))
        };
        let serving = definer.versions.iter().filter(|_| definer.installs).filter(serves);
        let tags: Vec<&str> = serving.flat_map(|it| &it.tags).map(String::as_str).collect();
        let is_release = |tag: &&&str| Version::parse(tag).is_ok_and(|it| !it.is_prerelease());
        let tag = tags.iter().find(is_release).or(tags.first()).copied()?;
        let repository = place.full_name(&definer.repository);
        Some(Self { definer, repository, tag })
    }

    fn found(&self) -> Outcome<ResolvedPackage> {
        let package = format!("{}:{}", self.repository, self.tag);
        let kind = PackageKind::ALL.into_iter().find(|kind| kind.as_str() == self.definer.kind);
        let kind = kind.ok_or_else(|| {
            let hint = format!("say it: `apron install provider {package}`");
            Failure::new(format!("it is not known what kind of package {package} is"), hint)
        })?;
        Ok(ResolvedPackage { kind, package })
    }
}

fn none_found(kind: &KindReference, found: &Definers, host: &str) -> Failure {
    let others = found.packages.iter().filter(|definer| definer.installs);
    let versions = others.flat_map(|it| &it.versions).flat_map(|it| &it.versions);
    let mut versions: Vec<&str> =
        versions.filter(|it| it.served).map(|it| it.name.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let hint = match (versions.as_slice(), found.suggestions.as_slice()) {
        ([], []) => {
            "check the name, push a package that brings it, or name another --catalog".to_owned()
        }
        ([], some) => format!("did you mean {}?", some.join(" or ")),
        (versions, _) => format!("there is {} of it", versions.join(", ")),
    };
    Failure::new(format!("no package of {host} brings {kind}"), hint)
}

fn several_found(kind: &KindReference, crd: &str, several: &[DefiningRepository<'_>]) -> Failure {
    let names: Vec<&str> = several.iter().map(|one| one.repository.as_str()).collect();
    let first = names.first().copied().unwrap_or_default();
    let hint = format!("choose one of them, for example with `apron pin {crd} {first}`");
    Failure::new(format!("several packages bring {kind}: {}", names.join(", ")), hint)
}
