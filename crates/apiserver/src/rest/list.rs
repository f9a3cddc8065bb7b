//! GET of many: selected, at a version, page by page.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde_json::{Value, json};

use super::splice::{Reader, Splice};
use super::store::is_unreadable;
use super::{Answer, Request, present, store};
use crate::Server;
use crate::crd::convert::Held;
use crate::heavy;
use crate::http::negotiate::Form;
use crate::http::query::{Query, unread};
use crate::http::status::Failure;
use crate::http::syntax;
use crate::kind::{Kind, field_text};
use crate::log::{Entry, Snapshot};
use schema::object;
use schema::object::field_error::FieldError;
use schema::object::selector::{Fields, Labels};

/// Go's decoder does not mind stray bits at the end.
const TOKEN: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Which objects a request wants.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    labels: Labels,
    fields: Fields,
}

impl Selection {
    /// Reads both selectors; fields the kind cannot be selected by are refused.
    pub(crate) fn parse(request: &Request) -> Result<Self, Failure> {
        let query = &request.query;
        let labels = Labels::parse(query.get("labelSelector")).map_err(Failure::bad_request)?;
        let fields = Fields::parse(query.get("fieldSelector")).map_err(Failure::bad_request)?;
        check_fields(&request.kind, &fields)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything is wanted.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object's metadata alone says if it is wanted.
    pub(crate) fn is_by_metadata(&self) -> bool {
        self.fields.paths().all(|path| path.starts_with("metadata."))
    }

    /// Whether this object is wanted.
    pub(crate) fn wants(&self, object: &Value) -> bool {
        let labels = object::metadata(object).get("labels").and_then(Value::as_object);
        self.labels.matches(labels) && self.fields.matches(|path| field_text(object, path))
    }
}

fn check_fields(kind: &Kind, fields: &Fields) -> Result<(), Failure> {
    let known = |path: &str| {
        ["metadata.name", "metadata.namespace"].contains(&path)
            || kind.selectable.iter().any(|field| field == path)
    };
    let Some(path) = fields.paths().find(|path| !known(path)) else { return Ok(()) };
    let message = if kind.custom {
        format!("field label not supported: {path}")
    } else if kind.selectable.is_empty() {
        format!(
            "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    } else {
        format!("field label not supported: {path}")
    };
    Err(Failure::bad_request(message))
}

/// A page of a list.
pub(crate) struct Page {
    /// The version it is the state of.
    pub(crate) version: u64,
    /// The objects.
    pub(crate) items: Vec<Value>,
    /// Where the next page starts, and how many are left if that is known.
    pub(crate) next: Option<(String, Option<usize>)>,
    /// The keys of those that cannot be read, if nobody has to read them to want them.
    pub(crate) unreadable: Vec<Arc<str>>,
}

/// What a list request asks for, and the state it is answered from.
struct Asked {
    selection: Selection,
    snapshot: Snapshot,
    prefix: String,
    start: String,
    /// Zero is everything.
    limit: usize,
}

/// GET of a collection.
pub(crate) async fn list(server: &Server, request: &Request) -> Result<Answer, Failure> {
    let asked = ask(server, request)?;
    let _held = asked.convert(server, request).await?;
    heavy::do_aside(asked.weight(), || {
        if let Some(text) = spliced(request, &asked) {
            return Ok(Answer::text(text));
        }
        let reader = Reader::new(request, &asked.selection);
        let page = fill(request, &asked, &reader)?;
        let metadata = metadata(page.version, page.next);
        Ok(Answer::ok(present::many(server, request, page.items, &metadata)))
    })
}

/// A list's own metadata.
fn metadata(version: u64, next: Option<(String, Option<usize>)>) -> Value {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let Some((start, remaining)) = next {
        metadata["continue"] = json!(token(version, &start));
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    metadata
}

/// A list put together from stored texts, where all of them are wanted as they are: reading and
/// writing every object again is most of what a long list costs.
fn spliced(request: &Request, asked: &Asked) -> Option<Vec<u8>> {
    if request.form != Form::Object || !asked.selection.is_all() {
        return None;
    }
    let splice = Splice::new(&request.kind)?;
    let entries = &asked.snapshot.entries[asked.begin()..];
    let shown = if asked.limit > 0 { asked.limit.min(entries.len()) } else { entries.len() };
    let next = (shown < entries.len()).then(|| {
        let last = entries[..shown].last().map_or("", |(key, _)| &key[asked.prefix.len()..]);
        (format!("{last}\0"), Some(entries.len().saturating_sub(shown)))
    });
    let head = json!({
        "kind": request.kind.list_kind, "apiVersion": request.kind.api_version(),
        "metadata": metadata(asked.snapshot.version, next), "items": [],
    });
    let mut out = head.to_string().into_bytes();
    let size: usize = entries[..shown].iter().map(|(_, entry)| entry.value.len()).sum();
    out.reserve(size);
    // Up to the closing of the list and of the object.
    out.truncate(out.len().saturating_sub(2));
    for (at, (_, entry)) in entries[..shown].iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        splice.item(entry, &mut out)?;
    }
    out.extend(b"]}\n");
    Some(out)
}

/// The objects a list request wants.
pub(crate) async fn select(server: &Server, request: &Request) -> Result<Page, Failure> {
    let asked = ask(server, request)?;
    let _held = asked.convert(server, request).await?;
    fill(request, &asked, &Reader::whole(&request.kind))
}

fn ask(server: &Server, request: &Request) -> Result<Asked, Failure> {
    let wrong = check_options(&request.query);
    if !wrong.is_empty() {
        return Err(Failure::invalid_options("ListOptions", &wrong));
    }
    let selection = Selection::parse(request)?;
    let prefix = request.kind.prefix(request.namespace());
    let query = &request.query;
    let mut limit = limit(query)?;
    let (snapshot, start) = match query.get("continue") {
        "" => {
            if query.get("resourceVersion") == "0" {
                limit = 0;
            }
            (fresh(server, query, &prefix, limit)?, String::new())
        }
        token => resume(server, query, &prefix, token)?,
    };
    Ok(Asked { selection, snapshot, prefix, start, limit })
}

impl Asked {
    /// How many bytes are looked at.
    fn weight(&self) -> usize {
        let sizes = self.entries().map(|entry| entry.value.len());
        if self.is_page() { sizes.take(self.limit).sum() } else { sizes.sum() }
    }

    /// Has converted what is going to be read of this state, which no write changes any more.
    async fn convert(&self, server: &Server, request: &Request) -> Result<Held, Failure> {
        // The first object after a page is looked at, too.
        let most = if self.is_page() { self.limit.saturating_add(1) } else { usize::MAX };
        store::convert(server, &request.kind, self.entries().take(most).cloned()).await
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.snapshot.entries[self.begin()..].iter().map(|(_, entry)| entry)
    }

    /// Whether so many objects are wanted, whatever is in them.
    fn is_page(&self) -> bool {
        self.limit > 0 && self.selection.is_all()
    }

    /// The first entry that is wanted.
    fn begin(&self) -> usize {
        let from = format!("{}{}", self.prefix, self.start);
        self.snapshot.entries.partition_point(|(key, _)| **key < *from)
    }
}

/// The size of a page; zero or less means everything.
fn limit(query: &Query) -> Result<usize, Failure> {
    // Upstream reads both in one go; a list does not wait, whatever its timeout.
    query.number("timeoutSeconds")?;
    let asked = query.number("limit")?.unwrap_or(0);
    Ok(usize::try_from(asked).unwrap_or(0))
}

/// Reads a page. What is stored and cannot be read is left out, and the client told so: it must
/// not keep all others from being listed.
fn fill(request: &Request, asked: &Asked, reader: &Reader<'_>) -> Result<Page, Failure> {
    let Asked { selection, snapshot, prefix, limit, .. } = asked;
    let (begin, limit) = (asked.begin(), *limit);
    let mut page =
        Page { version: snapshot.version, items: Vec::new(), next: None, unreadable: Vec::new() };
    let mut last = String::new();
    for (at, (key, entry)) in snapshot.entries.iter().enumerate().skip(begin) {
        let object = match reader.open(entry) {
            Err(failure) if is_unreadable(&failure) => {
                let name = key[prefix.len()..].trim_start_matches('/');
                request.warnings.add(format!("{name} is left out: {}", failure.message));
                page.unreadable.extend(selection.is_all().then(|| Arc::clone(key)));
                continue;
            }
            opened => opened?,
        };
        if !selection.wants(&object) {
            continue;
        }
        if limit > 0 && page.items.len() == limit {
            let remaining = selection.is_all().then(|| snapshot.entries.len().saturating_sub(at));
            page.next = Some((format!("{last}\0"), remaining));
            break;
        }
        key[prefix.len()..].clone_into(&mut last);
        page.items.push(object);
    }
    Ok(page)
}

/// The state a list without a token is read from.
fn fresh(server: &Server, query: &Query, prefix: &str, limit: usize) -> Result<Snapshot, Failure> {
    let asked = query.get("resourceVersion");
    let present = server.log.version();
    let version = match asked {
        "" => 0,
        _ => read_version(asked).map_err(|said| {
            Failure::bad_request(format!("invalid resource version: {}", said.message))
        })?,
    };
    let exact = query.get("resourceVersionMatch") == "Exact"
        || (limit > 0 && version > 0 && query.get("resourceVersionMatch").is_empty());
    if version > present {
        return Err(Failure::too_large(version, present));
    }
    let at = exact.then_some(version).filter(|version| *version > 0);
    server.log.list(prefix, at).map_err(|expired| {
        Failure::expired(format!(
            "The resourceVersion for the provided list is too old. ({} < {})",
            expired.asked, expired.oldest
        ))
    })
}

/// A version that a client names.
pub(crate) fn read_version(asked: &str) -> Result<u64, Failure> {
    asked.parse().map_err(|error| {
        let why = format!("strconv.ParseUint: parsing {}", unread(asked, &error));
        let wrong = FieldError::invalid("resourceVersion", &json!(asked), &why);
        Failure::internal(wrong.sentence())
    })
}

/// The state a token belongs to, and where to go on.
fn resume(
    server: &Server,
    query: &Query,
    prefix: &str,
    token: &str,
) -> Result<(Snapshot, String), Failure> {
    let wrong = |why: String| {
        Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    if !["", "0"].contains(&query.get("resourceVersion")) {
        return Err(Failure::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let bytes = TOKEN.decode(token.trim_end_matches('=')).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => token.len(),
        };
        wrong(format!("illegal base64 data at input byte {at}"))
    })?;
    let parsed: Value = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(syntax::complaint(&bytes).unwrap_or(error.to_string())))?;
    let start = parsed.get("start").and_then(Value::as_str).unwrap_or_default();
    let version = parsed.get("rv").and_then(Value::as_u64).unwrap_or(0);
    if version == 0 || start.is_empty() {
        return Err(wrong(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into(),
        ));
    }
    // One slash is the token's own; keys of objects without a namespace begin with another.
    let start = start.strip_prefix('/').unwrap_or(start).to_owned();
    match server.log.list(prefix, Some(version)) {
        Ok(snapshot) => Ok((snapshot, start)),
        Err(_) => Err(expired_token(server.log.version(), &start)),
    }
}

/// 410 with a token that goes on from the present, for those who can live with a list
/// whose pages are of different times.
fn expired_token(version: u64, start: &str) -> Failure {
    let mut failure = Failure::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted between \
         the time the first chunk was returned and now may show up in the list.",
    );
    failure.details = Some(Box::new(json!({"continue": token(version, start)})));
    failure
}

