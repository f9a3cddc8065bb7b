//! `registry user`: who may sign in to a registry, and what they may do. A running registry
//! takes changes up within a second.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use ::registry::auth::rules::{ANONYMOUS, EVERYBODY, is_pattern};
use ::registry::auth::users::{Bound, Key, check_name};
use ::registry::auth::{Actions, Rule, Users, UsersError};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

/// The shortest password that is taken.
const PASSWORD_LENGTH_MIN: usize = 8;

/// What to do with the users.
pub(crate) struct Request {
    pub(crate) directory: PathBuf,
    /// Whether somebody said which directory.
    pub(crate) is_named: bool,
    pub(crate) change: Change,
    pub(crate) format: Format,
}

/// A change, or none.
pub(crate) enum Change {
    Add {
        name: String,
    },
    Key {
        name: String,
        label: String,
        /// In days.
        expires: Option<u64>,
        repositories: Option<String>,
        actions: Option<String>,
    },
    Remove {
        name: String,
        key: Option<String>,
    },
    Allow {
        who: String,
        repositories: String,
        actions: String,
    },
    Forbid {
        who: String,
        repositories: String,
    },
    List,
}

/// Does it.
pub(crate) fn run(request: &Request) -> Outcome {
    let directory = &request.directory;
    check_directory(request)?;
    match &request.change {
        Change::Add { name } => add(directory, name),
        Change::Key { name, label, expires, repositories, actions } => {
            let bound = bound(repositories.as_deref(), actions.as_deref())?;
            key(request, name, label, *expires, bound)
        }
        Change::Remove { name, key } => remove(directory, name, key.as_deref()),
        Change::Allow { who, repositories, actions } => {
            allow(directory, who, repositories, actions)
        }
        Change::Forbid { who, repositories } => forbid(directory, who, repositories),
        Change::List => list(request),
    }
}

/// Users of a registry that nobody serves would be let in nowhere: unless somebody says which
/// directory is meant, there is one.
fn check_directory(request: &Request) -> Outcome {
    if request.is_named || request.directory.join("oci-layout").exists() {
        return Ok(());
    }
    Err(Failure::new(
        format!("there is no registry in {}", request.directory.display()),
        "name the directory that `apron registry serve` says it serves: --data-dir DIR",
    ))
}

fn add(directory: &Path, name: &str) -> Outcome {
    check_name(name).map_err(|error| failed(&error))?;
    let password = read_password(name)?;
    let known = Users::change(directory, |users| {
        let known = users.users.contains_key(name);
        users.set_password(name, &password)?;
        Ok(known)
    });
    let known = known.map_err(|error| failed(&error))?;
    let done = if known { "changed the password of" } else { "added" };
    let of = if known { "in" } else { "to" };
    output::print(format_args!("{done} {name} {of} {}", directory.display()));
    Ok(())
}

/// What a key is good for.
fn bound(repositories: Option<&str>, actions: Option<&str>) -> Outcome<Bound> {
    if let Some(pattern) = repositories.filter(|it| !is_pattern(it)) {
        return Err(no_pattern(pattern));
    }
    let parse = |text: &str| Actions::parse(text).ok_or_else(|| no_actions(text));
    let actions = actions.map(parse).transpose()?;
    Ok(Bound { repositories: repositories.map(str::to_owned), actions })
}

fn no_pattern(text: &str) -> Failure {
    Failure::new(
        format!("`{text}` is not a pattern for repositories"),
        "write it like a name: `team/*` for those directly below, `team/**` for all",
    )
}

fn no_actions(text: &str) -> Failure {
    Failure::new(
        format!("`{text}` holds something that cannot be allowed"),
        "the words are pull, push, delete and admin, with commas between them",
    )
}

fn key(request: &Request, name: &str, label: &str, days: Option<u64>, bound: Bound) -> Outcome {
    let end = |days: u64| now().saturating_add(days.saturating_mul(86_400));
    let expires = days.map(end);
    let change = |users: &mut Users| users.add_bound_key(name, label, expires, bound);
    let key = Users::change(&request.directory, change);
    let key = key.map_err(|error| failed(&error))?;
    if request.format == Format::Json {
        return output::print_json(&json!({ "user": name, "label": label, "key": key }));
    }
    output::say(format_args!("the key `{label}` of {name}, told this once:"));
    output::print(key);
    Ok(())
}

fn remove(directory: &Path, name: &str, key: Option<&str>) -> Outcome {
    let removed = Users::change(directory, |users| {
        let Some(key) = key else { return Ok(users.users.remove(name).is_some()) };
        Ok(users.users.get_mut(name).is_some_and(|user| user.keys.remove(key).is_some()))
    });
    if removed.map_err(|error| failed(&error))? {
        let what = key.map(|key| format!("the key `{key}` of ")).unwrap_or_default();
        output::print(format_args!("removed {what}{name}"));
        // Without its rule, a repository of theirs would be everybody's.
        let users = Users::read(directory).map_err(|error| failed(&error))?;
        if key.is_none() && users.rules.iter().any(|rule| rule.who == name) {
            output::say(format_args!("rules of {name} stay: what they cover is closed to others"));
        }
        return Ok(());
    }
    let hint = "`apron registry user list` tells who and what there is";
    Err(match key {
        Some(key) => Failure::new(format!("{name} has no key `{key}`"), hint),
        None => Failure::new(format!("there is no user {name}"), hint),
    })
}

