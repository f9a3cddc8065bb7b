//! From tokens to trees, by recursive descent.

use std::sync::OnceLock;

use super::ast::{Expr, Fold, FoldKind, Literal, Node};
use super::lex::{self, Issue, Spot, Token};

/// How deep brackets may nest.
const DEPTH_MAX: usize = 100;
/// How high a tree may grow; trees are walked by recursion.
const HEIGHT_MAX: usize = 250;
/// How long an expression may be, in characters; upstream's limit.
const LENGTH_MAX: usize = 100_000;

/// Words that cannot be names.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// What upstream's parser would rather have seen where an operand should be.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// What makes one expression of two.
type Join = fn(Box<Expr>, Box<Expr>) -> Node;

/// Something between two operands.
struct Operator {
    sign: &'static str,
    name: &'static str,
    binds: u8,
    logical: Option<Join>,
}

impl Operator {
    /// Whether it is applied before one that follows.
    fn goes_before(&self, next: &Self) -> bool {
        if self.logical.is_some() { self.binds > next.binds } else { self.binds >= next.binds }
    }
}

const fn operator(sign: &'static str, name: &'static str, binds: u8) -> Operator {
    Operator { sign, name, binds, logical: None }
}

const OPERATORS: [Operator; 14] = [
    Operator { sign: "||", name: "_||_", binds: 1, logical: Some(Node::Or) },
    Operator { sign: "&&", name: "_&&_", binds: 2, logical: Some(Node::And) },
    operator("<=", "_<=_", 3),
    operator("<", "_<_", 3),
    operator(">=", "_>=_", 3),
    operator(">", "_>_", 3),
    operator("==", "_==_", 3),
    operator("!=", "_!=_", 3),
    operator("in", "@in", 3),
    operator("+", "_+_", 4),
    operator("-", "_-_", 4),
    operator("*", "_*_", 5),
    operator("/", "_/_", 5),
    operator("%", "_%_", 5),
];

type Parsed<T = Expr> = Result<T, Issue>;

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Parsed {
    if text.chars().count() > LENGTH_MAX {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {LENGTH_MAX}",
            text.chars().count()
        );
        return Err(Issue { at: 0, message });
    }
    let mut parser = Parser { tokens: lex::tokens(text)?, next: 0, depth: 0 };
    let expr = parser.expr()?;
    let rest = parser.peek();
    if rest.token != Token::End {
        let last = parser.tokens.get(parser.next + 1).is_none_or(|next| next.token == Token::End);
        let what = if last { "extraneous" } else { "mismatched" };
        let message = format!("Syntax error: {what} input '{}' expecting <EOF>", rest.text);
        return Err(Issue { at: rest.at, message });
    }
    Ok(expr)
}

struct Parser {
    tokens: Vec<Spot>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Spot {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Spot {
        let spot = self.peek().clone();
        self.next += 1;
        spot
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek().token, Token::Sign(found) if found == sign)
    }

    /// Takes a sign if it comes next; says where it was.
    fn eat(&mut self, sign: &str) -> Option<usize> {
        self.is(sign).then(|| self.take().at)
    }

    fn expect(&mut self, sign: &str) -> Parsed<usize> {
        self.eat(sign).ok_or_else(|| {
            let found = self.peek();
            let message =
                format!("Syntax error: mismatched input '{}' expecting '{sign}'", found.text);
            Issue { at: found.at, message }
        })
    }

