//! Import of tasks that the ledger lacks, free of charge: of a lost ledger, or bought by another program.
//!
//! # Guarantees
//!
//! - Nothing is submitted. A task is recorded only after the service confirmed it, and only if no attempt in the ledger has it.
//! - A task of a report is recorded with the request, price, and reviews of the report, also if the manifest has changed since. A task of a CSV is
//!   recorded with the request of its job.
//! - A task that differs from its request by the service's response is refused.
//! - A task that is imported twice is one purchase. After a kill, the same command finishes the rest.
//! - A submission in doubt has no task that the service could confirm. It is in doubt here, too, and counts as at risk.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;

use super::choices;
use super::connection::Connection;
use super::purchases::moved_to;
use super::refusal::Refusal;
use super::resolve::{BatchView, CLOCK_DIFFERENCE, ResolveError};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, Declaration, History, Job, JobId, ReviewOfTask, ServiceError, TaskId,
    TaskNames, VideoFile,
};
use crate::download::{footage_of, holds};
use crate::files::on_a_thread;
use crate::ledger::{Event, Intent, LedgerError, LockedBatch};
use crate::report::{EarlierJob, ReportedPurchase};
use crate::service::{Status, TaskReport};

/// The most tasks that the service is asked about at once.
const AT_ONCE: usize = 8;

/// The error code of a doubt from a report.
const RESTORED: &str = "restored";

/// A task that was bought for a job, or a submission in doubt.
#[derive(Clone, PartialEq, Debug)]
pub struct BoughtTask {
    /// The job.
    pub job: JobId,
    /// Its task; `None` in doubt.
    pub task: Option<TaskId>,
    /// The time of its submission, if it is known.
    pub submitted_at: Option<Timestamp>,
    /// The submission, if a report has it.
    pub purchase: Option<Box<ReportedPurchase>>,
}

/// The outcome for a task.
#[derive(Debug)]
#[expect(missing_docs, reason = "fields are named after what they hold")]
pub enum ImportOutcome {
    /// It is in the ledger now. If its request is not that of the manifest's job, that job is due again.
    Imported { is_changed: bool },
    /// It is in doubt in the ledger now.
    InDoubt,
    /// It was in the ledger.
    Known,
    /// The task was refused.
    Refused(ResolveError),
}

/// The attempts of a batch during an import.
struct Importer<'a> {
    batch: &'a LockedBatch,
    history: &'a History,
    out: &'a Path,
    /// The newest attempt of each job for which one was made.
    newest: HashMap<JobId, AttemptId>,
}

impl BatchView<'_> {
    /// Records tasks in the ledger, and creates it if it does not exist. `jobs` are those of the manifest; `out` is the directory of the videos.
    /// `report` gets the outcome for each task.
    pub async fn import(
        &self,
        jobs: &[Arc<Job>],
        bought: Vec<BoughtTask>,
        connection: &Connection,
        out: &Path,
        mut report: impl FnMut(&BoughtTask, ImportOutcome),
    ) -> Result<(), Refusal> {
        let jobs: HashMap<&JobId, &Arc<Job>> = jobs.iter().map(|job| (job.id(), job)).collect();
        let batch = self.lock().await?;
        // Otherwise, two IDs of one job would have tasks, and no move could join them.
        batch.move_jobs(self.moves).await?;
        let history = self.history().await?;
        let is_known = |job: &JobId, task: &TaskId| {
            history.attempts_of(job).any(|attempt| attempt.task.as_ref().is_some_and(|names| names.has(task)))
        };
        let mut owners: HashMap<TaskId, JobId> = HashMap::new();
        let bought = bought.into_iter().map(|bought| BoughtTask { job: moved_to(self.moves, bought.job), ..bought });
        let (tasks, doubts): (Vec<_>, Vec<_>) = bought.partition(|bought| bought.task.is_some());
        let mut seen = HashSet::new();
        let tasks = tasks.into_iter().filter_map(|bought| Some((bought.task.clone()?, bought)));
        let tasks = tasks.filter(|(task, bought)| seen.insert((bought.job.clone(), task.clone())));
        let asks = tasks.map(|(task, bought)| {
            let owner = owners.entry(task.clone()).or_insert_with(|| bought.job.clone()).clone();
            let intent = bought.intent(jobs.get(&bought.job).copied(), connection.account());
            async {
                let confirmed = match intent {
                    Err(error) => Err(error),
                    Ok(_) if owner != bought.job => {
                        Err(ResolveError::TaskTaken { task, job: owner, batch: self.key.clone() })
                    }
                    Ok(_) if is_known(&bought.job, &task) => Ok(None),
                    Ok(intent) => {
                        let found = self.confirmed(&intent.purchase, None, &task, connection, false).await;
                        found.map(|(names, _, report)| Some((intent, (names, report))))
                    }
                };
                (bought, confirmed)
            }
        });
        let asks: Vec<_> = asks.collect();
        let mut confirmed = stream::iter(asks).buffered(AT_ONCE);
        let mut importer = Importer { batch: &batch, history: &history, out, newest: HashMap::new() };
        let mut reviews = Vec::new();
        while let Some((bought, found)) = confirmed.next().await {
            let import = match found {
                Ok(None) => ImportOutcome::Known,
                Ok(Some((intent, (names, task)))) => {
                    let bought_now = intent.purchase.fingerprint();
                    let is_changed = jobs.get(&bought.job).is_some_and(|job| job.purchase.fingerprint() != bought_now);
                    match importer.take_in(intent, &bought, names, &task).await {
                        Ok(()) => ImportOutcome::Imported { is_changed },
                        Err(refusal) => ImportOutcome::Refused(refusal.into()),
                    }
                }
                Err(error) => ImportOutcome::Refused(error),
            };
            if !matches!(import, ImportOutcome::Refused(_)) {
                reviews.extend(bought.reviews());
            }
            report(&bought, import);
        }
        // After the tasks: one of them may belong to a doubt that a killed import left.
        for bought in doubts {
            let import = match bought.intent(jobs.get(&bought.job).copied(), connection.account()) {
                Ok(intent) => {
                    let taken = importer.take_in_doubt(intent, &bought).await;
                    taken.unwrap_or_else(|refusal| ImportOutcome::Refused(refusal.into()))
                }
                Err(error) => ImportOutcome::Refused(error),
            };
            report(&bought, import);
        }
        self.restore_reviews(&batch, reviews).await
    }

    /// Records the reviews of a report, oldest first, because the last one of each reviewer counts. A video with reviews in the ledger keeps
    /// them.
    async fn restore_reviews(
        &self,
        batch: &LockedBatch,
        mut reviews: Vec<(Timestamp, ReviewOfTask)>,
    ) -> Result<(), Refusal> {
        let history = self.history().await?;
        let has_none = |of_task: &ReviewOfTask| {
            let mut reviewed = history.attempts_of(&of_task.job).filter(|attempt| attempt.is_reviewed_by(of_task));
            reviewed.all(|attempt| attempt.particulars.reviews.is_empty())
        };
        reviews.retain(|(_, of_task)| has_none(of_task));
        reviews.sort_by_key(|(at, _)| *at);
        for (_, review) in reviews {
            choices::record(batch, &history, &[review]).await?;
        }
        Ok(())
    }
}

