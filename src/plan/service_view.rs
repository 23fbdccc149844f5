//! The service that a plan names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The service as a plan names it. An approval doesn't cover it; a run reports a difference.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServiceView {
    /// The base URL; null if none is set, and in the sandbox.
    pub base_url: Option<String>,
    /// The names of the headers for a gateway, sorted.
    pub headers: Vec<String>,
}
