//! Uploads, mounts and tokens, against registries that are particular about them.

use crate::stub::{answer, header, stub};
use crate::{chain, repository, tag};
use async_trait::async_trait;
use base64::Engine;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use oci::{Descriptor, MediaType};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::auth::{Credential, Keychain};
use store::{Advice, Blob, Error, Source, Store};

const CONTENT: &[u8] = b"0123456789abcdef";

fn descriptor() -> Descriptor {
    Descriptor::of(MediaType::OCTET_STREAM, CONTENT)
}

fn source() -> Bytes {
    Bytes::from_static(CONTENT)
}

/// A source that counts how often it is opened, and takes its time.
struct Slow {
    opened: AtomicUsize,
    pause: Duration,
}

#[async_trait]
impl Source for Slow {
    async fn open(&self) -> Result<Blob, Error> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let pause = self.pause;
        let bytes =
            futures::stream::iter(CONTENT.iter().map(|byte| Bytes::copy_from_slice(&[*byte])));
        let stream = bytes.then(move |byte| async move {
            tokio::time::sleep(pause).await;
            Ok(byte)
        });
        Ok(Blob { size: CONTENT.len() as u64, stream: stream.boxed() })
    }
}

#[tokio::test]
async fn a_relative_location_with_a_query_is_followed() {
    let (client, log) = stub(Keychain::anonymous(), |_, request| match request.method().as_str() {
        "POST" => answer(202, &[("location", "/upload/1?state=a%2Fb")], ""),
        "PATCH" => {
            assert_eq!(header(request, "content-length"), "16");
            answer(202, &[("location", "2?state=c")], "")
        }
        _ => answer(201, &[], ""),
    });
    let remote = client.repository(repository("r.io/a"));
    remote.put_blob(&descriptor(), &source()).await.unwrap();
    let digest = descriptor().digest.to_string().replace(':', "%3A");
    let expected = [
        "POST r.io/v2/a/blobs/uploads/".to_owned(),
        "PATCH r.io/upload/1?state=a%2Fb".to_owned(),
        format!("PUT r.io/upload/2?state=c&digest={digest}"),
    ];
    assert_eq!(log.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_breaks_begins_again() {
    let (client, log) = stub(Keychain::anonymous(), |before, request| {
        match (request.method().as_str(), before) {
            ("POST", _) => answer(202, &[("location", "/u")], ""),
            ("PATCH", 1) => answer(502, &[], ""),
            ("HEAD", _) => answer(404, &[], ""),
            ("PATCH", _) => answer(204, &[], ""),
            // The session is lost, and then it works.
            ("PUT", before) if before < 7 => answer(404, &[], ""),
            _ => answer(201, &[], ""),
        }
    });
    let slow = Slow { opened: AtomicUsize::new(0), pause: Duration::ZERO };
    client.repository(repository("r.io/a")).put_blob(&descriptor(), &slow).await.unwrap();
    assert_eq!(slow.opened.load(Ordering::Relaxed), 3, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn an_upload_whose_answer_was_lost_is_not_repeated() {
    let (client, log) = stub(Keychain::anonymous(), |_, request| match request.method().as_str() {
        "POST" => answer(202, &[("location", "/u")], ""),
        "PATCH" => answer(202, &[], ""),
        "HEAD" => answer(200, &[], ""),
        _ => answer(504, &[], ""),
    });
    client.repository(repository("r.io/a")).put_blob(&descriptor(), &source()).await.unwrap();
    assert_eq!(log.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_slow_upload_that_moves_is_not_idle() {
    let (client, _) = stub(Keychain::anonymous(), |_, request| match request.method().as_str() {
        "POST" | "PATCH" => answer(202, &[("location", "/u")], ""),
        "HEAD" => answer(404, &[], ""),
        _ => answer(201, &[], ""),
    });
    // Sixteen bytes, half a minute each, with an idle timeout of one minute.
    let slow = Slow { opened: AtomicUsize::new(0), pause: Duration::from_secs(30) };
    client.repository(repository("r.io/a")).put_blob(&descriptor(), &slow).await.unwrap();
    assert_eq!(slow.opened.load(Ordering::Relaxed), 1);
    let stuck = Slow { opened: AtomicUsize::new(0), pause: Duration::from_secs(90) };
    let outcome = client.repository(repository("r.io/a")).put_blob(&descriptor(), &stuck).await;
    assert_eq!(outcome.unwrap_err().advice(), Advice::Timeout);
}

#[tokio::test]
async fn a_source_that_lies_says_so_itself() {
    let (client, log) = stub(Keychain::anonymous(), |_, _| answer(202, &[("location", "/u")], ""));
    let lie = Bytes::from_static(b"0123456789abcdeX");
    let outcome = client.repository(repository("r.io/a")).put_blob(&descriptor(), &lie).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.advice(), Advice::Corrupt, "{}", chain(&error));
    assert!(!log.lines().iter().any(|line| line.starts_with("PUT")), "{:?}", log.lines());
}

#[tokio::test]
async fn an_upload_to_another_host_carries_no_credentials() {
    let keychain = Keychain::fixed(Credential::Basic { user: "u".into(), password: "p".into() });
    let (client, _) = stub(keychain, |_, request| match request.uri().host() {
        Some("storage.org") => {
            assert_eq!(header(request, "authorization"), "");
            answer(201, &[], "")
        }
        _ if header(request, "authorization").is_empty() => {
            answer(401, &[("www-authenticate", "Basic")], "")
        }
        _ => answer(202, &[("location", "https://storage.org/u")], ""),
    });
    client.repository(repository("r.io/a")).put_blob(&descriptor(), &source()).await.unwrap();
}

#[tokio::test]
async fn a_mount_is_taken_or_its_session_used() {
    let digest = descriptor().digest;
    let from = repository("r.io/b");
    let (client, log) = stub(Keychain::anonymous(), |_, _| answer(201, &[], ""));
    assert!(client.repository(repository("r.io/a")).mount_blob(&digest, &from).await.unwrap());
    assert!(log.lines()[0].ends_with("&from=b"), "{:?}", log.lines());

    let (client, log) = stub(Keychain::anonymous(), |_, request| match request.method().as_str() {
        "PUT" => answer(201, &[], ""),
        _ => answer(202, &[("location", "/session")], ""),
    });
    let remote = client.repository(repository("r.io/a"));
    assert!(!remote.mount_blob(&digest, &from).await.unwrap());
    remote.put_blob(&descriptor(), &source()).await.unwrap();
    let posts = log.lines().iter().filter(|line| line.starts_with("POST")).count();
    assert_eq!((posts, log.len()), (1, 3), "{:?}", log.lines());

    let (client, _) = stub(Keychain::anonymous(), |_, _| answer(405, &[], ""));
    let remote = client.repository(repository("r.io/a"));
    assert!(!remote.mount_blob(&digest, &from).await.unwrap());
}

#[tokio::test]
async fn a_manifest_answer_needs_no_location() {
    let (client, _) = stub(Keychain::anonymous(), |_, _| answer(201, &[], ""));
    let config = Descriptor::of(MediaType::DOCKER_CONFIG, b"{}");
    let raw = oci::Raw::from_manifest(&oci::Manifest::docker(config, Vec::new())).unwrap();
    client.repository(repository("r.io/a")).put_manifest(&tag("v1"), &raw).await.unwrap();
}

const BEARER: (&str, &str) = (
    "www-authenticate",
    r#"Bearer realm="https://auth.r.io/token",service="r.io",scope="repository:a:pull""#,
);

/// A token server that writes the scopes into the token, and a registry that reads them there.
fn token_registry(
    request: &http::Request<store::remote::Body>,
    life: u64,
) -> http::Response<store::remote::Body> {
    if request.uri().host() == Some("auth.r.io") {
        let expected = base64::engine::general_purpose::STANDARD.encode("u:p");
        assert_eq!(header(request, "authorization"), format!("Basic {expected}"));
        let scopes: Vec<String> = reqwest::Url::parse(&request.uri().to_string())
            .unwrap()
            .query_pairs()
            .filter(|(key, _)| key == "scope")
            .map(|(_, scope)| scope.into_owned())
            .collect();
        let json = serde_json::json!({"token": scopes.join("+"), "expires_in": life});
        return answer(200, &[], json.to_string());
    }
    let token = header(request, "authorization");
    let needed = match request.method().as_str() {
        "GET" | "HEAD" => "repository:a:pull",
        _ => "repository:a:pull,push",
    };
    let mounts = request.uri().query().is_some_and(|query| query.contains("from="));
    if !token.contains(needed) || (mounts && !token.contains("repository:b:pull")) {
        return answer(401, &[BEARER], "");
    }
    match request.method().as_str() {
        "GET" => answer(200, &[], r#"{"tags":["v1"]}"#),
        _ => answer(201, &[("location", "/u")], ""),
    }
}

fn user() -> Keychain {
    Keychain::fixed(Credential::Basic { user: "u".into(), password: "p".into() })
}

#[tokio::test(start_paused = true)]
async fn tokens_are_fetched_for_a_scope_and_kept_while_they_live() {
    let (client, log) = stub(user(), |_, request| token_registry(request, 300));
    let remote = client.repository(repository("r.io/a"));
    let fetched = || log.lines().iter().filter(|line| line.contains("auth.r.io")).count();
    remote.tags().await.unwrap();
    remote.tags().await.unwrap();
    assert_eq!((fetched(), log.len()), (1, 4));
    tokio::time::advance(Duration::from_secs(280)).await;
    remote.tags().await.unwrap();
    assert_eq!((fetched(), log.len()), (2, 6), "a new one, before the old one is refused");
    // Writing and mounting need wider tokens.
    remote.put_blob(&descriptor(), &source()).await.unwrap();
    assert_eq!(fetched(), 3);
    assert!(remote.mount_blob(&descriptor().digest, &repository("r.io/b")).await.unwrap());
    assert_eq!(fetched(), 4);
}

#[tokio::test]
async fn a_token_refused_in_the_middle_is_renewed_once() {
    let (client, log) = stub(user(), |before, request| match before {
        // The first token works once, and then the registry forgets it.
        3 => answer(401, &[BEARER], ""),
        _ => token_registry(request, 300),
    });
    let remote = client.repository(repository("r.io/a"));
    remote.tags().await.unwrap();
    remote.tags().await.unwrap();
    assert_eq!(log.len(), 6, "{:?}", log.lines());
}

#[tokio::test]
async fn an_identity_token_is_exchanged_by_post() {
    let keychain = Keychain::fixed(Credential::IdentityToken("refresh&me".into()));
    let (client, _) = stub(keychain, |_, request| match request.uri().host() {
        Some("auth.r.io") => {
            assert_eq!(request.method(), "POST");
            assert_eq!(header(request, "authorization"), "");
            answer(200, &[], r#"{"access_token":"fresh"}"#)
        }
        _ if header(request, "authorization") == "Bearer fresh" => answer(200, &[], "{}"),
        _ => answer(401, &[BEARER], ""),
    });
    assert!(client.repository(repository("r.io/a")).tags().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_form_of_an_identity_token_is_encoded() {
    let keychain = Keychain::fixed(Credential::IdentityToken("refresh&me".into()));
    let service = tower::service_fn(|request: http::Request<store::remote::Body>| async move {
        if request.uri().host() != Some("auth.r.io") {
            return Ok::<_, store::remote::BoxError>(answer(401, &[BEARER], ""));
        }
        let form = request.into_body().collect().await?.to_bytes();
        let form = String::from_utf8(form.to_vec())?;
        assert!(form.contains("refresh_token=refresh%26me"), "{form}");
        assert!(form.contains("grant_type=refresh_token&service=r.io"), "{form}");
        Ok(answer(401, &[], "no"))
    });
    let transport = store::remote::transport(service);
    let client =
        store::remote::Client::new(transport, keychain, store::remote::Settings::default());
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert_eq!(error.advice(), Advice::Unauthorized { registry: "r.io".into() });
}

#[tokio::test]
async fn l4_a_token_server_in_plain_or_on_this_machine_is_not_asked() {
    let realms = [
        "http://auth.r.io/token",
        "http://127.0.0.1:8080/token",
        "http://169.254.169.254/latest",
        "https://169.254.169.254/latest",
        "https://u:p@auth.r.io/token",
        "file:///etc/passwd",
        "nonsense",
    ];
    for (realm, keychain) in
        realms.iter().flat_map(|realm| [(realm, user()), (realm, Keychain::anonymous())])
    {
        let challenge = format!("Bearer realm=\"{realm}\"");
        let (client, log) =
            stub(keychain, move |_, _| answer(401, &[("www-authenticate", &challenge)], ""));
        let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
        assert!(chain(&error).contains("cannot be asked safely"), "{realm}: {}", chain(&error));
        assert_eq!(log.len(), 1, "{realm}");
    }
}

/// L4: what a token server says may be anybody's secret.
#[tokio::test]
async fn l4_answers_of_token_servers_are_not_told() {
    for status in [400, 401, 403, 404, 418] {
        let (client, _) =
            stub(Keychain::anonymous(), move |_, request| match request.uri().host() {
                Some("auth.r.io") => answer(status, &[], "INTERNAL: role=prod-admin key=AKIA123"),
                _ => answer(401, &[BEARER], ""),
            });
        let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
        assert!(!chain(&error).contains("AKIA"), "{}", chain(&error));
    }
    let list = r#"{"errors":[{"code":"DENIED","message":"no"}],"secret":"AKIA123"}"#;
    let (client, _) = stub(Keychain::anonymous(), move |_, request| match request.uri().host() {
        Some("auth.r.io") => answer(401, &[], list),
        _ => answer(401, &[BEARER], ""),
    });
    let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
    assert!(chain(&error).contains("no (DENIED)"), "{}", chain(&error));
    assert!(!chain(&error).contains("AKIA"), "{}", chain(&error));
}

/// L4: nor is what a registry redirects to, whatever the answer.
#[tokio::test]
async fn l4_answers_of_other_hosts_are_not_told() {
    for status in [400, 401, 403, 404, 418] {
        let (client, _) =
            stub(Keychain::anonymous(), move |_, request| match request.uri().host() {
                Some("inside.org") => answer(status, &[], "role=prod-admin key=AKIA123"),
                _ => answer(307, &[("location", "https://inside.org/x")], ""),
            });
        let error = client.repository(repository("r.io/a")).tags().await;
        let error = error.map(|_| ()).err().map(|error| chain(&error)).unwrap_or_default();
        assert!(!error.contains("AKIA"), "{status}: {error}");
    }
}

/// L5: a refresh token is for one host, whoever redirects.
#[tokio::test]
async fn l5_a_refresh_token_is_not_sent_to_another_host() {
    for (status, elsewhere) in [
        (307, "https://evil.org/token"),
        (308, "https://auth.r.io:8443/"),
        (307, "http://evil.org"),
    ] {
        let keychain = Keychain::fixed(Credential::IdentityToken("refresh-me".into()));
        let (client, log) = stub(keychain, move |_, request| match request.uri().host() {
            Some("auth.r.io") => answer(status, &[("location", elsewhere)], ""),
            _ => answer(401, &[BEARER], ""),
        });
        let error = client.repository(repository("r.io/a")).tags().await.unwrap_err();
        assert!(chain(&error).contains("redirects to"), "{}", chain(&error));
        let asked = log.lines();
        assert_eq!(asked.iter().filter(|line| line.contains("POST")).count(), 1, "{asked:?}");
    }
}

/// L5: without a credential in it, a question may go on to another host, over TLS.
#[tokio::test]
async fn l5_redirects_of_token_questions_keep_to_tls() {
    let asked = |elsewhere: &'static str| async move {
        let (client, log) = stub(user(), move |_, request| match request.uri().host() {
            Some("auth.r.io") => answer(302, &[("location", elsewhere)], ""),
            Some("other.org") => {
                assert_eq!(header(request, "authorization"), "");
                answer(200, &[], r#"{"token":"fresh"}"#)
            }
            _ if header(request, "authorization") == "Bearer fresh" => answer(200, &[], "{}"),
            _ => answer(401, &[BEARER], ""),
        });
        let tags = client.repository(repository("r.io/a")).tags().await;
        (tags.is_ok(), log.lines().iter().any(|line| line.contains("other.org")))
    };
    assert_eq!(asked("https://other.org/token").await, (true, true));
    assert_eq!(asked("http://other.org/token").await, (false, false));
}

/// L5: where a registry is spoken to in plain, questions for its tokens stay on its host.
#[tokio::test]
async fn l5_token_questions_in_plain_stay_on_their_host() {
    let astray = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&astray);
    let service = tower::service_fn(move |request: http::Request<store::remote::Body>| {
        let realm = ("www-authenticate", "Bearer realm=\"http://10.0.0.1:5001/token\"");
        let answered = match request.uri().authority().map(http::uri::Authority::as_str) {
            Some("10.0.0.1:5000") => answer(401, &[realm], ""),
            Some("10.0.0.1:5001") => answer(302, &[("location", "http://10.0.0.2/token")], ""),
            _ => {
                counter.fetch_add(1, Ordering::Relaxed);
                answer(200, &[], r#"{"token":"fresh"}"#)
            }
        };
        async move { Ok::<_, store::remote::BoxError>(answered) }
    });
    let settings =
        store::remote::Settings { plain_http: true, ..store::remote::Settings::default() };
    let client = store::remote::Client::new(store::remote::transport(service), user(), settings);
    let error = client.repository(repository("10.0.0.1:5000/a")).tags().await.unwrap_err();
    assert!(chain(&error).contains("redirects to"), "{}", chain(&error));
    assert_eq!(astray.load(Ordering::Relaxed), 0, "nobody else was asked");
}

/// L4: an upload is not sent to where only this machine can reach.
#[tokio::test]
async fn l4_uploads_are_not_led_astray() {
    for elsewhere in ["http://storage.org/u", "https://127.0.0.1/u", "https://169.254.169.254/u"] {
        let (client, log) = stub(Keychain::anonymous(), move |_, request| {
            match (request.method().as_str(), request.uri().host()) {
                ("HEAD", _) => answer(404, &[], ""),
                (_, Some("r.io")) => answer(202, &[("location", elsewhere)], ""),
                _ => answer(201, &[], ""),
            }
        });
        let put = client.repository(repository("r.io/a")).put_blob(&descriptor(), &source()).await;
        assert!(put.is_err(), "{elsewhere}");
        assert!(log.lines().iter().all(|line| line.contains(" r.io/")), "{:?}", log.lines());
    }
}

/// L4: nor is what answers where a registry has an upload go on.
#[tokio::test]
async fn l4_answers_to_uploads_elsewhere_are_not_told() {
    let error_of = |status: u16, body: &'static str| async move {
        let (client, log) = stub(Keychain::anonymous(), move |_, request| {
            match (request.method().as_str(), request.uri().host()) {
                ("HEAD", _) => answer(404, &[], ""),
                (_, Some("r.io")) => answer(202, &[("location", "https://inside.org/u")], ""),
                _ => answer(status, &[], body),
            }
        });
        let put = client.repository(repository("r.io/a")).put_blob(&descriptor(), &source()).await;
        assert!(log.lines().iter().any(|line| line.contains("inside.org")), "{:?}", log.lines());
        chain(&put.unwrap_err())
    };
    for status in [400, 401, 403, 404, 418] {
        let told = error_of(status, "role=prod-admin key=AKIA123").await;
        assert!(!told.contains("AKIA"), "{status}: {told}");
    }
    let listed = r#"{"errors":[{"code":"DENIED","message":"no"}],"secret":"AKIA123"}"#;
    let told = error_of(403, listed).await;
    assert!(told.contains("no (DENIED)") && !told.contains("AKIA"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_upload_waits_as_long_as_it_is_asked_to() {
    let (client, _) =
        stub(Keychain::anonymous(), |before, request| match (request.method().as_str(), before) {
            ("PATCH", 1) => answer(429, &[("retry-after", "9")], ""),
            ("POST" | "PATCH", _) => answer(202, &[("location", "/u")], ""),
            ("HEAD", _) => answer(404, &[], ""),
            _ => answer(201, &[], ""),
        });
    let start = tokio::time::Instant::now();
    let remote = client.repository(repository("r.io/a"));
    remote.put_blob(&descriptor(), &source()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 9);
}

#[tokio::test]
async fn any_service_is_a_transport() {
    // As a router has it: an error that cannot happen and a body of its own kind.
    let service = tower::service_fn(|_: http::Request<store::remote::Body>| async {
        let body = http_body_util::Full::new(Bytes::from_static(br#"{"tags":["v1"]}"#));
        Ok::<_, std::convert::Infallible>(http::Response::new(body))
    });
    let transport = store::remote::transport(service);
    let settings = store::remote::Settings::default();
    let client = store::remote::Client::new(transport, Keychain::anonymous(), settings);
    assert_eq!(client.repository(repository("r.io/a")).tags().await.unwrap(), ["v1"]);
}

#[tokio::test(start_paused = true)]
async fn an_upload_nobody_takes_is_given_up() {
    let (client, log) = stub(Keychain::anonymous(), |_, _| answer(503, &[], ""));
    let remote = client.repository(repository("r.io/a"));
    remote.put_blob(&descriptor(), &source()).await.unwrap_err();
    let posts = log.lines().iter().filter(|it| it.starts_with("POST")).count();
    assert_eq!((posts, log.len()), (4, 7));
}
