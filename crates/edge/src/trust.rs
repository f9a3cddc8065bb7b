//! Which certificates of webhooks are trusted: as Go has it, which the real server is written in.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// Trusts what the authorities in a bundle signed, and the authorities themselves.
#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

/// How to talk to those whom a bundle of authorities, as PEM, vouches for.
pub fn trust_bundle(bundle: &[u8]) -> Result<ClientConfig, Box<dyn std::error::Error>> {
    let authorities: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(bundle).collect::<Result<_, _>>()?;
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        roots.add(authority.clone())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(roots, authorities, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn verifier(
    roots: RootCertStore,
    authorities: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<Verifier>, Box<dyn std::error::Error>> {
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    Ok(Arc::new(Verifier { inner: builder.build()?, authorities }))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match &verified {
            // A certificate that is in the bundle, to the byte, needs no other to vouch for it, be it an
            // authority's or a server's own. All else that is asked of a server holds.
            Err(Error::InvalidCertificate(why))
                if is_only_unvouched(why) && self.authorities.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                verify_use(end_entity, now)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether nothing is wrong with a certificate but that it is an authority's, or that no authority of the
/// bundle signed it, be it that one has the name of its issuer and another key. rustls passes the word of the
/// crate on that it verifies with.
fn is_only_unvouched(why: &CertificateError) -> bool {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        CertificateError::Other(other) => other.0.to_string() == "CaUsedAsEndEntity",
        _ => false,
    }
}

/// Whether a certificate is good now, and for a server.
fn verify_use(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let refused = |why: CertificateError| Err(Error::InvalidCertificate(why));
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return refused(CertificateError::BadEncoding);
    };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < certificate.validity().not_before.timestamp() {
        return refused(CertificateError::NotValidYet);
    }
    if now > certificate.validity().not_after.timestamp() {
        return refused(CertificateError::Expired);
    }
    match certificate.extended_key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(uses)) if uses.value.server_auth || uses.value.any => Ok(()),
        Ok(Some(_)) => refused(CertificateError::InvalidPurpose),
        Err(_) => refused(CertificateError::BadEncoding),
    }
}
