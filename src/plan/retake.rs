//! Retakes: completed jobs that are due again (`--retake`).
//!
//! A choice is about one video. A later submission that may be charged spends the choice. A pattern requests one more video of each job that it
//! matches. Until its run has ended, the same patterns continue that run, so after a kill, the same command buys nothing twice.

use std::collections::{HashMap, HashSet};

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::domain::{Attempt, AttemptId, AttemptState, JobChoice, JobId, Takes, TaskId, UnfinishedRetake};

/// The jobs to retake.
#[derive(Clone, Debug, Default)]
pub struct Retakes {
    globs: IdGlobs,
    /// The patterns, sorted.
    words: Vec<String>,
    chosen: HashMap<JobId, HashSet<TaskId>>,
    /// True if recorded choices count.
    recorded: bool,
    /// True if other due jobs are left for another run.
    alone: bool,
}

/// The retake of one job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Retake<'r> {
    /// No retake.
    #[default]
    No,
    /// A retake, unless an attempt after this one was it: the pattern continues an unfinished run.
    Any(Option<AttemptId>),
    /// A retake if its last take is of one of these tasks.
    Of(&'r HashSet<TaskId>),
    /// A retake if the recorded reviews choose one.
    Recorded,
}

/// The reason to skip a retake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SpentChoice {
    /// Its video is not the last take.
    NotTheLastTake,
    /// A retake failed, and may have been charged.
    RetakeFailed,
    /// The unfinished run with the same patterns has bought it.
    AlreadyRetaken,
    /// Another reviewer keeps a video of the job.
    Disputed,
    /// All takes of `up_to` are bought.
    AllTakes,
}

impl Retake<'_> {
    /// The request as a part of an unfinished retake.
    pub(super) fn within(self, begun: Option<&UnfinishedRetake>) -> Self {
        match self {
            Self::Any(_) => Self::Any(begun.map(|begun| AttemptId(begun.after))),
            other => other,
        }
    }

    /// Returns whether it requests another video in place of this attempt's, whose reviewers made this choice.
    pub(super) fn is_about(self, attempt: &Attempt, choice: Option<JobChoice>) -> bool {
        match self {
            Self::No => false,
            Self::Any(after) => after.is_none_or(|after| attempt.id <= after),
            Self::Recorded => choice == Some(JobChoice::Retake),
            Self::Of(tasks) => attempt.task.as_ref().is_some_and(|task| tasks.iter().any(|id| task.has(id))),
        }
    }
}

impl Retakes {
    /// Retakes jobs that match a glob, jobs whose video of this task was chosen, and, if so, those with a recorded choice. Choices leave other due jobs for
    /// another run.
    pub fn new(
        globs: &[String],
        choices: impl IntoIterator<Item = (JobId, TaskId)>,
        recorded: bool,
    ) -> Result<Self, InvalidGlob> {
        let mut words = globs.to_vec();
        words.sort_unstable();
        words.dedup();
        let mut chosen: HashMap<JobId, HashSet<TaskId>> = HashMap::new();
        for (job, task) in choices {
            chosen.entry(job).or_default().insert(task);
        }
        Ok(Self { globs: IdGlobs::new(globs)?, words, alone: recorded || !chosen.is_empty(), chosen, recorded })
    }

    /// Returns whether a due job is left for another run. `attempts` are all of the job's, oldest first.
    pub(super) fn leaves_out<'a>(
        &self,
        job: &JobId,
        attempts: &(impl DoubleEndedIterator<Item = &'a Attempt> + Clone),
    ) -> bool {
        let is_again = || {
            let last = attempts.clone().rev().find(|attempt| attempt.state == AttemptState::Completed)?;
            Takes::new(last.purchase.fingerprint(), attempts.clone())?.choice
        };
        self.alone
            && match self.retake_of(job) {
                Retake::No => true,
                Retake::Any(_) | Retake::Of(_) => false,
                // With any request: the user may have changed the prompt.
                Retake::Recorded => is_again() != Some(JobChoice::Retake),
            }
    }

