//! `build` of a package of the first format: an image with `.registry/` in it.

use super::build::{
    Built, Report, Request, assemble, refuse_stdout, runtime, target, tell, work_directory,
    write_image,
};
use super::{extra_layer, lint};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use crate::stacks;
use std::path::Path;
use xpkg::diagnostic::Severity;
use xpkg::label::to_dns_label;

/// Builds a package of the first format.
pub(super) fn build_stack(request: &Request, registry: &Path, settings: &Settings) -> Outcome {
    refuse_stdout(&request.file)?;
    refuse_flags(request)?;
    let Some(found) = stacks::read_directory(&request.root)? else {
        let hint = "build again once nothing changes the files";
        return Err(Failure::new("the directory changed while it was read", hint));
    };
    let counts = |severity| found.findings.iter().filter(|one| one.severity == severity).count();
    let (errors, warnings) = (counts(Severity::Error), counts(Severity::Warning));
    output::findings(&found.findings, output::say_always);
    let stack = match &found.stack {
        Some(stack) if errors == 0 && !(request.strict && warnings > 0) => stack,
        _ => {
            if matches!(request.report, Report::Tell(Format::Json)) {
                output::print_json(&lint::Report::new(&found.findings))?;
            }
            let trouble = match errors {
                0 => output::count(warnings, "warning"),
                errors => output::count(errors, "error"),
            };
            return Err(Failure::new(
                format!("the package has {trouble}; nothing was written"),
                "fix what is listed above and build again; `apron lint` shows the same list",
            ));
        }
    };
    let work = work_directory(request)?;
    let runtime = runtime(request, work.path(), settings)?;
    let path = work.path().join("registry");
    let layer = extra_layer::write_registry(registry, &path)?;
    let (image, layers) = assemble(runtime, vec![(path, String::new(), layer)])?;
    let title = stack.app.find_text("title").unwrap_or("package");
    let name = to_dns_label(&title.replace(' ', "-").to_lowercase());
    let target = target(request, &name, &image);
    let raw = write_image(&target, &image, &layers)?;
    let built = Built {
        size: fs_err::metadata(&target).map_err(|error| Failure::file(&error))?.len(),
        file: target,
        kind: "Package".to_owned(),
        name,
        digest: raw.digest.to_string(),
        objects: stack.definitions.len(),
        warnings,
        commit: None,
    };
    tell(&built, &request.report)
}

/// Says which flags are about packages of today.
fn refuse_flags(request: &Request) -> Outcome {
    let kind = request.kind.map(|kind| format!("it is no {}", kind.as_str()));
    let layer = (!request.layers.is_empty()).then(|| "it has no annotated layers".to_owned());
    let Some(why) = kind.or(layer) else { return Ok(()) };
    Err(Failure::new(
        format!("{} is a package of the first format: {why}", request.root.display()),
        "build it without that, or turn it into a package of today with `apron convert`",
    ))
}
