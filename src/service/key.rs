//! The API key: a secret that prints as `***`.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::hex;

/// The key that every request carries (interface §5).
#[derive(Clone)]
pub struct ApiKey(SecretString);

/// The reason why a string is not a key. The string itself is never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It is in quotes, as in a file of settings.
    #[error("it is quoted")]
    Quoted,
    /// It has a character that no HTTP header may carry.
    #[error("it contains a space, a line break, or another invalid character")]
    BadCharacter,
}

impl ApiKey {
    /// Takes a text as a key; white space around it and a byte order mark are dropped, because
    /// files come with them.
    pub fn new(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']) {
            return Err(InvalidKey::Quoted);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidKey::BadCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The fingerprint of this key, from which the key can't be derived: keys are long and random.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::digest(format!("shotlist key\0{}", self.0.expose_secret()));
        hex(&digest[..8])
    }

    /// The key itself, to be looked for where it must not stand.
    pub(super) fn secret(&self) -> &str {
        self.0.expose_secret()
    }

    /// The value of the header `Authorization`.
    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.0.expose_secret())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_shows_itself() {
        let key = ApiKey::new("secret-key\n").expect("a key");
        assert_eq!(format!("{key:?}"), "***");
        assert_eq!(key.bearer(), "Bearer secret-key");
    }

    #[test]
    fn refuses_what_no_header_carries() {
        assert_eq!(ApiKey::new(" \n").map(drop), Err(InvalidKey::Empty));
        assert_eq!(ApiKey::new("a b").map(drop), Err(InvalidKey::BadCharacter));
        assert_eq!(ApiKey::new("\"secret-key\"").map(drop), Err(InvalidKey::Quoted));
        assert_eq!(ApiKey::new("ключ").map(drop), Err(InvalidKey::BadCharacter));
    }
}
