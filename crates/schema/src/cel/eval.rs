//! From trees and values to a value, counting what it costs.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Expr, Fold, FoldKind, Literal, Node};
use super::library;
use super::meter::Meter;
use super::value::{Result, Text, Trouble, Val};
use super::{Binding, check, signature};

/// What making a list costs, besides its elements.
const LIST_COST: u64 = 10;
/// What making a map costs, besides its entries.
const MAP_COST: u64 = 30;

/// One evaluation.
pub(crate) struct Eval<'a> {
    scope: Vec<Binding<'a>>,
    meter: Meter,
}

impl<'a> Eval<'a> {
    pub(crate) fn new(names: &[Binding<'a>], limit: u64) -> Self {
        Self { scope: names.to_vec(), meter: Meter::new(limit) }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.meter.cost()
    }

    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.meter.steps()
    }

    fn charge(&self, cost: u64) -> Result<()> {
        self.meter.charge(cost)
    }

    pub(crate) fn run(&mut self, expr: &'a Expr) -> Result<Val<'a>> {
        self.meter.work(1)?;
        match &expr.node {
            Node::Literal(literal) => Ok(constant(literal)),
            Node::Ident(name) => self.ident(name),
            Node::Select { of, field, optional } => self.select(expr, of, field, *optional),
            Node::Has { of, field } => self.has(of, field),
            Node::Index { of, index, optional } => self.index(of, index, *optional),
            Node::Call { target, name, args, .. } => self.call(expr, target.as_deref(), name, args),
            Node::And(a, b) => self.logical(a, b, false),
            Node::Or(a, b) => self.logical(a, b, true),
            Node::If(condition, yes, no) => match self.run(condition)? {
                Val::Bool(true) => self.run(yes),
                Val::Bool(false) => self.run(no),
                _ => Err(Trouble::overload()),
            },
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Message(name) => Err(Trouble::new(format!("unknown type: {name}"))),
            Node::Fold(fold) => self.fold(fold),
            Node::OptMap { of, var, body, flat } => self.opt_map(of, var, body, *flat),
        }
    }

    fn variable(&self, name: &str) -> Option<Result<Val<'a>>> {
        self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, val)| val.clone())
    }

    fn ident(&mut self, name: &str) -> Result<Val<'a>> {
        self.charge(1)?;
        if let Some(value) = self.variable(name) {
            return value;
        }
        if check::named(name).is_some() {
            return Ok(Val::Type(canonical(name).into()));
        }
        Err(Trouble::new(format!("no such attribute(s): {name}")))
    }

    /// The name of a type written as a chain of names.
    fn type_name(&self, expr: &Expr) -> Option<Val<'a>> {
        let name = expr.qualified()?;
        let first = name.split('.').next()?;
        let free = self.scope.iter().all(|(known, _)| *known != first);
        (free && check::named(&name).is_some()).then(|| Val::Type(canonical(&name).into()))
    }

    fn select(
        &mut self,
        expr: &'a Expr,
        of: &'a Expr,
        field: &'a str,
        optional: bool,
    ) -> Result<Val<'a>> {
        if let Some(kind) = self.type_name(expr) {
            self.charge(1)?;
            return Ok(kind);
        }
        let object = self.run(of)?;
        self.charge(1)?;
        let key = Val::String(Text::Borrowed(field));
        get(object, &key, optional, &self.meter)
    }

    fn has(&mut self, of: &'a Expr, field: &'a str) -> Result<Val<'a>> {
        let object = match self.run(of)? {
            Val::Optional(None) => return Ok(Val::Bool(false)),
            Val::Optional(Some(inner)) => inner.as_ref().clone(),
            other => other,
        };
        let key = Val::String(Text::Borrowed(field));
        Ok(Val::Bool(object.find(&key, &self.meter)?.is_some()))
    }

    fn index(&mut self, of: &'a Expr, index: &'a Expr, optional: bool) -> Result<Val<'a>> {
        let object = self.run(of)?;
        let key = self.run(index)?;
        self.charge(1)?;
        get(object, &key, optional, &self.meter)
    }

    /// `&&` and `||`: an error counts only if the other side does not decide.
    fn logical(&mut self, a: &'a Expr, b: &'a Expr, decisive: bool) -> Result<Val<'a>> {
        let left = self.run(a);
        match &left {
            Ok(Val::Bool(value)) if *value == decisive => return Ok(Val::Bool(decisive)),
            Err(Trouble::Cost) => return Err(Trouble::Cost),
            _ => {}
        }
        let right = self.run(b);
        match (left, right) {
            (_, Ok(Val::Bool(value))) if value == decisive => Ok(Val::Bool(decisive)),
            (Ok(Val::Bool(_)), Ok(Val::Bool(_))) => Ok(Val::Bool(!decisive)),
            (_, Err(Trouble::Cost)) => Err(Trouble::Cost),
            (Err(trouble), _) | (Ok(Val::Bool(_)), Err(trouble)) => Err(trouble),
            _ => Err(Trouble::overload()),
        }
    }

    fn list(&mut self, items: &'a [(bool, Expr)]) -> Result<Val<'a>> {
        let mut out = Vec::with_capacity(items.len());
        for (optional, item) in items {
            match (self.run(item)?, optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(inner)), true) => out.push(inner.as_ref().clone()),
                (value, _) => out.push(value),
            }
        }
        self.charge(LIST_COST)?;
        Ok(Val::list(out))
    }

    fn map(&mut self, entries: &'a [(bool, Expr, Expr)]) -> Result<Val<'a>> {
        let mut out = BTreeMap::new();
        for (optional, key, value) in entries {
            let key = self.run(key)?;
            let value = match (self.run(value)?, optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(inner)), true) => inner.as_ref().clone(),
                (value, _) => value,
            };
            insert(&mut out, key, value)?;
        }
        self.charge(MAP_COST)?;
        Ok(Val::Map(Rc::new(out)))
    }

    fn call(
        &mut self,
        expr: &'a Expr,
        target: Option<&'a Expr>,
        name: &'a str,
        args: &'a [Expr],
    ) -> Result<Val<'a>> {
        let mut given = Vec::with_capacity(args.len() + 1);
        let mut full = None;
        if let Some(target) = target {
            full = self.namespaced(target, name);
            if full.is_none() {
                given.push(self.run(target)?);
            }
        }
        if matches!(name, "or" | "orValue") && target.is_some() && full.is_none() {
            return self.or_else(name, given, args);
        }
        for arg in args {
            given.push(self.run(arg)?);
        }
        let pattern = match &expr.node {
            Node::Call { pattern, args, .. } => {
                let constant =
                    args.iter().any(|arg| matches!(arg.node, Node::Literal(Literal::String(_))));
                constant.then_some(pattern)
            }
            _ => None,
        };
        library::call(&self.meter, full.as_deref().unwrap_or(name), &given, pattern)
    }

    /// `sets.contains` and the like: a function with dots in its name.
    fn namespaced(&self, target: &Expr, name: &str) -> Option<String> {
        let prefix = target.qualified()?;
        let first = prefix.split('.').next()?;
        if self.scope.iter().any(|(known, _)| *known == first) {
            return None;
        }
        let full = format!("{prefix}.{name}");
        signature::overloads(&full).map(|_| full)
    }

    /// The alternative to an optional is evaluated only if it is needed.
    fn or_else(&mut self, name: &str, given: Vec<Val<'a>>, args: &'a [Expr]) -> Result<Val<'a>> {
        let Some(other) = args.first() else { return Err(Trouble::overload()) };
        match given.into_iter().next() {
            Some(Val::Optional(Some(inner))) if name == "orValue" => Ok(inner.as_ref().clone()),
            Some(Val::Optional(Some(inner))) => Ok(Val::Optional(Some(inner))),
            Some(Val::Optional(None)) => self.run(other),
            _ => Err(Trouble::overload()),
        }
    }

    fn opt_map(
        &mut self,
        of: &'a Expr,
        var: &'a str,
        body: &'a Expr,
        flat: bool,
    ) -> Result<Val<'a>> {
        match self.run(of)? {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => {
                self.scope.push((var, Ok(inner.as_ref().clone())));
                let value = self.run(body);
                self.scope.pop();
                Ok(if flat { value? } else { Val::some(value?) })
            }
            _ => Err(Trouble::overload()),
        }
    }

    /// What a macro goes through.
    fn range(&mut self, fold: &'a Fold) -> Result<Range<'a>> {
        let range = self.run(&fold.range)?;
        match range {
            Val::Items(..) | Val::List(_) => Ok(Range::List(range)),
            Val::Object(..) | Val::Map(_) => {
                let entries = range.entries(&self.meter)?;
                Ok(Range::Map { entries, two: fold.second.is_some() })
            }
            _ => Err(Trouble::overload()),
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>> {
        let range = self.range(fold)?;
        self.charge(1)?;
        match fold.kind {
            FoldKind::All | FoldKind::Exists => self.search(fold, &range),
            FoldKind::ExistsOne => {
                let mut count = 0;
                for at in 0..range.len() {
                    self.charge(2)?;
                    let step = range.step(at, &self.meter)?;
                    if self.step(fold, &fold.body, step)?.is_true()? {
                        count += 1;
                    }
                }
                Ok(Val::Bool(count == 1))
            }
            FoldKind::Filter => {
                let mut out = Vec::new();
                for at in 0..range.len() {
                    self.charge(1)?;
                    let (first, item) = range.step(at, &self.meter)?;
                    if self.step(fold, &fold.body, (first, item.clone()))?.is_true()? {
                        self.charge(LIST_COST + 2)?;
                        out.push(item);
                    }
                }
                Ok(Val::list(out))
            }
            FoldKind::Map => {
                let mut out = Vec::new();
                for at in 0..range.len() {
                    self.charge(LIST_COST + 2)?;
                    let step = range.step(at, &self.meter)?;
                    if self.counts(fold, &step)? {
                        out.push(self.step(fold, &fold.body, step)?);
                    }
                }
                Ok(Val::list(out))
            }
            FoldKind::TransformMap | FoldKind::TransformEntry => self.transform(fold, &range),
            FoldKind::SortBy => self.sort_by(fold, &range),
        }
    }

    /// `all` and `exists`: an error counts only if no other element decides.
    fn search(&mut self, fold: &'a Fold, range: &Range<'a>) -> Result<Val<'a>> {
        let decisive = fold.kind == FoldKind::Exists;
        let mut trouble = None;
        for at in 0..range.len() {
            self.charge(3)?;
            let step = range.step(at, &self.meter);
            match step.and_then(|step| self.step(fold, &fold.body, step)) {
                Ok(Val::Bool(value)) if value == decisive => return Ok(Val::Bool(decisive)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => trouble = trouble.or(Some(Trouble::overload())),
                Err(Trouble::Cost) => return Err(Trouble::Cost),
                Err(other) => trouble = trouble.or(Some(other)),
            }
        }
        trouble.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    fn transform(&mut self, fold: &'a Fold, range: &Range<'a>) -> Result<Val<'a>> {
        let mut out = BTreeMap::new();
        for at in 0..range.len() {
            self.charge(MAP_COST + 2)?;
            let step = range.step(at, &self.meter)?;
            if !self.counts(fold, &step)? {
                continue;
            }
            let key = step.0.clone();
            let value = self.step(fold, &fold.body, step)?;
            if fold.kind == FoldKind::TransformMap {
                insert(&mut out, key, value)?;
                continue;
            }
            for (key, value) in value.entries(&self.meter)? {
                insert(&mut out, key, value)?;
            }
        }
        Ok(Val::Map(Rc::new(out)))
    }

    fn sort_by(&mut self, fold: &'a Fold, range: &Range<'a>) -> Result<Val<'a>> {
        let mut keyed = Vec::with_capacity(range.len());
        for at in 0..range.len() {
            self.charge(LIST_COST + 2)?;
            let (first, item) = range.step(at, &self.meter)?;
            let key = self.step(fold, &fold.body, (first, item.clone()))?;
            keyed.push((key, item));
        }
        library::lists::sorted(keyed, &self.meter).map(Val::list)
    }

    fn counts(&mut self, fold: &'a Fold, step: &(Val<'a>, Val<'a>)) -> Result<bool> {
        match &fold.filter {
            None => Ok(true),
            Some(filter) => self.step(fold, filter, step.clone())?.is_true(),
        }
    }

    /// Evaluates a part of a macro with its variables.
    fn step(
        &mut self,
        fold: &'a Fold,
        body: &'a Expr,
        step: (Val<'a>, Val<'a>),
    ) -> Result<Val<'a>> {
        let depth = self.scope.len();
        match &fold.second {
            Some(second) => {
                self.scope.push((&fold.var, Ok(step.0)));
                self.scope.push((second, Ok(step.1)));
            }
            None => self.scope.push((&fold.var, Ok(step.1))),
        }
        let value = self.run(body);
        self.scope.truncate(depth);
        value
    }
}

