//! Certificates of the server's own authority: made for a while, and made again before it is over.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
};
use std::net::IpAddr;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;

const DAY: i64 = 24 * 3600;
/// How long an authority is good for.
pub(super) const AUTHORITY_LIFE: i64 = 3650 * DAY;
/// How long the certificates are good for that it signs.
pub(super) const LIFE: i64 = 365 * DAY;
/// How far the clocks of clients may be behind ours.
const SKEW: i64 = 3600;
/// A certificate is made again when less than this part of its life is left.
const PART_LEFT: i64 = 3;
/// What our authorities are called.
const AUTHORITY: &str = "apron-apiserver-ca";

/// A certificate and its key, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Whom a certificate is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder<'a> {
    /// A server with these names.
    Server(&'a [&'a str]),
    /// A client: a user in a group.
    Client(&'a str, &'a str),
}

/// An authority, from now on.
pub(super) fn make_authority(now: i64) -> Result<Pair, rcgen::Error> {
    let mut params = lasting(CertificateParams::new(Vec::new())?, now, now + AUTHORITY_LIFE)?;
    params.distinguished_name = name(AUTHORITY, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

/// A certificate that an authority signs, from now on, and no longer than the authority itself.
pub(super) fn sign(authority: &Pair, holder: Holder<'_>, now: i64) -> Result<Pair, rcgen::Error> {
    let signer = KeyPair::from_pem(&authority.key)?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, signer)?;
    let end = Facts::read(&authority.certificate).map_or(i64::MAX, |facts| facts.not_after);
    let hosts = match holder {
        Holder::Server(hosts) => hosts.iter().map(|host| (*host).to_owned()).collect(),
        Holder::Client(..) => Vec::new(),
    };
    let mut params = lasting(CertificateParams::new(hosts)?, now, end.min(now + LIFE))?;
    params.use_authority_key_identifier_extension = true;
    let (called, purpose) = match holder {
        Holder::Server(_) => (name("apron-apiserver", None), ExtendedKeyUsagePurpose::ServerAuth),
        Holder::Client(user, group) => {
            (name(user, Some(group)), ExtendedKeyUsagePurpose::ClientAuth)
        }
    };
    (params.distinguished_name, params.extended_key_usages) = (called, vec![purpose]);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

fn lasting(
    mut params: CertificateParams,
    now: i64,
    end: i64,
) -> Result<CertificateParams, rcgen::Error> {
    let moment =
        |seconds| OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| rcgen::Error::Time);
    (params.not_before, params.not_after) = (moment(now - SKEW)?, moment(end)?);
    Ok(params)
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// Whether an authority is to be replaced. One that somebody else made is theirs to replace.
pub(super) fn is_authority_due(authority: &Pair, now: i64) -> bool {
    let Some(facts) = Facts::read(&authority.certificate) else { return true };
    facts.is_ours && (facts.is_over_soon(AUTHORITY_LIFE, now) || !facts.is_of(&authority.key))
}

/// Whether a certificate is to be replaced: it ends before long, was made to last for ever, is not
/// good yet, lacks a name of its holder though our authority signed it, or does not belong to its key or to the authority, as after
/// a crash between two files.
pub(super) fn is_due(pair: &Pair, authority: &Pair, holder: Holder<'_>, now: i64) -> bool {
    let facts = Facts::read(&pair.certificate).zip(Facts::read(&authority.certificate));
    let Some((facts, authority)) = facts else { return true };
    facts.is_over_soon(LIFE, now)
        || !facts.is_of(&pair.key)
        || facts.signed_by != authority.id
        || authority.is_ours && !facts.has_names_of(holder)
}

/// What a certificate says.
struct Facts {
    not_before: i64,
    not_after: i64,
    /// The public key, as DER.
    key: Vec<u8>,
    /// What the key is known by, and the key that signed it.
    id: Option<String>,
    signed_by: Option<String>,
    /// Whether it is called as our authorities are.
    is_ours: bool,
    /// DNS names and IP addresses that a server with it is known by.
    hosts: Vec<String>,
}

impl Facts {
    fn read(pem: &str) -> Option<Self> {
        let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
        let certificate: X509Certificate<'_> = pem.parse_x509().ok()?;
        let (mut id, mut signed_by, mut hosts) = (None, None, Vec::new());
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(one) => id = Some(format!("{one:x}")),
                ParsedExtension::AuthorityKeyIdentifier(one) => {
                    signed_by = one.key_identifier.as_ref().map(|one| format!("{one:x}"));
                }
                ParsedExtension::SubjectAlternativeName(names) => {
                    hosts.extend(names.general_names.iter().filter_map(host_name));
                }
                _ => {}
            }
        }
        let mut names = certificate.subject().iter_common_name();
        Some(Self {
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            key: certificate.public_key().raw.to_vec(),
            id,
            signed_by,
            is_ours: names.any(|name| name.as_str() == Ok(AUTHORITY)),
            hosts,
        })
    }

    /// Whether a server is known by every name that its holder is to have; clients have none.
    fn has_names_of(&self, holder: Holder<'_>) -> bool {
        match holder {
            Holder::Server(hosts) => {
                hosts.iter().all(|host| self.hosts.iter().any(|it| it == host))
            }
            Holder::Client(..) => true,
        }
    }

    fn is_over_soon(&self, life: i64, now: i64) -> bool {
        let whole = self.not_after.saturating_sub(self.not_before);
        let is_endless = whole > life.saturating_mul(2);
        is_endless
            || now < self.not_before
            || self.not_after.saturating_sub(now) < whole / PART_LEFT
    }

    fn is_of(&self, key: &str) -> bool {
        KeyPair::from_pem(key).is_ok_and(|key| key.subject_public_key_info() == self.key)
    }
}

