//! Certificates: read for `plan`, and made as it says.
//!
//! Authorities have RSA keys in the form that Crossplane's core reads (PKCS#1), so that both can
//! use one authority on one cluster; everybody else has the smaller and faster ECDSA.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::runtime::Certificate;
use plan::step::{Make, Usage};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize,
};
use serde_json::Value as Json;
use time::OffsetDateTime;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;

/// Who a certificate is of, besides its names.
const SUBJECT: &str = "Crossplane";
/// Characters in a line of PEM.
const LINE: usize = 64;

/// A key and a certificate, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What the first certificate in a field of a Secret says, if it is one.
pub(crate) fn read(field: &str) -> Option<Certificate> {
    let (_, pem) = parse_x509_pem(&STANDARD.decode(field).ok()?).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let names = certificate.subject_alternative_name().ok()?;
    let names = names.map(|found| found.value.general_names.iter()).into_iter().flatten();
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    let (mut key, mut signed_by) = (None, None);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(one) => key = Some(format!("{one:x}")),
            ParsedExtension::AuthorityKeyIdentifier(one) => {
                signed_by = one.key_identifier.as_ref().map(|one| format!("{one:x}"));
            }
            _ => {}
        }
    }
    let validity = certificate.validity();
    Some(Certificate {
        names: names.collect(),
        not_before: validity.not_before.timestamp(),
        not_after: validity.not_after.timestamp(),
        key,
        signed_by,
    })
}

/// Which certificates and keys of a Secret belong together, by the texts of their fields: one in
/// `x.crt` has its key in `x.key`.
pub(crate) fn pairs(secret: &Json) -> impl Iterator<Item = (String, String)> {
    let fields = secret["data"].as_object().into_iter().flatten();
    fields.filter_map(|(name, certificate)| {
        let key = format!("{}.key", name.strip_suffix(".crt")?);
        let (certificate, key) = (certificate.as_str()?, secret["data"][key].as_str()?);
        is_pair(certificate, key)?.then(|| (certificate.to_owned(), key.to_owned()))
    })
}

/// Whether the first certificate in a field is of the key in another; none if either is no such
/// thing.
fn is_pair(certificate: &str, key: &str) -> Option<bool> {
    let key = String::from_utf8(STANDARD.decode(key).ok()?).ok()?;
    let key = KeyPair::from_pem(private(&key)).ok()?;
    Some(is_of(&STANDARD.decode(certificate).ok()?, &key))
}

/// Whether a certificate is of a key. Their public keys are compared: identifiers can be written by
/// anybody.
fn is_of(certificate: &[u8], key: &KeyPair) -> bool {
    let Ok((_, pem)) = parse_x509_pem(certificate) else { return false };
    pem.parse_x509().is_ok_and(|certificate| {
        key.public_key_raw() == &*certificate.public_key().subject_public_key.data
    })
}

/// A text from where a private key begins: tools write the parameters of its curve before it.
fn private(text: &str) -> &str {
    let label = text.find("PRIVATE KEY-----");
    let begin = label.and_then(|label| text.get(..label)?.rfind("-----BEGIN "));
    begin.and_then(|begin| text.get(begin..)).unwrap_or(text)
}

/// Makes a key and a certificate, signed by an authority or by itself.
pub(crate) fn make(what: &Make, authority: Option<&Pair>) -> Result<Pair, String> {
    let failed = |error: rcgen::Error| format!("cannot make a certificate: {error}");
    let params = params(what).map_err(failed)?;
    if let Some(authority) = authority {
        let unusable = |why: String| {
            format!("the authority cannot sign certificates: {why}; mend or delete its Secret")
        };
        let unread = |error: rcgen::Error| unusable(error.to_string());
        let signer = KeyPair::from_pem(private(&authority.key)).map_err(unread)?;
        // What it signed would name the right authority, and nobody would believe it.
        if !is_of(authority.certificate.as_bytes(), &signer) {
            return Err(unusable("its key is not that of its certificate".to_owned()));
        }
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, signer).map_err(unread)?;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        return Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() });
    }
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = pkcs1(&key.serialize_der()).ok_or("a key is not in the form that was expected")?;
    Ok(Pair { certificate: certificate.pem(), key })
}

fn params(what: &Make) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(what.names.clone())?;
    let moment =
        |seconds| OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| rcgen::Error::Time);
    (params.not_before, params.not_after) = (moment(what.not_before)?, moment(what.not_after)?);
    params.distinguished_name = rcgen::DistinguishedName::new();
    for part in [DnType::CommonName, DnType::OrganizationName] {
        params.distinguished_name.push(part, SUBJECT);
    }
    params.use_authority_key_identifier_extension = true;
    match what.usage {
        Usage::Authority => {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        }
        Usage::Server | Usage::Client => {
            params.key_usages =
                vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
            let purpose = match what.usage {
                Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
                _ => ExtendedKeyUsagePurpose::ClientAuth,
            };
            params.extended_key_usages = vec![purpose];
        }
    }
    Ok(params)
}

