//! Words about apron itself: its manual, its version, what shells know of it, and the machine it is on.

use super::Command;
use crate::command::completion::ShellName;
use crate::command::{doctor, explain_condition, help, version};
use crate::output::Format;
use clap::error::ErrorKind;
use clap::{Parser as _, Subcommand};
use manual::topics::find_topic;
use std::path::PathBuf;

#[derive(Subcommand)]
pub(super) enum OwnWords {
    /// Say what this machine has and lacks, and for what it is needed
    ///
    /// Directories, ports, certificates, programs, and whether pods can run. What is missing is needed by some
    /// commands only, and is told with what to do. The exit code is 1 if apron cannot work here.
    Doctor {
        /// Form of the result
        #[arg(long, short, value_enum, default_value_t)]
        output: Format,
    },
    /// Explain a condition, reason or event of packages: its cause and what to do
    ExplainCondition {
        /// Name of the condition, reason or event, as objects have it
        #[arg(value_name = "REASON")]
        name: String,
        /// Form of the result
        #[arg(long, short, value_enum, default_value_t)]
        output: Format,
    },
    /// Print a completion script for your shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: ShellName,
    },
    /// Write manual pages, one for each command
    Man {
        /// Directory to write them to; `man` looks into share/man/man1
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the version
    Version {
        /// Form of the result
        #[arg(long, short, value_enum, default_value_t)]
        output: Format,
    },
    /// Explain a topic or a command; `apron help topics` lists topics
    Help {
        /// A topic, or the words of a command
        #[arg(value_name = "TOPIC|COMMAND")]
        words: Vec<String>,
    },
}

impl OwnWords {
    pub(super) fn into_command(self) -> Result<Command, clap::Error> {
        Ok(match self {
            Self::Doctor { output } => Command::Doctor(doctor::Request { format: output }),
            Self::ExplainCondition { name, output } => {
                Command::ExplainCondition(explain_condition::Request { name, format: output })
            }
            Self::Completion { shell } => Command::Completion(shell),
            Self::Man { directory } => Command::ManPages(directory),
            Self::Version { output } => Command::Version(version::Request::Own(output)),
            Self::Help { words } => Command::Help(find_help(&words)?),
        })
    }
}

/// What explains these words: a topic of the manual, or what clap prints of a command, which it takes for an
/// error.
fn find_help(words: &[String]) -> Result<help::Request, clap::Error> {
    if let [name] = words {
        if name == "topics" {
            return Ok(help::Request::Topics);
        }
        if let Some(topic) = find_topic(name) {
            return Ok(help::Request::Topic(topic));
        }
    }
    let asked = ["apron"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match super::apron::Arguments::try_parse_from(asked) {
        Err(help) if help.kind() == ErrorKind::DisplayHelp => Err(help),
        _ => Ok(help::Request::Unknown(words.join(" "))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition;
    use manual::topics::TOPICS;

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        for topic in TOPICS {
            assert!(definition().find_subcommand(topic.name).is_none(), "{}", topic.name);
        }
        assert!(definition().find_subcommand("topics").is_none());
    }
}
