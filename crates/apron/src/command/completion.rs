//! `completion` and `man`: what shells and `man` know of apron, made from its own words.

use crate::args::definition;
use crate::failure::{Failure, Outcome};
use crate::output;
use clap_complete::{Generator, Shell, generate};
use std::path::Path;

/// Shells that scripts are made for.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum ShellName {
    Bash,
    Elvish,
    Fish,
    Nushell,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

/// Prints the script for a shell.
pub(crate) fn print_script(shell: ShellName) {
    output::print_document(&match shell {
        ShellName::Bash => script_of(Shell::Bash),
        ShellName::Elvish => script_of(Shell::Elvish),
        ShellName::Fish => script_of(Shell::Fish),
        ShellName::Nushell => script_of(clap_complete_nushell::Nushell),
        ShellName::PowerShell => script_of(Shell::PowerShell),
        ShellName::Zsh => script_of(Shell::Zsh),
    });
}

fn script_of(generator: impl Generator) -> String {
    let mut script = Vec::new();
    generate(generator, &mut definition(), "apron", &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}

/// Writes a page for each command.
pub(crate) fn write_pages(directory: &Path) -> Outcome {
    let made = fs_err::create_dir_all(directory);
    made.and_then(|()| clap_mangen::generate_to(definition(), directory))
        .map_err(|error| Failure::file(&error))?;
    output::say(format_args!("wrote manual pages to {}", directory.display()));
    Ok(())
}
