//! What the ledger keeps of an attempt besides its life at the service.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, JobId, Labels, OutputPath};

/// What is known of an attempt that no answer of the service says.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Particulars {
    /// The labels that its job had when it was submitted.
    pub labels: Labels,
    /// Where its video goes inside the output folder, if its manifest said so.
    #[serde(deserialize_with = "super::kept::if_valid")]
    pub output: Option<Box<OutputPath>>,
    /// The plan that somebody approved, and that it was bought as a part of.
    pub approval: Option<Box<Digest>>,
    /// The id that its job had when it was submitted, if that was moved to another one since.
    pub bought_as: Option<Box<JobId>>,
    /// What a person declared of it.
    pub declared: Option<Declared>,
    /// SHA-256 of the local picture that it began with.
    pub picture: Option<Box<str>>,
    /// What came of the program that was started for its video.
    pub executed: Option<Box<Executed>>,
    /// What the service's bill says of it.
    pub billed: Option<Box<Billed>>,
    /// The machine that fetched its video, where several share a ledger: the video is there, and perhaps nowhere else.
    pub fetched_by: Option<Box<str>>,
}

/// What a person declared, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Declared {
    /// What.
    pub what: Declaration,
    /// When.
    pub at: Timestamp,
}

/// What a person can declare of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declaration {
    /// It made no task.
    NeverCreated,
    /// It made the task that is written down.
    Found,
    /// Its task will never end.
    Lost,
    /// It met a server error, which buys nothing by the user's statement about the service (`--retry-server-errors`).
    ServerError,
}

impl Declaration {
    /// Returns whether it says that no task was created, which a task that turns up refutes.
    #[must_use]
    pub fn denies_task(self) -> bool {
        matches!(self, Self::NeverCreated | Self::ServerError)
    }
}

impl std::fmt::Display for Declared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.what {
            Declaration::NeverCreated => "never created",
            Declaration::Found => "found at the service",
            Declaration::Lost => "lost",
            Declaration::ServerError => "free of charge after a server error",
        };
        write!(f, "declared {what} on {}", self.at.strftime("%F"))
    }
}

/// What came of the program that was started for a video, or is to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Executed {
    /// When it ended.
    pub at: Timestamp,
    /// Why it counts as failed, if it does.
    pub error: Option<String>,
    /// The last line that it wrote.
    pub line: Option<String>,
}

impl Executed {
    /// What is written down as the error before a program has ended.
    pub const OWED: &str = "it was not started, or not to its end";

    /// Whether that is all there is to say.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.error.as_deref() == Some(Self::OWED)
    }
}

/// What a bill says of an attempt whose charge nobody documents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Billed {
    /// Whether it was charged.
    pub is_charged: bool,
    /// Which bill: its file name and the beginning of its SHA-256.
    pub source: String,
    /// When that was written down.
    pub at: Timestamp,
}
