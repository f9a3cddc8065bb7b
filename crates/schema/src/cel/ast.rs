//! Expressions as trees, with macros kept as what they are.

use std::sync::OnceLock;

use super::library::Pattern;

/// An expression and where it is: for an operator its sign, for a call its parenthesis.
#[derive(Debug)]
pub(crate) struct Expr {
    /// The place, in characters.
    pub(crate) at: usize,
    /// How many expressions are below it, the longest way.
    pub(crate) height: usize,
    pub(crate) node: Node,
}

/// What an expression is.
#[derive(Debug)]
pub(crate) enum Node {
    Literal(Literal),
    Ident(String),
    Select {
        of: Box<Expr>,
        field: String,
        optional: bool,
    },
    Has {
        of: Box<Expr>,
        field: String,
    },
    Index {
        of: Box<Expr>,
        index: Box<Expr>,
        optional: bool,
    },
    Call {
        target: Option<Box<Expr>>,
        name: String,
        args: Vec<Expr>,
        /// A constant pattern, made when first used.
        pattern: OnceLock<Result<Pattern, String>>,
    },
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Elements; those marked are optionals that may be left out.
    List(Vec<(bool, Expr)>),
    /// Entries; those marked are optionals that may be left out.
    Map(Vec<(bool, Expr, Expr)>),
    /// A message; no type of message exists.
    Message(String),
    Fold(Fold),
    /// `optMap` and `optFlatMap`.
    OptMap {
        of: Box<Expr>,
        var: String,
        body: Box<Expr>,
        flat: bool,
    },
}

/// A macro over the elements of a list or the keys of a map.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) kind: FoldKind,
    pub(crate) range: Box<Expr>,
    pub(crate) var: String,
    /// With a second variable, the first is an index or key and this the value.
    pub(crate) second: Option<String>,
    /// Which elements count, where the macro has a filter besides its body.
    pub(crate) filter: Option<Box<Expr>>,
    pub(crate) body: Box<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    TransformMap,
    TransformEntry,
    SortBy,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

impl Expr {
    pub(crate) fn new(at: usize, node: Node) -> Self {
        let height = 1 + node.children().map(|child| child.height).max().unwrap_or(0);
        Self { at, height, node }
    }

    pub(crate) fn call(at: usize, name: &str, args: Vec<Self>) -> Self {
        let pattern = OnceLock::new();
        Self::new(at, Node::Call { target: None, name: name.to_owned(), args, pattern })
    }

    /// `a.b.c` for a chain of names.
    pub(crate) fn qualified(&self) -> Option<String> {
        match &self.node {
            Node::Ident(name) => Some(name.clone()),
            Node::Select { of, field, optional: false } => {
                Some(format!("{}.{field}", of.qualified()?))
            }
            _ => None,
        }
    }

    /// Whether a name is used anywhere, other than as the variable of a macro.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        match &self.node {
            Node::Ident(ident) => ident == name,
            Node::Fold(fold) if fold.var == name || fold.second.as_deref() == Some(name) => {
                fold.range.mentions(name)
            }
            Node::OptMap { of, var, .. } if var == name => of.mentions(name),
            other => other.children().any(|child| child.mentions(name)),
        }
    }
}

impl Node {
    /// The expressions directly below.
    pub(crate) fn children(&self) -> Box<dyn Iterator<Item = &Expr> + '_> {
        match self {
            Self::Literal(_) | Self::Message(_) | Self::Ident(_) => Box::new(std::iter::empty()),
            Self::Select { of, .. } | Self::Has { of, .. } => Box::new(std::iter::once(&**of)),
            Self::Index { of, index, .. } => Box::new([&**of, &**index].into_iter()),
            Self::Call { target, args, .. } => Box::new(target.as_deref().into_iter().chain(args)),
            Self::And(a, b) | Self::Or(a, b) => Box::new([&**a, &**b].into_iter()),
            Self::If(a, b, c) => Box::new([&**a, &**b, &**c].into_iter()),
            Self::List(items) => Box::new(items.iter().map(|(_, item)| item)),
            Self::Map(entries) => Box::new(entries.iter().flat_map(|(_, key, value)| [key, value])),
            Self::Fold(fold) => {
                let rest = [&*fold.range, &*fold.body].into_iter();
                Box::new(rest.chain(fold.filter.as_deref()))
            }
            Self::OptMap { of, body, .. } => Box::new([&**of, &**body].into_iter()),
        }
    }
}
