//! Choices of reviewers, recorded in the ledger, and the archiving of videos.
//!
//! # Guarantees
//!
//! - A choice is about one video. If that is not among the completed videos of its job, nothing is recorded. A note may also be about a failed task.
//! - Recording buys nothing. Only a run with `--retake` buys a retake, and never while reviewers disagree.
//! - Recording a choice twice changes nothing.
//! - An earlier take that is kept gets the path of its job, and the other take a versioned name, if both are files that the ledger knows.
//! - A video is removed here only once its copy is durable, has the recorded hash, and the ledger has recorded that it was archived.
//! - Nothing is overwritten. After a kill, the same command finishes the rest.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;

use super::refusal::Refusal;
use super::resolve::BatchView;
use crate::domain::{
    Attempt, AttemptState, BatchKey, Choice, History, InvalidJobId, Job, JobId, Review, ReviewOfTask, Takes, TaskId,
    VideoFile,
};
use crate::download::{CopyVideoError, copy_video, exchange, is_whole, remove_original};
use crate::files::on_a_thread;
use crate::ledger::{Event, LockedBatch};

/// The maximum number of reviews in one commit of the ledger.
const AT_ONCE: usize = 64;

/// The longest name of a reviewer, in characters. It is in a column of each report.
const MAX_NAME: usize = 80;
/// The longest note, in characters: the text field of the contact sheet has the same limit. Reports contain all notes of a job in one cell.
const MAX_NOTE: usize = 2000;

/// Choices of one reviewer about the videos of a batch.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct ChoicesFile {
    /// The `name` of the manifest.
    pub name: String,
    /// The batch value; empty without one.
    #[serde(default)]
    pub batch: String,
    /// The reviewer, unless `--by` names one.
    pub reviewer: Option<String>,
    /// A random ID of the browser, for reviewers without a name.
    pub browser: Option<String>,
    /// IDs of the jobs whose video is kept.
    #[serde(default)]
    pub keep: Vec<String>,
    /// IDs of the jobs to retake.
    #[serde(default)]
    pub retake: Vec<String>,
    /// By job ID, the task of the reviewed video. A job with neither a choice nor a note has its choice withdrawn.
    #[serde(default)]
    pub tasks: BTreeMap<String, String>,
    /// Notes, by job ID.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
}

/// An inconsistency in a file of choices.
#[derive(Debug, thiserror::Error)]
pub enum InvalidChoices {
    /// Two choices for one job.
    #[error("`{0}` is both under `keep` and under `retake`")]
    Both(String),
    /// An ID that no job can have.
    #[error(transparent)]
    Id(#[from] InvalidJobId),
    /// Without its task, a choice would buy another take at every run.
    #[error("the choice for `{0}` has no task ID")]
    NoTask(String),
    /// A note of too many characters.
    #[error("the note on `{0}` is longer than {MAX_NOTE} characters")]
    Note(String),
    /// A name of a reviewer that can't be shown.
    #[error("the name of a reviewer must have 1 to {MAX_NAME} printable characters, found {0:?}")]
    Reviewer(String),
}

impl ChoicesFile {
    /// The reviewed batch.
    pub fn key(&self) -> BatchKey {
        BatchKey { name: self.name.clone(), batch: self.batch.clone() }
    }

