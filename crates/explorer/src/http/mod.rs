//! The explorer as a service.
//!
//! ```text
//!   request ─► Route ─► Gate ─► answers of the catalog ─► page ─► headers that hold it in
//! ```

mod answers;
mod live;
mod route;
mod shield;

use crate::assets;
use crate::link;
use crate::page::PageSite;
use crate::page::plane::{PlaneView, plane_package_page, plane_page};
use crate::page::problem::problem_page;
use crate::pass::{self, Pass};
use crate::plane::{PlaneProblem, PlaneReport, PlaneSource};
use ::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION};
use ::http::header::{ETAG, IF_NONE_MATCH, WWW_AUTHENTICATE};
use ::http::request::Parts;
use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use catalog::Index;
use catalog::http::{Admitted, Gate, Problem};
use live::PlaneWatch;
use oci::Digest;
use route::{PlaneRoute, Route};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest host that is shown.
const HOST_LENGTH_MAX: usize = 255;
/// What browsers are asked for where a name is needed: they know no tokens.
const CHALLENGE: &str = "Basic realm=\"apron\", charset=\"UTF-8\"";

/// What is shown, and to whom.
pub struct Exhibition {
    /// The catalog of a registry.
    pub index: Option<Arc<Index>>,
    /// Knows askers, and what they may read of the catalog.
    pub gate: Arc<dyn Gate>,
    /// What opens the pages of a control plane. Its catalog has packages of other registries under
    /// the names they have there.
    pub pass: Option<Pass>,
    /// A control plane: shown to those with the pass, or to everybody if there is none.
    pub plane: Option<Arc<dyn PlaneSource>>,
}

struct Explorer {
    index: Option<Arc<Index>>,
    gate: Arc<dyn Gate>,
    pass: Option<Pass>,
    plane: Option<Arc<PlaneWatch>>,
}

/// The explorer as a service; to be merged with what else is served.
pub fn router(exhibition: Exhibition) -> Router {
    let Exhibition { index, gate, pass, plane } = exhibition;
    let gate = match &pass {
        Some(pass) => pass.guard_gate(gate),
        None => gate,
    };
    let plane = plane.map(|source| Arc::new(PlaneWatch::new(source)));
    let mut router = Router::new();
    for path in route::PATHS {
        router = router.route(path, any(handle));
    }
    let explorer = Explorer { index, gate, pass: pass.clone(), plane };
    let router = router.with_state(Arc::new(explorer));
    match pass {
        Some(pass) => pass.greet_holders(router),
        None => router,
    }
}

/// What is sent back, before headers that all answers have.
struct Reply {
    status: StatusCode,
    media_type: &'static str,
    body: Vec<u8>,
    headers: Vec<(HeaderName, String)>,
    /// Whether its name changes with its content.
    is_immutable: bool,
}

impl Reply {
    fn page(html: String) -> Self {
        Self {
            status: StatusCode::OK,
            media_type: "text/html; charset=utf-8",
            body: html.into_bytes(),
            headers: Vec::new(),
            is_immutable: false,
        }
    }

    fn problem(site: &PageSite, problem: &Problem) -> Self {
        let mut headers: Vec<(HeaderName, String)> = problem.headers().to_vec();
        if problem.status() == StatusCode::UNAUTHORIZED {
            headers.retain(|(name, _)| name != WWW_AUTHENTICATE);
            headers.push((WWW_AUTHENTICATE, CHALLENGE.to_owned()));
        }
        let status = problem.status();
        Self { status, headers, ..Self::page(problem_page(site, problem)) }
    }

    fn redirect(address: &str) -> Self {
        let headers = vec![(LOCATION, address.to_owned())];
        Self { status: StatusCode::SEE_OTHER, headers, ..Self::page(String::new()) }
    }
}

async fn handle(State(explorer): State<Arc<Explorer>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(response) = explorer.answer_news(&parts).await {
        return response;
    }
    let reply = explorer.reply(&parts).await;
    finish_response(reply, &parts)
}

impl Explorer {
    /// The stream of news, where that is asked for.
    async fn answer_news(&self, parts: &Parts) -> Option<Response> {
        if parts.uri.path() != link::PLANE_NEWS || parts.method != Method::GET {
            return None;
        }
        let news = self.open_plane(parts).await.and_then(start_news);
        Some(news.unwrap_or_else(|problem| {
            finish_response(Reply::problem(&self.site_of(parts), &problem), parts)
        }))
    }

