//! Missing videos and their paths, from the jobs and the ledger, before the run.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::decide::Action;
use super::input::{OtherDirectory, Planned};
use crate::domain::{Account, Attempt, AttemptId, AttemptState, History, Job, JobId, OutputPath, TaskNames, VideoFile};

/// The paths of a batch's videos.
#[derive(Clone, Debug, Default)]
pub struct DownloadPlan {
    /// Completed tasks without a video here.
    pub missing: Vec<Download>,
    /// The paths for videos of active tasks.
    active: HashMap<AttemptId, Destination>,
    /// By path, the attempts with a downloaded video there, the latest first.
    occupants: HashMap<Place, Vec<(AttemptId, VideoFile)>>,
}

/// A folded path, with its directory if that belongs to another batch.
type Place = (Option<Arc<Path>>, String);

/// The path of a video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The directory, if it is another batch's.
    pub directory: Option<Arc<Path>>,
    /// The path of its job.
    pub path: OutputPath,
    /// True if the video gets a versioned name, because another video of the job has the path.
    pub is_version: bool,
}

/// A completed task with a video to download.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Download {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// The account that owns the task.
    pub account: Account,
    /// The body of its request.
    pub request: String,
    /// The URL from the service.
    pub video_url: String,
    /// The path.
    pub destination: Destination,
    /// The earlier download of the video, if any.
    pub known: Option<VideoFile>,
}

impl DownloadPlan {
    /// Returns the downloads for jobs and their earlier attempts. `resume` and `collect` are the active tasks.
    /// `is_left_out` returns whether a job is unselected, and `is_here` whether a downloaded video is in place or on another machine.
    ///
    /// The missing video of a completed job is downloaded again. A replaced video, or one of a removed job, is downloaded once: if it is missing
    /// later, the user has removed it.
    pub(super) fn new(
        planned: &[Planned],
        history: &History,
        [resume, collect]: [&[Attempt]; 2],
        is_left_out: impl Fn(&JobId) -> bool,
        is_here: impl Fn(&Attempt, &VideoFile) -> bool,
    ) -> Self {
        let done = planned.iter().filter(|planned| matches!(planned.action, Action::Done | Action::Stale));
        let done: HashSet<AttemptId> = done.filter_map(|planned| planned.attempt).collect();
        let completed = || history.attempts().filter(|attempt| attempt.state == AttemptState::Completed);
        if completed().next().is_none() && resume.is_empty() && collect.is_empty() {
            return Self::default();
        }
        let jobs: HashMap<&JobId, &Job> = planned.iter().map(|planned| (planned.job.id(), &*planned.job)).collect();
        let destination = |attempt: &Attempt, is_version: bool| {
            let path = jobs.get(attempt.job()).map_or_else(|| OutputPath::for_job(attempt.job()), |job| job.output());
            Destination { directory: None, path, is_version }
        };
        let is_archived = |attempt: &Attempt| attempt.particulars.archived.is_some();
        let wanted = completed().filter(|attempt| !is_archived(attempt)).filter(|attempt| match &attempt.file {
            Some(file) => done.contains(&attempt.id) && !is_here(attempt, file),
            None => !is_left_out(attempt.job()),
        });
        let missing = wanted.filter_map(|attempt| {
            Some(Download {
                job: attempt.job().clone(),
                attempt: attempt.id,
                task: attempt.task.clone()?,
                account: attempt.account.clone(),
                request: attempt.purchase.request.body().to_owned(),
                video_url: attempt.video_url.clone()?,
                destination: destination(attempt, !done.contains(&attempt.id)),
                known: attempt.file.as_deref().cloned(),
            })
        });
        let resumed = resume.iter().map(|attempt| (attempt.id, destination(attempt, false)));
        let collected = collect.iter().map(|attempt| (attempt.id, destination(attempt, true)));
        let mut occupants: HashMap<Place, Vec<(AttemptId, VideoFile)>> = HashMap::new();
        for attempt in completed() {
            let Some(file) = attempt.file.as_deref() else { continue };
            occupants.entry((None, file.path.folded())).or_default().insert(0, (attempt.id, file.clone()));
        }
        Self { missing: missing.collect(), active: resumed.chain(collected).collect(), occupants }
    }

    /// Adds the videos of another batch, for its directory.
    pub(super) fn add(&mut self, mut other: Self, directory: &OtherDirectory) {
        let own = (!directory.is_shared).then(|| Arc::clone(&directory.path));
        let placed = other.missing.iter_mut().map(|download| &mut download.destination);
        for destination in placed.chain(other.active.values_mut()) {
            destination.directory.clone_from(&own);
            destination.is_version |= directory.is_shared;
        }
        self.missing.extend(other.missing);
        self.active.extend(other.active);
        if own.is_some() {
            let occupants = other.occupants.into_iter();
            self.occupants.extend(occupants.map(|((_, path), there)| ((own.clone(), path), there)));
        }
    }
    /// The path for the video of an earlier active task.
    pub fn destination_of(&self, attempt: &Attempt) -> Destination {
        let unknown = || Destination { directory: None, path: OutputPath::for_job(attempt.job()), is_version: true };
        self.active.get(&attempt.id).cloned().unwrap_or_else(unknown)
    }

    /// The attempts with a recorded video at the path of another download.
    pub fn occupants(&self, destination: &Destination, newcomer: AttemptId) -> Vec<&(AttemptId, VideoFile)> {
        let place = (destination.directory.clone(), destination.path.folded());
        let there = self.occupants.get(&place).filter(|_| !destination.is_version);
        let there = there.into_iter().flatten().filter(|(attempt, _)| *attempt != newcomer);
        let mut there: Vec<_> = there.collect();
        if let Some((_, latest)) = there.first() {
            let sha256 = latest.sha256.clone();
            there.retain(|(_, file)| file.sha256 == sha256);
        }
        there
    }
}
