//! From a document's text to its tree.
//!
//! granit reads the grammar and hands over events; the builder keeps a stack of the collections
//! that are open and turns events into nodes. Children wait on two shared piles and move into an
//! exactly sized vector when their collection closes, which saves most of the growing that
//! building each vector on its own would cost.
//!
//! Aliases are copies. What a copy weighs (nodes, text, height) is known before it is made, from
//! counters read when its anchor opened and closed, so that an alias bomb is refused at the first
//! alias that would go too far, in no time and no memory. A copy stands where its alias stands;
//! what is inside keeps the positions of the original, because that is where it was written.

use granit_parser::Parser;

use super::Limits;
use super::error::ParseError;
use super::merge::Repeated;
use super::strict;
use super::total::Total;
use super::tree::Node;

mod budget;
mod builder;

use builder::Builder;

/// Trees are dropped and converted recursively; this deep is safe on any thread's stack.
const DEPTH_CEILING: usize = 1_000;

/// What to do when a key occurs twice in one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// Refuse the document: one of the two would be lost.
    #[default]
    Reject,
    /// Keep the last one, as `kubectl apply` does.
    LastWins,
}

/// How to read a document, beyond its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// What to do about duplicate keys.
    pub duplicate_keys: DuplicateKeys,
}

/// Parses one document strictly; `first_line` is the line its text starts at in its stream.
pub fn parse<'a>(text: &'a str, first_line: u32, limits: &Limits) -> Result<Node<'a>, ParseError> {
    parse_with(text, first_line, limits, Options::default())
}

/// Parses one document as [`parse`] does, with options.
pub fn parse_with<'a>(
    text: &'a str,
    first_line: u32,
    limits: &Limits,
    options: Options,
) -> Result<Node<'a>, ParseError> {
    let mut builder = builder(text, first_line, limits, options);
    read(text, first_line, &mut builder, false)?;
    Ok(builder.finish().0)
}

/// Parses one document of a stream, and counts what it uses, however it ends: what it copies must
/// be in proportion to what the documents up to this one have written.
pub fn parse_counted<'a>(
    text: &'a str,
    first_line: u32,
    limits: &Limits,
    options: Options,
    total: &mut Total,
) -> Result<Node<'a>, ParseError> {
    total.write(text.len());
    let mut builder = builder(text, first_line, limits, options).counted(total.clone());
    let read = read(text, first_line, &mut builder, false);
    if let Some(used) = builder.total() {
        *total = used;
    }
    read.map(|()| builder.finish().0)
}

/// Parses one document, if it has neither anchors nor aliases, and tells how many nodes it has.
/// Such a document is never larger than its text, so that many can be read at once.
pub fn parse_plain<'a>(
    text: &'a str,
    first_line: u32,
    limits: &Limits,
    options: Options,
) -> Result<Option<(Node<'a>, usize)>, ParseError> {
    let mut builder = builder(text, first_line, limits, options).plain();
    match read(text, first_line, &mut builder, false) {
        Err(_) if builder.has_copies() => Ok(None),
        Err(error) => Err(error),
        Ok(()) => {
            let nodes = builder.nodes();
            Ok(Some((builder.finish().0, nodes)))
        }
    }
}

/// Reads the first document of a text as the API server reads a body: of two equal keys the last
/// one counts and is told of, and whatever follows the document is not looked at.
pub fn parse_body<'a>(
    text: &'a str,
    limits: &Limits,
) -> Result<(Node<'a>, Vec<Repeated>), ParseError> {
    let options = Options { duplicate_keys: DuplicateKeys::LastWins };
    let mut builder = builder(text, 1, limits, options);
    read(text, 1, &mut builder, true)?;
    let (node, mut repeated) = builder.finish();
    repeated.sort_by_key(|repeated| repeated.position);
    Ok((node, repeated))
}

fn builder<'a>(text: &'a str, first_line: u32, limits: &Limits, options: Options) -> Builder<'a> {
    let depth_max = limits.depth_max.min(DEPTH_CEILING);
    Builder::new(text, first_line, Limits { depth_max, ..*limits }, options)
}

fn read<'a>(
    text: &'a str,
    first_line: u32,
    builder: &mut Builder<'a>,
    first_only: bool,
) -> Result<(), ParseError> {
    build(text, first_line, builder, first_only)
        .map_err(|error| strict::point_at_tab(error, text, first_line))
}

/// Feeds the events of a text to a builder.
fn build<'a>(
    text: &'a str,
    first_line: u32,
    builder: &mut Builder<'a>,
    first_only: bool,
) -> Result<(), ParseError> {
    strict::check_directives(text, first_line)?;
    let depth_max = builder.depth_max();
    let grammar = granit_parser::options! {
        flow_nesting_limit: depth_max,
        block_nesting_limit: depth_max,
        emit_anchor_events: true,
    };
    let mut parser = Parser::new_from_str_with_options(text, grammar);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| {
            ParseError::grammar(&error, builder.position(error.marker()), depth_max)
        })?;
        builder.event(event, &span)?;
        if first_only && builder.has_document() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
