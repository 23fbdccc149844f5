//! What the ledger and the folder have of a job, looked up once for all that is made of it: several forms of a report, a page that goes
//! over its jobs twice, an exit code.

use std::ops::Range;
use std::path::Path;

use super::row::JobState;
use crate::domain::{Attempt, AttemptState, History, Job, VideoFile};
use crate::download::is_whole;

/// What there is of a job.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Where its attempts are in the history.
    places: Range<usize>,
    /// Which of them stands for it.
    shown: Option<usize>,
    /// Where it stands.
    pub state: JobState,
    /// Whether the video of the one that stands for it is here, and a picture of it.
    pub has_file: bool,
    pub has_poster: bool,
}

impl Found {
    /// Looks up a job.
    pub(super) fn new(job: &Job, history: &History, folder: &Path) -> Self {
        let places = history.places(&job.id);
        let attempts: Vec<&Attempt> = history.at(places.clone()).collect();
        let shown = representative(job, &attempts);
        let state = match shown {
            Some(attempt) => state(attempts[attempt]),
            None if job.review.is_some() => JobState::Held,
            None => JobState::Pending,
        };
        let file = shown.and_then(|attempt| file_of(attempts[attempt], folder));
        let has_poster = file.is_some_and(|file| is_picture_of(folder, &poster_of(file), file));
        Self { places, shown, state, has_file: file.is_some(), has_poster }
    }

    /// The attempts of the job, oldest first.
    pub(super) fn attempts<'h>(&self, history: &'h History) -> impl DoubleEndedIterator<Item = &'h Attempt> {
        history.at(self.places.clone())
    }

    /// The attempt that stands for the job.
    pub(super) fn shown<'h>(&self, history: &'h History) -> Option<&'h Attempt> {
        self.attempts(history).nth(self.shown?)
    }
}

/// The attempt that stands for a job: one in doubt before all, else the completed one, else the latest of this wording.
fn representative(job: &Job, attempts: &[&Attempt]) -> Option<usize> {
    let same = || {
        let same = |attempt: &Attempt| attempt.fingerprint == *job.request.fingerprint();
        (0..attempts.len()).rev().filter(move |&at| attempts[at].state != AttemptState::Void && same(attempts[at]))
    };
    attempts
        .iter()
        .position(|attempt| attempt.state.is_doubtful())
        .or_else(|| same().find(|&at| attempts[at].state == AttemptState::Completed))
        .or_else(|| same().next())
}

/// Where a job stands of which this is all there is.
pub(super) fn state(attempt: &Attempt) -> JobState {
    match attempt.state {
        AttemptState::Intended | AttemptState::InDoubt => JobState::InDoubt,
        AttemptState::Void => JobState::Pending,
        AttemptState::Rejected => JobState::Rejected,
        AttemptState::Queued => JobState::Queued,
        AttemptState::InProgress => JobState::InProgress,
        AttemptState::Completed => JobState::Completed,
        AttemptState::Failed => JobState::Failed,
    }
}

/// The video of an attempt, while it is here.
pub(super) fn file_of<'a>(attempt: &'a Attempt, folder: &Path) -> Option<&'a VideoFile> {
    attempt.file.as_deref().filter(|file| is_whole(folder, file))
}

/// Where a picture of a video lies that somebody put beside it.
pub(super) fn poster_of(video: &VideoFile) -> String {
    format!("{}.jpg", video.path.as_str().trim_end_matches(".mp4"))
}

/// Whether a picture lies beside a video that was not made of the one before it.
fn is_picture_of(folder: &Path, poster: &str, video: &VideoFile) -> bool {
    let changed = |path: &str| folder.join(path).metadata().ok().filter(std::fs::Metadata::is_file)?.modified().ok();
    changed(poster).zip(changed(video.path.as_str())).is_some_and(|(poster, video)| poster >= video)
}
