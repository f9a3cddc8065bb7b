//! Pages as browsers get them: through the router, from a catalog in a file.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test, as it should")]

mod hostile;
mod pages;
mod plane;
mod support;
