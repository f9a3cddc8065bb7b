//! `search`, `which` and `explain`: questions to the catalog of a registry, or to one in a file;
//! `catalog`: such files.

pub(crate) mod explain;
pub(crate) mod keep;
pub(crate) mod resolve;
pub(crate) mod search;
mod source;
pub(crate) mod which;

pub(crate) use source::CatalogChoice;

use ::catalog::http::encode as escape;
use source::Catalog;
