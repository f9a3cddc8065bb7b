//! Manifests and configs: no bytes make reading panic; what was read can be written and read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{Document, ImageConfig, Manifest, MediaType, Raw};

fuzz_target!(|bytes: &[u8]| {
    for media_type in [MediaType::default(), MediaType::DOCKER_MANIFEST, MediaType::OCI_INDEX] {
        let Ok(raw) = Raw::parse(bytes.to_vec(), &media_type) else { continue };
        assert_eq!(raw.bytes, bytes);
        assert!(raw.digest.matches(bytes));
        let written = match &raw.document {
            Document::Manifest(manifest) => serde_json::to_vec(manifest),
            Document::Index(index) => serde_json::to_vec(index),
        };
        let again = Raw::parse(written.unwrap(), &raw.media_type).unwrap();
        assert_eq!(again.document, raw.document);
    }
    if let Ok(config) = serde_json::from_slice::<ImageConfig>(bytes) {
        let written = serde_json::to_vec(&config).unwrap();
        assert_eq!(serde_json::from_slice::<ImageConfig>(&written).unwrap(), config);
    }
    let _ = serde_json::from_slice::<Manifest>(bytes);
});
