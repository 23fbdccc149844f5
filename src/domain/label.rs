//! Labels of jobs.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The labels of a job, by name, in the order in which they were written. No part of its identity.
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
    /// Returns whether it is among these.
    pub fn is_among(&self, labels: &Labels) -> bool {
        labels.get(&self.name) == Some(&self.value)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.value)
    }
}