/// What a macro goes through. Elements of lists stay where they are until their turn: most
/// searches end early.
enum Range<'a> {
    List(Val<'a>),
    Map { entries: Vec<(Val<'a>, Val<'a>)>, two: bool },
}

impl<'a> Range<'a> {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.size(),
            Self::Map { entries, .. } => entries.len(),
        }
    }

    /// The variables of one step: one or two of them.
    fn step(&self, at: usize, meter: &Meter) -> Result<(Val<'a>, Val<'a>)> {
        let found = match self {
            Self::List(list) => list.item(at, meter)?.map(|item| (Val::int(at), item)),
            Self::Map { entries, two: true } => entries.get(at).cloned(),
            Self::Map { entries, two: false } => {
                entries.get(at).map(|(key, _)| (key.clone(), key.clone()))
            }
        };
        found.ok_or_else(Trouble::overload)
    }
}

/// A field, entry or element; of an optional, an optional.
fn get<'a>(object: Val<'a>, key: &Val<'a>, optional: bool, meter: &Meter) -> Result<Val<'a>> {
    let (object, optional) = match object {
        Val::Optional(None) => return Ok(Val::Optional(None)),
        Val::Optional(Some(inner)) => (inner.as_ref().clone(), true),
        other => (other, optional),
    };
    let found = match &object {
        Val::Object(..) | Val::Map(_) => object.find(key, meter)?,
        Val::Items(..) | Val::List(_) => {
            let Val::Int(at) = number_index(key)? else { return Err(Trouble::overload()) };
            match usize::try_from(at) {
                Ok(at) => object.item(at, meter)?,
                Err(_) => None,
            }
        }
        _ => return Err(Trouble::overload()),
    };
    match found {
        Some(Val::Optional(inner)) if optional => Ok(Val::Optional(inner)),
        Some(value) if optional => Ok(Val::some(value)),
        Some(value) => Ok(value),
        None if optional => Ok(Val::Optional(None)),
        None if matches!(object, Val::Items(..) | Val::List(_)) => {
            Err(Trouble::new(format!("index out of bounds: {}", library::shown(key))))
        }
        None => Err(Trouble::new(format!("no such key: {}", library::shown(key)))),
    }
}