    fn expr(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let at = self.peek().at;
            let message = format!("max recursion depth exceeded: {DEPTH_MAX}");
            return Err(Issue { at, message });
        }
        let condition = self.operators()?;
        let expr = match self.eat("?") {
            None => condition,
            Some(at) => {
                let yes = self.operators()?;
                self.expect(":")?;
                let no = self.expr()?;
                self.low(Expr::new(at, Node::If(Box::new(condition), Box::new(yes), Box::new(no))))?
            }
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Operands and operators, by precedence; without recursion, for the stack's sake.
    fn operators(&mut self) -> Parsed {
        let mut operands = vec![self.unary()?];
        let mut waiting: Vec<(usize, &Operator)> = Vec::new();
        while let Some(operator) = OPERATORS.iter().find(|operator| self.is(operator.sign)) {
            let at = self.expect(operator.sign)?;
            while waiting.last().is_some_and(|(_, before)| before.goes_before(operator)) {
                self.reduce(&mut operands, &mut waiting)?;
            }
            waiting.push((at, operator));
            operands.push(self.unary()?);
        }
        while !waiting.is_empty() {
            self.reduce(&mut operands, &mut waiting)?;
        }
        operands.pop().ok_or_else(|| Issue { at: 0, message: String::new() })
    }

    /// Applies the last operator; of logical ones, all alike in a row, as a balanced tree.
    fn reduce(
        &self,
        operands: &mut Vec<Expr>,
        waiting: &mut Vec<(usize, &Operator)>,
    ) -> Parsed<()> {
        let Some((at, operator)) = waiting.pop() else { return Ok(()) };
        let Some(join) = operator.logical else {
            if let (Some(right), Some(left)) = (operands.pop(), operands.pop()) {
                operands.push(self.low(Expr::call(at, operator.name, vec![left, right]))?);
            }
            return Ok(());
        };
        let mut places = vec![at];
        while let Some((at, _)) = waiting.pop_if(|(_, before)| before.sign == operator.sign) {
            places.push(at);
        }
        places.reverse();
        let rest = operands.split_off(operands.len().saturating_sub(places.len() + 1));
        let places = std::iter::once(0).chain(places);
        let mut terms: Vec<(usize, Expr)> = places.zip(rest).collect();
        while terms.len() > 1 {
            let mut joined = Vec::with_capacity(terms.len().div_ceil(2));
            let mut rest = terms.into_iter();
            while let Some((before, left)) = rest.next() {
                joined.push(match rest.next() {
                    Some((at, right)) => {
                        let both = Expr::new(at, join(Box::new(left), Box::new(right)));
                        (before, self.low(both)?)
                    }
                    None => (before, left),
                });
            }
            terms = joined;
        }
        operands.extend(terms.into_iter().map(|(_, term)| term));
        Ok(())
    }

    /// Refuses a tree that has grown too high.
    fn low(&self, expr: Expr) -> Parsed {
        if expr.height <= HEIGHT_MAX {
            return Ok(expr);
        }
        let message = format!("max recursion depth exceeded: {HEIGHT_MAX}");
        Err(Issue { at: self.peek().at, message })
    }

    fn unary(&mut self) -> Parsed {
        for (sign, name) in [("!", "!_"), ("-", "-_")] {
            let Some(first) = self.eat(sign) else { continue };
            let mut count = 1;
            while self.eat(sign).is_some() {
                count += 1;
            }
            if sign == "-"
                && count == 1
                && let Token::Literal(literal) = &self.peek().token
                && let Some(negative) = negated(literal)
            {
                self.next += 1;
                return self.suffixes(Expr::new(first, Node::Literal(negative)));
            }
            // An even number of signs is none.
            let operand = self.member()?;
            let odd = count % 2 == 1;
            return Ok(if odd { Expr::call(first, name, vec![operand]) } else { operand });
        }
        self.member()
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.suffixes(primary)
    }

    fn suffixes(&mut self, mut expr: Expr) -> Parsed {
        loop {
            if let Some(at) = self.eat(".") {
                let optional = self.eat("?").is_some();
                let name = self.name()?;
                expr = if !optional && self.is("(") {
                    let open = self.expect("(")?;
                    let args = self.list(")")?;
                    macros(open, expr, name, args)?
                } else {
                    Expr::new(at, Node::Select { of: Box::new(expr), field: name, optional })
                };
            } else if let Some(at) = self.eat("[") {
                let optional = self.eat("?").is_some();
                let index = Box::new(self.expr()?);
                self.expect("]")?;
                expr = Expr::new(at, Node::Index { of: Box::new(expr), index, optional });
            } else {
                return Ok(expr);
            }
            expr = self.low(expr)?;
        }
    }

    fn name(&mut self) -> Parsed<String> {
        let spot = self.take();
        if let Token::Ident(name) = spot.token {
            return Ok(name);
        }
        let message = format!("Syntax error: no viable alternative at input '.{}'", spot.text);
        Err(Issue { at: spot.at, message })
    }

    fn primary(&mut self) -> Parsed {
        let spot = self.take();
        match spot.token {
            Token::Literal(literal) => Ok(Expr::new(spot.at, Node::Literal(literal))),
            Token::Sign("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                let items = self.items()?;
                Ok(Expr::new(spot.at, Node::List(items)))
            }
            Token::Sign("{") => {
                let entries = self.entries()?;
                Ok(Expr::new(spot.at, Node::Map(entries)))
            }
            Token::Sign(".") => {
                let name = self.name()?;
                self.named(spot.at, name)
            }
            Token::Ident(name) => {
                if RESERVED.contains(&name.as_str()) {
                    let message = format!("reserved identifier: {name}");
                    return Err(Issue { at: spot.at, message });
                }
                self.named(spot.at, name)
            }
            _ => {
                let message =
                    format!("Syntax error: mismatched input '{}' expecting {OPERAND}", spot.text);
                Err(Issue { at: spot.at, message })
            }
        }
    }

    fn named(&mut self, at: usize, name: String) -> Parsed {
        if let Some(open) = self.eat("(") {
            let args = self.list(")")?;
            if name == "has" && args.len() == 1 {
                return has(open, args);
            }
            return Ok(Expr::call(open, &name, args));
        }
        if self.is("{") {
            let open = self.expect("{")?;
            self.entries()?;
            return Ok(Expr::new(open, Node::Message(name)));
        }
        Ok(Expr::new(at, Node::Ident(name)))
    }

    fn list(&mut self, close: &str) -> Parsed<Vec<Expr>> {
        let mut items = Vec::new();
        while self.eat(close).is_none() {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.expr()?);
        }
        Ok(items)
    }

