//! Which bytes a revision is made of, and what is in them.

use super::contents::Contents;
use super::{Halt, World};
use crate::package::pull::{self, Image, Policy, Pull, Unavailable};
use crate::step::Need;
use oci::{Digest, Reference};
use std::sync::Arc;

/// What is in the package of a revision.
pub(super) fn contents(world: &World, digest: Digest) -> Result<Arc<Contents>, Halt> {
    match &world.contents {
        Some(Ok(contents)) => Ok(Arc::clone(contents)),
        Some(Err(error)) => Err(missing(world, error)),
        None => Err(Halt::Need(vec![Need::Contents(pinned(world, digest)?)])),
    }
}

/// These bytes, where image configurations say that they are.
pub(super) fn pinned(world: &World, digest: Digest) -> Result<Reference, Halt> {
    let image = world.treatment.name(&world.revision.spec.image);
    let pinned = pull::pinned(image, &world.settings.default_registry, digest);
    pinned.map_err(|(why, advice)| {
        Halt::trouble("ParsePackage", format!("cannot get package: {why}; {advice}"))
    })
}

/// The digest of the bytes. A revision is made of one package for ever, and its name says which,
/// so a tag that means something else by now is no help.
pub(super) fn digest(world: &World) -> Result<Digest, Halt> {
    let Image { cached, asked, searched } = world.image.clone();
    let cached = cached.filter(|digest| is_ours(world, digest));
    if let Some(digest) = cached {
        return Ok(digest);
    }
    let spec = &world.revision.spec;
    let policy = Policy::parse(spec.package_pull_policy.as_deref());
    let image = Image { cached: None, asked, searched };
    let registry = &world.settings.default_registry;
    // What cannot be had shows when it is opened.
    match pull::decide(policy, &spec.image, registry, &image, |_| true) {
        Pull::Use(digest) if is_ours(world, &digest) => Ok(digest),
        Pull::Use(digest) => {
            let why = format!(
                "{} means {digest} now, which is not what this revision was made from",
                spec.image
            );
            let advice = "let the package make a revision of it, or install it by digest";
            Err(Halt::trouble("ParsePackage", format!("cannot get package: {why}; {advice}")))
        }
        Pull::Ask(reference) => Err(Halt::Need(vec![Need::Digest(reference)])),
        Pull::Search(name) => Err(Halt::Need(vec![Need::CachedFile(name)])),
        Pull::Fail(why, advice) => {
            Err(Halt::trouble("ParsePackage", format!("cannot get package: {why}; {advice}")))
        }
    }
}

fn missing(world: &World, error: &Unavailable) -> Halt {
    let (why, advice) = (&error.why, error.advice(&world.revision.spec.image));
    Halt::trouble("ParsePackage", format!("cannot get package: {why}; {advice}"))
}

fn is_ours(world: &World, digest: &Digest) -> bool {
    xpkg::label::is_made_of(&world.revision.metadata.name, digest.hex())
}
