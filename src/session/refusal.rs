//! Refusals of a run. Nothing was sent, and nothing was spent.

use std::error::Error;
use std::path::PathBuf;

use super::connection::{ConnectionError, OtherAccount};
use super::options::Replaces;
use crate::domain::{Digest, Freeze, JobId, MovedOnto, TaskId, Usd};
use crate::download::CopyVideoError;
use crate::files::NoZone;
use crate::ledger::{HoldError, LedgerError, Unavailable};
use crate::plan::Limit;
use crate::report::NoReport;

/// The reason that a run does not begin.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The batch is locked by another run, or the ledger is unusable.
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
    /// The days and months of a limit need a time zone.
    #[error(transparent)]
    Zone(#[from] NoZone),
    /// The ledger can't be written.
    #[error(transparent)]
    Write(#[from] LedgerError),
    /// The manifest moves one job onto another.
    #[error(transparent)]
    Moved(#[from] MovedOnto),
    /// A file at the path of a report is not a report.
    #[error(transparent)]
    NoReport(#[from] NoReport),
    /// The request of a job contains the key. It would go to the service and into reports.
    #[error("the request of `{job}` contains the API key or another secret")]
    KeyInRequest {
        /// The job.
        job: JobId,
    },
    /// A video would replace a file of the run.
    #[error(transparent)]
    Replaces(#[from] Replaces),
    /// Another file can't be written.
    #[error(transparent)]
    Files(Box<dyn Error + Send + Sync>),
    /// The service can't be connected to.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The ledger allows no purchase.
    #[error(transparent)]
    Frozen(#[from] Freeze),
    /// The run would exceed a spend limit.
    #[error("{}", .0.iter().map(over_limit).collect::<Vec<_>>().join("; "))]
    OverLimit(
        /// Each limit, with the cost of the run to which it applies.
        Vec<(Usd, Limit)>,
    ),
    /// The plan requires a service, but there is no connection.
    #[error("the plan requires a connection to the service")]
    NoConnection,
    /// The ledger is real and the service simulated, or the reverse.
    #[error("{}", if *ledger_is_simulated {
        "the service is real, but the ledger is the simulator's"
    } else {
        "the service is the simulator, but the ledger is real"
    })]
    OtherKind {
        /// True if it is the ledger that is simulated.
        ledger_is_simulated: bool,
    },
    /// Active tasks belong to another account.
    #[error(transparent)]
    OtherAccount(#[from] OtherAccount),
    /// Jobs are already paid for, and `--buy-again` does not name them.
    #[error("{} already paid for", if *jobs == 1 { "1 job is".to_owned() } else { format!("{jobs} jobs are") })]
    BoughtBefore {
        /// The number of jobs.
        jobs: usize,
    },
    /// The report in the output directory has purchases that the ledger doesn't. The run would replace it.
    #[error("`{}` has {} that the ledger doesn't have", report.display(), if *jobs == 1 { "1 purchase".to_owned() } else { format!("{jobs} purchases") })]
    ReportUnknown {
        /// The report.
        report: PathBuf,
        /// The number of jobs with such a purchase.
        jobs: usize,
    },
    /// Due jobs use a local image, without a program that uploads it.
    #[error("{} a local image, but `--asset-command` is not set", if *jobs == 1 { "1 job uses".to_owned() } else { format!("{jobs} jobs use") })]
    NoAssetCommand {
        /// The number of such jobs.
        jobs: usize,
    },
    /// The plan differs from the approved one.
    #[error("the plan differs from the approved plan `{approved}`")]
    NotApproved {
        /// The approved digest.
        approved: Digest,
    },
    /// The cost is not confirmed.
    #[error("spending ${cost} requires confirmation{}", if confirmed.is_zero() { String::new() } else { format!(", found one up to ${confirmed}") })]
    Unconfirmed {
        /// The maximum cost.
        cost: Usd,
        /// The confirmed sum.
        confirmed: Usd,
    },
    /// The report writer thread can't start, or panicked.
    #[error("can't start the report writer thread")]
    Thread(#[source] std::io::Error),
    /// A choice is about a video that the batch doesn't have.
    #[error("`{job}` has no completed video of task `{task}`")]
    NoVideo {
        /// The job.
        job: JobId,
        /// The task.
        task: TaskId,
    },
    /// A job to archive has no video.
    #[error("`{0}` has no completed video")]
    NothingToArchive(JobId),
    /// A video to archive is not here, so it can't be moved.
    #[error("the video of `{0}` is not in this directory")]
    NotHere(JobId),
    /// The copy of a video to archive failed.
    #[error(transparent)]
    Copy(#[from] CopyVideoError),
    /// The original of an archived video can't be removed.
    #[error("can't remove `{}`", path.display())]
    Remove {
        /// The original.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// A limit that a run would exceed.
fn over_limit((cost, limit): &(Usd, Limit)) -> String {
    let label = limit.label.as_ref().map(|label| format!(" for {label}")).unwrap_or_default();
    let used = if limit.used.is_zero() { String::new() } else { format!(", ${} of it used", limit.used) };
    format!("the run costs ${cost}{label}, but the limit is ${} ({}){used}", limit.usd, limit.source)
}
