//! `--exec`: starts a program for each video that is verified and in its place, a few at once, beside the run.
//!
//! Only the video that stands for its job is meant: not one that was changed or taken again since, which would be published under
//! the same id. Just before the program starts, the file is held against the hash that the ledger has of it.
//!
//! What came of it is written to the ledger, with the attempt. A video for which the program succeeded never sees it again, whichever
//! program it was; one for which it failed is its turn again in the next run that has `--exec`. As soon as a video comes, it is written
//! down that a program is owed to it, so that a run that dies leaves a trace also with a batch that is not its own. Between a
//! program's end and the word in the ledger there is a moment: a run that dies in it starts the program a second time. If the
//! ledger can't be written, no other program is started.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;

use super::other_batches::as_bought;
use crate::domain::{
    Attempt, AttemptId, AttemptState, BatchKey, Executed, History, Job, JobId, NoticeCode, TaskId, VideoFile,
    with_causes,
};
use crate::download::{holds, is_whole};
use crate::engine::{FetchedVideo, RunEvent, Stop, StopReason};
use crate::files::on_a_thread;
use crate::hooks::{Program, Video};
use crate::ledger::{Event, LockedBatch};
use crate::plan::{Action, Plan};

/// The most that run at once.
const AT_ONCE: usize = 4;
/// After how many failures in a row no other is started: each may take as long as a program may.
const MOST_FAILED: usize = 10;
/// For how long programs are waited for once the run is to end.
const GRACE: Duration = Duration::from_secs(30);

/// The videos for which a program is to be started.
pub(super) struct Executions {
    /// Those that are in their places already.
    waiting: Vec<Due>,
    /// Attempts of earlier runs, whose videos may come in this one.
    earlier: HashMap<AttemptId, Earlier>,
    /// The selected jobs, as they are bought now.
    jobs: HashMap<JobId, Arc<Job>>,
    batch: String,
    out: PathBuf,
}

/// What is known of an attempt of an earlier run.
enum Earlier {
    /// No program is to be started for its video: one succeeded, or another attempt stands for the job.
    Done,
    /// One is. The job as it was bought, and the batch value.
    Open(Arc<Job>, String),
}

/// A video whose turn it is.
struct Due {
    attempt: AttemptId,
    job: Arc<Job>,
    batch: String,
    path: PathBuf,
    file: VideoFile,
    task: TaskId,
    /// When a program was last started for it.
    tried_at: Option<Timestamp>,
}

impl Executions {
    /// What is to be done by a plan and by what is known of its batch. Of other batches, videos that come in this run are, and those for
    /// which a program is owed.
    pub(super) fn new<'h>(
        plan: &Plan,
        out: &Path,
        history: &History,
        others: impl Iterator<Item = (&'h BatchKey, &'h Path, &'h History)>,
    ) -> Self {
        let jobs: HashMap<JobId, Arc<Job>> =
            plan.jobs.iter().map(|planned| (planned.job.id.clone(), Arc::clone(&planned.job))).collect();
        let stands = |action| matches!(action, Action::Done | Action::Fetch | Action::Resume);
        let standing = plan.jobs.iter().filter(|planned| stands(planned.action));
        let standing: HashSet<AttemptId> = standing.filter_map(|planned| planned.attempt).collect();
        let (batch, out) = (plan.key.batch.clone(), out.to_owned());
        let mut executions = Self { waiting: Vec::new(), earlier: HashMap::new(), jobs, batch, out: out.clone() };
        for attempt in history.attempts() {
            let today = executions.jobs.get(&attempt.job).cloned();
            executions.add(attempt, today.as_deref(), &plan.key, &out, standing.contains(&attempt.id), true);
        }
        for (key, out, history) in others {
            let last: HashMap<&JobId, AttemptId> =
                history.attempts().filter(|one| may_have_a_video(one)).map(|one| (&one.job, one.id)).collect();
            for attempt in history.attempts() {
                let is_owed = attempt.particulars.executed.is_some();
                executions.add(attempt, None, key, out, last.get(&attempt.job) == Some(&attempt.id), is_owed);
            }
        }
        // Whose turn never came goes first, so that some that always fail keep nobody waiting for ever.
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
        let (job, batch) = (Arc::new(as_bought(attempt, today)), key.batch.clone());
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

    /// Whether nothing is to be done unless a video comes.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The video that was fetched, if a program is to be started for it.
    fn fetched(&mut self, video: FetchedVideo) -> Option<Due> {
        let (job, batch) = match self.earlier.remove(&video.attempt) {
            Some(Earlier::Done) => return None,
            Some(Earlier::Open(job, batch)) => (job, batch),
            None => (Arc::clone(self.jobs.get(&video.job)?), self.batch.clone()),
        };
        let path = video.folder.as_deref().unwrap_or(&self.out).join(video.file.path.as_str());
        let (attempt, file, task) = (video.attempt, video.file, video.task.id);
        Some(Due { attempt, job, batch, path, file, task, tried_at: None })
    }
}

/// Whether there is a video, or may be one.
fn may_have_a_video(attempt: &Attempt) -> bool {
    attempt.state.is_outstanding() || attempt.state == AttemptState::Completed
}

/// Starts the program.
pub(super) struct Executor<'r> {
    pub(super) program: &'r Program,
    /// Whether the videos are the simulator's.
    pub(super) is_simulated: bool,
    /// The ledger.
    pub(super) ledger: &'r LockedBatch,
    pub(super) stop: &'r Stop,
    pub(super) emit: &'r (dyn Fn(RunEvent) + Sync),
}

