//! Jobs in doubt and tasks that never end, listed and resolved by a verdict, and charges by a bill.
//!
//! # Guarantees
//!
//! - The batch is locked, and its attempts are read again, before anything is recorded.
//! - A task is recorded only after the service confirmed it, and only if no other attempt in the ledger has it.
//! - A verdict is about one attempt of each job.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::connection::Connection;
use super::refusal::Refusal;
use crate::bill::{Bill, Comparison, Matched};
use crate::catalog::Catalog;
use crate::domain::{
    Attempt, AttemptState, BatchKey, Declaration, History, JobId, Move, OpenElsewhere, Purchase, TaskId, TaskNames,
    explained,
};
use crate::engine::{Identity, ReportOwner, echo_differences};
use crate::ledger::{Event, Ledger, LockedBatch, RUNNER_MAY_LIVE};
use crate::manifest::Manifest;
use crate::plan::IdGlobs;
use crate::service::{PollAnswer, Status, TaskReport, VideoService};

/// The number of polls for the ID of a task.
const MAX_POLLS: usize = 3;
/// The time between two such polls: a cache may return another task's response for a moment.
const BETWEEN_POLLS: Duration = Duration::from_secs(2);
/// The largest difference between the clocks of this machine and the service.
pub(super) const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(10);

/// A batch in a ledger, each job under the ID that the manifest gives it now.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'b> {
    ledger: &'b Ledger,
    pub(super) key: &'b BatchKey,
    pub(super) moves: &'b [Move],
}

/// The outcome of a submission, as you know it.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "fields are named after what they hold")]
pub enum Verdict<'v> {
    /// The service created this task, and must confirm it. If that is certain, its model, duration, shape, and time may differ from the job's.
    Task { task: &'v TaskId, connection: &'v Connection, is_certain: bool },
    /// The service created no task.
    NeverCreated,
    /// The task never ends: the one with this ID, or without an ID the only active one.
    Abandoned(Option<&'v str>),
    /// The last verdict was a mistake.
    Undo,
}

/// The record of an attempt after its verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// The IDs of its task.
    Task(TaskNames),
    /// It has no task.
    NeverCreated,
    /// Its task is abandoned.
    Abandoned,
    /// The verdict is taken back.
    Undone(Declaration),
}

/// The help for a job that can't be resolved as it is.
const LIST_DOUBTS: &str =
    "list the jobs in doubt with `shotlist resolve MANIFEST`, and all states with `shotlist status MANIFEST`";
/// The help for an ID that no task has.
const CHECK_TASK: &str = "check the task ID";

explained! {
    /// The reason why nothing was recorded about a job.
    #[expect(missing_docs, reason = "fields are named after what they hold")]
    pub enum ResolveError from {
        /// The ledger or the account refuses it.
        Refusal(Refusal),
    } or {
        /// The pattern is invalid.
        #[error("{0}")]
        Pattern(String) => OptionInvalid, "`*`, `?`, and `[a-z]` have a meaning in a pattern";
        /// No attempt of the batch matches.
        #[error("can't resolve `{0}`: the ledger has no attempt of it in this batch")]
        NoAttempt(String) => NotResolvable, LIST_DOUBTS;
        /// No attempt is in doubt.
        #[error("can't resolve `{0}`: it is not in doubt")]
        NotInDoubt(String) => NotResolvable, LIST_DOUBTS;
        /// No attempt is in doubt, but one has an active task.
        #[error("can't resolve `{0}`: it is not in doubt")]
        StillActive(String) => NotResolvable,
            "wait for its active task; `--abandon` gives up a task that never ends";
        /// The manifest lacks the job.
        #[error("the manifest has no job `{0}`")]
        NoJob(String) => NotResolvable, "name jobs of the manifest";
        /// No verdict to take back.
        #[error("can't undo the outcome of `{0}`: none was recorded, something was bought since, or its task has ended")]
        NothingToUndo(String) => NotResolvable, "look at the job with `shotlist status MANIFEST`";
        /// No task to abandon.
        #[error("can't resolve `{0}`: it has no active task")]
        NoActiveTask(String) => NotResolvable, LIST_DOUBTS;
        /// Several tasks that could be abandoned.
        #[error("can't resolve `{job}`: it has {} active tasks: {}", tasks.len(), tasks.join(", "))]
        SeveralTasks { job: String, tasks: Vec<String> } => NotResolvable,
            "name the task that never ends: `--abandon=ID`";
        /// A task ID for several jobs.
        #[error("`--task` must name one job, found {}", jobs.join(", "))]
        SeveralJobs { jobs: Vec<String> } => NotResolvable, "pass the ID of one job";
        /// A runner may still receive the response.
        #[error("the runner that sent `{0}` may still wait for the response")]
        RunnerMayLive(String) => RunnerMayLive, RUNNER_MAY_LIVE;
        /// The task belongs to another job.
        #[error("task `{task}` belongs to `{job}` of `{batch}`")]
        TaskTaken { task: TaskId, job: JobId, batch: BatchKey } => TaskTaken, CHECK_TASK;
        /// The task was probably created for another job.
        #[error("task {task} doesn't match {job}: it has {}", differences.join(", and "))]
        TaskMismatch { task: TaskId, job: JobId, differences: Vec<String> } => TaskMismatch,
            "check the task ID; pass `--anyway` if you know from the service that the task is this job's";
        /// The service doesn't know the task.
        #[error("can't confirm task `{0}`: {1}")]
        NoTask(TaskId, String) => TaskUnconfirmed,
            "check the task ID and the account; an ID that the service does not know is no proof that the job has no task";
        /// The responses are inconclusive.
        #[error("{0}")]
        Unconfirmed(String) => TaskUnconfirmed, CHECK_TASK;
        /// The service rejects the key.
        #[error("{0}")]
        KeyRefused(String) => KeyRefused, "check the API key";
        /// The service is unreachable.
        #[error("can't confirm task `{0}` now: {1}")]
        Unreachable(TaskId, String) => Unreachable, "repeat the command later";
    }
}

