//! The voice: the only place that prints.
//!
//! Results go to standard output, everything else to standard error. Colours appear only where a
//! terminal wants them (`NO_COLOR`, `CLICOLOR` and `TERM` are honoured by the stream). A reader
//! that hangs up, such as `head`, is not an error. Names and texts of packages, files and
//! registries are shown, never obeyed: what a terminal could take for a command is written out.

pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod tree;

use crate::failure::{Failure, Outcome};
use anstyle::{AnsiColor, Style};
pub(crate) use ground::words::{count, short};
use serde::Serialize;
use serde_json::json;
use std::fmt::{Display, Write as _};
use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use xpkg::diagnostic::{Diagnostic, Severity};

/// The form of a command's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Words for people.
    #[default]
    Text,
    /// JSON for programs.
    Json,
}

/// The form of a result about objects of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ObjectFormat {
    /// Words for people
    #[default]
    Text,
    /// The same with more columns
    Wide,
    /// JSON for programs
    Json,
    /// The same as YAML
    Yaml,
    /// Kind and name only, as kubectl takes them
    Name,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Bold text.
pub(crate) fn bold(text: impl Display) -> String {
    styled(BOLD, text)
}

/// Quiet text.
pub(crate) fn dim(text: impl Display) -> String {
    styled(DIM, text)
}

fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a line of the result.
pub(crate) fn print(line: impl Display) {
    let _ = writeln!(anstream::stdout().lock(), "{}", harmless(&line.to_string()));
}

/// Prints a result that is made for programs, as it is.
pub(crate) fn print_document(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints a line that a program of a package wrote: at a terminal without anything that it would obey,
/// otherwise as it is. False if its reader has hung up.
pub(crate) fn print_log_line(prefix: &str, line: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    let written = if out.is_terminal() {
        writeln!(out, "{prefix}{}", harmless(&String::from_utf8_lossy(line)))
    } else {
        out.write_all(&[prefix.as_bytes(), line, b"\n"].concat())
    };
    written.is_ok()
}

/// Whether only results, warnings and errors are printed (`--quiet`). Like colours, it is decided once,
/// when the words are read, and goes for the whole process.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints nothing but results, warnings and errors from now on.
pub(crate) fn keep_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Tells the user something that is not the result.
pub(crate) fn say(line: impl Display) {
    if !IS_QUIET.load(Ordering::Relaxed) {
        say_always(line);
    }
}

/// Tells the user something that has to be known.
pub(crate) fn say_always(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", harmless(&line.to_string()));
}

/// One line without anything a terminal would obey, except the styles that are ours.
fn harmless(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        if let Some(style) = own_style(rest) {
            safe.push_str(style);
            rest = &rest[style.len()..];
            continue;
        }
        if next != '\t' && is_harmful(next) {
            safe.extend(next.escape_default());
        } else {
            safe.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    safe
}

/// Whether a terminal could take the character for a command; the latter turn the direction of
/// what follows them.
fn is_harmful(one: char) -> bool {
    let turns =
        matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    one.is_control() || turns
}

/// The style a text begins with, if it is one that is used here.
fn own_style(text: &str) -> Option<&str> {
    let code = text.strip_prefix("\u{1b}[")?;
    let end =
        ["0m", "1m", "2m", "31m", "33m", "36m"].into_iter().find(|end| code.starts_with(end))?;
    text.get(..2 + end.len())
}

/// Prints a result as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        Failure::new("cannot write the result as JSON", "please report this").because(&error)
    })?;
    print_document(&escaped(&text));
    Ok(())
}

/// JSON with everything written out that a terminal might obey; it means the same.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for next in json.chars() {
        if next != '\n' && is_harmful(next) {
            let _ = write!(safe, "\\u{:04x}", u32::from(next));
        } else {
            safe.push(next);
        }
    }
    safe
}

/// Prints a result as YAML.
pub(crate) fn print_yaml(value: &impl Serialize) -> Outcome {
    let text = serde_saphyr::to_string(value).map_err(|error| {
        Failure::new("cannot write the result as YAML", "please report this").because(&error)
    })?;
    print_document(text.trim_end());
    Ok(())
}

/// Whether progress can be drawn.
pub(crate) fn is_terminal() -> bool {
    std::io::stderr().is_terminal() && !IS_QUIET.load(Ordering::Relaxed)
}

/// Shows a failure.
pub(crate) fn fail(failure: &Failure) {
    say_always(format_args!("{} {}", styled(ERROR, "error:"), failure.message));
    for cause in &failure.causes {
        say_always(format_args!("  because {cause}"));
    }
    say_always(format_args!("{} {}", styled(HINT, "hint:"), failure.hint));
}

/// Shows a failure to a program: one line of JSON, the last on standard error.
pub(crate) fn fail_in_json(failure: &Failure) {
    let Failure { message, causes, hint } = failure;
    let error = json!({"error": {"message": message, "causes": causes, "hint": hint}});
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(&error.to_string()));
}

/// Warns of something that went well enough.
pub(crate) fn warn(line: impl Display) {
    say_always(format_args!("{} {line}", styled(WARNING, "warning:")));
}

/// Shows findings, each with its place and advice.
pub(crate) fn findings(findings: &[Diagnostic], to: impl Fn(String)) {
    for finding in findings {
        let word = match finding.severity {
            Severity::Error => styled(ERROR, "error"),
            Severity::Warning => styled(WARNING, "warning"),
        };
        let place = match finding.line {
            0 => finding.file.clone(),
            line => format!("{}:{line}:{}", finding.file, finding.column),
        };
        let rule = dim(format_args!("[{}]", finding.rule));
        to(format!("{}: {word}: {} {rule}", bold(place), finding.message));
        if let Some(hint) = &finding.hint {
            to(format!("  {} {hint}", styled(HINT, "hint:")));
        }
    }
}

/// A size as people say it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cannot_speak_to_the_terminal() {
        let check = |line: &str, expected: &str| assert_eq!(harmless(line), expected);
        check("a\tb é …", "a\tb é …");
        check(&styled(ERROR, "red"), &styled(ERROR, "red"));
        check("\u{1b}[2J\u{1b}[31", "\\u{1b}[2J\\u{1b}[31");
        check("a\r\nb\u{9b}\u{202e}", "a\\r\\nb\\u{9b}\\u{202e}");
    }

    #[test]
    fn sizes_are_read_easily() {
        let check = |bytes, expected: &str| assert_eq!(size(bytes), expected);
        check(0, "0 B");
        check(999, "999 B");
        check(1000, "1.0 kB");
        check(1_234_567, "1.2 MB");
        check(999_999, "999.9 kB");
        check(8_390_000_000, "8.3 GB");
    }
}
