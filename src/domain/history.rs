//! The ledger's record of one batch, as a value, and jobs with a new ID.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::codes::explained;
use super::{Attempt, AttemptId, AttemptState, BatchKey, JobId, Reviewed, Usd};

/// All attempts of one batch, oldest first for each job, and why others were not made.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    /// The indexes of all attempts, by job, oldest first for each.
    by_job: Vec<u32>,
    /// The reason why a job was not sent, where that is no submission.
    unsent: BTreeMap<JobId, String>,
    /// The retake of a run that did not finish it.
    retake: Option<UnfinishedRetake>,
    /// The recorded choices that reviews of this run replace, each with its job.
    pub replaced: Vec<(JobId, Reviewed)>,
}

/// The open work of another batch of the same name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenElsewhere {
    /// The batch.
    pub batch: BatchKey,
    /// Tasks at the service.
    pub active: u32,
    /// Attempts in doubt.
    pub doubtful: u32,
    /// Intents without a response, of a live or a dead run.
    pub unanswered: u32,
    /// Completed tasks without a downloaded video.
    pub unfetched: u32,
    /// The price of the attempts in doubt.
    pub at_risk: Usd,
    /// Videos with a failed or owed `--exec` hook.
    pub unexecuted: u32,
}

impl OpenElsewhere {
    /// Sums up unfinished attempts, oldest first: batches with active tasks first, and of each kind the newest batch first.
    pub(crate) fn from_attempts(unfinished: Vec<(BatchKey, Attempt)>) -> Vec<Self> {
        let mut batches: Vec<(AttemptId, Self)> = Vec::new();
        for (key, attempt) in unfinished {
            let place = batches.iter().position(|(_, open)| open.batch == key).unwrap_or_else(|| {
                batches.push((attempt.id, Self { batch: key, ..Self::default() }));
                batches.len() - 1
            });
            let (newest, open) = &mut batches[place];
            *newest = attempt.id;
            open.add(&attempt);
        }
        batches.sort_by_key(|(newest, open)| Reverse((open.active + open.unanswered > 0, *newest)));
        batches.into_iter().map(|(_, open)| open).collect()
    }

    fn add(&mut self, attempt: &Attempt) {
        match attempt.state {
            AttemptState::Queued | AttemptState::InProgress => self.active += 1,
            AttemptState::Intended => self.unanswered += 1,
            AttemptState::InDoubt => {
                self.doubtful += 1;
                self.at_risk += attempt.cost();
            }
            AttemptState::Completed => {
                self.unfetched += u32::from(attempt.needs_download());
                self.unexecuted += u32::from(attempt.has_failed_command());
            }
            AttemptState::Void | AttemptState::Rejected | AttemptState::Failed => {}
        }
    }
}

/// A retake by patterns whose run didn't end: the same patterns continue it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UnfinishedRetake {
    /// The patterns.
    pub globs: Vec<String>,
    /// The number of the newest attempt before the retake; newer ones are part of it.
    pub after: i64,
}

impl History {
    /// Holds all attempts of a batch, oldest first.
    pub fn new(attempts: Vec<Attempt>) -> Self {
        // A ledger's attempts are numbered from 1, and memory ends long before this does.
        let count = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let mut by_job: Vec<u32> = (0..count).collect();
        // Stable, so each job's attempts stay in their order.
        by_job.sort_by(|a, b| attempts[*a as usize].job().cmp(attempts[*b as usize].job()));
        Self { attempts, by_job, ..Self::default() }
    }

    /// Adds why jobs were not sent when it was last their turn, and an unfinished retake.
    #[must_use]
    pub fn with_facts(self, unsent: BTreeMap<JobId, String>, retake: Option<UnfinishedRetake>) -> Self {
        Self { unsent, retake, ..self }
    }

    /// The unfinished retake.
    pub fn retake(&self) -> Option<&UnfinishedRetake> {
        self.retake.as_ref()
    }

    /// The reason why a job was not sent at its last turn, if nothing was submitted for it since.
    pub fn why_unsent(&self, job: &JobId) -> Option<&str> {
        self.unsent.get(job).map(String::as_str)
    }

    /// The attempts, the reasons why jobs were not sent, and the unfinished retake.
    pub(crate) fn into_parts(self) -> (Vec<Attempt>, BTreeMap<JobId, String>, Option<UnfinishedRetake>) {
        (self.attempts, self.unsent, self.retake)
    }

    /// The part of it about the chosen jobs.
    #[must_use]
    pub fn only(self, is_meant: impl Fn(&JobId) -> bool) -> Self {
        let (attempts, mut unsent, retake) = self.into_parts();
        unsent.retain(|job, _| is_meant(job));
        let attempts = attempts.into_iter().filter(|attempt| is_meant(attempt.job())).collect();
        Self { unsent, retake, ..Self::new(attempts) }
    }

    /// The same with changes to attempts that leave each with its job.
    pub(super) fn changed(mut self, change: impl FnMut(&mut Attempt)) -> Self {
        self.attempts.iter_mut().for_each(change);
        self
    }

