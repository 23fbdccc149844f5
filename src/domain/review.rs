//! Reviews of videos, and the video of a job that follows from them.

use std::collections::HashMap;

use indexmap::IndexMap;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Attempt, AttemptId, AttemptState, Fingerprint, History, Job, JobId, TaskId, named};

/// The choice of a reviewer about a video.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// To keep it.
    Keep,
    /// To retake it.
    Retake,
}

/// The words of one reviewer about one video. A later review by the same reviewer replaces it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Review {
    /// The reviewer.
    pub by: String,
    /// The choice, or `None` for a note alone.
    pub choice: Option<Choice>,
    /// The note; may be empty.
    pub note: String,
    /// True if the choice ends a conflict: earlier choices of the job no longer count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
}

/// A review with the time of its record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reviewed {
    /// The review.
    pub review: Review,
    /// The time.
    pub at: Timestamp,
}

/// A review of a job's video, which is named by its task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReviewOfTask {
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: TaskId,
    /// The review.
    pub review: Review,
}

named! {
    /// The choices of all reviewers of a job together.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum JobChoice {
        /// The job has a kept video.
        Keep = "keep",
        /// To be retaken.
        Retake = "retake",
        /// Reviewers disagree, so nothing is retaken.
        Conflict = "conflict",
    }
}

/// The completed takes of a job's request.
#[derive(Clone, Copy, Debug)]
pub struct Takes<'a> {
    /// The video of the job: the newest one that a reviewer keeps, otherwise the newest one.
    pub video: &'a Attempt,
    /// The choices of the reviewers, or `None` if the newest video is undecided and no other is kept.
    pub choice: Option<JobChoice>,
}

impl<'a> Takes<'a> {
    /// Of all attempts of a job, oldest first, its completed takes; `None` if there are none.
    pub fn for_job(job: &Job, attempts: impl DoubleEndedIterator<Item = &'a Attempt> + Clone) -> Option<Self> {
        Self::new(&job.fingerprint_among(attempts.clone()), attempts)
    }

    /// Of all attempts of a job, oldest first, those for this request; `None` if none is completed.
    ///
    /// The last choice of each reviewer counts. A retake is spent once there is a newer video.
    pub fn new(request: &Fingerprint, attempts: impl Iterator<Item = &'a Attempt>) -> Option<Self> {
        let is_take = |it: &&Attempt| it.state == AttemptState::Completed && it.purchase.fingerprint() == request;
        let takes: Vec<&Attempt> = attempts.filter(is_take).collect();
        let reviews = takes.iter().flat_map(|take| &take.particulars.reviews);
        let decided = reviews.filter(|it| it.review.decides && it.review.choice.is_some()).map(|it| it.at).max();
        let of_take = |take: &&'a Attempt| take.particulars.reviews.iter().zip(std::iter::repeat(*take));
        let mut choices: Vec<(&Reviewed, &Attempt)> = takes.iter().flat_map(of_take).collect();
        choices.retain(|(it, _)| it.review.choice.is_some() && Some(it.at) >= decided);
        choices.sort_by_key(|(it, _)| it.at);
        let of_reviewer = |(it, take): (&'a Reviewed, &'a Attempt)| (&it.review.by, (it.review.choice, take));
        let last: HashMap<&String, (Option<Choice>, &Attempt)> = choices.into_iter().map(of_reviewer).collect();
        let newest = *takes.last()?;
        let keeps = || last.values().filter(|(choice, _)| *choice == Some(Choice::Keep)).map(|(_, take)| *take);
        let kept = keeps().max_by_key(|take| take.id);
        // Two reviewers who keep different takes disagree, too.
        let is_disputed = keeps().any(|take| kept.is_some_and(|kept| kept.id != take.id));
        let is_retake = last.values().any(|(choice, take)| *choice == Some(Choice::Retake) && take.id == newest.id);
        let choice = match (kept, is_retake || is_disputed) {
            (Some(_), true) => Some(JobChoice::Conflict),
            (Some(_), false) => Some(JobChoice::Keep),
            (None, true) => Some(JobChoice::Retake),
            (None, false) => None,
        };
        Some(Self { video: kept.unwrap_or(newest), choice })
    }
}

/// The last choice of each reviewer of a job's takes: `anna keeps take 1, ben retakes take 2`.
pub fn wishes<'a>(job: &Job, attempts: impl DoubleEndedIterator<Item = &'a Attempt> + Clone) -> String {
    let request = job.fingerprint_among(attempts.clone());
    let is_take = |it: &&Attempt| it.state == AttemptState::Completed && *it.purchase.fingerprint() == request;
    let takes: Vec<&Attempt> = attempts.filter(is_take).collect();
    let wish = |reviewed: &&Reviewed| {
        let verb = if reviewed.review.choice? == Choice::Keep { "keeps" } else { "retakes" };
        let take = takes.iter().position(|take| take.particulars.reviews.contains(reviewed))?;
        Some(format!("{} {verb} take {}", reviewed.review.by, take + 1))
    };
    last_reviews(takes.iter().copied()).iter().filter_map(wish).collect::<Vec<_>>().join(", ")
}