/// An RSA key without the wrapping of PKCS#8, as PEM. What is in there is the last of the three
/// things in the outer sequence: a version, the kind of key, and the key as a string of bytes.
fn pkcs1(wrapped: &[u8]) -> Option<String> {
    let (outer, _) = element(wrapped, 0x30)?;
    let (_, rest) = element(outer, 0x02)?;
    let (_, rest) = element(rest, 0x30)?;
    let (key, _) = element(rest, 0x04)?;
    let text = STANDARD.encode(key);
    let mut pem = "-----BEGIN RSA PRIVATE KEY-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str("-----END RSA PRIVATE KEY-----\n");
    Some(pem)
}

/// The contents of a DER element with this tag, and what is after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, short], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (found == tag).then_some(())?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn what(usage: Usage, names: &[&str]) -> Make {
        Make {
            certificate: "tls.crt",
            key: "tls.key",
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            usage,
            not_before: 1_767_225_600,
            not_after: 1_798_761_600,
            signer: None,
        }
    }

    fn as_field(pem: &str) -> String {
        STANDARD.encode(pem)
    }

    #[test]
    fn what_was_made_reads_as_it_was_asked_for() {
        let authority = make(&what(Usage::Authority, &["crossplane-root-ca"]), None).unwrap();
        assert!(authority.key.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        let read_authority = read(&as_field(&authority.certificate)).unwrap();
        assert_eq!(read_authority.names, ["crossplane-root-ca"]);
        let asked = what(Usage::Server, &["p", "p.crossplane-system.svc"]);
        let server = make(&asked, Some(&authority)).unwrap();
        let server = read(&as_field(&server.certificate)).unwrap();
        assert_eq!(server.names, asked.names);
        assert_eq!((server.not_before, server.not_after), (asked.not_before, asked.not_after));
        assert!(server.signed_by.is_some());
        assert_eq!(server.signed_by, read_authority.key);
    }

    /// The names of the fields of a Secret whose certificates have their keys.
    fn paired(secret: &Json) -> Vec<String> {
        let found: Vec<_> = pairs(secret).collect();
        let fields = secret["data"].as_object().unwrap().iter();
        let of = |text: &Json| found.iter().any(|(certificate, _)| *text == **certificate);
        fields.filter(|(_, text)| of(text)).map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn a_key_is_told_from_that_of_another_certificate() {
        let authority = make(&what(Usage::Authority, &["crossplane-root-ca"]), None).unwrap();
        let next = make(&what(Usage::Authority, &["crossplane-root-ca"]), None).unwrap();
        let server = make(&what(Usage::Server, &["p"]), Some(&authority)).unwrap();
        let curve =
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let before = format!("{curve}{}", server.key);
        for (certificate, key, is_pair) in [
            (&authority.certificate, &authority.key, true),
            (&server.certificate, &server.key, true),
            (&server.certificate, &before, true),
            (&authority.certificate, &next.key, false),
            (&authority.certificate, &server.key, false),
            (&server.certificate, &authority.key, false),
            (&server.certificate, &"nonsense".to_owned(), false),
            (&server.certificate, &server.certificate, false),
            (&"nonsense".to_owned(), &server.key, false),
        ] {
            let secret = json!({"data": {
                "tls.crt": as_field(certificate), "tls.key": as_field(key),
                "next.crt": as_field(&next.certificate), "next.key": as_field(&next.key),
                "previous.crt": as_field(&authority.certificate), "ca.crt": "!",
            }});
            assert_eq!(
                paired(&secret).contains(&"tls.crt".to_owned()),
                is_pair,
                "{certificate}{key}"
            );
            assert!(paired(&secret).contains(&"next.crt".to_owned()));
        }
        assert_eq!(pairs(&json!({})).count(), 0);
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for text in ["", "!", "bm9uc2Vuc2U=", &as_field("-----BEGIN CERTIFICATE-----\n")] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn an_authority_that_cannot_sign_says_so() {
        let broken = Pair { certificate: "none".to_owned(), key: "none".to_owned() };
        let said = make(&what(Usage::Client, &["p-1"]), Some(&broken)).err().unwrap();
        assert!(said.contains("mend or delete its Secret"), "{said}");
        let [one, other] =
            [(); 2].map(|()| make(&what(Usage::Authority, &["crossplane-root-ca"]), None).unwrap());
        let mixed = Pair { certificate: one.certificate, key: other.key };
        let said = make(&what(Usage::Client, &["p-1"]), Some(&mixed)).err().unwrap();
        assert!(said.contains("mend or delete its Secret"), "{said}");
    }
}
