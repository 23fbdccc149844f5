//! Which video goes where, and which ones are missing: from the plan and the ledger, before the run.

use std::collections::{HashMap, HashSet};

use crate::domain::{Account, Attempt, AttemptId, AttemptState, History, Job, JobId, OutputPath, TaskId, VideoFile};
use crate::plan::{Action, Plan};

/// Where the videos of a batch are, and where they belong.
#[derive(Debug, Default)]
pub struct Shelf {
    /// Completed tasks whose video is not here.
    pub errands: Vec<Errand>,
    /// Where the videos of tasks go that are at the service already.
    outstanding: HashMap<AttemptId, Place>,
    /// By path: the attempt whose video is there by the ledger's word.
    occupants: HashMap<OutputPath, (AttemptId, VideoFile)>,
}

/// Where a video goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The path of its job.
    pub path: OutputPath,
    /// Only a version of that path: the path itself is for another video of the job.
    pub is_version: bool,
}

/// A completed task whose video is to be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errand {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskId,
    /// Whose task it is.
    pub account: Account,
    /// Where the service said that the video is.
    pub video_url: String,
    /// Where it goes.
    pub place: Place,
}

impl Shelf {
    /// What the plan's jobs and their earlier attempts ask for. `is_here` says whether a video that was fetched once is still
    /// there.
    ///
    /// The video of a job that is done is fetched again when it is missing. One that was paid for and that another took the
    /// place of is fetched once: whoever removes it then does not want it.
    #[must_use]
    pub fn new(plan: &Plan, history: &History, is_here: impl Fn(&VideoFile) -> bool) -> Self {
        let done = plan.jobs.iter().filter(|planned| planned.action == Action::Done);
        let done: HashSet<AttemptId> = done.filter_map(|planned| planned.attempt).collect();
        let completed = || history.attempts().filter(|attempt| attempt.state == AttemptState::Completed);
        let has_files = completed().any(|attempt| attempt.file.is_some());
        let lacks_files = completed().any(|attempt| attempt.file.as_ref().is_none_or(|file| !is_here(file)));
        if !has_files && !lacks_files && plan.resume.is_empty() && plan.collect.is_empty() {
            return Self::default();
        }
        let jobs: HashMap<&JobId, &Job> = plan.jobs.iter().map(|planned| (&planned.job.id, &*planned.job)).collect();
        let place = |attempt: &Attempt, is_version: bool| {
            let path = jobs.get(&attempt.job).map_or_else(|| OutputPath::of(&attempt.job), |job| job.output());
            Place { path, is_version }
        };
        let wanted = completed().filter(|attempt| match &attempt.file {
            Some(file) => done.contains(&attempt.id) && !is_here(file),
            None => jobs.contains_key(&attempt.job),
        });
        let errands = wanted.filter_map(|attempt| {
            Some(Errand {
                job: attempt.job.clone(),
                attempt: attempt.id,
                task: attempt.task.clone()?,
                account: attempt.account.clone(),
                video_url: attempt.video_url.clone()?,
                place: place(attempt, !done.contains(&attempt.id)),
            })
        });
        let resumed = plan.resume.iter().map(|attempt| (attempt.id, place(attempt, false)));
        let collected = plan.collect.iter().map(|attempt| (attempt.id, place(attempt, true)));
        let occupants = completed().filter_map(|attempt| {
            let file = attempt.file.as_deref()?;
            Some((file.path.clone(), (attempt.id, file.clone())))
        });
        Self {
            errands: errands.collect(),
            outstanding: resumed.chain(collected).collect(),
            occupants: occupants.collect(),
        }
    }

    /// Where the video of a task goes that was at the service before the run.
    #[must_use]
    pub fn place_of(&self, attempt: &Attempt) -> Place {
        let unknown = || Place { path: OutputPath::of(&attempt.job), is_version: true };
        self.outstanding.get(&attempt.id).cloned().unwrap_or_else(unknown)
    }

    /// The attempt whose video is where another's goes, by the ledger's word.
    pub(super) fn occupant(&self, place: &Place, newcomer: AttemptId) -> Option<&(AttemptId, VideoFile)> {
        let occupant = self.occupants.get(&place.path).filter(|_| !place.is_version)?;
        (occupant.0 != newcomer).then_some(occupant)
    }
}
