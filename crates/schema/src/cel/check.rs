//! Whether an expression makes sense, before any value is seen.
//!
//! Finds names that do not exist, fields an object does not have and calls no function takes,
//! in the words of upstream's checker.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Expr, Fold, FoldKind, Literal, Node};
use super::lex::Issue;
use super::signature;
use super::types::Type;

/// The type of an expression in which these names mean something, or what is wrong with it.
pub(crate) fn check(expr: &Expr, names: &[(&str, Type)]) -> Result<Type, Vec<Issue>> {
    let scope = names.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
    let mut checker = Checker { scope, issues: Vec::new() };
    let found = checker.expr(expr);
    checker.issues.sort_by_key(|issue| issue.at);
    if checker.issues.is_empty() { Ok(found) } else { Err(checker.issues) }
}

/// The types that can be named.
const TYPES: [(&str, &str); 14] = [
    ("bool", "bool"),
    ("bytes", "bytes"),
    ("double", "double"),
    ("duration", "duration"),
    ("dyn", "dyn"),
    ("google.protobuf.Duration", "duration"),
    ("google.protobuf.Timestamp", "timestamp"),
    ("int", "int"),
    ("list", "list(dyn)"),
    ("map", "map(dyn,dyn)"),
    ("null_type", "null_type"),
    ("string", "string"),
    ("type", "type(dyn)"),
    ("uint", "uint"),
];

/// The type a name stands for, if it does.
pub(crate) fn named(name: &str) -> Option<Type> {
    const LIBRARY: [&str; 7] = [
        "net.IP",
        "net.CIDR",
        "kubernetes.URL",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.NamedFormat",
        "optional_type",
    ];
    let plain = TYPES.iter().find(|(known, _)| *known == name).map(|(_, of)| Type::parse(of));
    plain.or_else(|| LIBRARY.iter().find(|known| **known == name).map(|name| Type::Named(name)))
}

struct Checker {
    scope: Vec<(String, Type)>,
    issues: Vec<Issue>,
}

