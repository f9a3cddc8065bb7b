//! Addresses of the web.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::value::{Key, Result, Trouble, Val};
use crate::quote;

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.is_empty() {
            return Err("parse \"\": empty url".to_owned());
        }
        let broken = |why: &str| format!("parse {}: {why}", quote(text));
        if !crate::is_request_uri(text) {
            return Err(broken("invalid URI for request"));
        }
        let (rest, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, after)) if !scheme.contains('/') && !scheme.is_empty() => {
                (scheme.to_ascii_lowercase(), after)
            }
            _ => (String::new(), rest),
        };
        let (host, path) = match rest.strip_prefix("//") {
            Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
                let end = after.find('/').unwrap_or(after.len());
                let authority = &after[..end];
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                (host.to_owned(), after[end..].to_owned())
            }
            _ => (String::new(), rest.to_owned()),
        };
        Ok(Self { scheme, host, path, query: query.to_owned() })
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        [&self.scheme, &self.host, &self.path, &self.query].iter().map(|part| part.len()).sum()
    }

    fn host_and_port(&self) -> (&str, &str) {
        if let Some(rest) = self.host.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').unwrap_or((rest, ""));
            return (inside, after.strip_prefix(':').unwrap_or(""));
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }
}

pub(super) fn read<'a>(name: &str, text: &str) -> Result<Val<'a>> {
    match (name, Url::parse(text)) {
        ("isURL", read) => Ok(Val::Bool(read.is_ok())),
        (_, Ok(url)) => Ok(Val::Url(Rc::new(url))),
        (_, Err(why)) => {
            Err(Trouble::new(format!("URL parse error during conversion from string: {why}")))
        }
    }
}

pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::Url(url)] = args else { return Err(Trouble::overload()) };
    Ok(match name {
        "getScheme" => Val::text(url.scheme.clone()),
        "getHost" => Val::text(url.host.clone()),
        "getHostname" => Val::text(url.host_and_port().0),
        "getPort" => Val::text(url.host_and_port().1),
        "getEscapedPath" => Val::text(url.path.clone()),
        "getQuery" => query(&url.query),
        _ => return Err(Trouble::overload()),
    })
}

fn query<'a>(text: &str) -> Val<'a> {
    let mut found: BTreeMap<String, Vec<Val<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(key), Some(value)) = (decoded(key), decoded(value)) {
            found.entry(key).or_default().push(Val::text(value));
        }
    }
    let entry = |(key, values): (String, Vec<Val<'a>>)| {
        (Key::String(key.clone()), (Val::text(key), Val::list(values)))
    };
    Val::Map(Rc::new(found.into_iter().map(entry).collect()))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?.to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).ok()?);
            }
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
