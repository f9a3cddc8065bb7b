//! `unpack`: the objects that a package of the first format comes to.

use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::stacks;
use oci::Platform;
use serde_json::{Value as Json, json};
use stack::record::RecordOptions;
use std::path::PathBuf;

/// What to unpack, and where to.
pub(crate) struct Request {
    pub(crate) package: String,
    /// The scope that the package has to ask for.
    pub(crate) scope: Option<String>,
    /// The name of the record.
    pub(crate) name: Option<String>,
    pub(crate) outfile: Option<PathBuf>,
    pub(crate) platform: Option<Platform>,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Unpacks a package: its definitions, then its record.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let platform = request.platform.as_ref();
    let found = stacks::require_stack(&request.package, platform, &request.registry, settings)?;
    if let (Some(wanted), Some(scope)) = (&request.scope, found.stack.app.scope)
        && wanted != scope.as_str()
    {
        return Err(Failure::new(
            format!("the package's permissionScope is {scope}, not {wanted}"),
            format!("unpack it with --permission-scope {scope}, or without the flag"),
        ));
    }
    let options = RecordOptions {
        name: request.name.as_deref(),
        image: found.image.as_deref(),
        tag: stacks::tag_of(&found.place),
    };
    let definitions = found.stack.definitions.iter().map(|one| one.object.clone());
    let objects: Vec<Json> = definitions.chain([found.stack.to_record(&options)]).collect();
    let text = match request.format {
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            serde_json::to_string_pretty(&list).map_err(|error| {
                Failure::new("cannot write the objects", "please report this").because(&error)
            })?
        }
        Format::Text => stack::record::write_documents(&objects),
    };
    match &request.outfile {
        None => output::print_document(text.trim_end()),
        Some(path) => {
            let text = format!("{}\n", text.trim_end());
            fs_err::write(path, text).map_err(|error| Failure::file(&error))?;
        }
    }
    Ok(())
}