    /// The reviews, by this reviewer.
    pub fn reviews(&self, by: &str) -> Result<Vec<ReviewOfTask>, InvalidChoices> {
        let by = valid_reviewer(by)?;
        if let Some(both) = self.retake.iter().find(|id| self.keep.contains(id)) {
            return Err(InvalidChoices::Both(both.clone()));
        }
        let (keep, retake): (HashSet<&String>, HashSet<&String>) =
            (self.keep.iter().collect(), self.retake.iter().collect());
        let ids: BTreeSet<&String> =
            self.keep.iter().chain(&self.retake).chain(self.notes.keys()).chain(self.tasks.keys()).collect();
        let review = |id: &String| {
            let choice = keep.contains(id).then_some(Choice::Keep).or(retake.contains(id).then_some(Choice::Retake));
            let note = self.notes.get(id).map(|note| note.trim().to_owned()).unwrap_or_default();
            let task = self.tasks.get(id).cloned().and_then(TaskId::new);
            let task = task.ok_or_else(|| InvalidChoices::NoTask(id.clone()))?;
            if note.chars().count() > MAX_NOTE {
                return Err(InvalidChoices::Note(id.clone()));
            }
            let review = Review { by: by.to_owned(), choice, note, decides: false };
            Ok(ReviewOfTask { job: JobId::new(id.clone())?, task, review })
        };
        ids.into_iter().map(review).collect()
    }
}

/// The name of a reviewer without blanks around it, if reports can show it.
pub fn valid_reviewer(by: &str) -> Result<&str, InvalidChoices> {
    let by = by.trim();
    let is_valid = !by.is_empty() && by.chars().count() <= MAX_NAME && !by.chars().any(char::is_control);
    if is_valid { Ok(by) } else { Err(InvalidChoices::Reviewer(by.to_owned())) }
}

impl BatchView<'_> {
    /// The reviews by which a reviewer ends conflicts, about the newest video of each job, and withdraws choices.
    pub async fn decisions(
        &self,
        by: &str,
        decided: &[(JobId, Choice)],
        withdrawn: &[JobId],
    ) -> Result<Vec<ReviewOfTask>, Refusal> {
        let history = self.history().await?;
        let review = |attempt: &Attempt, choice: Option<Choice>, note: &str| {
            let review = Review { by: by.to_owned(), choice, note: note.to_owned(), decides: choice.is_some() };
            Some(ReviewOfTask { job: attempt.job().clone(), task: attempt.task.as_ref()?.id.clone(), review })
        };
        let mut reviews = Vec::new();
        for (job, choice) in decided {
            let newest = history.attempts_of(job).rfind(|attempt| attempt.state == AttemptState::Completed);
            let own = newest.and_then(|attempt| review(attempt, Some(*choice), ""));
            reviews.push(own.ok_or_else(|| Refusal::NothingToChoose(job.clone()))?);
        }
        for job in withdrawn {
            let before = reviews.len();
            for attempt in history.attempts_of(job) {
                let own = attempt.particulars.reviews.iter().map(|it| &it.review);
                let own = own.filter(|it| it.by == by && it.choice.is_some());
                reviews.extend(own.filter_map(|it| review(attempt, None, &it.note)));
            }
            if reviews.len() == before {
                return Err(Refusal::NothingToChoose(job.clone()));
            }
        }
        Ok(reviews)
    }

    /// Records reviews, all or none, and names the kept videos in a directory after their jobs. Returns the history before, the number of renamed
    /// videos, and the history after.
    ///
    /// Reads the ledger before it locks the batch, so a ledger that is missing is an error and not created.
    pub async fn choose(
        &self,
        reviews: &[ReviewOfTask],
        jobs: &[Arc<Job>],
        out: &Path,
    ) -> Result<(History, usize, History), Refusal> {
        check(&self.history().await?, reviews)?;
        let batch = self.lock().await?;
        let history = self.history().await?;
        check(&history, reviews)?;
        record(&batch, &history, reviews).await?;
        let renamed = name_kept(&batch, &self.history().await?, jobs, out).await?;
        Ok((history, renamed, self.history().await?))
    }
}

fn check(history: &History, reviews: &[ReviewOfTask]) -> Result<(), Refusal> {
    let is_missing =
        |review: &&ReviewOfTask| !history.attempts_of(&review.job).any(|attempt| attempt.is_reviewed_by(review));
    reviews
        .iter()
        .find(is_missing)
        .map_or(Ok(()), |ReviewOfTask { job, task, .. }| Err(Refusal::NoVideo { job: job.clone(), task: task.clone() }))
}

/// Records the reviews that the history doesn't have.
pub(super) async fn record(batch: &LockedBatch, history: &History, reviews: &[ReviewOfTask]) -> Result<(), Refusal> {
    let new = history.new_reviews(reviews).into_iter();
    let records = new.map(|(attempt, given, _)| batch.record(attempt, Event::Reviewed(given.review.clone())));
    stream::iter(records).buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await.map_err(Refusal::from)
}