impl<'b> BatchView<'b> {
    /// The batch of a manifest.
    pub fn new(manifest: &'b Manifest, ledger: &'b Ledger) -> Self {
        Self { ledger, key: &manifest.key, moves: &manifest.moves }
    }

    /// Returns the history of the batch, and the other batches of its name with a job in doubt.
    pub async fn doubts(&self) -> Result<(History, Vec<OpenElsewhere>), Refusal> {
        let mut elsewhere = self.ledger.open_elsewhere(self.key).await?;
        elsewhere.retain(|other| other.doubtful > 0);
        Ok((self.history().await?, elsewhere))
    }

    /// Records a verdict on a job, or on each job in doubt that a pattern matches. `recorded` gets each attempt as it was, once its record is
    /// durable.
    ///
    /// Reads the ledger before it locks the batch, so a ledger that is missing is an error and not created.
    pub async fn resolve(
        &self,
        job: &str,
        verdict: Verdict<'_>,
        mut recorded: impl FnMut(&Attempt, &Resolution),
    ) -> Result<(), ResolveError> {
        let meant = IdGlobs::new(&[job.to_owned()]).map_err(|error| ResolveError::Pattern(error.to_string()))?;
        if !self.history().await?.attempts().any(|attempt| meant.has(attempt.job().as_str())) {
            return Err(ResolveError::NoAttempt(job.to_owned()));
        }
        let batch = self.lock().await?;
        let history = self.history().await?;
        let (attempts, resolution, event) = match verdict {
            Verdict::NeverCreated => {
                let is_in_doubt = |state| state == AttemptState::InDoubt;
                (first_of_each(&history, job, &meant, is_in_doubt)?, Resolution::NeverCreated, Event::Denied)
            }
            Verdict::Abandoned(task) => (vec![endless(&history, job, task)?], Resolution::Abandoned, Event::GivenUp),
            Verdict::Undo => {
                let (attempt, what) = last_verdict(&history, job)?;
                (vec![attempt], Resolution::Undone(what), Event::Undone(what))
            }
            Verdict::Task { task, connection, is_certain } => {
                let attempt = to_find(&history, job, &meant)?;
                connection.check_owner([&attempt].into_iter()).map_err(Refusal::from)?;
                let sent_at = Some(attempt.intended_at);
                let confirmed = self.confirmed(&attempt.purchase, sent_at, task, connection, is_certain).await?;
                let (names, is_other_name, _) = confirmed;
                // If the service returns the requested ID, the ledger drops an alias that belongs to another task.
                if let Some(alias) = names.alias.as_ref().filter(|_| is_other_name) {
                    self.refuse_taken(alias).await?;
                }
                if connection.is_same_account() {
                    batch.reassign(connection.account()).await.map_err(Refusal::from)?;
                }
                (vec![attempt], Resolution::Task(names.clone()), Event::Found(names))
            }
        };
        for attempt in &attempts {
            batch.record(attempt.id, event.clone()).await.map_err(Refusal::from)?;
            recorded(attempt, &resolution);
        }
        Ok(())
    }

