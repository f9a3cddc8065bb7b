//! The tree under construction: events in, nodes out, no recursion.

use std::borrow::Cow;

use granit_parser::{Event, Marker, ScalarStyle, Span, Tag, YamlVersion};

use super::budget::{Budget, Weight};
use super::{Limits, Options, ParseError, strict};
use crate::error::ParseErrorKind;
use crate::merge::{self, Repeated};
use crate::scalar::{self, Scalar, ScalarError, Style};
use crate::tabs::Tabs;
use crate::total::Total;
use crate::tree::{Entry, Node, Position, Value};

/// A collection whose end has not been seen.
struct Frame<'a> {
    shape: Shape<'a>,
    position: Position,
    /// Where its children begin on the pile of its shape.
    start: usize,
    anchor: usize,
    /// The weight of everything read before it.
    before: Weight,
    /// Collections below it, counted downwards.
    height: usize,
}

/// The two kinds of collection.
enum Shape<'a> {
    Sequence,
    Mapping {
        /// The key whose value comes next.
        key: Option<(Cow<'a, str>, Position)>,
        /// Which entries are merge keys.
        merges: Vec<usize>,
    },
}

/// What an anchor names.
enum Anchor<'a> {
    /// Its node is still being read.
    Open,
    Scalar(Scalar<'a>),
    Collection {
        node: Node<'a>,
        weight: Weight,
        height: usize,
    },
}

/// The tree under construction.
pub(super) struct Builder<'a> {
    source: &'a str,
    other_breaks: bool,
    tabs: Tabs<'a>,
    budget: Budget,
    depth_max: usize,
    options: Options,
    first_line: u32,
    root: Option<Node<'a>>,
    frames: Vec<Frame<'a>>,
    items: Vec<Node<'a>>,
    entries: Vec<Entry<'a>>,
    /// By granit's number, which counts from 1.
    anchors: Vec<Anchor<'a>>,
    documents: usize,
    /// Whether the first document has ended.
    ended: bool,
    /// Keys that were set twice, where that is allowed.
    repeated: Vec<Repeated>,
    copies: Copies,
}

/// What is done about anchors and aliases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// They are followed.
    Made,
    /// The first ends the reading.
    Unwanted,
    /// The first ended it.
    Met,
}

impl<'a> Builder<'a> {
    pub(super) fn new(source: &'a str, first_line: u32, limits: Limits, options: Options) -> Self {
        Self {
            source,
            other_breaks: strict::has_other_breaks(source),
            tabs: Tabs::new(source, first_line),
            budget: Budget::new(limits),
            depth_max: limits.depth_max,
            options,
            first_line,
            root: None,
            frames: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            anchors: Vec::new(),
            documents: 0,
            ended: false,
            repeated: Vec::new(),
            copies: Copies::Made,
        }
    }

    /// Counts with what other documents have used.
    pub(super) fn counted(mut self, total: Total) -> Self {
        self.budget.count_with(total);
        self
    }

    /// Stops at the first anchor or alias.
    pub(super) fn plain(mut self) -> Self {
        self.copies = Copies::Unwanted;
        self
    }

    /// Whether an anchor or alias ended the reading.
    pub(super) fn has_copies(&self) -> bool {
        self.copies == Copies::Met
    }

    /// What documents have used with this one, where they are counted.
    pub(super) fn total(&self) -> Option<Total> {
        self.budget.total()
    }

    /// How many nodes were made.
    pub(super) fn nodes(&self) -> usize {
        self.budget.nodes()
    }

    pub(super) fn depth_max(&self) -> usize {
        self.depth_max
    }

    /// Whether a whole document has been read.
    pub(super) fn has_document(&self) -> bool {
        self.ended
    }

    /// The tree, and the keys that were set twice; a document without content is null.
    pub(super) fn finish(self) -> (Node<'a>, Vec<Repeated>) {
        let position = Position { line: self.first_line, column: 1 };
        (self.root.unwrap_or(Node { value: Value::Null, position }), self.repeated)
    }

