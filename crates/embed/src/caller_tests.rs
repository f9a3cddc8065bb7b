//! Webhooks that mean no good, called over HTTPS.

use crate::caller::Caller;
use crate::credentials::{Credentials, now};
use apiserver::outbound::{Call, CallError, Outbound as _, REPLY_MAX};
use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, StatusCode, header::LOCATION};
use axum::routing::post;
use bytes::Bytes;
use edge::accept::{Limits, Porter};
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

const LIMITS: Limits =
    Limits { connections: 64, streams: 64, hands: 0, drain: Duration::from_secs(2) };

/// A porter that admits every connection.
struct OpenDoor(Credentials);

impl Porter for OpenDoor {
    type Seat = ();

    fn seat(&self, _: IpAddr) -> Option<()> {
        Some(())
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        Some(self.0.acceptor())
    }

    fn know(&self, _: IpAddr, _: &[CertificateDer<'_>]) -> Extensions {
        Extensions::new()
    }
}

/// A webhook that is served as the API server is; gives a way to call it.
async fn webhook(router: Router) -> impl Fn(&str, &str) -> Call {
    let directory = tempfile::tempdir().unwrap();
    let credentials = Credentials::open(directory.path(), now()).unwrap();
    let authorities = credentials.identity().authority().as_bytes().to_vec();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = OpenDoor(credentials);
    tokio::spawn(edge::accept::serve(listener, router, door, LIMITS, std::future::pending()));
    move |scheme: &str, path: &str| Call {
        url: format!("{scheme}://localhost:{}{path}", address.port()),
        address: Some(address),
        authorities: authorities.clone(),
        body: Bytes::from_static(b"{}"),
        timeout: Duration::from_secs(60),
    }
}

/// M6: an `AdmissionReview` holds what is written, and goes to nobody but the webhook.
#[tokio::test]
async fn m6_redirects_are_not_followed() {
    let inside = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&inside);
    let reached = async move || {
        counter.fetch_add(1, Ordering::SeqCst);
        "{}"
    };
    let away = |code: StatusCode| post(async move || (code, [(LOCATION, "/inside")]));
    let router = Router::new()
        .route("/302", away(StatusCode::FOUND))
        .route("/307", away(StatusCode::TEMPORARY_REDIRECT))
        .route("/inside", post(reached.clone()).get(reached));
    let call = webhook(router).await;
    let caller = Caller::default();
    for code in [302, 307] {
        let reply = caller.post(call("https", &format!("/{code}"))).await.unwrap();
        assert_eq!(reply.code, code);
    }
    assert_eq!(inside.load(Ordering::SeqCst), 0, "nobody went inside");
    assert_eq!(caller.post(call("https", "/inside")).await.unwrap().code, 200);
}

/// M6: what listens in plain, on this machine or elsewhere, hears nothing of what is written.
#[tokio::test]
async fn m6_a_webhook_in_plain_hears_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4];
        stream.readable().await.unwrap();
        stream.try_read(&mut head).map(|count| head[..count].to_vec())
    });
    let in_plain = format!("http://localhost:{port}/inside");
    let to = in_plain.clone();
    let away = post(async move || (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, to)]));
    let over_tls = webhook(Router::new().route("/away", away)).await;
    let caller = Caller::default();
    let call = Call {
        url: in_plain,
        address: None,
        authorities: Vec::new(),
        body: Bytes::from_static(b"{}"),
        timeout: Duration::from_secs(1),
    };
    assert!(matches!(caller.post(call).await, Err(CallError::Other(_))));
    assert_eq!(caller.post(over_tls("https", "/away")).await.unwrap().code, 307);
    assert!(!plain.is_finished(), "nothing was said in plain: {:?}", plain.await);
}

/// M6: a webhook does not decide how much memory it takes to listen to it.
#[tokio::test]
async fn m6_an_answer_without_end_is_not_read_to_its_end() {
    const PIECE: usize = 64 << 10;
    const PIECES: usize = 32 * REPLY_MAX / PIECE;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let endless = async move || {
        let pieces = futures::stream::repeat_with(move || {
            counter.fetch_add(PIECE, Ordering::SeqCst);
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; PIECE]))
        });
        // As good as endless, but for a caller that reads everything.
        Body::from_stream(futures::StreamExt::take(pieces, PIECES))
    };
    let call = webhook(Router::new().route("/endless", post(endless))).await;
    let told = Caller::default().post(call("https", "/endless")).await;
    assert_eq!(told.unwrap_err(), CallError::TooLong);
    // What is under way between the two is a few MB at most.
    assert!(sent.load(Ordering::SeqCst) < 8 * REPLY_MAX);
}

