//! Facts of an attempt besides its states at the service, and of a ledger that several runners share.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::codes::RefusalCode;
use super::{Digest, JobId, Reviewed, Usd};

/// The facts of an attempt that no response of the service has.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Particulars {
    /// The plan that someone approved, and that it was bought as a part of.
    pub approval: Option<Box<Digest>>,
    /// The id that its job had when it was submitted, if that was moved to another one since.
    pub bought_as: Option<Box<JobId>>,
    /// The declaration of the user.
    pub declared: Option<Declared>,
    /// The outcome of the program for its video.
    pub executed: Option<Box<Executed>>,
    /// True if the service denied its task, or gave an unknown word for its end: the task may live.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disowned: bool,
    /// The cost that the service reported. It may stop a run, and never releases money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_usd: Option<Usd>,
    /// The charge by the service's bill.
    pub billed: Option<Box<Billed>>,
    /// The machine that fetched its video, where several share a ledger: the video is there, and perhaps nowhere else.
    pub fetched_by: Option<Box<str>>,
    /// The archiving of its video from the output directory.
    pub archived: Option<Box<Archived>>,
    /// The reviews of its video, one of each reviewer, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Reviewed>,
}

/// The declaration of the user, with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Declared {
    /// The declaration.
    pub what: Declaration,
    /// The time.
    pub at: Timestamp,
}

/// A declaration of the user about an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declaration {
    /// It made no task.
    NeverCreated,
    /// It made the task that is written down.
    Found,
    /// Its task will never end.
    Lost,
    /// It met a server error, which buys nothing by the catalog's statement about the service (`retry_server_errors`).
    ServerError,
}

impl Declaration {
    /// Returns whether it says that no task was created, which a task that turns up refutes.
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

/// The outcome of the program for a video, or its due start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Executed {
    /// The time of its end.
    pub at: Timestamp,
    /// The reason why it counts as failed.
    pub error: Option<String>,
    /// The last line that it wrote.
    pub line: Option<String>,
}

impl Executed {
    /// The recorded error before a program has ended.
    pub const OWED: &str = "it was not started, or not to its end";

    /// Returns whether the program is still due.
    pub fn is_owed(&self) -> bool {
        self.error.as_deref() == Some(Self::OWED)
    }
}

/// The archiving of a video: it has left the output directory, and is neither downloaded again nor missing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Archived {
    /// The time of the record.
    pub at: Timestamp,
    /// The path of its copy, if it was moved.
    pub to: Option<String>,
}

/// A bill's fact about an attempt with an undocumented charge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Billed {
    /// True if it was charged.
    pub is_charged: bool,
    /// The bill: its file name and the beginning of its SHA-256.
    pub source: String,
    /// The time of the record.
    pub at: Timestamp,
}

/// A freeze: the ledger allows no purchase until the user unfreezes it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("purchases are frozen: {why}")]
pub struct Freeze {
    /// The reason.
    pub why: Arc<str>,
    /// True if a failover froze it, after which purchases may be missing; false if `shotlist limit set` did.
    pub by_failover: bool,
}

impl Freeze {
    /// The freeze that `shotlist limit set` makes.
    pub fn on_request(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), by_failover: false }
    }

    /// The code of a refusal because of it.
    pub fn code(&self) -> RefusalCode {
        if self.by_failover { RefusalCode::FrozenByFailover } else { RefusalCode::Frozen }
    }
}
