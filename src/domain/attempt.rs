//! One submission of a job in the ledger.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codes::{Explained, RefusalCode};
use super::{Account, Digest, Fingerprint, JobId, Purchase, Request, Reviewed, TaskNames, Usd, VideoFile, named};

/// The ledger's number for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct AttemptId(pub i64);

named! {
    /// The state of an attempt. The variants are in the order of events, not of rank.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AttemptState {
        /// The intent is durable. It is unknown whether a byte was sent until the response is recorded.
        Intended = "intended",
        /// It never reached the service, or the service asked to wait. Nothing was bought.
        Void = "void",
        /// The service rejected the submission. No task exists.
        Rejected = "rejected",
        /// It was sent, and no complete response arrived. The charge is unknown.
        InDoubt = "in_doubt",
        /// Waiting at the service.
        Queued = "queued",
        /// Being generated.
        InProgress = "in_progress",
        /// Terminal, with a video.
        Completed = "completed",
        /// Terminal, without a video.
        Failed = "failed",
    }
}

impl AttemptState {
    /// Returns whether the task is active: its final state is still to come.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::InProgress)
    }

    /// Returns whether it certainly made no task.
    pub fn made_no_task(self) -> bool {
        matches!(self, Self::Void | Self::Rejected)
    }

    /// Returns whether it is unknown if the service made, and charged, a task.
    pub fn is_doubtful(self) -> bool {
        matches!(self, Self::Intended | Self::InDoubt)
    }
}

/// The moment at which a family charges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charging {
    /// When the task is created (family A, interface §4).
    AtSubmission,
    /// Once the task is completed.
    AtCompletion,
    /// When the task is created. A failed task is refunded.
    RefundedOnFailure,
    /// Undocumented (family B).
    Undocumented,
}

named! {
    /// The charge for an attempt or a job.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Charge {
        /// Certainly nothing was charged.
        None = "none",
        /// The full price was charged.
        Charged = "charged",
        /// Unknown. Never shown as zero.
        Unknown = "unknown",
    }
}

/// The error object of the service: `{message, code}` (interface §2.3), unchanged.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ServiceError {
    /// The message for the user.
    pub message: String,
    /// The service's code as text, if it has one.
    pub code: Option<String>,
    /// The whole response or error object.
    pub raw: serde_json::Value,
}

impl ServiceError {
    /// An error of shotlist itself, or a declaration of the user.
    pub fn plain(message: &str, code: &str) -> Self {
        Self { message: message.to_owned(), code: Some(code.to_owned()), ..Self::default() }
    }
}

/// One submission of a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// The ledger's number.
    pub id: AttemptId,
    /// What it buys.
    pub purchase: Purchase,
    /// The fingerprint of the [normalized](super::Request::normalized) request.
    pub normalized: Fingerprint,
    /// The account that owns the task.
    pub account: Account,
    /// The state.
    pub state: AttemptState,
    /// The service's IDs of the task, once known.
    pub task: Option<TaskNames>,
    /// The URL of the video, once completed.
    pub video_url: Option<String>,
    /// The reason why it failed, was rejected, or is in doubt.
    #[serde(with = "super::review::error", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<ServiceError>>,
    /// The number of polls.
    pub polls: u32,
    /// The time at which the intent became durable.
    pub intended_at: Timestamp,
    /// The time at which the response to the submission was recorded.
    pub answered_at: Option<Timestamp>,
    /// The end of generation, as the service reports it, if that is plausible.
    pub ended_at: Option<Timestamp>,
    /// The video on this machine, once it was fetched. It may have been removed since.
    #[serde(deserialize_with = "super::review::if_valid", default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<VideoFile>>,
    /// The time of the download.
    pub fetched_at: Option<Timestamp>,
    /// Further facts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub particulars: Particulars,
}

/// True for a value without news: it is left out of what is stored.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A reported cost above this multiple of the price is in another unit, such as credits, and is not counted.
const MAX_COST_FACTOR: i64 = 100;

