//! Who the server is and who may use it: an authority of its own, a certificate for the
//! server, one for the administrator, a token, and the key that service accounts' tokens
//! are signed with. Kept beside the data; certificates are made anew before they end.

use super::certificate::{Holder, Pair, is_authority_due, is_due, make_authority, sign};
use base64::Engine;
use ground::failure::{Failure, Outcome};
use ground::private;
use rcgen::KeyPair;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

const ADMIN: &str = "admin";
const MASTERS: &str = "system:masters";

/// Names by which the server is reached: from this machine, and as programs in a cluster reach it.
const HOSTS: [&str; 8] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Certificates and keys as PEM, and the administrator's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub(super) authority: Pair,
    pub(super) server: Pair,
    admin: Pair,
    token: String,
    accounts_key: String,
}

const ACCOUNTS_KEY: &str = "service-accounts.key";
const TOKEN: &str = "admin.token";

impl Identity {
    /// What lies in `directory`, with what is missing or ends before long made anew and put there.
    /// An authority is replaced here only: who knows the old one has to be told of the new one.
    pub(super) fn load_or_make(directory: &Path, now: i64) -> Outcome<Self> {
        private::make_directory(directory)?;
        let authority = pair(directory, "ca")?.filter(|it| !is_authority_due(it, now));
        let authority = authority.map_or_else(|| make_authority(now), Ok);
        let authority = authority.map_err(|error| cannot_make(&error))?;
        let old = |name: &str| -> Outcome<Pair> {
            let nothing = || Pair { certificate: String::new(), key: String::new() };
            Ok(pair(directory, name)?.unwrap_or_else(nothing))
        };
        let found = Self {
            server: old("server")?,
            admin: old("admin")?,
            token: read(directory, TOKEN)?.map_or_else(secret, Ok)?,
            accounts_key: read(directory, ACCOUNTS_KEY)?.map_or_else(accounts_key, Ok)?,
            authority,
        };
        let identity = found.renewed(now)?;
        identity.write(directory)?;
        Ok(identity)
    }

    /// The same, with new certificates for those that end before long or lack a name.
    pub(super) fn renewed(&self, now: i64) -> Outcome<Self> {
        let renew = |old: &Pair, holder: Holder<'_>| {
            if is_due(old, &self.authority, holder, now) {
                return sign(&self.authority, holder, now).map_err(|error| cannot_make(&error));
            }
            Ok(old.clone())
        };
        Ok(Self {
            server: renew(&self.server, Holder::Server(&HOSTS))?,
            admin: renew(&self.admin, Holder::Client(ADMIN, MASTERS))?,
            ..self.clone()
        })
    }

    /// Puts what is not there as it is into a directory. After a crash in between, what does not
    /// belong together is due.
    pub(super) fn write(&self, directory: &Path) -> Outcome {
        for (name, text) in [
            ("ca.key", &self.authority.key),
            ("ca.crt", &self.authority.certificate),
            ("server.key", &self.server.key),
            ("server.crt", &self.server.certificate),
            ("admin.key", &self.admin.key),
            ("admin.crt", &self.admin.certificate),
            (TOKEN, &self.token),
            (ACCOUNTS_KEY, &self.accounts_key),
        ] {
            if read(directory, name)?.as_ref() != Some(text) {
                private::write_file(&directory.join(name), text)?;
            }
        }
        Ok(())
    }

    /// The certificates by which the server is known.
    pub fn authority(&self) -> &str {
        &self.authority.certificate
    }

    /// The administrator, as a certificate would show them.
    pub fn administrator(&self) -> apiserver::Identity {
        let (user, groups) = (ADMIN.to_owned(), vec![MASTERS.to_owned()]);
        apiserver::Identity { user, groups, credential: None }
    }

    /// The administrator's token.
    pub fn admin_token(&self) -> apiserver::auth::Token {
        let user = apiserver::auth::User {
            name: ADMIN.to_owned(),
            groups: vec![MASTERS.to_owned()],
            ..apiserver::auth::User::default()
        };
        apiserver::auth::Token { secret: self.token.clone(), user }
    }

    /// What signs the tokens of service accounts.
    pub fn signer(&self) -> Outcome<Arc<apiserver::auth::Signer>> {
        let failed = |error: &dyn std::error::Error| {
            let hint = "remove this file from the directory pki in the data directory to have a \
                        new key made; tokens of service accounts must then be made again";
            Failure::new(format!("{ACCOUNTS_KEY} cannot be used"), hint).because(error)
        };
        let key = KeyPair::from_pem(&self.accounts_key).map_err(|error| failed(&error))?;
        let signer = apiserver::auth::Signer::from_pkcs8(key.serialized_der());
        signer.map(Arc::new).map_err(|error| failed(&error))
    }

    /// Writes a kubeconfig with everything in it, readable by its owner only; `extensions` are
    /// the lines that its cluster has besides.
    pub(super) fn write_kubeconfig(
        &self,
        path: &Path,
        address: SocketAddr,
        extensions: &str,
    ) -> Outcome {
        let code = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: apron\nclusters:\n- name: apron\n  \
             cluster:\n    server: https://{address}\n    certificate-authority-data: {}\n\
             {extensions}users:\n- name: apron-admin\n  user:\n    client-certificate-data: {}\n    \
             client-key-data: {}\ncontexts:\n- name: apron\n  context:\n    cluster: apron\n    \
             user: apron-admin\n",
            code(&self.authority.certificate),
            code(&self.admin.certificate),
            code(&self.admin.key)
        );
        private::write_file(path, &text)
    }
}

fn cannot_make(error: &rcgen::Error) -> Failure {
    Failure::new("cannot make certificates", "report this as a bug").because(error)
}

/// A certificate and its key in a directory; none if one of them is missing.
fn pair(directory: &Path, name: &str) -> Outcome<Option<Pair>> {
    let certificate = read(directory, &format!("{name}.crt"))?;
    let key = read(directory, &format!("{name}.key"))?;
    Ok(certificate.zip(key).map(|(certificate, key)| Pair { certificate, key }))
}

/// A file that nobody else may read from now on; none if it is missing.
fn read(directory: &Path, name: &str) -> Outcome<Option<String>> {
    let path = directory.join(name);
    private::narrow_file(&path)?;
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::file(&error)),
    }
}

/// A fresh key's bytes are as good a secret as any.
fn secret() -> Outcome<String> {
    let key = KeyPair::generate().map_err(|error| cannot_make(&error))?.serialize_der();
    let tail = &key[key.len().saturating_sub(48)..];
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(tail))
}

fn accounts_key() -> Outcome<String> {
    let key = KeyPair::generate().map_err(|error| cannot_make(&error))?;
    Ok(key.serialize_pem())
}
