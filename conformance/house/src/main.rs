//! Prints the measures of a source tree: `house [DIRECTORY]`, by default `crates`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let crates = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("crates"), PathBuf::from);
    let printed = house::House::read(&crates)
        .and_then(|house| std::io::stdout().write_all(house::table::render(&house).as_bytes()));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "house: error: {error}");
            let _ = writeln!(
                std::io::stderr(),
                "house: hint: name the directory that holds the crates"
            );
            ExitCode::FAILURE
        }
    }
}
