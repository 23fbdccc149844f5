//! `--exec`: starts a program for each video that is verified and in its place, a few at once, beside the run.
//!
//! What came of it is written to the ledger, with the attempt. A video for which the program succeeded never sees it again, whichever
//! program it was; one for which it failed, or was never started because the run died, is its turn again in the next run that
//! has `--exec`. Between a program's end and the word in the ledger there is a moment: a run that dies in it starts the program a
//! second time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::{self, StreamExt as _};

use super::elsewhere::as_bought;
use crate::domain::{Attempt, AttemptId, AttemptState, BatchKey, History, Job, JobId, TaskId, VideoFile, with_causes};
use crate::download::is_whole;
use crate::engine::{FetchedVideo, RunEvent, Stop, StopReason};
use crate::hooks::{Program, Video};
use crate::ledger::{Event, HeldBatch};
use crate::plan::Plan;

/// The most that run at once.
const AT_ONCE: usize = 4;
/// After how many failures in a row no other is started: each may take as long as a program may.
const MOST_FAILED: usize = 10;

/// The videos for which a program is to be started.
pub(super) struct Executions {
    /// Those of the selected jobs that are in their places already.
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
    /// The program succeeded for its video.
    Done,
    /// It did not yet. The job as it was bought, and the batch value.
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
}

impl Executions {
    /// What is to be done by a plan and by what is known of its batch. Of other batches, only videos that come in this run are.
    pub(super) fn new<'h>(
        plan: &Plan,
        out: &Path,
        history: &History,
        others: impl Iterator<Item = (&'h BatchKey, &'h History)>,
    ) -> Self {
        let jobs = plan.jobs.iter().map(|planned| (planned.job.id.clone(), Arc::clone(&planned.job))).collect();
        let batch = plan.key.batch.clone();
        let mut executions = Self { waiting: Vec::new(), earlier: HashMap::new(), jobs, batch, out: out.to_owned() };
        for attempt in history.attempts() {
            executions.add_own(attempt);
        }
        for (key, history) in others {
            let open =
                history.attempts().filter_map(|attempt| Some((attempt.id, Earlier::of(attempt, None, &key.batch)?)));
            executions.earlier.extend(open);
        }
        executions
    }

    fn add_own(&mut self, attempt: &Attempt) {
        let today = self.jobs.get(&attempt.job);
        let Some(earlier) = Earlier::of(attempt, today.map(Arc::as_ref), &self.batch) else { return };
        let file = attempt.file.as_deref().filter(|file| today.is_some() && is_whole(&self.out, file));
        match (earlier, file, &attempt.task) {
            (Earlier::Open(job, batch), Some(file), Some(task)) => self.waiting.push(Due {
                attempt: attempt.id,
                job,
                batch,
                path: self.out.join(file.path.as_str()),
                file: file.clone(),
                task: task.id.clone(),
            }),
            (earlier, ..) => drop(self.earlier.insert(attempt.id, earlier)),
        }
    }

    /// Whether nothing is to be done unless a video comes.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The video that was fetched, unless the program succeeded for it before.
    fn fetched(&mut self, video: FetchedVideo) -> Option<Due> {
        let (job, batch) = match self.earlier.remove(&video.attempt) {
            Some(Earlier::Done) => return None,
            Some(Earlier::Open(job, batch)) => (job, batch),
            None => (Arc::clone(self.jobs.get(&video.job)?), self.batch.clone()),
        };
        let path = video.folder.as_deref().unwrap_or(&self.out).join(video.file.path.as_str());
        Some(Due { attempt: video.attempt, job, batch, path, file: video.file, task: video.task.id })
    }
}

impl Earlier {
    /// What is known of an attempt; nothing of one that will have no video.
    fn of(attempt: &Attempt, today: Option<&Job>, batch: &str) -> Option<Self> {
        if attempt.particulars.executed.as_ref().is_some_and(|executed| executed.error.is_none()) {
            return Some(Self::Done);
        }
        let may_have_a_video = attempt.state.is_outstanding() || attempt.state == AttemptState::Completed;
        may_have_a_video.then(|| Self::Open(Arc::new(as_bought(attempt, today)), batch.to_owned()))
    }
}

/// Starts the program.
pub(super) struct Executor<'r, H> {
    pub(super) program: &'r Program,
    /// Whether the videos are the simulator's.
    pub(super) is_simulated: bool,
    /// The ledger.
    pub(super) ledger: &'r H,
    pub(super) stop: &'r Stop,
    pub(super) tell: &'r (dyn Fn(RunEvent) + Sync),
}

impl<H: HeldBatch> Executor<'_, H> {
    /// Does what waits and what comes, until nothing comes any more or the run is left; what runs then is waited for. Gives for how
    /// many videos the program failed.
    pub(super) async fn run(&self, mut executions: Executions, coming: UnboundedReceiver<FetchedVideo>) -> usize {
        let waiting = stream::iter(std::mem::take(&mut executions.waiting));
        let coming = coming.filter_map(|video| std::future::ready(executions.fetched(video)));
        let (failed, in_a_row) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let videos = waiting.chain(coming).take_until(Box::pin(self.stop.leaving()));
        videos
            .for_each_concurrent(AT_ONCE, async |due| {
                if in_a_row.load(Ordering::Relaxed) >= MOST_FAILED {
                    failed.fetch_add(1, Ordering::Relaxed);
                } else if self.execute(&due).await {
                    in_a_row.store(0, Ordering::Relaxed);
                } else {
                    failed.fetch_add(1, Ordering::Relaxed);
                    if in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == MOST_FAILED {
                        let message = format!("the program failed {MOST_FAILED} times in a row: it is started for no other video in this run");
                        (self.tell)(RunEvent::Warned { message });
                    }
                }
            })
            .await;
        failed.into_inner()
    }

    /// Starts it for one video, and writes down what came of it. False if it failed.
    async fn execute(&self, due: &Due) -> bool {
        let Due { attempt, job, batch, path, file, task } = due;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let ended =
            self.program.run_for(Video { job, batch, path: &path, file, task, is_simulated: self.is_simulated }).await;
        let (error, line) = match ended {
            Ok(said) => (None, said.line),
            Err(error) => (Some(with_causes(&error)), error.line().map(str::to_owned)),
        };
        let event = Event::Executed { error: error.clone(), line };
        if let Err(unwritten) = self.ledger.record(*attempt, event).await {
            let (reason, message) = (StopReason::LedgerFailed, with_causes(&unwritten));
            if self.stop.because(reason) {
                (self.tell)(RunEvent::Stopping { reason, message });
            }
        }
        let is_done = error.is_none();
        (self.tell)(RunEvent::Executed { job: job.id.clone(), error });
        is_done
    }
}
