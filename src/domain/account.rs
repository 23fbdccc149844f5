//! Account: the base URL of a service and a key for it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The owner of a task. To another one, the task does not exist.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The service's address; shared, because ten thousand tasks have the same.
    pub service: Arc<str>,
    /// A fingerprint of the key, from which the key can't be had.
    pub key: Arc<str>,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with the key {}", self.service, self.key)
    }
}
