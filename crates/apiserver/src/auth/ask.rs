//! What a request asks for, in the words of rules: a verb on a resource, or on a path.

use serde_json::json;

use super::User;
use crate::http::query::Query;
use crate::http::status::{Failure, details};
use crate::http::target::percent_decode;
use schema::object::selector::Fields;

/// Who wants to do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// Does what.
    pub verb: String,
    /// Where.
    pub path: String,
    /// With what; nothing when the path is not one of objects.
    pub resource: Option<Resource>,
}

/// Objects, as rules name them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resource {
    /// The group; empty for the core.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// The part of it, if not all.
    pub subresource: String,
    /// The namespace; a namespace lies in itself.
    pub namespace: String,
    /// The object, if it is one.
    pub name: String,
}

impl<'a> Attributes<'a> {
    /// What a method on a path means. Paths are taken apart as `http::target` does, also
    /// those where nothing is: who may not ask must not learn that.
    pub fn of(user: &'a User, method: &str, path: &str, query: &Query) -> Self {
        let path = percent_decode(path);
        let plain = Self { user, verb: method.to_lowercase(), path: path.clone(), resource: None };
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => return plain,
        };
        let (prefix, rest) = match rest {
            [verb @ ("watch" | "proxy"), rest @ ..] if !rest.is_empty() => (Some(*verb), rest),
            rest => (None, rest),
        };
        let mut resource = objects(group, rest);
        let verb = prefix.unwrap_or(match method {
            "POST" => "create",
            "GET" | "HEAD" => "get",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "",
        });
        let many = resource.name.is_empty();
        let verb = match verb {
            "get" if many && query.flag("watch") => "watch",
            "get" if many => "list",
            "delete" if many => "deletecollection",
            verb => verb,
        };
        if many && ["list", "watch"].contains(&verb) && prefix.is_none() {
            resource.name = selected(query);
        }
        Self { verb: verb.to_owned(), resource: Some(resource), ..plain }
    }

    /// The refusal, and why if there is more to say.
    pub fn forbidden(&self, why: &str) -> Failure {
        let who = &self.user.name;
        let Some(resource) = &self.resource else {
            let message = format!("User {who:?} cannot {} path {:?}", self.verb, self.path);
            let said = reasoned("forbidden", &message, why);
            return Failure::new(403, "Forbidden", said).with(json!({}));
        };
        let part = match resource.subresource.as_str() {
            "" => resource.resource.clone(),
            part => format!("{}/{part}", resource.resource),
        };
        let place = match resource.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let message = format!(
            "User {who:?} cannot {} resource {part:?} in API group {:?} {place}",
            self.verb, resource.group
        );
        let what = match resource.group.as_str() {
            "" => resource.resource.clone(),
            group => format!("{}.{group}", resource.resource),
        };
        let what = match resource.name.as_str() {
            "" => format!("{what} is forbidden"),
            name => format!("{what} {name:?} is forbidden"),
        };
        let details = details(&resource.name, &resource.group, &resource.resource);
        Failure::new(403, "Forbidden", reasoned(&what, &message, why)).with(details)
    }
}

/// Sentences that cannot be taken for markup by a browser.
fn reasoned(what: &str, message: &str, why: &str) -> String {
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if why.is_empty() { format!("{what}: {message}") } else { format!("{what}: {message}: {why}") }
}

fn objects(group: &str, rest: &[&str]) -> Resource {
    let text = |at: usize, rest: &[&str]| rest.get(at).copied().unwrap_or_default().to_owned();
    let mut namespace = String::new();
    let mut rest = rest;
    if rest.first() == Some(&"namespaces") && rest.len() > 1 {
        namespace = text(1, rest);
        if rest.len() > 2 && !["status", "finalize"].contains(&rest[2]) {
            rest = &rest[2..];
        }
    }
    Resource {
        group: group.to_owned(),
        resource: text(0, rest),
        name: text(1, rest),
        subresource: text(2, rest),
        namespace,
    }
}

/// A list of one object by its name is allowed to those who may see that object.
fn selected(query: &Query) -> String {
    let Ok(fields) = Fields::parse(query.get("fieldSelector")) else { return String::new() };
    let whole = |name: &&str| ![".", ".."].contains(name) && !name.contains(['/', '%']);
    fields.exact_name().filter(whole).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::target::Target;

    fn asked(method: &str, url: &str) -> String {
        let user = User::default();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let asked = Attributes::of(&user, method, path, &Query::parse(query));
        match asked.resource {
            None => format!("{} {}", asked.verb, asked.path),
            Some(it) => format!(
                "{} {}.{}/{} {}:{}",
                asked.verb, it.resource, it.group, it.subresource, it.namespace, it.name
            ),
        }
    }

    #[test]
    fn requests_become_verbs_on_resources() {
        let check = |method: &str, url: &str, expect: &str| {
            assert_eq!(asked(method, url), expect, "{method} {url}");
        };
        check("GET", "/healthz", "get /healthz");
        check("POST", "/api", "post /api");
        check("GET", "/apis/g/v1", "get /apis/g/v1");
        check("GET", "/api/v1/pods", "list pods./ :");
        check("GET", "/api/v1/pods?watch=1", "watch pods./ :");
        check("GET", "/api/v1/pods?watch=false", "list pods./ :");
        check("DELETE", "/apis/g/v1/namespaces/a/things", "deletecollection things.g/ a:");
        check("PUT", "/apis/g/v1/namespaces/a/things/b/status", "update things.g/status a:b");
        check("GET", "/api/v1/namespaces/a", "get namespaces./ a:a");
        check("PUT", "/api/v1/namespaces/a/finalize", "update namespaces./finalize a:a");
        check("GET", "/api/v1/watch/namespaces/a/pods", "watch pods./ a:");
        let one = "fieldSelector=metadata.name%3Db";
        check("GET", &format!("/api/v1/namespaces/a/pods?{one}"), "list pods./ a:b");
        check("GET", &format!("/api/v1/pods?{one}&watch=true"), "watch pods./ :b");
        check("GET", "/api/v1/pods?fieldSelector=metadata.name!%3Db", "list pods./ :");
        check("GET", "/api/v1/namespaces/a%2Fsecrets", "list secrets./ a:");
    }

    #[test]
    fn what_is_asked_for_is_what_is_served() {
        let words = ["", "namespaces", "a", "status", "pods", "finalize", "b%2Fc", "watch", "%61"];
        for prefix in ["/api/v1", "/apis/g/v1"] {
            for first in words {
                for second in words {
                    for third in words {
                        for fourth in words {
                            let path = format!("{prefix}/{first}/{second}/{third}/{fourth}");
                            agree(&path);
                            agree(path.trim_end_matches('/'));
                        }
                    }
                }
            }
        }
    }

    fn agree(path: &str) {
        let user = User::default();
        let Some(target) = Target::parse(path) else { return };
        if ["watch", "proxy"].contains(&target.resource.as_str()) {
            // No kind is called that.
            return;
        }
        let asked = Attributes::of(&user, "GET", path, &Query::default());
        let found = asked.resource.map(|it| (it.group, it.resource, it.name, it.subresource));
        let text = |text: Option<String>| text.unwrap_or_default();
        let expect = (target.group, target.resource, text(target.name), text(target.subresource));
        assert_eq!(found, Some(expect), "{path}");
    }
}