/// A certificate for a server of this name, and its key; `change` makes it another.
fn certificate(
    name: &str,
    change: impl FnOnce(&mut rcgen::CertificateParams),
) -> (rcgen::Certificate, rcgen::KeyPair) {
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    change(&mut params);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap(), key)
}

/// Serves one webhook after the other with a certificate of its own, and calls it with a bundle.
async fn call_server(
    (certificate, key): (rcgen::Certificate, rcgen::KeyPair),
    bundle: Option<String>,
) -> Result<u16, CallError> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let authorities = bundle.unwrap_or_else(|| certificate.pem()).into_bytes();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![certificate.der().clone()], key)
    .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(socket).await else { return };
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n{}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            request.extend(byte);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let call = Call {
        url: format!("https://localhost:{}/", address.port()),
        address: Some(address),
        authorities,
        body: Bytes::from_static(b"{}"),
        timeout: Duration::from_secs(60),
    };
    Caller::default().post(call).await.map(|reply| reply.code)
}

/// A5: what `openssl req -x509` makes, as certificate and as bundle.
#[tokio::test]
async fn a5_a_self_signed_authority_may_serve_under_its_own_certificate() {
    let plain = || certificate("localhost", |_| {});
    assert_eq!(call_server(plain(), None).await, Ok(200));
    let serving = certificate("localhost", |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    });
    assert_eq!(call_server(serving, None).await, Ok(200));
    let leaf = certificate("localhost", |params| params.is_ca = rcgen::IsCa::NoCa);
    assert_eq!(call_server(leaf, None).await, Ok(200));
    let both = format!("{}{}", plain().0.pem(), plain().0.pem());
    for (what, served, bundle) in [
        ("another name", certificate("example.org", |_| {}), None),
        ("the same name with another key", plain(), Some(plain().0.pem())),
        ("none of many", plain(), Some(both)),
        (
            "over",
            certificate("localhost", |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1)),
            None,
        ),
        (
            "yet to come",
            certificate("localhost", |params| params.not_before = rcgen::date_time_ymd(2999, 1, 1)),
            None,
        ),
        (
            "for clients",
            certificate("localhost", |params| {
                params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
            }),
            None,
        ),
    ] {
        let told = call_server(served, bundle).await;
        assert!(matches!(told, Err(CallError::Untrusted(_))), "{what}: {told:?}");
    }
}

/// A5: being signed by the bundle does not make an authority a server.
#[tokio::test]
async fn a5_an_authority_that_the_bundle_signed_does_not_serve() {
    let (root, root_key) = certificate("root", |_| {});
    let issuer = rcgen::Issuer::from_ca_cert_pem(&root.pem(), root_key).unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &issuer).unwrap();
    let told = call_server((signed, key), Some(root.pem())).await;
    assert!(matches!(told, Err(CallError::Untrusted(_))), "{told:?}");
}

/// A5: upstream's core puts the certificate of its own webhook into the bundle, and not what signed it.
#[tokio::test]
async fn a5_a_server_whose_own_certificate_is_the_bundle_is_trusted() {
    let (root, root_key) = certificate("root", |_| {});
    let issuer = rcgen::Issuer::from_ca_cert_pem(&root.pem(), root_key).unwrap();
    let sign = |name: &str| {
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        (params.signed_by(&key, &issuer).unwrap(), key)
    };
    assert_eq!(call_server(sign("localhost"), None).await, Ok(200));
    let told = call_server(sign("example.org"), None).await;
    assert!(matches!(told, Err(CallError::Untrusted(_))), "{told:?}");
    let told = call_server(sign("localhost"), Some(sign("localhost").0.pem())).await;
    assert!(matches!(told, Err(CallError::Untrusted(_))), "{told:?}");
}

/// A Service has a port of its own, wherever it is reached from here.
#[tokio::test]
async fn a_webhook_behind_a_service_is_called_where_the_service_is_found() {
    let router = Router::new().route("/path", post(async || "{\"a\":1}"));
    let call = webhook(router).await("https", "/path");
    let address = call.address.unwrap();
    let caller = Caller::finding(Arc::new(move |namespace: &str, name: &str, port: u16| {
        ((namespace, name, port) == ("default", "hook", 443)).then_some(address)
    }));
    assert_eq!(caller.service("default", "other", 443), None);
    assert_eq!(Caller::default().service("default", "hook", 443), None);
    let found = caller.service("default", "hook", 443);
    let call = Call { url: "https://localhost:443/path".to_owned(), address: found, ..call };
    assert_eq!(caller.post(call).await.unwrap().body, Bytes::from_static(b"{\"a\":1}"));
}
