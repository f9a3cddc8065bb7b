//! Paths that try to leave the registry: each is refused, and no file comes.

use crate::check::{Entry, table};
use crate::content::image;
use crate::context::{Context, location};
use crate::digest::Algorithm;
use crate::exchange::{Exchange, Verdict};

pub(super) fn entries() -> Vec<Entry> {
    table! {
        one "names" Must "path.dots" => dots,
            "RFC 3986 6.2.2.3: .. in a path does not lead out of the registry: 4xx";
        one "names" Must "path.encoded-dots" => encoded_dots,
            "RFC 3986 2.1: %2e%2e and %2f do not lead out of the registry either: 4xx";
        one "names" Must "path.digest" => digest,
            "Image specification: a digest with slashes or dots is no digest: 4xx";
        one "names" Must "path.tag" => tag,
            "Pulling manifests: a reference with slashes or dots is no tag: 4xx";
        one "names" Must "path.upload" => upload,
            "An upload session whose name is a path does not exist: 4xx";
        one "names" Must "path.write" => write,
            "Nothing is written outside: pushes to names with dots are refused with 4xx";
        one "names" Must "path.query" => query,
            "Query values with paths (digest, mount, from, last) are refused or do nothing, never 5xx";
        one "names" Must "path.nul-and-backslash" => nul_and_backslash,
            "NUL and backslash are in no name, tag or digest: 4xx";
        one "names" Should "path.long" => long,
            "RFC 9110 15.5.15: a target of 20 000 bytes is refused with 4xx, not with a crash";
    }
}

/// Refused at once, or sent to a tidier path (as Go's router does) and refused there.
async fn refused(context: &Context, method: &'static str, target: &str) -> Verdict {
    let mut answer = context.client.request(method, target).send().await?;
    for _ in 0..5 {
        no_file(&answer)?;
        if !matches!(answer.status(), 301 | 302 | 307 | 308) {
            break;
        }
        let place = location(&answer)?;
        answer = context.client.request_url("GET", place).send().await?;
    }
    answer.refused().map(drop)
}

/// No line of a password file, whatever the status.
fn no_file(answer: &Exchange) -> Verdict {
    if answer.answer.body.windows(7).any(|window| window == b"root:x:") {
        return Err(answer.fail("anything but a file of the machine"));
    }
    Ok(())
}

async fn all(context: &Context, method: &'static str, targets: &[String]) -> Verdict {
    for target in targets {
        refused(context, method, target).await?;
    }
    Ok(())
}

/// A repository that exists, so that only the path is wrong.
async fn existing(context: &Context) -> Verdict<String> {
    let (repo, item) = (context.repo(), image(context, Algorithm::Sha256));
    item.push_as(&repo, "latest").await?;
    Ok(repo.name)
}

async fn dots(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let up = "../".repeat(12);
    let targets = [
        format!("/v2/{up}etc/passwd"),
        format!("/v2/{name}/{up}etc/passwd"),
        format!("/v2/{name}/blobs/{up}etc/passwd"),
        format!("/v2/{name}/manifests/{up}etc/passwd"),
        "/v2/../tags/list".to_owned(),
        "/v2/a/../../tags/list".to_owned(),
    ];
    all(context, "GET", &targets).await
}

async fn encoded_dots(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let (up, slashes, twice) =
        ("%2e%2e/".repeat(12), "..%2f".repeat(12), "%252e%252e%252f".repeat(12));
    let targets = [
        format!("/v2/{up}etc/passwd"),
        format!("/v2/{slashes}etc%2fpasswd/tags/list"),
        format!("/v2/{name}/blobs/{slashes}etc%2fpasswd"),
        format!("/v2/{name}/manifests/{slashes}etc%2fpasswd"),
        format!("/v2/{name}/manifests/{up}etc/passwd"),
        format!("/v2/{name}/manifests/{twice}etc%252fpasswd"),
        format!("/v2/{name}%2f..%2f..%2fetc/tags/list"),
    ];
    all(context, "GET", &targets).await
}