impl BoughtTask {
    /// A row of a report or a CSV. The error is for the user.
    pub(crate) fn from_row(task: Option<TaskId>, row: EarlierJob) -> Result<Self, String> {
        let EarlierJob { id, submitted_at, purchase, .. } = row;
        let submitted_at = submitted_at.filter(|at| !at.is_empty()).map(|at| at.parse::<Timestamp>()).transpose();
        let submitted_at = submitted_at.map_err(|error| format!("`submitted_at` of `{id}`: {error}"))?;
        let submitted_at = purchase.as_ref().map(|purchase| purchase.submitted_at).or(submitted_at);
        // It would count against every limit until then.
        if submitted_at.is_some_and(|at| at.duration_since(Timestamp::now()) > CLOCK_DIFFERENCE) {
            return Err(format!("`submitted_at` of `{id}` must not be in the future"));
        }
        Ok(BoughtTask { job: JobId::new(id).map_err(|error| error.to_string())?, task, submitted_at, purchase })
    }

    /// The intent of the submission in the report, or of today's job.
    fn intent(&self, job: Option<&Arc<Job>>, account: &Account) -> Result<Intent, ResolveError> {
        let imported_at = Some(self.submitted_at.unwrap_or_else(Timestamp::now));
        let output = job.and_then(|job| job.purchase.output.clone());
        match (&self.purchase, job) {
            (Some(reported), _) => {
                let purchase = reported.purchase(&self.job, output);
                let intent = Intent::for_purchase(purchase, reported.normalized.clone(), account.clone());
                Ok(Intent { imported_at, ..intent })
            }
            (None, Some(job)) => Ok(Intent { imported_at, ..Intent::new(job, account.clone()) }),
            (None, None) => Err(ResolveError::NoJob(self.job.to_string())),
        }
    }

    /// The reviews in the report.
    fn reviews(&self) -> impl Iterator<Item = (Timestamp, ReviewOfTask)> {
        let reviews = self.purchase.iter().flat_map(|purchase| &purchase.reviews);
        reviews.filter_map(|reviewed| {
            let (job, task, review) = (self.job.clone(), self.task.clone()?, reviewed.review.clone());
            Some((reviewed.at, ReviewOfTask { job, task, review }))
        })
    }
}

