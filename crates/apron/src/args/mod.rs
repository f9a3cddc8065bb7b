//! From words to requests.
//!
//! One binary answers to three names, each with its own words: `apron`, upstream's `crossplane`
//! and the guide's `kubectl crossplane`. Whatever was typed becomes one [`Command`] here, so
//! that commands know nothing about names and flags.

mod apron;
pub(crate) mod authority;
mod catalog;
pub(crate) mod cluster;
mod crossplane;
pub(crate) mod duration;
mod explorer;
mod image;
mod kubectl;
pub(crate) mod limit;
mod logs;
mod manager;
mod mirror;
mod own;
mod packages;
mod permissions;
mod pin;
pub(crate) mod registry;
mod render;
mod selecting;
mod serving;
mod stacks;
mod up;

use crate::command::{
    activate, adopt, apiserver, build, copy, diff, extract, init, inspect, install, lint, list,
    login, plan, prune, pull, push, status, uninstall, update, version, wait, why,
};
use crate::failure::Failure;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::Path;

/// What is to be done.
pub(crate) enum Command {
    Init(init::Request),
    Build(build::Request),
    Lint(lint::Request),
    Push(push::Request),
    Pull(pull::Request),
    Extract(extract::Request),
    Inspect(inspect::Request),
    Diff(diff::Request),
    Copy(copy::Request),
    Unpack(crate::command::unpack::Request),
    Convert(crate::command::convert::Request),
    Search(crate::command::catalog::search::Request),
    Which(crate::command::catalog::which::Request),
    Explain(crate::command::catalog::explain::Request),
    Catalog(crate::command::catalog::keep::Request),
    Login(login::Login),
    Logout(login::Logout),
    Install(Box<install::Request>),
    Update(update::Request),
    Uninstall(uninstall::Request),
    List(list::Request),
    Status(status::Request),
    Logs(crate::command::logs::Request),
    Activate(activate::Request),
    Adopt(Box<adopt::Request>),
    Prune(prune::Request),
    Pin(crate::command::pin::Request),
    Wait(wait::Request),
    Why(why::Request),
    Plan(Box<plan::Request>),
    Render(Box<crate::command::render::Request>),
    Permissions(crate::command::permissions::Request),
    Up(crate::command::up::Request),
    Explorer(crate::command::explorer::Request),
    Registry(crate::command::registry::Request),
    Apiserver(apiserver::Request),
    Export(apiserver::export::Request),
    Manager(Box<crate::command::manager::Request>),
    Deploy(Box<crate::command::deploy::Request>),
    Image(crate::command::image::Request),
    Crds(crate::command::crds::Request),
    Doctor(crate::command::doctor::Request),
    ExplainCondition(crate::command::explain_condition::Request),
    Help(crate::command::help::Request),
    Completion(crate::command::completion::ShellName),
    ManPages(std::path::PathBuf),
    Version(version::Request),
}

/// The name the binary was called by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Apron,
    Crossplane,
    Kubectl,
}

/// What is to be done, and how much is said about it.
pub(crate) struct Understood {
    pub(crate) command: Command,
    pub(crate) is_quiet: bool,
}

/// Parses the command line; help is clap's to print.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Understood, clap::Error> {
    let (command, is_quiet) = match name(&words) {
        Name::Apron => {
            let arguments = apron::Arguments::try_parse_from(words)?;
            let is_quiet = arguments.quiet;
            (arguments.into_command()?, is_quiet)
        }
        Name::Crossplane => (crossplane::Arguments::try_parse_from(words)?.into_command()?, false),
        Name::Kubectl => (kubectl::Arguments::try_parse_from(words)?.into_command()?, false),
    };
    Ok(Understood { command, is_quiet })
}

/// Whether the result is asked for as JSON, so that an error is, too. The words are looked at
/// themselves, because those that cannot be understood have errors as well. Under upstream's names
/// errors are upstream's.
pub(crate) fn asks_for_json(words: &[OsString]) -> bool {
    let texts = words.iter().map_while(|word| word.to_str().filter(|word| *word != "--"));
    let texts: Vec<&str> = texts.collect();
    let apart = texts.windows(2).any(|two| matches!(two, ["-o" | "--output", "json"]));
    let is_one = |word: &&str| matches!(*word, "-ojson" | "-o=json" | "--output=json");
    name(words) == Name::Apron && (apart || texts.iter().any(is_one))
}

/// What is wrong with the words, as clap has it.
pub(crate) fn misunderstood(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let (message, rest) = text.trim_end().split_once("\n\n").unwrap_or((&text, ""));
    let message = message.trim_start_matches("error: ").split_whitespace();
    let hint = rest.lines().last().unwrap_or("try `apron --help`");
    Failure::new(message.collect::<Vec<_>>().join(" "), hint)
}

