//! How long the explorer takes for pages of a package with many kinds, and how large they are.
//!
//! `scripts/bench-catalog` runs it: `page_times CATALOG [TIMES]` asks for each page of the only package of
//! a catalog (`team/package`) so many times, without a network. Beside each figure is what it should be,
//! and whether it is.

#![expect(clippy::print_stdout, reason = "a program for people")]

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use catalog::http::{Admitted, Gate, Problem};
use catalog::{Index, Question, Rights};
use explorer::http::{Exhibition, router};
use http_body_util::BodyExt as _;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower::ServiceExt as _;

const TIMES: usize = 100;
/// What a page should take at most, and weigh.
const TIME_MAX: Duration = Duration::from_millis(50);
const SIZE_MAX: usize = 100_000;

type Failed = Box<dyn Error>;

struct Anybody;

#[async_trait]
impl Gate for Anybody {
    async fn admit(&self, _: &Parts) -> Result<Admitted, Problem> {
        Ok(Admitted { rights: Rights::all(), otherwise: None })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [catalog, rest @ ..] = words.as_slice() else {
        return Err("usage: page_times CATALOG [TIMES]".into());
    };
    let times = rest.first().map_or(Ok(TIMES), |count| count.parse())?;
    let index = Arc::new(Index::open(Path::new(catalog))?);
    let kinds = index.kinds(&Question::about(""), &Rights::all())?.items;
    let kind = kinds.get(kinds.len() / 2).ok_or("the catalog has no kinds")?;
    let kind = kind.definition.name.clone();
    let exhibition =
        Exhibition { index: Some(index), gate: Arc::new(Anybody), pass: None, plane: None };
    let pages = router(exhibition);
    let package = "/p/team/package";
    for path in [
        "/".to_owned(),
        "/kinds".to_owned(),
        package.to_owned(),
        format!("{package}?view=kinds"),
        format!("{package}?view=kinds&page=20"),
        format!("{package}?view=versions"),
        format!("/crd/{kind}"),
        format!("/search?q={}", kind.split('.').next().unwrap_or_default()),
    ] {
        time_page(&pages, &path, times).await?;
    }
    Ok(())
}

/// Asks for a page many times, and prints how long that took.
async fn time_page(pages: &Router, path: &str, count: usize) -> Result<(), Failed> {
    let (mut times, mut size) = (Vec::with_capacity(count), 0);
    for _ in 0..count.max(1) {
        let begun = Instant::now();
        let response = pages.clone().oneshot(Request::get(path).body(Body::empty())?).await?;
        let status = response.status();
        size = response.into_body().collect().await?.to_bytes().len();
        times.push(begun.elapsed());
        if status != StatusCode::OK {
            return Err(format!("{path} is answered with {status}").into());
        }
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    let verdict = |is_met| if is_met { "met" } else { "MISSED" };
    println!(
        "page {path}: p50 {:.1} ms, p99 {:.1} ms, goal < {} ms: {}; {} kB, goal < {} kB: {}",
        at(50).as_secs_f64() * 1e3,
        at(99).as_secs_f64() * 1e3,
        TIME_MAX.as_millis(),
        verdict(at(99) < TIME_MAX),
        size / 1000,
        SIZE_MAX / 1000,
        verdict(size < SIZE_MAX),
    );
    Ok(())
}
