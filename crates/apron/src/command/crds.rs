//! `crds`: the definitions that an API server needs before packages can be installed.

use crate::command::deploy;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// Under which suffix, whether with the first package system's, and how to print them.
pub(crate) struct Request {
    pub(crate) group_suffix: String,
    pub(crate) has_stacks: bool,
    pub(crate) format: Format,
}

/// Prints every definition: YAML for people and kubectl, or a List in JSON.
pub(crate) fn run(request: &Request) -> Outcome {
    let made = api::stacks::define_kinds(&request.group_suffix, request.has_stacks);
    let definitions = made.map_err(|error| {
        let hint = "give a suffix such as crossplane.io or ibm.crossplane.io";
        Failure::new("cannot make definitions", hint).because(&error)
    })?;
    deploy::print_objects(request.format == Format::Json, &definitions)
}
