//! `corpus DIRECTORY [COUNT [SEED]]` writes the definitions of a large provider.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match write_corpus(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[expect(clippy::print_stderr, reason = "a program says why it failed")]
            {
                eprintln!("corpus: error: {message}");
                eprintln!("corpus: hint: corpus DIRECTORY [COUNT [SEED]]");
            }
            ExitCode::FAILURE
        }
    }
}

fn write_corpus(arguments: &[String]) -> Result<(), String> {
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is not a number")),
        None => Ok(default),
    };
    let directory = arguments.first().ok_or("no directory is named")?;
    let count = usize::try_from(number(1, corpus::measured::COUNT as u64)?)
        .map_err(|error| error.to_string())?;
    let seed = number(2, corpus::SEED)?;
    corpus::write_definitions(Path::new(directory), count, seed).map_err(|error| error.to_string())
}
