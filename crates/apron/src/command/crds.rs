//! `crds`: the definitions that an API server needs before packages can be installed.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use serde_json::json;

/// Under which suffix, and how to print them.
pub(crate) struct Request {
    pub(crate) group_suffix: String,
    pub(crate) format: Format,
}

/// Prints every definition: YAML for people and kubectl, or a List in JSON.
pub(crate) fn run(request: &Request) -> Outcome {
    let definitions = api::crd::definitions(&request.group_suffix).map_err(|error| {
        let hint = "give a suffix such as crossplane.io or ibm.crossplane.io";
        Failure::new("cannot make definitions", hint).because(&error)
    })?;
    match request.format {
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
            output::print_json(&list)
        }
        Format::Text => {
            for definition in &definitions {
                output::print_document("---");
                output::print_yaml(definition)?;
            }
            Ok(())
        }
    }
}
