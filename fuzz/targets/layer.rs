//! Layers: whatever the bytes are, reading them ends within the limits.
//!
//! The first byte says into how many layers the rest is cut, and whether each is compressed here
//! first, so that archives are reached without guessing a checksum.

#![no_main]

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use oci::layer::{LayerSource, Limits, flatten, open_file};
use std::io::{self, Read, Write};

const LIMITS: Limits = Limits {
    compressed_bytes_max: 64 << 10,
    expanded_bytes_max: 256 << 10,
    entries_max: 64,
    path_bytes_max: 512,
    names_bytes_max: 8 << 10,
};

struct Layers(Vec<Vec<u8>>);

impl LayerSource for Layers {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].as_slice()))
    }
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let count = usize::from(first % 3) + 1;
    // Archives are made of blocks: cutting between them leaves archives.
    let size = (rest.len() / count).next_multiple_of(512).max(512);
    let mut layers: Vec<_> = rest.chunks(size).take(count).map(<[u8]>::to_vec).collect();
    if first & 0x80 != 0 {
        layers.iter_mut().for_each(|layer| *layer = compress(layer));
    }
    let layers = Layers(layers);
    if let Ok(flat) = flatten(&layers, &LIMITS) {
        assert!(flat.paths.len() as u64 <= LIMITS.entries_max);
        for path in flat.paths.keys() {
            assert!(path.len() as u64 <= LIMITS.path_bytes_max);
            assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."));
        }
    }
    if let Ok(Some(mut reader)) = open_file(&layers, "package.yaml", &LIMITS) {
        let count = io::copy(&mut reader, &mut io::sink());
        assert!(count.unwrap_or_default() <= LIMITS.expanded_bytes_max);
    }
});
