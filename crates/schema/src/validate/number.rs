//! Numbers, with Go's conversions
//!
//! A bound is a float in the schema and is converted to the type of the value it is compared
//! with; whether it survives that is checked first, and said.

use serde_json::{Value, json};

use super::{Fault, Outcome, Step};
use crate::format::Format;
use crate::node::{Checks, Flags, Kind, Node};
use crate::text::{self, Num};

const EPSILON: f64 = 1e-9;
const JSON_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// What a number must fit.
#[derive(Clone, Copy)]
struct Range<'a> {
    kind: Option<Kind>,
    format: &'a str,
}

pub(super) fn check(node: &Node, value: Num, path: &Step<'_>) -> Outcome {
    let checks = node.checks.as_deref();
    let range = range_of(node, checks);
    let mut outcome = Outcome::default();
    fit(value, range, "Checked", path, &mut outcome);
    if let Some(checks) = checks {
        check_multiple(checks, value, range, path, &mut outcome);
        for bound in [Bound::minimum(checks), Bound::maximum(checks)].into_iter().flatten() {
            bound.check(value, range, path, &mut outcome);
        }
    }
    outcome.matches += 1;
    outcome
}

fn range_of<'a>(node: &Node, checks: Option<&'a Checks>) -> Range<'a> {
    let kind = node.kind.filter(|kind| {
        !node.has(Flags::INT_OR_STRING) && matches!(kind, Kind::Integer | Kind::Number)
    });
    let format = checks.and_then(|c| c.format.as_ref()).map_or("", Format::name);
    let fits = match kind {
        Some(Kind::Integer) => matches!(format, "int32" | "int64"),
        Some(Kind::Number) => matches!(format, "float" | "double"),
        _ => false,
    };
    Range { kind, format: if fits { format } else { "" } }
}

/// Whether a number fits a range; says so if not.
fn fit(value: Num, range: Range<'_>, what: &str, path: &Step<'_>, outcome: &mut Outcome) -> bool {
    let digits = match value {
        Num::Int(int) => int.to_string(),
        Num::Float(float) => format!("{float}"),
    };
    let fits = match (range.kind, range.format) {
        (Some(Kind::Integer), "int32") => digits.parse::<i32>().is_ok(),
        (Some(Kind::Integer), _) => digits.parse::<i64>().is_ok(),
        (_, "float") => digits.parse::<f32>().is_ok_and(f32::is_finite),
        _ => true,
    };
    if !fits {
        let kind = range.kind.map_or("", Kind::name);
        let format = match range.format {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        outcome
            .add(Fault::general(format!("{what} value must be of type {kind} {format} in {path}")));
    }
    fits
}

fn check_multiple(
    checks: &Checks,
    value: Num,
    range: Range<'_>,
    path: &Step<'_>,
    outcome: &mut Outcome,
) {
    let Some(factor) = checks.multiple_of.map(|factor| factor.0) else { return };
    let fits = fit(Num::Float(factor), range, "MultipleOf", path, outcome);
    let fault = match value {
        Num::Int(value) if fits => multiple_of_int(value, truncate(factor), path),
        value => multiple_of_float(value.as_f64(), factor, path),
    };
    if let Some(fault) = fault {
        outcome.add(fault);
    }
}

fn multiple_of_int(value: i64, factor: i64, path: &Step<'_>) -> Option<Fault> {
    if factor <= 0 {
        return Some(not_positive(json!(factor), &factor.to_string(), path));
    }
    let message = || format!("{path} in body should be a multiple of {factor}");
    (value % factor != 0).then(|| Fault::invalid(path, json!(value), message()))
}

fn multiple_of_float(value: f64, factor: f64, path: &Step<'_>) -> Option<Fault> {
    if factor <= 0.0 {
        return Some(not_positive(json!(factor), &text::float(factor), path));
    }
    let quotient = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
    let message = || format!("{path} in body should be a multiple of {}", text::float(factor));
    (!is_integer(quotient)).then(|| Fault::invalid(path, json!(value), message()))
}

fn not_positive(factor: Value, shown: &str, path: &Step<'_>) -> Fault {
    let message = format!("factor MultipleOf declared for {path} must be positive: {shown}");
    Fault::invalid(path, factor, message)
}

/// A minimum or maximum.
struct Bound {
    limit: f64,
    upper: bool,
    exclusive: bool,
}

impl Bound {
    fn minimum(checks: &Checks) -> Option<Self> {
        let limit = checks.minimum?.0;
        Some(Self { limit, upper: false, exclusive: checks.exclusive_minimum })
    }

    fn maximum(checks: &Checks) -> Option<Self> {
        let limit = checks.maximum?.0;
        Some(Self { limit, upper: true, exclusive: checks.exclusive_maximum })
    }

    fn check(&self, value: Num, range: Range<'_>, path: &Step<'_>, outcome: &mut Outcome) {
        let what = if self.upper { "Maximum boundary" } else { "Minimum boundary" };
        let fits = fit(Num::Float(self.limit), range, what, path, outcome);
        let (outside, limit, value) = match value {
            Num::Int(value) if fits => {
                let limit = truncate(self.limit);
                (self.outside(&value, &limit), limit.to_string(), json!(value))
            }
            value => {
                let value = value.as_f64();
                (self.outside(&value, &self.limit), text::float(self.limit), json!(value))
            }
        };
        if outside {
            let relation = match (self.upper, self.exclusive) {
                (true, false) => "less than or equal to",
                (true, true) => "less than",
                (false, false) => "greater than or equal to",
                (false, true) => "greater than",
            };
            let message = format!("{path} in body should be {relation} {limit}");
            outcome.add(Fault::invalid(path, value, message));
        }
    }

    fn outside<T: PartialOrd>(&self, value: &T, limit: &T) -> bool {
        let beyond = if self.upper { value > limit } else { value < limit };
        beyond || (self.exclusive && value == limit)
    }
}

/// `int64(float)` as the server's processor does it: toward zero, and the smallest integer for
/// what does not fit.
#[expect(clippy::cast_possible_truncation, reason = "that is the point")]
fn truncate(value: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if value >= -limit && value < limit { value as i64 } else { i64::MIN }
}

/// Whether a float is an integer within the range JSON is exact in, give or take rounding.
pub(super) fn is_integer(value: f64) -> bool {
    if !value.is_finite() || value.abs() > JSON_INTEGER_MAX {
        return false;
    }
    if value.fract() == 0.0 {
        return true;
    }
    // What the library computes: the distance to the value truncated as an unsigned number.
    let whole = if value < 0.0 { wrapped(value) } else { value.trunc() };
    let distance = (value - whole).abs();
    if whole == 0.0 {
        return false;
    }
    distance / (value.abs() + whole.abs()).min(f64::MAX) < EPSILON
}

/// `float64(uint64(value))` of a negative float: wraps around.
#[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "as the library does")]
fn wrapped(value: f64) -> f64 {
    truncate(value) as u64 as f64
}

/// Equality after converting a value to the type of the listed one.
pub(super) fn equals_converted(value: &Value, listed: &Value) -> bool {
    match (value, listed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(listed)) => match (Num::of(value), Num::of(listed)) {
            (Num::Int(a), Num::Int(b)) => a == b,
            (Num::Float(a), Num::Int(b)) => truncate(a) == b,
            (a, Num::Float(b)) => a.as_f64().total_cmp(&b).is_eq(),
        },
        (Value::Number(value), Value::String(listed)) => match Num::of(value) {
            Num::Int(code) => {
                let c = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
                listed.chars().eq([c])
            }
            Num::Float(_) => false,
        },
        (value, listed) => value == listed,
    }
}
