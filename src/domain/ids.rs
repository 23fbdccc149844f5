//! Names: of jobs, tasks, batches, labels, and accounts; and digests.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::text::{displayed, normalized};

/// The name of a job, unique in its batch: 1 to 128 of `A-Z a-z 0-9 . _ -`, starting with a letter or a digit.
///
/// It names files, so it can't leave a directory or look like an option.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct JobId(String);

/// The maximum length, in characters.
const MAX_ID: usize = 128;

/// The reason why a string is not a job ID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidJobId(String);

impl JobId {
    /// Parses an ID.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidJobId> {
        let text = text.into();
        let refused = |why: String| Err(InvalidJobId(why));
        let Some(first) = text.chars().next() else { return refused("the ID is empty".to_owned()) };
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-')) {
            return refused(format!("the ID contains {bad:?}; only A-Z a-z 0-9 . _ - are allowed"));
        }
        if !first.is_ascii_alphanumeric() {
            return refused(format!("the ID must start with an ASCII letter or digit, found `{first}`"));
        }
        if text.len() > MAX_ID {
            return refused(format!("the ID must have at most {MAX_ID} characters, found {}", text.len()));
        }
        Ok(Self(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ID in lowercase. Two IDs with the same one would share a file on a Mac or on Windows.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl TryFrom<String> for JobId {
    type Error = InvalidJobId;

    fn try_from(text: String) -> Result<Self, InvalidJobId> {
        Self::new(text)
    }
}

displayed!(JobId(it): it.0);

/// The service's name for a video task, as it came in `id` or `task_id` (interface §2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskId(Box<str>);

impl TaskId {
    /// Parses a task ID. `None` for a blank one, which could never be polled.
    pub fn new(text: impl Into<Box<str>>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

displayed!(TaskId(it): it.0);

/// The names of one task at the service: the one for polls, and another where the service uses two.
///
/// By the interface, `id` and `task_id` are the same (§2.3). Behind gateways they may differ: one may be a number of the gateway, and
/// the response to a poll may have another name than that to the submission.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TaskNames {
    /// The name for the first poll.
    pub id: TaskId,
    /// The other name.
    pub alias: Option<TaskId>,
}

impl TaskNames {
    /// Returns whether this is one of its names.
    pub fn has(&self, name: &TaskId) -> bool {
        self.id == *name || self.alias.as_ref() == Some(name)
    }

    /// Every name, that for the first poll first.
    pub fn each(&self) -> impl Iterator<Item = &TaskId> {
        std::iter::once(&self.id).chain(&self.alias)
    }
}

impl From<TaskId> for TaskNames {
    fn from(id: TaskId) -> Self {
        Self { id, alias: None }
    }
}

impl fmt::Display for TaskNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(alias) = &self.alias else { return self.id.fmt(f) };
        write!(f, "{} (also {alias})", self.id)
    }
}

/// The batch of a run: the manifest's name and its batch value (empty without one).
///
/// A job is `(name, batch, id)`; a new batch value makes every job due again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BatchKey {
    /// The manifest's name.
    pub name: String,
    /// The batch value, or an empty text.
    pub batch: String,
}

impl BatchKey {
    /// Returns whether a purchase of this batch may repeat one of another batch. A new batch value means a new round, unless both are equal
    /// when [normalized](normalized()). A batch without a value may have lost it, so it may repeat every round.
    pub fn may_repeat(&self, other: &Self) -> bool {
        let is_new_round = || !self.batch.is_empty() && normalized(&self.batch) != normalized(&other.batch);
        self != other && (self.name != other.name || !is_new_round())
    }
}

impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batch.is_empty() { f.pad(&self.name) } else { write!(f, "{} / {}", self.name, self.batch) }
    }
}

/// The labels of a job, by name, in the order of the manifest. No part of its identity.
pub type Labels = IndexMap<String, String>;

/// One label with its value, `client: acme`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Label {
    /// Returns whether these labels include it.
    pub fn is_among(&self, labels: &Labels) -> bool {
        labels.get(&self.name) == Some(&self.value)
    }
}

displayed!(Label(it): format_args!("{} {}", it.name, it.value));

/// The owner of a task. For other accounts, the task does not exist.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The service's address; shared, because ten thousand tasks have the same.
    pub service: Arc<str>,
    /// A fingerprint of the key, which does not reveal it.
    pub key: Arc<str>,
}

displayed!(Account(it): format_args!("{} with the key {}", it.service, it.key));

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

displayed!(Digest(it): it.0);

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    halves.map(|half| char::from(b"0123456789abcdef"[usize::from(half)])).collect()
}

/// A number from the system's own randomness. Each hasher has keys of its own.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_never_leaves_a_directory_or_looks_like_an_option() {
        for good in ["a", "7", "hero", "spin-AB_1.2", &"x".repeat(128)] {
            assert!(JobId::new(good).is_ok(), "{good:?} was refused");
        }
        for bad in ["", ".", "..", "-x", "_x", "a/b", "a\\b", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(JobId::new(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn writes_every_digit() {
        assert_eq!(hex(&[0x00, 0x1f, 0xa5, 0xff]), "001fa5ff");
    }
}