impl Checker {
    fn issue(&mut self, at: usize, message: String) -> Type {
        self.issues.push(Issue { at, message });
        Type::Dyn
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, kind)| kind.clone())
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.issue(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn expr(&mut self, expr: &Expr) -> Type {
        match &expr.node {
            Node::Literal(literal) => literal_type(literal),
            Node::Ident(name) => match self.variable(name) {
                Some(kind) => kind,
                None => match named(name) {
                    Some(kind) => Type::Meta(Arc::new(kind)),
                    None => self.undeclared(expr.at, name),
                },
            },
            Node::Select { of, field, optional } => self.select(expr, of, field, *optional),
            Node::Has { of, field } => {
                let object = self.expr(of);
                self.field(expr.at, &object, field);
                Type::Bool
            }
            Node::Index { of, index, optional } => {
                let (object, index) = (self.expr(of), self.expr(index));
                self.index(expr.at, &object, &index, *optional)
            }
            Node::Call { target, name, args, .. } => {
                self.call(expr.at, target.as_deref(), name, args)
            }
            Node::And(a, b) => self.logical(expr.at, "_&&_", a, b),
            Node::Or(a, b) => self.logical(expr.at, "_||_", a, b),
            Node::If(condition, yes, no) => self.choice(expr.at, condition, yes, no),
            Node::List(items) => {
                let items: Vec<(usize, Type)> = items
                    .iter()
                    .map(|(optional, item)| (item.at, self.element(*optional, item)))
                    .collect();
                Type::list(self.one_type(items))
            }
            Node::Map(entries) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for (optional, key, value) in entries {
                    keys.push((key.at, self.expr(key)));
                    values.push((value.at, self.element(*optional, value)));
                }
                Type::map(self.one_type(keys), self.one_type(values))
            }
            Node::Message(name) => self.undeclared(expr.at, name),
            Node::Fold(fold) => self.fold(fold),
            Node::OptMap { of, var, body, flat } => {
                let inner = match self.expr(of) {
                    Type::Optional(inner) => (*inner).clone(),
                    Type::Dyn => Type::Dyn,
                    other => {
                        let name = if *flat { "optFlatMap" } else { "optMap" };
                        return self.issue(
                            expr.at,
                            format!("found no matching overload for '{name}' applied to '{other}'"),
                        );
                    }
                };
                self.scope.push((var.clone(), inner));
                let body = self.expr(body);
                self.scope.pop();
                if *flat { body } else { Type::optional(body) }
            }
        }
    }

    fn element(&mut self, optional: bool, expr: &Expr) -> Type {
        match (self.expr(expr), optional) {
            (Type::Optional(inner), true) => (*inner).clone(),
            (other, _) => other,
        }
    }

    /// Elements of a literal must be alike.
    fn one_type(&mut self, items: Vec<(usize, Type)>) -> Type {
        let mut items = items.into_iter();
        let Some((_, mut first)) = items.next() else { return Type::Dyn };
        for (at, kind) in items {
            if matches!(first, Type::Dyn) {
                first = kind;
            } else if !first.accepts(&kind, &mut BTreeMap::new()) {
                self.issue(at, format!("expected type '{first}' but found '{kind}'"));
            }
        }
        first
    }

    fn logical(&mut self, at: usize, name: &str, a: &Expr, b: &Expr) -> Type {
        let (left, right) = (self.expr(a), self.expr(b));
        if !is_bool(&left) || !is_bool(&right) {
            let message =
                format!("found no matching overload for '{name}' applied to '({left}, {right})'");
            self.issue(at, message);
        }
        Type::Bool
    }

    fn choice(&mut self, at: usize, condition: &Expr, yes: &Expr, no: &Expr) -> Type {
        let (condition, yes, no) = (self.expr(condition), self.expr(yes), self.expr(no));
        let alike = yes.accepts(&no, &mut BTreeMap::new());
        if !is_bool(&condition) || !alike {
            return self.issue(
                at,
                format!(
                    "found no matching overload for '_?_:_' applied to '({condition}, {yes}, {no})'"
                ),
            );
        }
        if matches!(yes, Type::Dyn | Type::Null) { no } else { yes }
    }

    fn select(&mut self, expr: &Expr, of: &Expr, field: &str, optional: bool) -> Type {
        if let Some(name) = expr.qualified()
            && let Some(first) = name.split('.').next()
            && self.variable(first).is_none()
        {
            if let Some(kind) = named(&name) {
                return Type::Meta(Arc::new(kind));
            }
            return self.expr(of);
        }
        let object = self.expr(of);
        let was_optional = matches!(object, Type::Optional(_));
        let object = unwrapped(object);
        let found = self.field(expr.at, &object, field);
        if (optional || was_optional) && !matches!(found, Type::Optional(_)) {
            return Type::optional(found);
        }
        found
    }

    fn field(&mut self, at: usize, object: &Type, field: &str) -> Type {
        match object {
            Type::Dyn => Type::Dyn,
            Type::Optional(inner) => self.field(at, &inner.clone(), field),
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(kind) => kind.clone(),
                None => self.issue(at, format!("undefined field '{field}'")),
            },
            other => self.issue(at, format!("type '{other}' does not support field selection")),
        }
    }

    fn index(&mut self, at: usize, object: &Type, index: &Type, optional: bool) -> Type {
        let was_optional = matches!(object, Type::Optional(_));
        let inner = unwrapped(object.clone());
        let found = match &inner {
            Type::Dyn => Type::Dyn,
            Type::List(of) if matches!(index, Type::Int | Type::Dyn) => (**of).clone(),
            Type::Map(key, value) if key.accepts(index, &mut BTreeMap::new()) => (**value).clone(),
            _ => {
                let name = if optional { "_[?_]" } else { "_[_]" };
                return self.issue(
                    at,
                    format!(
                        "found no matching overload for '{name}' applied to '({object}, {index})'"
                    ),
                );
            }
        };
        if optional || was_optional { Type::optional(found) } else { found }
    }

    fn call(&mut self, at: usize, target: Option<&Expr>, name: &str, args: &[Expr]) -> Type {
        if let Some(target) = target
            && let Some(prefix) = target.qualified()
            && let Some(first) = prefix.split('.').next()
            && self.variable(first).is_none()
        {
            let full = format!("{prefix}.{name}");
            if signature::overloads(&full).is_some() {
                return self.call(at, None, &full, args);
            }
        }
        let Some(overloads) = signature::overloads(name) else {
            // The words of upstream: the parts are looked at as well.
            if let Some(target) = target {
                self.expr(target);
            }
            for arg in args {
                self.expr(arg);
            }
            return self.undeclared(at, name);
        };
        let mut given = Vec::new();
        if let Some(target) = target {
            given.push(self.expr(target));
        }
        for arg in args {
            given.push(self.expr(arg));
        }
        let mut results: Vec<Type> = Vec::new();
        for overload in overloads {
            if overload.member != target.is_some() || overload.takes.len() != given.len() {
                continue;
            }
            let mut bound = BTreeMap::new();
            let fits =
                overload.takes.iter().zip(&given).all(|(to, from)| to.accepts(from, &mut bound));
            if fits {
                results.push(overload.gives.filled(&bound));
            }
        }
        let Some(first) = results.first() else {
            let list: Vec<String> = given.iter().map(ToString::to_string).collect();
            let signature = match (target.is_some(), list.split_first()) {
                (true, Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
                _ => format!("({})", list.join(", ")),
            };
            return self.issue(
                at,
                format!("found no matching overload for '{name}' applied to '{signature}'"),
            );
        };
        // Where several fit, because something is dynamic, so is the result.
        let text = first.to_string();
        if results.iter().all(|one| one.to_string() == text) { first.clone() } else { Type::Dyn }
    }

    fn fold(&mut self, fold: &Fold) -> Type {
        let range = self.expr(&fold.range);
        let (first, second, element) = match &range {
            Type::List(of) => (Type::Int, (**of).clone(), (**of).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone(), (**key).clone()),
            Type::Dyn => (Type::Dyn, Type::Dyn, Type::Dyn),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(fold.range.at, message);
                (Type::Dyn, Type::Dyn, Type::Dyn)
            }
        };
        let depth = self.scope.len();
        match &fold.second {
            Some(name) => {
                self.scope.push((fold.var.clone(), first.clone()));
                self.scope.push((name.clone(), second));
            }
            None => self.scope.push((fold.var.clone(), element.clone())),
        }
        if let Some(filter) = &fold.filter {
            self.condition(filter);
        }
        let body = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne | FoldKind::Filter => {
                self.condition(&fold.body);
                Type::Bool
            }
            _ => self.expr(&fold.body),
        };
        self.scope.truncate(depth);
        match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => Type::Bool,
            FoldKind::Filter => Type::list(element),
            FoldKind::Map => Type::list(body),
            FoldKind::TransformMap => Type::map(first, body),
            FoldKind::TransformEntry => body,
            FoldKind::SortBy => range,
        }
    }

    fn condition(&mut self, expr: &Expr) {
        let found = self.expr(expr);
        if !is_bool(&found) {
            let message = format!("expected type 'bool' but found '{found}'");
            self.issue(expr.at, message);
        }
    }
}

fn is_bool(kind: &Type) -> bool {
    matches!(kind, Type::Bool | Type::Dyn)
}

fn unwrapped(kind: Type) -> Type {
    match kind {
        Type::Optional(inner) => (*inner).clone(),
        other => other,
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
