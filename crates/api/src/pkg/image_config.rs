//! Image configurations: credentials, mirrors, signatures and runtimes, by prefix of the image.

use super::package::{LocalReference, RuntimeConfigRef};
use crate::object::ObjectMeta;
use crate::wire::wire;

wire! {
    /// How to treat images whose names begin alike.
    ImageConfig {
        /// The version of the API this object is written in.
        api_version: String = "apiVersion",
        /// Always `ImageConfig`.
        kind: String = "kind",
        /// Name, labels and the rest of what every object has.
        metadata: ObjectMeta = "metadata",
        /// What to do.
        spec: Option<ImageConfigSpec> = "spec",
    }

    /// What to do with matching images.
    ImageConfigSpec {
        /// Which images this is about; one match is enough.
        match_images: Vec<ImageMatch> = "matchImages" with {"x-kubernetes-validations": [{
            "rule": "size(self) > 0", "message": "matchImages should have at least one element."
        }]},
        /// How to talk to their registry.
        registry: Option<Registry> = "registry",
        /// Which signatures they must have.
        verification: Option<Verification> = "verification",
        /// Where to fetch them from instead.
        rewrite_image: Option<RewriteImage> = "rewriteImage",
        /// How to run them.
        runtime: Option<Runtime> = "runtime",
    }

    /// Which images.
    ImageMatch {
        /// How to compare.
        match_type: Option<String> = "type" with {"default": "Prefix", "enum": ["Prefix"]},
        /// What the image's name begins with; of several that match, the longest counts. Where
        /// signatures are asked for, an empty one matches everything.
        prefix: String = "prefix",
    }

    /// How to talk to a registry.
    Registry {
        /// Who to be there.
        authentication: Option<RegistryAuthentication> = "authentication",
    }

    /// Who to be at a registry.
    RegistryAuthentication {
        /// The Secret with the credentials.
        pull_secret_ref: LocalReference = "pullSecretRef",
    }

    /// Where to fetch images from instead.
    RewriteImage {
        /// What takes the place of the prefix that matched.
        prefix: String = "prefix",
    }

    /// How to run images.
    Runtime {
        /// The runtime configuration.
        config_ref: Option<RuntimeConfigRef> = "configRef",
    }

    /// Which signatures images must have.
    Verification {
        /// Who verifies.
        provider: String = "provider" with {"enum": ["Cosign"]},
        /// How cosign does.
        cosign: Option<Cosign> = "cosign",
    }

    /// Signatures made by cosign.
    Cosign {
        /// Who may have signed; one is enough.
        authorities: Vec<CosignAuthority> = "authorities",
    }

    /// Somebody who may have signed.
    CosignAuthority {
        /// What to call them.
        name: String = "name",
        /// Their key.
        key: Option<Key> = "key",
        /// Or who they were when they signed.
        keyless: Option<Keyless> = "keyless",
        /// What they must have attested.
        attestations: Option<Vec<Attestation>> = "attestations",
    }

    /// A public key.
    Key {
        /// Where it is.
        secret_ref: KeyReference = "secretRef",
        /// How signatures were hashed.
        hash_algorithm: String = "hashAlgorithm" with {"default": "sha256"},
    }

    /// An entry of a Secret.
    KeyReference {
        /// The Secret.
        name: String = "name",
        /// The entry.
        key: String = "key",
    }

    /// Somebody known by a certificate.
    Keyless {
        /// Who they may be.
        identities: Vec<Identity> = "identities",
        /// Do not ask for proof that the certificate was published.
        insecure_ignore_sct: Option<bool> = "insecureIgnoreSCT",
    }

    /// Who somebody is, and who says so.
    Identity {
        /// Who says so, exactly.
        issuer: Option<String> = "issuer",
        /// Who they are, exactly.
        subject: Option<String> = "subject",
        /// Who says so, as a regular expression.
        issuer_reg_exp: Option<String> = "issuerRegExp",
        /// Who they are, as a regular expression.
        subject_reg_exp: Option<String> = "subjectRegExp",
    }

    /// Something attested.
    Attestation {
        /// What to call it.
        name: String = "name",
        /// What kind of statement it is.
        predicate_type: String = "predicateType",
    }
}
