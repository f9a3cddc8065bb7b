//! Addresses, read.

use catalog::http::{Query, decode};

/// Every path that is served, as the router wants them.
pub(super) const PATHS: [&str; 13] = [
    "/",
    "/search",
    "/suggest",
    "/kinds",
    "/p/{*rest}",
    "/crd/{*rest}",
    "/group/{*rest}",
    "/diff/{*rest}",
    "/api",
    "/plane",
    "/plane/{*rest}",
    "/assets/{*rest}",
    "/sign-in",
];

/// The longest text to look for.
const WORDS_SIZE_MAX: usize = 512;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Route {
    Home(Query),
    Search { words: String, query: Query },
    Suggest(String),
    Kinds(Query),
    Package { repository: String, reference: Option<String>, query: Query },
    Kind { name: String, version: Option<String>, query: Query },
    Group { name: String, query: Query },
    Changes { repository: String, query: Query },
    Api,
    Plane(PlaneRoute),
    Asset(String),
    SignIn,
}

/// What is asked for of a control plane.
#[derive(Debug)]
pub(super) enum PlaneRoute {
    Overview,
    /// A package, by kind and name.
    Package(String),
}

impl Route {
    pub(super) fn parse(path: &str, query: Option<&str>) -> Option<Self> {
        let query = Query::parse(query);
        let words = || {
            let words = query.get("q").unwrap_or_default().trim();
            let end = (0..=WORDS_SIZE_MAX.min(words.len())).rev();
            let end = end.into_iter().find(|at| words.is_char_boundary(*at));
            words[..end.unwrap_or_default()].to_owned()
        };
        let parts: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Some(match parts.as_slice() {
            [""] => Self::Home(query),
            ["search"] => Self::Search { words: words(), query },
            ["suggest"] => Self::Suggest(words()),
            ["kinds"] => Self::Kinds(query),
            ["sign-in"] => Self::SignIn,
            ["api"] => Self::Api,
            ["plane"] => Self::Plane(PlaneRoute::Overview),
            ["plane", kind, name] => Self::Plane(PlaneRoute::Package(format!("{kind}/{name}"))),
            ["diff", rest @ ..] if !rest.is_empty() => {
                Self::Changes { repository: rest.join("/"), query }
            }
            ["assets", name] => Self::Asset((*name).to_owned()),
            ["group", name] => Self::Group { name: (*name).to_owned(), query },
            ["crd", name] => Self::Kind { name: (*name).to_owned(), version: None, query },
            ["crd", name, version] => {
                Self::Kind { name: (*name).to_owned(), version: Some((*version).to_owned()), query }
            }
            ["p", rest @ ..] if !rest.is_empty() => {
                let joined = rest.join("/");
                let (repository, reference) = match joined.split_once('@') {
                    Some((repository, reference)) => {
                        (repository.to_owned(), Some(reference.to_owned()))
                    }
                    None => (joined, None),
                };
                Self::Package { repository, reference, query }
            }
            _ => return None,
        })
    }
}
