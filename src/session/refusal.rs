//! Refusals of a run. Nothing was sent, and nothing was spent.

use std::error::Error;
use std::path::PathBuf;

use super::connection::{ConnectionError, OtherAccount};
use super::options::{Replaces, ThroughALink};
use crate::domain::{Digest, Freeze, JobId, MovedOnto, TaskId, Usd, WRITABLE, count, explained, quoted};
use crate::download::CopyVideoError;
use crate::files::NoZone;
use crate::ledger::{HoldError, LedgerError, Unavailable};
use crate::plan::Limit;
use crate::report::{NoReport, ReportError};

explained! {
    /// The reason that a run does not begin.
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum Refusal from {
        /// The batch is locked by another run, or the ledger is unusable.
        Hold(HoldError),
        /// The ledger can't be read.
        Ledger(Unavailable),
        /// The ledger can't be written.
        Write(LedgerError),
        /// The ledger allows no purchase.
        Frozen(Freeze),
        /// The days and months of a limit need a time zone.
        Zone(NoZone),
        /// The manifest moves one job onto another.
        Moved(MovedOnto),
        /// A file at the path of a report is not a report.
        NoReport(NoReport),
        /// A report can't be written.
        Report(ReportError),
        /// A video would replace a file of the run.
        Replaces(Replaces),
        /// A default path leads through a link.
        Link(ThroughALink),
        /// The service can't be connected to.
        Connection(ConnectionError),
        /// Active tasks belong to another account.
        OtherAccount(OtherAccount),
        /// The run would exceed a spend limit.
        OverLimit(PassedLimits),
        /// A report that the run would replace has purchases that the ledger doesn't have.
        ReportUnknown(UnknownPurchases),
        /// The copy of a video to archive failed.
        Copy(CopyVideoError),
    } or {
        /// The manifest requires a ledger in a database.
        #[error("the manifest requires a shared ledger, found a private one")]
        PrivateLedger => LedgerPrivate,
            "set `SHOTLIST_LEDGER` to the database of your team: a private ledger does not know what the others bought";
        /// Only a database can limit the tasks of all runners.
        #[error("`--slots` requires a ledger on PostgreSQL")]
        SlotsOfFile => OptionInvalid, "pass `--concurrency` to each run instead";
        /// The request of a job contains the key. It would go to the service and into reports.
        #[error("the request of `{job}` contains the API key or another secret")]
        KeyInRequest { job: JobId } => SecretInRequest,
            "remove the secret from the prompt, or from the file that the manifest reads";
        /// Another file can't be written.
        #[error("can't write the files of the batch")]
        Files(#[source] Box<dyn Error + Send + Sync>) => NotWritable, WRITABLE;
        /// The plan requires a service, but there is no connection.
        #[error("the plan has tasks to poll or jobs to submit, but there is no connection to the service")]
        NoConnection => NoConnection, "pass a connection to the session first";
        /// The ledger is real and the service simulated, or the reverse.
        #[error("{}", if *ledger_is_simulated {
            "the service is real, but the ledger is the simulator's"
        } else {
            "the service is the simulator, but the ledger is real"
        })]
        OtherKind { ledger_is_simulated: bool } => LedgerKind,
            "pass `--sandbox` for the simulator, and leave out `--ledger`";
        /// Jobs are already paid for, and `--buy-again` does not name them.
        #[error("{} already paid for", if *jobs == 1 { "1 job is".to_owned() } else { format!("{jobs} jobs are") })]
        BoughtBefore { jobs: usize } => AlreadyPaid,
            "follow the hint for each job above, or leave it out with `--exclude`; `--buy-again GLOB` pays a second time for the jobs that match";
        /// Due jobs use a local image, without a program that uploads it.
        #[error("{} a local image, but `--asset-command` is not set", if *jobs == 1 { "1 job uses".to_owned() } else { format!("{jobs} jobs use") })]
        NoAssetCommand { jobs: usize } => NoAssetCommand,
            "pass `--asset-command CMD`: it gets the path of an image as its last argument, and prints a URL for the service";
        /// The plan differs from the approved one.
        #[error("the plan differs from the approved plan `{approved}`")]
        NotApproved { approved: Digest } => PlanDiffers,
            "approve the plan as it is now, or undo the change; `diff` of the approved plan and a new one, both saved with `--format json`, shows it";
        /// The cost is not confirmed.
        #[error("spending {cost:#} requires confirmation{}", if confirmed.is_zero() { String::new() } else { format!(", found one up to {confirmed:#}") })]
        Unconfirmed { cost: Usd, confirmed: Usd } => ConfirmationNeeded,
            "look at `--plan`, then pass `--max-cost`, `--approved`, or `--yes`; `budget.run` in the manifest confirms each run up to it";
        /// The report writer thread can't start, or panicked.
        #[error("can't start the report writer thread")]
        Thread(#[source] std::io::Error) => NotWritable, WRITABLE;
        /// A choice is about a video that the batch doesn't have, or a note about such a task.
        #[error("`{job}` has no completed video of task `{task}`")]
        NoVideo { job: JobId, task: TaskId } => ChoicesInvalid,
            "run `shotlist report`, and choose on the contact sheet again";
        /// There is no video to decide about, or no choice to withdraw.
        #[error("`{0}` has no video or choice of yours")]
        NothingToChoose(JobId) => ChoicesInvalid,
            "`shotlist status MANIFEST` lists the jobs; name another reviewer with `--by`";
        /// A job to archive has no video.
        #[error("`{0}` has no completed video")]
        NothingToArchive(JobId) => NotArchivable,
            "archive only completed jobs: `shotlist status MANIFEST` lists all states";
        /// A video to archive is not here, so it can't be moved.
        #[error("the video of `{0}` is not in this directory")]
        NotHere(JobId) => NotArchivable,
            "name its directory with `--out`, or leave out `--to` if it was moved already";
        /// The original of an archived video can't be removed.
        #[error("can't remove `{}`", path.display())]
        Remove { path: PathBuf, source: std::io::Error } => NotWritable,
            "the copy is complete and recorded: remove the original by hand";
    }
}

