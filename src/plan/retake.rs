//! Which completed jobs are to be bought once more: `--retake`.
//!
//! A pattern asks each time anew, whatever there is. A choice that somebody made on the page is about the video that they saw: once anything
//! was submitted after it that may have been charged, the choice is spent. So a run that was cut short may be started again with the same
//! choices, by a person or by cron, and no job is taken again twice.

use std::collections::{HashMap, HashSet};

use super::select::{IdGlobs, InvalidGlob};
use crate::domain::{Attempt, JobId, TaskId};

/// What is to be taken again.
#[derive(Clone, Debug, Default)]
pub struct Retakes {
    globs: IdGlobs,
    chosen: HashMap<JobId, HashSet<TaskId>>,
}

/// What is asked for of one job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Retake<'r> {
    /// Nothing.
    #[default]
    No,
    /// To take it again, whatever there is of it.
    Any,
    /// To take it again as long as its last take is of one of these tasks.
    Of(&'r HashSet<TaskId>),
}

/// Why a choice to take a job again is not followed: it was about a video, and something was bought since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpentChoice {
    /// It is not about the last take.
    NotTheLastTake,
    /// That failed, and may have been charged.
    RetakeFailed,
}

impl Retake<'_> {
    /// Whether this very attempt is to be made once more.
    pub(super) fn is_about(self, attempt: &Attempt) -> bool {
        match self {
            Self::No => false,
            Self::Any => true,
            Self::Of(tasks) => attempt.task.as_ref().is_some_and(|task| tasks.iter().any(|id| task.has(id))),
        }
    }
}

impl Retakes {
    /// Takes again what matches a glob, and each job that somebody chose while its video was of this task.
    pub fn new(globs: &[String], chosen: impl IntoIterator<Item = (JobId, TaskId)>) -> Result<Self, InvalidGlob> {
        let mut retakes = Self { globs: IdGlobs::new(globs)?, chosen: HashMap::new() };
        for (job, task) in chosen {
            retakes.chosen.entry(job).or_default().insert(task);
        }
        Ok(retakes)
    }

    pub(super) fn of(&self, job: &JobId) -> Retake<'_> {
        match self.chosen.get(job) {
            _ if self.globs.has(job.as_str()) => Retake::Any,
            Some(tasks) => Retake::Of(tasks),
            None => Retake::No,
        }
    }
}
