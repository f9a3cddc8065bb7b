//! Content addresses: `sha256:…` and `sha512:…`, and the hashing that makes them.

use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use sha2::digest::common::hazmat::SerializableState;
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// A hash function OCI registers for digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, what everybody uses.
    Sha256,
    /// SHA-512, the other registered one.
    Sha512,
}

impl Algorithm {
    /// The algorithm of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The name before the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// The address of some bytes: an algorithm and the hash in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// There is no `algorithm:` before the hash.
    #[error("digest `{0}` has no `sha256:` or `sha512:` before the hash")]
    NoAlgorithm(String),
    /// The algorithm is one we do not know.
    #[error("digest algorithm `{0}` is not supported; use sha256 or sha512")]
    Algorithm(String),
    /// The hash has the wrong length or letters.
    #[error("digest `{text}` must have {expected} lower-case hexadecimal digits after the colon")]
    Hash {
        /// What was given.
        text: String,
        /// How many digits the algorithm has.
        expected: usize,
    },
}

impl Digest {
    /// The SHA-256 digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Which hash function made it.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The hash alone, in hexadecimal.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// A hasher that, fed the same bytes, gives this digest.
    pub fn hasher(&self) -> Hasher {
        Hasher::new(self.algorithm)
    }

    /// Whether these bytes are the ones addressed.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.finish() == *self
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (name, hex) =
            text.split_once(':').ok_or_else(|| DigestError::NoAlgorithm(text.to_owned()))?;
        let algorithm =
            Algorithm::parse(name).ok_or_else(|| DigestError::Algorithm(name.to_owned()))?;
        let expected = algorithm.hex_length();
        let valid = hex.len() == expected
            && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !valid {
            return Err(DigestError::Hash { text: text.to_owned(), expected });
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

/// Makes a digest of bytes that pass by in pieces.
#[derive(Clone, Debug)]
pub struct Hasher {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
}

impl Hasher {
    /// A hasher that has seen nothing yet.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::new(sha2::Sha512::new())),
        };
        Self { state }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// What has been seen so far, as bytes from which [`Hasher::resume`] goes on.
    pub fn state(&self) -> Vec<u8> {
        match &self.state {
            State::Sha256(state) => state.serialize().to_vec(),
            State::Sha512(state) => state.serialize().to_vec(),
        }
    }

    /// A hasher that goes on where [`Hasher::state`] was taken; `None` if the bytes are no state
    /// of this algorithm.
    pub fn resume(algorithm: Algorithm, state: &[u8]) -> Option<Self> {
        let state = match algorithm {
            Algorithm::Sha256 => {
                State::Sha256(sha2::Sha256::deserialize(state.try_into().ok()?).ok()?)
            }
            Algorithm::Sha512 => {
                State::Sha512(Box::new(sha2::Sha512::deserialize(state.try_into().ok()?).ok()?))
            }
        };
        Some(Self { state })
    }

    /// Which hash function this is.
    pub fn algorithm(&self) -> Algorithm {
        match self.state {
            State::Sha256(_) => Algorithm::Sha256,
            State::Sha512(_) => Algorithm::Sha512,
        }
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Digest {
        let (algorithm, hex) = match self.state {
            State::Sha256(state) => (Algorithm::Sha256, hex::encode(state.finalize())),
            State::Sha512(state) => (Algorithm::Sha512, hex::encode(state.finalize())),
        };
        Digest { algorithm, hex }
    }
}

/// Passes bytes through to a writer while hashing and counting them.
#[derive(Debug)]
pub struct HashWriter<W> {
    inner: W,
    hasher: Hasher,
    count: u64,
}

impl<W: Write> HashWriter<W> {
    /// Wraps a writer; digests are SHA-256.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Hasher::new(Algorithm::Sha256), count: 0 }
    }

    /// The writer, the digest and the number of bytes that passed.
    pub fn finish(self) -> (W, Digest, u64) {
        (self.inner, self.hasher.finish(), self.count)
    }
}

impl<W: Write> Write for HashWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads everything from a reader and gives its SHA-256 digest and length.
pub fn digest_reader(mut reader: impl Read) -> io::Result<(Digest, u64)> {
    let mut sink = HashWriter::new(io::sink());
    io::copy(&mut reader, &mut sink)?;
    let (_, digest, count) = sink.finish();
    Ok((digest, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_prints_as_it_was_written() {
        let digest: Digest = EMPTY.parse().unwrap();
        assert_eq!(digest.to_string(), EMPTY);
        assert_eq!(Digest::of(b""), digest);
        assert!(digest.matches(b"") && !digest.matches(b"x"));
    }

    #[test]
    fn sha512_is_spoken_too() {
        let mut hasher = Hasher::new(Algorithm::Sha512);
        hasher.update(b"abc");
        let digest = hasher.finish();
        assert!(digest.to_string().starts_with("sha512:ddaf35a193617aba"));
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
    }

    #[test]
    fn a_hasher_goes_on_from_its_state() {
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let mut whole = Hasher::new(algorithm);
            whole.update(b"one two three");
            let mut part = Hasher::new(algorithm);
            part.update(b"one two");
            let mut rest = Hasher::resume(algorithm, &part.state()).unwrap();
            rest.update(b" three");
            assert_eq!(rest.finish(), whole.finish());
            assert!(Hasher::resume(algorithm, b"not a state").is_none());
        }
    }

    #[test]
    fn what_is_not_a_digest_is_refused_with_the_reason() {
        let cases = [
            ("", "digest `` has no `sha256:` or `sha512:` before the hash"),
            ("md5:aa", "digest algorithm `md5` is not supported; use sha256 or sha512"),
            (
                "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
                "digest `sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855` must have 64 lower-case hexadecimal digits after the colon",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Digest>().unwrap_err().to_string(), expected);
        }
        assert!("sha256:../../etc/passwd".parse::<Digest>().is_err());
    }
}
