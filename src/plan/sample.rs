//! `--sample`: the same N due jobs each time, spread over models. The next run continues from them.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::input::Planned;
use crate::domain::JobId;

/// Keeps `number` due jobs of a plan, one of each model in turn, in the order of a hash of their IDs. Returns the IDs of the others.
///
/// Jobs that were bought under the same approval count, too, so a restarted run has the same sample.
pub(super) fn keep_sample(jobs: &mut Vec<Planned>, number: usize) -> Vec<JobId> {
    let sample = sample(jobs.iter().filter(|planned| planned.is_to_be_approved), number);
    let is_left = |planned: &Planned| planned.is_to_be_approved && !sample.contains(planned.job.id());
    let left = jobs.iter().filter(|planned| is_left(planned)).map(|planned| planned.job.id().clone()).collect();
    jobs.retain(|planned| !is_left(planned));
    left
}

fn sample<'p>(due: impl Iterator<Item = &'p Planned>, number: usize) -> HashSet<JobId> {
    let mut by_model: BTreeMap<&str, Vec<(Vec<u8>, &JobId)>> = BTreeMap::new();
    for planned in due {
        let id = planned.job.id();
        by_model.entry(&planned.job.spec.model).or_default().push((Sha256::digest(id.as_str()).to_vec(), id));
    }
    let mut piles: Vec<_> = by_model.into_values().collect();
    for pile in &mut piles {
        pile.sort_unstable_by(|one, other| other.cmp(one));
    }
    let mut sample = HashSet::new();
    while sample.len() < number && piles.iter().any(|pile| !pile.is_empty()) {
        for pile in &mut piles {
            if let Some((_, id)) = pile.pop().filter(|_| sample.len() < number) {
                sample.insert(id.clone());
            }
        }
    }
    sample
}
