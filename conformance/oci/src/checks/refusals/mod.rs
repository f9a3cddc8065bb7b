//! What must be refused: with which status, and with which error code.

use crate::check::Entry;
use crate::content::image;
use crate::context::{Context, Repo};
use crate::digest::Algorithm::Sha256;
use crate::exchange::Verdict;

mod deletes;
mod pulls;
mod pushes;
mod uploads;

/// A digest that is none.
const BAD: &str = "sha256:baddigeststring";

pub(super) fn entries() -> Vec<Entry> {
    [pulls::entries(), pushes::entries(), uploads::entries(), deletes::entries()].concat()
}

/// A repository that exists: it holds a tagged image.
async fn existing(context: &Context) -> Verdict<Repo<'_>> {
    let (repo, item) = (context.repo(), image(context, Sha256));
    item.push_as(&repo, "latest").await?;
    Ok(repo)
}