async fn digest(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let digests = [
        "sha256:../../../../../../../../etc/passwd",
        "sha256:..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "sha256:%2fetc%2fpasswd",
        "..:..",
        "sha256:.",
        "sha256:",
        ":",
        "sha256%3a..",
    ];
    let targets: Vec<String> = digests
        .iter()
        .flat_map(|digest| {
            ["blobs", "manifests", "referrers"].map(|kind| format!("/v2/{name}/{kind}/{digest}"))
        })
        .collect();
    all(context, "GET", &targets).await
}

async fn tag(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let targets: Vec<String> = [".", "..", "%2e%2e", "..%2flatest", "a%2fb", "latest/", "a/b"]
        .iter()
        .map(|tag| format!("/v2/{name}/manifests/{tag}"))
        .collect();
    all(context, "GET", &targets).await
}

async fn upload(context: &Context) -> Verdict {
    let name = existing(context).await?;
    for session in ["..", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", ".", "%00", "a%2fb"] {
        let target = format!("/v2/{name}/blobs/uploads/{session}");
        refused(context, "GET", &target).await?;
        refused(context, "PATCH", &target).await?;
        refused(context, "DELETE", &target).await?;
    }
    Ok(())
}

async fn write(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let targets = [
        format!("/v2/{name}/%2e%2e/escaped/blobs/uploads/"),
        format!("/v2/{name}%2f..%2fescaped/blobs/uploads/"),
        "/v2/%2e%2e/blobs/uploads/".to_owned(),
        "/v2/%2fetc/blobs/uploads/".to_owned(),
        "/v2//blobs/uploads/".to_owned(),
        format!("/v2/{name}//double/blobs/uploads/"),
        format!("/v2/{name}/./dot/blobs/uploads/"),
    ];
    all(context, "POST", &targets).await
}

async fn query(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let bad = "..%2f..%2f..%2fetc%2fpasswd";
    let gets = [
        format!("/v2/{name}/tags/list?last={bad}"),
        format!("/v2/{name}/tags/list?last=%00"),
        format!("/v2/_catalog?last={bad}"),
    ];
    let posts = [
        format!("/v2/{name}/blobs/uploads/?mount={bad}&from={name}"),
        format!("/v2/{name}/blobs/uploads/?mount=sha256:{bad}&from={bad}"),
        format!(
            "/v2/{name}/blobs/uploads/?mount={}&from={bad}",
            context.unknown(Algorithm::Sha256)
        ),
        format!("/v2/{name}/blobs/uploads/?digest={bad}"),
    ];
    for (method, targets) in [("GET", &gets[..]), ("POST", &posts[..])] {
        for target in targets {
            let request = context.client.request(method, target);
            let scope = format!("repository:{name}:pull,push,delete");
            let answer = request.scope(scope).scope("registry:catalog:*".to_owned()).send().await?;
            no_file(&answer)?;
            let status = answer.status();
            if status == 201 || status >= 500 {
                return Err(answer.fail("a refusal (4xx), or an answer that takes no notice of it"));
            }
        }
    }
    Ok(())
}

async fn nul_and_backslash(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let targets = [
        format!("/v2/{name}%00/tags/list"),
        format!("/v2/{name}/manifests/latest%00"),
        format!("/v2/{name}/manifests/..%5c..%5cetc"),
        "/v2/..%5c..%5cetc/tags/list".to_owned(),
        format!("/v2/{name}/blobs/sha256:%00"),
        format!("/v2/{name}%0d%0a/tags/list"),
        format!("/v2/{name}/manifests/%ff%fe"),
    ];
    all(context, "GET", &targets).await
}

async fn long(context: &Context) -> Verdict {
    let name = existing(context).await?;
    let long = "a".repeat(20_000);
    let targets = [
        format!("/v2/{name}/manifests/{long}"),
        format!("/v2/{long}/tags/list"),
        format!("/v2/{name}/blobs/sha256:{long}"),
    ];
    all(context, "GET", &targets).await?;
    context.client.get("/v2/").send().await?.expect(&[200]).map(drop)
}
