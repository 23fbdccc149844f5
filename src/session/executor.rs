//! `--exec`: starts a program for each downloaded video, a few at once, during the run. Its variables have the facts of the video.
//!
//! # Guarantees
//!
//! - The program gets only the current video of its job. Just before it starts, the file must match the hash in the
//!   ledger.
//!
//! - After a success, the program is not started again for that video. After a failure, the next run with `--exec` starts it again.
//!
//! - A downloaded video is immediately recorded as due for the program, also in other batches, so a kill loses none.
//!
//! - A run that is killed between the end of a program and its record starts the program again. If the ledger can't be
//!   written, no further program starts.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::{self, StreamExt as _};
use indexmap::IndexMap;
use jiff::Timestamp;

use crate::domain::text::until_prompt;
use crate::domain::{
    Attempt, AttemptId, AttemptState, BatchKey, Executed, History, Job, JobId, NoticeCode, TaskId, VideoFile,
    with_causes,
};
use crate::download::{holds, is_whole};
use crate::engine::{FetchedVideo, RunEvent, Stop, StopReason};
use crate::files::on_a_thread;
use crate::hooks::Program;
use crate::ledger::{Event, LockedBatch};
use crate::plan::{Action, Plan};

/// The maximum number of concurrent programs.
const AT_ONCE: usize = 4;
/// The failures in a row after which no further program starts: each may run to its time limit.
const MAX_FAILED: usize = 10;
/// The time that running programs get when the run aborts.
const GRACE: Duration = Duration::from_secs(30);

/// The videos that need a program.
pub(super) struct Executions {
    /// Those already downloaded.
    waiting: Vec<Due>,
    /// Attempts of earlier runs. Their videos may arrive in this run.
    earlier: HashMap<AttemptId, Earlier>,
    /// The selected jobs.
    jobs: HashMap<JobId, Arc<Job>>,
    batch: String,
    out: PathBuf,
}

/// An attempt of an earlier run.
enum Earlier {
    /// Its video needs no program: one succeeded, or another attempt is current for the job.
    Done,
    /// Its video needs one. The job as submitted, and the batch value.
    Open(Arc<Job>, String),
}

/// A video that needs a program.
struct Due {
    attempt: AttemptId,
    job: Arc<Job>,
    batch: String,
    path: PathBuf,
    file: VideoFile,
    task: TaskId,
    /// The last start of a program for it.
    tried_at: Option<Timestamp>,
}

impl Due {
    /// The variables of the program (spec §7), with the mark of a sandbox video, which is not for publication. Of two names that are the same in
    /// capitals, the first counts.
    fn variables(&self, path: &Path, is_simulated: bool) -> Vec<(String, String)> {
        let own = [
            ("ID", self.job.id().to_string()),
            ("BATCH", self.batch.clone()),
            ("FILE", path.to_string_lossy().into_owned()),
            ("SHA256", self.file.sha256.clone()),
            ("BYTES", self.file.bytes.to_string()),
            ("MODEL", self.job.spec.model.clone()),
            ("TASK", self.task.to_string()),
            ("PROMPT", self.job.spec.prompt.clone().unwrap_or_default()),
        ];
        let simulated = is_simulated.then(|| ("SIMULATED", "true".to_owned()));
        let own = own.into_iter().chain(simulated).map(|(name, value)| (name.to_owned(), value));
        let row = self.job.row.iter().flat_map(|row| row.iter());
        let row = row.map(|(name, value)| (format!("ROW_{}", in_capitals(name)), value.to_owned()));
        let labels = self.job.purchase.labels.iter();
        let labels = labels.map(|(name, value)| (format!("LABEL_{}", in_capitals(name)), value.clone()));
        let mut variables: IndexMap<String, String> = IndexMap::new();
        for (name, value) in own.chain(row).chain(labels) {
            variables.entry(format!("SHOTLIST_{name}")).or_insert(value);
        }
        variables.into_iter().collect()
    }
}

