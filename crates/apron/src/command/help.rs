//! `help TOPIC`: pages of the manual in a terminal.

use crate::failure::{Failure, Outcome};
use crate::output::{self, table::table};
use manual::text::{TerminalLine, render_page};
use manual::topics::{TOPICS, Topic};

/// How wide pages are set: what people read easily, and what terminals have.
const WIDTH: usize = 90;

/// What to explain.
pub(crate) enum Request {
    Topics,
    Topic(&'static Topic),
    /// Neither a command nor a topic.
    Unknown(String),
}

/// Prints it.
pub(crate) fn run(request: &Request) -> Outcome {
    match request {
        Request::Topics => {
            let rows: Vec<Vec<String>> = TOPICS
                .iter()
                .map(|topic| vec![topic.name.to_owned(), topic.title().to_owned()])
                .collect();
            for line in table(&["TOPIC", "ABOUT"], &rows) {
                output::print(line);
            }
            Ok(())
        }
        Request::Topic(topic) => {
            for line in render_page(topic.source(), WIDTH) {
                match line {
                    TerminalLine::Heading(text) | TerminalLine::Term(text) => {
                        output::print(output::bold(text));
                    }
                    TerminalLine::Text(text) => output::print(text),
                }
            }
            output::say(output::dim(format_args!("(page {} of the manual)", topic.page)));
            Ok(())
        }
        Request::Unknown(words) => Err(Failure::new(
            format!("there is neither a command nor a topic `{words}`"),
            "`apron help topics` lists topics, `apron --help` commands",
        )),
    }
}
