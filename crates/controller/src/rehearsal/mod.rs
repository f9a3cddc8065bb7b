//! A rehearsal: what the manager would do, without the cluster noticing.
//!
//! The manager itself plays, with the kinds, steps and hands it always has, on a cluster that is
//! [`Imagined`]: what it reads is the real one's, and what it writes stays in memory. So a rehearsal
//! cannot say one thing and the manager do another, and it cannot write: nothing but questions
//! ever reaches the API server. Whatever is different in the end is what would change.
//!
//! Only packages that are changed are looked at, with their revisions and what runs them; for what
//! others need of them, all packages count, as always ([`crate::lock`]).

mod imagined;
mod ownership;
mod request;

pub use imagined::{Checks, Imagined};
pub use plan::adoption::mark;
pub use plan::preview::{
    Action, Adoption, ObjectAction, ObjectPreview, PackagePreview, Preview, Rehearsed, adoptions,
    obstacles,
};
pub use plan::step::Target;

use crate::cluster::{Error, Which};
use crate::kind::Kind;
use crate::lock::Locks;
use crate::package::Packages;
use crate::revision::Revisions;
use crate::roles::{DefinitionRoles, ProviderRoles};
use crate::run::look;
use crate::runtime::Runtimes;
use crate::stacks::Installs;
use crate::{Hands, lock};
use api::meta::PackageKind;
use api::pkg::LABEL_PACKAGE;
use api::stacks::{CLUSTER_INSTALL, NAMESPACE_INSTALL};
use plan::lock::Report;
use plan::preview::Change;

/// How often everything may be looked at before it must be quiet.
const SWEEPS_MAX: usize = 64;

/// Plays until nothing more happens. The hands are those of the imagined cluster, in which
/// something has been asked for already.
pub async fn rehearse(hands: &Hands, imagined: &Imagined) -> Result<Rehearsed, Error> {
    let players = Players::new(hands);
    for _ in 0..SWEEPS_MAX {
        let before = imagined.writes();
        let sweep = players.sweep(hands, imagined).await?;
        if imagined.writes() == before && !sweep.is_stale {
            let report = lock::report(&players.locks, hands).await?;
            let changes: Vec<Change> = imagined.changes();
            let before = Report::default();
            return Ok(Rehearsed { changes, report, refused: sweep.refused, before });
        }
    }
    Err(Error::Refused(format!("it did not come to an end after {SWEEPS_MAX} looks")))
}

/// Conflicts that are there already. Asked for before anything is wished for, it tells old troubles from new.
pub async fn standing_conflicts(hands: &Hands) -> Result<Report, Error> {
    lock::report(&Locks::new(hands), hands).await
}

/// What one look at everything came to.
#[derive(Default)]
struct Sweep {
    /// Somebody decided on a state that had changed.
    is_stale: bool,
    /// What could not be decided at all, in sentences.
    refused: Vec<String>,
}

impl Sweep {
    async fn look<K: Kind>(&mut self, kind: &K, hands: &Hands, key: &str) -> Result<(), Error> {
        match look(kind, hands, key).await {
            Ok(_) => {}
            Err(Error::Stale(_)) => self.is_stale = true,
            Err(Error::Refused(why)) => self.refused.push(format!("{} {key}: {why}", kind.name())),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Everybody who looks after something.
struct Players {
    locks: Locks,
    revisions: Vec<(PackageKind, Revisions)>,
}

impl Players {
    fn new(hands: &Hands) -> Self {
        let revisions = PackageKind::ALL.map(|kind| (kind, Revisions::new(kind)));
        Self { locks: Locks::new(hands), revisions: revisions.into() }
    }

    async fn sweep(&self, hands: &Hands, imagined: &Imagined) -> Result<Sweep, Error> {
        let mut sweep = Sweep::default();
        sweep.look(&self.locks, hands, api::pkg::lock::NAME).await?;
        for (kind, revisions) in &self.revisions {
            for package in imagined.changed(kind.as_str()) {
                sweep.look(&Packages(*kind), hands, &package).await?;
                for revision in revisions_of(hands, *kind, &package).await? {
                    sweep.look(revisions, hands, &revision).await?;
                    if hands.settings.runs(*kind) {
                        sweep.look(&Runtimes(*kind), hands, &revision).await?;
                    }
                    if hands.settings.manages_roles && *kind == PackageKind::Provider {
                        sweep.look(&ProviderRoles, hands, &revision).await?;
                    }
                }
            }
        }
        for installs in [Installs(CLUSTER_INSTALL), Installs(NAMESPACE_INSTALL)] {
            for install in imagined.changed_keys(installs.0) {
                sweep.look(&installs, hands, &install).await?;
            }
        }
        if hands.settings.manages_roles {
            for definition in imagined.changed("CompositeResourceDefinition") {
                sweep.look(&DefinitionRoles::default(), hands, &definition).await?;
            }
        }
        Ok(sweep)
    }
}

/// The revisions of a package, by name.
async fn revisions_of(
    hands: &Hands,
    kind: PackageKind,
    package: &str,
) -> Result<Vec<String>, Error> {
    let labels = format!("{LABEL_PACKAGE}={package}");
    let which = Which { labels: Some(&labels), ..Which::default() };
    let (api_version, kind) =
        (format!("{}/v1", hands.settings.group()), format!("{}Revision", kind.as_str()));
    let all = hands.cluster.list_metadata(&api_version, &kind, which).await?;
    let names = all.iter().filter_map(|one| one["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}
