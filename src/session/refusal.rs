//! Why a run does not happen. Nothing was sent, and nothing was spent.

use std::error::Error;

use super::connection::{ConnectionError, OtherAccount};
use super::outputs::Replaces;
use super::reporter::ReporterError;
use crate::domain::{Digest, Freeze, JobId, MovedOnto, RefusalCode, Usd};
use crate::ledger::{HoldError, LedgerError, Unavailable};
use crate::plan::Limit;
use crate::report::NoReport;

/// Why a run does not happen.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The batch can't be locked: another run has it, or the ledger can't be used.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] Unavailable),
    /// The manifest requires a ledger in a database.
    #[error("the manifest requires a shared ledger, found a private one")]
    PrivateLedger,
    /// Only a database can limit the tasks of all runners.
    #[error("`--slots` requires a ledger on PostgreSQL")]
    SlotsOfFile,
    /// The ledger can't be written.
    #[error(transparent)]
    Write(#[from] LedgerError),
    /// The manifest moves one job onto another.
    #[error(transparent)]
    Moved(#[from] MovedOnto),
    /// What would be replaced by a report is none.
    #[error(transparent)]
    NoReport(#[from] NoReport),
    /// The request of a job contains the key, which would go to the service and into reports.
    #[error("the request of `{job}` contains the API key or another secret")]
    KeyInRequest {
        /// The job.
        job: JobId,
    },
    /// A video would take the place of a file of the run.
    #[error(transparent)]
    Replaces(#[from] Replaces),
    /// Something else can't be written.
    #[error(transparent)]
    Files(Box<dyn Error + Send + Sync>),
    /// The service can't be spoken to.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The ledger allows no purchase.
    #[error(transparent)]
    Frozen(#[from] Freeze),
    /// The run would pass a limit on spending.
    #[error(
        "the run costs ${cost}{}, but the limit is ${} ({}){}",
        limit.label.as_ref().map(|label| format!(" for {label}")).unwrap_or_default(),
        limit.usd,
        limit.source,
        if limit.used.is_zero() { String::new() } else { format!(", ${} of it used", limit.used) }
    )]
    OverLimit {
        /// What it would cost.
        cost: Usd,
        /// The limit.
        limit: Limit,
    },
    /// The plan needs a service, and there is none.
    #[error("the plan requires a connection to the service")]
    NoConnection,
    /// Of the ledger and the service, one is real and the other simulated.
    #[error("{}", if *ledger_is_simulated {
        "the service is real, but the ledger is the simulator's"
    } else {
        "the service is the simulator, but the ledger is real"
    })]
    OtherKind {
        /// Which of them.
        ledger_is_simulated: bool,
    },
    /// Tasks that are to be looked after belong to another account.
    #[error(transparent)]
    OtherAccount(#[from] OtherAccount),
    /// Jobs are already paid for, without consent to a repurchase.
    #[error("{} already paid for", if *jobs == 1 { "1 job is".to_owned() } else { format!("{jobs} jobs are") })]
    BoughtBefore {
        /// The number of jobs.
        jobs: usize,
    },
    /// Nobody can give local pictures an address.
    #[error("{} a local image, but `--asset-command` is not set", if *jobs == 1 { "1 job uses".to_owned() } else { format!("{jobs} jobs use") })]
    NoAssetCommand {
        /// How many jobs that are due begin with one.
        jobs: usize,
    },
    /// The plan differs from the approved one.
    #[error("the plan differs from the approved plan `{approved}`")]
    NotApproved {
        /// The digest that was approved.
        approved: Digest,
    },
    /// The cost lacks consent.
    #[error("spending ${cost} requires consent{}", if agreed.is_zero() { String::new() } else { format!(", found consent to ${agreed}") })]
    NotAgreed {
        /// The most that it would cost.
        cost: Usd,
        /// What was agreed to.
        agreed: Usd,
    },
}

impl Refusal {
    /// The code, for scripts.
    #[must_use]
    pub fn code(&self) -> RefusalCode {
        match self {
            Self::Hold(HoldError::Busy { .. }) => RefusalCode::BatchLocked,
            Self::Hold(HoldError::Unavailable(_)) | Self::Ledger(_) => RefusalCode::LedgerUnavailable,
            Self::PrivateLedger => RefusalCode::LedgerPrivate,
            Self::SlotsOfFile => RefusalCode::OptionInvalid,
            Self::Write(error) => error.code(),
            Self::Moved(_) => RefusalCode::MovedOnto,
            Self::NoReport(_) => RefusalCode::NotAReport,
            Self::KeyInRequest { .. } => RefusalCode::SecretInRequest,
            Self::Replaces(_) => RefusalCode::ReplacesInput,
            Self::Files(_) => RefusalCode::NotWritable,
            Self::Connection(_) => RefusalCode::NoClient,
            Self::Frozen(freeze) => freeze.code(),
            Self::OverLimit { .. } => RefusalCode::OverLimit,
            Self::NoConnection => RefusalCode::NoConnection,
            Self::OtherKind { .. } => RefusalCode::LedgerKind,
            Self::OtherAccount(_) => RefusalCode::OtherAccount,
            Self::BoughtBefore { .. } => RefusalCode::AlreadyPaid,
            Self::NoAssetCommand { .. } => RefusalCode::NoAssetCommand,
            Self::NotApproved { .. } => RefusalCode::PlanDiffers,
            Self::NotAgreed { .. } => RefusalCode::NoConsent,
        }
    }
}

impl From<ReporterError> for Refusal {
    fn from(error: ReporterError) -> Self {
        match error {
            ReporterError::Ledger(error) => Self::Ledger(error),
            ReporterError::Moved(error) => Self::Moved(error),
            ReporterError::Thread(_) => Self::Files(Box::new(error)),
        }
    }
}