    /// Locks the batch.
    pub(super) async fn lock(&self) -> Result<LockedBatch, Refusal> {
        Ok(self.ledger.lock(self.key).await?)
    }

    /// Returns the history of the batch, each job under its current ID.
    pub(super) async fn history(&self) -> Result<History, Refusal> {
        Ok(self.ledger.history(self.key).await?.moved(self.moves)?)
    }

    /// Returns the names of a task that the service knows, that resembles the purchase unless `is_certain`, and that no attempt in the ledger has;
    /// whether the service uses another ID than requested; and its report.
    pub(super) async fn confirmed(
        &self,
        purchase: &Purchase,
        intended_at: Option<Timestamp>,
        task: &TaskId,
        connection: &Connection,
        is_certain: bool,
    ) -> Result<(TaskNames, bool, TaskReport), ResolveError> {
        self.refuse_taken(task).await?;
        let (names, is_other_name, report) = poll(connection.service(), task).await?;
        let differences = differences(&report, purchase.request.body(), &purchase.model, intended_at);
        if is_certain || differences.is_empty() {
            return Ok((names, is_other_name, report));
        }
        Err(ResolveError::TaskMismatch { task: task.clone(), job: purchase.job.clone(), differences })
    }

    async fn refuse_taken(&self, task: &TaskId) -> Result<(), ResolveError> {
        let found = self.ledger.find_task(task).await.map_err(Refusal::from)?;
        found.map_or(Ok(()), |(job, batch)| Err(ResolveError::TaskTaken { task: task.clone(), job, batch }))
    }
}

/// The first attempt in one of these states of each matching job.
fn first_of_each(
    history: &History,
    job: &str,
    meant: &IdGlobs,
    is_meant: impl Fn(AttemptState) -> bool,
) -> Result<Vec<Attempt>, ResolveError> {
    let of_job = || history.attempts().filter(|attempt| meant.has(attempt.job().as_str()));
    let mut jobs = HashSet::new();
    let is_first = |attempt: &&Attempt| is_meant(attempt.state) && jobs.insert(attempt.job().clone());
    let found: Vec<Attempt> = of_job().filter(is_first).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if of_job().any(|attempt| attempt.state == AttemptState::Intended) {
        return Err(ResolveError::RunnerMayLive(job.to_owned()));
    }
    let is_active = of_job().any(|attempt| attempt.state.is_active());
    Err(if is_active { ResolveError::StillActive(job.to_owned()) } else { ResolveError::NotInDoubt(job.to_owned()) })
}

/// The attempt whose task was found: the one in doubt, otherwise the last one declared never created.
fn to_find(history: &History, job: &str, meant: &IdGlobs) -> Result<Attempt, ResolveError> {
    // The batch is locked, so the runner of an intent without a response has expired.
    let mut found = match first_of_each(history, job, meant, AttemptState::is_doubtful) {
        Ok(found) => found,
        Err(error) => {
            let is_denied =
                |attempt: &Attempt| attempt.particulars.declared.is_some_and(|declared| declared.what.denies_task());
            let denied = history.attempts().filter(|it| meant.has(it.job().as_str()) && is_denied(it));
            return denied.last().cloned().ok_or(error);
        }
    };
    match (found.pop(), found.is_empty()) {
        (Some(attempt), true) => Ok(attempt),
        (last, _) => {
            Err(ResolveError::SeveralJobs { jobs: found.iter().chain(&last).map(|it| it.job().to_string()).collect() })
        }
    }
}

/// The last attempt of a job, if the user's verdict on it can be taken back: nothing was bought since, and its task has not ended.
fn last_verdict(history: &History, job: &str) -> Result<(Attempt, Declaration), ResolveError> {
    let nothing = || ResolveError::NothingToUndo(job.to_owned());
    let of_job = || history.attempts().filter(|attempt| attempt.job().as_str() == job);
    let declared = of_job().filter(|it| it.particulars.declared.is_some()).last().ok_or_else(nothing)?;
    let what = declared.particulars.declared.map(|declared| declared.what).ok_or_else(nothing)?;
    let can_undo = Event::Undone(what).after(declared.state).is_ok() && declared.particulars.billed.is_none();
    if history.is_last(declared) && can_undo { Ok((declared.clone(), what)) } else { Err(nothing()) }
}