/// A name of a server as [`Holder::Server`] has it; none if it is neither a DNS name nor an address.
fn host_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// When a certificate ends, in seconds since 1970.
#[cfg(test)]
pub(super) fn end_of(pem: &str) -> i64 {
    Facts::read(pem).unwrap().not_after
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const SERVER: Holder<'_> = Holder::Server(&["localhost"]);

    /// What was made before certificates had an end: until the year 4096.
    pub(crate) fn endless() -> (Pair, Pair) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = name(AUTHORITY, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let authority = Pair { certificate, key: key.serialize_pem() };
        let (issuer, key) = (Issuer::new(params, key), KeyPair::generate().unwrap());
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        (authority, Pair { certificate, key: key.serialize_pem() })
    }

    /// L6: everything ends, and is replaced when two thirds of its life are over.
    #[test]
    fn l6_certificates_end_and_are_due_before_they_do() {
        let authority = make_authority(NOW).unwrap();
        let server = sign(&authority, SERVER, NOW).unwrap();
        let (whole, ends) =
            (Facts::read(&server.certificate).unwrap(), end_of(&server.certificate));
        assert_eq!((whole.not_before, whole.not_after), (NOW - SKEW, NOW + LIFE));
        assert_eq!(end_of(&authority.certificate), NOW + AUTHORITY_LIFE);
        for (now, is_due_then) in [
            (NOW - SKEW, false),
            (NOW, false),
            (NOW + 240 * DAY, false),
            (NOW + 245 * DAY, true),
            (ends + DAY, true),
            (NOW - SKEW - 1, true),
        ] {
            assert_eq!(is_due(&server, &authority, SERVER, now), is_due_then, "{now}");
        }
        assert!(!is_authority_due(&authority, NOW + 2400 * DAY));
        assert!(is_authority_due(&authority, NOW + 2450 * DAY));
        let late = sign(&authority, SERVER, NOW + AUTHORITY_LIFE - 10 * DAY).unwrap();
        assert_eq!(end_of(&late.certificate), NOW + AUTHORITY_LIFE, "no longer than its authority");
    }

    #[test]
    fn l6_what_lasts_for_ever_or_does_not_belong_together_is_due() {
        let (old_authority, old) = endless();
        assert!(is_authority_due(&old_authority, NOW) && is_due(&old, &old_authority, SERVER, NOW));
        let (one, two) = (make_authority(NOW).unwrap(), make_authority(NOW).unwrap());
        let server = sign(&one, SERVER, NOW).unwrap();
        assert!(is_due(&server, &two, SERVER, NOW), "another authority signed it");
        let other = sign(&one, SERVER, NOW).unwrap();
        assert!(is_due(&Pair { key: other.key, ..server }, &one, SERVER, NOW), "another's key");
        assert!(is_authority_due(&Pair { key: two.key, ..one }, NOW));
    }

    /// A data directory that an earlier version made has a certificate with fewer names.
    #[test]
    fn a_certificate_that_lacks_a_name_of_its_server_is_due() {
        let authority = make_authority(NOW).unwrap();
        let all = ["localhost", "10.96.0.1", "::1", "kubernetes.default.svc"];
        let server = sign(&authority, Holder::Server(&all), NOW).unwrap();
        let is_due_for = |hosts: &[&str]| is_due(&server, &authority, Holder::Server(hosts), NOW);
        assert!(!is_due_for(&all));
        assert!(!is_due_for(&all[..2]), "more names than are needed do no harm");
        for lacking in ["kubernetes.default", "10.96.0.2", "::2", "kubernetes.default.svc."] {
            assert!(is_due_for(&["localhost", lacking]), "{lacking}");
        }
        let admin = sign(&authority, Holder::Client("admin", "group"), NOW).unwrap();
        assert!(!is_due(&admin, &authority, Holder::Client("admin", "group"), NOW));
    }
}