    /// Every attempt, oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter()
    }

    /// The attempts of one job, oldest first.
    pub fn attempts_of(&self, job: &JobId) -> impl DoubleEndedIterator<Item = &Attempt> + Clone {
        self.attempts_at(self.places(job))
    }

    /// The positions of a job's attempts, for a later access.
    pub fn places(&self, job: &JobId) -> Range<usize> {
        let start = self.by_job.partition_point(|&place| self.attempts[place as usize].job() < job);
        let own = self.by_job[start..].iter().take_while(|&&place| *self.attempts[place as usize].job() == *job);
        start..start + own.count()
    }

    /// The attempts at these positions.
    pub fn attempts_at(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = &Attempt> + Clone {
        self.by_job[places].iter().map(|&place| &self.attempts[place as usize])
    }

    /// Returns whether nothing was bought for its job since.
    pub fn is_last(&self, attempt: &Attempt) -> bool {
        self.attempts_of(attempt.job()).all(|other| other.id <= attempt.id || other.state.made_no_task())
    }
}

/// A job with a new ID, which gets the purchases of the old ID.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Move {
    /// The old ID.
    pub from: JobId,
    /// The new ID.
    pub to: JobId,
}

/// Both IDs of a move have purchases, or may have, so it is unknown which of the two is the job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("can't move `{}` to `{}`, which was submitted itself", .0.from, .0.to)]
pub struct MovedOnto(pub Move);

explained!(MovedOnto => MovedOnto, "remove the entry from `moved`: both jobs are paid for, or may be");

/// The new ID of each moved job, by its old ID, after the moves in their order. Skips an ID without submissions, so the same moves
/// may be repeated. `submitted` are the IDs of a batch, each with whether it has purchases, or may have.
pub fn new_ids<'m>(
    submitted: impl IntoIterator<Item = (&'m JobId, bool)>,
    moves: &'m [Move],
) -> Result<HashMap<JobId, JobId>, MovedOnto> {
    // The first IDs, by the current ID.
    let mut now: HashMap<&JobId, Vec<(&JobId, bool)>> = HashMap::new();
    for (id, is_bought) in submitted {
        now.entry(id).or_default().push((id, is_bought));
    }
    let is_bought = |ids: &[(&JobId, bool)]| ids.iter().any(|(_, is_bought)| *is_bought);
    for a_move in moves {
        let Some(moved) = now.remove(&a_move.from) else { continue };
        let there = now.entry(&a_move.to).or_default();
        if is_bought(&moved) && is_bought(there) {
            return Err(MovedOnto(a_move.clone()));
        }
        there.extend(moved);
    }
    let all = now.into_iter().flat_map(|(new, old)| old.into_iter().map(move |(old, _)| (old.clone(), new.clone())));
    Ok(all.filter(|(old, new)| old != new).collect())
}

impl History {
    /// The same history with each job under its new ID.
    pub fn moved(self, moves: &[Move]) -> Result<Self, MovedOnto> {
        if moves.is_empty() {
            return Ok(self);
        }
        let submitted = self.attempts().map(|attempt| (attempt.job(), !attempt.state.made_no_task()));
        let new = new_ids(submitted, moves)?;
        let (attempts, unsent, retake) = self.into_parts();
        let moved = |it: Attempt| if let Some(id) = new.get(it.job()) { it.moved_to(id) } else { it };
        Ok(Self::new(attempts.into_iter().map(moved).collect()).with_facts(unsent, retake))
    }
}

impl Attempt {
    /// The same attempt under a new ID of its job. A job that has its first ID again was never moved.
    #[must_use]
    pub fn moved_to(mut self, id: &JobId) -> Self {
        let old = std::mem::replace(&mut self.purchase.job, id.clone());
        let bought_as = self.particulars.bought_as.take().unwrap_or_else(|| Box::new(old));
        self.particulars.bought_as = Some(bought_as).filter(|first| **first != self.purchase.job);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> JobId {
        JobId::new(id).expect("an id")
    }

    fn shown(submitted: &[(&str, bool)], moves: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let submitted: Vec<(JobId, bool)> = submitted.iter().map(|(name, is_bought)| (id(name), *is_bought)).collect();
        let moves: Vec<Move> = moves.iter().map(|(from, to)| Move { from: id(from), to: id(to) }).collect();
        let new = new_ids(submitted.iter().map(|(id, is_bought)| (id, *is_bought)), &moves);
        let mut new: Vec<String> =
            new.map_err(|error| error.to_string())?.iter().map(|(old, new)| format!("{old}>{new}")).collect();
        new.sort();
        Ok(new)
    }

    #[test]
    fn moves_are_made_in_their_order_and_lose_nothing() {
        let of = |list: &[&str]| Ok(list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(shown(&[("a", true)], &[("a", "b")]), of(&["a>b"]));
        assert_eq!(shown(&[("a", true)], &[("a", "b"), ("b", "c")]), of(&["a>c"]), "a chain");
        assert_eq!(
            shown(&[("a", true), ("b", true)], &[("b", "c"), ("a", "b")]),
            of(&["a>b", "b>c"]),
            "one after another"
        );
        assert_eq!(shown(&[("a", true)], &[("a", "b"), ("b", "a")]), of(&[]), "and undone");
        assert_eq!(shown(&[("b", true)], &[("a", "b")]), of(&[]), "made already");
        assert_eq!(
            shown(&[("a", true), ("b", true)], &[("a", "b")]),
            Err("can't move `a` to `b`, which was submitted itself".to_owned())
        );
        // An ID without purchases is free.
        assert_eq!(shown(&[("a", true), ("b", false)], &[("a", "b")]), of(&["a>b"]));
    }
}