/// The amount that limits and sums count for a task: its price, or a higher cost that the service reports in the same unit.
pub fn counted_cost(price: Usd, reported: Option<Usd>) -> Usd {
    let most = Usd::from_micros(price.micros().saturating_mul(MAX_COST_FACTOR));
    reported.filter(|cost| *cost <= most).unwrap_or(price).max(price)
}

impl Attempt {
    /// A new attempt with a durable intent.
    pub fn new(
        id: AttemptId,
        purchase: Purchase,
        normalized: Fingerprint,
        account: Account,
        intended_at: Timestamp,
    ) -> Self {
        Self {
            id,
            purchase,
            normalized,
            account,
            state: AttemptState::Intended,
            task: None,
            video_url: None,
            error: None,
            polls: 0,
            intended_at,
            answered_at: None,
            ended_at: None,
            file: None,
            fetched_at: None,
            particulars: Particulars::default(),
        }
    }

    /// The ID of its job.
    pub fn job(&self) -> &JobId {
        &self.purchase.job
    }

    /// The same attempt without the body of its request, for lists of many.
    pub(crate) fn without_body(mut self) -> Self {
        self.purchase.request = Request::stored(String::new(), self.purchase.fingerprint().clone());
        self
    }

    /// The mismatch of a delivery that stops its model: another duration or shape, or a cost above the price.
    pub fn delivery_fault(&self) -> Option<String> {
        let differences =
            self.file.as_ref().map(|file| file.differences(self.purchase.request.body())).unwrap_or_default();
        let grave: Vec<String> = differences.into_iter().filter(|it| it.is_grave).map(|it| it.text).collect();
        let dearer = Some(self.cost()).filter(|cost| *cost > self.purchase.price);
        let dearer = dearer.map(|cost| format!("a cost of {cost:#}, priced at {:#}", self.purchase.price));
        let faults: Vec<String> = grave.into_iter().chain(dearer).collect();
        (!faults.is_empty()).then(|| faults.join(", and "))
    }

    /// The amount that limits and sums count, if it is charged.
    pub fn cost(&self) -> Usd {
        counted_cost(self.purchase.price, self.particulars.reported_usd)
    }

    /// Returns whether an approval counts it as a submission: it may have been charged, or met a server error that is free by the user's statement.
    pub fn counts_as_submission(&self) -> bool {
        let is_server_error = |declared: Declared| declared.what == Declaration::ServerError;
        !self.state.made_no_task() || self.particulars.declared.is_some_and(is_server_error)
    }

    /// Returns whether it is completed without a downloaded video, and the video is wanted.
    pub fn needs_download(&self) -> bool {
        self.state == AttemptState::Completed && self.file.is_none() && self.particulars.archived.is_none()
    }

    /// Returns whether the `--exec` command for its video failed, or never ended.
    pub fn has_failed_command(&self) -> bool {
        self.particulars.executed.as_deref().is_some_and(|executed| executed.error.is_some())
    }

    /// Returns whether a run must still finish it: it has no outcome, no video, or a failed `--exec` command. Few attempts are unfinished.
    pub fn is_unfinished(&self) -> bool {
        match self.state {
            AttemptState::Void | AttemptState::Rejected | AttemptState::Failed => false,
            AttemptState::Intended | AttemptState::InDoubt | AttemptState::Queued | AttemptState::InProgress => true,
            AttemptState::Completed => self.needs_download() || self.has_failed_command(),
        }
    }

    /// The charge (spec §4, column "charge").
    pub fn charge(&self) -> Charge {
        let known = &self.particulars;
        let is_certain = !known.is_disowned && known.declared.is_none_or(|declared| declared.what != Declaration::Lost);
        let billed = known.billed.as_ref().map(|billed| billed.is_charged);
        Charge::from_state(self.state, self.purchase.charging, billed, is_certain)
    }
}

impl Charge {
    /// The charge for a failure, which is certain if the service itself reported it.
    pub fn of_failure(charging: Charging, is_certain: bool) -> Self {
        Self::from_state(AttemptState::Failed, charging, None, is_certain)
    }

