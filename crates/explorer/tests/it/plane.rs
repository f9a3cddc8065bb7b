//! A control plane as pages: in which words, to whom, and how large.

use crate::hostile::{CORPUS, assert_harmless};
use crate::support::Site;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use catalog::Rights;
use catalog::http::{Admitted, Gate, Problem};
use explorer::http::{Exhibition, router};
use explorer::pass::Pass;
use explorer::plane::{
    PlaneEvent, PlaneNeed, PlanePackage, PlaneProblem, PlaneReport, PlaneRevision, PlaneSource,
};
use http_body_util::BodyExt as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// A control plane that is as a test says.
struct Told {
    report: Mutex<Result<PlaneReport, PlaneProblem>>,
    stop: watch::Sender<bool>,
}

#[async_trait]
impl PlaneSource for Told {
    async fn read_report(&self) -> Result<PlaneReport, PlaneProblem> {
        self.report.lock().unwrap().clone()
    }

    async fn until_stopped(&self) {
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }
}

/// Requests are known by their host alone.
struct HostGate;

#[async_trait]
impl Gate for HostGate {
    async fn admit(&self, request: &Parts) -> Result<Admitted, Problem> {
        if request.headers.get("host").is_some_and(|it| it == "127.0.0.1:5000") {
            return Ok(Admitted { rights: Rights::all(), otherwise: None });
        }
        Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "another name is meant",
            "use the address",
        ))
    }

    fn knows_users(&self) -> bool {
        false
    }
}

fn told(report: PlaneReport) -> Arc<Told> {
    Arc::new(Told { report: Mutex::new(Ok(report)), stop: watch::Sender::new(false) })
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5000))
}

fn pages(source: Arc<Told>, pass: Option<Pass>) -> Router {
    router(Exhibition { index: None, gate: Arc::new(HostGate), pass, plane: Some(source) })
}

async fn get(router: &Router, path: &str, cookie: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::get(path).header("host", "127.0.0.1:5000").header("cookie", cookie);
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

fn package(kind: &'static str, name: &str, state: &'static str) -> PlanePackage {
    PlanePackage {
        id: format!("{}/{name}", kind.to_lowercase()),
        name: name.to_owned(),
        kind,
        version: "v0.1.0".to_owned(),
        package: format!("registry.example.org/team/{name}:v0.1.0"),
        state,
        is_well: state == "healthy",
        revisions: vec![PlaneRevision {
            name: format!("{name}-1a2b3c"),
            number: 1,
            state: "active".to_owned(),
            version: "v0.1.0".to_owned(),
            objects: 4,
        }],
        ..PlanePackage::default()
    }
}

fn need(package: &str, installed: Option<&str>) -> PlaneNeed {
    PlaneNeed {
        package: package.to_owned(),
        constraints: ">=v0.1.0".to_owned(),
        installed: installed.map(str::to_owned),
        version: installed.map(|_| "v0.1.0".to_owned()),
        satisfied: installed.is_some(),
        reason: None,
    }
}

fn report() -> PlaneReport {
    let mut top = package("Configuration", "platform", "healthy");
    top.dependencies = vec![
        need("registry.example.org/team/harbour", Some("provider/harbour")),
        need("registry.example.org/team/far", None),
    ];
    let mut harbour = package("Provider", "harbour", "unhealthy");
    harbour.messages = vec!["it does not run: no image can be pulled".to_owned()];
    harbour.needed_by = vec!["configuration/platform".to_owned()];
    let event = PlaneEvent {
        time: "2026-11-18T10:42:11Z".to_owned(),
        is_warning: true,
        kind: "Provider".to_owned(),
        name: "harbour".to_owned(),
        reason: "InstallRevision".to_owned(),
        message: "cannot pull".to_owned(),
        count: 3,
    };
    PlaneReport {
        place: "https://127.0.0.1:6443".to_owned(),
        packages: vec![top, harbour],
        unresolved: Some("registry.example.org/team/far is nowhere".to_owned()),
        events: vec![event],
    }
}

#[tokio::test]
async fn what_is_only_simulated_says_so_in_the_list_and_on_its_page() {
    let mut report = report();
    let remark = "nothing runs here: pods are only simulated";
    report.packages[1] = package("Provider", "harbour", "healthy");
    report.packages[1].remark = Some(remark.to_owned());
    let pages = pages(told(report), None);
    for path in ["/plane", "/plane/provider/harbour"] {
        let (status, _, page) = get(&pages, path, "").await;
        assert_eq!((status, page.matches(remark).count()), (StatusCode::OK, 1), "{path}: {page}");
    }
    let (_, _, page) = get(&pages, "/plane/configuration/platform", "").await;
    assert!(!page.contains(remark), "{page}");
}

#[tokio::test]
async fn a_control_plane_tells_what_is_installed_how_it_is_and_what_is_in_the_way() {
    let pages = pages(told(report()), None);
    let (status, _, page) = get(&pages, "/plane", "").await;
    assert_eq!(status, StatusCode::OK);
    for text in [
        "1 of 2 packages healthy",
        "1 to look at",
        "it does not run: no image can be pulled",
        "registry.example.org/team/far is nowhere",
        "not installed",
        "2026-11-18 10:42:11",
        "×3",
        "data-live=\"/plane/news\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(page.matches("class=\"wire\"").count(), 2);
    let (troubled, well) = (page.find(">harbour</a>"), page.find(">platform</a>"));
    assert!(troubled < well, "what needs attention stands first");
    // Without a catalog there is nothing that leads to one.
    assert!(!page.contains("href=\"/kinds\"") && !page.contains("Sign in"));
    let (_, headers, _) = get(&pages, "/", "").await;
    assert_eq!(headers["location"], "/plane");
    assert_eq!(get(&pages, "/kinds", "").await.0, StatusCode::NOT_FOUND);
    let (_, _, page) = get(&pages, "/plane/provider/harbour", "").await;
    for text in ["harbour-1a2b3c", "apron status provider/harbour", "platform", "InstallRevision"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(get(&pages, "/plane/provider/none", "").await.0, StatusCode::NOT_FOUND);
    let (_, _, page) = get(&self::pages(told(PlaneReport::default()), None), "/plane", "").await;
    assert!(page.contains("Nothing is installed"));
}

#[tokio::test]
async fn only_the_pass_opens_a_control_plane_and_only_under_its_own_name() {
    let pass = Pass::from_key("secret", address());
    let pages = pages(told(report()), Some(pass.clone()));
    let opened = pass.address(address());
    for path in ["/plane", "/plane/provider/harbour", "/plane/news", "/plane?pass=wrong"] {
        let (status, _, page) = get(&pages, path, "apron-explorer-5000=wrong").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        assert!(!page.contains("harbour"), "{path}");
    }
    let query = opened.split_once("/?").unwrap().1;
    let (_, headers, _) = get(&pages, &format!("/?{query}"), "").await;
    let cookie = headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(get(&pages, "/plane", &cookie).await.0, StatusCode::OK);
    let request =
        Request::get("/plane").header("host", "evil.example.org").header("cookie", &cookie);
    let answer = pages.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let request = Request::builder().method(method).uri("/plane").header("cookie", &cookie);
        let request = request.header("host", "127.0.0.1:5000").body(Body::empty()).unwrap();
        let answer = pages.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}

#[tokio::test]
async fn news_are_told_once_each_and_end_with_the_control_plane() {
    let source = told(report());
    let pages = pages(source.clone(), None);
    let request = Request::get("/plane/news").header("host", "127.0.0.1:5000");
    let response = pages.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"retry: 2000\nevent: changed\ndata: "), "{first:?}");
    source.report.lock().unwrap().as_mut().unwrap().packages.clear();
    let second = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(second.starts_with(b"retry") && first != second, "{second:?}");
    source.stop.send_replace(true);
    assert!(body.frame().await.is_none(), "an open page does not keep a server from stopping");
}

