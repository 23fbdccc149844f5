//! Submissions in doubt that a run repeats with their idempotency keys.

use std::collections::HashSet;

use jiff::Timestamp;

use super::build::Plan;
use super::decide::Action;
use super::planned::Planned;
use crate::domain::{Attempt, AttemptId, History, Idempotency, JobId, Usd};

impl Plan {
    /// Plans to repeat the submissions in doubt of selected jobs, and of jobs that the manifest has no more, whose keys the service remembers.
    pub fn ask_again(
        &mut self,
        honored: &Idempotency,
        history: &History,
        now: Timestamp,
        is_in_manifest: impl Fn(&JobId) -> bool,
    ) {
        let selected: HashSet<AttemptId> = self.jobs.iter().filter_map(|planned| planned.attempt).collect();
        let ours = |attempt: &&Attempt| selected.contains(&attempt.id) || !is_in_manifest(&attempt.job);
        let askable = history.attempts().filter(|attempt| attempt.can_be_repeated(honored, now));
        self.asked_again = askable.filter(ours).cloned().collect();
    }

    /// The most that consent to the whole plan covers: the submissions, and those in doubt that are repeated.
    pub fn to_consent(&self) -> Usd {
        self.most() + self.asked_again.iter().map(|attempt| attempt.price).sum()
    }

    /// Jobs in doubt whose submission is not repeated, and the sum at risk.
    pub fn left_in_doubt(&self) -> (usize, Usd) {
        let asked: HashSet<AttemptId> = self.asked_again.iter().map(|attempt| attempt.id).collect();
        let is_left = |planned: &&Planned| planned.attempt.is_none_or(|attempt| !asked.contains(&attempt));
        let left = self.jobs.iter().filter(|planned| planned.action == Action::InDoubt).filter(is_left);
        left.fold((0, Usd::ZERO), |(jobs, usd), planned| (jobs + 1, usd + planned.at_risk))
    }

    /// Adds the tasks of submissions that were in doubt, whose videos go where their jobs say.
    pub fn add_settled(&mut self, settled: Vec<Attempt>) {
        for attempt in settled {
            let is_current = |planned: &&Planned| {
                planned.attempt == Some(attempt.id) && *planned.job.request.fingerprint() == attempt.fingerprint
            };
            let Some(planned) = self.jobs.iter().find(is_current) else {
                self.collect.push(attempt);
                continue;
            };
            if let Some(downloads) = &mut self.downloads {
                downloads.expect(attempt.id, planned.job.output());
            }
            self.resume.push(attempt);
        }
    }
}
