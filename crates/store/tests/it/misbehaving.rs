//! Registries that stall, lie, go in circles and break off.

use crate::stub::{answer, broken, header, streamed, stub};
use crate::{chain, repository, tag};
use bytes::Bytes;
use futures::{StreamExt, stream};
use oci::{Descriptor, Identifier, MediaType};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::remote::{Client, Retry, RetryWatch, Settings, transport};
use store::{Advice, Store, fetch_bytes};
use tokio::time::Instant;

const CONTENT: &[u8] = b"0123456789abcdef";

fn descriptor() -> Descriptor {
    Descriptor::of(MediaType::OCTET_STREAM, CONTENT)
}

fn password() -> Keychain {
    Keychain::fixed(Credential::Basic { user: "u".into(), password: "p".into() })
}

fn manifest() -> Vec<u8> {
    let config = Descriptor::of(MediaType::DOCKER_CONFIG, b"{}");
    let raw = oci::Raw::from_manifest(&oci::Manifest::docker(config, Vec::new())).unwrap();
    raw.bytes
}

const DOCKER: (&str, &str) =
    ("content-type", "application/vnd.docker.distribution.manifest.v2+json");

#[tokio::test(start_paused = true)]
async fn a_registry_that_never_answers_is_given_up_in_time() {
    let service = tower::service_fn(|_| {
        futures::future::pending::<
            Result<http::Response<store::remote::Body>, store::remote::BoxError>,
        >()
    });
    let settings = Settings { idle_timeout: Duration::from_secs(20), ..Settings::default() };
    let client = Client::new(transport(service), Keychain::anonymous(), settings);
    let start = Instant::now();
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert_eq!(error.advice(), Advice::Timeout, "{}", chain(&error));
    let took = start.elapsed();
    assert!((40..=45).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_stalls_is_given_up_in_time() {
    let (client, log) = stub(Keychain::anonymous(), |_, _| {
        let head = stream::iter([Ok(Bytes::from_static(&CONTENT[..4]))]);
        streamed(200, &[], head.chain(stream::pending()))
    });
    let remote = client.repository(repository("r.io/a"));
    let error = fetch_bytes(&remote, &descriptor(), 100).await.unwrap_err();
    assert_eq!(error.advice(), Advice::Timeout, "{}", chain(&error));
    assert!(log.len() <= 4, "{:?}", log.lines());
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let (client, log) =
        stub(Keychain::anonymous(), |_, _| answer(307, &[("location", "/v2/a/tags/list")], ""));
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert!(chain(&error).contains("redirects more than 5 times"), "{}", chain(&error));
    assert_eq!(log.len(), 6);
}

#[tokio::test]
async fn a_redirect_to_plain_http_is_refused() {
    let (client, log) = stub(Keychain::anonymous(), |_, _| {
        answer(302, &[("location", "http://evil.org/blob")], "")
    });
    let remote = client.repository(repository("r.io/a"));
    let error = remote.blob(&descriptor()).await.unwrap_err();
    assert!(chain(&error).contains("plain HTTP"), "{}", chain(&error));
    assert_eq!(log.len(), 1);
}

#[tokio::test]
async fn credentials_stay_with_the_host_they_are_for() {
    let (client, log) = stub(password(), |_, request| match request.uri().host() {
        Some("cdn.org") => {
            assert_eq!(header(request, "authorization"), "");
            answer(200, &[], CONTENT)
        }
        _ if header(request, "authorization").is_empty() => {
            answer(401, &[("www-authenticate", "Basic realm=x")], "")
        }
        _ => answer(307, &[("location", "https://cdn.org/blob?signature=1")], ""),
    });
    let remote = client.repository(repository("r.io/a"));
    assert_eq!(fetch_bytes(&remote, &descriptor(), 100).await.unwrap(), CONTENT);
    assert_eq!(log.lines().last().unwrap(), "GET cdn.org/blob?signature=1");
}

#[tokio::test]
async fn a_401_for_ever_is_an_error_soon() {
    let (client, log) = stub(password(), |_, _| {
        let list = r#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you"}]}"#;
        answer(401, &[("www-authenticate", "Basic realm=x")], list)
    });
    let remote = client.repository(repository("r.io/a"));
    let error = remote.manifest(&tag("v1")).await.unwrap_err();
    assert_eq!(error.advice(), Advice::Unauthorized { registry: "r.io".into() });
    assert!(chain(&error).contains("who are you (UNAUTHORIZED)"), "{}", chain(&error));
    assert_eq!(log.len(), 2);
}

#[tokio::test]
async fn an_unknown_kind_of_login_is_said() {
    let (client, _) =
        stub(password(), |_, _| answer(401, &[("www-authenticate", "Negotiate")], ""));
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert!(chain(&error).contains("`Negotiate`"), "{}", chain(&error));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_within_reason() {
    for (asked, least, most) in [("7", 7, 8), ("86400", 30, 31), ("nonsense", 0, 1)] {
        let (client, log) = stub(Keychain::anonymous(), move |before, _| match before {
            0 => answer(429, &[("retry-after", asked)], ""),
            _ => answer(200, &[], r#"{"tags":["v1"]}"#),
        });
        let start = Instant::now();
        let tags = client.repository(repository("r.io/a")).tags().await.unwrap();
        assert_eq!((tags, log.len()), (vec!["v1".to_owned()], 2));
        let took = start.elapsed().as_secs();
        assert!((least..=most).contains(&took), "{asked}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn tries_are_bounded() {
    for (status, advice) in
        [(429, Advice::RateLimited), (503, Advice::Other), (504, Advice::Timeout)]
    {
        let (client, log) = stub(Keychain::anonymous(), move |_, _| answer(status, &[], "busy"));
        let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
        assert_eq!((error.advice(), log.len()), (advice, 4));
    }
    for (status, advice) in [(403, Advice::Forbidden), (418, Advice::Other)] {
        let (client, log) = stub(Keychain::anonymous(), move |_, _| answer(status, &[], "no"));
        let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
        assert_eq!((error.advice(), log.len()), (advice, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_download_goes_on_where_it_broke() {
    let (client, log) = stub(Keychain::anonymous(), |before, request| {
        let range = header(request, "range").to_owned();
        let start: usize =
            range.strip_prefix("bytes=").map_or(0, |it| it.trim_end_matches('-').parse().unwrap());
        assert_eq!(start, before * 5);
        let end = (start + 5).min(CONTENT.len());
        let content_range = format!("bytes {start}-{}/{}", CONTENT.len() - 1, CONTENT.len());
        let status = if start == 0 { 200 } else { 206 };
        let piece = stream::iter([Ok(Bytes::from_static(&CONTENT[start..end])), Err(broken())]);
        streamed(status, &[("content-range", &content_range)], piece)
    });
    let remote = client.repository(repository("r.io/a"));
    assert_eq!(fetch_bytes(&remote, &descriptor(), 100).await.unwrap(), CONTENT);
    assert_eq!(log.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_knows_no_ranges_begins_again() {
    let (client, _) = stub(Keychain::anonymous(), |before, _| match before {
        0 => {
            streamed(200, &[], stream::iter([Ok(Bytes::from_static(&CONTENT[..7])), Err(broken())]))
        }
        _ => answer(200, &[], CONTENT),
    });
    let remote = client.repository(repository("r.io/a"));
    assert_eq!(fetch_bytes(&remote, &descriptor(), 100).await.unwrap(), CONTENT);
}

#[tokio::test(start_paused = true)]
async fn a_download_that_breaks_for_ever_is_given_up() {
    let (client, log) = stub(Keychain::anonymous(), |before, _| match before {
        0 => {
            streamed(200, &[], stream::iter([Ok(Bytes::from_static(&CONTENT[..7])), Err(broken())]))
        }
        _ => streamed(206, &[("content-range", "bytes 7-15/16")], stream::iter([Err(broken())])),
    });
    let remote = client.repository(repository("r.io/a"));
    let error = fetch_bytes(&remote, &descriptor(), 100).await.unwrap_err();
    assert_eq!(error.advice(), Advice::Unreachable { host: "r.io".into() }, "{}", chain(&error));
    assert_eq!(log.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn lies_about_blobs_are_found_out() {
    let lies: [&[u8]; 3] = [b"0123456789abcdeX", b"0123456789", b"0123456789abcdef and more"];
    for lie in lies {
        let (client, _) = stub(Keychain::anonymous(), move |_, request| {
            let rest = header(request, "range").is_empty();
            if rest { answer(200, &[], lie) } else { answer(416, &[], "") }
        });
        let remote = client.repository(repository("r.io/a"));
        let error = fetch_bytes(&remote, &descriptor(), 100).await.unwrap_err();
        assert!(matches!(error.advice(), Advice::Corrupt | Advice::Other), "{}", chain(&error));
    }
}

#[tokio::test]
async fn lies_about_manifests_are_found_out() {
    let (client, _) = stub(Keychain::anonymous(), |_, _| answer(200, &[DOCKER], manifest()));
    let remote = client.repository(repository("r.io/a"));
    let other = Identifier::Digest(oci::Digest::of(b"other"));
    assert_eq!(remote.manifest(&other).await.unwrap_err().advice(), Advice::Corrupt);
    let wrong = oci::Digest::of(b"other").to_string();
    let (client, _) = stub(Keychain::anonymous(), move |_, _| {
        answer(200, &[DOCKER, ("docker-content-digest", &wrong)], manifest())
    });
    let remote = client.repository(repository("r.io/a"));
    assert_eq!(remote.manifest(&tag("v1")).await.unwrap_err().advice(), Advice::Corrupt);
    let (client, _) = stub(Keychain::anonymous(), |_, _| answer(200, &[], "<html>welcome</html>"));
    let remote = client.repository(repository("r.io/a"));
    assert_eq!(remote.manifest(&tag("v1")).await.unwrap_err().advice(), Advice::Corrupt);
}

#[tokio::test]
async fn endless_bodies_are_cut_off() {
    let sent = Arc::new(AtomicUsize::new(0));
    for (status, limit) in [(200, 5 << 20), (418, 128 << 10)] {
        sent.store(0, Ordering::Relaxed);
        let counter = Arc::clone(&sent);
        let (client, _) = stub(Keychain::anonymous(), move |_, _| {
            let counter = Arc::clone(&counter);
            let endless = stream::repeat_with(move || {
                counter.fetch_add(1 << 14, Ordering::Relaxed);
                Ok(Bytes::from(vec![b'x'; 1 << 14]))
            });
            streamed(status, &[DOCKER], endless)
        });
        let error = client.repository(repository("r.io/a")).manifest(&tag("v1")).await.unwrap_err();
        assert!(chain(&error).len() < 1000);
        assert!(status != 200 || error.advice() == Advice::TooLarge);
        assert!(sent.load(Ordering::Relaxed) <= limit);
    }
}

#[tokio::test]
async fn tags_are_read_page_by_page() {
    let (client, log) =
        stub(Keychain::anonymous(), |_, request| match request.uri().query().unwrap() {
            "n=1000" => {
                let link = ("link", r#"</v2/a/tags/list?n=2&last=v2>; rel="next""#);
                answer(200, &[link], r#"{"name":"a","tags":["v2","v1"]}"#)
            }
            "n=2&last=v2" => {
                let link = ("link", "<https://r.io/v2/a/tags/list?n=2&last=v4>; rel=next");
                answer(200, &[link], r#"{"tags":["v4","v2"]}"#)
            }
            _ => answer(200, &[], r#"{"tags":null}"#),
        });
    let tags = client.repository(repository("r.io/a")).tags().await.unwrap();
    assert_eq!(tags, ["v1", "v2", "v4"]);
    assert_eq!(log.len(), 3);
}

#[tokio::test]
async fn pages_that_never_end_do() {
    let circle =
        |_: usize, _: &_| answer(200, &[("link", "</v2/a/tags/list?n=1000>; rel=next")], "{}");
    let (client, log) = stub(Keychain::anonymous(), circle);
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert!(chain(&error).contains("circle"), "{}", chain(&error));
    assert_eq!(log.len(), 1);
    let (client, log) = stub(Keychain::anonymous(), |before, _| {
        let link = format!("</v2/a/tags/list?last={before}>; rel=next");
        answer(200, &[("link", &link)], "{}")
    });
    client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert_eq!(log.len(), 1000);
}

#[tokio::test]
async fn a_head_that_says_too_little_is_followed_by_a_get() {
    let (client, log) = stub(Keychain::anonymous(), |_, request| match request.method().as_str() {
        "HEAD" => answer(200, &[DOCKER], ""),
        _ => answer(200, &[DOCKER], manifest()),
    });
    let head = client.repository(repository("r.io/a")).head(&tag("v1")).await.unwrap().unwrap();
    assert_eq!(head.digest, oci::Digest::of(&manifest()));
    assert_eq!(log.lines(), ["HEAD r.io/v2/a/manifests/v1", "GET r.io/v2/a/manifests/v1"]);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_breaks_off_is_fetched_again() {
    let (client, log) = stub(Keychain::anonymous(), |before, _| match before {
        0 => {
            let half = Bytes::from(manifest()[..20].to_vec());
            streamed(200, &[DOCKER], stream::iter([Ok(half), Err(broken())]))
        }
        _ => answer(200, &[DOCKER], manifest()),
    });
    let remote = client.repository(repository("r.io/a"));
    let raw = remote.manifest(&tag("v1")).await.unwrap().unwrap();
    assert_eq!((raw.bytes, log.len()), (manifest(), 2));
}

/// An endless answer, a byte a second.
fn trickle() -> impl futures::Stream<Item = Result<Bytes, store::remote::BoxError>> {
    stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok(Bytes::from_static(b"0")), ()))
    })
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_sends_a_byte_a_second_is_given_up() {
    let (client, log) = stub(Keychain::anonymous(), |_, _| streamed(200, &[DOCKER], trickle()));
    let remote = client.repository(repository("r.io/a"));
    // A megabyte, which would take twelve days.
    let large = Descriptor::of(MediaType::OCTET_STREAM, &vec![b'0'; 1 << 20]);
    let error = fetch_bytes(&remote, &large, 1 << 21).await.unwrap_err();
    let said = chain(&error);
    assert!(said.contains("r.io sent less than 1024 bytes a second"), "{said}");
    assert_eq!(error.advice(), Advice::Timeout);
    let error = remote.manifest(&tag("v1")).await.unwrap_err();
    assert_eq!(error.advice(), Advice::Timeout, "{}", chain(&error));
    // Trying again would take as long.
    assert_eq!(log.len(), 2, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_the_registrys_fault() {
    let (client, _) = stub(Keychain::anonymous(), |_, _| {
        let pieces = CONTENT.iter().map(|byte| Ok(Bytes::copy_from_slice(&[*byte])));
        streamed(200, &[], stream::iter(pieces))
    });
    let remote = client.repository(repository("r.io/a"));
    let mut blob = remote.blob(&descriptor()).await.unwrap().unwrap();
    let mut bytes = Vec::new();
    while let Some(chunk) = blob.stream.next().await {
        bytes.extend_from_slice(&chunk.unwrap());
        tokio::time::sleep(Duration::from_secs(1000)).await;
    }
    assert_eq!(bytes, CONTENT);
}

#[tokio::test(start_paused = true)]
async fn retries_are_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let settings = Settings {
        retries: RetryWatch::new(move |retry| notes.lock().unwrap().push(retry.clone())),
        ..Settings::default()
    };
    let service = tower::service_fn(|_: http::Request<store::remote::Body>| async {
        Ok::<_, store::remote::BoxError>(answer(503, &[("retry-after", "7")], ""))
    });
    let client = Client::new(transport(service), Keychain::anonymous(), settings);
    client.repository(repository("r.io/a")).tags().await.unwrap_err();
    let told = told.lock().unwrap();
    let expected: Vec<_> = (1..=3)
        .map(|tries| Retry {
            registry: "r.io".to_owned(),
            why: "answered with 503 Service Unavailable".to_owned(),
            pause: Duration::from_secs(7),
            tries,
            tries_max: 4,
        })
        .collect();
    assert_eq!(*told, expected);
}