    /// Takes in one event.
    pub(super) fn event(&mut self, event: Event<'a>, span: &Span) -> Result<(), ParseError> {
        let position = self.position(&span.start);
        if self.copies == Copies::Unwanted && matches!(event, Event::Anchor(..) | Event::Alias(_)) {
            self.copies = Copies::Met;
            return Err(ParseError::new(ParseErrorKind::Alias, position, "an anchor or alias"));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.tabs.scalar(style, span)?;
                strict::check_scalar(self.source, &text, style, span, position)?;
                if self.other_breaks {
                    strict::check_breaks(&text, style, position)?;
                }
                self.budget.spend(Weight::one(text.len()), position)?;
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    _ => Style::Quoted,
                };
                self.scalar(text, style, tag.as_deref(), anchor, position)
            }
            Event::MappingStart(_, anchor, _) => {
                let shape = Shape::Mapping { key: None, merges: Vec::new() };
                self.open(shape, self.entries.len(), anchor, position)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Shape::Sequence, self.items.len(), anchor, position)
            }
            Event::MappingEnd | Event::SequenceEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, position),
            Event::Anchor(_, name) => strict::check_anchor(&name, position),
            Event::DocumentStart(_, version) => self.document(version, position),
            Event::DocumentEnd => {
                self.ended = true;
                Ok(())
            }
            Event::StreamEnd => self.tabs.end(),
            // The rest marks ends.
            _ => Ok(()),
        }
    }

    fn document(
        &mut self,
        version: Option<YamlVersion>,
        position: Position,
    ) -> Result<(), ParseError> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(trailing(position));
        }
        strict::check_version(version, position)
    }

    fn scalar(
        &mut self,
        text: Cow<'a, str>,
        style: Style,
        tag: Option<&Tag>,
        anchor: usize,
        position: Position,
    ) -> Result<(), ParseError> {
        if text == "<<" && self.expects_key() && is_merge(style, tag) {
            self.merge_key(position);
            return Ok(());
        }
        let full = tag.map(full_tag);
        let scalar = scalar::resolve(text, style, full.as_deref())
            .map_err(|error| bad_scalar(&error, ParseErrorKind::Value, position))?;
        if anchor != 0 {
            self.budget.keep(scalar_weight(&scalar), position)?;
            *self.anchor_slot(anchor) = Anchor::Scalar(scalar.clone());
        }
        self.put_scalar(scalar, position)
    }

    /// Places a resolved scalar as the next key or value.
    fn put_scalar(&mut self, scalar: Scalar<'a>, position: Position) -> Result<(), ParseError> {
        if let Some(Frame { shape: Shape::Mapping { key: key @ None, .. }, .. }) =
            self.frames.last_mut()
        {
            let text = scalar
                .into_key()
                .map_err(|error| bad_scalar(&error, ParseErrorKind::Key, position))?;
            *key = Some((text, position));
            return Ok(());
        }
        let value = scalar
            .into_value()
            .map_err(|error| bad_scalar(&error, ParseErrorKind::Value, position))?;
        self.put(Node { value, position }, 0);
        Ok(())
    }

    /// Notes that the entry to come is a merge.
    fn merge_key(&mut self, position: Position) {
        let at = self.entries.len();
        if let Some(Frame { shape: Shape::Mapping { key, merges }, start, .. }) =
            self.frames.last_mut()
        {
            merges.push(at - *start);
            *key = Some((Cow::Borrowed("<<"), position));
        }
    }

    fn open(
        &mut self,
        shape: Shape<'a>,
        start: usize,
        anchor: usize,
        position: Position,
    ) -> Result<(), ParseError> {
        if self.expects_key() {
            return Err(collection_key(position));
        }
        self.budget.check_depth(self.frames.len() + 1, position)?;
        let before = self.budget.spent;
        self.budget.spend(Weight::one(0), position)?;
        if anchor != 0 {
            *self.anchor_slot(anchor) = Anchor::Open;
        }
        self.frames.push(Frame { shape, position, start, anchor, before, height: 1 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ParseError> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let value = match frame.shape {
            Shape::Sequence => Value::Sequence(self.items.drain(frame.start..).collect()),
            Shape::Mapping { merges, .. } => {
                let joins =
                    !merges.is_empty() || merge::has_duplicates(&self.entries[frame.start..]);
                let entries: Vec<_> = self.entries.drain(frame.start..).collect();
                Value::Mapping(if joins {
                    merge::join(entries, &merges, self.options.duplicate_keys, &mut self.repeated)?
                } else {
                    entries
                })
            }
        };
        let node = Node { value, position: frame.position };
        if frame.anchor != 0 {
            let weight = self.budget.since(frame.before);
            self.budget.keep(weight, frame.position)?;
            let (node, height) = (node.clone(), frame.height);
            *self.anchor_slot(frame.anchor) = Anchor::Collection { node, weight, height };
        }
        self.put(node, frame.height);
        Ok(())
    }

    /// Places a node of that height as the next value.
    fn put(&mut self, node: Node<'a>, height: usize) {
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.height = frame.height.max(height + 1);
        match &mut frame.shape {
            Shape::Sequence => self.items.push(node),
            Shape::Mapping { key, .. } => {
                if let Some((key, position)) = key.take() {
                    self.entries.push(Entry { key, position, value: node });
                }
            }
        }
    }

    /// Puts a copy of what the anchor names where the alias stands.
    fn alias(&mut self, anchor: usize, position: Position) -> Result<(), ParseError> {
        self.budget.alias(position)?;
        // Out of its slot while in use; an error ends the parse, so only success puts it back.
        let target = std::mem::replace(self.anchor_slot(anchor), Anchor::Open);
        match &target {
            Anchor::Open => {
                let message = "the alias refers to a value that contains the alias itself";
                return Err(ParseError::new(ParseErrorKind::Alias, position, message));
            }
            Anchor::Scalar(scalar) => {
                if self.merges_next() {
                    return Err(merge::no_mapping(position));
                }
                self.budget.repeat(scalar_weight(scalar), position)?;
                self.put_scalar(scalar.clone(), position)?;
            }
            Anchor::Collection { node, weight, height } => {
                self.check_copy(node, *height, position)?;
                self.budget.repeat(*weight, position)?;
                self.put(Node { value: node.value.clone(), position }, *height);
            }
        }
        *self.anchor_slot(anchor) = target;
        Ok(())
    }

    /// Whether a copy of a collection may stand at this place at all.
    fn check_copy(
        &self,
        node: &Node<'a>,
        height: usize,
        position: Position,
    ) -> Result<(), ParseError> {
        if self.expects_key() {
            return Err(collection_key(position));
        }
        if self.merges_next() && !matches!(node.value, Value::Mapping(_)) {
            return Err(merge::no_mapping(position));
        }
        self.budget.check_depth(self.frames.len() + height, position)
    }

    /// Whether the next node is a key.
    fn expects_key(&self) -> bool {
        let frame = self.frames.last();
        frame.is_some_and(|frame| matches!(frame.shape, Shape::Mapping { key: None, .. }))
    }

    /// Whether the next node is the value of a merge key.
    fn merges_next(&self) -> bool {
        self.frames.last().is_some_and(|frame| match &frame.shape {
            Shape::Mapping { key: Some(_), merges } => {
                merges.last() == Some(&(self.entries.len() - frame.start))
            }
            _ => false,
        })
    }

    /// The slot of an anchor, made if need be.
    fn anchor_slot(&mut self, anchor: usize) -> &mut Anchor<'a> {
        if self.anchors.len() <= anchor {
            self.anchors.resize_with(anchor + 1, || Anchor::Open);
        }
        &mut self.anchors[anchor]
    }

    /// A place in the document as a place in its stream.
    pub(super) fn position(&self, marker: &Marker) -> Position {
        let line = u32::try_from(marker.line()).unwrap_or(u32::MAX);
        let column = u32::try_from(marker.col()).unwrap_or(u32::MAX);
        Position {
            line: self.first_line.saturating_add(line.saturating_sub(1)),
            column: column.saturating_add(1),
        }
    }
}

