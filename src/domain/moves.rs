//! Jobs with a new ID.

use std::collections::HashMap;

use super::{Attempt, History, JobId};

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
        let moved = attempts.into_iter().map(|attempt| match new.get(attempt.job()) {
            Some(id) => attempt.moved_to(id),
            None => attempt,
        });
        Ok(Self::new(moved.collect()).with_unsent(unsent).with_retake(retake))
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
