//! `init`: a package to start from.

use crate::failure::{Failure, Outcome};
use crate::output;
use std::path::{Path, PathBuf};

/// What to create, and where.
pub(crate) struct Request {
    pub(crate) template: Template,
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
}

/// The templates we carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Template {
    /// APIs of your own, composed of others
    Configuration,
    /// Resource types and the controller behind them
    Provider,
    /// A step of a composition
    Function,
}

/// Files of a template: name and content. `{{name}}` stands for the package's name.
type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($template:literal: $($path:literal),*) => {
        &[$(($path, include_str!(concat!("../../templates/", $template, "/", $path)))),*]
    };
}

const CONFIGURATION: Files = files!(
    "configuration":
    "crossplane.yaml",
    "apis/app/definition.yaml",
    "apis/app/composition.yaml",
    "examples/app.yaml",
    "README.md"
);
const PROVIDER: Files = files!("provider": "crossplane.yaml", "crds/example.org_things.yaml", "examples/thing.yaml", "README.md");
const FUNCTION: Files = files!("function": "crossplane.yaml", "input/input.yaml", "README.md");

impl Template {
    /// The template that upstream calls by this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "configuration" | "configuration-template" => Some(Self::Configuration),
            "provider" | "provider-template" | "provider-template-upjet" => Some(Self::Provider),
            "function" | "function-template-go" | "function-template-python" => {
                Some(Self::Function)
            }
            _ => None,
        }
    }

    fn files(self) -> Files {
        match self {
            Self::Configuration => CONFIGURATION,
            Self::Provider => PROVIDER,
            Self::Function => FUNCTION,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Provider => "provider",
            Self::Function => "function",
        }
    }
}

/// Creates a package.
pub(crate) fn run(request: &Request) -> Outcome {
    check_name(&request.name)?;
    check_empty(&request.directory)?;
    for (path, content) in request.template.files() {
        let target = request.directory.join(path);
        let parent = target.parent().unwrap_or(&request.directory);
        fs_err::create_dir_all(parent).map_err(|error| Failure::file(&error))?;
        fs_err::write(&target, content.replace("{{name}}", &request.name))
            .map_err(|error| Failure::file(&error))?;
    }
    tell(request);
    Ok(())
}

fn tell(request: &Request) {
    let (word, name) = (request.template.word(), output::bold(&request.name));
    let place = request.directory.display();
    output::print(format_args!("created {word} {name} in {place}"));
    for (path, _) in request.template.files() {
        output::print(format_args!("  {path}"));
    }
    output::print("");
    output::print("next:");
    if request.directory != Path::new(".") {
        output::print(format_args!("  cd {place}"));
    }
    output::print("  apron build            # makes a .xpkg file");
    output::print("  apron inspect *.xpkg   # shows what is in it");
}

/// A package's name becomes part of object names, so it has to be one itself.
fn check_name(name: &str) -> Outcome {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=63).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if valid {
        return Ok(());
    }
    Err(Failure::new(
        format!("`{name}` cannot be the name of a package"),
        "use lower-case letters, digits and dashes, 63 at most, for example `my-platform`",
    ))
}

fn check_empty(directory: &Path) -> Outcome {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::file(&error)),
    };
    let foreign = entries.filter_map(Result::ok).any(|entry| entry.file_name() != ".git");
    if foreign {
        return Err(Failure::new(
            format!("{} is not empty, and nothing in it is overwritten", directory.display()),
            "choose another directory with --directory, or empty this one",
        ));
    }
    Ok(())
}