    /// The charge for an attempt in this state, by the moment at which its family charges (spec §4, column "charge"). A bill settles only an unknown
    /// charge. A failure is certain if the service itself reported it; a task that it denies, or that the user gave up, may live.
    fn from_state(state: AttemptState, charging: Charging, billed: Option<bool>, is_certain: bool) -> Self {
        use AttemptState as S;
        match (state, charging, billed) {
            (S::Void | S::Rejected, ..) => Self::None,
            (S::Intended | S::InDoubt, ..) => Self::Unknown,
            (S::Completed, ..)
            | (_, Charging::AtSubmission, _)
            | (_, _, Some(true))
            | (S::Queued | S::InProgress, Charging::RefundedOnFailure, None) => Self::Charged,
            (_, _, Some(false)) => Self::None,
            (S::Failed, Charging::AtCompletion | Charging::RefundedOnFailure, None) if is_certain => Self::None,
            (S::Queued | S::InProgress | S::Failed, ..) => Self::Unknown,
        }
    }
}

/// The facts of an attempt that no response of the service has.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Particulars {
    /// The approved plan that bought it.
    pub approval: Option<Box<Digest>>,
    /// The ID of its job at the submission, if `moved` has changed it since.
    pub bought_as: Option<Box<JobId>>,
    /// The declaration of the user.
    pub declared: Option<Declared>,
    /// The outcome of the program for its video.
    pub executed: Option<Box<Executed>>,
    /// True if the service denied its task, or reported an unknown terminal state. The task may live.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disowned: bool,
    /// The cost that the service reported. It may stop a run, and never releases money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_usd: Option<Usd>,
    /// The charge by the service's bill.
    pub billed: Option<Box<Billed>>,
    /// The machine that downloaded its video, in a shared ledger. No other machine may have the video.
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
    /// It made the recorded task.
    Found,
    /// Its task will never end.
    Lost,
    /// It met a server error, which buys nothing by the catalog's statement about the service (`retry_server_errors`).
    ServerError,
}

impl Declaration {
    /// Returns whether it declares that no task exists. A task that is found later refutes it.
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
    /// The last line of its output.
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

    /// The command that ends it.
    pub(crate) const UNFREEZE: &str = "shotlist limit set --unfreeze";
    /// The help after a database may have forgotten purchases.
    pub(crate) const LOOK_FIRST: &str = "compare the service's bill with `shotlist reconcile`, record each purchase that the ledger lacks with `shotlist import`, then run `shotlist limit set --unfreeze`";
}

impl Explained for Freeze {
    fn code(&self) -> RefusalCode {
        if self.by_failover { RefusalCode::FrozenByFailover } else { RefusalCode::Frozen }
    }

    fn help(&self) -> Cow<'static, str> {
        if self.by_failover {
            Self::LOOK_FIRST.into()
        } else {
            format!("run `{}` to allow purchases again", Self::UNFREEZE).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charge_follows_from_the_state_the_family_and_a_bill() {
        use AttemptState as S;
        use Charge::{Charged, None as Free, Unknown};
        let families =
            [Charging::AtSubmission, Charging::AtCompletion, Charging::RefundedOnFailure, Charging::Undocumented];
        for (state, is_certain, expected) in [
            (S::Void, true, [Free; 4]),
            (S::Rejected, true, [Free; 4]),
            (S::Intended, true, [Unknown; 4]),
            (S::InDoubt, true, [Unknown; 4]),
            (S::Queued, true, [Charged, Unknown, Charged, Unknown]),
            (S::InProgress, true, [Charged, Unknown, Charged, Unknown]),
            (S::Completed, true, [Charged; 4]),
            (S::Failed, true, [Charged, Free, Free, Unknown]),
            // Denied by the service, or given up: the task may live, and be charged.
            (S::Failed, false, [Charged, Unknown, Unknown, Unknown]),
        ] {
            assert_eq!(
                families.map(|family| Charge::from_state(state, family, None, is_certain)),
                expected,
                "{state:?}"
            );
        }
        let billed = |is_charged| families.map(|family| Charge::from_state(S::Failed, family, Some(is_charged), false));
        assert_eq!((billed(true), billed(false)), ([Charged; 4], [Charged, Free, Free, Free]));
    }
}