impl Val<'_> {
    fn is_true(&self) -> Result<bool> {
        match self {
            Self::Bool(value) => Ok(*value),
            _ => Err(Trouble::overload()),
        }
    }
}

fn insert<'a>(
    map: &mut BTreeMap<super::value::Key, (Val<'a>, Val<'a>)>,
    key: Val<'a>,
    value: Val<'a>,
) -> Result<()> {
    let Some(plain) = key.key() else {
        return Err(Trouble::new(format!("unsupported key type: {}", key.type_name())));
    };
    if map.contains_key(&plain) {
        let text = library::shown(&key);
        return Err(Trouble::new(format!("insert failed: key {text} already exists")));
    }
    map.insert(plain, (key, value));
    Ok(())
}

/// An index may be written as any whole number.
fn number_index<'a>(key: &Val<'a>) -> Result<Val<'a>> {
    match key.key() {
        Some(super::value::Key::Number(at)) => {
            i64::try_from(at).map(Val::Int).map_err(|_| Trouble::overload())
        }
        _ => Err(Trouble::new(format!("unsupported index: {}", library::shown(key)))),
    }
}

fn canonical(name: &str) -> &str {
    match name {
        "duration" => "google.protobuf.Duration",
        other => other,
    }
}

fn constant(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Val::Bytes(bytes.clone().into()),
    }
}