    async fn reply(&self, parts: &Parts) -> Reply {
        let site = self.site_of(parts);
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let hint = "ask with GET; packages are pushed and deleted below /v2/";
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let problem = Problem::new(status, "pages can only be read", hint);
            return Reply::problem(&site, &problem);
        }
        let Some(route) = Route::parse(parts.uri.path(), parts.uri.query()) else {
            return Reply::problem(&site, &no_page());
        };
        match route {
            Route::Asset(name) => reply_asset(&site, &name),
            Route::SignIn if site.knows_users => sign_in(&site),
            Route::Plane(route) => self.reply_plane(&route, &site, parts).await,
            Route::Home(_) if self.index.is_none() => Reply::redirect("/plane"),
            route => self.reply_page(route, site, parts).await,
        }
    }

    /// The control plane, for those who may look at it: with the pass, if there is one.
    async fn open_plane(&self, parts: &Parts) -> Result<Arc<PlaneWatch>, Problem> {
        let plane = self.plane.as_ref().ok_or_else(no_page)?;
        // It knows the names that the server answers to.
        self.gate.admit(parts).await?;
        match &self.pass {
            Some(pass) if !pass.is_shown(&parts.headers) => Err(pass::pass_wanted()),
            _ => Ok(plane.clone()),
        }
    }

    async fn reply_plane(&self, route: &PlaneRoute, site: &PageSite, parts: &Parts) -> Reply {
        let made = self.make_plane_page(route, site, parts).await;
        made.map_or_else(|problem| Reply::problem(site, &problem), Reply::page)
    }

    async fn make_plane_page(
        &self,
        route: &PlaneRoute,
        site: &PageSite,
        parts: &Parts,
    ) -> Result<String, Problem> {
        let look = self.open_plane(parts).await?.look_now().await;
        let report = look.as_ref().as_ref().map_err(|problem| {
            let PlaneProblem { message, hint } = problem;
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, message, hint)
        })?;
        let view = PlaneView { site, report, shelved: self.find_shelved(report).await };
        let PlaneRoute::Package(id) = route else { return Ok(plane_page(&view)) };
        let package = report.packages.iter().find(|package| package.id == *id);
        let package = package.ok_or_else(|| {
            let hint = "look at all that is installed at /plane";
            Problem::new(StatusCode::NOT_FOUND, format!("{id} is not installed"), hint)
        })?;
        Ok(plane_package_page(&view, package))
    }

    /// Pages of the catalog about installed packages, by the reference that was asked for.
    async fn find_shelved(&self, report: &PlaneReport) -> BTreeMap<String, String> {
        let Some(index) = self.index.clone() else { return BTreeMap::new() };
        let wanted: Vec<String> = report.packages.iter().map(|it| it.package.clone()).collect();
        let work = move || answers::find_pages(&index, &wanted);
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    async fn reply_page(&self, route: Route, site: PageSite, parts: &Parts) -> Reply {
        let Some(index) = self.index.clone() else { return Reply::problem(&site, &no_page()) };
        let Admitted { rights, otherwise } = match self.gate.admit(parts).await {
            Ok(admitted) => admitted,
            Err(problem) => return Reply::problem(&site, &problem),
        };
        let work = move || {
            let made = match otherwise {
                // The same answer, whether there is nothing or nothing for the asker.
                Some(problem) if !index.has_readable(&rights).unwrap_or_default() => Err(problem),
                _ => answers::answer_route(&index, &rights, &site, route),
            };
            made.map_or_else(|problem| Reply::problem(&site, &problem), Reply::page)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Reply::problem(&PageSite::default(), &cannot_answer()))
    }

    fn site_of(&self, parts: &Parts) -> PageSite {
        let said = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
        let said = parts.uri.authority().map(::http::uri::Authority::as_str).or(said);
        let said = said.filter(|host| host.len() <= HOST_LENGTH_MAX).unwrap_or("localhost");
        // Cookies prove nothing: browsers send those of every port of this host.
        let is_signed_in = parts.headers.contains_key(AUTHORIZATION)
            || self.pass.as_ref().is_some_and(|pass| pass.is_shown(&parts.headers));
        PageSite {
            host: said.to_owned(),
            stands_in: self.pass.is_some(),
            is_signed_in,
            knows_users: self.gate.knows_users(),
            has_catalog: self.index.is_some(),
            has_plane: self.plane.is_some(),
        }
    }
}

fn reply_asset(site: &PageSite, name: &str) -> Reply {
    let Some(asset) = assets::find_asset(name) else {
        return Reply::problem(site, &no_page());
    };
    let (media_type, body) = (asset.media_type, asset.content.as_bytes().to_vec());
    Reply { media_type, body, is_immutable: true, ..Reply::page(String::new()) }
}

/// Asks a browser for a name and a password; a browser that sends one is led home, where they count.
fn sign_in(site: &PageSite) -> Reply {
    if site.is_signed_in {
        return Reply::redirect("/");
    }
    let hint = "use the name and password of this registry";
    Reply::problem(site, &Problem::new(StatusCode::UNAUTHORIZED, "sign in to see more", hint))
}

/// A stream of news, unless too many wait for them.
fn start_news(plane: Arc<PlaneWatch>) -> Result<Response, Problem> {
    plane.stream_news().ok_or_else(|| {
        let hint = "close some of the pages that are open, and try again";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many pages wait for news", hint)
    })
}

fn no_page() -> Problem {
    let hint = "go back, or begin with all packages";
    Problem::new(StatusCode::NOT_FOUND, "there is no such page", hint)
}

fn cannot_answer() -> Problem {
    let hint = "try again; the server's log says more";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made", hint)
}

fn finish_response(reply: Reply, parts: &Parts) -> Response {
    let tag = format!("\"{}\"", Digest::of(&reply.body).hex());
    let known = parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = reply.status == StatusCode::OK
        && known.is_some_and(|known| known.split(',').any(|it| it.trim() == tag));
    let mut response = Response::new(match () {
        () if is_known || parts.method == Method::HEAD => Body::empty(),
        () => Body::from(reply.body),
    });
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { reply.status };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(shield::caching(reply.is_immutable)));
    shield::hold_page(headers);
    let own = reply.headers.into_iter().chain([(ETAG, tag)]);
    for (name, value) in own {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}
