//! The shortest history that still shows a difference.

use serde_json::Value;

use super::run::{Both, Outcome};
use super::schema::Made;
use super::step::Step;

/// The most histories tried.
const TRIES_MAX: usize = 600;

/// Leaves out steps, then parts of their bodies, as long as the servers differ.
pub(crate) async fn shrink(both: &Both, made: &Made, mut steps: Vec<Step>) -> Vec<Step> {
    let mut tries = 0;
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() && tries < TRIES_MAX {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            tries += 1;
            match differs(both, made, &fewer).await {
                Some(end) => steps = fewer[..end].to_vec(),
                None => at += size,
            }
        }
        size /= 2;
    }
    for at in (0..steps.len()).rev() {
        let mut paths = Vec::new();
        walk(&steps[at].body, "", &mut paths);
        for path in paths {
            let mut less = steps.clone();
            if tries >= TRIES_MAX || !cut(&mut less[at].body, &path) {
                continue;
            }
            tries += 1;
            if differs(both, made, &less).await.is_some() {
                steps = less;
            }
        }
    }
    steps
}

/// How many steps it takes until the servers differ, if they do.
async fn differs(both: &Both, made: &Made, steps: &[Step]) -> Option<usize> {
    match both.run(made, steps).await {
        Outcome::Different { at, .. } => Some(at + 1),
        Outcome::Alike { .. } => None,
    }
}

/// Every part of a value, big ones first, the last of a list before the first.
fn walk(value: &Value, path: &str, out: &mut Vec<String>) {
    if !path.is_empty() {
        out.push(path.to_owned());
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(value, &format!("{path}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate().rev() {
                walk(item, &format!("{path}/{at}"), out);
            }
        }
        _ => {}
    }
}

fn cut(value: &mut Value, path: &str) -> bool {
    let Some((parent, last)) = path.rsplit_once('/') else { return false };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.shift_remove(&last.replace("~1", "/").replace("~0", "~")).is_some()
        }
        Some(Value::Array(items)) => {
            let at = last.parse().ok().filter(|at| *at < items.len());
            at.map(|at: usize| items.remove(at)).is_some()
        }
        _ => false,
    }
}