fn token(version: u64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": format!("/{start}")});
    TOKEN.encode(token.to_string())
}

fn check_options(query: &Query) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let field = "resourceVersionMatch";
    let matching = query.get(field);
    if !matching.is_empty() {
        if query.get("resourceVersion").is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            wrong.push(FieldError::forbidden(field, why));
        }
        if !query.get("continue").is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            wrong.push(FieldError::forbidden(field, why));
        }
        if !["Exact", "NotOlderThan"].contains(&matching) {
            let allowed = ["Exact", "NotOlderThan", ""];
            wrong.push(FieldError::not_supported(field, matching, &allowed));
        }
        if matching == "Exact" && query.get("resourceVersion") == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            wrong.push(FieldError::forbidden(field, why));
        }
    }
    if query.all("sendInitialEvents").next().is_some() {
        let why = "sendInitialEvents is forbidden for list";
        wrong.push(FieldError::forbidden("sendInitialEvents", why));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::testing::{ask, server};

    async fn get(server: &Arc<Server>, query: &str) -> Value {
        ask(server, "GET", &format!("/api/v1/namespaces?{query}"), Value::Null).await
    }

    fn names(list: &Value) -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn pages_of_objects_without_a_namespace_are_all_of_them() {
        let server = server(Log::in_memory()).await;
        let all = names(&get(&server, "").await);
        assert!(all.len() > 2, "{all:?}");
        // Once from stored texts, once from objects.
        for query in ["limit=1", "limit=1&labelSelector=kubernetes.io/metadata.name"] {
            let mut paged = Vec::new();
            let mut token = String::new();
            loop {
                let page = get(&server, &format!("{query}&continue={token}")).await;
                paged.extend(names(&page));
                match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                    Some(next) => next.clone_into(&mut token),
                    None => break,
                }
            }
            assert_eq!(paged, all, "{query}");
        }
    }
}
