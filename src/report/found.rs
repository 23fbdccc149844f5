//! Facts about a job from ledger and directory, for all formats of a report.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::{Attempt, AttemptId, AttemptState, Fingerprint, History, Job, JobChoice, Takes, VideoFile, named};
use crate::download::is_whole;

named! {
    /// The state of a job.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum JobState {
        /// Terminal, with a video.
        Completed = "completed",
        /// In generation when the run stopped.
        InProgress = "in_progress",
        /// Waiting at the service when the run stopped.
        Queued = "queued",
        /// Never sent.
        Pending = "pending",
        /// Waits for a face review.
        Held = "held",
        /// Rejected by the service. No task exists.
        Rejected = "rejected",
        /// Terminal, without a video.
        Failed = "failed",
        /// Sent, without a complete response.
        InDoubt = "in_doubt",
    }
}

impl JobState {
    /// Returns whether the current request of the job is not bought yet.
    pub fn is_unbought(self) -> bool {
        matches!(self, Self::Pending | Self::Held | Self::Rejected)
    }

    /// The state's name for the user.
    pub fn label(self) -> String {
        self.name().replace('_', " ")
    }
}

/// The facts about a job.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The positions of its attempts in the history.
    places: Range<usize>,
    /// The request by which its attempts are known.
    fingerprint: Fingerprint,
    /// The attempt that represents it.
    shown: Option<usize>,
    /// The state.
    pub state: JobState,
    /// The choices of its reviewers.
    pub choice: Option<JobChoice>,
    /// True if the video of the representing attempt is here.
    pub has_file: bool,
}

impl Found {
    /// Looks up a job.
    pub(super) fn new(job: &Job, history: &History, directory: &Path) -> Self {
        let places = history.places(job.id());
        let attempts: Vec<&Attempt> = history.attempts_at(places.clone()).collect();
        let fingerprint = job.fingerprint_among(attempts.iter().copied());
        let takes = Takes::new(&fingerprint, attempts.iter().copied());
        let shown = representative(&fingerprint, &attempts, takes.map(|takes| takes.video.id));
        let choice = takes.and_then(|takes| takes.choice);
        let state = match shown {
            Some(attempt) => state(attempts[attempt]),
            None if job.waits_for().is_some() => JobState::Held,
            None => JobState::Pending,
        };
        let has_file = shown.is_some_and(|attempt| file_of(attempts[attempt], directory).is_some());
        Self { places, fingerprint, shown, state, choice, has_file }
    }

    /// The attempts of the job, oldest first.
    pub(super) fn attempts<'h>(&self, history: &'h History) -> impl DoubleEndedIterator<Item = &'h Attempt> {
        history.attempts_at(self.places.clone())
    }

    /// Returns whether an attempt has the request of the job.
    pub(super) fn is_take(&self, attempt: &Attempt) -> bool {
        *attempt.purchase.fingerprint() == self.fingerprint
    }

    /// Returns whether the job's video was bought with another image.
    pub(super) fn is_stale(&self, job: &Job) -> bool {
        self.state == JobState::Completed && job.is_stale(&self.fingerprint)
    }

    /// The attempt that represents the job.
    pub(super) fn shown<'h>(&self, history: &'h History) -> Option<&'h Attempt> {
        self.attempts(history).nth(self.shown?)
    }
}

/// The attempt that represents a job: one in doubt, else the job's video, else the latest with the current request.
fn representative(fingerprint: &Fingerprint, attempts: &[&Attempt], video: Option<AttemptId>) -> Option<usize> {
    let doubtful = attempts.iter().position(|attempt| attempt.state.is_doubtful());
    let video = || attempts.iter().position(|attempt| Some(attempt.id) == video);
    let is_current = |it: &&Attempt| it.state != AttemptState::Void && it.purchase.fingerprint() == fingerprint;
    doubtful.or_else(video).or_else(|| attempts.iter().rposition(is_current))
}

/// The state of a job that has only this attempt.
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

/// The video of an attempt, if it is here.
pub(super) fn file_of<'a>(attempt: &'a Attempt, directory: &Path) -> Option<&'a VideoFile> {
    attempt.file.as_deref().filter(|file| is_whole(directory, file))
}

/// The mismatches of a delivered video, as text.
pub(super) fn mismatch(attempt: &Attempt) -> Option<String> {
    let differences = attempt.file.as_ref()?.differences(attempt.purchase.request.body());
    let texts: Vec<String> = differences.into_iter().map(|it| it.text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The relative path between directories, with `/` after each part; empty for the same directory. Between drives, it is the absolute path.
pub(super) fn relative_path(from: &Path, to: &Path) -> String {
    let (from, to) = (real(from), real(to));
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return format!("{}/", to.display()).replace('\\', "/");
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let down = to.components().skip(shared);
    up.chain(down).flat_map(|part| [part.as_os_str().to_string_lossy(), "/".into()]).collect()
}

/// The directory with resolved links, or unchanged if it is missing.
fn real(directory: &Path) -> PathBuf {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let real = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    without_mark(real.unwrap_or_else(|_| directory.to_owned()))
}

/// A Windows path without the prefix of canonical paths, `\\?\`.
fn without_mark(path: PathBuf) -> PathBuf {
    let plain = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    plain.filter(|plain| plain.get(1..2) == Some(":")).map(PathBuf::from).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_from_directory_to_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("a/b")).expect("directories");
        for (from, to, expected) in
            [("a", "a", ""), ("a", "a/b", "b/"), ("a/b", "a", "../"), ("a/b", "c/d", "../../c/d/"), ("", "a", "a/")]
        {
            assert_eq!(relative_path(&at(from), &at(to)), expected, "from {from} to {to}");
        }
        assert_eq!(relative_path(Path::new(""), Path::new(".")), "");
    }
}
