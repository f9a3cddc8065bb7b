//! `doctor`: what this machine lacks, and for what.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::settings::Settings;
use machine::doctor::{CheckVerdict, Surroundings, examine_machine};

/// How to print it.
pub(crate) struct Request {
    pub(crate) format: Format,
}

/// Looks at everything, and fails if nothing goes well without what is missing.
pub(crate) async fn run(request: &Request, settings: &Settings) -> Outcome {
    let checks = examine_machine(&Surroundings {
        search: settings.path.clone(),
        data_directory: settings.data_home.as_ref().map(|home| home.join("apron")),
        temporary: settings.temporary.clone(),
        kubeconfigs: settings.kubeconfigs.clone(),
    })
    .await;
    if request.format == Format::Json {
        output::print_json(&checks)?;
    } else {
        for check in &checks {
            let word = match check.verdict {
                CheckVerdict::Ready => "ready  ",
                CheckVerdict::Missing => "missing",
                CheckVerdict::Broken => "broken ",
            };
            output::print(format_args!("{word}  {:<16}  {}", check.name, check.found));
            if let Some(hint) = &check.hint {
                output::print(format_args!("         needed for {}", check.needed_for));
                output::print(format_args!("         hint: {hint}"));
            }
        }
    }
    let broken: Vec<&str> = checks
        .iter()
        .filter(|check| check.verdict == CheckVerdict::Broken)
        .map(|check| check.name)
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    let hint = "do what is said above, and run `apron doctor` again";
    Err(Failure::new(format!("apron cannot work here: {}", broken.join(", ")), hint))
}