explained!(NoZone => OptionInvalid, "set `TZ` to a name such as Europe/Berlin, or pass `--timezone` to `limit set`");

/// The spend limits that a run would exceed, each with the cost of the run to which it applies.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(over_limit).collect::<Vec<_>>().join("; "))]
pub struct PassedLimits(pub Vec<(Usd, Limit)>);

explained!(PassedLimits(it) => OverLimit, {
    let is_of_ledger = it.0.iter().any(|(_, limit)| limit.source.starts_with("ledger."));
    let how = if is_of_ledger { " with `shotlist limit set`" } else { "" };
    format!("raise the limit{how}, or choose fewer jobs with `--select` or `--tag`")
});

/// A limit that a run would exceed.
fn over_limit((cost, limit): &(Usd, Limit)) -> String {
    let label = limit.label.as_ref().map(|label| format!(" for {label}")).unwrap_or_default();
    let used = if limit.used.is_zero() { String::new() } else { format!(", {:#} of it used", limit.used) };
    format!("the run costs {cost:#}{label}, but the limit is {:#} ({}){used}", limit.usd, limit.source)
}

/// A report in the output directory that has purchases of jobs without one in the ledger.
#[derive(Debug, thiserror::Error)]
#[error("`{}` has {} that the ledger doesn't have", report.display(), count(*jobs, "purchase"))]
pub struct UnknownPurchases {
    /// The report.
    pub report: PathBuf,
    /// The number of jobs.
    pub jobs: usize,
}

explained!(UnknownPurchases(it) => ReportUnknown, format!(
    "restore the directory `.shotlist`, or record them at no cost: `shotlist import MANIFEST {}`; move the report away only if it is not yours, because without it they are bought again",
    quoted(&it.report.to_string_lossy())
));