impl Importer<'_> {
    /// Records a task as a submission in doubt whose task was found: a kill in between leaves a doubt, and no purchase is forgotten.
    async fn take_in(
        &mut self,
        intent: Intent,
        bought: &BoughtTask,
        names: TaskNames,
        report: &TaskReport,
    ) -> Result<(), Refusal> {
        let batch = self.batch;
        let doubt = self.history.attempts_of(&bought.job).find(|attempt| is_doubt_of(attempt, &intent, bought));
        let doubt = doubt.filter(|_| !self.newest.contains_key(&bought.job));
        let attempt = if let Some(doubt) = doubt {
            doubt.id
        } else {
            self.doubt(intent, &bought.job, ServiceError::plain("a task of it is being recorded", "imported")).await?
        };
        self.newest.insert(bought.job.clone(), attempt);
        if let Err(error) = batch.record(attempt, Event::Found(names)).await {
            // Only then is it certain that the job has no such task. After any other error, it stays in doubt.
            if matches!(error, LedgerError::TaskTaken { .. }) {
                batch.record(attempt, Event::Denied).await?;
            }
            return Err(error.into());
        }
        let reported = bought.purchase.as_ref().and_then(|purchase| purchase.reported_usd);
        if let Some(usd) = reported.max(report.echo.cost) {
            batch.record(attempt, Event::Reported { usd }).await?;
        }
        let now = Timestamp::now();
        let is_plausible =
            |ended: &Timestamp| (bought.submitted_at.unwrap_or(Timestamp::UNIX_EPOCH)..=now).contains(ended);
        let ended_at = report.completed_at.filter(is_plausible).unwrap_or(now);
        match (&report.status, &report.video_url) {
            (Status::Completed, Some(url)) => {
                batch.record(attempt, Event::Completed { video_url: url.clone(), ended_at, polls: 1 }).await?;
                if let Some(purchase) = &bought.purchase {
                    self.restore_video(attempt, purchase).await?;
                }
            }
            (Status::Failed, _) => {
                let error = report.error.clone().unwrap_or_default();
                batch.record(attempt, Event::Failed { error, ended_at, polls: 1 }).await?;
                if let Some(billed) = bought.purchase.as_ref().and_then(|purchase| purchase.billed.as_deref()) {
                    let (is_charged, source) = (billed.is_charged, billed.source.clone());
                    batch.record(attempt, Event::Billed { is_charged, source }).await?;
                }
            }
            // The next run polls it.
            _ => {}
        }
        Ok(())
    }

    /// Records a submission in doubt, unless the ledger has it, or another doubt about the same request.
    async fn take_in_doubt(&mut self, intent: Intent, bought: &BoughtTask) -> Result<ImportOutcome, Refusal> {
        let mut same = self.history.attempts_of(&bought.job).filter(|attempt| {
            attempt.purchase.fingerprint() == intent.purchase.fingerprint()
                && (attempt.state == AttemptState::InDoubt || Some(attempt.intended_at) == bought.submitted_at)
        });
        if same.next().is_some() {
            return Ok(ImportOutcome::Known);
        }
        let doubt = ServiceError::plain("the imported report has no task of it", RESTORED);
        let attempt = self.doubt(intent, &bought.job, doubt).await?;
        self.newest.insert(bought.job.clone(), attempt);
        Ok(ImportOutcome::InDoubt)
    }

    async fn doubt(&self, intent: Intent, job: &JobId, why: ServiceError) -> Result<AttemptId, Refusal> {
        let known = self.history.attempts_of(job).map(|attempt| attempt.id).max();
        let known = self.newest.get(job).copied().max(known);
        let attempt = self.batch.intend(Intent { known, ..intent }).await?;
        self.batch.record(attempt, Event::Doubted(why)).await?;
        Ok(attempt)
    }

    /// Records that the video of a report is here, or was archived.
    async fn restore_video(&self, attempt: AttemptId, purchase: &ReportedPurchase) -> Result<(), Refusal> {
        let batch = self.batch;
        let video = match &purchase.video {
            Some(video) if purchase.archived.is_some() => Some((**video).clone()),
            Some(video) => self.look_up(video).await,
            None => None,
        };
        if let Some(video) = video {
            batch.record(attempt, Event::Fetched(video)).await?;
        }
        if let Some(archived) = &purchase.archived {
            batch.record(attempt, Event::Archived { to: archived.to.clone() }).await?;
        }
        Ok(())
    }

    /// This very video with its facts, if it is in the output directory.
    async fn look_up(&self, file: &VideoFile) -> Option<VideoFile> {
        let (path, file) = (self.out.join(file.path.as_str()), file.clone());
        let look = move || holds(&path, &file).then(|| VideoFile { footage: footage_of(&path), ..file });
        on_a_thread(look).await.ok().flatten()
    }
}

/// Returns whether a killed import left the attempt. A submission in doubt is another purchase, and keeps its doubt.
fn is_doubt_of(attempt: &Attempt, intent: &Intent, bought: &BoughtTask) -> bool {
    let is_declared = attempt.particulars.declared.is_some_and(|declared| declared.what == Declaration::Found);
    let is_restored = attempt.error.as_ref().is_some_and(|error| error.code.as_deref() == Some(RESTORED));
    is_declared
        && !is_restored
        && bought.submitted_at.is_none_or(|at| at == attempt.intended_at)
        && attempt.state == AttemptState::InDoubt
        && attempt.purchase.fingerprint() == intent.purchase.fingerprint()
}
