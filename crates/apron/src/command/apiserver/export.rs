//! `apiserver export`: everything as YAML that `kubectl apply` takes.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::private;
use apiserver::export::Export;
use apiserver::log::{Limits, Log, Sqlite};
use std::fmt::Write as _;
use std::path::PathBuf;

/// What to write, and where to.
pub(crate) struct Request {
    pub(crate) data_dir: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) status: bool,
}

/// Writes everything in a data directory that no server uses.
pub(crate) fn run(request: &Request) -> Outcome {
    let path = request.data_dir.join("log.sqlite");
    if !path.exists() {
        let message = format!("there is no API server's data in {}", request.data_dir.display());
        return Err(Failure::new(message, "name its directory with --data-dir"));
    }
    let opened = Sqlite::open(&request.data_dir)
        .and_then(|disk| Log::open(Box::new(disk), Limits::default()));
    let log = opened.map_err(|error| match error {
        apiserver::log::DiskError::InUse(_) => {
            let message = format!("cannot read the data in {}", request.data_dir.display());
            let hint = "stop the server, or ask it with kubectl and its kubeconfig";
            Failure::new(message, hint).because(&error)
        }
        _ => super::cannot_open(&request.data_dir, &error),
    })?;
    let export = apiserver::export::export(&log, request.status).map_err(|error| {
        Failure::new("cannot read the objects", "please report this").because(&error)
    })?;
    let text = yaml(&export)?;
    match &request.output {
        Some(path) => private::write_file(path, &text)?,
        None => output::print_document(text.trim_end()),
    }
    tell(request, &export);
    Ok(())
}

fn yaml(export: &Export) -> Outcome<String> {
    let mut text = String::new();
    for object in &export.objects {
        let one = serde_saphyr::to_string(object).map_err(|error| {
            Failure::new("cannot write an object as YAML", "please report this").because(&error)
        })?;
        let _ = write!(text, "---\n{}\n", one.trim_end());
    }
    Ok(text)
}

/// Says what is not to be seen in the result.
fn tell(request: &Request, export: &Export) {
    output::say(format_args!("Exported {}", output::count(export.objects.len(), "object")));
    if export.secrets > 0 {
        let secrets = output::count(export.secrets, "secret");
        output::warn(format_args!("{secrets} can be read by whoever reads the result"));
    }
    if export.orphans > 0 {
        let objects = output::count(export.orphans, "object");
        output::warn(format_args!("{objects} lost the references to their owners"));
    }
    if export.deleting > 0 {
        let objects = output::count(export.deleting, "object");
        output::warn(format_args!("{objects} left out: being deleted"));
    }
    if let Some(path) = &request.output {
        let path = path.display();
        output::say(format_args!("Apply it:  kubectl apply --server-side -f {path}"));
        output::say("(twice, if it holds definitions: kubectl looks kinds up before it makes any)");
    }
}
