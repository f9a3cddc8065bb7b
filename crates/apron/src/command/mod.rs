//! One file per verb: a request in, a result printed.

pub(crate) mod apiserver;
pub(crate) mod build;
pub(crate) mod copy;
pub(crate) mod crds;
pub(crate) mod extract;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod lint;
pub(crate) mod login;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod registry;
pub(crate) mod version;
