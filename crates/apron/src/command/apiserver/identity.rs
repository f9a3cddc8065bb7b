//! Who the server is and who may use it: an authority of its own, a certificate for the
//! server, one for the administrator, a token, and the key that service accounts' tokens
//! are signed with. Made once, kept beside the data.

use crate::failure::{Failure, Outcome};
use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

const ADMIN: &str = "admin";
const MASTERS: &str = "system:masters";

/// Certificates and keys as PEM, and the administrator's token.
pub(super) struct Identity {
    pub(super) authority: String,
    /// With which more clients can be signed; not read again.
    authority_key: String,
    pub(super) server: String,
    pub(super) server_key: String,
    admin: String,
    admin_key: String,
    token: String,
    accounts_key: String,
}

const FILES: [&str; 7] =
    ["ca.crt", "server.crt", "server.key", "admin.crt", "admin.key", "admin.token", ACCOUNTS_KEY];
const AUTHORITY_KEY: &str = "ca.key";
const ACCOUNTS_KEY: &str = "service-accounts.key";

impl Identity {
    /// What lies in `directory`, or a new identity that is put there.
    pub(super) fn load_or_make(directory: &Path) -> Outcome<Self> {
        let missing: Vec<&str> =
            FILES.iter().filter(|name| !directory.join(name).exists()).copied().collect();
        if missing == [ACCOUNTS_KEY] {
            let key = KeyPair::generate().map_err(|error| cannot_make(&error))?;
            write_private(&directory.join(ACCOUNTS_KEY), &key.serialize_pem())?;
        } else if !missing.is_empty() {
            return Self::make_in(directory);
        }
        Self::load(directory)
    }

    fn make_in(directory: &Path) -> Outcome<Self> {
        let identity = Self::make().map_err(|error| cannot_make(&error))?;
        fs_err::create_dir_all(directory).map_err(|error| Failure::file(&error))?;
        write_private(&directory.join(AUTHORITY_KEY), &identity.authority_key)?;
        for (name, text) in FILES.iter().zip(identity.texts()) {
            write_private(&directory.join(name), text)?;
        }
        Ok(identity)
    }

    fn texts(&self) -> [&str; 7] {
        [
            &self.authority,
            &self.server,
            &self.server_key,
            &self.admin,
            &self.admin_key,
            &self.token,
            &self.accounts_key,
        ]
    }

    /// The certificates by which the server is known.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The administrator, as a certificate would show them.
    #[expect(clippy::unused_self, reason = "who the administrator is belongs to the identity")]
    pub(super) fn administrator(&self) -> apiserver::Identity {
        let (user, groups) = (ADMIN.to_owned(), vec![MASTERS.to_owned()]);
        apiserver::Identity { user, groups, credential: None }
    }

    /// The administrator's token.
    pub(super) fn admin_token(&self) -> apiserver::auth::Token {
        let user = apiserver::auth::User {
            name: ADMIN.to_owned(),
            groups: vec![MASTERS.to_owned()],
            ..apiserver::auth::User::default()
        };
        apiserver::auth::Token { secret: self.token.clone(), user }
    }

    /// What signs the tokens of service accounts.
    pub(super) fn signer(&self) -> Outcome<Arc<apiserver::auth::Signer>> {
        let failed = |error: &dyn std::error::Error| {
            let hint = "remove this file from the directory pki in the data directory to have a \
                        new key made; tokens of service accounts must then be made again";
            Failure::new(format!("{ACCOUNTS_KEY} cannot be used"), hint).because(error)
        };
        let key = KeyPair::from_pem(&self.accounts_key).map_err(|error| failed(&error))?;
        let signer = apiserver::auth::Signer::from_pkcs8(key.serialized_der());
        signer.map(Arc::new).map_err(|error| failed(&error))
    }

    fn load(directory: &Path) -> Outcome<Self> {
        let read = |name: &str| {
            fs_err::read_to_string(directory.join(name)).map_err(|error| Failure::file(&error))
        };
        Ok(Self {
            authority: read("ca.crt")?,
            authority_key: String::new(),
            server: read("server.crt")?,
            server_key: read("server.key")?,
            admin: read("admin.crt")?,
            admin_key: read("admin.key")?,
            token: read("admin.token")?,
            accounts_key: read(ACCOUNTS_KEY)?,
        })
    }

    fn make() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = named("apron-apiserver-ca", None)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&key)?.pem();
        let authority_key = key.serialize_pem();
        let issuer = Issuer::new(params, key);

        let server_key = KeyPair::generate()?;
        let hosts = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(hosts.map(str::to_owned).to_vec())?;
        params.distinguished_name = name("apron-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = params.signed_by(&server_key, &issuer)?.pem();

        let admin_key = KeyPair::generate()?;
        let mut params = named(ADMIN, Some(MASTERS))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin = params.signed_by(&admin_key, &issuer)?.pem();

        // A fresh key's bytes are as good a secret as any.
        let secret = KeyPair::generate()?.serialize_der();
        let tail = &secret[secret.len().saturating_sub(48)..];
        let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(tail);
        Ok(Self {
            authority,
            authority_key,
            server,
            server_key: server_key.serialize_pem(),
            admin,
            admin_key: admin_key.serialize_pem(),
            token,
            accounts_key: KeyPair::generate()?.serialize_pem(),
        })
    }

    /// Writes a kubeconfig with everything in it, readable by its owner only.
    pub(super) fn write_kubeconfig(
        &self,
        path: &Path,
        address: SocketAddr,
        registry: Option<SocketAddr>,
    ) -> Outcome {
        let extensions = registry.map(|registry| {
            let of = crate::cluster::kubeconfig::REGISTRY;
            format!(
                "    extensions:\n    - name: {of}\n      extension:\n        address: {registry}\n"
            )
        });
        let code = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: apron\nclusters:\n- name: apron\n  \
             cluster:\n    server: https://{address}\n    certificate-authority-data: {}\n{}users:\n\
             - name: apron-admin\n  user:\n    client-certificate-data: {}\n    \
             client-key-data: {}\ncontexts:\n- name: apron\n  context:\n    cluster: apron\n    \
             user: apron-admin\n",
            code(&self.authority),
            extensions.unwrap_or_default(),
            code(&self.admin),
            code(&self.admin_key)
        );
        write_private(path, &text)
    }
}

fn cannot_make(error: &rcgen::Error) -> Failure {
    Failure::new("cannot make certificates", "report this as a bug").because(error)
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
pub(super) fn write_private(path: &Path, text: &str) -> Outcome {
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
