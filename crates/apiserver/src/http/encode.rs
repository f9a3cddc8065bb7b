//! How an answer is written: in lines for people, as YAML for those who ask, and small when it
//! is big.

use std::io::Write as _;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::Value;

use super::negotiate;
use super::query::Query;

/// Answers longer than this are compressed for those who can read it.
const COMPRESS_FROM: usize = 128 << 10;

/// How the client wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// As YAML.
    pub(super) yaml: bool,
    /// With every field on a line of its own.
    pub(super) pretty: bool,
    /// Compressed, if it is long.
    pub(super) gzip: bool,
}

impl Wish {
    /// What the address and the headers say. Browsers and command lines get lines.
    pub(super) fn read(uri: &http::Uri, headers: &HeaderMap) -> Self {
        let text = |name: header::HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        let query = Query::parse(uri.query().unwrap_or_default());
        let described = uri.path().starts_with("/openapi/");
        let pretty = match query.all("pretty").next() {
            Some(said) => ["true", "1", "t", "T", "TRUE", "True"].contains(&said),
            None => ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|agent| text(header::USER_AGENT).starts_with(agent)),
        };
        let gzip = text(header::ACCEPT_ENCODING).split(',').any(|one| one.trim() == "gzip");
        let discovery = ["/api", "/apis"].contains(&uri.path().trim_end_matches('/'));
        let accepted = negotiate::accept(text(header::ACCEPT), discovery);
        Self {
            yaml: accepted.is_some_and(|accepted| accepted.yaml),
            pretty: pretty && !described,
            gzip: gzip && !described,
        }
    }
}

/// Answers that are JSON whatever was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsIs;

/// Writes an answer as it is wished. Streams are left alone.
pub(super) async fn write(response: Response<Body>, wish: Wish) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let long = length.is_some_and(|length| length > COMPRESS_FROM as u64);
    let json = response.headers().get(header::CONTENT_TYPE).is_some_and(|media| {
        media.to_str().is_ok_and(|media| media.starts_with("application/json"))
    });
    let yaml = wish.yaml && response.extensions().get::<AsIs>().is_none();
    if length.is_none() || !json || !(yaml || wish.pretty || wish.gzip && long) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let form = Wish { yaml, ..wish };
    let bytes = crate::heavy::do_aside(bytes.len(), || rewritten(bytes, form, &mut parts.headers));
    Response::from_parts(parts, Body::from(bytes))
}

/// The text of an answer in the form that is wished, and what its headers say of that.
fn rewritten(mut bytes: Bytes, wish: Wish, headers: &mut HeaderMap) -> Bytes {
    if wish.yaml
        && let Ok(value) = serde_json::from_slice(&bytes)
    {
        bytes = ::yaml::write::to_string(&value).into();
        name_yaml(headers);
    } else if wish.pretty
        && let Some(lines) = in_lines(&bytes)
    {
        bytes = lines.into();
    }
    if wish.gzip
        && bytes.len() > COMPRESS_FROM
        && let Some(small) = compressed(&bytes)
    {
        bytes = small.into();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    bytes
}

/// Says that an answer is YAML; what else its type says, such as the form, stays.
fn name_yaml(headers: &mut HeaderMap) {
    let said = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let named = said.unwrap_or_default().replace("application/json", negotiate::YAML);
    if let Ok(named) = HeaderValue::from_str(&named) {
        headers.insert(header::CONTENT_TYPE, named);
    }
}

fn in_lines(bytes: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    async fn written(text: &str, wish: Wish) -> (Option<String>, Vec<u8>) {
        let mut response = Response::new(Body::from(text.to_owned()));
        let media = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        let (parts, body) = write(response, wish).await.into_parts();
        let coding = parts.headers.get(header::CONTENT_ENCODING);
        let coding = coding.map(|coding| coding.to_str().unwrap().to_owned());
        (coding, axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    #[tokio::test]
    async fn long_answers_are_compressed_for_those_who_ask() {
        let long = format!("{{\"a\":{:?}}}\n", "x".repeat(COMPRESS_FROM));
        let gzip = Wish { yaml: false, pretty: false, gzip: true };
        let (coding, small) = written(&long, gzip).await;
        assert_eq!(coding.as_deref(), Some("gzip"));
        let mut back = String::new();
        flate2::read::GzDecoder::new(small.as_slice()).read_to_string(&mut back).unwrap();
        assert_eq!(back, long);
        assert_eq!(written("{}\n", gzip).await, (None, b"{}\n".to_vec()));
        let plain = Wish { yaml: false, pretty: false, gzip: false };
        assert_eq!(written(&long, plain).await.0, None);
    }

    #[tokio::test]
    async fn people_get_lines() {
        let wish = |uri: &str, agent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_str(agent).unwrap());
            Wish::read(&uri.parse().unwrap(), &headers)
        };
        assert!(wish("/api?pretty=true", "x").pretty && wish("/api", "curl/8").pretty);
        assert!(!wish("/api?pretty=false", "curl/8").pretty && !wish("/api", "kubectl/1").pretty);
        assert!(!wish("/openapi/v3", "curl/8").pretty);
        let text = written("{\"a\":{},\"b\":[1]}\n", wish("/api", "curl/8")).await.1;
        assert_eq!(String::from_utf8(text).unwrap(), "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}");
    }
}
