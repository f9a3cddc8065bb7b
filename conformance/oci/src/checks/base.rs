//! end-1: the base, by which clients know a registry.

use crate::check::{Entry, table};
use crate::context::Context;
use crate::exchange::Verdict;

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "end-1" Must "base.get" => get,
            "Determining support: GET /v2/ MUST answer 200 (with credentials where it wants some)";
        one "end-1" Should "base.no-slash" => no_slash,
            "end-1: /v2 without the slash leads to the same place (clients and probes use it)";
        one "end-1" Should "base.api-version" => api_version,
            "Legacy Docker headers: Docker-Distribution-API-Version: registry/2.0, which docker reads";
        one "end-1" Should "base.method" => method,
            "RFC 9110 15.5.6: a method that a resource does not have is refused with 4xx";
        one "end-1" Must "base.unknown-path" => unknown_path,
            "RFC 9110 15.5.5: a path that is no endpoint is refused with 4xx, never 5xx or 2xx";
    }
}

async fn get(context: &Context) -> Verdict {
    context.client.get("/v2/").send().await?.expect(&[200]).map(drop)
}

async fn no_slash(context: &Context) -> Verdict {
    let answer = context.client.get("/v2").send().await?.expect(&[200, 301, 302, 307, 308])?;
    if answer.status() == 200 {
        return Ok(());
    }
    let place = crate::context::location(&answer)?;
    if place.target != "/v2/" {
        return Err(answer.fail("status 200, or a redirect to /v2/"));
    }
    Ok(())
}

async fn api_version(context: &Context) -> Verdict {
    let answer = context.client.get("/v2/").send().await?.expect(&[200])?;
    answer.need_value("docker-distribution-api-version", "registry/2.0")
}

async fn method(context: &Context) -> Verdict {
    let repo = context.repo();
    for (method, rest) in [
        ("POST", "manifests/latest"),
        ("PATCH", "manifests/latest"),
        ("PUT", "tags/list"),
        ("DELETE", "tags/list"),
    ] {
        repo.request(method, rest).send().await?.refused()?;
    }
    Ok(())
}

async fn unknown_path(context: &Context) -> Verdict {
    let repo = context.repo();
    for rest in ["", "nothing", "manifests", "manifests/", "blobs/", "tags", "referrers/"] {
        repo.get(rest).send().await?.refused()?;
    }
    Ok(())
}