    fn items(&mut self) -> Parsed<Vec<(bool, Expr)>> {
        let mut items = Vec::new();
        while self.eat("]").is_none() {
            if !items.is_empty() {
                self.expect(",")?;
                if self.eat("]").is_some() {
                    break;
                }
            }
            let optional = self.eat("?").is_some();
            items.push((optional, self.expr()?));
        }
        Ok(items)
    }

    fn entries(&mut self) -> Parsed<Vec<(bool, Expr, Expr)>> {
        let mut entries = Vec::new();
        while self.eat("}").is_none() {
            if !entries.is_empty() {
                self.expect(",")?;
                if self.eat("}").is_some() {
                    break;
                }
            }
            let optional = self.eat("?").is_some();
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((optional, key, self.expr()?));
        }
        Ok(entries)
    }
}

fn negated(literal: &Literal) -> Option<Literal> {
    match literal {
        Literal::Int(value) => Some(Literal::Int(value.wrapping_neg())),
        Literal::Double(value) => Some(Literal::Double(-value)),
        _ => None,
    }
}

fn has(at: usize, args: Vec<Expr>) -> Parsed {
    let mut args = args.into_iter();
    match args.next() {
        Some(Expr { node: Node::Select { of, field, optional: false }, .. }) => {
            Ok(Expr::new(at, Node::Has { of, field }))
        }
        other => {
            let at = other.map_or(at, |other| other.at);
            Err(Issue { at, message: "invalid argument to has() macro".to_owned() })
        }
    }
}

/// A call of a member, which may be a macro.
fn macros(at: usize, target: Expr, name: String, args: Vec<Expr>) -> Parsed {
    let kind = match (name.as_str(), args.len()) {
        ("all", 2 | 3) => FoldKind::All,
        ("exists", 2 | 3) => FoldKind::Exists,
        ("exists_one", 2) | ("existsOne", 2 | 3) => FoldKind::ExistsOne,
        ("filter", 2) => FoldKind::Filter,
        ("map", 2 | 3) | ("transformList", 3 | 4) => FoldKind::Map,
        ("transformMap", 3 | 4) => FoldKind::TransformMap,
        ("transformMapEntry", 3 | 4) => FoldKind::TransformEntry,
        ("sortBy", 2) => FoldKind::SortBy,
        ("optMap" | "optFlatMap", 2) => return opt_map(at, target, &name, args),
        _ => {
            let pattern = OnceLock::new();
            let target = Some(Box::new(target));
            return Ok(Expr::new(at, Node::Call { target, name, args, pattern }));
        }
    };
    let two = match (name.as_str(), args.len()) {
        ("map" | "filter" | "exists_one" | "sortBy", _) => false,
        ("all" | "exists" | "existsOne", count) => count == 3,
        _ => true,
    };
    let mut args = args.into_iter();
    let var = variable(args.next(), at)?;
    let second = if two { Some(variable(args.next(), at)?) } else { None };
    let mut rest: Vec<Expr> = args.collect();
    let missing = || Issue { at, message: "argument missing".to_owned() };
    let body = Box::new(rest.pop().ok_or_else(missing)?);
    let filter = rest.pop().map(Box::new);
    let range = Box::new(target);
    Ok(Expr::new(at, Node::Fold(Fold { kind, range, var, second, filter, body })))
}

fn opt_map(at: usize, target: Expr, name: &str, args: Vec<Expr>) -> Parsed {
    let mut args = args.into_iter();
    let var = variable(args.next(), at)?;
    let Some(body) = args.next() else {
        return Err(Issue { at, message: "argument missing".to_owned() });
    };
    let (of, body) = (Box::new(target), Box::new(body));
    Ok(Expr::new(at, Node::OptMap { of, var, body, flat: name == "optFlatMap" }))
}

fn variable(arg: Option<Expr>, at: usize) -> Parsed<String> {
    match arg {
        Some(Expr { node: Node::Ident(name), .. }) => Ok(name),
        Some(other) => {
            Err(Issue { at: other.at, message: "argument must be a simple name".to_owned() })
        }
        None => Err(Issue { at, message: "argument must be a simple name".to_owned() }),
    }
}
