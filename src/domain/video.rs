//! A video on this machine.

use serde::{Deserialize, Serialize};

use super::{Footage, OutputPath};

/// A video that was fetched whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VideoFile {
    /// Its path in the output directory.
    pub path: OutputPath,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// Its facts, if its index was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footage: Option<Footage>,
}
