//! `explain-condition`: what a condition, a reason or an event of a package means, and what to do.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use manual::conditions::{Explanation, explain_name, similar_names};
use serde_json::{Map, Value as Json, json};

/// What to explain, and how to print it.
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) format: Format,
}

/// Prints what the manual says of it.
pub(crate) fn run(request: &Request) -> Outcome {
    let found = explain_name(&request.name);
    if found.is_empty() {
        return Err(unknown_name(&request.name));
    }
    if request.format == Format::Json {
        return output::print_json(&found.iter().map(to_json).collect::<Vec<_>>());
    }
    for one in &found {
        output::print(format_args!("{} {}", one.what, output::bold(&one.name)));
        for (column, text) in &one.told {
            output::print(format_args!("  {column:<11} {text}"));
        }
    }
    Ok(())
}

fn unknown_name(name: &str) -> Failure {
    let hint = match similar_names(name).as_slice() {
        [] => "`apron help conditions` lists all".to_owned(),
        similar => format!("perhaps {} is meant", similar.join(" or ")),
    };
    Failure::new(format!("no condition, reason or event of packages is called {name}"), hint)
}

/// Columns are fields: `what to do` is `whatToDo`.
fn to_json(one: &Explanation) -> Json {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(one.name));
    fields.insert("what".to_owned(), json!(one.what));
    for (column, text) in &one.told {
        let mut words = column.split(' ');
        let mut name = words.next().unwrap_or_default().to_owned();
        for word in words {
            name.push_str(&word[..1].to_uppercase());
            name.push_str(&word[1..]);
        }
        fields.insert(name, json!(text));
    }
    Json::Object(fields)
}
