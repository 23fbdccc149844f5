//! Numbers that no one else draws.

use std::hash::{BuildHasher as _, RandomState};

/// A number from the system's own randomness. Each hasher has keys of its own.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
