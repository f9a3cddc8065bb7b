//! Who the server is and who may use it: an authority of its own, a certificate for the
//! server, one for the administrator, and a token. Made once, kept beside the data.

use crate::failure::{Failure, Outcome};
use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

/// Certificates and keys as PEM, and the administrator's token.
pub(super) struct Identity {
    pub(super) authority: String,
    pub(super) server: String,
    pub(super) server_key: String,
    admin: String,
    admin_key: String,
    pub(super) token: String,
}

const FILES: [&str; 6] =
    ["ca.crt", "server.crt", "server.key", "admin.crt", "admin.key", "admin.token"];

impl Identity {
    /// What lies in `directory`, or a new identity that is put there.
    pub(super) fn load_or_make(directory: &Path) -> Outcome<Self> {
        if FILES.iter().all(|name| directory.join(name).exists()) {
            return Self::load(directory);
        }
        let identity = Self::make().map_err(|error| {
            Failure::new("cannot make certificates", "report this as a bug").because(&error)
        })?;
        fs_err::create_dir_all(directory).map_err(|error| Failure::file(&error))?;
        for (name, text) in FILES.iter().zip(identity.texts()) {
            write_private(&directory.join(name), text)?;
        }
        Ok(identity)
    }

    fn texts(&self) -> [&str; 6] {
        [&self.authority, &self.server, &self.server_key, &self.admin, &self.admin_key, &self.token]
    }

    fn load(directory: &Path) -> Outcome<Self> {
        let read = |name: &str| {
            fs_err::read_to_string(directory.join(name)).map_err(|error| Failure::file(&error))
        };
        Ok(Self {
            authority: read("ca.crt")?,
            server: read("server.crt")?,
            server_key: read("server.key")?,
            admin: read("admin.crt")?,
            admin_key: read("admin.key")?,
            token: read("admin.token")?,
        })
    }

    fn make() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = named("apron-apiserver-ca", None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);

        let server_key = KeyPair::generate()?;
        let hosts = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(hosts.map(str::to_owned).to_vec())?;
        params.distinguished_name = name("apron-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = params.signed_by(&server_key, &issuer)?.pem();

        let admin_key = KeyPair::generate()?;
        let mut params = named("admin", Some("system:masters"))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin = params.signed_by(&admin_key, &issuer)?.pem();

        // A fresh key's bytes are as good a secret as any.
        let secret = KeyPair::generate()?.serialize_der();
        let tail = &secret[secret.len().saturating_sub(48)..];
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(tail);
        Ok(Self {
            authority,
            server,
            server_key: server_key.serialize_pem(),
            admin,
            admin_key: admin_key.serialize_pem(),
            token,
        })
    }

    /// Writes a kubeconfig with everything in it, readable by its owner only.
    pub(super) fn write_kubeconfig(&self, path: &Path, address: SocketAddr) -> Outcome {
        let code = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: apron\nclusters:\n- name: apron\n  \
             cluster:\n    server: https://{address}\n    certificate-authority-data: {}\nusers:\n\
             - name: apron-admin\n  user:\n    client-certificate-data: {}\n    \
             client-key-data: {}\ncontexts:\n- name: apron\n  context:\n    cluster: apron\n    \
             user: apron-admin\n",
            code(&self.authority),
            code(&self.admin),
            code(&self.admin_key)
        );
        write_private(path, &text)
    }
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn named(common: &str, organization: Option<&str>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = name(common, organization);
    Ok(params)
}

/// Writes a file that only its owner can read, at no moment otherwise.
fn write_private(path: &Path, text: &str) -> Outcome {
    let write = || -> std::io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| Failure::file(&error))
}
