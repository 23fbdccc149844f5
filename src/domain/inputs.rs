//! Files and variables that a manifest reads.

use schemars::JsonSchema;
use serde::Serialize;

/// The names of what a plan read: all of it may be in what its jobs send.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Inputs {
    /// Files, as the manifest names them, in alphabetic order.
    pub files: Vec<String>,
    /// Environment variables, as they are listed under `env`.
    pub variables: Vec<String>,
}