/// A name in the form of an environment variable.
fn in_capitals(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

impl Executions {
    /// The videos of a plan and its batch that need a program. Of other batches, those that arrive in this run, and
    /// those recorded as due.
    pub(super) fn new<'h>(
        plan: &Plan,
        out: &Path,
        history: &History,
        others: impl Iterator<Item = (&'h BatchKey, &'h Path, &'h History)>,
    ) -> Self {
        let jobs: HashMap<JobId, Arc<Job>> =
            plan.jobs.iter().map(|planned| (planned.job.id().clone(), Arc::clone(&planned.job))).collect();
        let has_task = |action| matches!(action, Action::Done | Action::Stale | Action::Fetch | Action::Resume);
        let current = plan.jobs.iter().filter(|planned| has_task(planned.action));
        let current: HashSet<AttemptId> = current.filter_map(|planned| planned.attempt).collect();
        let (batch, out) = (plan.key.batch.clone(), out.to_owned());
        let mut executions = Self { waiting: Vec::new(), earlier: HashMap::new(), jobs, batch, out: out.clone() };
        for attempt in history.attempts() {
            let today = executions.jobs.get(attempt.job()).cloned();
            executions.add(attempt, today.as_deref(), &plan.key, &out, current.contains(&attempt.id), true);
        }
        for (key, out, history) in others {
            let last: HashMap<&JobId, AttemptId> =
                history.attempts().filter(|one| may_have_a_video(one)).map(|one| (one.job(), one.id)).collect();
            for attempt in history.attempts() {
                let is_owed = attempt.particulars.executed.is_some();
                executions.add(attempt, None, key, out, last.get(attempt.job()) == Some(&attempt.id), is_owed);
            }
        }
        // First those without a start, so that videos that always fail block no others.
        executions.waiting.sort_by_key(|due| due.tried_at);
        executions
    }

    fn add(&mut self, attempt: &Attempt, today: Option<&Job>, key: &BatchKey, out: &Path, stands: bool, counts: bool) {
        let executed = attempt.particulars.executed.as_deref();
        if !stands || executed.is_some_and(|executed| executed.error.is_none()) {
            self.earlier.insert(attempt.id, Earlier::Done);
            return;
        }
        if !may_have_a_video(attempt) {
            return;
        }
        let (job, batch) = (Arc::new(Job::as_bought(&attempt.purchase, today)), key.batch.clone());
        let file = attempt.file.as_deref().filter(|file| counts && is_whole(out, file));
        match (file, &attempt.task) {
            (Some(file), Some(task)) => self.waiting.push(Due {
                attempt: attempt.id,
                job,
                batch,
                path: out.join(file.path.as_str()),
                file: file.clone(),
                task: task.id.clone(),
                tried_at: executed.filter(|executed| !executed.is_owed()).map(|executed| executed.at),
            }),
            _ => drop(self.earlier.insert(attempt.id, Earlier::Open(job, batch))),
        }
    }

    /// Returns whether no downloaded video needs a program.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns a downloaded video, if it needs a program.
    fn fetched(&mut self, video: FetchedVideo) -> Option<Due> {
        let (job, batch) = match self.earlier.remove(&video.attempt) {
            Some(Earlier::Done) => return None,
            Some(Earlier::Open(job, batch)) => (job, batch),
            None => (Arc::clone(self.jobs.get(&video.job)?), self.batch.clone()),
        };
        let path = video.directory.as_deref().unwrap_or(&self.out).join(video.file.path.as_str());
        let (attempt, file, task) = (video.attempt, video.file, video.task.id);
        Some(Due { attempt, job, batch, path, file, task, tried_at: None })
    }
}

/// Returns whether an attempt has a video, or may get one.
fn may_have_a_video(attempt: &Attempt) -> bool {
    attempt.state.is_active() || attempt.state == AttemptState::Completed
}

/// The runner of programs.
pub(super) struct Executor<'r> {
    pub(super) program: &'r Program,
    pub(super) is_simulated: bool,
    pub(super) ledger: &'r LockedBatch,
    pub(super) stop: &'r Stop,
    pub(super) emit: &'r (dyn Fn(RunEvent) + Sync),
}