/// How a command line ends that cannot be understood: as upstream's tools end under their names.
pub(crate) fn usage_code(words: &[OsString]) -> u8 {
    match name(words) {
        Name::Crossplane => 80,
        Name::Apron | Name::Kubectl => 2,
    }
}

/// What `apron logs` with these words is asked for.
#[cfg(test)]
pub(crate) fn logs_request(words: &[&str]) -> crate::command::logs::Request {
    let words = ["apron", "logs"].iter().chain(words).map(OsString::from).collect();
    match parse(words).map(|understood| understood.command) {
        Ok(Command::Logs(request)) => request,
        _ => unreachable!("these are words of `apron logs`"),
    }
}

/// The definition of `apron`'s own words, for completions and manual pages.
pub(crate) fn definition() -> clap::Command {
    apron::Arguments::command()
}

/// `-o` names the file in commands that write one, and the form of the result in all others: whoever
/// mistakes one for the other should not find a file called `json`.
fn result_file(text: &str) -> Result<std::path::PathBuf, String> {
    match text {
        "json" | "yaml" | "text" | "table" => Err(format!(
            "-o is the file to write here; the form of the result is --output {text}, and a file of that name ./{text}"
        )),
        _ => Ok(text.into()),
    }
}

fn name(words: &[OsString]) -> Name {
    let first = words.first().map(Path::new).and_then(Path::file_stem);
    match first.and_then(|stem| stem.to_str()) {
        Some("crossplane" | "crank") => Name::Crossplane,
        Some("kubectl-crossplane") => Name::Kubectl,
        _ => Name::Apron,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        apron::Arguments::command().debug_assert();
        crossplane::Arguments::command().debug_assert();
        kubectl::Arguments::command().debug_assert();
    }

    #[test]
    fn words_that_ask_for_json_are_known_before_they_are_understood() {
        for (words, expected) in [
            ("apron list -o json", true),
            ("apron list --output=json --nonsense", true),
            ("apron list -ojson", true),
            ("apron list -o yaml json", false),
            ("apron lint -- -o json", false),
            ("crossplane xpkg build -o json", false),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(asks_for_json(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn the_name_decides_the_words() {
        let check = |words: &[&str], good: bool| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(parse(words.clone()).is_ok(), good, "{words:?}");
        };
        check(&["/usr/bin/apron", "build"], true);
        check(&["apron", "xpkg", "build"], false);
        check(&["/opt/crossplane", "xpkg", "build", "-f", "p", "--ignore=a,b"], true);
        check(&["crossplane", "build"], false);
        check(&["kubectl-crossplane", "build", "provider", "--name", "x"], true);
        check(&["kubectl-crossplane", "push", "configuration", "a/b:v1"], true);
        check(&["kubectl-crossplane", "push", "nonsense", "a/b:v1"], false);
        check(&["kubectl-crossplane", "install", "provider", "a/b:v1", "-w", "30s"], true);
        check(
            &["kubectl-crossplane", "install", "configuration", "a/b:v1", "--config", "c"],
            false,
        );
        check(&["kubectl-crossplane", "update", "provider", "b", "v2"], true);
        check(&["crossplane", "xpkg", "install", "function", "a/b:v1", "b", "-r", "3"], true);
        check(&["crossplane", "xpkg", "update", "function", "a/b:v1"], true);
        check(&["apron", "install", "a/b:v1"], true);
        check(&["apron", "install", "provider", "a/b:v1", "b"], true);
        check(&["apron", "install", "a/b:v1", "b", "c"], false);
        check(&["apron", "install", "provider"], false);
        check(&["apron", "install", "configuration.xpkg"], true);
        check(&["apron", "install", "bogus", "a/b:v1"], false);
        check(&["apron", "install", "provider", "provider"], true);
        check(&["apron", "diff", "a/b:v1", "a/b:v2", "--fail-on", "warning"], true);
        check(&["apron", "image", "build", "-o", "json"], false);
        check(&["apron", "install", "a/b:v1", "--wait", "soon"], false);
        check(&["apron", "install", "a/b:v1", "--wait"], true);
        check(&["apron", "install", "a/b:v1", "--wait", "30s"], true);
        check(&["apron", "update", "b", "v2"], true);
        check(&["apron", "update", "b", "c", "v2"], false);
        check(&["apron", "list", "providers"], true);
        check(&["apron", "list", "nonsense"], false);
    }
}