/// The last review of each reviewer of these takes, oldest first.
pub fn last_reviews<'a>(takes: impl Iterator<Item = &'a Attempt>) -> Vec<&'a Reviewed> {
    let mut reviews: Vec<&Reviewed> = takes.flat_map(|take| &take.particulars.reviews).collect();
    reviews.sort_by_key(|reviewed| reviewed.at);
    let mut last: IndexMap<&String, &Reviewed> = IndexMap::new();
    for reviewed in reviews {
        last.shift_remove(&reviewed.review.by);
        last.insert(&reviewed.review.by, reviewed);
    }
    last.into_values().collect()
}

impl Attempt {
    /// Records a review in place of an earlier one by the same reviewer; without a choice and a note, only removes that.
    pub fn review(&mut self, review: Review, at: Timestamp) {
        let reviews = &mut self.particulars.reviews;
        reviews.retain(|reviewed| reviewed.review.by != review.by);
        if review.choice.is_some() || !review.note.is_empty() {
            reviews.push(Reviewed { review, at });
        }
    }

    /// Returns whether the review is about its video, or is a note on its failed task.
    pub fn is_reviewed_by(&self, review: &ReviewOfTask) -> bool {
        let is_note_on_failure = self.state == AttemptState::Failed && review.review.choice.is_none();
        (self.state == AttemptState::Completed || is_note_on_failure)
            && *self.job() == review.job
            && self.task.as_ref().is_some_and(|task| task.has(&review.task))
    }
}

impl History {
    /// The reviews to record: all but those that are the last word of their reviewer about their job. Each is given with its attempt, and with the
    /// earlier choice of its reviewer that it replaces.
    pub fn new_reviews<'r>(
        &self,
        reviews: &'r [ReviewOfTask],
    ) -> Vec<(AttemptId, &'r ReviewOfTask, Option<&Reviewed>)> {
        let new = |given: &'r ReviewOfTask| {
            let attempt = self.attempts_of(&given.job).find(|attempt| attempt.is_reviewed_by(given))?;
            let mut last = last_reviews(self.attempts_of(&given.job)).into_iter();
            let last = last.find(|last| last.review.by == given.review.by);
            let same_video = last.filter(|last| attempt.particulars.reviews.contains(last)).map(|last| &last.review);
            let is_empty = given.review.choice.is_none() && given.review.note.is_empty();
            if same_video == Some(&given.review) || (last.is_none() && is_empty) {
                return None;
            }
            let replaced = last.filter(|last| match (last.review.choice, same_video) {
                (None, _) => false,
                // A retake of an earlier video was bought, or stopped counting with that.
                (Some(choice), None) => choice == Choice::Keep,
                (choice, Some(_)) => choice != given.review.choice,
            });
            Some((attempt.id, given, replaced))
        };
        reviews.iter().filter_map(new).collect()
    }

    /// The same with reviews that are to be recorded.
    #[must_use]
    pub fn reviewed(mut self, reviews: &[ReviewOfTask], at: Timestamp) -> Self {
        let mut new: HashMap<AttemptId, Vec<&Review>> = HashMap::new();
        let mut replaced = Vec::new();
        for (attempt, given, earlier) in self.new_reviews(reviews) {
            new.entry(attempt).or_default().push(&given.review);
            replaced.extend(earlier.map(|earlier| (given.job.clone(), earlier.clone())));
        }
        self.replaced = replaced;
        self.changed(|attempt| {
            for review in new.get(&attempt.id).into_iter().flatten() {
                attempt.review((*review).clone(), at);
            }
        })
    }
}

/// Reads a value, or none where it is invalid: the rest of a report or a record counts without it.
pub(crate) fn if_valid<'de, D: Deserializer<'de>, T: DeserializeOwned>(input: D) -> Result<Option<T>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(input)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// The account of a failure, as JSON in a text: a service may nest its own JSON deeper than a parser accepts.
pub(super) mod error {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::domain::ServiceError;

    type Error = Option<Box<ServiceError>>;

    pub(crate) fn serialize<S: Serializer>(error: &Error, output: S) -> Result<S::Ok, S::Error> {
        let text = error.as_ref().map(serde_json::to_string).transpose();
        text.map_err(serde::ser::Error::custom)?.serialize(output)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Error, D::Error> {
        let error = |text: String| {
            serde_json::from_str(&text).unwrap_or_else(|_| ServiceError {
                message: "the stored error can't be parsed".to_owned(),
                code: None,
                raw: text.into(),
            })
        };
        Ok(Option::<String>::deserialize(input)?.map(|text| Box::new(error(text))))
    }
}