/// The results of the programs of a run.
#[derive(Default)]
struct Tally {
    failed: AtomicUsize,
    in_a_row: AtomicUsize,
    /// True if no further program starts.
    is_over: AtomicBool,
}

impl Executor<'_> {
    /// Starts programs until no more videos arrive. When the run aborts, waits a while for running ones. Returns the
    /// number of videos whose program failed or was abandoned.
    pub(super) async fn run(&self, mut executions: Executions, coming: UnboundedReceiver<FetchedVideo>) -> usize {
        let waiting = stream::iter(std::mem::take(&mut executions.waiting));
        let coming = coming.filter_map(|video| std::future::ready(executions.fetched(video)));
        // Recorded for each video as it arrives, also while programs run.
        let coming = coming.then(async |due| {
            self.note_owed(&due).await;
            due
        });
        let tally = Tally::default();
        waiting.chain(coming).for_each_concurrent(AT_ONCE, |due| self.take_turn(due, &tally)).await;
        tally.failed.into_inner()
    }

    async fn take_turn(&self, due: Due, tally: &Tally) {
        if self.stop.is_aborting() {
            return;
        }
        if tally.is_over.load(Ordering::Relaxed) {
            tally.failed.fetch_add(1, Ordering::Relaxed);
            // The last result has more information than a missing start.
            if due.tried_at.is_none() {
                self.note_owed(&due).await;
            }
            return;
        }
        let (path, file) = (due.path.clone(), due.file.clone());
        if !on_a_thread(move || holds(&path, &file)).await.unwrap_or(false) {
            // Another video replaced it, or it was removed. The next run knows more.
            tracing::info!(code = NoticeCode::HookVideoGone.code(), job = %due.job.id(), "skipped `--exec`: the video is missing or changed");
            return;
        }
        let (error, line) = self.execute(&due).await;
        let is_done = error.is_none();
        if !self.record(&due, error.clone(), line).await {
            // A result without a record would start the program again.
            tally.is_over.store(true, Ordering::Relaxed);
        }
        // The event goes to logs, and the program got the prompt.
        let error = error.map(|error| until_prompt(&error, due.job.spec.prompt.as_deref()));
        (self.emit)(RunEvent::Executed { job: due.job.id().clone(), task: due.task, error });
        if is_done {
            return tally.in_a_row.store(0, Ordering::Relaxed);
        }
        tally.failed.fetch_add(1, Ordering::Relaxed);
        if tally.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == MAX_FAILED {
            tally.is_over.store(true, Ordering::Relaxed);
            let message = format!("`--exec` failed {MAX_FAILED} times in a row, and is not started again in this run");
            (self.emit)(RunEvent::Warned { code: NoticeCode::HooksStopped, message });
        }
    }

    /// Starts the program for one video. Returns the failure, if any, and its last line of output.
    async fn execute(&self, due: &Due) -> (Option<String>, Option<String>) {
        let path = std::path::absolute(&due.path).unwrap_or_else(|_| due.path.clone());
        let variables = due.variables(&path, self.is_simulated);
        let late = async {
            self.stop.aborting().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            ended = self.program.run(&path, &variables) => match ended {
                Ok(output) => (None, output.last_line),
                Err(error) => (Some(with_causes(&error)), error.last_line().map(str::to_owned)),
            },
            () = late => (Some("it was killed, because the run had to end".to_owned()), None),
        }
    }

    /// Records that a video is due for a program.
    async fn note_owed(&self, due: &Due) {
        self.record(due, Some(Executed::OWED.to_owned()), None).await;
    }

    /// Records a result. Returns false if the ledger fails.
    async fn record(&self, due: &Due, error: Option<String>, line: Option<String>) -> bool {
        let Err(unwritten) = self.ledger.record(due.attempt, Event::Executed { error, line }).await else {
            return true;
        };
        let (reason, message) = (StopReason::LedgerFailed, with_causes(&unwritten));
        if self.stop.because(reason) {
            (self.emit)(RunEvent::Stopping { reason, message });
        }
        false
    }
}