fn allow(directory: &Path, who: &str, repositories: &str, actions: &str) -> Outcome {
    if who != ANONYMOUS && who != EVERYBODY {
        check_name(who).map_err(|error| failed(&error))?;
    }
    if !is_pattern(repositories) {
        return Err(no_pattern(repositories));
    }
    let actions = Actions::parse(actions).ok_or_else(|| no_actions(actions))?;
    let rule = Rule { who: who.to_owned(), repositories: repositories.to_owned(), actions };
    let changed = Users::change(directory, |users| {
        users.rules.retain(|it| !(it.who == rule.who && it.repositories == rule.repositories));
        users.rules.push(rule);
        Ok(users.users.contains_key(who) || who == ANONYMOUS || who == EVERYBODY)
    });
    let is_known = changed.map_err(|error| failed(&error))?;
    output::print(format_args!("{who} may {actions} in {repositories}"));
    if !is_known {
        output::warn(format_args!("no user here is called {who}: `apron registry user add {who}`"));
    }
    Ok(())
}

fn forbid(directory: &Path, who: &str, repositories: &str) -> Outcome {
    let removed = Users::change(directory, |users| {
        let before = users.rules.len();
        users.rules.retain(|it| !(it.who == who && it.repositories == repositories));
        let governed = users.rules.iter().any(|it| it.repositories == repositories);
        Ok((users.rules.len() < before).then_some(governed))
    });
    if let Some(governed) = removed.map_err(|error| failed(&error))? {
        output::print(format_args!("removed the rule of {who} for {repositories}"));
        if !governed {
            output::say(format_args!(
                "it was the last one for {repositories}: other rules or the defaults hold there now"
            ));
        }
        return Ok(());
    }
    Err(Failure::new(
        format!("there is no rule of {who} for {repositories}"),
        "`apron registry user list` shows the rules",
    ))
}

fn list(request: &Request) -> Outcome {
    let users = Users::read(&request.directory).map_err(|error| failed(&error))?;
    if request.format == Format::Json {
        let people = users.users.iter().map(|(name, user)| {
            let keys: Vec<_> = user.keys.iter().map(|(label, key)| described(label, key)).collect();
            json!({ "name": name, "password": user.password.is_some(), "keys": keys })
        });
        let people: Vec<_> = people.collect();
        return output::print_json(&json!({ "users": people, "rules": users.rules }));
    }
    let people = users.users.iter().map(|(name, user)| {
        let keys: Vec<String> = user.keys.iter().map(|(label, key)| shown(label, key)).collect();
        let password = if user.password.is_some() { "yes" } else { "no" };
        vec![name.clone(), password.to_owned(), keys.join(",")]
    });
    for line in table::table(&["USER", "PASSWORD", "KEYS"], &people.collect::<Vec<_>>()) {
        output::print(line);
    }
    if !users.rules.is_empty() {
        let rules = users.rules.iter().map(|rule| {
            vec![rule.who.clone(), rule.repositories.clone(), rule.actions.to_string()]
        });
        output::print("");
        for line in table::table(&["WHO", "REPOSITORIES", "MAY"], &rules.collect::<Vec<_>>()) {
            output::print(line);
        }
    }
    Ok(())
}

/// A key as a value, without anything that would let somebody in.
fn described(label: &str, key: &Key) -> serde_json::Value {
    let Key { expires, bound, .. } = key;
    json!({
        "label": label,
        "expires": expires,
        "repositories": bound.repositories,
        "actions": bound.actions,
    })
}

/// A key in a word: its label, and a mark if it is over or not good for everything.
fn shown(label: &str, key: &Key) -> String {
    let over = key.expires.is_some_and(|expires| expires <= now());
    match (over, key.bound == Bound::default()) {
        (true, _) => format!("{label} (expired)"),
        (false, false) => format!("{label} (restricted)"),
        (false, true) => label.to_owned(),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

fn read_password(name: &str) -> Outcome<String> {
    let password = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("password for {name}: "))
            .map_err(|error| Failure::file(&error))?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(|error| Failure::file(&error))?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    let length = PASSWORD_LENGTH_MIN..=::registry::auth::password::PASSWORD_LENGTH_MAX;
    if length.contains(&password.len()) {
        return Ok(password);
    }
    Err(Failure::new(
        format!("the password must have at least {PASSWORD_LENGTH_MIN} characters"),
        "give it on standard input, or make a key with `apron registry user key`",
    ))
}

fn failed(error: &UsersError) -> Failure {
    let hint = match error {
        UsersError::Name(_) => "names have letters, digits and . _ @ + - and at most 64 of them",
        UsersError::Later(_) => "use the version of apron that wrote it, or a later one",
        _ => "check the file, the directory and their permissions",
    };
    Failure::new("cannot change or read the users", hint).because(error)
}
