//! A small deterministic generator: one seed gives the same names and the same bytes again.

/// `SplitMix64`; good enough to make contents distinct, which is all it is for.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each (seed, label), so that checks do not depend on each other.
    pub(crate) fn new(seed: u64, label: &str) -> Self {
        let mixed = label.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mixed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// Eight hexadecimal characters.
    pub(crate) fn suffix(&mut self) -> String {
        format!("{:08x}", self.next() >> 32)
    }

    /// A version-4 UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_and_a_label_decide_everything() {
        assert_eq!(Random::new(1, "a").bytes(100), Random::new(1, "a").bytes(100));
        assert_ne!(Random::new(1, "a").bytes(100), Random::new(1, "b").bytes(100));
        assert_ne!(Random::new(1, "a").bytes(100), Random::new(2, "a").bytes(100));
        assert_eq!(Random::new(1, "a").uuid().len(), 36);
    }
}