/// Whether a scalar `<<` is meant as a merge key rather than as text.
fn is_merge(style: Style, tag: Option<&Tag>) -> bool {
    match tag.map(full_tag).as_deref() {
        None => style == Style::Plain,
        Some(tag) => tag == "!" || tag == "tag:yaml.org,2002:merge",
    }
}

/// The tag in full, its handle resolved.
fn full_tag(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

/// What a copy of a scalar weighs.
fn scalar_weight(scalar: &Scalar<'_>) -> Weight {
    let bytes = match scalar {
        Scalar::String(text) => text.len(),
        _ => 0,
    };
    Weight::one(bytes)
}

fn bad_scalar(error: &ScalarError, kind: ParseErrorKind, position: Position) -> ParseError {
    let parse_error = ParseError::new(kind, position, error.to_string());
    match error {
        ScalarError::Tag { .. } => parse_error.hint("change the value or remove the tag"),
        ScalarError::Binary => parse_error.hint("write the base64 text without the tag"),
        ScalarError::NotFinite(_) => parse_error.hint("quote it if it is meant as text"),
        ScalarError::Key(_) => parse_error.hint("quote the key if it is meant as text"),
    }
}

fn collection_key(position: Position) -> ParseError {
    let message = "a mapping or sequence cannot be a mapping key";
    ParseError::new(ParseErrorKind::Key, position, message)
        .hint("quote the key if braces or brackets are part of its text")
}

fn trailing(position: Position) -> ParseError {
    let message = "content follows the end of the document and would be ignored";
    ParseError::new(ParseErrorKind::TrailingContent, position, message)
        .hint("start a new document with a line that holds only `---`")
}
