//! Repositories that come from other registries: what is not here is fetched, and nothing is
//! pushed.

use super::{Answer, Call, Server, action, blobs, lists, manifests};
use crate::access::Action;
use crate::mirror::{Found, Mirror, Stated};
use crate::query::Query;
use crate::route::Route;
use crate::wire::{self, Refusal};
use axum::body::Body;
use axum::response::Response;
use http::header::WARNING;
use http::request::Parts;
use http::{Method, StatusCode};
use std::sync::Arc;

impl Server {
    /// A client that was sent here in place of another registry says so (`?ns=`); gives the
    /// repository it means, and what to tell it. Where nothing is mirrored, nobody listens.
    pub(super) fn within_namespace(
        &self,
        route: Route,
        parts: &Parts,
    ) -> Result<(Route, Option<String>), Refusal> {
        let reads = parts.method == Method::GET || parts.method == Method::HEAD;
        if self.mirrors.is_empty() || !reads {
            return Ok((route, None));
        }
        let query = Query::parse(parts.uri.query());
        let Some((namespace, name)) = query.get("ns").zip(route.repository()) else {
            return Ok((route, None));
        };
        // A repository of ours that happens to have the same name is not what they mean.
        let unknown = || {
            let message = format!("`{namespace}` is not mirrored here");
            Refusal::new(StatusCode::NOT_FOUND, "NAME_UNKNOWN", message)
        };
        let name = self.mirrors.within(namespace, name).ok_or_else(unknown)?;
        let namespace = namespace.to_owned();
        Ok((route.renamed(name), Some(namespace)))
    }

    /// Answers for a repository that comes from elsewhere.
    pub(super) async fn dispatch_mirrored(
        &self,
        mirror: &Arc<Mirror>,
        route: Route,
        call: Call,
        body: Body,
    ) -> Answer {
        let method = call.parts.method.clone();
        if let (Action::Push, Some(name)) = (action(&route, &method), route.repository()) {
            return Err(Refusal::mirrored(name, mirror.source()));
        }
        match (&route, method.as_str()) {
            (Route::Manifest(name, it), "GET" | "HEAD") => {
                let stated = mirror.manifest(name, it).await?;
                Ok(told(manifests::found(&call, &stated.value), stated.warning.as_deref()))
            }
            (Route::Blob(name, digest), "GET") => match mirror.blob(name, digest).await? {
                Found::Here => self.get_blob(&call, name, digest).await,
                Found::Coming(coming) => {
                    blobs::found(&call, digest, coming.size(), |first, length| {
                        Body::from_stream(coming.read(first, length))
                    })
                }
            },
            (Route::Blob(name, digest), "HEAD") => {
                let size = mirror.blob_size(name, digest).await?;
                Ok(blobs::described(digest, size, Body::empty()))
            }
            (Route::Tags(name), "GET" | "HEAD") => {
                let (last, length) = lists::tags_asked(&call)?;
                let Stated { value, warning } = mirror.tags(name, last, length).await?;
                Ok(told(lists::tag_list(name, &value, length), warning.as_deref()))
            }
            (Route::Referrers(name, subject), "GET" | "HEAD") => {
                let (kind, last, length) = lists::referrers_asked(&call)?;
                let stated = mirror.referrers(name, subject, kind, last, length).await?;
                let answer = lists::referrer_list(name, subject, stated.value, kind, length);
                Ok(told(answer, stated.warning.as_deref()))
            }
            _ => self.dispatch_here(route, call, body).await,
        }
    }
}

fn told(mut response: Response, warning: Option<&str>) -> Response {
    if let Some(warning) = warning {
        wire::set(&mut response, WARNING, warning);
    }
    response
}
