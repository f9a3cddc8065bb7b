//! One file per verb: a request in, a result printed.

pub(crate) mod activate;
pub(crate) mod apiserver;
pub(crate) mod build;
pub(crate) mod change;
pub(crate) mod copy;
pub(crate) mod crds;
pub(crate) mod deploy;
pub(crate) mod extract;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod manager;
pub(crate) mod plan;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod registry;
pub(crate) mod status;
pub(crate) mod uninstall;
pub(crate) mod up;
pub(crate) mod update;
pub(crate) mod version;
pub(crate) mod wait;
pub(crate) mod why;
