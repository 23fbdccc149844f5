//! Import of tasks that the ledger lacks, free of charge: of a lost ledger, or bought by another program.
//!
//! # Guarantees
//!
//! - Nothing is submitted. A task is recorded only after the service confirmed it, and only if no attempt in the ledger has it.
//! - A task that differs from the job's request is refused.
//! - A task that is imported twice is one purchase. After a kill, the same command finishes the rest.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;

use super::connection::Connection;
use super::refusal::Refusal;
use super::resolve::{BatchView, ResolveError};
use crate::domain::{
    Attempt, AttemptId, AttemptState, Declaration, History, Job, JobId, ServiceError, TaskId, TaskNames, VideoFile,
};
use crate::download::{footage_of, holds};
use crate::files::on_a_thread;
use crate::ledger::{Event, Intent, LedgerError, LockedBatch};
use crate::service::{Status, TaskReport};

/// The most tasks that the service is asked about at once.
const AT_ONCE: usize = 8;

/// A task that was bought for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoughtTask {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: TaskId,
    /// The time of its submission, if it is known.
    pub submitted_at: Option<Timestamp>,
    /// Its video, if it was downloaded.
    pub file: Option<VideoFile>,
}

/// The outcome for a task.
#[derive(Debug)]
pub enum ImportOutcome {
    /// It is in the ledger now.
    Imported,
    /// It was in the ledger.
    Known,
    /// The task was refused.
    Refused(ResolveError),
}

/// The attempts of a batch during an import.
struct Importer<'a> {
    batch: &'a LockedBatch,
    history: &'a History,
    connection: &'a Connection,
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
        let jobs: HashMap<&JobId, &Arc<Job>> = jobs.iter().map(|job| (&job.id, job)).collect();
        let batch = self.lock().await?;
        let history = self.history().await?;
        let is_known = |bought: &BoughtTask| {
            history.of(&bought.job).any(|attempt| attempt.task.as_ref().is_some_and(|task| task.has(&bought.task)))
        };
        let mut owners: HashMap<TaskId, JobId> = HashMap::new();
        let asks = bought.into_iter().map(|bought| {
            let owner = owners.entry(bought.task.clone()).or_insert_with(|| bought.job.clone()).clone();
            async {
                let confirmed = match jobs.get(&bought.job) {
                    None => Err(ResolveError::NoJob(bought.job.to_string())),
                    Some(_) if owner != bought.job => {
                        let (task, batch) = (bought.task.clone(), self.key.clone());
                        Err(ResolveError::TaskTaken { task, job: owner, batch })
                    }
                    Some(_) if is_known(&bought) => Ok(None),
                    Some(job) => {
                        self.confirmed_for(job, &bought.task, connection).await.map(|found| Some((*job, found)))
                    }
                };
                (bought, confirmed)
            }
        });
        let asks: Vec<_> = asks.collect();
        let mut confirmed = stream::iter(asks).buffered(AT_ONCE);
        let mut importer = Importer { batch: &batch, history: &history, connection, out, newest: HashMap::new() };
        while let Some((bought, found)) = confirmed.next().await {
            let import = match found {
                Ok(None) => ImportOutcome::Known,
                Ok(Some((job, (names, task)))) => match importer.take_in(job, &bought, names, &task).await {
                    Ok(()) => ImportOutcome::Imported,
                    Err(refusal) => ImportOutcome::Refused(refusal.into()),
                },
                Err(error) => ImportOutcome::Refused(error),
            };
            report(&bought, import);
        }
        Ok(())
    }
}

impl Importer<'_> {
    /// Records a task as a submission in doubt whose task was found: a kill in between leaves a doubt, and no purchase is forgotten.
    async fn take_in(
        &mut self,
        job: &Job,
        bought: &BoughtTask,
        names: TaskNames,
        report: &TaskReport,
    ) -> Result<(), Refusal> {
        let batch = self.batch;
        let doubt = self.history.of(&job.id).find(|attempt| is_doubt_of(attempt, job));
        let doubt = doubt.filter(|_| !self.newest.contains_key(&job.id));
        let attempt = if let Some(doubt) = doubt {
            doubt.id
        } else {
            let known = self.history.of(&job.id).map(|attempt| attempt.id).max();
            let known = self.newest.get(&job.id).copied().max(known);
            let account = self.connection.account().clone();
            let imported_at = Some(bought.submitted_at.unwrap_or_else(Timestamp::now));
            let intent = Intent { known, imported_at, ..Intent::new(job, account) };
            let attempt = batch.intend(intent).await?;
            let doubt = ServiceError::plain("a task of it is being recorded", "imported");
            batch.record(attempt, Event::Doubted(doubt)).await?;
            attempt
        };
        self.newest.insert(job.id.clone(), attempt);
        if let Err(error) = batch.record(attempt, Event::Found(names)).await {
            // Only then is it certain that the job has no such task. After any other error, it stays in doubt.
            if matches!(error, LedgerError::TaskTaken { .. }) {
                batch.record(attempt, Event::Denied).await?;
            }
            return Err(error.into());
        }
        if let (Status::Completed, Some(url)) = (&report.status, &report.video_url) {
            let ended_at = report.completed_at.unwrap_or_else(Timestamp::now);
            batch.record(attempt, Event::Completed { video_url: url.clone(), ended_at, polls: 1 }).await?;
            if let Some(file) = &bought.file
                && let Some(file) = self.look_up(file).await
            {
                batch.record(attempt, Event::Fetched(file)).await?;
            }
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
fn is_doubt_of(attempt: &Attempt, job: &Job) -> bool {
    let is_declared = attempt.particulars.declared.is_some_and(|declared| declared.what == Declaration::Found);
    is_declared && attempt.state == AttemptState::InDoubt && attempt.fingerprint == *job.request.fingerprint()
}
