//! Acting as somebody else, with that somebody's rights, for those who may.
//!
//! There are several ways to be allowed it. The old one is the verb `impersonate` on the
//! user, the groups and so on, whatever is then done. The others, called modes, also name
//! what may be done meanwhile: `impersonate-on:user-info:list` on the resource that is
//! asked for, and `impersonate:user-info` on the user. The first refusal is told.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::ask::{Attributes, Resource};
use super::{
    ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User, authorize, policy, service_account_groups,
    split_service_account,
};
use crate::Server;
use crate::http::status::Failure;
use crate::http::target::percent_decode;
use schema::object::name::{NameRule, check as check_name};

const REVIEWS: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From this many on, one question about all of them is tried first.
const MANY: usize = 4;

/// Whom the headers want to be, if anybody.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Option<User>, Failure> {
    let all = |name: &str| -> Vec<String> {
        let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        texts.map(str::to_owned).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in headers.keys().filter_map(|key| key.as_str().strip_prefix(EXTRA)) {
        extra.entry(percent_decode(key)).or_default().extend(all(&format!("{EXTRA}{key}")));
    }
    let user = User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: all("impersonate-group"),
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() {
        return Ok(None);
    }
    Err(Failure::bad_request(format!(
        "requested {} without impersonating a user name",
        in_go(&user)
    )))
}

/// The user as upstream's complaint shows it.
fn in_go(user: &User) -> String {
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{{{}}}", listed(groups)),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let one = |(key, values): (&String, &Vec<String>)| {
            format!("{key:?}:[]string{{{}}}", listed(values))
        };
        let all: Vec<String> = user.extra.iter().map(one).collect();
        format!("map[string][]string{{{}}}", all.join(", "))
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.uid)
}

fn listed(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

/// One way to be allowed.
struct Mode<'a, 's> {
    server: &'s Server,
    asked: &'a Attributes<'a>,
    /// None for the old way.
    name: Option<&'static str>,
}

/// The user that is wanted, if the one who asks may be that.
pub(super) fn become_other(
    server: &Server,
    asked: &Attributes<'_>,
    wanted: User,
) -> Result<User, Failure> {
    let mut refused = None;
    let modes = modes(asked.user, &wanted).into_iter().map(Some).chain([None]);
    for name in modes {
        match (Mode { server, asked, name }).check(&wanted) {
            Ok(groups) => return Ok(settled(wanted, groups)),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| asked.forbidden("")))
}

/// The modes that apply, in the order in which they are tried.
fn modes(asker: &User, wanted: &User) -> Vec<&'static str> {
    let bare = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    if let Some(node) = node(&wanted.name) {
        let here = split_service_account(&asker.name).is_some()
            && asker.extra.get(NODE_NAME).is_some_and(|names| names.as_slice() == [node]);
        return match (bare, here) {
            (true, true) => vec!["associated-node", "arbitrary-node"],
            (true, false) => vec!["arbitrary-node"],
            (false, _) => Vec::new(),
        };
    }
    if split_service_account(&wanted.name).is_some() {
        return if bare { vec!["serviceaccount"] } else { Vec::new() };
    }
    vec!["user-info"]
}

fn node(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    check_name(NameRule::Subdomain, name).is_empty().then_some(name)
}