#[tokio::test]
async fn a_control_plane_that_cannot_be_read_says_why() {
    let source = told(report());
    *source.report.lock().unwrap() = Err(PlaneProblem {
        message: "cannot list providers.pkg.crossplane.io: forbidden".to_owned(),
        hint: "ask for the right to list them".to_owned(),
    });
    let (status, _, page) = get(&pages(source, None), "/plane", "").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.contains("forbidden") && page.contains("Ask for the right"), "{page}");
}

#[tokio::test]
async fn texts_of_a_cluster_are_texts_and_a_thousand_packages_have_a_page() {
    for text in CORPUS {
        let mut report = report();
        for package in &mut report.packages {
            for place in [&mut package.name, &mut package.version, &mut package.package] {
                text.clone_into(place);
            }
            package.messages = vec![text.to_owned()];
            package.waiting = Some(text.to_owned());
            text.clone_into(&mut package.revisions[0].name);
            text.clone_into(&mut package.revisions[0].state);
            package.dependencies = vec![need(text, None), need(text, Some(text))];
        }
        text.clone_into(&mut report.events[0].message);
        text.clone_into(&mut report.events[0].name);
        text.clone_into(&mut report.events[0].time);
        report.unresolved = Some(text.to_owned());
        let pages = pages(told(report), None);
        for path in ["/plane", "/plane/provider/harbour"] {
            let (status, _, page) = get(&pages, path, "").await;
            assert_eq!(status, StatusCode::OK);
            assert_harmless(&page, path);
        }
    }
    let many = (0..1000).map(|number| {
        let mut one = package("Provider", &format!("provider-{number}"), "healthy");
        one.messages = vec!["x".repeat(5000); 50];
        one.dependencies =
            vec![need("registry.example.org/team/p", Some("provider/provider-0")); 5];
        one
    });
    let packages = many.collect();
    let pages = pages(told(PlaneReport { packages, ..report() }), None);
    let (_, _, page) = get(&pages, "/plane", "").await;
    assert!(page.len() < 500_000, "{}", page.len());
    assert!(page.contains("too many for a picture"));
    let site = Site::new();
    assert_eq!(site.get("/plane").await.status, StatusCode::NOT_FOUND);
}
