//! The socket: TLS, and an end that is clean.

use super::identity::Identity;
use crate::failure::{Failure, Outcome};
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// How long requests in flight have when the server is told to stop. Watches never end by
/// themselves; everything acknowledged is durable already.
const LAST_CALL: Duration = Duration::from_secs(2);
/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Requests that one connection may have open at once; Go clients put all their watches on one.
const STREAMS_MAX: u32 = 2000;

/// Opens the socket.
pub(super) async fn bind(address: SocketAddr) -> Outcome<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let hint = "choose another address with --listen, or port 0 for a free one";
        Failure::new(format!("cannot listen on {address}"), hint).because(&error)
    })
}

/// Serves until SIGINT or SIGTERM.
pub(super) async fn serve(listener: TcpListener, router: Router, identity: &Identity) -> Outcome {
    let acceptor = acceptor(identity)?;
    let graceful = Arc::new(GracefulShutdown::new());
    let mut stop = std::pin::pin!(told_to_stop());
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                // Out of files, or a client that gave up: the next one may have more luck.
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(connection(stream, acceptor, router, graceful.watcher()));
            }
        }
    }
    drop(listener);
    if let Some(graceful) = Arc::into_inner(graceful) {
        let _ = tokio::time::timeout(LAST_CALL, graceful.shutdown()).await;
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else {
        return;
    };
    // The handshake has verified that our authority signed it.
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let router = match shown.and_then(|der| apiserver::Identity::of_certificate(der)) {
        Some(identity) => router.layer(axum::Extension(identity)),
        None => router,
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(STREAMS_MAX);
    let service = TowerToHyperService::new(router);
    let serving = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let _ = watcher.watch(serving).await;
}

fn acceptor(identity: &Identity) -> Outcome<TlsAcceptor> {
    let config = config(identity).map_err(|error| {
        let hint = "remove the directory pki in the data directory to have new certificates made";
        Failure::new("the certificates cannot be used", hint).because(error.as_ref())
    })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn config(identity: &Identity) -> Result<rustls::ServerConfig, Box<dyn std::error::Error>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.authority.as_bytes())?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let chain = vec![CertificateDer::from_pem_slice(identity.server.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(identity.server_key.as_bytes())?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
