//! Why a document cannot be read: where, what, and what to do about it.
//!
//! Sentences are for people who write YAML by hand. The parser's own words speak of tokens and
//! simple keys; where a mistake is common it gets a sentence of ours and a hint.

use granit_parser::{ErrorKind, ScanError};

use super::tree::Position;

/// One reason a document cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {message}", position.line, position.column)]
pub struct ParseError {
    /// Where reading stopped.
    pub position: Position,
    /// What is wrong, as a sentence without the place.
    pub message: String,
    /// What to do about it, if we know.
    pub hint: Option<String>,
    /// The class of the mistake, for those who decide by it.
    pub kind: ParseErrorKind,
    upstream: Option<Upstream>,
}

/// What Go's library says of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upstream {
    /// A word that cannot be; the line is the one it is in.
    Word(&'static str),
    /// A word that lacks something, which is noticed in the next line.
    Lack(&'static str),
    /// Words that do not go together; the line is the one before.
    Order(&'static str),
}

/// The class of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text is no YAML.
    Syntax,
    /// A tab stands where indentation is expected.
    Tab,
    /// A key occurs twice in one mapping.
    DuplicateKey {
        /// Where it occurred first.
        first: Position,
    },
    /// A key JSON has no spelling for.
    Key,
    /// A value JSON has no spelling for, or that contradicts its tag.
    Value,
    /// A merge key `<<` whose value is no mapping.
    Merge,
    /// An alias that refers to nothing, or to a value it is part of.
    Alias,
    /// Something follows the document.
    TrailingContent,
    /// The document asks for more than it may.
    Limit {
        /// The field of [`super::Limits`] that was met.
        name: &'static str,
    },
}

impl ParseError {
    pub(super) fn new(
        kind: ParseErrorKind,
        position: Position,
        message: impl Into<String>,
    ) -> Self {
        Self { position, message: message.into(), hint: None, kind, upstream: None }
    }

    /// The mistake in the words of Go's library where we know them, else in ours: clients of the
    /// API server show these to people, and some look for them.
    pub fn in_go_words(&self) -> String {
        let line = self.position.line;
        let at = |line: u32| if line == 0 { String::new() } else { format!("line {line}: ") };
        match (&self.kind, self.upstream) {
            (ParseErrorKind::Limit { name: "depth_max" }, _) => {
                "yaml: exceeded max depth of 10000".to_owned()
            }
            (ParseErrorKind::Limit { .. }, _) => {
                "yaml: document contains excessive aliasing".to_owned()
            }
            // The first line is never named.
            (_, Some(Upstream::Word(said))) if line == 1 => format!("yaml: {said}"),
            (_, Some(Upstream::Word(said))) => format!("yaml: {}{said}", at(line)),
            (_, Some(Upstream::Lack(said))) => format!("yaml: {}{said}", at(line + 1)),
            (_, Some(Upstream::Order(said))) => {
                format!("yaml: {}{said}", at(line.saturating_sub(1)))
            }
            (_, None) => format!("yaml: {}{}", at(line), self.message),
        }
    }

    /// Whether the documents of the stream together asked for more than they may, and not this one
    /// alone.
    pub fn is_of_stream(&self) -> bool {
        let of_stream = [crate::total::NODES_MAX, crate::total::SHARE_MAX];
        matches!(self.kind, ParseErrorKind::Limit { name } if of_stream.contains(&name))
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn limit(name: &'static str, position: Position, message: &str) -> Self {
        let kind = ParseErrorKind::Limit { name };
        Self::new(kind, position, format!("{message} ({name})"))
    }

    /// A mistake the grammar found, in words for authors where we have them.
    pub(super) fn grammar(error: &ScanError, position: Position, depth_max: usize) -> Self {
        let upstream = upstream(error.kind());
        Self { upstream, ..Self::for_authors(error, position, depth_max) }
    }

    fn for_authors(error: &ScanError, position: Position, depth_max: usize) -> Self {
        use ParseErrorKind::{Alias, Syntax};
        let own = |kind, message: &str, hint: &str| Self::new(kind, position, message).hint(hint);
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => Self::depth(position, depth_max),
            kind if is_tab(kind) => Self::tab(position),
            ErrorKind::UnknownAnchor => own(
                Alias,
                "the alias refers to an anchor that is not defined above it",
                "define the anchor with & before using it with *, or quote the text if it is none",
            ),
            ErrorKind::MappingValueNotAllowed => own(
                Syntax,
                "a mapping value is not allowed here",
                "check the indentation, and quote values that contain a colon and a space",
            ),
            ErrorKind::UnexpectedCharacter { character } => {
                own(Syntax, &format!("a value cannot start with `{character}`"), "quote the value")
            }
            ErrorKind::ExpectedDocumentStart => own(
                Syntax,
                "this does not belong to the value above it",
                "check the indentation, and the space after a colon",
            ),
            ErrorKind::InvalidQuotedScalarIndent => own(
                Syntax,
                "a quoted string is not closed, or goes on in a line that is not indented",
                "add the closing quote, or indent the line",
            ),
            ErrorKind::UnclosedQuotedScalar => {
                own(Syntax, "a quoted string is not closed", "add the closing quote")
            }
            kind => {
                let message = kind.to_string();
                // Ours to say in plain lower case, whatever the parser's habit.
                Self::new(Syntax, position, message.trim_end_matches('.').to_lowercase())
            }
        }
    }

    /// A tab in the indentation.
    pub(super) fn tab(position: Position) -> Self {
        let message = "found a tab where indentation is expected; YAML is indented with spaces";
        let upstream = Some(Upstream::Word(NO_TOKEN));
        let error = Self::new(ParseErrorKind::Tab, position, message);
        Self { upstream, ..error.hint("replace the tab with spaces") }
    }

    /// Collections nested too deeply.
    pub(super) fn depth(position: Position, depth_max: usize) -> Self {
        let message = format!("collections are nested deeper than the limit of {depth_max}");
        Self::limit("depth_max", position, &message)
    }
}

/// What Go's library says of a tab, and of other characters that start nothing.
const NO_TOKEN: &str = "found character that cannot start any token";

/// What Go's library says where the grammar stumbled.
fn upstream(kind: &ErrorKind) -> Option<Upstream> {
    use Upstream::{Lack, Order, Word};
    Some(match kind {
        kind if is_tab(kind) => Word(NO_TOKEN),
        ErrorKind::UnexpectedCharacter { .. } => Word(NO_TOKEN),
        ErrorKind::MappingValueNotAllowed => Word("mapping values are not allowed in this context"),
        ErrorKind::InvalidQuotedScalarIndent | ErrorKind::UnclosedQuotedScalar => {
            Word("found unexpected end of stream")
        }
        ErrorKind::SimpleKeyExpected => Lack("could not find expected ':'"),
        ErrorKind::UnexpectedEofFlowMapping | ErrorKind::ExpectedFlowMappingSeparator => {
            Order("did not find expected ',' or '}'")
        }
        ErrorKind::UnexpectedEofFlowSequence | ErrorKind::ExpectedFlowSequenceSeparator => {
            Order("did not find expected ',' or ']'")
        }
        ErrorKind::ExpectedBlockMappingKey => Order("did not find expected key"),
        ErrorKind::ExpectedBlockSequenceEntry => Order("did not find expected '-' indicator"),
        ErrorKind::ExpectedNodeContent => Order("did not find expected node content"),
        ErrorKind::ExpectedDocumentStart => Order("did not find expected <document start>"),
        _ => return None,
    })
}

/// Whether the grammar stumbled over a tab.
fn is_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}