/// What happened to the programs of a run.
#[derive(Default)]
struct Tally {
    failed: AtomicUsize,
    in_a_row: AtomicUsize,
    /// Whether no other is started.
    is_over: AtomicBool,
}

impl Executor<'_> {
    /// Does what waits and what comes, until nothing comes any more. Once the run is left, what runs is waited for, for a while, and no
    /// other is started. Gives for how many videos the program failed, or was given up.
    pub(super) async fn run(&self, mut executions: Executions, coming: UnboundedReceiver<FetchedVideo>) -> usize {
        let waiting = stream::iter(std::mem::take(&mut executions.waiting));
        let coming = coming.filter_map(|video| std::future::ready(executions.fetched(video)));
        // Nobody waits for a program to hear that one is owed to what comes.
        let coming = coming.then(async |due| {
            self.note_owed(&due).await;
            due
        });
        let tally = Tally::default();
        waiting.chain(coming).for_each_concurrent(AT_ONCE, |due| self.take_turn(due, &tally)).await;
        tally.failed.into_inner()
    }

    async fn take_turn(&self, due: Due, tally: &Tally) {
        if self.stop.is_leaving() {
            return;
        }
        if tally.is_over.load(Ordering::Relaxed) {
            tally.failed.fetch_add(1, Ordering::Relaxed);
            // What came of its last start says more than that there was none today.
            if due.tried_at.is_none() {
                self.note_owed(&due).await;
            }
            return;
        }
        let (path, file) = (due.path.clone(), due.file.clone());
        if !on_a_thread(move || holds(&path, &file)).await.unwrap_or(false) {
            // Another video took its place, or somebody removed it; the next run knows more.
            tracing::info!(code = NoticeCode::HookVideoGone.code(), job = %due.job.id, "skipped `--exec`: the video is missing or changed");
            return;
        }
        let (error, line) = self.execute(&due).await;
        let is_done = error.is_none();
        if !self.record(&due, error.clone(), line).await {
            // What can't be written down would be done again.
            tally.is_over.store(true, Ordering::Relaxed);
        }
        (self.emit)(RunEvent::Executed { job: due.job.id.clone(), error });
        if is_done {
            return tally.in_a_row.store(0, Ordering::Relaxed);
        }
        tally.failed.fetch_add(1, Ordering::Relaxed);
        if tally.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == MOST_FAILED {
            tally.is_over.store(true, Ordering::Relaxed);
            let message = format!("`--exec` failed {MOST_FAILED} times in a row, and is not started again in this run");
            (self.emit)(RunEvent::Warned { code: NoticeCode::HooksStopped, message });
        }
    }

    /// Starts it for one video. Gives why it failed, if it did, and the last line that it wrote.
    async fn execute(&self, due: &Due) -> (Option<String>, Option<String>) {
        let Due { job, batch, path, file, task, .. } = due;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let video = Video { job, batch, path: &path, file, task, is_simulated: self.is_simulated };
        let late = async {
            self.stop.leaving().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            ended = self.program.run_for(video) => match ended {
                Ok(said) => (None, said.line),
                Err(error) => (Some(with_causes(&error)), error.line().map(str::to_owned)),
            },
            () = late => (Some("it was killed, because the run had to end".to_owned()), None),
        }
    }

    /// Writes down that a program is owed to a video.
    async fn note_owed(&self, due: &Due) {
        self.record(due, Some(Executed::OWED.to_owned()), None).await;
    }

    /// Writes it down. False if that can't be done.
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
