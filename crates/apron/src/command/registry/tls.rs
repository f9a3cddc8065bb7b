//! TLS for the registry: certificates from files, read again when they change.

use crate::failure::{Failure, Outcome};
use crate::panics::contain;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// How often the files are read again: renewed certificates are served within this time.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// A certificate and its key, in PEM files.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The certificate served at the moment.
pub(super) struct Tls {
    files: Files,
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files; what is wrong with them is a failure now, and ignored later.
    pub(super) fn load(files: &Files) -> Outcome<Arc<Self>> {
        let current = RwLock::new(read(files)?);
        Ok(Arc::new(Self { files: files.clone(), current }))
    }

    /// What the next connection is accepted with.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }

    /// Reads the files again and again. A file that is half written is read next time.
    pub(super) async fn keep_fresh(self: Arc<Self>) {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            if let Some(Ok(fresh)) = contain(async { read(&self.files) }).await {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
            }
        }
    }
}

fn read(files: &Files) -> Outcome<Arc<ServerConfig>> {
    let failed = |path: &PathBuf, error: &dyn std::error::Error| {
        Failure::new(
            format!("cannot use {} for TLS", path.display()),
            "--tls-cert and --tls-key name PEM files: the certificate with its chain, and its key",
        )
        .because(error)
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| failed(&files.certificate, &error))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(rustls::ConfigBuilder::<ServerConfig, _>::with_no_client_auth)
        .and_then(|builder| builder.with_single_cert(chain, key));
    let mut config = config.map_err(|error| failed(&files.certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