/// The attempt whose task never ends: the one with this ID, or without an ID the only active one.
fn endless(history: &History, job: &str, task: Option<&str>) -> Result<Attempt, ResolveError> {
    let active: Vec<&Attempt> =
        history.attempts().filter(|attempt| attempt.job().as_str() == job && attempt.state.is_active()).collect();
    let has_name =
        |attempt: &Attempt, task: &str| attempt.task.iter().flat_map(TaskNames::each).any(|name| name.as_str() == task);
    let mut meant = active.iter().filter(|attempt| task.is_none_or(|task| has_name(attempt, task)));
    match (meant.next(), meant.next()) {
        (Some(attempt), None) => Ok((*attempt).clone()),
        _ if active.is_empty() => Err(ResolveError::NoActiveTask(job.to_owned())),
        _ => {
            let tasks = active.iter().filter_map(|attempt| attempt.task.as_ref()).map(ToString::to_string).collect();
            Err(ResolveError::SeveralTasks { job: job.to_owned(), tasks })
        }
    }
}

/// Lists the differences between a task and a request in model, duration, shape, or time.
fn differences(report: &TaskReport, request: &str, model: &str, intended_at: Option<Timestamp>) -> Vec<String> {
    let mut differences = echo_differences(request, &report.echo);
    // A gateway may rename models, but another model of the catalog is another model.
    let is_other = |other: &&str| *other != model && Catalog::embedded().model(other).is_some();
    let other = report.echo.model.as_deref().filter(is_other);
    differences.extend(other.map(|other| format!("model {other}, requested {model}")));
    let times = report.completed_at.zip(intended_at);
    let early = times.filter(|(ended, intended)| intended.duration_since(*ended) > CLOCK_DIFFERENCE);
    differences.extend(early.map(|(ended, intended)| format!("end at {ended}, before {intended} was submitted")));
    differences
}

/// Polls a task. Returns its IDs, whether the service uses another ID than requested, and the report.
async fn poll(service: &impl VideoService, task: &TaskId) -> Result<(TaskNames, bool, TaskReport), ResolveError> {
    let mut identity = Identity::new(task.clone().into());
    for polls in 0..MAX_POLLS {
        if polls > 0 {
            tokio::time::sleep(BETWEEN_POLLS).await;
        }
        let report = match service.poll(task).await {
            PollAnswer::Report(report) if matches!(report.status, Status::Unknown(_)) => {
                let message = format!("the service reports an unknown state for task `{task}`");
                return Err(ResolveError::Unconfirmed(message));
            }
            PollAnswer::Report(report) => report,
            PollAnswer::Missing(message) => return Err(ResolveError::NoTask(task.clone(), message)),
            PollAnswer::KeyRefused(error) => return Err(ResolveError::KeyRefused(error.message)),
            PollAnswer::Wait(_, message) | PollAnswer::Transient(message) => {
                return Err(ResolveError::Unreachable(task.clone(), message));
            }
        };
        let (alias, is_other_name) = match identity.identify(&report) {
            ReportOwner::Own => {
                (report.names.iter().flat_map(TaskNames::each).find(|name| *name != task).cloned(), false)
            }
            ReportOwner::Renamed(name) => (Some(name), true),
            ReportOwner::Other(_) => continue,
        };
        return Ok((TaskNames { id: task.clone(), alias }, is_other_name, report));
    }
    Err(ResolveError::Unconfirmed(format!("polls for task `{task}` return other task IDs")))
}

/// Records the charges that a bill settles, batch by batch: none if a line can't be read.
///
/// `comparison` is of this bill and this ledger, and `source` names the bill in it. `recorded` counts the attempts, also if a later one fails.
pub async fn settle_bill(
    ledger: &Ledger,
    bill: &Bill,
    comparison: &Comparison<'_>,
    source: &str,
    recorded: &mut usize,
) -> Result<(), Refusal> {
    let settled = comparison.settled().filter(|_| bill.unread.is_empty());
    let mut settled: Vec<(&Matched<'_>, bool)> = settled.collect();
    settled.sort_by_key(|(matched, _)| (matched.batch, matched.attempt.id));
    for of_batch in settled.chunk_by(|(one, _), (other, _)| one.batch == other.batch) {
        let Some((first, _)) = of_batch.first() else { continue };
        let batch = ledger.lock(first.batch).await?;
        for (matched, is_charged) in of_batch {
            let event = Event::Billed { is_charged: *is_charged, source: source.to_owned() };
            batch.record(matched.attempt.id, event).await?;
            *recorded += 1;
        }
    }
    Ok(())
}
