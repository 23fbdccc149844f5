//! Only a few of the due jobs: a cheap first look, which the next run goes on from.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::planned::Planned;
use crate::domain::JobId;

/// A choice of a few due jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sample {
    /// The first ones, in the order of the manifest.
    First(usize),
    /// As many of each model as there is room for, whichever stand first by a hash of their ids: the same ones each time.
    Spread(usize),
}

impl Sample {
    /// Takes the jobs that are left out of a plan, and gives their ids. Only jobs that are to be bought are counted, also those that
    /// were bought under the approval at hand: so a run that is started again has the same few.
    pub(super) fn choose(self, jobs: &mut Vec<Planned>) -> Vec<JobId> {
        let due = jobs.iter().filter(|planned| planned.is_to_be_approved);
        let chosen: HashSet<JobId> = match self {
            Self::First(number) => due.take(number).map(|planned| planned.job.id.clone()).collect(),
            Self::Spread(number) => spread(due, number),
        };
        let is_left = |planned: &Planned| planned.is_to_be_approved && !chosen.contains(&planned.job.id);
        let left = jobs.iter().filter(|planned| is_left(planned)).map(|planned| planned.job.id.clone()).collect();
        jobs.retain(|planned| !is_left(planned));
        left
    }
}

/// One of each model in turn, until there are so many.
fn spread<'p>(due: impl Iterator<Item = &'p Planned>, number: usize) -> HashSet<JobId> {
    let mut by_model: BTreeMap<&str, Vec<(Vec<u8>, &JobId)>> = BTreeMap::new();
    for planned in due {
        let id = &planned.job.id;
        by_model.entry(&planned.job.spec.model).or_default().push((Sha256::digest(id.as_str()).to_vec(), id));
    }
    let mut piles: Vec<_> = by_model.into_values().collect();
    for pile in &mut piles {
        pile.sort_unstable_by(|one, other| other.cmp(one));
    }
    let mut chosen = HashSet::new();
    while chosen.len() < number && piles.iter().any(|pile| !pile.is_empty()) {
        for pile in &mut piles {
            if let Some((_, id)) = pile.pop().filter(|_| chosen.len() < number) {
                chosen.insert(id.clone());
            }
        }
    }
    chosen
}
