//! The server's identity while it serves: certificates are made anew before they end, connections
//! are met with the new one, and the kubeconfig has it.

use super::identity::Identity;
use ground::failure::{Failure, Outcome};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// An identity that is kept fresh.
pub struct Credentials {
    directory: PathBuf,
    current: RwLock<Arc<Current>>,
    /// Where the administrator's certificate is written to, and with which addresses.
    kubeconfig: Mutex<Option<Kubeconfig>>,
}

struct Current {
    identity: Identity,
    acceptor: TlsAcceptor,
}

#[derive(Clone)]
struct Kubeconfig {
    path: PathBuf,
    address: SocketAddr,
    extensions: String,
}

impl Credentials {
    /// Those in a directory, or new ones that are put there.
    pub fn open(directory: &Path, now: i64) -> Outcome<Self> {
        let identity = Identity::load_or_make(directory, now)?;
        let acceptor = acceptor(&identity)?;
        let current = RwLock::new(Arc::new(Current { identity, acceptor }));
        Ok(Self { directory: directory.to_owned(), current, kubeconfig: Mutex::default() })
    }

    /// The identity at the moment.
    pub fn identity(&self) -> Identity {
        self.current().identity.clone()
    }

    /// What the next connection is accepted with.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.current().acceptor.clone()
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a kubeconfig, now and whenever the administrator's certificate is another;
    /// `extensions` are the lines that its cluster has besides.
    pub fn write_kubeconfig(&self, path: &Path, address: SocketAddr, extensions: &str) -> Outcome {
        let kubeconfig =
            Kubeconfig { path: path.to_owned(), address, extensions: extensions.to_owned() };
        *self.kubeconfig.lock().unwrap_or_else(PoisonError::into_inner) = Some(kubeconfig);
        self.current().identity.write_kubeconfig(path, address, extensions)
    }

    /// Makes certificates anew that end before long; says whether there were any.
    pub fn renew(&self, now: i64) -> Outcome<bool> {
        let current = self.current();
        let identity = current.identity.renewed(now)?;
        if identity == current.identity {
            return Ok(false);
        }
        identity.write(&self.directory)?;
        let acceptor = acceptor(&identity)?;
        let fresh = Arc::new(Current { identity, acceptor });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        let kubeconfig = self.kubeconfig.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Kubeconfig { path, address, extensions }) = kubeconfig {
            fresh.identity.write_kubeconfig(&path, address, &extensions)?;
        }
        Ok(true)
    }
}

