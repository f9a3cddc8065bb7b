//! JSON whose bytes depend on nothing but its meaning, and such JSON made small.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde_json::Value as Json;
use std::io::{self, Read as _, Write as _};

/// The largest schema that is unpacked again; documents are smaller.
const UNPACKED_SIZE_MAX: u64 = 64 << 20;

/// A value's JSON with the keys of all objects in order.
pub(crate) fn canonical(mut value: Json) -> Vec<u8> {
    value.sort_all_objects();
    serde_json::to_vec(&value).unwrap_or_default()
}

pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

pub(crate) fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    ZlibDecoder::new(bytes).take(UNPACKED_SIZE_MAX).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one = json!({"b": [{"y": 1, "x": 2}], "a": null});
        let other = json!({"a": null, "b": [{"x": 2, "y": 1}]});
        assert_eq!(canonical(one.clone()), canonical(other));
        assert_eq!(canonical(one), br#"{"a":null,"b":[{"x":2,"y":1}]}"#);
    }

    #[test]
    fn what_was_made_small_comes_back() {
        let bytes = canonical(json!({"a": "b".repeat(10_000)}));
        let small = compress(&bytes).unwrap();
        assert!(small.len() < 100);
        assert_eq!(decompress(&small).unwrap(), bytes);
    }
}