/// Gives the video of each job the path of the job, if another take has that. Returns the number of renamed videos.
pub(super) async fn name_kept(
    batch: &LockedBatch,
    history: &History,
    jobs: &[Arc<Job>],
    out: &Path,
) -> Result<usize, Refusal> {
    let mut renamed = 0;
    for job in jobs {
        let (own, mut attempts) = (job.output(), history.attempts_of(job.id()));
        let is_version = |it: &Attempt| it.file.as_ref().is_some_and(|file| file.path.is_version_of(&own));
        if !attempts.clone().any(is_version) {
            continue;
        }
        let named = Takes::for_job(job, attempts.clone()).filter(|takes| is_version(takes.video));
        let Some((takes, file)) = named.and_then(|takes| Some((takes, takes.video.file.as_deref()?))) else {
            continue;
        };
        // After a kill between the two records below, both takes have the name of the video.
        let is_other = |it: &VideoFile| it.path == own || it.path == file.path;
        let other = attempts.rfind(|it| it.id != takes.video.id && it.file.as_deref().is_some_and(is_other));
        // A video beside a user's file has a versioned name until it is kept.
        if takes.choice.is_none() && other.is_none() {
            continue;
        }
        let occupant = other.and_then(|other| other.file.as_deref());
        if exchange(out, file, &own, occupant).map_err(|error| Refusal::Files(Box::new(error)))? {
            for (attempt, path) in
                other.map(|other| (other.id, file.path.clone())).into_iter().chain([(takes.video.id, own.clone())])
            {
                batch.record(attempt, Event::Moved(path)).await?;
            }
            renamed += 1;
        }
    }
    Ok(renamed)
}

impl BatchView<'_> {
    /// Archives the videos of jobs from a directory; moves them to another one, if that is given. Calls `archived` for each job whose archive is on the
    /// disk. Reads the ledger before it locks the batch, so a ledger that is missing is an error and not created.
    pub async fn archive(
        &self,
        out: &Path,
        jobs: &[Arc<Job>],
        to: Option<&Path>,
        mut archived: impl FnMut(&Job),
    ) -> Result<(), Refusal> {
        let history = self.history().await?;
        let video = |job: &Job| Takes::for_job(job, history.attempts_of(job.id())).map(|takes| takes.video);
        if let Some(job) = jobs.iter().find(|job| video(job).is_none()) {
            return Err(Refusal::NothingToArchive(job.id().clone()));
        }
        let batch = self.lock().await?;
        name_kept(&batch, &self.history().await?, jobs, out).await?;
        let history = self.history().await?;
        for job in jobs {
            let takes = Takes::for_job(job, history.attempts_of(job.id()));
            let attempt = takes.map(|takes| takes.video).ok_or_else(|| Refusal::NothingToArchive(job.id().clone()))?;
            let is_archived = attempt.particulars.archived.is_some();
            let copy = match to {
                Some(to) => copied(out, to, job, attempt).await?,
                None => None,
            };
            if !is_archived {
                let to = copy.as_ref().map(|copy| copy.display().to_string());
                batch.record(attempt.id, Event::Archived { to }).await.map_err(Refusal::from)?;
                archived(job);
            }
            if let (Some(copy), Some(file)) = (copy, &attempt.file) {
                let path = out.join(file.path.as_str());
                match remove_original(&path, file, &copy) {
                    Ok(true) => {}
                    Ok(false) => return Err(CopyVideoError::Same { path: copy }.into()),
                    Err(source) => return Err(Refusal::Remove { path, source }),
                }
            }
        }
        Ok(())
    }
}

/// Copies the video of a job. Returns the path of the copy, or `None` if the video was archived before.
async fn copied(out: &Path, to: &Path, job: &Job, attempt: &Attempt) -> Result<Option<PathBuf>, Refusal> {
    let Some(file) = attempt.file.as_deref().filter(|file| is_whole(out, file)).cloned() else {
        return match attempt.particulars.archived {
            Some(_) => Ok(None),
            None => Err(Refusal::NotHere(job.id().clone())),
        };
    };
    let (out, path) = (out.to_owned(), std::path::absolute(to).unwrap_or_else(|_| to.to_owned()));
    let unavailable = |source| Refusal::Copy(CopyVideoError::Io { path: to.to_owned(), source });
    let copied = on_a_thread(move || copy_video(&out, &path, &file)).await.map_err(unavailable)?;
    Ok(Some(copied?))
}
