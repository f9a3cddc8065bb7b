//! `convert`: a package of the first format as one of today.

use crate::args::registry::RegistryArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::stacks;
use oci::Platform;
use serde_json::{Value as Json, json};
use stack::convert::{ConvertOptions, convert_stack};
use stack::record::write_documents;
use std::path::{Path, PathBuf};

/// What to convert, and where to.
pub(crate) struct Request {
    pub(crate) package: String,
    pub(crate) name: Option<String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) platform: Option<Platform>,
    pub(crate) format: Format,
    pub(crate) registry: RegistryArguments,
}

/// Where the package's own files go, below the directory: what lies beside them is no part of it.
const PACKAGE: &str = "package";
const RUNTIME_CONFIG: &str = "runtime-config.yaml";

/// Converts a package.
pub(crate) fn run(request: &Request, settings: &Settings) -> Outcome {
    let platform = request.platform.as_ref();
    let found = stacks::require_stack(&request.package, platform, &request.registry, settings)?;
    let (name, image) = (request.name.as_deref(), found.image.as_deref());
    let made = convert_stack(&found.stack, &ConvertOptions { name, image });
    let root = request.directory.clone().unwrap_or_else(|| PathBuf::from(&made.name));
    if root.read_dir().is_ok_and(|mut all| all.next().is_some()) {
        return Err(Failure::new(
            format!("{} is a directory with other things in it", root.display()),
            "name a new directory with -d",
        ));
    }
    for (path, object) in &made.files {
        write_object(&root.join(PACKAGE).join(path), object)?;
    }
    let (package, runtime_config) = (root.join(PACKAGE), root.join(RUNTIME_CONFIG));
    write_object(&runtime_config, &made.runtime_config)?;
    if request.format == Format::Json {
        return output::print_json(&json!({
            "name": made.name,
            "kind": "Provider",
            "package": package,
            "runtimeConfig": runtime_config,
            "definitions": found.stack.definitions.len(),
            "notes": made.notes,
        }));
    }
    let definitions = output::count(found.stack.definitions.len(), "definition");
    let named = output::bold(&made.name);
    output::print(format_args!("converted to provider {named} with {definitions}"));
    output::print(format_args!("  package         {}", package.display()));
    output::print(format_args!("  runtime config  {}", runtime_config.display()));
    made.notes.iter().for_each(|note| output::print(format_args!("  note: {note}")));
    output::print(format_args!("next: apron build {}", package.display()));
    Ok(())
}

fn write_object(path: &Path, object: &Json) -> Outcome {
    let written = path.parent().map_or(Ok(()), fs_err::create_dir_all);
    let text = write_documents(std::slice::from_ref(object));
    let written = written.and_then(|()| fs_err::write(path, text.trim_start_matches("---\n")));
    written.map_err(|error| Failure::file(&error))
}
