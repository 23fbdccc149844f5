//! Digests of plans, for approvals; hexadecimal digits; random numbers.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The size of a hashed piece, in bytes.
const PIECE: usize = 32 * 1024;

/// SHA-256 of all that a plan would buy, as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The hexadecimal digits of a digest. A shorter form could be forged: the author of a manifest can find two plans that share 64 bits within
    /// minutes.
    pub const DIGITS: usize = 64;

    /// The digest of a text.
    pub fn of(text: &str) -> Self {
        Self(hex(&Sha256::digest(text.as_bytes())))
    }

    /// The digest of a value as JSON, which is never whole in memory.
    pub fn of_json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        // In pieces: JSON is written a few bytes at a time.
        let mut hasher = BufWriter::with_capacity(PIECE, Hasher(Sha256::new()));
        serde_json::to_writer(&mut hasher, value)?;
        let hasher = hasher.into_inner().map_err(|error| serde_json::Error::io(error.into_error()))?;
        Ok(Self(hex(&hasher.0.finalize())))
    }

    /// The digest that 64 hexadecimal digits name, in either letter case.
    pub fn parse(text: &str) -> Option<Self> {
        let is_whole = text.len() == Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_whole.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Hashes what is written to it.
struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.push(digit(byte >> 4));
        digits.push(digit(byte & 0xf));
    }
    digits
}

/// A number from the system's own randomness. Each hasher has keys of its own.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_every_digit() {
        assert_eq!(hex(&[0x00, 0x1f, 0xa5, 0xff]), "001fa5ff");
    }
}
