//! Which objects a request asks for: label and field selectors.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::name;

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Missing,
    Greater,
    Less,
}

/// All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

impl Labels {
    /// Parses `a=b,c in (d,e),!f`; the error is what Kubernetes says about it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = parser.all()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(requirements))
    }

    /// A selector as objects write it: `matchLabels` and `matchExpressions`; none when it
    /// makes no sense.
    pub fn of_selector(selector: &Value) -> Option<Self> {
        let mut requirements = Vec::new();
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            let values = BTreeSet::from([value.as_str()?.to_owned()]);
            requirements.push(Requirement { key: key.clone(), operator: Operator::In, values });
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let operator = match expression.get("operator").and_then(Value::as_str)? {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::Missing,
                _ => return None,
            };
            let key = expression.get("key").and_then(Value::as_str)?.to_owned();
            let values = expression.get("values").and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str);
            let values = values.map(str::to_owned).collect();
            requirements.push(Requirement { key, operator, values });
        }
        Some(Self(requirements))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these labels fit.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.0.iter().all(|requirement| {
            let value =
                labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
            requirement.matches(value)
        })
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = || self.values.iter().next().and_then(|text| number(text));
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::Missing => value.is_none(),
            Operator::Greater => value.and_then(number).is_some_and(|n| bound() < Some(n)),
            Operator::Less => {
                value.and_then(number).is_some_and(|n| bound().is_some_and(|bound| n < bound))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest[sign.len()..].trim_start();
            continue;
        }
        let end =
            rest.find(|c: char| c.is_whitespace() || "=!(),><".contains(c)).unwrap_or(rest.len());
        tokens.push(Token::Word(rest[..end].to_owned()));
        rest = rest[end..].trim_start();
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = self.at.saturating_add(1);
        token
    }

    fn all(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        if *self.peek() == Token::End {
            return Ok(requirements);
        }
        loop {
            match self.peek() {
                Token::Word(_) | Token::Sign("!") => {
                    let one = self
                        .requirement()
                        .map_err(|error| format!("unable to parse requirement: {error}"))?;
                    requirements.push(one);
                    match self.next() {
                        Token::End => return Ok(requirements),
                        Token::Sign(",") => match self.peek() {
                            Token::Word(_) | Token::Sign("!") => {}
                            other => {
                                return Err(format!(
                                    "found '{}', expected: identifier after ','",
                                    other.text()
                                ));
                            }
                        },
                        other => {
                            return Err(format!(
                                "found '{}', expected: ',' or 'end of string'",
                                other.text()
                            ));
                        }
                    }
                }
                Token::End => return Ok(requirements),
                other @ Token::Sign(_) => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let missing = *self.peek() == Token::Sign("!");
        if missing {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if let Some(fault) = name::check_qualified(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {fault}"));
        }
        if missing || matches!(self.peek(), Token::End | Token::Sign(",")) {
            let operator = if missing { Operator::Missing } else { Operator::Exists };
            return Ok(Requirement { key, operator, values: BTreeSet::new() });
        }
        let (operator, values) = self.condition()?;
        let number = |value: &String| value.parse::<i64>().is_ok();
        let ordered = matches!(operator, Operator::Greater | Operator::Less);
        if let Some(value) = values.iter().find(|value| ordered && !number(value)) {
            return Err(format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be \
                 an integer"
            ));
        }
        for value in &values {
            if let Some(fault) = name::check_label_value(value).first() {
                return Err(format!("values[0][{key}]: Invalid value: {value:?}: {fault}"));
            }
        }
        Ok(Requirement { key, operator, values })
    }

    fn condition(&mut self) -> Result<(Operator, BTreeSet<String>), String> {
        let token = self.next();
        let operator = match &token {
            Token::Sign("=" | "==") => Operator::In,
            Token::Sign("!=") => Operator::NotIn,
            Token::Sign(">") => Operator::Greater,
            Token::Sign("<") => Operator::Less,
            Token::Word(word) if word == "in" => return Ok((Operator::In, self.set()?)),
            Token::Word(word) if word == "notin" => return Ok((Operator::NotIn, self.set()?)),
            other => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    other.text()
                ));
            }
        };
        let value = match self.peek() {
            Token::End | Token::Sign(",") => String::new(),
            Token::Word(_) => self.next().text().to_owned(),
            other @ Token::Sign(_) => {
                return Err(format!("found '{}', expected: identifier", other.text()));
            }
        };
        Ok((operator, BTreeSet::from([value])))
    }

    fn set(&mut self) -> Result<BTreeSet<String>, String> {
        match self.next() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Sign(")") => return Ok(values),
                Token::Sign(",") => {
                    if matches!(self.peek(), Token::Sign("," | ")")) {
                        values.insert(String::new());
                    }
                }
                Token::Word(word) => {
                    values.insert(word);
                }
                other @ (Token::Sign(_) | Token::End) => {
                    return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                }
            }
        }
    }
}

/// Conditions on fields: pairs of a path and a value, with `=` or `!=`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, bool, String)>);

impl Fields {
    /// Parses `metadata.name=x,status.phase!=Running`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut conditions = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once("==") {
                (path, true, value)
            } else if let Some((path, value)) = part.split_once('=') {
                (path, true, value)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            if !path.is_empty() {
                conditions.push((path.to_owned(), equal, value.to_owned()));
            }
        }
        Ok(Self(conditions))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths used.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _, _)| path.as_str())
    }

    /// The name that is asked for exactly, if one is.
    pub fn exact_name(&self) -> Option<&str> {
        let exact = |(path, equal, _): &&(String, bool, String)| path == "metadata.name" && *equal;
        self.0.iter().find(exact).map(|(_, _, value)| value.as_str())
    }

    /// Whether the object fits; `read` finds a path's value in it.
    pub fn matches(&self, read: impl Fn(&str) -> String) -> bool {
        self.0.iter().all(|(path, equal, value)| (read(path) == *value) == *equal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_choose() {
        let labels = json!({"app": "probe", "n": "p2", "size": "7"});
        let check = |text: &str, expect: bool| {
            let selector = Labels::parse(text).unwrap();
            assert_eq!(selector.matches(labels.as_object()), expect, "{text}");
        };
        check("", true);
        check("app=probe,n==p2", true);
        check("app!=x", true);
        check("zz!=x", true);
        check("n in (p1, p2),!zz", true);
        check("n notin (p2)", false);
        check("zz notin (p2)", true);
        check("app", true);
        check("!app", false);
        check("size>6,size<8", true);
        check("size>7", false);
        check("app=", false);
    }

    #[test]
    fn bad_label_selectors_are_refused_in_kubernetes_words() {
        let check = |text: &str, expect: &str| {
            assert_eq!(Labels::parse(text).unwrap_err(), expect, "{text}");
        };
        check("a===b", "unable to parse requirement: found '=', expected: identifier");
        check("=b", "found '=', expected: !, identifier, or 'end of string'");
    }
}