    /// Returns whether these are the patterns of an unfinished retake.
    pub fn continues(&self, begun: &UnfinishedRetake) -> bool {
        self.words == begun.globs
    }

    /// The unfinished retake that these patterns would replace.
    pub(super) fn replaced<'b>(&self, begun: Option<&'b UnfinishedRetake>) -> Option<&'b UnfinishedRetake> {
        begun.filter(|begun| !self.words.is_empty() && !self.continues(begun))
    }

    /// A retake by these patterns that begins now, after the newest attempt of the batch; nothing without patterns.
    pub fn begin(&self, newest: Option<AttemptId>) -> Option<UnfinishedRetake> {
        let after = newest.map_or(0, |newest| newest.0);
        (!self.words.is_empty()).then(|| UnfinishedRetake { globs: self.words.clone(), after })
    }

    pub(super) fn retake_of(&self, job: &JobId) -> Retake<'_> {
        match self.chosen.get(job) {
            _ if self.globs.has(job.as_str()) => Retake::Any(None),
            Some(tasks) => Retake::Of(tasks),
            None if self.recorded => Retake::Recorded,
            None => Retake::No,
        }
    }
}

/// The selected jobs of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    select: IdGlobs,
    exclude: IdGlobs,
    tags: Vec<String>,
}

/// An invalid pattern.
#[derive(Debug, thiserror::Error)]
#[error("`{glob}` must be a pattern: {source}")]
pub struct InvalidGlob {
    glob: String,
    source: globset::Error,
}

impl Selection {
    /// Selects by globs over ids and by tags. A job is selected if it matches any `select` (or there is none), has any of
    /// `tags` (or there is none), and matches no `exclude`.
    pub fn new(select: &[String], exclude: &[String], tags: &[String]) -> Result<Self, InvalidGlob> {
        Ok(Self { select: IdGlobs::new(select)?, exclude: IdGlobs::new(exclude)?, tags: tags.to_vec() })
    }

    /// Returns whether a job with this ID and these tags is selected.
    pub fn takes(&self, id: &str, tags: &[String]) -> bool {
        (self.select.0.is_empty() || self.select.has(id))
            && !self.exclude.has(id)
            && (self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag)))
    }

    /// Returns whether every job is selected.
    pub fn is_all(&self) -> bool {
        self.select.0.is_empty() && self.exclude.0.is_empty() && self.tags.is_empty()
    }
}

/// Globs over IDs. Without any, nothing matches (`--retake`).
#[derive(Clone, Debug, Default)]
pub struct IdGlobs(GlobSet);

impl IdGlobs {
    /// Compiles globs over ids.
    pub fn new(patterns: &[String]) -> Result<Self, InvalidGlob> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(Glob::new(pattern).map_err(|source| InvalidGlob { glob: pattern.clone(), source })?);
        }
        set.build().map(Self).map_err(|source| InvalidGlob { glob: patterns.join(" "), source })
    }

    /// Returns whether an ID matches.
    pub fn has(&self, id: &str) -> bool {
        // A match makes a path of each ID first, and a manifest may have many.
        !self.0.is_empty() && self.0.is_match(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_by_glob_and_tag() {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let selection = |select: &[&str], exclude: &[&str], tags: &[&str]| {
            Selection::new(&texts(select), &texts(exclude), &texts(tags)).expect("globs")
        };
        assert!(selection(&[], &[], &[]).takes("hero", &[]));
        assert!(selection(&["spin-*"], &[], &[]).takes("spin-1.2", &[]));
        assert!(!selection(&["spin-*"], &[], &[]).takes("hero", &[]));
        assert!(selection(&["{hero,spin-*}"], &[], &[]).takes("hero", &[]));
        assert!(!selection(&[], &["her?"], &[]).takes("hero", &[]));
        assert!(selection(&[], &[], &["a", "b"]).takes("hero", &texts(&["b"])));
        assert!(!selection(&[], &[], &["a"]).takes("hero", &texts(&["b"])));
        assert!(Selection::new(&texts(&["[z-"]), &[], &[]).is_err());
    }
}