/// Groups that follow from the name, and the one that says whether somebody is known.
fn settled(mut user: User, groups: Option<Vec<String>>) -> User {
    user.groups = groups.unwrap_or(user.groups);
    let has = |group: &str| user.groups.iter().any(|one| one == group);
    if user.name == ANONYMOUS {
        if !has(UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(UNAUTHENTICATED) && !has(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

impl Mode<'_, '_> {
    /// Asks everything that must be allowed; answers with the groups that the name implies.
    fn check(&self, wanted: &User) -> Result<Option<Vec<String>>, Failure> {
        if let Some(mode) = self.name {
            let verb = format!("impersonate-on:{mode}:{}", self.asked.verb);
            self.may(&Attributes { verb, ..self.asked.clone() })?;
        }
        let implied = self.check_name(wanted)?;
        if !wanted.uid.is_empty() {
            self.may_be(REVIEWS, "uids", "", &wanted.uid)?;
        }
        self.check_groups(&wanted.groups)?;
        self.check_extra(&wanted.extra)?;
        Ok(implied)
    }

    fn check_name(&self, wanted: &User) -> Result<Option<Vec<String>>, Failure> {
        if let (Some(mode), Some(node)) = (self.name, node(&wanted.name)) {
            // The nodes themselves are not told apart for those that run on them.
            let name = if mode == "associated-node" { "*" } else { node };
            self.may_be(self.group(), "nodes", "", name)?;
            return Ok(Some(vec!["system:nodes".to_owned()]));
        }
        let Some((namespace, name)) = split_service_account(&wanted.name) else {
            self.may_be(self.group(), "users", "", &wanted.name)?;
            return Ok(None);
        };
        let mut asked = self.question(self.group(), "serviceaccounts", "", name);
        if let Some(resource) = &mut asked.resource {
            namespace.clone_into(&mut resource.namespace);
        }
        self.may(&asked)?;
        Ok(wanted.groups.is_empty().then(|| service_account_groups(namespace)))
    }

    fn check_groups(&self, groups: &[String]) -> Result<(), Failure> {
        if self.name.is_some() {
            let refuse = |name: &str, what: &str| {
                let asked = self.question(self.group(), "groups", "", name);
                Err(asked.forbidden(&format!("impersonating the {what} is not allowed")))
            };
            if groups.iter().any(String::is_empty) {
                return refuse("", "empty string group");
            }
            if groups.iter().any(|group| group == policy::MASTERS) {
                return refuse(policy::MASTERS, "system:masters group");
            }
            if groups.len() >= MANY && self.may_be(self.group(), "groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.may_be(self.group(), "groups", "", group))
    }

    fn check_extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Failure> {
        if self.name.is_some() && !extra.is_empty() {
            if let Some(why) = extra.iter().find_map(odd_extra) {
                return Err(self.question(REVIEWS, "userextras", "", "").forbidden(&why));
            }
            let many = extra.len().max(extra.values().map(Vec::len).sum()) >= MANY;
            if many && self.may_be(REVIEWS, "userextras", "*", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.may_be(REVIEWS, "userextras", key, value)?;
            }
        }
        Ok(())
    }

    /// Users and groups have moved to the group of reviews for everything but the old way.
    fn group(&self) -> &'static str {
        if self.name.is_some() { REVIEWS } else { "" }
    }

    fn question(&self, group: &str, resource: &str, part: &str, name: &str) -> Attributes<'_> {
        Attributes {
            user: self.asked.user,
            verb: match self.name {
                Some(mode) => format!("impersonate:{mode}"),
                None => "impersonate".to_owned(),
            },
            path: String::new(),
            resource: Some(Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: part.to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
            }),
        }
    }

    fn may_be(&self, group: &str, resource: &str, part: &str, name: &str) -> Result<(), Failure> {
        self.may(&self.question(group, resource, part, name))
    }

    fn may(&self, asked: &Attributes<'_>) -> Result<(), Failure> {
        let verdict = authorize(self.server, asked);
        if verdict.allowed { Ok(()) } else { Err(asked.forbidden(&verdict.reason)) }
    }
}

/// What the modes do not take as an extra.
fn odd_extra((key, values): (&String, &Vec<String>)) -> Option<String> {
    let refuse = |what: &str| Some(format!("impersonating {what} is not allowed"));
    let (domain, path) = key.split_once('/').unwrap_or((key, ""));
    if key.is_empty() {
        return refuse("the empty string key in extra");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    let whole = !path.is_empty() && path.chars().all(plain);
    if !whole || !check_name(NameRule::Subdomain, domain).is_empty() {
        return refuse("an invalid key in extra");
    }
    if *key != key.to_lowercase() {
        return refuse("a non-lowercase key in extra");
    }
    if values.iter().any(String::is_empty) {
        return refuse("the empty string value in extra");
    }
    None
}