/// What connections to the server of this identity are accepted with.
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
    roots.add(CertificateDer::from_pem_slice(identity.authority.certificate.as_bytes())?)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let chain = vec![CertificateDer::from_pem_slice(identity.server.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(identity.server.key.as_bytes())?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{Holder, LIFE, end_of, sign, tests::endless};
    use rustls::pki_types::ServerName;
    use std::os::unix::fs::PermissionsExt as _;

    fn read(directory: &Path, name: &str) -> String {
        fs_err::read_to_string(directory.join(name)).unwrap()
    }

    /// The certificate that a client is shown who trusts this authority.
    async fn shown(credentials: &Credentials, authority: &str) -> Option<Vec<u8>> {
        shown_to(credentials, authority, "localhost").await
    }

    /// The certificate that the server shows for a name.
    async fn shown_to(credentials: &Credentials, authority: &str, name: &str) -> Option<Vec<u8>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (client, server) = tokio::io::duplex(64 << 10);
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let acceptor = credentials.acceptor();
        let (met, _) = tokio::join!(connector.connect(name, client), acceptor.accept(server));
        let chain = met.ok()?.get_ref().1.peer_certificates()?.to_vec();
        Some(chain.first()?.to_vec())
    }

    fn der(pem: &str) -> Vec<u8> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
    }

    /// L6: nobody has to stop the server for it.
    #[tokio::test]
    async fn l6_certificates_are_renewed_while_the_server_serves() {
        let directory = tempfile::tempdir().unwrap();
        let (pki, kubeconfig) = (directory.path().join("pki"), directory.path().join("kubeconfig"));
        // So long ago that what was made then is still good, and due.
        let start = now() - LIFE * 3 / 4;
        let credentials = Credentials::open(&pki, start).unwrap();
        credentials.write_kubeconfig(&kubeconfig, "127.0.0.1:6443".parse().unwrap(), "").unwrap();
        let authority = read(&pki, "ca.crt");
        let before = (read(&pki, "server.crt"), fs_err::read_to_string(&kubeconfig).unwrap());
        assert_eq!(shown(&credentials, &authority).await, Some(der(&before.0)));
        assert!(!credentials.renew(start + LIFE / 2).unwrap(), "there is time");

        let today = now();
        assert!(credentials.renew(today).unwrap());
        let after = (read(&pki, "server.crt"), fs_err::read_to_string(&kubeconfig).unwrap());
        assert!(before.0 != after.0 && before.1 != after.1);
        assert_eq!(end_of(&after.0), today + LIFE);
        assert_eq!(
            shown(&credentials, &authority).await,
            Some(der(&after.0)),
            "without a new start"
        );
        assert_eq!(read(&pki, "ca.crt"), authority, "clients know the same authority");
        assert!(!credentials.renew(today).unwrap());
    }

    /// L6: what was made to last for ever is replaced, and so is its authority; what it signed is
    /// worth nothing any more. M12: and files that others could read are narrowed.
    #[tokio::test]
    async fn l6_certificates_without_an_end_are_replaced_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let pki = directory.path();
        let (authority, server) = endless();
        let old = [
            ("ca.crt", &authority.certificate),
            ("ca.key", &authority.key),
            ("server.crt", &server.certificate),
            ("server.key", &server.key),
            ("admin.crt", &server.certificate),
            ("admin.key", &server.key),
            ("admin.token", &"token".to_owned()),
        ];
        for (name, text) in old {
            fs_err::write(pki.join(name), text).unwrap();
            let open = std::fs::Permissions::from_mode(0o644);
            fs_err::set_permissions(pki.join(name), open).unwrap();
        }
        let credentials = Credentials::open(pki, now()).unwrap();
        for (name, text) in old {
            let mode = fs_err::metadata(pki.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
            assert_eq!(read(pki, name) == *text, name == "admin.token", "{name}");
        }
        assert!(shown(&credentials, &read(pki, "ca.crt")).await.is_some());
        assert_eq!(shown(&credentials, &authority.certificate).await, None);
        let again = Credentials::open(pki, now()).unwrap();
        assert_eq!(again.identity(), credentials.identity(), "once");
    }

    /// Programs in a cluster reach the server by names of its Service; a directory whose certificate
    /// lacks them gets a new one, of the same authority, at the next start.
    #[tokio::test]
    async fn clients_in_the_cluster_reach_the_server_by_each_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let pki = directory.path();
        let first = Credentials::open(pki, now()).unwrap();
        let authority = first.identity().authority;
        let fewer = Holder::Server(&["localhost", "127.0.0.1", "::1", "kubernetes"]);
        let old = sign(&authority, fewer, now()).unwrap();
        fs_err::write(pki.join("server.crt"), &old.certificate).unwrap();
        fs_err::write(pki.join("server.key"), &old.key).unwrap();

        let credentials = Credentials::open(pki, now()).unwrap();
        assert_eq!(read(pki, "ca.crt"), authority.certificate, "clients know the same authority");
        let served = Some(der(&read(pki, "server.crt")));
        assert_ne!(served, Some(der(&old.certificate)));
        for name in [
            "localhost",
            "127.0.0.1",
            "::1",
            "10.96.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ] {
            let met = shown_to(&credentials, &authority.certificate, name).await;
            assert_eq!(met, served, "{name}");
        }
        for other in ["example.org", "10.96.0.2", "kubernetes.other"] {
            assert_eq!(
                shown_to(&credentials, &authority.certificate, other).await,
                None,
                "{other}"
            );
        }
        let again = Credentials::open(pki, now()).unwrap();
        assert_eq!(again.identity(), credentials.identity(), "once");
    }
}
